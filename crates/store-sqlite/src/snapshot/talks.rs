//! Conversations, their messages and attachments.

use rusqlite::{Connection, OptionalExtension, Row};
use yore_domain::conversation::{Conversation, Message};
use yore_domain::query::{Filter, Page, PageRequest};
use yore_domain::{BlobHash, ConversationId, MessageId, Timestamp};
use yore_store::inside::{Inside, Unread};
use yore_store::snapshot::Extent;
use yore_store::{RowKey, Source};

use super::View;
use super::walk::{Pager, Road, walk};
use crate::said;
use crate::select::{conversation_passes, json, talk_possible};

const ROAD: Road = Road {
    newest: "SELECT row, updated, id, 0, 0 FROM conversation
        WHERE class = ?1 AND (updated, id) < (?2, ?3) ORDER BY updated DESC, id DESC LIMIT ?4",
    oldest: "SELECT row, updated, id, 0, 0 FROM conversation
        WHERE class = ?1 AND (updated, id) > (?2, ?3) ORDER BY updated, id LIMIT ?4",
};

pub(super) fn conversation(
    view: &View<'_>,
    id: ConversationId,
) -> rusqlite::Result<Option<(Conversation, u64)>> {
    view.conn
        .prepare_cached("SELECT class, data, updated, messages FROM conversation WHERE id = ?1")?
        .query_one([id.bytes()], |row| {
            view.selection.has(row.get(0)?).then(|| conversation_from(row)).transpose()
        })
        .optional()
        .map(Option::flatten)
}

/// Reads the columns data, updated and messages, which begin at the second.
fn conversation_from(row: &Row<'_>) -> rusqlite::Result<(Conversation, u64)> {
    let mut conversation: Conversation = json(row, 1)?;
    conversation.updated = Timestamp::from_micros(row.get(2)?);
    Ok((conversation, row.get(3)?))
}

pub(super) fn list(
    view: &View<'_>,
    filter: &Filter,
    page: &PageRequest,
) -> rusqlite::Result<Page<(Conversation, u64)>> {
    let (mut pager, mut items) = (Pager::of(page), Vec::new());
    if !talk_possible(filter) {
        return Ok(Page { items, next: None });
    }
    let mut statement = view
        .conn
        .prepare_cached("SELECT class, data, updated, messages FROM conversation WHERE row = ?1")?;
    walk(view.conn, &ROAD, &view.selection.narrowed(filter), page, |step| {
        let found = statement.query_one([step.row], conversation_from)?;
        if !conversation_passes(filter, &found.0) {
            return Ok(true);
        }
        Ok(match pager.count(&step) {
            Some(shown) => {
                items.extend(shown.then_some(found));
                true
            }
            None => false,
        })
    })?;
    Ok(Page { items, next: pager.next() })
}

pub(super) fn extent(view: &View<'_>, id: ConversationId) -> rusqlite::Result<Option<Extent>> {
    let found = extent_of(view.conn, id)?;
    Ok(found.filter(|(class, _)| view.selection.has(*class)).map(|(_, extent)| extent))
}

/// The class of a conversation, and which messages it has.
pub(crate) fn extent_of(
    conn: &Connection,
    id: ConversationId,
) -> rusqlite::Result<Option<(u32, Extent)>> {
    conn.prepare_cached(
        // Most messages do not hold the words at all, so their JSON is not read.
        "SELECT c.class, count(m.row), coalesce(max(m.row), 0),
             coalesce(sum(instr(m.data, '\"off_path\":true') > 0
                 AND coalesce(json_extract(m.data, '$.off_path'), 0)), 0)
         FROM conversation c LEFT JOIN message m ON m.conversation = c.row
         WHERE c.id = ?1 GROUP BY c.row",
    )?
    .query_one([id.bytes()], |row| {
        let extent = Extent { messages: row.get(1)?, last: row.get(2)?, off_path: row.get(3)? };
        Ok((row.get(0)?, extent))
    })
    .optional()
}

pub(super) fn messages(
    view: &View<'_>,
    conversation: ConversationId,
    from: u64,
    limit: usize,
) -> rusqlite::Result<Vec<Message>> {
    let mut statement = view.conn.prepare_cached(
        "SELECT c.class, m.data FROM conversation c JOIN message m ON m.conversation = c.row
         WHERE c.id = ?1 AND m.position >= ?2 ORDER BY m.position LIMIT ?3",
    )?;
    let rows = statement.query_map((conversation.bytes(), from, limit), |row| {
        view.selection.has(row.get(0)?).then(|| said::message(row, 1)).transpose()
    })?;
    rows.filter_map(Result::transpose).collect()
}

pub(super) fn message(
    view: &View<'_>,
    conversation: ConversationId,
    id: MessageId,
) -> rusqlite::Result<Option<(u64, Message)>> {
    view.conn
        .prepare_cached(
            "SELECT c.class, m.position, m.data
             FROM conversation c JOIN message m ON m.conversation = c.row
             WHERE c.id = ?1 AND m.id = ?2",
        )?
        .query_one((conversation.bytes(), id.bytes()), |row| {
            let seen = view.selection.has(row.get(0)?);
            seen.then(|| Ok((row.get(1)?, said::message(row, 2)?))).transpose()
        })
        .optional()
        .map(Option::flatten)
}

/// Whether a visible message names the attachment.
fn blob_seen(view: &View<'_>, blob: BlobHash) -> rusqlite::Result<bool> {
    let mut statement = view.conn.prepare_cached(
        "SELECT DISTINCT c.class FROM blob_use u JOIN message m ON m.row = u.message
         JOIN conversation c ON c.row = m.conversation WHERE u.hash = ?1",
    )?;
    let classes = statement.query_map([blob.0], |row| row.get(0))?;
    for class in classes {
        if view.selection.has(class?) {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(super) fn blob(view: &View<'_>, blob: BlobHash) -> rusqlite::Result<Option<u64>> {
    let seen = blob_seen(view, blob)?;
    let size: Option<Option<u64>> = view
        .conn
        .prepare_cached("SELECT size FROM blob WHERE hash = ?1")?
        .query_one([blob.0], |row| row.get(0))
        .optional()?;
    Ok(size.flatten().filter(|_| seen))
}

pub(super) fn blob_chunk(
    view: &View<'_>,
    hash: BlobHash,
    number: u32,
) -> rusqlite::Result<Option<Vec<u8>>> {
    if blob(view, hash)?.is_none() {
        return Ok(None);
    }
    view.conn
        .prepare_cached("SELECT bytes FROM blob_chunk WHERE hash = ?1 AND number = ?2")?
        .query_one((hash.0, number), |row| row.get(0))
        .optional()
}

pub(super) fn unread(view: &View<'_>, limit: usize) -> rusqlite::Result<Vec<Unread>> {
    let mut statement = view.conn.prepare_cached(
        "SELECT c.class, m.row, m.data FROM unread w JOIN message m ON m.row = w.message
         JOIN conversation c ON c.row = m.conversation
         WHERE NOT EXISTS (SELECT 1 FROM blob_use u LEFT JOIN blob b ON b.hash = u.hash
             WHERE u.message = m.row AND b.size IS NULL)
         ORDER BY w.message DESC",
    )?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        if found.len() == limit {
            break;
        }
        if view.selection.has(row.get(0)?) {
            let key = RowKey { source: Source::Message, row: row.get(1)? };
            found.push(Unread { row: key, message: Box::new(said::message(row, 2)?) });
        }
    }
    Ok(found)
}

pub(super) fn inside(
    view: &View<'_>,
    conversation: ConversationId,
    id: MessageId,
) -> rusqlite::Result<Vec<Inside>> {
    let row = view
        .conn
        .prepare_cached(
            "SELECT c.class, m.row FROM conversation c JOIN message m ON m.conversation = c.row
             WHERE c.id = ?1 AND m.id = ?2",
        )?
        .query_one((conversation.bytes(), id.bytes()), |row| {
            view.selection.has(row.get(0)?).then(|| row.get(1)).transpose()
        })
        .optional()?
        .flatten();
    row.map_or(Ok(Vec::new()), |row| inside_of(view.conn, row))
}

/// What the attachments of a message say.
pub(crate) fn inside_of(conn: &Connection, message: u64) -> rusqlite::Result<Vec<Inside>> {
    let found = conn
        .prepare_cached("SELECT data FROM inside WHERE message = ?1")?
        .query_one([message], |row| json(row, 0))
        .optional()?;
    Ok(found.unwrap_or_default())
}

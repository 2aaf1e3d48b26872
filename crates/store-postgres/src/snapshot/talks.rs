//! Conversations, their messages and attachments, and what was erased.

use std::collections::BTreeMap;

use tokio_postgres::Row;
use yore_domain::conversation::{Conversation, Message};
use yore_domain::query::{Filter, Page, PageRequest};
use yore_domain::{BlobHash, ConversationId, MemoryId, MessageId, Timestamp};
use yore_store::inside::{Inside, Unread};
use yore_store::plan::Grave;
use yore_store::select::{conversation_passes, talk_possible};
use yore_store::snapshot::{Buried, Extent};
use yore_store::{RowKey, Source};

use super::walk::{Pager, Place};
use super::{View, id_in, ids, limit_of};
use crate::error::Result;
use crate::pool::Conn;
use crate::vault::numbered;

pub(super) async fn conversation(
    view: &View<'_>,
    id: ConversationId,
) -> Result<Option<(Conversation, u64)>> {
    let row = view
        .row(
            "SELECT row, data, updated, messages FROM conversation
             WHERE vault = $1 AND id = $2 AND class = ANY($3)",
            &[&id.bytes().as_slice(), &view.seen],
        )
        .await?;
    row.map(|row| conversation_from(view, &row)).transpose()
}

/// Reads the columns row, data, updated and messages.
fn conversation_from(view: &View<'_>, row: &Row) -> Result<(Conversation, u64)> {
    let mut conversation: Conversation =
        view.vault.open_value("conversation", &numbered(row.get(0)), row.get(1))?;
    conversation.updated = Timestamp::from_micros(row.get(2));
    Ok((conversation, row.get::<_, i64>(3).cast_unsigned()))
}

pub(super) async fn list(
    view: &View<'_>,
    filter: &Filter,
    page: &PageRequest,
) -> Result<Page<(Conversation, u64)>> {
    let (mut pager, mut items) = (Pager::of(page), Vec::new());
    if !talk_possible(filter) {
        return Ok(Page { items, next: None });
    }
    let mut place = Place::of(page);
    let onward = place.onward("updated", "id", "$3", "$4");
    let sql = format!(
        "SELECT row, data, updated, messages, id FROM conversation
         WHERE vault = $1 AND class = ANY($2) AND {onward} LIMIT $5"
    );
    let classes = ids(&view.selection.narrowed(filter));
    'pages: loop {
        let rows = view.rows(&sql, &[&classes, &place.at, &place.id, &place.chunk]).await?;
        for row in &rows {
            let (at, id) = (row.get::<_, i64>(2), id_in(row, 4)?);
            (place.at, place.id) = (at, id.to_vec());
            let found = conversation_from(view, row)?;
            if conversation_passes(filter, &found.0) {
                match pager.count(at, id) {
                    Some(shown) => items.extend(shown.then_some(found)),
                    None => break 'pages,
                }
            }
        }
        if limit_of(rows.len()) < place.chunk {
            break;
        }
    }
    Ok(Page { items, next: pager.next() })
}

pub(super) async fn extent(view: &View<'_>, id: ConversationId) -> Result<Option<Extent>> {
    let found = extent_of(view.conn, id).await?;
    Ok(found.filter(|(class, _)| view.has(*class)).map(|(_, extent)| extent))
}

/// The class of a conversation, and which messages it has.
pub(crate) async fn extent_of(conn: &Conn, id: ConversationId) -> Result<Option<(i32, Extent)>> {
    let row = conn
        .row(
            "SELECT c.class, count(m.row), coalesce(max(m.row), 0),
                 count(m.row) FILTER (WHERE m.off_path)
             FROM conversation c LEFT JOIN message m ON m.vault = $1 AND m.conversation = c.row
             WHERE c.vault = $1 AND c.id = $2 GROUP BY c.row, c.class",
            &[&id.bytes().as_slice()],
        )
        .await?;
    Ok(row.map(|row| {
        let count = |column: usize| row.get::<_, i64>(column).cast_unsigned();
        (row.get(0), Extent { messages: count(1), last: count(2), off_path: count(3) })
    }))
}

pub(super) async fn messages(
    view: &View<'_>,
    conversation: ConversationId,
    from: u64,
    limit: usize,
) -> Result<Vec<Message>> {
    let rows = view
        .rows(
            "SELECT m.row, m.data FROM conversation c
                 JOIN message m ON m.vault = $1 AND m.conversation = c.row
             WHERE c.vault = $1 AND c.id = $2 AND c.class = ANY($3) AND m.position >= $4
             ORDER BY m.position LIMIT $5",
            &[
                &conversation.bytes().as_slice(),
                &view.seen,
                &i64::try_from(from).unwrap_or(i64::MAX),
                &limit_of(limit),
            ],
        )
        .await?;
    rows.iter()
        .map(|row| view.vault.open_value("message", &numbered(row.get(0)), row.get(1)))
        .collect()
}

pub(super) async fn message(
    view: &View<'_>,
    conversation: ConversationId,
    id: MessageId,
) -> Result<Option<(u64, Message)>> {
    let row = view
        .row(
            "SELECT m.row, m.data, m.position FROM conversation c
                 JOIN message m ON m.vault = $1 AND m.conversation = c.row
             WHERE c.vault = $1 AND c.id = $2 AND c.class = ANY($3) AND m.id = $4",
            &[&conversation.bytes().as_slice(), &view.seen, &id.bytes().as_slice()],
        )
        .await?;
    let Some(row) = row else { return Ok(None) };
    let message = view.vault.open_value("message", &numbered(row.get(0)), row.get(1))?;
    Ok(Some((row.get::<_, i64>(2).cast_unsigned(), message)))
}

pub(super) async fn blob(view: &View<'_>, blob: BlobHash) -> Result<Option<u64>> {
    let row = view
        .row(
            "SELECT b.size FROM blob b WHERE b.vault = $1 AND b.hash = $2 AND b.size IS NOT NULL
                 AND EXISTS (SELECT 1 FROM blob_use u
                     JOIN message m ON m.vault = $1 AND m.row = u.message
                     JOIN conversation c ON c.vault = $1 AND c.row = m.conversation
                     WHERE u.vault = $1 AND u.hash = b.hash AND c.class = ANY($3))",
            &[&view.vault.mac_of("blob", &blob.0), &view.seen],
        )
        .await?;
    Ok(row.map(|row| row.get::<_, i64>(0).cast_unsigned()))
}

pub(super) async fn blob_chunk(
    view: &View<'_>,
    hash: BlobHash,
    number: u32,
) -> Result<Option<Vec<u8>>> {
    if blob(view, hash).await?.is_none() {
        return Ok(None);
    }
    let number = number.cast_signed();
    let hash = view.vault.mac_of("blob", &hash.0);
    let sql = "SELECT c.data, b.origin FROM blob_chunk c
        JOIN blob b ON b.vault = $1 AND b.hash = c.hash
        WHERE c.vault = $1 AND c.hash = $2 AND c.number = $3";
    let Some(row) = view.row(sql, &[&hash, &number]).await? else { return Ok(None) };
    let place = view.vault.chunk(&hash, row.get(1), number)?;
    let bytes = view.vault.open_bytes("blob_chunk", &place, row.get(0))?;
    Ok(Some(bytes.to_vec()))
}

pub(super) async fn unread(view: &View<'_>, limit: usize) -> Result<Vec<Unread>> {
    let rows = view
        .rows(
            "SELECT m.row, m.data FROM unread w
                 JOIN message m ON m.vault = $1 AND m.row = w.message
                 JOIN conversation c ON c.vault = $1 AND c.row = m.conversation
             WHERE w.vault = $1 AND c.class = ANY($2)
                 AND NOT EXISTS (SELECT 1 FROM blob_use u
                     LEFT JOIN blob b ON b.vault = $1 AND b.hash = u.hash
                     WHERE u.vault = $1 AND u.message = m.row AND b.size IS NULL)
             ORDER BY w.message DESC LIMIT $3",
            &[&view.seen, &limit_of(limit)],
        )
        .await?;
    rows.iter()
        .map(|row| {
            let number: i64 = row.get(0);
            let message = view.vault.open_value("message", &numbered(number), row.get(1))?;
            let key = RowKey { source: Source::Message, row: number.cast_unsigned() };
            Ok(Unread { row: key, message: Box::new(message) })
        })
        .collect()
}

pub(super) async fn inside(
    view: &View<'_>,
    conversation: ConversationId,
    id: MessageId,
) -> Result<Vec<Inside>> {
    let row = view
        .row(
            "SELECT i.message, i.data FROM conversation c
                 JOIN message m ON m.vault = $1 AND m.conversation = c.row
                 JOIN inside i ON i.vault = $1 AND i.message = m.row
             WHERE c.vault = $1 AND c.id = $2 AND c.class = ANY($3) AND m.id = $4",
            &[&conversation.bytes().as_slice(), &view.seen, &id.bytes().as_slice()],
        )
        .await?;
    let Some(row) = row else { return Ok(Vec::new()) };
    view.vault.open_value("inside", &numbered(row.get(0)), row.get(1))
}

/// What the attachments of messages say, by their rows.
pub(crate) async fn inside_of(
    view: &View<'_>,
    messages: &[i64],
) -> Result<BTreeMap<i64, Vec<Inside>>> {
    let sql = "SELECT message, data FROM inside WHERE vault = $1 AND message = ANY($2)";
    let mut found = BTreeMap::new();
    for row in view.rows(sql, &[&messages]).await? {
        let number: i64 = row.get(0);
        found.insert(number, view.vault.open_value("inside", &numbered(number), row.get(1))?);
    }
    Ok(found)
}

pub(super) async fn buried(view: &View<'_>, namespace: &str, name: &str) -> Result<Buried> {
    let mac = view.vault.mac("alias", &[namespace, name]);
    let sql = "SELECT message FROM ledger WHERE vault = $1 AND mac = $2 ORDER BY message";
    let mut buried = Buried::default();
    for row in view.rows(sql, &[&mac]).await? {
        match message_in(&row, 0) {
            Some(message) => buried.messages.push(message),
            None => buried.whole = true,
        }
    }
    Ok(buried)
}

pub(super) async fn graves(view: &View<'_>) -> Result<Vec<(Grave, Timestamp)>> {
    let rows = view
        .rows(
            "SELECT target, kind, message, at FROM ledger
             WHERE vault = $1 AND target IS NOT NULL ORDER BY at, target, message",
            &[],
        )
        .await?;
    rows.iter()
        .map(|row| {
            let id = id_in(row, 0)?;
            let grave = match (row.get::<_, i16>(1), message_in(row, 2)) {
                (0, _) => Grave::Memory(MemoryId::from_bytes(id)),
                (_, None) => Grave::Conversation(ConversationId::from_bytes(id)),
                (_, Some(message)) => Grave::Message(ConversationId::from_bytes(id), message),
            };
            Ok((grave, Timestamp::from_micros(row.get(3))))
        })
        .collect()
}

fn message_in(row: &Row, column: usize) -> Option<MessageId> {
    <[u8; 16]>::try_from(row.get::<_, &[u8]>(column)).ok().map(MessageId::from_bytes)
}

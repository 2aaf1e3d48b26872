//! Conversations, their messages and attachments.

use std::collections::BTreeSet;

use rusqlite::OptionalExtension as _;
use yore_domain::conversation::{Conversation, Message};
use yore_domain::{BlobHash, ConversationId, Error, MessageId};
use yore_store::plan::{Before, Grave, Indexing};
use yore_store::snapshot::Extent;

use super::memory::Columns;
use super::{Commit, missing};
use crate::books::Page;
use crate::error::Result;
use crate::indexes::Effect;
use crate::said;
use crate::snapshot::extent_of;

/// A conversation while a plan appends to it.
pub(super) struct Talk {
    row: i64,
    class: u32,
    /// The position of its next message, once it was looked up.
    next: Option<u64>,
    /// Messages that its head does not count yet, and when the last of them was said.
    appended: u64,
    last: i64,
    /// What its head says at least of its last time.
    updated: i64,
}

impl Default for Talk {
    fn default() -> Self {
        Self { row: 0, class: 0, next: None, appended: 0, last: i64::MIN, updated: i64::MIN }
    }
}

impl Commit<'_> {
    /// A conversation that the plan appends to, looked up once: an import has very many messages.
    fn talk(&mut self, id: ConversationId) -> Result<&mut Talk> {
        if !self.talks.contains_key(&id) {
            let (row, class) = self.conversation_row(id)?.ok_or_else(missing)?;
            self.talks.insert(id, Talk { row, class, ..Talk::default() });
        }
        self.talks.get_mut(&id).ok_or_else(missing)
    }

    /// Where a conversation goes on.
    fn next_position(&self, row: i64) -> Result<u64> {
        let sql = "SELECT coalesce(max(position) + 1, 0) FROM message WHERE conversation = ?1";
        Ok(self.one(sql, [row])?.unwrap_or(0))
    }

    /// Writes down what the heads of conversations say of the messages that were appended. A head
    /// may be long, so it is not written with each of them.
    pub(super) fn settle_talks(&mut self) -> Result<()> {
        for talk in std::mem::take(&mut self.talks).into_values() {
            if talk.appended > 0 && talk.last <= talk.updated {
                // The head is not read again, and keeps its place among the others.
                let sql = "UPDATE conversation SET messages = messages + ?2 WHERE row = ?1";
                self.run(sql, (talk.row, talk.appended))?;
            } else if talk.appended > 0 {
                self.run(
                    "UPDATE conversation SET messages = messages + ?2,
                         data = iif(updated < ?3, json_set(data, '$.updated', ?3), data),
                         updated = max(updated, ?3)
                     WHERE row = ?1",
                    (talk.row, talk.appended, talk.last),
                )?;
            }
        }
        Ok(())
    }

    fn conversation_row(&self, id: ConversationId) -> Result<Option<(i64, u32)>> {
        Ok(self
            .conn
            .prepare_cached("SELECT row, class FROM conversation WHERE id = ?1")?
            .query_row([id.bytes()], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?)
    }

    /// Whether a conversation has this head and these messages.
    pub(super) fn is_talk(&self, head: &Conversation, extent: Extent) -> Result<bool> {
        let data: Option<String> =
            self.one("SELECT data FROM conversation WHERE id = ?1", [head.id.bytes()])?;
        let Some(data) = data else { return Ok(false) };
        let found = extent_of(self.conn, head.id)?.map(|(_, found)| found);
        Ok(found == Some(extent) && serde_json::from_str::<Conversation>(&data)? == *head)
    }

    fn seen(&self, class: u32) -> Before {
        Before { conversation: Some((*self.classes.get(class)).clone()), ..Before::default() }
    }

    /// Writes a head. What was said since it was read stays counted in its last time.
    pub(super) fn conversation(&mut self, conversation: &Conversation) -> Result<Before> {
        let known = self.conversation_row(conversation.id)?;
        let before = known.map_or_else(Before::default, |(_, class)| self.seen(class));
        let class = self.classes.id_of(self.conn, &conversation.class())?;
        self.run(
            "INSERT INTO conversation (id, class, platform, created, updated, data)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)
             ON CONFLICT (id) DO UPDATE SET class = excluded.class, platform = excluded.platform,
                 created = excluded.created, updated = max(updated, excluded.updated),
                 data = iif(updated > excluded.updated,
                     json_set(excluded.data, '$.updated', updated), excluded.data)",
            (
                conversation.id.bytes(),
                class,
                &conversation.platform,
                conversation.created.micros(),
                conversation.updated.micros(),
                serde_json::to_string(conversation)?,
            ),
        )?;
        let row = known.map_or_else(|| self.conn.last_insert_rowid(), |(row, _)| row);
        let talk = self.talks.entry(conversation.id).or_default();
        (talk.row, talk.class) = (row, class);
        talk.updated = conversation.updated.micros();
        if known.is_none() {
            talk.next = Some(0);
        }
        self.effects.push(Effect::Conversation {
            row: row.cast_unsigned(),
            class,
            session: conversation.scope.session.clone(),
        });
        Ok(before)
    }

    /// Appends a message. One that is already there stays as it is and changes nothing.
    pub(super) fn message(
        &mut self,
        conversation: ConversationId,
        message: &Message,
        indexing: &Indexing,
    ) -> Result<Option<Before>> {
        let &mut Talk { row: conversation_row, class, next, .. } = self.talk(conversation)?;
        let position = match next {
            Some(next) => next,
            None => self.next_position(conversation_row)?,
        };
        let columns = Columns::of(indexing);
        let added = self.run(
            "INSERT INTO message (conversation, id, position, at, data, tokens, model, scale, statics)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
             ON CONFLICT (conversation, id) DO NOTHING",
            (
                conversation_row,
                message.id.bytes(),
                position,
                message.at.micros(),
                said::written(message)?,
                columns.tokens,
                columns.model,
                columns.scale,
                columns.statics,
            ),
        )?;
        let talk = self.talk(conversation)?;
        if added == 0 {
            talk.next = Some(position);
            return Ok(None);
        }
        talk.next = Some(position + 1);
        talk.appended += 1;
        talk.last = talk.last.max(message.at.micros());
        let row = self.conn.last_insert_rowid().cast_unsigned();
        for blob in message.attachments.iter().filter_map(|attachment| attachment.blob) {
            self.run("INSERT OR IGNORE INTO blob_use VALUES (?1, ?2)", (blob.0, row))?;
        }
        if message.attachments.iter().any(|attachment| attachment.blob.is_some()) {
            self.run("INSERT INTO unread VALUES (?1)", [row])?;
        }
        self.effects.push(Effect::Message {
            row,
            conversation_row: conversation_row.cast_unsigned(),
            class,
            id: message.id,
            position,
            at: message.at.micros(),
            text: message.text.clone(),
            indexing: indexing.clone(),
        });
        Ok(Some(self.seen(class)))
    }

    /// Removes one message, or all of them and the conversation with its names.
    pub(super) fn erase_messages(
        &mut self,
        id: ConversationId,
        message: Option<MessageId>,
    ) -> Result<Before> {
        self.settle_talks()?;
        let (conversation_row, class) = self.conversation_row(id)?.ok_or_else(missing)?;
        let mut statement = self.conn.prepare_cached(
            "SELECT row FROM message WHERE conversation = ?1 AND (?2 IS NULL OR id = ?2)",
        )?;
        let rows = statement
            .query_map((conversation_row, message.map(MessageId::bytes)), |row| row.get(0))?
            .collect::<rusqlite::Result<Vec<u64>>>()?;
        if message.is_some() && rows.is_empty() {
            return Err(missing());
        }
        let attached = self.attached(&rows)?;
        for row in &rows {
            self.run("DELETE FROM vector WHERE source = 1 AND row = ?1", [row])?;
            self.run("DELETE FROM blob_use WHERE message = ?1", [row])?;
            self.run("DELETE FROM unread WHERE message = ?1", [row])?;
            self.run("DELETE FROM inside WHERE message = ?1", [row])?;
            self.run("DELETE FROM message WHERE row = ?1", [row])?;
        }
        self.bury(match message {
            Some(message) => Grave::Message(id, message),
            None => Grave::Conversation(id),
        })?;
        if message.is_some() {
            self.run(
                "UPDATE conversation SET messages = messages - 1 WHERE row = ?1",
                [conversation_row],
            )?;
        } else {
            self.run("DELETE FROM alias WHERE kind = 2 AND target = ?1", [id.bytes()])?;
            self.run("DELETE FROM conversation WHERE row = ?1", [conversation_row])?;
        }
        for blob in attached {
            self.drop_unused(blob)?;
        }
        self.erased = true;
        self.effects.push(Effect::MessagesErased {
            conversation_row: conversation_row.cast_unsigned(),
            rows,
        });
        Ok(self.seen(class))
    }

    /// The attachments that messages name.
    fn attached(&self, messages: &[u64]) -> Result<BTreeSet<[u8; 32]>> {
        let mut statement =
            self.conn.prepare_cached("SELECT hash FROM blob_use WHERE message = ?1")?;
        let mut found = BTreeSet::new();
        for row in messages {
            for hash in statement.query_map([row], |row| row.get(0))? {
                found.insert(hash?);
            }
        }
        Ok(found)
    }

    /// Drops an attachment that lost the last message that named it. One that was never named
    /// waits for its message: an import stores the bytes first.
    fn drop_unused(&mut self, blob: [u8; 32]) -> Result<()> {
        let used: Option<i64> =
            self.one("SELECT 1 FROM blob_use WHERE hash = ?1 LIMIT 1", [blob])?;
        if used.is_some() {
            return Ok(());
        }
        // Nor does a note stay of who brought it: a hash would still tell what it was.
        let notes = self
            .conn
            .prepare_cached("SELECT name FROM setting WHERE name LIKE 'brought:%:' || ?1")?
            .query_map([BlobHash(blob).to_string()], |row| row.get(0))?
            .collect::<rusqlite::Result<Vec<String>>>()?;
        for name in notes {
            self.run("DELETE FROM setting WHERE name = ?1", [&name])?;
            self.pages.push(Page::Setting(name));
        }
        self.run("DELETE FROM blob_chunk WHERE hash = ?1", [blob])?;
        self.run("DELETE FROM blob WHERE hash = ?1", [blob])?;
        Ok(())
    }

    pub(super) fn blob_chunk(
        &self,
        blob: BlobHash,
        number: u32,
        bytes: &[u8],
        complete: Option<u64>,
    ) -> Result<()> {
        self.run("INSERT INTO blob (hash) VALUES (?1) ON CONFLICT DO NOTHING", [blob.0])?;
        self.run(
            "INSERT OR REPLACE INTO blob_chunk (hash, number, bytes) VALUES (?1, ?2, ?3)",
            (blob.0, number, bytes),
        )?;
        if let Some(size) = complete {
            self.run("UPDATE blob SET size = ?2 WHERE hash = ?1", (blob.0, size))?;
        }
        Ok(())
    }

    pub(super) fn blob_named(&self, staged: BlobHash, blob: BlobHash, size: u64) -> Result<()> {
        let there: u64 = self.conn.query_row(
            "SELECT coalesce(sum(length(bytes)), 0) FROM blob_chunk WHERE hash = ?1",
            [staged.0],
            |row| row.get(0),
        )?;
        if there != size {
            return Err(Error::conflict("the attachment did not arrive whole").into());
        }
        let known: bool = self.conn.query_row(
            "SELECT count(*) > 0 FROM blob WHERE hash = ?1 AND size IS NOT NULL",
            [blob.0],
            |row| row.get(0),
        )?;
        if known {
            self.run("DELETE FROM blob_chunk WHERE hash = ?1", [staged.0])?;
        } else {
            self.run("UPDATE blob_chunk SET hash = ?2 WHERE hash = ?1", (staged.0, blob.0))?;
            self.run("INSERT INTO blob (hash, size) VALUES (?1, ?2)", (blob.0, size))?;
        }
        self.run("DELETE FROM blob WHERE hash = ?1", [staged.0])?;
        Ok(())
    }
}

/// Drops pieces of attachments that never became whole. Only while nobody writes.
pub(crate) fn drop_abandoned(conn: &rusqlite::Connection) -> Result<()> {
    let abandoned = "SELECT hash FROM blob WHERE size IS NULL";
    conn.execute(&format!("DELETE FROM blob_chunk WHERE hash IN ({abandoned})"), [])?;
    conn.execute("DELETE FROM blob WHERE size IS NULL", [])?;
    Ok(())
}

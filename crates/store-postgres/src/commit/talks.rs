//! Conversations, their messages and attachments, and what is buried.

use std::collections::BTreeSet;

use yore_domain::conversation::{Conversation, Message};
use yore_domain::{BlobHash, ConversationId, Error as DomainError, MessageId, Timestamp};
use yore_store::inside::{Inside, words};
use yore_store::plan::{Before, Grave, Indexing};
use yore_store::snapshot::Extent;
use yore_store::{RowKey, Source};

use super::{Commit, Document, missing, put};
use crate::error::Result;
use crate::snapshot::extent_of;
use crate::vault::{Setting, numbered, within};

impl Commit<'_> {
    /// The row of a conversation and its class.
    pub(super) async fn conversation_row(&self, id: ConversationId) -> Result<Option<(i64, i32)>> {
        let sql = "SELECT row, class FROM conversation WHERE vault = $1 AND id = $2";
        let row = self.conn.row(sql, &[&id.bytes().as_slice()]).await?;
        Ok(row.map(|row| (row.get(0), row.get(1))))
    }

    /// Whether a conversation has this head and these messages.
    pub(super) async fn is_talk(&self, head: &Conversation, extent: Extent) -> Result<bool> {
        let sql = "SELECT row, data, updated FROM conversation WHERE vault = $1 AND id = $2";
        let Some(row) = self.conn.row(sql, &[&head.id.bytes().as_slice()]).await? else {
            return Ok(false);
        };
        let mut stored: Conversation =
            self.open("conversation", &numbered(row.get(0)), row.get(1))?;
        stored.updated = Timestamp::from_micros(row.get(2));
        let found = extent_of(self.conn, head.id).await?.map(|(_, found)| found);
        Ok(found == Some(extent) && stored == *head)
    }

    fn seen(&self, class: i32) -> Result<Before> {
        Ok(Before { conversation: Some(self.class(class)?), ..Before::default() })
    }

    /// Writes a head. What was said since it was read stays counted in its last time.
    pub(super) async fn conversation(&mut self, conversation: &Conversation) -> Result<Before> {
        let class = self.class_of(&conversation.class()).await?;
        let known = self.conversation_row(conversation.id).await?;
        let before = match known {
            Some((_, class)) => self.seen(class)?,
            None => Before::default(),
        };
        let row = match known {
            Some((row, _)) => row,
            None => {
                self.tail.conversation += 1;
                self.tail.conversation
            }
        };
        let data = self.seal("conversation", &numbered(row), conversation)?;
        self.run(
            "INSERT INTO conversation (vault, row, id, class, updated, data)
             VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (vault, row) DO UPDATE SET class = excluded.class,
                 updated = greatest(conversation.updated, excluded.updated), data = excluded.data",
            &[
                &row,
                &conversation.id.bytes().as_slice(),
                &class,
                &conversation.updated.micros(),
                &data,
            ],
        )
        .await?;
        if known.is_some_and(|(_, before)| before != class) {
            self.run(
                "UPDATE document SET own = $3, seen = $3
                 WHERE vault = $1 AND source = 1 AND home = $2",
                &[&row, &class],
            )
            .await?;
        }
        Ok(before)
    }

    /// Appends a message. One that is already there stays as it is and changes nothing.
    pub(super) async fn message(
        &mut self,
        conversation: ConversationId,
        message: &Message,
        indexing: &Indexing,
    ) -> Result<Option<Before>> {
        let (home, class) = self.conversation_row(conversation).await?.ok_or_else(missing)?;
        let there = self
            .conn
            .row(
                "SELECT coalesce(max(position) + 1, 0)::bigint, coalesce(bool_or(id = $3), false)
                 FROM message WHERE vault = $1 AND conversation = $2",
                &[&home, &message.id.bytes().as_slice()],
            )
            .await?;
        let (position, known) =
            there.map_or((0, false), |row| (row.get::<_, i64>(0), row.get::<_, bool>(1)));
        if known {
            return Ok(None);
        }
        self.tail.message += 1;
        let row = self.tail.message;
        let data = self.seal("message", &numbered(row), message)?;
        self.run(
            "INSERT INTO message (vault, row, conversation, id, position, off_path, data)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
            &[&row, &home, &message.id.bytes().as_slice(), &position, &message.off_path, &data],
        )
        .await?;
        self.run(
            "UPDATE conversation SET messages = messages + 1, updated = greatest(updated, $3)
             WHERE vault = $1 AND row = $2",
            &[&home, &message.at.micros()],
        )
        .await?;
        for blob in message.attachments.iter().filter_map(|attachment| attachment.blob) {
            let hash = self.vault.mac_of("blob", &blob.0);
            self.run(
                "INSERT INTO blob_use (vault, hash, message) VALUES ($1, $2, $3)
                 ON CONFLICT DO NOTHING",
                &[&hash, &row],
            )
            .await?;
        }
        if message.attachments.iter().any(|attachment| attachment.blob.is_some()) {
            let sql = "INSERT INTO unread (vault, message) VALUES ($1, $2)";
            self.run(sql, &[&row]).await?;
        }
        let place = (row, home, class, position);
        let document = Document::of_message(place, message, &message.text, &indexing.tokens);
        put(self.conn, self.vault, document, indexing.statics.as_ref()).await?;
        self.seen(class).map(Some)
    }

    /// Makes a message findable by what its attachments say. One that is gone meanwhile, or was
    /// read already, stays so.
    pub(super) async fn inside(
        &mut self,
        key: RowKey,
        inside: &[Inside],
        indexing: &Indexing,
    ) -> Result<()> {
        let row = key.row.cast_signed();
        let sql = "DELETE FROM unread WHERE vault = $1 AND message = $2";
        let waited = self.run(sql, &[&row]).await? > 0;
        if key.source != Source::Message || !waited || inside.is_empty() {
            return Ok(());
        }
        let sql = "SELECT m.conversation, c.class, m.position, m.data FROM message m
            JOIN conversation c ON c.vault = $1 AND c.row = m.conversation
            WHERE m.vault = $1 AND m.row = $2";
        let Some(found) = self.conn.row(sql, &[&row]).await? else { return Ok(()) };
        let message: Message = self.open("message", &numbered(row), found.get(3))?;
        let data = self.seal("inside", &numbered(row), &inside)?;
        let sql = "INSERT INTO inside (vault, message, data) VALUES ($1, $2, $3)";
        self.run(sql, &[&row, &data]).await?;
        // The vector of what was said alone goes with the rest and is made anew.
        self.unfind(Source::Message, &[row]).await?;
        let place = (row, found.get(0), found.get(1), found.get(2));
        let text = words(&message.text, inside);
        let document = Document::of_message(place, &message, &text, &indexing.tokens);
        put(self.conn, self.vault, document, indexing.statics.as_ref()).await
    }

    /// Removes one message, or all of them and the conversation with its names.
    pub(super) async fn erase_messages(
        &mut self,
        id: ConversationId,
        message: Option<MessageId>,
    ) -> Result<Before> {
        let (home, class) = self.conversation_row(id).await?.ok_or_else(missing)?;
        let one = message.map(MessageId::bytes);
        let one = one.as_ref().map(<[u8; 16]>::as_slice);
        let rows: Vec<i64> = self
            .conn
            .rows(
                "SELECT row FROM message WHERE vault = $1 AND conversation = $2
                     AND ($3::bytea IS NULL OR id = $3)",
                &[&home, &one],
            )
            .await?
            .iter()
            .map(|row| row.get(0))
            .collect();
        if message.is_some() && rows.is_empty() {
            return Err(missing());
        }
        // The hashes themselves are only in the messages, and in the notes of who brought them.
        let attached = self.attached(&rows).await?;
        self.unfind(Source::Message, &rows).await?;
        for sql in [
            "DELETE FROM blob_use WHERE vault = $1 AND message = ANY($2)",
            "DELETE FROM unread WHERE vault = $1 AND message = ANY($2)",
            "DELETE FROM inside WHERE vault = $1 AND message = ANY($2)",
            "DELETE FROM message WHERE vault = $1 AND row = ANY($2)",
        ] {
            self.run(sql, &[&rows]).await?;
        }
        self.bury(match message {
            Some(message) => Grave::Message(id, message),
            None => Grave::Conversation(id),
        })
        .await?;
        if message.is_some() {
            let sql = "UPDATE conversation SET messages = messages - 1
                WHERE vault = $1 AND row = $2";
            self.run(sql, &[&home]).await?;
        } else {
            let sql = "DELETE FROM alias WHERE vault = $1 AND kind = 2 AND target = $2";
            self.run(sql, &[&id.bytes().as_slice()]).await?;
            let sql = "DELETE FROM conversation WHERE vault = $1 AND row = $2";
            self.run(sql, &[&home]).await?;
        }
        for blob in attached {
            self.drop_unused(BlobHash(blob)).await?;
        }
        self.seen(class)
    }

    /// The attachments that messages name.
    async fn attached(&self, messages: &[i64]) -> Result<BTreeSet<[u8; 32]>> {
        let rows = self
            .conn
            .rows(
                "SELECT row, data FROM message m WHERE vault = $1 AND row = ANY($2)
                     AND EXISTS (SELECT 1 FROM blob_use u WHERE u.vault = $1 AND u.message = m.row)",
                &[&messages],
            )
            .await?;
        let mut found = BTreeSet::new();
        for row in rows {
            let message: Message = self.open("message", &numbered(row.get(0)), row.get(1))?;
            let blobs = message.attachments.iter().filter_map(|attachment| attachment.blob);
            found.extend(blobs.map(|blob| blob.0));
        }
        Ok(found)
    }

    /// Drops an attachment that lost the last message that named it. One that was never named
    /// waits for its message: an import stores the bytes first.
    async fn drop_unused(&mut self, blob: BlobHash) -> Result<()> {
        let hash = self.vault.mac_of("blob", &blob.0);
        let sql = "SELECT 1 FROM blob_use WHERE vault = $1 AND hash = $2 LIMIT 1";
        if self.is_there(sql, &[&hash]).await? {
            return Ok(());
        }
        // Nor does a note stay of who brought it: a hash would still tell what it was.
        let end = format!(":{blob}");
        for row in self.conn.rows("SELECT name, data FROM setting WHERE vault = $1", &[]).await? {
            let name: &[u8] = row.get(0);
            let setting: Setting = self.open("setting", name, row.get(1))?;
            if setting.name.starts_with("brought:") && setting.name.ends_with(&end) {
                self.run("DELETE FROM setting WHERE vault = $1 AND name = $2", &[&name]).await?;
                self.judged_by = true;
            }
        }
        for table in ["blob_chunk", "blob"] {
            let sql = format!("DELETE FROM {table} WHERE vault = $1 AND hash = $2");
            self.run(&sql, &[&hash]).await?;
        }
        Ok(())
    }

    pub(super) async fn blob_chunk(
        &self,
        blob: BlobHash,
        number: u32,
        bytes: &[u8],
        complete: Option<u64>,
    ) -> Result<()> {
        let hash = self.vault.mac_of("blob", &blob.0);
        let sql = "INSERT INTO blob AS b (vault, hash, grown) VALUES ($1, $2, $3)
            ON CONFLICT (vault, hash) DO UPDATE SET grown = excluded.grown WHERE b.size IS NULL";
        if self.run(sql, &[&hash, &self.at.micros()]).await? == 0 {
            // It is whole: the same bytes are there, sealed as they first came.
            return Ok(());
        }
        let number = number.cast_signed();
        let data = self.vault.seal_bytes("blob_chunk", &within(&hash, number.into()), bytes);
        let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        self.run(
            "INSERT INTO blob_chunk (vault, hash, number, size, data) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (vault, hash, number) DO UPDATE
             SET size = excluded.size, data = excluded.data",
            &[&hash, &number, &size, &data],
        )
        .await?;
        if let Some(size) = complete {
            let sql = "UPDATE blob SET size = $3 WHERE vault = $1 AND hash = $2";
            self.run(sql, &[&hash, &size.cast_signed()]).await?;
        }
        Ok(())
    }

    pub(super) async fn blob_named(
        &self,
        staged: BlobHash,
        blob: BlobHash,
        size: u64,
    ) -> Result<()> {
        let from = self.vault.mac_of("blob", &staged.0);
        let to = self.vault.mac_of("blob", &blob.0);
        let sql = "SELECT coalesce(sum(size), 0)::bigint FROM blob_chunk
            WHERE vault = $1 AND hash = $2";
        let there: i64 = self.conn.row(sql, &[&from]).await?.map_or(0, |row| row.get(0));
        if there.cast_unsigned() != size {
            return Err(DomainError::conflict("the attachment did not arrive whole").into());
        }
        let sql = "SELECT 1 FROM blob WHERE vault = $1 AND hash = $2 AND size IS NOT NULL";
        if self.is_there(sql, &[&to]).await? {
            let sql = "DELETE FROM blob_chunk WHERE vault = $1 AND hash = $2";
            self.run(sql, &[&from]).await?;
        } else {
            let sql = "UPDATE blob_chunk SET hash = $3 WHERE vault = $1 AND hash = $2";
            self.run(sql, &[&from, &to]).await?;
            // Its pieces stay sealed as they came, and the attachment says under which name.
            let origin = self.vault.seal_bytes("blob", &to, &from);
            let sql = "INSERT INTO blob (vault, hash, size, origin) VALUES ($1, $2, $3, $4)";
            self.run(sql, &[&to, &size.cast_signed(), &origin]).await?;
        }
        self.run("DELETE FROM blob WHERE vault = $1 AND hash = $2", &[&from]).await?;
        Ok(())
    }

    /// Notes that something is gone, under its own id and under those that callers chose for it.
    pub(super) async fn bury(&self, grave: Grave) -> Result<()> {
        let (kind, id, name, message) = match grave {
            Grave::Memory(id) => (0i16, id.bytes(), id.to_string(), Vec::new()),
            Grave::Conversation(id) => (2, id.bytes(), id.to_string(), Vec::new()),
            Grave::Message(id, message) => {
                (2, id.bytes(), id.to_string(), message.bytes().to_vec())
            }
        };
        let at = self.at.micros();
        let mac = self.vault.mac("alias", &["", &name]);
        let data = self.seal("ledger", &[mac.as_slice(), &message].concat(), &("", &name))?;
        let sql = "INSERT INTO ledger (vault, mac, message, kind, target, at, data)
            VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING";
        self.run(sql, &[&mac, &message, &kind, &id.as_slice(), &at, &data]).await?;
        // Only ids are kept of names: a name that a person made up would be a word of what is gone.
        let names = self
            .conn
            .rows(
                "SELECT mac, data FROM alias WHERE vault = $1 AND target = $2 AND kind = $3",
                &[&id.as_slice(), &kind],
            )
            .await?;
        for row in names {
            let mac: &[u8] = row.get(0);
            let (namespace, name): (String, String) = self.open("alias", mac, row.get(1))?;
            if is_id(&name) {
                // Those of the owner's own namespace are listed among the graves.
                let parsed = name.parse::<ConversationId>().ok().map(ConversationId::bytes);
                let target = parsed.filter(|_| namespace.is_empty());
                let target = target.as_ref().map(<[u8; 16]>::as_slice);
                let place = [mac, &message].concat();
                let data = self.seal("ledger", &place, &(&namespace, &name))?;
                self.run(sql, &[&mac, &message, &kind, &target, &at, &data]).await?;
            }
        }
        Ok(())
    }
}

/// Whether a name has the shape of an id.
fn is_id(name: &str) -> bool {
    let parts: Vec<usize> = name.split('-').map(|part| part.chars().count()).collect();
    parts == [8, 4, 4, 4, 12]
}

//! Rows into the tables, encrypted, in the one transaction that makes the vault.

use std::collections::HashMap;
use std::sync::Arc;

use yore_domain::VaultId;
use yore_domain::conversation::Message;
use yore_domain::memory::Version;
use yore_store::inside::{Inside, words};
use yore_store::key::Key;
use yore_store::transfer::{
    Counters, EntryRow, Intake, Line, MemoryRow, MessageRow, Row, Rows, VersionRow,
};
use yore_store::{Answer, Vector};

use super::{patient, walked};
use crate::commit::{Document, put, put_vector};
use crate::error::{Error, Result};
use crate::keeper;
use crate::pool::{Begin, Conn, Owned, Pool, owned};
use crate::roots::Root;
use crate::vault::{SEED, Setting, Vault, numbered};

mod books;

/// A vault that is being taken in.
pub(super) struct PostgresIntake {
    conn: Arc<Conn>,
    vault: Arc<Vault>,
    tail: Tail,
}

/// Where the vault's numbers stand, as the rows tell.
#[derive(Default)]
struct Tail {
    counters: Counters,
    seq: i64,
    at: i64,
    hash: Option<Vec<u8>>,
    change: i64,
    memory: i64,
    version: i64,
    conversation: i64,
    class: i32,
}

/// What a batch must know of rows that came before it.
#[derive(Default)]
struct Known {
    /// By the row of a memory: its class, and the row of its head.
    memories: HashMap<i64, (i32, i64)>,
    /// By the row of a conversation: its class.
    talks: HashMap<i64, i32>,
}

impl PostgresIntake {
    pub(super) async fn begin(pool: &Arc<Pool>, root: &Root, line: Option<&Line>) -> Result<Self> {
        // The seed comes with the rows: nothing is signed before.
        let blank = Key::from_bytes([0; 32]);
        let (conn, vault) = match line {
            None => {
                let conn = pool.begin(VaultId::CATALOG, Begin::Strict).await?;
                patient(&conn).await?;
                keeper::empty(&conn).await?;
                let key = root.catalog();
                (conn, Vault::new(VaultId::CATALOG, None, &key, &blank)?)
            }
            Some(Line { info, checkpoint }) => {
                let (id, key) = (info.id, Key::random());
                let conn = pool.begin(id, Begin::Strict).await?;
                patient(&conn).await?;
                let vault = Vault::new(id, Some(info.clone()), &key, &blank)?;
                let tenant = info.tenant.bytes();
                let wrapped = root.wrap(id, &key);
                let copy = checkpoint.as_ref();
                let copy = copy.map(|text| vault.seal_bytes("line", &[], text.as_bytes()));
                conn.run(
                    "INSERT INTO line (vault, tenant, owner, did, created, wrapped, checkpoint)
                     VALUES ($1, $2, $3, $4, $5, $6, $7)",
                    &[
                        &tenant.as_slice(),
                        &info.owner,
                        &info.did,
                        &info.created.micros(),
                        &wrapped,
                        &copy,
                    ],
                )
                .await?;
                (conn, vault)
            }
        };
        conn.run("INSERT INTO tail (vault) VALUES ($1)", &[]).await?;
        Ok(Self { conn: Arc::new(conn), vault: Arc::new(vault), tail: Tail::default() })
    }

    async fn later(&self, sql: &str, params: Vec<Owned>) -> Result<()> {
        self.conn.later(sql, params, None).await
    }

    /// Takes rows. What versions and messages belong to may come with the same batch, before them.
    async fn put_all(&mut self, rows: Vec<Row>) -> Result<()> {
        let (mut memories, mut talks) = (Vec::new(), Vec::new());
        for row in &rows {
            if let Row::Version(version) = row {
                memories.push(version.memory);
            } else if let Row::Message(message) = row {
                talks.push(message.talk);
            }
        }
        let mut known = Known::default();
        for row in rows {
            if matches!(row, Row::Version(_)) && known.memories.is_empty() {
                let sql =
                    "SELECT row, class, head_row FROM memory WHERE vault = $1 AND row = ANY($2)";
                let found = self.conn.rows(sql, &[&memories]).await?;
                let found = found.iter().map(|row| (row.get(0), (row.get(1), row.get(2))));
                known.memories = found.collect();
            }
            if matches!(row, Row::Message(_)) && known.talks.is_empty() {
                let sql = "SELECT row, class FROM conversation WHERE vault = $1 AND row = ANY($2)";
                let found = self.conn.rows(sql, &[&talks]).await?;
                known.talks = found.iter().map(|row| (row.get(0), row.get(1))).collect();
            }
            Box::pin(self.put_row(row, &known)).await?;
        }
        Ok(())
    }

    async fn put_row(&mut self, row: Row, known: &Known) -> Result<()> {
        match row {
            Row::Seed(seed) => {
                let value = yore_canon::encode::hex(seed.bytes()).into();
                self.setting(SEED, value).await
            }
            Row::Counters(counters) => {
                self.tail.counters = counters;
                Ok(())
            }
            Row::Class(number, class) => {
                let id = number.cast_signed();
                if id != self.tail.class + 1 {
                    return Err(Error::Damaged("the numbers of classes have a gap".into()));
                }
                self.tail.class = id;
                let data = self.vault.seal("class", &id.to_be_bytes(), &class)?;
                self.later(
                    "INSERT INTO class (vault, id, data) VALUES ($1, $2, $3)",
                    owned![id, data],
                )
                .await
            }
            Row::Setting(name, value) => self.setting(&name, value).await,
            Row::Memory(memory) => self.memory(*memory).await,
            Row::Version(version) => self.version(*version, known).await,
            Row::Talk(row, class, messages, talk) => {
                self.tail.conversation = self.tail.conversation.max(row);
                let data = self.vault.seal("conversation", &numbered(row), &talk)?;
                self.later(
                    "INSERT INTO conversation (vault, row, id, class, updated, messages, data)
                     VALUES ($1, $2, $3, $4, $5, $6, $7)",
                    owned![
                        row,
                        talk.id.bytes().to_vec(),
                        class.cast_signed(),
                        talk.updated.micros(),
                        messages.cast_signed(),
                        data,
                    ],
                )
                .await
            }
            Row::Message(message) => self.message(*message, known).await,
            Row::Vector(key, vector) => put_vector(&self.conn, key, &vector).await,
            Row::Entry(entry) => self.entry(*entry).await,
            Row::Lost(_) => Ok(()),
            other @ (Row::Relation(..)
            | Row::Alias(..)
            | Row::Blob(..)
            | Row::Piece(..)
            | Row::Kept(..)
            | Row::Rule(..)
            | Row::Frame(..)
            | Row::Letter(..)
            | Row::Operation(..)
            | Row::Grave(..)
            | Row::Named(..)
            | Row::Checkpoint(..)
            | Row::Tenant(..)
            | Row::Place(..)) => self.book(other).await,
        }
    }

    async fn setting(&self, name: &str, value: serde_json::Value) -> Result<()> {
        let mac = self.vault.mac("setting", &[name]);
        let data = self.vault.seal("setting", &mac, &Setting { name: name.to_owned(), value })?;
        let sql = "INSERT INTO setting (vault, name, data) VALUES ($1, $2, $3)";
        self.later(sql, owned![mac, data]).await
    }

    async fn memory(&mut self, memory: MemoryRow) -> Result<()> {
        self.tail.memory = self.tail.memory.max(memory.row);
        let (mut statement, mut said) = (None, None);
        if let Some(text) = &memory.statement {
            statement = Some(self.vault.mac("statement", &[text]));
            said = Some(self.vault.seal_bytes("memory", &numbered(memory.row), text.as_bytes()));
        }
        // The session is the head's, which says it when it comes.
        self.later(
            "INSERT INTO memory (vault, row, id, head, head_row, class, status, kind, since,
                 created, ends, statement, said, legal_hold, recalled, recalls, followed,
                 overridden, ignored, contradicted, demoted)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
                 $18, $19, $20, $21)",
            owned![
                memory.row,
                memory.id.to_vec(),
                memory.head.cast_signed(),
                memory.head_row,
                memory.class.cast_signed(),
                i16::from(memory.status),
                i16::from(memory.kind),
                memory.since,
                memory.created,
                memory.ends,
                statement,
                said,
                memory.legal_hold,
                memory.recalled,
                memory.recalls.cast_signed(),
                memory.followed.cast_signed(),
                memory.overridden.cast_signed(),
                memory.ignored.cast_signed(),
                memory.contradicted.cast_signed(),
                memory.demoted,
            ],
        )
        .await
    }

    async fn version(&mut self, row: VersionRow, known: &Known) -> Result<()> {
        self.tail.version = self.tail.version.max(row.row);
        let version: Version = serde_json::from_str(&row.data)?;
        let stray = || Error::Damaged("a version is of no memory".into());
        let (seen, head) = known.memories.get(&row.memory).copied().ok_or_else(stray)?;
        let class = row.class.cast_signed();
        let data = self.vault.seal_bytes("version", &numbered(row.row), row.data.as_bytes());
        self.later(
            "INSERT INTO version (vault, row, id, memory, number, class, status, recorded,
                 valid_from, valid_to, entry, salt, data)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
            owned![
                row.row,
                row.id.to_vec(),
                row.memory,
                row.number.cast_signed(),
                class,
                i16::from(row.status),
                row.recorded,
                version.time.valid_from.micros(),
                version.time.valid_to.map(yore_domain::Timestamp::micros),
                row.entry.cast_signed(),
                row.salt,
                data,
            ],
        )
        .await?;
        let is_head = row.row == head;
        let live = is_head && version.status.is_live();
        let session = version.content.scope.session.as_deref().filter(|_| live);
        let session = session.map_or(0, |name| self.vault.number("session", name.as_bytes()));
        if session != 0 {
            let sql = "UPDATE memory SET session = $3 WHERE vault = $1 AND row = $2";
            self.later(sql, owned![row.memory, session]).await?;
        }
        let Some(indexed) = &row.indexed else { return Ok(()) };
        let place = (row.row, row.memory, class, session);
        let mut document = Document::of_version(place, &version, &indexed.tokens);
        if !is_head {
            document = document.retired(seen);
        }
        put(&self.conn, &self.vault, document, Some(&indexed.statics)).await
    }

    async fn message(&mut self, row: MessageRow, known: &Known) -> Result<()> {
        let MessageRow { row, talk, position, message, indexed, inside, unread } = row;
        let stray = || Error::Damaged("a message is of no conversation".into());
        let class = known.talks.get(&talk).copied().ok_or_else(stray)?;
        let data = self.vault.seal("message", &numbered(row), &message)?;
        let position = position.cast_signed();
        self.later(
            "INSERT INTO message (vault, row, conversation, id, position, off_path, data)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
            owned![row, talk, message.id.bytes().to_vec(), position, message.off_path, data],
        )
        .await?;
        self.attachments(row, &message, inside.as_deref(), unread).await?;
        let Some(indexed) = indexed else { return Ok(()) };
        let read: Vec<Inside> = match &inside {
            Some(inside) => serde_json::from_str(inside)?,
            None => Vec::new(),
        };
        let text = if read.is_empty() { message.text.clone() } else { words(&message.text, &read) };
        let place = (row, talk, class, position);
        let document = Document::of_message(place, &message, &text, &indexed.tokens);
        let statics: &Vector = &indexed.statics;
        put(&self.conn, &self.vault, document, Some(statics)).await
    }

    /// What hangs on a message: which attachments it names, and what they say.
    async fn attachments(
        &self,
        row: i64,
        message: &Message,
        inside: Option<&str>,
        unread: bool,
    ) -> Result<()> {
        for blob in message.attachments.iter().filter_map(|attachment| attachment.blob) {
            let hash = self.vault.mac_of("blob", &blob.0);
            let sql = "INSERT INTO blob_use (vault, hash, message) VALUES ($1, $2, $3)
                ON CONFLICT DO NOTHING";
            self.later(sql, owned![hash, row]).await?;
        }
        if unread {
            let sql = "INSERT INTO unread (vault, message) VALUES ($1, $2)";
            self.later(sql, owned![row]).await?;
        }
        if let Some(inside) = inside {
            let data = self.vault.seal_bytes("inside", &numbered(row), inside.as_bytes());
            let sql = "INSERT INTO inside (vault, message, data) VALUES ($1, $2, $3)";
            self.later(sql, owned![row, data]).await?;
        }
        Ok(())
    }

    async fn entry(&mut self, entry: EntryRow) -> Result<()> {
        let (seq, change) = (entry.seq.cast_signed(), entry.change.cast_signed());
        let place = numbered(seq);
        let agent = entry.agent.map(|agent| self.vault.mac("agent", &[&agent]));
        let data = self.vault.seal_bytes("audit", &place, entry.data.as_bytes());
        let changes = entry.changes.as_ref();
        let changes = changes.map(|told| self.vault.seal_bytes("outbox", &place, told.as_bytes()));
        self.tail.seq = seq;
        self.tail.at = entry.at;
        self.tail.hash = Some(entry.hash.clone());
        self.tail.change = change;
        self.later(
            "INSERT INTO audit (vault, seq, at, operation, agent, hash, change, data, changes)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            owned![seq, entry.at, entry.operation, agent, entry.hash, change, data, changes],
        )
        .await
    }

    /// Writes down where the numbers stand.
    async fn settle(&self) -> Result<()> {
        let tail = &self.tail;
        let Counters { message, letter, grants, rules } = tail.counters;
        self.conn
            .run(
                "UPDATE tail SET seq = $2, at = $3, hash = $4, change = $5, memory = $6,
                     version = $7, conversation = $8, message = $9, letter = $10, class = $11,
                     grants = $12, rules = $13, books = 1
                 WHERE vault = $1",
                &[
                    &tail.seq,
                    &tail.at,
                    &tail.hash,
                    &tail.change,
                    &tail.memory,
                    &tail.version,
                    &tail.conversation,
                    &message.cast_signed(),
                    &letter.cast_signed(),
                    &tail.class,
                    &grants.cast_signed(),
                    &rules.cast_signed(),
                ],
            )
            .await?;
        Ok(())
    }
}

impl Intake for PostgresIntake {
    fn put(&mut self, rows: Vec<Row>) -> Answer<'_, ()> {
        Box::pin(async move { Ok(self.put_all(rows).await?) })
    }

    fn rows(&mut self) -> Answer<'_, Rows> {
        Box::pin(async move {
            self.settle().await?;
            Ok(walked(Arc::clone(&self.conn), Arc::clone(&self.vault)))
        })
    }

    fn keep(self: Box<Self>) -> Answer<'static, ()> {
        Box::pin(async move {
            let conn = Arc::try_unwrap(self.conn);
            let conn = conn.map_err(|_| Error::Damaged("it is still being read".into()))?;
            Ok(conn.commit().await?)
        })
    }
}

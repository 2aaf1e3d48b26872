//! Versions of memories and how memories fare in use.

use yore_canon::hash::Blake3;
use yore_domain::memory::{FeedbackOutcome, Version};
use yore_domain::{Error as DomainError, MemoryId, Timestamp};
use yore_store::key;
use yore_store::plan::{AliasTarget, Before, Indexing};
use yore_store::select::status_code;
use yore_store::{CommitError, RowKey, Source, Vector};

use super::{Commit, DENSE_MODEL, Document, missing, put};
use crate::error::Result;
use crate::pool::{Conn, owned};
use crate::search::{literal, source_code};
use crate::vault::{Setting, numbered, within};

/// A memory's row as a write finds it.
pub(super) struct Row {
    pub(super) row: i64,
    pub(super) head: i32,
    pub(super) class: i32,
    pub(super) legal_hold: bool,
}

impl Commit<'_> {
    pub(super) async fn memory_row(&self, id: MemoryId) -> Result<Option<Row>> {
        let sql = "SELECT row, head, class, legal_hold FROM memory WHERE vault = $1 AND id = $2";
        let row = self.conn.row(sql, &[&id.bytes().as_slice()]).await?;
        Ok(row.map(|row| Row {
            row: row.get(0),
            head: row.get(1),
            class: row.get(2),
            legal_hold: row.get(3),
        }))
    }

    pub(super) async fn version(
        &mut self,
        version: &Version,
        indexing: &Indexing,
    ) -> Result<Before, CommitError> {
        // Whether the id of a first version is taken, the insert finds out.
        let known = match version.number {
            1 => None,
            number => match self.memory_row(version.memory).await? {
                Some(row) if row.head.cast_unsigned() + 1 == number => Some(row),
                Some(_) | None => return Err(CommitError::Stale("head")),
            },
        };
        let class = self.class_of(&version.class()).await?;
        let memory_row = match &known {
            Some(row) => row.row,
            None => {
                self.tail.memory += 1;
                self.tail.memory
            }
        };
        self.tail.version += 1;
        let row = self.tail.version;
        let live = version.status.is_live();
        let statement = (live && !indexing.statement.is_empty())
            .then(|| self.vault.mac("statement", &[&indexing.statement]));
        // The digest finds it; the text tells another store what it was.
        let said = statement.as_ref().map(|_| {
            self.vault.seal_bytes("memory", &numbered(memory_row), indexing.statement.as_bytes())
        });
        let session = version.content.scope.session.as_deref().filter(|_| live);
        let session = session.map_or(0, |name| self.vault.number("session", name.as_bytes()));
        let status = i16::from(status_code(version.status));
        let kind = i16::from(version.content.kind.code());
        let number = version.number.cast_signed();
        let ends = version.ends().map(Timestamp::micros);
        let created = version.time.created.micros();
        if known.is_none() {
            self.conn
                .later(
                    "INSERT INTO memory (vault, row, id, head, head_row, class, status, kind,
                         session, since, created, ends, statement, said)
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
                    owned![
                        memory_row,
                        version.memory.bytes().to_vec(),
                        number,
                        row,
                        class,
                        status,
                        kind,
                        session,
                        version.recorded.micros(),
                        created,
                        ends,
                        statement,
                        said,
                    ],
                    Some("the memory id is taken"),
                )
                .await?;
        } else {
            self.later(
                "UPDATE memory SET head = $3, head_row = $4, class = $5, status = $6, kind = $7,
                     session = $8, created = $9, ends = $10, statement = $11, said = $12
                 WHERE vault = $1 AND row = $2",
                owned![
                    memory_row, number, row, class, status, kind, session, created, ends,
                    statement, said,
                ],
            )
            .await?;
        }
        let salt: [u8; 16] = key::random();
        let data = self.seal("version", &numbered(row), version)?;
        let entry = self.tail.seq + 1;
        self.conn
            .later(
                "INSERT INTO version (vault, row, id, memory, number, class, status, recorded,
                     valid_from, valid_to, entry, salt, data)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
                owned![
                    row,
                    version.id.bytes().to_vec(),
                    memory_row,
                    number,
                    class,
                    status,
                    version.recorded.micros(),
                    version.time.valid_from.micros(),
                    version.time.valid_to.map(Timestamp::micros),
                    entry,
                    salt.to_vec(),
                    data,
                ],
                Some("the version id is taken"),
            )
            .await?;
        self.written.push(version.memory);
        self.relations(memory_row, version).await?;
        self.digest(version, &salt);
        if known.is_some() {
            self.retire(memory_row, class).await?;
        }
        let place = (row, memory_row, class, session);
        let document = Document::of_version(place, version, &indexing.tokens);
        put(self.conn, self.vault, document, indexing.statics.as_ref()).await?;
        let class = known.map(|known| self.class(known.class)).transpose()?;
        Ok(Before { class, head: version.number, conversation: None })
    }

    async fn relations(&self, memory_row: i64, version: &Version) -> Result<()> {
        if version.number > 1 {
            let sql = "DELETE FROM relation WHERE vault = $1 AND memory = $2";
            self.later(sql, owned![memory_row]).await?;
        }
        for (number, relation) in (0i32..).zip(&version.content.relations) {
            let target = self.vault.mac("relation", &[&relation.target]);
            let place = within(&numbered(memory_row), number.into());
            let data = self.seal("relation", &place, relation)?;
            self.later(
                "INSERT INTO relation (vault, memory, number, target, data)
                 VALUES ($1, $2, $3, $4, $5)",
                owned![memory_row, number, target, data],
            )
            .await?;
        }
        Ok(())
    }

    /// Binds the audit entry to what was written without saying what it was.
    fn digest(&mut self, version: &Version, salt: &[u8; 16]) {
        let digest =
            Blake3::hasher().update(salt).update(&version.content.body.text).finish().to_hex();
        for target in &mut self.audit.targets {
            if target.memory == version.memory
                && target.number.is_none_or(|number| number == version.number)
            {
                target.digest = Some(digest.clone());
            }
        }
    }

    pub(super) async fn vector(&mut self, key: RowKey, vector: &Vector) -> Result<()> {
        // The model may have worked on a text that was erased meanwhile: its vector goes, too.
        let sql = match key.source {
            Source::Version => {
                "SELECT 1 FROM version WHERE vault = $1 AND row = $2 AND status <> 4"
            }
            Source::Message => "SELECT 1 FROM message WHERE vault = $1 AND row = $2",
        };
        let row = key.row.cast_signed();
        if !self.is_there(sql, &[&row]).await? {
            return Ok(());
        }
        put_vector(self.conn, key, vector).await?;
        // The first vector decides which model is compared until the setting is changed.
        let name = self.vault.mac("setting", &[DENSE_MODEL]);
        let value = vector.model.as_str().into();
        let setting = Setting { name: DENSE_MODEL.into(), value };
        let data = self.seal("setting", &name, &setting)?;
        let first = self
            .run(
                "INSERT INTO setting (vault, name, data) VALUES ($1, $2, $3)
                 ON CONFLICT (vault, name) DO NOTHING",
                &[&name, &data],
            )
            .await?;
        self.judged_by |= first > 0;
        Ok(())
    }

    pub(super) async fn used(&self, memories: &[MemoryId], at: Timestamp) -> Result<()> {
        let ids: Vec<Vec<u8>> = memories.iter().map(|memory| memory.bytes().to_vec()).collect();
        self.later(
            "UPDATE memory m SET recalls = m.recalls + u.times,
                 recalled = greatest(coalesce(m.recalled, $3), $3)
             FROM (SELECT id, count(*) AS times FROM unnest($2::bytea[]) AS u (id) GROUP BY id) u
             WHERE m.vault = $1 AND m.id = u.id",
            owned![ids, at.micros()],
        )
        .await
    }

    pub(super) async fn feedback(&self, memory: MemoryId, outcome: FeedbackOutcome) -> Result<()> {
        let tally = match outcome {
            FeedbackOutcome::Followed => "followed",
            FeedbackOutcome::Overridden => "overridden",
            FeedbackOutcome::Ignored => "ignored",
            FeedbackOutcome::Contradicted => "contradicted",
        };
        let sql = format!("UPDATE memory SET {tally} = {tally} + 1 WHERE vault = $1 AND id = $2");
        match self.run(&sql, &[&memory.bytes().as_slice()]).await? {
            0 => Err(missing()),
            _ => Ok(()),
        }
    }

    pub(super) async fn demote(&self, memory: MemoryId, demoted: bool) -> Result<()> {
        let sql = "UPDATE memory SET demoted = $3 WHERE vault = $1 AND id = $2";
        match self.run(sql, &[&memory.bytes().as_slice(), &demoted]).await? {
            0 => Err(missing()),
            _ => Ok(()),
        }
    }

    pub(super) async fn legal_hold(&self, memory: MemoryId, held: bool) -> Result<()> {
        let sql = "UPDATE memory SET legal_hold = $3 WHERE vault = $1 AND id = $2";
        match self.run(sql, &[&memory.bytes().as_slice(), &held]).await? {
            0 => Err(missing()),
            _ => Ok(()),
        }
    }

    pub(super) async fn alias(
        &self,
        namespace: &str,
        name: &str,
        target: AliasTarget,
        instead_of: Option<AliasTarget>,
    ) -> Result<()> {
        let mac = self.vault.mac("alias", &[namespace, name]);
        if let Some((kind, id, number)) = instead_of.map(columns) {
            self.run(
                "DELETE FROM alias WHERE vault = $1 AND mac = $2 AND kind = $3 AND target = $4
                     AND number = $5",
                &[&mac, &kind, &id.as_slice(), &number],
            )
            .await?;
        }
        let (kind, id, number) = columns(target);
        let word = self.vault.mac("name", &[name]);
        let data = self.seal("alias", &mac, &(namespace, name))?;
        self.run(
            "INSERT INTO alias (vault, mac, name, kind, target, number, data)
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (vault, mac) DO NOTHING",
            &[&mac, &word, &kind, &id.as_slice(), &number, &data],
        )
        .await?;
        let same = self
            .is_there(
                "SELECT 1 FROM alias WHERE vault = $1 AND mac = $2 AND kind = $3 AND target = $4
                     AND number = $5",
                &[&mac, &kind, &id.as_slice(), &number],
            )
            .await?;
        if same { Ok(()) } else { Err(DomainError::conflict("the name is taken").into()) }
    }
}

/// Writes a vector in place of another of the same model.
pub(crate) async fn put_vector(conn: &Conn, key: RowKey, vector: &Vector) -> Result<()> {
    conn.later(
        "INSERT INTO vector (vault, source, row, model, dims, scale, value)
         VALUES ($1, $2, $3, $4, $5, $6, $7::text::halfvec)
         ON CONFLICT (vault, source, row, model) DO UPDATE
         SET dims = excluded.dims, scale = excluded.scale, value = excluded.value",
        owned![
            source_code(key.source),
            key.row.cast_signed(),
            vector.model.clone(),
            i32::try_from(vector.values.len()).unwrap_or(i32::MAX),
            vector.scale,
            literal(&vector.values),
        ],
        None,
    )
    .await
}

fn columns(target: AliasTarget) -> (i16, [u8; 16], i32) {
    match target {
        AliasTarget::Memory(id) => (0, id.bytes(), 0),
        AliasTarget::Version(id, number) => (1, id.bytes(), number.cast_signed()),
        AliasTarget::Conversation(id) => (2, id.bytes(), 0),
    }
}

//! Versions of memories and how memories fare in use.

use rusqlite::OptionalExtension as _;
use yore_canon::hash::Blake3;
use yore_domain::memory::{Feedback, FeedbackOutcome, Version};
use yore_domain::{Error as DomainError, MemoryId, Timestamp};
use yore_store::plan::{AliasTarget, Before, Indexing};
use yore_store::{CommitError, RowKey, Source, Vector};

use super::{Commit, missing};
use crate::audit::Tip;
use crate::books::Page;
use crate::error::Result;
use crate::indexes::{DENSE_MODEL, Effect, statement_number};
use crate::select::status_code;
use crate::vault;

/// What SQLite says of a second row with the same key.
const TAKEN: rusqlite::ErrorCode = rusqlite::ErrorCode::ConstraintViolation;

/// A memory's row as a write finds it.
pub(super) struct Row {
    pub(super) row: i64,
    pub(super) head: u32,
    pub(super) class: u32,
    pub(super) legal_hold: bool,
}

impl Commit<'_> {
    pub(super) fn memory_row(&self, id: MemoryId) -> Result<Option<Row>> {
        let mut statement = self
            .conn
            .prepare_cached("SELECT row, head, class, legal_hold FROM memory WHERE id = ?1")?;
        Ok(statement
            .query_row([id.bytes()], |row| {
                Ok(Row {
                    row: row.get(0)?,
                    head: row.get(1)?,
                    class: row.get(2)?,
                    legal_hold: row.get(3)?,
                })
            })
            .optional()?)
    }

    pub(super) fn version(
        &mut self,
        version: &Version,
        indexing: &Indexing,
    ) -> Result<Before, CommitError> {
        // Whether the id of a first version is taken, the insert finds out.
        let known = match version.number {
            1 => None,
            number => match self.memory_row(version.memory)? {
                Some(row) if row.head + 1 == number => Some(row),
                Some(_) | None => return Err(CommitError::Stale("head")),
            },
        };
        let class = self.classes.id_of(self.conn, &version.class())?;
        let memory_row = match &known {
            Some(row) => row.row,
            None => {
                self.tail.memory_row += 1;
                self.tail.memory_row
            }
        };
        self.tail.version_row += 1;
        let row = self.tail.version_row;
        let statement = (version.status.is_live() && !indexing.statement.is_empty())
            .then_some(indexing.statement.as_str());
        let created = version.time.created.micros();
        let ends = version.ends().map(Timestamp::micros);
        let (status, kind) = (status_code(version.status), version.content.kind.code());
        if known.is_none() {
            self.run(
                "INSERT INTO memory (row, id, head, head_row, first_row, class, status, kind, since,
                     created, ends, statement)
                 VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                (
                    memory_row,
                    version.memory.bytes(),
                    version.number,
                    row,
                    class,
                    status,
                    kind,
                    version.recorded.micros(),
                    created,
                    ends,
                    statement,
                ),
            )
            .map_err(|error| taken(error, "the memory id is taken"))?;
        } else {
            self.run(
                "UPDATE memory SET head = ?2, head_row = ?3, class = ?4, status = ?5, kind = ?6,
                     created = ?7, ends = ?8, statement = ?9
                 WHERE row = ?1",
                (memory_row, version.number, row, class, status, kind, created, ends, statement),
            )?;
        }
        if let Some(statement) = statement {
            self.tail.said.push((statement_number(statement), memory_row.cast_unsigned()));
        }
        let salt = vault::salt();
        let columns = Columns::of(indexing);
        let data = serde_json::to_string(version).map_err(crate::Error::from)?;
        self.run(
            "INSERT INTO version (row, id, memory, number, class, status, recorded, entry, salt,
                 data, tokens, model, scale, statics)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
            (
                row,
                version.id.bytes(),
                memory_row,
                version.number,
                class,
                status,
                version.recorded.micros(),
                Tip::next(self.tail.tip.as_ref()),
                salt,
                data,
                columns.tokens,
                columns.model,
                columns.scale,
                columns.statics,
            ),
        )
        .map_err(|error| taken(error, "the version id is taken"))?;
        self.written.push(version.memory);
        self.relations(memory_row, version)?;
        self.digest(version, &salt);
        self.effects.push(Effect::Version {
            row: row.cast_unsigned(),
            memory_row: memory_row.cast_unsigned(),
            class,
            version: Box::new(version.clone()),
            indexing: indexing.clone(),
        });
        let class = known.map(|known| (*self.classes.get(known.class)).clone());
        Ok(Before { class, head: version.number, conversation: None })
    }

    fn relations(&self, memory_row: i64, version: &Version) -> Result<()> {
        if version.number > 1 {
            self.run("DELETE FROM relation WHERE memory = ?1", [memory_row])?;
        }
        for relation in &version.content.relations {
            self.run(
                "INSERT INTO relation VALUES (?1, ?2, ?3)",
                (memory_row, &relation.kind, &relation.target),
            )?;
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

    pub(super) fn vector(&mut self, key: RowKey, vector: &Vector) -> Result<()> {
        // The model may have worked on a text that was erased meanwhile: its vector goes, too.
        let sql = match key.source {
            Source::Version => "SELECT 1 FROM version WHERE row = ?1 AND status <> 4",
            Source::Message => "SELECT 1 FROM message WHERE row = ?1",
        };
        if self.one::<i64>(sql, [key.row])?.is_none() {
            return Ok(());
        }
        self.run(
            "INSERT OR REPLACE INTO vector (source, row, model, scale, bytes)
             VALUES (?1, ?2, ?3, ?4, ?5)",
            (
                source_code(key.source),
                key.row,
                &vector.model,
                vector.scale,
                bytemuck::cast_slice::<i8, u8>(&vector.values),
            ),
        )?;
        // The first vector decides which model the indexes hold until the setting is changed.
        let first = self.run(
            "INSERT OR IGNORE INTO setting VALUES (?1, ?2)",
            (DENSE_MODEL, serde_json::to_string(&vector.model)?),
        )?;
        if first > 0 {
            self.pages.push(Page::Setting(DENSE_MODEL.to_owned()));
        }
        self.effects.push(Effect::Vector { row: key, vector: vector.clone() });
        Ok(())
    }

    pub(super) fn used(&self, memories: &[MemoryId], at: Timestamp) -> Result<()> {
        for memory in memories {
            self.run(
                "UPDATE memory SET recalls = recalls + 1,
                     recalled = max(coalesce(recalled, ?2), ?2)
                 WHERE id = ?1",
                (memory.bytes(), at.micros()),
            )?;
        }
        Ok(())
    }

    pub(super) fn feedback(&mut self, memory: MemoryId, outcome: FeedbackOutcome) -> Result<()> {
        let sql = match outcome {
            FeedbackOutcome::Followed => "UPDATE memory SET followed = followed + 1 WHERE id = ?1",
            FeedbackOutcome::Overridden => {
                "UPDATE memory SET overridden = overridden + 1 WHERE id = ?1"
            }
            FeedbackOutcome::Ignored => "UPDATE memory SET ignored = ignored + 1 WHERE id = ?1",
            FeedbackOutcome::Contradicted => {
                "UPDATE memory SET contradicted = contradicted + 1 WHERE id = ?1"
            }
        };
        if self.run(sql, [memory.bytes()])? == 0 {
            return Err(missing());
        }
        let effect = self
            .conn
            .prepare_cached(
                "SELECT row, followed, overridden, ignored, contradicted FROM memory WHERE id = ?1",
            )?
            .query_row([memory.bytes()], |row| {
                Ok(Effect::Feedback {
                    memory_row: row.get(0)?,
                    tallies: Feedback {
                        followed: row.get(1)?,
                        overridden: row.get(2)?,
                        ignored: row.get(3)?,
                        contradicted: row.get(4)?,
                    },
                })
            })?;
        self.effects.push(effect);
        Ok(())
    }

    pub(super) fn demote(&mut self, memory: MemoryId, demoted: bool) -> Result<()> {
        let row = self.memory_row(memory)?.ok_or_else(missing)?.row;
        self.run("UPDATE memory SET demoted = ?2 WHERE row = ?1", (row, demoted))?;
        self.effects.push(Effect::Demoted { memory_row: row.cast_unsigned(), demoted });
        Ok(())
    }

    pub(super) fn legal_hold(&self, memory: MemoryId, held: bool) -> Result<()> {
        let row = self.memory_row(memory)?.ok_or_else(missing)?.row;
        self.run("UPDATE memory SET legal_hold = ?2 WHERE row = ?1", (row, held))?;
        Ok(())
    }

    pub(super) fn alias(
        &self,
        namespace: &str,
        name: &str,
        target: AliasTarget,
        instead_of: Option<AliasTarget>,
    ) -> Result<()> {
        let columns = |target| match target {
            AliasTarget::Memory(id) => (0, id.bytes(), 0),
            AliasTarget::Version(id, number) => (1, id.bytes(), number),
            AliasTarget::Conversation(id) => (2, id.bytes(), 0),
        };
        if let Some((kind, id, number)) = instead_of.map(columns) {
            self.run(
                "DELETE FROM alias WHERE namespace = ?1 AND name = ?2 AND kind = ?3
                     AND target = ?4 AND number = ?5",
                (namespace, name, kind, id, number),
            )?;
        }
        let (kind, id, number) = columns(target);
        self.run(
            "INSERT INTO alias (namespace, name, kind, target, number) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO NOTHING",
            (namespace, name, kind, id, number),
        )?;
        let same: Option<i64> = self.one(
            "SELECT 1 FROM alias WHERE namespace = ?1 AND name = ?2 AND kind = ?3 AND target = ?4
                 AND number = ?5",
            (namespace, name, kind, id, number),
        )?;
        match same {
            Some(_) => Ok(()),
            None => Err(DomainError::conflict("the name is taken").into()),
        }
    }
}

/// Names a second row with the same key as what it is to the caller.
fn taken(error: crate::Error, what: &'static str) -> crate::Error {
    let taken = matches!(&error, crate::Error::Sqlite(cause)
        if cause.sqlite_error_code() == Some(TAKEN));
    if taken { DomainError::conflict(what).into() } else { error }
}

/// The columns that rebuild a row's place in the indexes; all empty when it is not to be found.
#[derive(Default)]
pub(super) struct Columns<'a> {
    pub(super) tokens: Option<Vec<u8>>,
    pub(super) model: Option<&'a str>,
    pub(super) scale: Option<f32>,
    pub(super) statics: Option<&'a [u8]>,
}

impl<'a> Columns<'a> {
    pub(super) fn of(indexing: &'a Indexing) -> Self {
        let Some(statics) = &indexing.statics else { return Self::default() };
        Self {
            tokens: Some(indexing.tokens.iter().flat_map(|token| token.to_le_bytes()).collect()),
            model: Some(&statics.model),
            scale: Some(statics.scale),
            statics: Some(bytemuck::cast_slice(&statics.values)),
        }
    }
}

pub(crate) const fn source_code(source: Source) -> u8 {
    match source {
        Source::Version => 0,
        Source::Message => 1,
    }
}

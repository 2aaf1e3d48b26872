//! One plan inside the writer's transaction: preconditions, rows, outbox, audit entry.

mod books;
mod conversation;
mod erase;
mod inside;
mod ledger;
mod memory;

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension as _};
use serde_json::Value;
use yore_domain::audit::Draft;
use yore_domain::{ConversationId, Error as DomainError, MemoryId, Seq, Span, Timestamp, VaultId};
use yore_store::plan::{Before, Operation};
use yore_store::snapshot::Epochs;
use yore_store::{CommitError, Plan, Precondition, Receipt, Write};

use crate::audit;
use crate::books::Page;
use crate::error::Result;
use crate::indexes::{Effect, Indexes, statement_number};
use crate::outbox::{self, Told};
use crate::vault::Classes;
use crate::writer::{Desk, REWRITE};

use conversation::Talk;

pub(crate) use books::{hold_code, job_code, letter_code};
pub(crate) use conversation::drop_abandoned;
pub(crate) use memory::source_code;

/// Settings that count how often grants and rules changed.
pub(crate) const GRANT_EPOCH: &str = "store:grant_epoch";
pub(crate) const RULE_EPOCH: &str = "store:rule_epoch";
/// How long an operation id is remembered.
const OPERATION_LIFE: Span = Span::days(1);

/// What a plan did.
pub(crate) struct Done {
    pub(crate) receipt: Receipt,
    pub(crate) effects: Vec<Effect>,
    /// What it touched in the books.
    pub(crate) pages: Vec<Page>,
    /// Whether the outbox grew.
    pub(crate) changed: bool,
    /// Whether text was erased, so that journal and snapshots must go, too.
    pub(crate) erased: bool,
    /// The audit checkpoint that fell due, as stored.
    pub(crate) checkpoint: Option<String>,
}

/// Where the vault's numbers stand inside the open transaction. Only the writer counts.
#[derive(Clone, Debug)]
pub(crate) struct Tail {
    tip: Option<audit::Tip>,
    change: u64,
    memory_row: i64,
    version_row: i64,
    epochs: Epochs,
    /// What the open transaction made memories say, as in the indexes.
    said: Vec<(u64, u64)>,
}

impl Tail {
    /// Says that the indexes know everything by now.
    pub(crate) fn published(&mut self) {
        self.said.clear();
    }

    pub(crate) fn read(conn: &Connection) -> Result<Self> {
        let last = |table: &str, column: &str| {
            let sql = format!("SELECT coalesce(max({column}), 0) FROM {table}");
            conn.query_row(&sql, [], |row| row.get::<_, i64>(0))
        };
        Ok(Self {
            tip: audit::tip(conn)?,
            change: outbox::last(conn)?,
            memory_row: last("memory", "row")?,
            version_row: last("version", "row")?,
            epochs: crate::books::epochs(conn)?,
            said: Vec::new(),
        })
    }
}

/// A plan under way.
struct Commit<'a> {
    conn: &'a Connection,
    vault: VaultId,
    classes: &'a Classes,
    indexes: &'a Indexes,
    at: Timestamp,
    tail: Tail,
    effects: Vec<Effect>,
    pages: Vec<Page>,
    /// Memories that got a version.
    written: Vec<MemoryId>,
    /// Conversations that got messages.
    talks: BTreeMap<ConversationId, Talk>,
    audit: Draft,
    erased: bool,
}

/// Carries a plan out inside the open transaction; on failure the caller undoes it.
pub(crate) fn apply(desk: &Desk, plan: &Plan) -> Result<(Done, Tail), CommitError> {
    let mut commit = Commit {
        conn: &desk.conn,
        vault: desk.id,
        classes: &desk.classes,
        indexes: &desk.indexes,
        at: plan.audit.at,
        tail: desk.tail.clone(),
        effects: Vec::new(),
        pages: Vec::new(),
        written: Vec::new(),
        talks: BTreeMap::new(),
        audit: plan.audit.clone(),
        erased: false,
    };
    if let Some(operation) = &plan.operation {
        commit.operation(operation)?;
    }
    for precondition in &plan.preconditions {
        commit.check(precondition)?;
    }
    let before = commit.tail.change;
    let mut told = Told::default();
    for write in &plan.writes {
        let Some(known) = commit.write(write)? else { continue };
        if let Some(what) = write.change(&known) {
            commit.tail.change += 1;
            told.push(&what).map_err(crate::Error::from)?;
        }
    }
    commit.settle_talks()?;
    if commit.erased {
        commit.run("INSERT OR REPLACE INTO setting VALUES (?1, 'true')", [REWRITE])?;
    }
    let outbox = (commit.tail.change, told.into_column());
    let (seq, checkpoint) =
        audit::append(desk, &mut commit.tail.tip, &commit.audit, outbox, &commit.written)?;
    if seq.0.is_multiple_of(audit::INTERVAL) {
        commit.sweep()?;
    }
    let done = Done {
        receipt: Receipt { change: Seq(commit.tail.change), audit: seq },
        effects: commit.effects,
        pages: commit.pages,
        changed: commit.tail.change != before,
        erased: commit.erased,
        checkpoint,
    };
    Ok((done, commit.tail))
}

impl Commit<'_> {
    fn run(&self, sql: &str, params: impl rusqlite::Params) -> Result<usize> {
        Ok(self.conn.prepare_cached(sql)?.execute(params)?)
    }

    fn one<T: rusqlite::types::FromSql>(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
    ) -> Result<Option<T>> {
        Ok(self.conn.prepare_cached(sql)?.query_row(params, |row| row.get(0)).optional()?)
    }

    fn operation(&self, operation: &Operation) -> Result<(), CommitError> {
        let Operation { caller, id, fingerprint, result } = operation;
        let oldest = self.at.minus(OPERATION_LIFE).micros();
        let known: Option<String> = self.one(
            "SELECT fingerprint FROM operation WHERE caller = ?1 AND id = ?2 AND at >= ?3",
            (caller, id, oldest),
        )?;
        match known {
            Some(known) if known == *fingerprint => return Err(CommitError::Stale("operation")),
            Some(_) => {
                let reason = "the operation id was used for another request";
                return Err(DomainError::conflict(reason).into());
            }
            None => {}
        }
        let result = serde_json::to_string(result).map_err(crate::Error::from)?;
        self.run(
            "INSERT OR REPLACE INTO operation (caller, id, fingerprint, result, at) VALUES (?1, ?2, ?3, ?4, ?5)",
            (caller, id, fingerprint, result, self.at.micros()),
        )?;
        Ok(())
    }

    /// Drops operation ids whose day is over.
    fn sweep(&self) -> Result<()> {
        let oldest = self.at.minus(OPERATION_LIFE).micros();
        self.run("DELETE FROM operation WHERE at < ?1", [oldest])?;
        Ok(())
    }

    fn check(&self, precondition: &Precondition) -> Result<(), CommitError> {
        let (what, holds) = match precondition {
            Precondition::Head(memory, number) => ("head", self.head(*memory)? == *number),
            Precondition::Unsaid(statement) => ("statement", !self.said(statement)?),
            Precondition::GrantEpoch(epoch) => ("grants", self.tail.epochs.grants == *epoch),
            Precondition::RuleEpoch(epoch) => ("rules", self.tail.epochs.rules == *epoch),
            Precondition::Pending(hold) => (
                "hold",
                self.one::<i64>("SELECT state FROM hold WHERE id = ?1", [hold.bytes()])? == Some(0),
            ),
            Precondition::Unasked(hold) => (
                "hold",
                self.one::<i64>("SELECT 1 FROM hold WHERE id = ?1", [hold.bytes()])?.is_none(),
            ),
            Precondition::Profile(user, version) => {
                ("profile", self.profile_version(user.as_deref())? == *version)
            }
            Precondition::Conversation(id, exists) => (
                "conversation",
                self.one::<i64>("SELECT 1 FROM conversation WHERE id = ?1", [id.bytes()])?
                    .is_some()
                    == *exists,
            ),
            Precondition::Stream(sender, id, revision) => {
                ("stream", self.stream_revision(sender, id)? == *revision)
            }
            Precondition::Unsent(sender, id) => (
                "letter",
                self.one::<i64>(
                    "SELECT 1 FROM letter WHERE sender = ?1 AND id = ?2",
                    [sender, id],
                )?
                .is_none(),
            ),
            Precondition::Setting(name, value) => {
                let sql = "SELECT value FROM setting WHERE name = ?1";
                let found: Option<String> = self.one(sql, [name])?;
                let found = found.map(|text| serde_json::from_str::<Value>(&text)).transpose();
                ("setting", found.map_err(crate::Error::from)? == *value)
            }
            Precondition::Talk(head, extent) => ("conversation", self.is_talk(head, *extent)?),
        };
        if holds { Ok(()) } else { Err(CommitError::Stale(what)) }
    }

    /// Whether a memory says this already. The indexes learn of a plan when its transaction is on
    /// disk; until then its statements stand in the tail.
    fn said(&self, statement: &str) -> Result<bool> {
        let number = statement_number(statement);
        let mut rows: Vec<u64> = self.indexes.read().saying(number).collect();
        rows.extend(self.tail.said.iter().filter(|(said, _)| *said == number).map(|(_, row)| *row));
        for row in rows {
            let sql = "SELECT 1 FROM memory WHERE row = ?1 AND statement = ?2";
            if self.one::<i64>(sql, (row, statement))?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn head(&self, memory: MemoryId) -> Result<Option<u32>> {
        self.one("SELECT head FROM memory WHERE id = ?1", [memory.bytes()])
    }

    /// Changes the rows. Returns what the outbox must know, or `None` when nothing happened.
    fn write(&mut self, write: &Write) -> Result<Option<Before>, CommitError> {
        match write {
            Write::Version { version, indexing } => {
                return self.version(version, indexing).map(Some);
            }
            Write::Erase { memory } => return self.erase(*memory).map(Some),
            Write::Used { memories, at } => self.used(memories, *at)?,
            Write::Feedback { memory, outcome } => self.feedback(*memory, *outcome)?,
            Write::Demote { memory, demoted } => self.demote(*memory, *demoted)?,
            Write::LegalHold { memory, held } => self.legal_hold(*memory, *held)?,
            Write::Alias { namespace, name, target, instead_of } => {
                self.alias(namespace, name, *target, *instead_of)?;
            }
            Write::Vector { row, vector } => self.vector(*row, vector)?,
            Write::Conversation(conversation) => {
                return Ok(Some(self.conversation(conversation)?));
            }
            Write::Message { conversation, message, indexing } => {
                return Ok(self.message(*conversation, message, indexing)?);
            }
            Write::Inside { row, inside, indexing } => self.inside(*row, inside, indexing)?,
            Write::EraseConversation(id) => return Ok(Some(self.erase_messages(*id, None)?)),
            Write::EraseMessage(id, message) => {
                return Ok(Some(self.erase_messages(*id, Some(*message))?));
            }
            Write::Bury(grave) => self.bury(*grave)?,
            Write::BlobChunk { blob, number, bytes, complete } => {
                self.blob_chunk(*blob, *number, bytes, *complete)?;
            }
            Write::BlobNamed { staged, blob, size } => self.blob_named(*staged, *blob, *size)?,
            Write::Grant(grant) => self.grant(grant)?,
            Write::RevokeGrant(id, at) => self.revoke_grant(*id, *at)?,
            Write::Token(token) => self.token(token)?,
            Write::RevokeToken(id, at) => self.revoke_token(*id, *at)?,
            Write::Hold(hold) => self.hold(hold)?,
            Write::EraseHold(hold) => self.erase_hold(*hold)?,
            Write::Rule(rule) => self.rule(rule)?,
            Write::RemoveRule(name) => self.remove_rule(name)?,
            Write::Profile(profile) => self.profile(profile)?,
            Write::EraseProfile(user) => self.erase_profile(user.as_deref())?,
            Write::Procedure(procedure) => self.procedure(procedure)?,
            Write::Job(job) => self.job(job)?,
            Write::RemoveJob(id) => self.remove_job(*id)?,
            Write::Stream(stream) => self.stream(stream)?,
            Write::Frame { sender, stream, frame } => self.frame(sender, stream, frame)?,
            Write::DropFrames { sender, stream, below } => {
                self.drop_frames(sender, stream, *below)?;
            }
            Write::DropStreams(before) => self.drop_streams(*before)?,
            Write::Letter(letter) => self.letter(letter)?,
            Write::DropLetters(before) => self.drop_letters(*before)?,
            Write::Setting(name, value) => self.setting(name, value)?,
            Write::Tenant { id, name } => self.tenant(*id, name)?,
            Write::Locate { mac, vault } => self.locate(mac, *vault)?,
        }
        Ok(Some(Before::default()))
    }
}

/// What is not there, or not to be seen.
fn missing() -> crate::Error {
    DomainError::NotFound.into()
}

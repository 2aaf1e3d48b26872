//! One plan as one transaction: preconditions, rows, outbox, audit entry.
//!
//! The transaction begins by locking the vault's tail, so commits of one vault follow each other
//! whichever server makes them, and every statement sees all that was committed before.

mod books;
mod documents;
mod erase;
mod memory;
mod talks;

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use yore_canon::chain;
use yore_canon::hash::Blake3;
use yore_canon::jcs;
use yore_domain::audit::Draft;
use yore_domain::change::What;
use yore_domain::class::Class;
use yore_domain::{Error as DomainError, MemoryId, Seq, Span, Timestamp};
use yore_store::plan::{Before, Operation};
use yore_store::{CommitError, Plan, Precondition, Receipt, Write};

use crate::audit;
use crate::error::{Error, Result};
use crate::pool::{Begin, Conn, Owned, Param, Pool, owned};
use crate::vault::{Setting, Vault, numbered};

pub(crate) use books::{hold_code, job_code, letter_code, post_name};
pub(crate) use documents::{Beside, Document, put};
pub(crate) use memory::put_vector;

/// The setting that names the model whose vectors are compared.
pub(crate) const DENSE_MODEL: &str = "dense_model";
/// How long an operation id is remembered.
const OPERATION_LIFE: Span = Span::days(1);

/// What a plan did.
pub(crate) struct Done {
    pub(crate) receipt: Receipt,
    /// Whether the outbox grew.
    pub(crate) changed: bool,
}

/// Where the vault's numbers stand.
struct Tail {
    seq: i64,
    hash: Option<Blake3>,
    change: i64,
    memory: i64,
    version: i64,
    conversation: i64,
    message: i64,
    letter: i64,
    class: i32,
    grants: i64,
    rules: i64,
    books: i64,
}

impl Tail {
    async fn lock(conn: &Conn) -> Result<Self> {
        let row = conn
            .row(
                "SELECT seq, hash, change, memory, version, conversation, message, letter, class,
                     grants, rules, books
                 FROM tail WHERE vault = $1 FOR UPDATE",
                &[],
            )
            .await?
            .ok_or(Error::Domain(DomainError::NotFound))?;
        let hash: Option<&[u8]> = row.get(1);
        let hash = hash.map(<[u8; 32]>::try_from).transpose();
        let hash = hash.map_err(|_| Error::Damaged("the tail's hash is cut short".into()))?;
        Ok(Self {
            seq: row.get(0),
            hash: hash.map(Blake3::from_bytes),
            change: row.get(2),
            memory: row.get(3),
            version: row.get(4),
            conversation: row.get(5),
            message: row.get(6),
            letter: row.get(7),
            class: row.get(8),
            grants: row.get(9),
            rules: row.get(10),
            books: row.get(11),
        })
    }

    async fn store(&self, conn: &Conn, at: Timestamp) -> Result<()> {
        let hash = self.hash.map(|hash| hash.as_bytes().to_vec());
        conn.later(
            "UPDATE tail SET seq = $2, at = $3, hash = $4, change = $5, memory = $6, version = $7,
                 conversation = $8, message = $9, letter = $10, class = $11, grants = $12,
                 rules = $13, books = $14
             WHERE vault = $1",
            owned![
                self.seq,
                at.micros(),
                hash,
                self.change,
                self.memory,
                self.version,
                self.conversation,
                self.message,
                self.letter,
                self.class,
                self.grants,
                self.rules,
                self.books,
            ],
            None,
        )
        .await
    }
}

/// A plan under way.
struct Commit<'a> {
    conn: &'a Conn,
    vault: &'a Vault,
    at: Timestamp,
    tail: Tail,
    /// Every class, those that this plan made included.
    classes: Vec<Arc<Class>>,
    /// Memories that got a version.
    written: Vec<MemoryId>,
    audit: Draft,
    /// Whether anything was touched that judgements rest on.
    judged_by: bool,
}

/// Carries a plan out as a whole or not at all.
pub(crate) async fn carry_out(
    pool: &Arc<Pool>,
    vault: &Vault,
    plan: &Plan,
    how: Begin,
) -> Result<Done, CommitError> {
    let conn = pool.begin(vault.id, how).await?;
    let done = Box::pin(apply(&conn, vault, plan)).await;
    match done {
        Ok(done) => {
            conn.commit().await?;
            Ok(done)
        }
        Err(error) => {
            // What failed is what the caller hears of; an undone transaction needs no telling.
            if let Err(error) = conn.roll_back().await {
                tracing::debug!(%error, "a transaction ended by itself");
            }
            Err(error)
        }
    }
}

async fn apply(conn: &Conn, vault: &Vault, plan: &Plan) -> Result<Done, CommitError> {
    let tail = Tail::lock(conn).await?;
    let classes = vault.classes(conn, tail.class).await?;
    let mut commit = Commit {
        conn,
        vault,
        at: plan.audit.at,
        tail,
        classes,
        written: Vec::new(),
        audit: plan.audit.clone(),
        judged_by: false,
    };
    if let Some(operation) = &plan.operation {
        commit.operation(operation).await?;
    }
    for precondition in &plan.preconditions {
        commit.check(precondition).await?;
    }
    let before = commit.tail.change;
    let mut told: Vec<What> = Vec::new();
    for write in &plan.writes {
        let Some(known) = Box::pin(commit.write(write)).await? else { continue };
        if let Some(what) = write.change(&known) {
            commit.tail.change += 1;
            told.push(what);
        }
    }
    if commit.judged_by {
        commit.tail.books += 1;
    }
    commit.append(&told).await?;
    commit.tail.store(conn, commit.at).await?;
    Ok(Done {
        receipt: Receipt {
            change: Seq(commit.tail.change.cast_unsigned()),
            audit: Seq(commit.tail.seq.cast_unsigned()),
        },
        changed: commit.tail.change != before,
    })
}

impl Commit<'_> {
    async fn run(&self, sql: &str, params: &[Param<'_>]) -> Result<u64> {
        self.conn.run(sql, params).await
    }

    /// Changes rows without waiting for the answer; a failure is heard of before the commit is
    /// through.
    async fn later(&self, sql: &str, params: Vec<Owned>) -> Result<()> {
        self.conn.later(sql, params, None).await
    }

    async fn is_there(&self, sql: &str, params: &[Param<'_>]) -> Result<bool> {
        Ok(self.conn.row(sql, params).await?.is_some())
    }

    fn seal(&self, table: &str, row: &[u8], value: &impl Serialize) -> Result<Vec<u8>> {
        self.vault.seal(table, row, value)
    }

    fn open<T: DeserializeOwned>(&self, table: &str, row: &[u8], sealed: &[u8]) -> Result<T> {
        self.vault.open_value(table, row, sealed)
    }

    /// Returns the number of a class and makes one when it has none.
    async fn class_of(&mut self, class: &Class) -> Result<i32> {
        if let Some(known) = self.vault.class_number(class) {
            return Ok(known.cast_signed());
        }
        // The vault knows what was committed; this plan may have made it just now.
        if let Some(at) = self.classes.iter().rposition(|known| **known == *class) {
            return Ok(i32::try_from(at + 1).unwrap_or(i32::MAX));
        }
        let id = self.tail.class + 1;
        let data = self.seal("class", &id.to_be_bytes(), class)?;
        self.run("INSERT INTO class (vault, id, data) VALUES ($1, $2, $3)", &[&id, &data]).await?;
        self.tail.class = id;
        self.classes.push(Arc::new(class.clone()));
        Ok(id)
    }

    fn class(&self, id: i32) -> Result<Class> {
        let at = usize::try_from(id).ok().and_then(|id| id.checked_sub(1));
        let class = at.and_then(|at| self.classes.get(at));
        Ok((**class.ok_or_else(|| Error::Damaged("a class is missing".into()))?).clone())
    }

    async fn operation(&self, operation: &Operation) -> Result<(), CommitError> {
        let Operation { caller, id, fingerprint, result } = operation;
        let oldest = self.at.minus(OPERATION_LIFE).micros();
        let mac = self.vault.mac("operation", &[caller, id]);
        let known = self
            .conn
            .row(
                "SELECT data FROM operation WHERE vault = $1 AND mac = $2 AND at >= $3",
                &[&mac, &oldest],
            )
            .await?;
        if let Some(row) = known {
            let known: Answered = self.open("operation", &mac, row.get(0))?;
            if known.fingerprint == *fingerprint {
                return Err(CommitError::Stale("operation"));
            }
            let reason = "the operation id was used for another request";
            return Err(DomainError::conflict(reason).into());
        }
        let of = Some((caller.clone(), id.clone()));
        let answered = Answered { fingerprint: fingerprint.clone(), result: result.clone(), of };
        let data = self.seal("operation", &mac, &answered)?;
        self.run(
            "INSERT INTO operation (vault, mac, at, data) VALUES ($1, $2, $3, $4)
             ON CONFLICT (vault, mac) DO UPDATE SET at = excluded.at, data = excluded.data",
            &[&mac, &self.at.micros(), &data],
        )
        .await?;
        Ok(())
    }

    async fn check(&self, precondition: &Precondition) -> Result<(), CommitError> {
        let (what, holds) = match precondition {
            Precondition::Head(memory, number) => ("head", self.head(*memory).await? == *number),
            Precondition::Unsaid(statement) => ("statement", !self.said(statement).await?),
            Precondition::GrantEpoch(epoch) => {
                ("grants", self.tail.grants.cast_unsigned() == *epoch)
            }
            Precondition::RuleEpoch(epoch) => ("rules", self.tail.rules.cast_unsigned() == *epoch),
            Precondition::Pending(hold) => {
                let sql = "SELECT 1 FROM hold WHERE vault = $1 AND id = $2 AND state = 0";
                ("hold", self.is_there(sql, &[&hold.bytes().as_slice()]).await?)
            }
            Precondition::Unasked(hold) => {
                let sql = "SELECT 1 FROM hold WHERE vault = $1 AND id = $2";
                ("hold", !self.is_there(sql, &[&hold.bytes().as_slice()]).await?)
            }
            Precondition::Profile(user, version) => {
                ("profile", self.profile_version(user.as_deref()).await? == *version)
            }
            Precondition::Conversation(id, exists) => {
                ("conversation", self.conversation_row(*id).await?.is_some() == *exists)
            }
            Precondition::Stream(sender, id, revision) => {
                ("stream", self.stream_revision(sender, id).await? == *revision)
            }
            Precondition::Unsent(sender, id) => ("letter", !self.is_sent(sender, id).await?),
            Precondition::Setting(name, value) => {
                ("setting", self.setting_value(name).await? == *value)
            }
            Precondition::Talk(head, extent) => {
                ("conversation", self.is_talk(head, *extent).await?)
            }
        };
        if holds { Ok(()) } else { Err(CommitError::Stale(what)) }
    }

    async fn head(&self, memory: MemoryId) -> Result<Option<u32>> {
        let sql = "SELECT head FROM memory WHERE vault = $1 AND id = $2";
        let row = self.conn.row(sql, &[&memory.bytes().as_slice()]).await?;
        Ok(row.map(|row| row.get::<_, i32>(0).cast_unsigned()))
    }

    async fn said(&self, statement: &str) -> Result<bool> {
        let mac = self.vault.mac("statement", &[statement]);
        let sql = "SELECT 1 FROM memory WHERE vault = $1 AND statement = $2 LIMIT 1";
        self.is_there(sql, &[&mac]).await
    }

    async fn setting_value(&self, name: &str) -> Result<Option<Value>> {
        let mac = self.vault.mac("setting", &[name]);
        let sql = "SELECT data FROM setting WHERE vault = $1 AND name = $2";
        let Some(row) = self.conn.row(sql, &[&mac]).await? else { return Ok(None) };
        Ok(Some(self.open::<Setting>("setting", &mac, row.get(0))?.value))
    }

    /// Changes the rows. Returns what the outbox must know, or `None` when nothing happened.
    async fn write(&mut self, write: &Write) -> Result<Option<Before>, CommitError> {
        match write {
            Write::Version { version, indexing } => {
                return self.version(version, indexing).await.map(Some);
            }
            Write::Erase { memory } => return self.erase(*memory).await.map(Some),
            Write::Used { memories, at } => self.used(memories, *at).await?,
            Write::Feedback { memory, outcome } => self.feedback(*memory, *outcome).await?,
            Write::Demote { memory, demoted } => self.demote(*memory, *demoted).await?,
            Write::LegalHold { memory, held } => self.legal_hold(*memory, *held).await?,
            Write::Alias { namespace, name, target, instead_of } => {
                self.alias(namespace, name, *target, *instead_of).await?;
            }
            Write::Vector { row, vector } => self.vector(*row, vector).await?,
            Write::Conversation(conversation) => {
                return Ok(Some(self.conversation(conversation).await?));
            }
            Write::Message { conversation, message, indexing } => {
                return Ok(self.message(*conversation, message, indexing).await?);
            }
            Write::Inside { row, inside, indexing } => {
                self.inside(*row, inside, indexing).await?;
            }
            Write::EraseConversation(id) => {
                return Ok(Some(self.erase_messages(*id, None).await?));
            }
            Write::EraseMessage(id, message) => {
                return Ok(Some(self.erase_messages(*id, Some(*message)).await?));
            }
            Write::Bury(grave) => self.bury(*grave).await?,
            Write::BlobChunk { blob, number, bytes, complete } => {
                self.blob_chunk(*blob, *number, bytes, *complete).await?;
            }
            Write::BlobNamed { staged, blob, size } => {
                self.blob_named(*staged, *blob, *size).await?;
            }
            Write::Grant(grant) => self.grant(grant).await?,
            Write::RevokeGrant(id, at) => self.revoke_grant(*id, *at).await?,
            Write::Token(token) => self.token(token).await?,
            Write::RevokeToken(id, at) => self.revoke_token(*id, *at).await?,
            Write::Hold(hold) => self.hold(hold).await?,
            Write::EraseHold(hold) => self.erase_hold(*hold).await?,
            Write::Rule(rule) => self.rule(rule).await?,
            Write::RemoveRule(name) => self.remove_rule(name).await?,
            Write::Profile(profile) => self.profile(profile).await?,
            Write::EraseProfile(user) => self.erase_profile(user.as_deref()).await?,
            Write::Procedure(procedure) => self.procedure(procedure).await?,
            Write::Job(job) => self.job(job).await?,
            Write::RemoveJob(id) => self.remove_job(*id).await?,
            Write::Stream(stream) => self.stream(stream).await?,
            Write::Frame { sender, stream, frame } => self.frame(sender, stream, frame).await?,
            Write::DropFrames { sender, stream, below } => {
                self.drop_frames(sender, stream, *below).await?;
            }
            Write::DropStreams(before) => self.drop_streams(*before).await?,
            Write::Letter(letter) => self.letter(letter).await?,
            Write::DropLetters(before) => self.drop_letters(*before).await?,
            Write::Setting(name, value) => self.setting(name, value).await?,
            Write::Tenant { id, name } => self.tenant(*id, name).await?,
            Write::Locate { mac, vault } => self.locate(mac, *vault).await?,
        }
        Ok(Some(Before::default()))
    }

    /// Appends the audit entry, with what changed.
    async fn append(&mut self, told: &[What]) -> Result<()> {
        let seq = self.tail.seq + 1;
        let draft = &self.audit;
        let data = jcs::canonical_of(draft).map_err(|error| Error::Damaged(error.to_string()))?;
        let hash = chain::link(self.tail.hash.as_ref(), data.as_bytes());
        let agent = audit::agent(draft).map(|agent| self.vault.mac("agent", &[agent]));
        let sealed = self.vault.seal_bytes("audit", &numbered(seq), data.as_bytes());
        let changes = match told {
            [] => None,
            told => Some(self.seal("outbox", &numbered(seq), &told)?),
        };
        self.later(
            "INSERT INTO audit (vault, seq, at, operation, agent, hash, change, data, changes)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            owned![
                seq,
                draft.at.micros(),
                draft.operation.clone(),
                agent,
                hash.as_bytes().to_vec(),
                self.tail.change,
                sealed,
                changes,
            ],
        )
        .await?;
        for target in &draft.targets {
            if !self.written.contains(&target.memory) {
                self.later(
                    "INSERT INTO audit_target (vault, memory, seq)
                     SELECT vault, row, $3 FROM memory WHERE vault = $1 AND id = $2
                     ON CONFLICT DO NOTHING",
                    owned![target.memory.bytes().to_vec(), seq],
                )
                .await?;
            }
        }
        self.tail.seq = seq;
        self.tail.hash = Some(hash);
        if seq % audit::INTERVAL == 0 {
            audit::seal(self.conn, self.vault, seq, hash, draft.at).await?;
            let oldest = self.at.minus(OPERATION_LIFE).micros();
            let sql = "DELETE FROM operation WHERE vault = $1 AND at < $2";
            self.run(sql, &[&oldest]).await?;
        }
        Ok(())
    }
}

/// What an operation id was answered.
#[derive(Debug, Serialize, serde::Deserialize)]
pub(crate) struct Answered {
    pub(crate) fingerprint: String,
    pub(crate) result: Value,
    /// Whose id it was, and the id; servers that did not keep it left it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) of: Option<(String, String)>,
}

/// What is not there, or not to be seen.
fn missing() -> Error {
    DomainError::NotFound.into()
}

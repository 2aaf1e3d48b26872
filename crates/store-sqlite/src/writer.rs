//! The one thread that writes a vault: what is queued becomes one transaction.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use parking_lot::RwLock;
use rusqlite::Connection;
use tokio::sync::{oneshot, watch};
use yore_canon::key::SigningKey;
use yore_domain::{Error as DomainError, Seq, VaultId};
use yore_store::{CommitError, Plan, Receipt};

use crate::books::Books;
use crate::commit::{self, Done, Tail};
use crate::error::{Error, Result};
use crate::indexes::{Effect, Indexes};
use crate::key::Key;
use crate::open::{self, Files, Tuning};
use crate::sealed::save_index;
use crate::vault::{Classes, Gate};

/// How many plans one transaction takes at most.
const BATCH: usize = 512;
/// How often the writer gives way to callers that are about to write, when the last transaction
/// had several: one sync for all of them is worth a moment.
const PATIENCE: u32 = 2;
/// How many plans may wait before callers are told to come back.
const QUEUE: usize = 8192;
/// How long a relaxed plan may wait for company.
const RELAXED: Duration = Duration::from_millis(50);
/// How often an erasure tries again to empty a journal that readers still hold.
const TRUNCATION: Duration = Duration::from_millis(20);
/// Up to this size a file is rewritten inside the erasure; a larger one when nobody writes.
const REWRITTEN_AT_ONCE: u64 = 64 << 20;
/// How long nobody must have written before a large file is rewritten.
const REWRITE_PAUSE: Duration = Duration::from_secs(1);
/// The setting that says a rewrite is due, so that a crash does not forget it.
pub(crate) const REWRITE: &str = "store:rewrite";
/// How many pages the journal may hold before it is moved into the file.
const WAL_PAGES: u64 = 1000;
/// After how many changes a vault writes its indexes down once nobody writes for a while. It writes
/// all of them, so while somebody does it waits for many more: what is not saved is analysed again
/// after a crash, some ten thousand documents a second.
const UNSAVED: usize = 10_000;
const UNSAVED_AT_MOST: usize = 200_000;
const UNSAVED_SHARE: usize = 2;
const SAVE_PAUSE: Duration = Duration::from_secs(5);

type Answer = Result<Receipt, CommitError>;

/// What the writer thread works with.
pub(crate) struct Desk {
    pub(crate) conn: Connection,
    pub(crate) id: VaultId,
    pub(crate) classes: Arc<Classes>,
    pub(crate) indexes: Arc<Indexes>,
    pub(crate) files: Files,
    pub(crate) key: Key,
    pub(crate) signer: SigningKey,
    pub(crate) changes: watch::Sender<Seq>,
    pub(crate) tuning: Tuning,
    pub(crate) notary: Option<Writer>,
    /// An erasure waits for the journal to be emptied.
    pub(crate) truncation_due: bool,
    /// An erasure waits for the file to be written anew.
    pub(crate) rewrite_due: bool,
    /// How many pages the journal had when it was last moved into the file.
    pub(crate) checkpointed: u64,
    pub(crate) _lock: Option<Arc<File>>,
    /// Changes since the indexes were last written down.
    pub(crate) unsaved: usize,
    pub(crate) tail: Tail,
    pub(crate) books: Arc<RwLock<Arc<Books>>>,
}

enum Message {
    Commit(Pending),
    Run(Box<dyn FnOnce(&mut Desk) + Send>),
}

struct Pending {
    plan: Box<Plan>,
    /// Absent when the caller does not wait.
    reply: Option<oneshot::Sender<Answer>>,
}

/// The way to a writer thread.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    sender: Sender<Message>,
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Commit(_) => "Commit",
            Self::Run(_) => "Run",
        })
    }
}

impl Writer {
    /// Queues a plan whose outcome somebody waits for.
    pub(crate) fn strict(&self, plan: Plan) -> Result<oneshot::Receiver<Answer>, DomainError> {
        let (reply, answer) = oneshot::channel();
        self.send(Pending { plan: Box::new(plan), reply: Some(reply) })?;
        Ok(answer)
    }

    /// Queues a plan that will be on disk soon.
    pub(crate) fn relaxed(&self, plan: Plan) -> Result<(), DomainError> {
        self.send(Pending { plan: Box::new(plan), reply: None })
    }

    fn send(&self, pending: Pending) -> Result<(), DomainError> {
        if self.sender.len() >= QUEUE {
            return Err(DomainError::Busy {
                reason: "too many writes wait".into(),
                retry_after: Duration::from_secs(1),
            });
        }
        self.sender.send(Message::Commit(pending)).map_err(|_| Error::Stopped.into())
    }

    /// Queues work on the writer's connection and returns where its answer will arrive.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Desk) -> Result<T> + Send + 'static,
    ) -> Result<oneshot::Receiver<Result<T>>> {
        let (reply, answer) = oneshot::channel();
        let work = move |desk: &mut Desk| {
            // Nobody waiting any more is not a failure of the work.
            let _ = reply.send(work(desk));
        };
        self.sender.send(Message::Run(Box::new(work))).map_err(|_| Error::Stopped)?;
        Ok(answer)
    }

    /// Does work on the writer's connection and waits for it.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Desk) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.run(work)?.await.map_err(|_| Error::Stopped)?
    }

    /// Does the same from a thread that may block.
    pub(crate) fn ask_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Desk) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = crossbeam_channel::bounded(1);
        let work = move |desk: &mut Desk| {
            // Nobody waiting any more is not a failure of the work.
            let _ = reply.send(work(desk));
        };
        self.sender.send(Message::Run(Box::new(work))).map_err(|_| Error::Stopped)?;
        answer.recv().map_err(|_| Error::Stopped)?
    }
}

/// Starts the thread. It ends when the last [`Writer`] is dropped, and then opens the gate.
pub(crate) fn start(desk: Desk, gate: Arc<Gate>) -> Result<Writer> {
    let (sender, receiver) = crossbeam_channel::unbounded();
    let path = desk.files.db.clone();
    std::thread::Builder::new()
        .name("yore-writer".into())
        .spawn(move || {
            let opener = OpenOnDrop(gate);
            serve(desk, &receiver);
            drop(opener);
        })
        .map_err(Error::file(&path))?;
    Ok(Writer { sender })
}

/// Opens the gate even when the thread panics, so that nobody waits for ever.
struct OpenOnDrop(Arc<Gate>);

impl Drop for OpenOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn serve(mut desk: Desk, receiver: &Receiver<Message>) {
    let mut waiting: Vec<Pending> = Vec::new();
    let mut due: Option<Instant> = None;
    let mut crowded = false;
    loop {
        let next = match due {
            Some(due) => receiver.recv_deadline(due),
            None if desk.truncation_due => receiver.recv_timeout(TRUNCATION),
            None if desk.rewrite_due => receiver.recv_timeout(REWRITE_PAUSE),
            None if desk.unsaved > UNSAVED => receiver.recv_timeout(SAVE_PAUSE),
            None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let paused = matches!(next, Err(RecvTimeoutError::Timeout));
        if paused && due.is_none() && !desk.truncation_due {
            desk.rewrite();
            if desk.unsaved > UNSAVED {
                desk.save_indexes();
            }
        }
        let mut work = None;
        match next {
            Ok(Message::Commit(pending)) => waiting.push(pending),
            Ok(Message::Run(run)) => work = Some(run),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let mut patience = if crowded { PATIENCE } else { 0 };
        while work.is_none() && waiting.len() < BATCH {
            match receiver.try_recv() {
                Ok(Message::Commit(pending)) => waiting.push(pending),
                Ok(Message::Run(run)) => work = Some(run),
                Err(_) if patience > 0 => {
                    patience -= 1;
                    std::thread::yield_now();
                }
                Err(_) => break,
            }
        }
        let now = Instant::now();
        let strict = waiting.iter().any(|pending| pending.reply.is_some());
        if strict || work.is_some() || due.is_some_and(|due| due <= now) || waiting.len() >= BATCH {
            crowded = waiting.iter().filter(|pending| pending.reply.is_some()).count() > 1;
            desk.flush(std::mem::take(&mut waiting));
            due = None;
        } else if !waiting.is_empty() && due.is_none() {
            due = Some(now + RELAXED);
        }
        if let Some(work) = work {
            // A panic drops the reply, which tells whoever waits.
            if catch_unwind(AssertUnwindSafe(|| work(&mut desk))).is_err() {
                tracing::error!(vault = %desk.id, "work on the writer of vault {} panicked", desk.id);
                desk.roll_back();
            }
            desk.recount();
        }
        desk.tidy();
    }
    desk.flush(waiting);
    desk.put_away();
}

impl Desk {
    /// Carries out plans in one transaction, tells the indexes, then the callers.
    fn flush(&mut self, batch: Vec<Pending>) {
        if batch.is_empty() {
            return;
        }
        let (plans, replies): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|pending| (pending.plan, pending.reply)).unzip();
        let answers = match self.transact(&plans) {
            Ok(outcomes) => self.publish(outcomes),
            Err(error) => {
                self.roll_back();
                tracing::error!(vault = %self.id, %error, "a commit of vault {} failed", self.id);
                let kind = Failure::of(&error);
                plans.iter().map(|_| Err(CommitError::Failed(kind.error()))).collect()
            }
        };
        for (answer, reply) in answers.into_iter().zip(replies) {
            match (reply, answer) {
                // A caller that no longer waits is no failure: the change is on disk.
                (Some(reply), answer) => drop(reply.send(answer)),
                (None, Err(error)) => {
                    tracing::warn!(vault = %self.id, %error, "a relaxed commit of vault {} failed", self.id);
                }
                (None, Ok(_)) => {}
            }
        }
    }

    /// Carries out plans in one transaction. A plan that fails before it wrote anything is left
    /// out; one that fails halfway makes the whole batch start over, each plan fenced in.
    fn transact(&mut self, plans: &[Box<Plan>]) -> Result<Vec<Result<Done, CommitError>>> {
        self.batch("BEGIN IMMEDIATE")?;
        let (start, classes) = (self.tail.clone(), self.classes.len());
        let mut outcomes = Vec::with_capacity(plans.len());
        for plan in plans {
            let written = self.conn.total_changes();
            let outcome = self.attempt(plan);
            let outcome = self.survive(outcome)?;
            if outcome.is_err() && self.conn.total_changes() != written {
                self.batch("ROLLBACK")?;
                self.tail = start;
                // Classes that an earlier plan of the batch made are undone with it.
                if self.classes.len() != classes {
                    self.classes.reload(&self.conn)?;
                }
                return self.transact_fenced(plans);
            }
            outcomes.push(outcome);
        }
        self.batch("COMMIT")?;
        Ok(outcomes)
    }

    fn transact_fenced(&mut self, plans: &[Box<Plan>]) -> Result<Vec<Result<Done, CommitError>>> {
        self.batch("BEGIN IMMEDIATE")?;
        let mut outcomes = Vec::with_capacity(plans.len());
        for plan in plans {
            let classes = self.classes.len();
            self.batch("SAVEPOINT plan")?;
            let outcome = self.attempt(plan);
            let outcome = self.survive(outcome)?;
            if outcome.is_ok() {
                self.batch("RELEASE plan")?;
            } else {
                self.conn.execute_batch("ROLLBACK TO plan; RELEASE plan")?;
                if self.classes.len() != classes {
                    self.classes.reload(&self.conn)?;
                }
            }
            outcomes.push(outcome);
        }
        self.batch("COMMIT")?;
        Ok(outcomes)
    }

    fn batch(&self, sql: &str) -> rusqlite::Result<()> {
        self.conn.prepare_cached(sql)?.execute([]).map(drop)
    }

    fn attempt(&mut self, plan: &Plan) -> Result<Done, CommitError> {
        let outcome = catch_unwind(AssertUnwindSafe(|| commit::apply(self, plan)));
        let (done, tail) = outcome.unwrap_or_else(|_| {
            Err(DomainError::internal("the commit panicked and was undone").into())
        })?;
        self.tail = tail;
        Ok(done)
    }

    /// A full disk or a failing one ends the whole transaction, not one plan.
    fn survive(&self, outcome: Result<Done, CommitError>) -> Result<Result<Done, CommitError>> {
        if !self.conn.is_autocommit() {
            return Ok(outcome);
        }
        Err(match outcome {
            Err(CommitError::Failed(error)) => error.into(),
            Err(CommitError::Stale(_)) | Ok(_) => Error::Stopped,
        })
    }

    /// Runs after the commit: indexes first, so that whoever is told can find the change.
    fn publish(&mut self, outcomes: Vec<Result<Done, CommitError>>) -> Vec<Answer> {
        let mut effects: Vec<Effect> = Vec::new();
        let mut pages = Vec::new();
        let (mut last, mut erased) = (None, false);
        let mut answers = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            answers.push(outcome.map(|done| {
                effects.extend(done.effects);
                pages.extend(done.pages);
                erased |= done.erased;
                if done.changed {
                    last = Some(done.receipt.change);
                }
                if let Some(checkpoint) = done.checkpoint {
                    self.notify(checkpoint);
                }
                done.receipt
            }));
        }
        if let Some(seq) = last {
            effects.push(Effect::Changed { seq: seq.0 });
        }
        self.unsaved += effects.len();
        if !pages.is_empty() {
            let mut books = self.books.write();
            if let Err(error) = Arc::make_mut(&mut books).turn(&self.conn, &pages) {
                // A grant that was revoked must not go on: without books nobody is let in.
                *books = Arc::default();
                tracing::error!(vault = %self.id, %error, "the books of vault {} cannot be read", self.id);
            }
        }
        let indexes = &self.indexes;
        if catch_unwind(AssertUnwindSafe(|| indexes.apply(effects))).is_err() {
            tracing::error!(vault = %self.id, "the indexes of vault {} panicked, building them anew", self.id);
            if let Err(error) = self.indexes.rebuild(&self.conn) {
                tracing::error!(vault = %self.id, %error, "the indexes of vault {} cannot be built", self.id);
            }
        }
        self.tail.published();
        if let Some(seq) = last {
            self.changes.send_replace(seq);
        }
        if erased {
            self.forget_traces();
        }
        answers
    }

    /// Removes what the journal and the saved indexes still know of an erased text.
    fn forget_traces(&mut self) {
        self.truncation_due = true;
        if let Err(error) = open::remove(&self.files.index) {
            tracing::error!(vault = %self.id, %error, "the saved index of vault {} cannot be removed", self.id);
        }
        self.rewrite_due = self.tuning.secure_delete;
        let size = std::fs::metadata(&self.files.db).map_or(0, |meta| meta.len());
        if size <= REWRITTEN_AT_ONCE {
            self.rewrite();
        }
        self.truncate(TRUNCATION);
    }

    /// Writes the file anew. SQLite overwrites what it deletes, but not the copies it leaves in
    /// the unused part of a page when it moves rows from one page to another.
    fn rewrite(&mut self) {
        if !self.rewrite_due {
            return;
        }
        let done = self
            .conn
            .execute_batch("VACUUM")
            .and_then(|()| self.conn.execute("DELETE FROM setting WHERE name = ?1", [REWRITE]));
        match done {
            Ok(_) => {
                self.rewrite_due = false;
                self.truncation_due = true;
            }
            Err(error) => {
                tracing::warn!(vault = %self.id, %error, "vault {} cannot be rewritten yet", self.id);
            }
        }
    }

    /// Empties the journal, or leaves it for later when readers hold it longer than this.
    fn truncate(&mut self, patience: Duration) {
        let quick = self.conn.busy_timeout(patience).map_err(Error::from);
        match quick.and_then(|()| open::truncate_wal(&self.conn)) {
            Ok(emptied) => self.truncation_due = !emptied,
            Err(error) => {
                tracing::warn!(vault = %self.id, %error, "the journal of vault {} cannot be emptied yet", self.id);
            }
        }
        if let Err(error) = self.conn.busy_timeout(Duration::from_secs(5)) {
            tracing::warn!(vault = %self.id, %error, "no busy timeout for vault {}", self.id);
        }
    }

    /// Keeps a copy of a signed checkpoint where a thief of the vault's file cannot reach it.
    pub(crate) fn notify(&self, checkpoint: String) {
        let Some(notary) = &self.notary else { return };
        let id = self.id;
        let sent = notary.run(move |desk| {
            let sql = "UPDATE vault SET checkpoint = ?2 WHERE id = ?1";
            desk.conn.execute(sql, (id.bytes(), checkpoint))?;
            Ok(())
        });
        if sent.is_err() {
            tracing::warn!(vault = %id, "the catalog no longer takes checkpoints of vault {id}");
        }
    }

    pub(crate) fn roll_back(&mut self) {
        if !self.conn.is_autocommit()
            && let Err(error) = self.conn.execute_batch("ROLLBACK")
        {
            tracing::error!(vault = %self.id, %error, "a transaction of vault {} cannot be undone", self.id);
        }
        if let Err(error) = self.classes.reload(&self.conn) {
            tracing::error!(vault = %self.id, %error, "the classes of vault {} cannot be read", self.id);
        }
        self.recount();
    }

    /// Reads again what is counted in memory, after work that may have changed rows by itself.
    fn recount(&mut self) {
        match Tail::read(&self.conn) {
            Ok(tail) => self.tail = tail,
            Err(error) => {
                tracing::error!(vault = %self.id, %error, "the last rows of vault {} cannot be read", self.id);
            }
        }
    }

    /// What is done between commits, when nobody waits for it.
    fn tidy(&mut self) {
        if self.truncation_due {
            self.truncate(Duration::ZERO);
            return;
        }
        let pages = std::fs::metadata(self.files.wal()).map_or(0, |meta| meta.len() / 4096);
        if pages < self.checkpointed {
            self.checkpointed = 0;
        }
        // A reader may keep the journal from starting over; then it is tried once in a while.
        if pages >= self.checkpointed + WAL_PAGES {
            self.checkpointed = pages;
            let moved: rusqlite::Result<i64> =
                self.conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(0));
            if let Err(error) = moved {
                tracing::warn!(vault = %self.id, %error, "the journal of vault {} stays long", self.id);
            }
        }
        if self.unsaved > UNSAVED_AT_MOST.max(self.indexes.len() / UNSAVED_SHARE) {
            self.save_indexes();
        }
    }

    pub(crate) fn save_indexes(&mut self) {
        self.unsaved = 0;
        let save = |out: &mut dyn std::io::Write| self.indexes.save(&self.conn, out);
        if let Err(error) = save_index(&self.files, &self.key, self.id, save) {
            tracing::warn!(vault = %self.id, %error, "the indexes of vault {} were not saved", self.id);
        }
    }

    /// Signs, saves and empties the journal before the vault closes.
    fn put_away(&mut self) {
        match crate::audit::seal(self, None) {
            Ok(Some(checkpoint)) => self.notify(checkpoint),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(vault = %self.id, %error, "the audit chain of vault {} was not sealed", self.id);
            }
        }
        if self.unsaved > 0 || !self.files.index.exists() {
            self.save_indexes();
        }
        self.rewrite();
        if let Err(error) = open::truncate_wal(&self.conn) {
            tracing::warn!(vault = %self.id, %error, "the journal of vault {} was not emptied", self.id);
        }
    }
}

/// A failure that many callers hear of.
struct Failure {
    busy: Option<String>,
    text: String,
}

impl Failure {
    fn of(error: &Error) -> Self {
        Self { busy: error.busy(), text: error.to_string() }
    }

    fn error(&self) -> DomainError {
        match &self.busy {
            Some(reason) => {
                DomainError::Busy { reason: reason.clone(), retry_after: Duration::from_secs(5) }
            }
            None => DomainError::internal(self.text.clone()),
        }
    }
}

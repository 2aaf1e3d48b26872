//! The server's own work: reading attachments, vectors, near-duplicates, retention, lapsed holds, short-term memory and
//! proposals to tidy up.
//!
//! All of it can be stopped anywhere and taken up again: what is left to do is read from the
//! vault each time. It runs under system permits and is audited like anyone's deed.

mod care;
mod duplicates;
pub(crate) mod notify;
mod pace;
mod read;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use yore_domain::audit::Outcome;
use yore_domain::hold::HoldState;
use yore_domain::memory::{Cause, Memory, Status};
use yore_domain::query::Effort;
use yore_domain::{JobId, Result, VaultId};
use yore_embed::Transformer;
use yore_policy::Permit;
use yore_store::plan::Indexing;
use yore_store::{CommitError, Plan, Precondition, RowKey, Write};

use crate::ask::stored;
use crate::call::Call;
use crate::engine::{Engine, blocking};
use crate::ops::indexing;
use crate::run::Trace;

use self::pace::Pace;

/// The protocol the audit chain names for the server's own work.
pub(crate) const PROTOCOL: &str = "background";
/// Texts embedded between two looks at the clock.
const TEXTS: usize = 16;
/// Memories whose time ran out, per commit.
const ENDED: usize = 100;
/// How often every vault is visited, whether or not anything was written to it.
const ROUND: Duration = Duration::from_secs(3600);
/// What the work of a vault is called among servers, how long one that says nothing more has it,
/// and when another one asks again.
const WORK: &str = "work";
const TURN: Duration = Duration::from_secs(120);
const ASK_AGAIN: Duration = Duration::from_secs(2);
/// How long after a batch of an import its vault counts as being filled. What is left to do then
/// takes far longer than the import, which somebody waits for.
const FILLED: Duration = Duration::from_secs(2);

/// Which vaults have something to do.
#[derive(Default)]
pub(crate) struct Work {
    touched: Mutex<BTreeSet<VaultId>>,
    wake: Notify,
    /// Vaults that an import fills, and when its last batch came.
    filling: Mutex<BTreeMap<VaultId, Instant>>,
    /// When each vault's short-term memory was looked at, and what came since.
    paces: Mutex<BTreeMap<VaultId, Pace>>,
    /// The passes over short-term memory that are under way.
    pub(crate) passes: Mutex<BTreeSet<JobId>>,
    /// Vaults that somebody began to listen to.
    listening: Mutex<BTreeSet<VaultId>>,
    pub(crate) heard: Notify,
}

impl Work {
    /// Says that a vault changed.
    pub(crate) fn touch(&self, vault: VaultId) {
        if self.touched.lock().insert(vault) {
            self.wake.notify_one();
        }
    }

    /// Says that a batch of an import came into a vault.
    pub(crate) fn fills(&self, vault: VaultId) {
        self.filling.lock().insert(vault, Instant::now());
    }

    fn is_filling(&self, vault: VaultId) -> bool {
        let mut filling = self.filling.lock();
        filling.retain(|_, last| last.elapsed() < FILLED);
        filling.contains_key(&vault)
    }

    /// Says that somebody listens to a vault.
    pub(crate) fn listens(&self, vault: VaultId) {
        self.listening.lock().insert(vault);
    }

    /// Says that somebody who was told nothing for a while listens again.
    pub(crate) fn listen_again(&self) {
        self.heard.notify_one();
    }

    pub(crate) fn newly_listening(&self) -> BTreeSet<VaultId> {
        std::mem::take(&mut *self.listening.lock())
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").field("touched", &self.touched.lock().len()).finish()
    }
}

/// Whether there may be more of the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    More,
    Nothing,
}

/// The running background work of an engine.
#[derive(Debug)]
pub struct Background {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Background {
    /// Lets the piece of work in hand finish and stops.
    pub async fn stop(self) {
        let Self { stop, task } = self;
        stop.send_replace(true);
        if let Err(error) = task.await {
            tracing::error!(%error, "the background work ended badly");
        }
    }
}

impl Engine {
    /// Starts the background work. It takes at most half of one core. Started twice, it does
    /// nothing twice.
    #[must_use]
    pub fn start(&self) -> Background {
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(run(self.clone(), stopped));
        Background { stop, task }
    }

    /// Does all background work there is, now.
    pub async fn settle(&self) -> Result<()> {
        for vault in self.all_vaults().await? {
            while self.work(vault).await? == Left::More {}
        }
        Ok(())
    }

    /// Does what background work can be done in this time; the rest waits for the next start.
    /// After a large import it is hours of one core, which nobody who typed a command waits for.
    pub async fn settle_for(&self, limit: Duration) -> Result<()> {
        let begun = Instant::now();
        for vault in self.all_vaults().await? {
            while begun.elapsed() < limit && self.work(vault).await? == Left::More {}
        }
        Ok(())
    }

    /// Lists the vaults of this server, for its own work.
    pub async fn vaults(&self) -> Result<Vec<VaultId>> {
        Ok(self.all_vaults().await?.into_iter().collect())
    }

    pub(crate) async fn all_vaults(&self) -> Result<BTreeSet<VaultId>> {
        let permit = self.system(VaultId::CATALOG, "list the vaults")?;
        let vaults = self.keeper().vaults(&permit).await?;
        Ok(vaults.into_iter().map(|info| info.id).collect())
    }

    /// Takes work in a vault for this server alone, unless another one has it.
    pub(crate) async fn takes(&self, vault: VaultId, work: &str, time: Duration) -> Result<bool> {
        let permit = self.system(vault, "share the work")?;
        self.store().lease(&permit, work, time).await
    }

    /// Does one piece of each sort of work in a vault.
    async fn work(&self, vault: VaultId) -> Result<Left> {
        if self.keeper().tend(&self.system(vault, "upkeep")?, self.now()).await? {
            return Ok(Left::More);
        }
        let pieces = [
            self.end_memories(vault).await?,
            self.end_kept(vault).await?,
            self.lapse_holds(vault).await?,
            // Before vectors are made, for they are made of what attachments say, too.
            self.read_attachments(vault).await?,
            self.embed(vault).await?,
        ];
        if pieces.contains(&Left::More) {
            return Ok(Left::More);
        }
        // Only once vectors are there, for they tell duplicates best.
        if self.propose_merges(vault).await? == Left::More {
            return Ok(Left::More);
        }
        if self.consolidate_when_due(vault).await? == Left::More {
            return Ok(Left::More);
        }
        self.propose_care(vault).await
    }

    /// Gives rows the transformer's vector, newest first.
    async fn embed(&self, vault: VaultId) -> Result<Left> {
        if self.settings().effort == Effort::Instant {
            return Ok(Left::Nothing);
        }
        let permit = self.system(vault, "embed")?;
        let rows = {
            let snapshot = self.store().snapshot(&permit).await?;
            snapshot.unembedded(Transformer::ID.as_str(), TEXTS).await?
        };
        if rows.is_empty() {
            return Ok(Left::Nothing);
        }
        let models = self.0.models;
        let writes = blocking(move || vectors(models, &rows)).await?;
        let trace = Trace::count(writes.len());
        self.commit_own(&permit, writes, Vec::new(), trace).await
    }

    /// Forgets what has passed its time; erases what consent says may be kept no longer.
    async fn end_memories(&self, vault: VaultId) -> Result<Left> {
        let permit = self.system(vault, "retention")?;
        let now = self.now();
        let snapshot = self.store().snapshot(&permit).await?;
        let (mut writes, mut preconditions, mut ids) = (Vec::new(), Vec::new(), Vec::new());
        for id in snapshot.ended(now, ENDED).await? {
            let Some(memory) = snapshot.memory(id).await? else { continue };
            let head = Precondition::Head(id, Some(memory.head.number));
            let Some(write) = self.ending(memory) else { continue };
            preconditions.push(head);
            writes.push(write);
            ids.push(id);
        }
        drop(snapshot);
        if writes.is_empty() {
            return Ok(Left::Nothing);
        }
        let trace = Trace::count(ids.len()).touching(ids);
        self.commit_own(&permit, writes, preconditions, trace).await
    }

    fn ending(&self, memory: Memory) -> Option<Write> {
        let Memory { head, legal_hold, .. } = memory;
        let now = self.now();
        if head.retained_until().is_some_and(|end| end <= now) && !legal_hold {
            return Some(Write::Erase { memory: head.memory });
        }
        if !head.status.is_live() {
            return None;
        }
        let mut next = head.next(Cause::Expired, now, None);
        next.status = Status::Tombstoned;
        next.time.valid_to = next.time.valid_to.or(Some(now));
        let indexing: Indexing = indexing(self, &next.content);
        Some(Write::Version { version: Box::new(next), indexing })
    }

    /// Ends holds that nobody decided in time.
    async fn lapse_holds(&self, vault: VaultId) -> Result<Left> {
        let permit = self.system(vault, "expire holds")?;
        let now = self.now();
        let snapshot = self.store().snapshot(&permit).await?;
        let pending = snapshot.holds(HoldState::Pending, 1000).await?;
        drop(snapshot);
        let (mut writes, mut preconditions) = (Vec::new(), Vec::new());
        for mut hold in pending {
            if hold.expires.is_some_and(|end| end <= now) {
                hold.state = HoldState::Expired;
                hold.decided = Some(now);
                preconditions.push(Precondition::Pending(hold.id));
                writes.push(Write::Hold(Box::new(hold)));
            }
        }
        if writes.is_empty() {
            return Ok(Left::Nothing);
        }
        let trace = Trace::count(writes.len());
        self.commit_own(&permit, writes, preconditions, trace).await
    }

    /// Commits the server's own work and waits for it, so that the next look sees what was done.
    /// When the vault moved underneath, it is done again.
    pub(crate) async fn commit_own(
        &self,
        permit: &Permit,
        writes: Vec<Write>,
        preconditions: Vec<Precondition>,
        trace: Trace,
    ) -> Result<Left> {
        let call = Call::anonymous(PROTOCOL);
        let (actor, reason, now) = (permit.actor(), permit.operation(), self.now());
        let audit = self.draft(&call, actor, reason, now, Outcome::Done, trace);
        let plan = Plan { writes, preconditions, ..Plan::of(audit) };
        match self.store().commit(permit, plan).await {
            Ok(_) | Err(CommitError::Stale(_)) => Ok(Left::More),
            Err(CommitError::Failed(error)) => Err(error),
        }
    }
}

/// The vectors of some rows, whose texts share the passes over the model.
fn vectors(models: &yore_embed::Builtin, rows: &[(RowKey, String)]) -> Vec<Write> {
    let texts: Vec<&str> = rows.iter().map(|(_, text)| text.as_str()).collect();
    let vectors = models.transformer.embed_all(&texts);
    let write = |((row, _), vector): (&(RowKey, String), _)| Write::Vector {
        row: *row,
        vector: stored(Transformer::ID.as_str(), vector),
    };
    rows.iter().zip(vectors).map(write).collect()
}

async fn run(engine: Engine, mut stopped: watch::Receiver<bool>) {
    work_until(&engine, &mut stopped).await;
    engine.consolidate_at_last().await;
}

async fn work_until(engine: &Engine, stopped: &mut watch::Receiver<bool>) {
    let mut round: Option<Instant> = None;
    // Vaults in which another server works: it may have looked away just before this one wrote.
    // And those that are being filled.
    let mut others: BTreeSet<VaultId> = BTreeSet::new();
    loop {
        let mut vaults = std::mem::take(&mut *engine.0.work.touched.lock());
        vaults.append(&mut others);
        if round.is_none_or(|last| last.elapsed() >= ROUND) {
            match engine.all_vaults().await {
                Ok(all) => vaults.extend(all),
                Err(error) => tracing::error!(%error, "the vaults could not be listed"),
            }
            round = Some(Instant::now());
        }
        let every = engine.settings().consolidation.every;
        vaults.extend(engine.0.work.due(engine.now(), every));
        for vault in vaults {
            match finish(engine, vault, stopped).await {
                Some(Turn::Done) => {}
                Some(Turn::Others | Turn::Filling) => {
                    others.insert(vault);
                }
                None => return,
            }
        }
        let most = if others.is_empty() { ROUND } else { ASK_AGAIN };
        let rest = engine.0.work.rest(engine.now(), every).unwrap_or(most).min(most);
        tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => return,
            () = engine.0.work.wake.notified() => {}
            () = tokio::time::sleep(rest) => {}
        }
    }
}

/// Whose turn it was in a vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// This server's, and it did what there was.
    Done,
    /// Another server's.
    Others,
    /// An import's.
    Filling,
}

/// Works in one vault until nothing is left; `None` when it was told to stop.
async fn finish(
    engine: &Engine,
    vault: VaultId,
    stopped: &mut watch::Receiver<bool>,
) -> Option<Turn> {
    let turn = take_turns(engine, vault, stopped).await;
    if turn != Some(Turn::Others)
        && let Ok(permit) = engine.system(vault, "background work")
        && let Err(error) = engine.store().give_back(&permit, WORK).await
    {
        tracing::debug!(%vault, %error, "others wait until the work of this server ends by itself");
    }
    turn
}

async fn take_turns(
    engine: &Engine,
    vault: VaultId,
    stopped: &mut watch::Receiver<bool>,
) -> Option<Turn> {
    loop {
        if engine.0.work.is_filling(vault) {
            return Some(Turn::Filling);
        }
        let begun = Instant::now();
        match engine.takes(vault, WORK, TURN).await {
            Ok(true) => {}
            Ok(false) => return Some(Turn::Others),
            Err(error) => {
                tracing::error!(%vault, %error, "background work failed");
                return Some(Turn::Done);
            }
        }
        let left = match engine.work(vault).await {
            Ok(left) => left,
            Err(error) => {
                tracing::error!(%vault, %error, "background work failed");
                Left::Nothing
            }
        };
        if *stopped.borrow() {
            return None;
        }
        if left == Left::Nothing {
            return Some(Turn::Done);
        }
        // Resting as long as it worked leaves half of the core to those who wait.
        tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => return None,
            () = tokio::time::sleep(begun.elapsed()) => {}
        }
    }
}

//! Brings a store up to date from the vault's outbox.
//!
//! Each store has a cursor of its own in the mapping. A change is delivered as the state the
//! memory has now, and the cursor moves only when the store has it; so a store that was away
//! catches up where it stopped, and a change that is delivered twice changes nothing.
//!
//! The cursor says which change it stands behind. Where the vault has another one there, or none,
//! it was put back to an earlier state, and everything is delivered once more: first what the vault
//! no longer knows is taken out of recall, then every change follows from the first on.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use tokio::sync::watch;
use yore_canon::hash::Sha256;
use yore_canon::jcs;
use yore_domain::change::What;
use yore_domain::class::{Class, Label, Sensitivity};
use yore_domain::{MemoryId, Seq};
use yore_engine::{Call, Engine, Event, Reference};

use crate::error::{Error, Result};
use crate::record::Record;
use crate::slot::{Depth, Put, Slot};
use crate::store::Capability;

/// How long a delivery rests after a failure, the first time and at most.
const REST: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

/// How often a store is asked again for what it refused to let go, and the vault looked at.
const AGAIN: Duration = Duration::from_secs(60);

/// How long a change that must be there may take to come.
const LOOK: Duration = Duration::from_secs(5);

/// What a delivery did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Memories the store did not have.
    pub created: u64,
    /// Memories that had changed.
    pub replaced: u64,
    /// Memories that were taken back.
    pub withdrawn: u64,
    /// Changes that needed nothing.
    pub unchanged: u64,
    /// Memories that the store will never take.
    pub refused: u64,
}

/// Makes the call under which a delivery looks into the vault, anew each time, because
/// credentials end.
pub type Caller = Arc<dyn Fn() -> Call + Send + Sync>;

type Changes = BoxStream<'static, yore_domain::Result<Event>>;

/// Where a store stands in the vault's changes.
#[derive(Clone, Copy, Debug)]
struct Place {
    after: Seq,
    /// Whether the vault has no such change any more.
    is_lost: bool,
}

/// What tells a change from another of the same number.
fn marked(event: &Event) -> String {
    let said = serde_json::json!([event.change, event.at]);
    Sha256::of(jcs::canonical(&said)).to_hex()[..32].to_owned()
}

/// The way from one vault to one store.
#[derive(Clone)]
pub struct Delivery {
    engine: Engine,
    caller: Caller,
    slot: Arc<Slot>,
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery").field("slot", &self.slot).finish_non_exhaustive()
    }
}

impl Delivery {
    /// Delivers what the caller may see in its vault to a store.
    #[must_use]
    pub fn new(engine: Engine, caller: Caller, slot: Arc<Slot>) -> Self {
        Self { engine, caller, slot }
    }

    /// Delivers until nothing more has come for some time, or the store fails. What was delivered
    /// before a failure stays delivered.
    pub async fn catch_up(&self, quiet: Duration) -> Result<Delivered> {
        let mut done = Delivered::default();
        let changes = self.changes(&mut done).await?;
        self.all(changes, quiet, done).await
    }

    /// Delivers everything once more, from the first change on. What the store has as it should be
    /// stays as it is; what the vault does not know is taken out of recall.
    pub async fn repair(&self, quiet: Duration) -> Result<Delivered> {
        let mut done = Delivered::default();
        let changes = self.start_over(&mut done).await?;
        self.all(changes, quiet, done).await
    }

    async fn all(
        &self,
        mut changes: Changes,
        quiet: Duration,
        mut done: Delivered,
    ) -> Result<Delivered> {
        done.withdrawn += self.slot.withdraw_again().await?;
        while let Ok(Some(event)) = tokio::time::timeout(quiet, changes.next()).await {
            self.deliver(event?, &mut done).await?;
        }
        Ok(done)
    }

    /// Delivers until it is told to stop, and tries again whatever fails.
    pub async fn run(&self, mut stop: watch::Receiver<bool>) {
        let mut rest = REST.0;
        loop {
            let done = tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                done = self.follow() => done,
            };
            match done {
                Ok(moved) => rest = if moved { REST.0 } else { rest },
                Err(error) => {
                    tracing::warn!(store = self.slot.name(), %error, "a delivery will be tried again");
                }
            }
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                () = tokio::time::sleep(rest) => rest = (rest * 2).min(REST.1),
            }
        }
    }

    /// Delivers as long as all goes well; says whether anything was delivered before it ended.
    async fn follow(&self) -> Result<bool> {
        let mut changes = self.changes(&mut Delivered::default()).await?;
        let mut moved = false;
        loop {
            let event = match tokio::time::timeout(AGAIN, changes.next()).await {
                Ok(Some(event)) => event?,
                Ok(None) => return Ok(moved),
                Err(_) => {
                    self.slot.withdraw_again().await?;
                    if self.went_back().await? {
                        return Ok(true);
                    }
                    continue;
                }
            };
            match self.deliver(event, &mut Delivered::default()).await {
                Ok(()) => moved = true,
                Err(error) if moved => {
                    tracing::warn!(store = self.slot.name(), %error, "a delivery stopped");
                    return Ok(true);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The changes that the store has not seen.
    async fn changes(&self, done: &mut Delivered) -> Result<Changes> {
        match self.place().await? {
            Some(place) if !place.is_lost => {
                Ok(self.engine.subscribe(&(self.caller)(), Some(place.after)).await?)
            }
            Some(_) => {
                tracing::warn!(
                    store = self.slot.name(),
                    "the vault was put back to an earlier state: everything is delivered again"
                );
                self.start_over(done).await
            }
            // A store that is new gets everything.
            None => self.start_over(done).await,
        }
    }

    /// Takes what the vault never had out of recall, and returns all changes. What the vault had
    /// and erased is among the changes.
    async fn start_over(&self, done: &mut Delivered) -> Result<Changes> {
        let known = self.slot.mapping.ids(self.slot.name()).await?;
        let known: Vec<MemoryId> = known.iter().filter_map(|id| id.parse().ok()).collect();
        let call = (self.caller)();
        let held = self.engine.held_here(&call, &known).await?;
        let held: BTreeSet<MemoryId> = held.into_iter().collect();
        for memory in known.into_iter().filter(|memory| !held.contains(memory)) {
            // The copy may be the last there is: where the store can, it keeps the row.
            self.refusable(self.withdrawn(memory, Depth::Tombstone, done).await, done)?;
        }
        Ok(self.engine.subscribe(&call, Some(Seq(0))).await?)
    }

    /// Where the store stands; `None` for one that has got nothing yet.
    async fn place(&self) -> Result<Option<Place>> {
        let Some(kept) = self.slot.mapping.cursor(self.slot.name()).await? else { return Ok(None) };
        let (cursor, mark) = kept.split_once('.').unwrap_or((&kept, ""));
        let lost = Place { after: Seq(0), is_lost: true };
        // A cursor of another master key says nothing.
        let Ok(after) = self.engine.seq_at(cursor) else { return Ok(Some(lost)) };
        if self.went_back().await? {
            return Ok(Some(lost));
        }
        let before = Seq(after.0.saturating_sub(1));
        let mut changes = self.engine.subscribe(&(self.caller)(), Some(before)).await?;
        // It is there at once, or not at all.
        let same = match tokio::time::timeout(LOOK, changes.next()).await {
            Ok(Some(event)) => {
                let event = event?;
                event.cursor == cursor && marked(&event) == mark
            }
            Ok(None) | Err(_) => false,
        };
        Ok(Some(if same { Place { after, is_lost: false } } else { lost }))
    }

    /// Whether the vault has fewer changes than the store has seen.
    async fn went_back(&self) -> Result<bool> {
        let kept = self.slot.mapping.cursor(self.slot.name()).await?;
        let cursor = kept.as_deref().and_then(|kept| kept.split('.').next());
        let seen = cursor.and_then(|cursor| self.engine.seq_at(cursor).ok());
        let newest = self.engine.last_change(&(self.caller)()).await?;
        Ok(seen.is_some_and(|seen| newest < seen))
    }

    async fn deliver(&self, event: Event, done: &mut Delivered) -> Result<()> {
        let delivered = match &event.change {
            What::Memory { memory, .. } => self.memory(*memory, done).await,
            What::Erased { memory, .. } => self.gone(*memory, done).await,
            What::Conversation { .. }
            | What::Message { .. }
            | What::ConversationErased { .. }
            | What::Profile { .. }
            | What::Hold { .. }
            | What::Grant { .. }
            | What::Job { .. } => Ok(()),
        };
        self.refusable(delivered, done)?;
        let place = format!("{}.{}", event.cursor, marked(&event));
        self.slot.mapping.advance(self.slot.name(), place).await
    }

    /// Makes the store hold what the memory is now.
    async fn memory(&self, id: MemoryId, done: &mut Delivered) -> Result<()> {
        let memory = match self.engine.get(&(self.caller)(), Reference::Memory(id)).await {
            Ok(memory) => memory,
            Err(yore_domain::Error::NotFound) => {
                return self.gone(id, done).await;
            }
            Err(error) => return Err(error.into()),
        };
        let allowed = may_leave(&memory.head.class(), self.slot.terms().ceiling);
        let record = Record::of(&memory).filter(|_| allowed && memory.head.status.is_live());
        let Some(record) = record else { return self.gone(id, done).await };
        if !self.slot.store().capabilities().contains(&Capability::of(record.kind)) {
            let what = format!("the store holds nothing {}", record.kind.as_str());
            return Err(Error::Unsupported(what));
        }
        let count = match self.slot.within(self.slot.put(&record).boxed()).await? {
            Put::Created => &mut done.created,
            Put::Replaced => &mut done.replaced,
            Put::Same | Put::Pending => &mut done.unchanged,
        };
        *count += 1;
        Ok(())
    }

    /// Takes a memory back for good: the vault can restore it, and then it is delivered again.
    async fn gone(&self, id: MemoryId, done: &mut Delivered) -> Result<()> {
        self.withdrawn(id, Depth::Erase, done).await
    }

    async fn withdrawn(&self, id: MemoryId, depth: Depth, done: &mut Delivered) -> Result<()> {
        let id = yore_canon::encode::hex(&id.bytes());
        let was = self.slot.within(self.slot.withdraw(&id, depth).boxed()).await?;
        let count = if was { &mut done.withdrawn } else { &mut done.unchanged };
        *count += 1;
        Ok(())
    }

    /// What a store refuses once and for all is counted; what may still succeed stops the delivery.
    fn refusable(&self, delivered: Result<()>, done: &mut Delivered) -> Result<()> {
        match delivered {
            Ok(()) => Ok(()),
            Err(error) if error.is_passing() => Err(error),
            Err(error) => {
                tracing::warn!(store = self.slot.name(), %error, "a memory was not delivered");
                done.refused += 1;
                Ok(())
            }
        }
    }
}

/// Whether another store may be given what has this class. What only some agents may be shown, and
/// what is a secret, stays in the vault: a store knows neither.
fn may_leave(class: &Class, ceiling: Sensitivity) -> bool {
    let secret = Label::secret();
    class.sensitivity <= ceiling
        && class.shared_with.is_none()
        && !class.labels.iter().any(|label| secret.covers(label))
}

//! Brings a store up to date from the vault's outbox.
//!
//! Each store has a cursor of its own in the mapping. A change is delivered as the state the
//! memory has now, and the cursor moves only when the store has it; so a store that was away
//! catches up where it stopped, and a change that is delivered twice changes nothing.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use tokio::sync::watch;
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
        let mut changes = self.changes().await?;
        while let Ok(Some(event)) = tokio::time::timeout(quiet, changes.next()).await {
            self.deliver(event?, &mut done).await?;
        }
        Ok(done)
    }

    /// Delivers everything once more, from the first change on. What the store has as it should be
    /// stays as it is.
    pub async fn repair(&self, quiet: Duration) -> Result<Delivered> {
        let mut done = Delivered::default();
        let mut changes = self.engine.subscribe(&(self.caller)(), Some(Seq(0))).await?;
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
        let mut changes = self.changes().await?;
        let mut moved = false;
        while let Some(event) = changes.next().await {
            match self.deliver(event?, &mut Delivered::default()).await {
                Ok(()) => moved = true,
                Err(error) if moved => {
                    tracing::warn!(store = self.slot.name(), %error, "a delivery stopped");
                    return Ok(true);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(moved)
    }

    async fn changes(
        &self,
    ) -> Result<futures::stream::BoxStream<'static, yore_domain::Result<Event>>> {
        let cursor = self.slot.mapping.cursor(self.slot.name()).await?;
        let after = match cursor {
            Some(cursor) => self.engine.seq_at(&cursor)?,
            // A store that is new gets everything.
            None => Seq(0),
        };
        Ok(self.engine.subscribe(&(self.caller)(), Some(after)).await?)
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
        match delivered {
            Ok(()) => {}
            Err(error) if error.is_passing() => return Err(error),
            Err(error) => {
                tracing::warn!(store = self.slot.name(), %error, "a memory was not delivered");
                done.refused += 1;
            }
        }
        self.slot.mapping.advance(self.slot.name(), event.cursor).await
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
        let id = yore_canon::encode::hex(&id.bytes());
        let was = self.slot.within(self.slot.withdraw(&id, Depth::Erase).boxed()).await?;
        let count = if was { &mut done.withdrawn } else { &mut done.unchanged };
        *count += 1;
        Ok(())
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

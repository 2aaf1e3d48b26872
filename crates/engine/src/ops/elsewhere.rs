//! What holds for memories that lie outside the vault, in stores beside it.

use yore_domain::audit::Outcome;
use yore_domain::grant::Verb;
use yore_domain::memory::Draft;
use yore_domain::mutation::Depth;
use yore_domain::{Error, MemoryId, Result};
use yore_policy::{Need, elsewhere};
use yore_store::{CommitError, Durability, Plan};

use crate::call::Call;
use crate::engine::Engine;
use crate::run::{Session, Trace};

/// What is done to memories that only stores beside the vault have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elsewhere {
    /// They are forgotten.
    Forget(Depth),
    /// Several become one.
    Merge,
    /// They expire by a policy.
    Expire,
}

impl Elsewhere {
    fn need(self) -> Need {
        match self {
            Self::Forget(Depth::Erase) => Need::one("stores.forget", Verb::Erase),
            Self::Forget(Depth::Tombstone | Depth::Quarantine) => {
                Need::one("stores.forget", Verb::Write)
            }
            Self::Merge => Need::one("stores.merge", Verb::Write),
            Self::Expire => Need::one("stores.expire", Verb::Write),
        }
    }
}

/// What became of memories in stores beside the vault.
#[derive(Clone, Debug, Default)]
pub struct ChangedElsewhere<T> {
    /// What the caller is answered.
    pub answer: T,
    /// How many memories.
    pub count: usize,
    /// Those of them whose ids are ids of the model.
    pub memories: Vec<MemoryId>,
}

impl Engine {
    /// Whether the caller would be shown a memory like this one, were it in the vault.
    pub async fn would_show(&self, call: &Call, draft: &Draft) -> Result<bool> {
        let session = self.enter_again(call, Need::one("recall", Verb::Read)).await?;
        Ok(session.permit.lens().sees(&draft.class()))
    }

    /// Whether the caller means the vault that stores beside it belong to.
    pub async fn means_default_vault(&self, call: &Call) -> Result<bool> {
        let identity = self.identify(call, Verb::Read).await?;
        Ok(identity.vault() == self.default_vault().await?)
    }

    /// Which of these ids are ids of the vault's memories, whether or not the caller may see
    /// them. It must decide nothing but what comes from elsewhere: a copy of a memory is shown
    /// only where the memory is.
    pub async fn held_here(&self, call: &Call, ids: &[MemoryId]) -> Result<Vec<MemoryId>> {
        let session = self.enter_again(call, Need::one("recall", Verb::Read)).await?;
        let permit = self.system(session.permit.vault(), "tell copies from strangers")?;
        let snapshot = self.store().snapshot(&permit).await?;
        let mut held = Vec::new();
        for id in ids {
            if snapshot.memory(*id).await?.is_some() {
                held.push(*id);
            }
        }
        Ok(held)
    }

    /// Whether the caller may change what only stores beside the vault have.
    pub async fn may_change_elsewhere(&self, call: &Call, change: Elsewhere) -> Result<bool> {
        match self.enter_again(call, change.need()).await {
            Ok(session) => Ok(elsewhere::change_elsewhere(&session.permit).is_ok()),
            Err(Error::Forbidden { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Changes what only stores beside the vault have. The work is done where policy allows it,
    /// and the audit chain says that it was, or that it was refused.
    pub async fn change_elsewhere<T>(
        &self,
        call: &Call,
        change: Elsewhere,
        work: impl Future<Output = Result<ChangedElsewhere<T>>>,
    ) -> Result<T> {
        let session = self.enter(call, change.need()).await?;
        let done = match elsewhere::change_elsewhere(&session.permit) {
            Ok(()) => work.await,
            Err(refused) => Err(refused),
        };
        match done {
            Err(error) => self.leave(call, &session, Err(error)).await,
            Ok(ChangedElsewhere { answer, count, memories }) => {
                let erase = change == Elsewhere::Forget(Depth::Erase);
                let trace = Trace::count(count).with("erase", erase);
                self.committed(call, &session, trace.touching(memories)).await?;
                Ok(answer)
            }
        }
    }

    /// Asks whether the caller keeps the stores beside a vault, for an operation on them.
    pub async fn keep_stores(&self, call: &Call, operation: &'static str) -> Result<()> {
        self.look(call, Need::one(operation, Verb::Admin), (), |_, session, _, ()| {
            Box::pin(async move {
                elsewhere::keep_stores(&session.permit)?;
                Ok(((), Trace::default()))
            })
        })
        .await
    }

    /// Writes the audit entry of a change that no row of the vault shows, and waits for it.
    async fn committed(&self, call: &Call, session: &Session, trace: Trace) -> Result<()> {
        let Session { permit, now, .. } = session;
        let (actor, operation) = (permit.actor(), permit.operation());
        let entry = self.draft(call, actor, operation, *now, Outcome::Done, trace);
        let plan = Plan { durability: Durability::Strict, ..Plan::of(entry) };
        match self.store().commit(permit, plan).await {
            Ok(_) => Ok(()),
            Err(CommitError::Failed(error)) => Err(error),
            Err(CommitError::Stale(_)) => Err(Error::conflict("the vault changed meanwhile")),
        }
    }
}

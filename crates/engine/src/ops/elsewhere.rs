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

/// What was forgotten in stores beside the vault.
#[derive(Clone, Debug, Default)]
pub struct ForgottenElsewhere<T> {
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

    /// Forgets what only stores beside the vault have. The work is done where policy allows it,
    /// and the audit chain says that it was, or that it was refused.
    pub async fn forget_elsewhere<T>(
        &self,
        call: &Call,
        depth: Depth,
        work: impl Future<Output = Result<ForgottenElsewhere<T>>>,
    ) -> Result<T> {
        let verb = if depth == Depth::Erase { Verb::Erase } else { Verb::Write };
        let session = self.enter(call, Need::one("stores.forget", verb)).await?;
        let done = match elsewhere::forget_elsewhere(&session.permit) {
            Ok(()) => work.await,
            Err(refused) => Err(refused),
        };
        match done {
            Err(error) => self.leave(call, &session, Err(error)).await,
            Ok(ForgottenElsewhere { answer, count, memories }) => {
                let trace = Trace::count(count).with("erase", depth == Depth::Erase);
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

//! Counting what became of a recalled memory. Anyone who may write reports on what they see.

use yore_domain::grant::Verb;
use yore_domain::memory::FeedbackOutcome;
use yore_domain::{Error, MemoryId, Result};
use yore_policy::Need;
use yore_store::Write;

use super::get::{memory_named, target};
use crate::call::Call;
use crate::engine::Engine;
use crate::run::{Planned, Trace};

impl Engine {
    /// Reports what became of a memory; it ranks accordingly from now on.
    pub async fn feedback(
        &self,
        call: &Call,
        memory: MemoryId,
        outcome: FeedbackOutcome,
    ) -> Result<()> {
        let need = Need::one("feedback", Verb::Write);
        self.change(call, need, (memory, outcome), |_, session, snapshot, (memory, outcome)| {
            Box::pin(async move {
                let id = memory_named(session, snapshot, *memory).await?;
                let known = snapshot.memory(id).await?;
                let known = known.filter(|known| known.head.status.is_live());
                let known = known.ok_or(Error::NotFound)?;
                let write = Write::Feedback { memory: id, outcome: *outcome };
                let trace = Trace { targets: vec![target(&known.head)], ..Trace::default() };
                let outcome = serde_json::to_value(outcome).map_err(Error::internal)?;
                Ok(Planned::done((), vec![write]).traced(trace.with("outcome", outcome)))
            })
        })
        .await
    }
}

//! Taking memories out of recall, or removing them for good.

use yore_domain::Result;
use yore_domain::grant::Verb;
use yore_domain::mutation::{Depth, Mutation};
use yore_engine::{Call, Effect, Mutated, Purpose, Wish};

use crate::operations::{Outcome, outcome};
use crate::rows::Whose;
use crate::wire::{Forget, Forgotten, StoreCount};
use crate::{Memorywire, STORE, map};

impl Memorywire {
    /// Forgets what ids and a filter find, together. What they do not find is not forgotten,
    /// and that is no failure.
    pub(crate) async fn forget(&self, call: &Call, request: Forget) -> Result<Forgotten> {
        request.check()?;
        let speaker = self.speaker(call, &request.agent_id, Verb::Read).await?;
        if let Some(before) = self.before(call, "forget").await? {
            return Ok(self.forgotten(&request, before));
        }
        let user = request.user_id.as_deref();
        let whose = Whose { agent: &speaker.agent, user, purpose: Purpose::Change("forget") };
        let ids = request.ids.as_deref().unwrap_or_default();
        let rows = self.rows(call, whose, ids, request.filter.as_ref()).await?;
        if rows.is_empty() {
            let nothing = Mutated { effect: Effect::Unchanged, memories: Vec::new() };
            let forgotten = self.forgotten(&request, Outcome::Done(nothing));
            return self.everywhere(call, &speaker.agent, &request, forgotten).await;
        }
        let forget = Mutation::Forget {
            memories: rows.iter().map(|row| row.id).collect(),
            depth: if request.hard_delete { Depth::Erase } else { Depth::Tombstone },
            reason: request.reason.clone(),
        };
        let wish = Wish { approval: request.approval_required, ..Wish::default() };
        let done = outcome(self.engine.mutate(call, forget, wish).await)?;
        let forgotten = self.forgotten(&request, done);
        if forgotten.pending_approval {
            return Ok(forgotten);
        }
        self.everywhere(call, &speaker.agent, &request, forgotten).await
    }

    /// Says what became of it in the stores beside the vault, and forgets there what only they
    /// have.
    async fn everywhere(
        &self,
        call: &Call,
        agent: &str,
        request: &Forget,
        mut forgotten: Forgotten,
    ) -> Result<Forgotten> {
        let whose = yore_router::Whose { agent: agent.to_owned(), user: request.user_id.clone() };
        let (ids, counts) = self.left(call, whose, &forgotten.forgotten_ids, request).await?;
        forgotten.forgotten_ids.extend(ids);
        forgotten.stores.extend(counts);
        Ok(forgotten)
    }

    fn forgotten(&self, request: &Forget, done: Outcome) -> Forgotten {
        let hard_delete = request.hard_delete;
        match done {
            Outcome::Done(done) => {
                let ids: Vec<String> =
                    done.memories.iter().map(|head| map::id(head.memory)).collect();
                let count = ids.len() as u64;
                let here = StoreCount { store: STORE.to_owned(), count, error: None };
                Forgotten {
                    forgotten_ids: ids,
                    hard_delete,
                    stores: vec![here],
                    pending_approval: false,
                    approval_url: None,
                }
            }
            Outcome::Waits(hold) => Forgotten {
                forgotten_ids: Vec::new(),
                hard_delete,
                stores: Vec::new(),
                pending_approval: true,
                approval_url: Some(self.approval_url(hold)),
            },
        }
    }
}

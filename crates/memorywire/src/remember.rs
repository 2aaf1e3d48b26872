//! Storing what an agent learned.

use yore_domain::Result;
use yore_domain::grant::Verb;
use yore_domain::mutation::Mutation;
use yore_engine::{Call, Wish};

use crate::operations::{Outcome, outcome};
use crate::wire::{Remember, Remembered};
use crate::{Memorywire, NAME, map};

impl Memorywire {
    /// Stores something, or lets a person decide whether to. Exactly the same of the same agent
    /// and person is stored once.
    pub(crate) async fn remember(&self, call: &Call, request: Remember) -> Result<Remembered> {
        request.check()?;
        self.speaker(call, &request.agent_id, Verb::Write).await?;
        let draft = Box::new(map::draft(&request)?);
        let stored_at = self.engine.now().millis();
        let wish = Wish { approval: request.approval_required, ..Wish::default() };
        let remember = Mutation::Remember { draft, id: None };
        let done = self.engine.mutate_as(NAME, call, remember, wish).await;
        Ok(match outcome(done)? {
            Outcome::Done(done) => {
                let id = done.memories.first().map(|head| map::id(head.memory));
                let id = id.unwrap_or_default();
                Remembered {
                    stores: self.arrived(call, &request, &id).await?,
                    id,
                    stored_at,
                    pending_approval: false,
                    approval_url: None,
                }
            }
            Outcome::Waits(hold) => Remembered {
                id: map::waiting(hold),
                stored_at,
                stores: Vec::new(),
                pending_approval: true,
                approval_url: Some(self.approval_url(hold)),
            },
        })
    }
}

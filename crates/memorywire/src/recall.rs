//! Finding what answers a question.

use std::time::Instant;

use yore_domain::grant::Verb;
use yore_domain::query::{Corpus, Cutoff, Effort, Recall as Question};
use yore_domain::scope::Scope;
use yore_domain::{HoldId, Result, limits};
use yore_engine::{Call, Found};

use crate::filter::Narrowed;
use crate::speaker::Speaker;
use crate::wire::{Hit, Recall, Recalled};
use crate::{Memorywire, map};

impl Memorywire {
    /// Finds the best answers among an agent's memories. Every filter holds before the best are
    /// chosen, so that none of them costs a place.
    pub(crate) async fn recall(&self, call: &Call, request: Recall) -> Result<Recalled> {
        request.check()?;
        let begun = Instant::now();
        let speaker = self.speaker(call, &request.agent_id, Verb::Read).await?;
        let narrowed = request.narrowed(self.engine.now());
        let (results, waits) = match narrowed {
            Some(narrowed) => self.hits(call, &speaker, &request, &narrowed).await?,
            None => (Vec::new(), None),
        };
        let together = self.together(call, &speaker, &request, results).await?;
        Ok(Recalled {
            results: self.signed(call, &request, together.hits).await?,
            fusion_used: request.fusion,
            stores_queried: self.asked(call).await?,
            latency_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            pending_approval: waits.is_some(),
            approval_url: waits.map(|hold| self.approval_url(hold)),
            stores: request.report.then_some(together.stores),
        })
    }

    /// The vault's own answers, and where a person decides whether the agent may read more.
    async fn hits(
        &self,
        call: &Call,
        speaker: &Speaker,
        request: &Recall,
        narrowed: &Narrowed,
    ) -> Result<(Vec<Hit>, Option<HoldId>)> {
        let most = self.wanted(request);
        let question = Question {
            query: request.query.clone(),
            corpus: Corpus::Memories,
            filter: narrowed.filter.clone(),
            near: Scope::default(),
            // What the engine cannot say exactly is looked for among all it returns.
            limit: if narrowed.is_exact() { most } else { limits::RESULTS },
            effort: Effort::default(),
            prefer: Vec::new(),
            cutoff: Cutoff::Calibrated,
        };
        let recalled = self.engine.recall(call, question).await?;
        let found = recalled.results.iter().filter_map(|hit| match &hit.found {
            Found::Memory { version, head: true } if narrowed.passes(&version.content) => {
                let hit = map::hit(version, hit.score, speaker.viewer)?;
                // What is nobody's is recalled as the asking agent's.
                let own = version.content.scope.agent.is_some();
                Some(if own { hit } else { Hit { agent_id: speaker.agent.clone(), ..hit } })
            }
            Found::Memory { .. } | Found::Message { .. } => None,
        });
        Ok((found.take(most).collect(), recalled.waits.first().copied()))
    }
}

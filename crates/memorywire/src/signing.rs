//! Signing answers: what this server says to a router that holds it as a store.

use yore_domain::Result;
use yore_domain::grant::Verb;
use yore_domain::{Error, limits};
use yore_engine::Call;
use yore_router::adapters::read_hit;
use yore_router::envelope::{Claim, Envelope};
use yore_router::{Question, Whose};

use crate::Memorywire;
use crate::elsewhere::kind;
use crate::wire::{Hit, Recall};

impl Memorywire {
    /// Signs every hit with the vault's key, in its place, where the request asks for it.
    pub(crate) async fn signed(
        &self,
        call: &Call,
        request: &Recall,
        mut hits: Vec<Hit>,
    ) -> Result<Vec<Hit>> {
        let Some(store) = &request.sign_as else { return Ok(hits) };
        let identity = self.engine.identify(call, Verb::Read).await?;
        let question = self.question(request, request.k as usize);
        let at = self.engine.now().millis();
        for (place, hit) in hits.iter_mut().enumerate() {
            // What is signed is what the other side will read.
            let written = serde_json::to_value(&*hit).map_err(Error::internal)?;
            let read = read_hit(&written).map_err(|error| Error::internal(error.to_string()))?;
            let (record, score) = (&read.record, read.score);
            let claim = Claim { store, question: &question, place, record, score };
            let signature = self.engine.vouch(&identity, &claim.message(at)).await?;
            hit.envelope = Some(Envelope::of(at, &signature));
        }
        Ok(hits)
    }

    /// A request as stores are asked it, for so many answers.
    pub(crate) fn question(&self, request: &Recall, k: usize) -> Question {
        let whose = Whose { agent: request.agent_id.clone(), user: request.user_id.clone() };
        let now = self.engine.now().millis();
        let mut question = Question::new(whose, &request.query, k.min(limits::RESULTS), now);
        question.types = request.types.iter().flatten().copied().map(kind).collect();
        question.filter = request.filter.clone().unwrap_or_default();
        match request.fresher_than_days {
            Some(days) => question.fresher_than_days(days),
            None => question,
        }
    }
}

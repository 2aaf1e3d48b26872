//! Listing what an agent remembers and what is related to it: what a router that holds this server
//! as one of its stores needs beside the protocol.

use std::collections::BTreeMap;

use serde_json::Value;
use yore_canon::encode::{base64url, from_base64url};
use yore_domain::grant::Verb;
use yore_domain::query::{PageRequest, Position};
use yore_domain::{Error, MemoryId, Result, Timestamp, limits};
use yore_engine::{Call, Purpose};

use crate::filter::Narrowed;
use crate::operations::answer;
use crate::rows::{ENTITY, Whose};
use crate::wire::{List, Listed, Near, Neighbour, Neighbours, Object, read};
use crate::{Memorywire, map};

impl Memorywire {
    /// Carries out one of these requests by its name.
    pub(crate) async fn look(&self, call: &Call, what: &str, input: Object) -> Result<Value> {
        self.scoped(&input)?;
        match what {
            "list" => answer(self.list(call, read(input)?).await?),
            "neighbours" => answer(self.neighbours(call, read(input)?).await?),
            _ => Err(Error::NotFound),
        }
    }

    /// Lists live memories, a part at a time.
    async fn list(&self, call: &Call, request: List) -> Result<Listed> {
        request.check()?;
        let speaker = self.speaker(call, &request.agent_id, Verb::Read).await?;
        let user = request.user_id.as_deref();
        let filter = request.filter.unwrap_or_default();
        let Some(narrowed) = Narrowed::of(&speaker.agent, user).by(&filter) else {
            return Ok(Listed { results: Vec::new(), next: None });
        };
        let after = request.after.as_deref().map(position).transpose()?;
        let page = PageRequest { limit: limits::PAGE, after, ..PageRequest::default() };
        let some = self.engine.list(call, narrowed.filter.clone(), page).await?;
        let whose = Whose { agent: &speaker.agent, user, purpose: Purpose::Reading };
        let now = self.engine.now();
        let mut results = Vec::with_capacity(some.items.len());
        for memory in &some.items {
            if !whose.is(&memory.head, now) || !narrowed.passes(&memory.head.content) {
                continue;
            }
            let Some(mut hit) = map::hit(&memory.head, 0.0, speaker.viewer) else { continue };
            hit.last_recalled_at = memory.usage.recalled.map(Timestamp::millis);
            results.push(hit);
        }
        Ok(Listed { results, next: some.next.map(cursor).transpose()? })
    }

    /// Names what is related to a memory of the agent's, among what is the agent's.
    async fn neighbours(&self, call: &Call, request: Neighbours) -> Result<Near> {
        request.check()?;
        let speaker = self.speaker(call, &request.agent_id, Verb::Read).await?;
        let user = request.user_id.as_deref();
        let whose = Whose { agent: &speaker.agent, user, purpose: Purpose::Reading };
        let Some(found) = self.found(call, whose, &request.id).await? else {
            return Ok(Near { results: Vec::new() });
        };
        let (memory, content) = (found.asked.memory, &found.asked.content);
        let mut distances: BTreeMap<MemoryId, u8> = BTreeMap::new();
        if let Some(entity) = content.body.structured.as_ref().and_then(|it| it.get(ENTITY)) {
            let entity = Object::from_iter([(ENTITY.to_owned(), entity.clone())]);
            for row in self.rows(call, whose, &[], Some(&entity)).await? {
                distances.insert(row.id, 1);
            }
        }
        let scope = Narrowed::of(&speaker.agent, user).filter.scope;
        for near in self.engine.neighbours(call, vec![memory], scope, request.hops).await? {
            let least = distances.entry(near.memory).or_insert(near.distance);
            *least = near.distance.min(*least);
        }
        distances.remove(&memory);
        let mut results: Vec<Neighbour> = distances
            .into_iter()
            .map(|(memory, distance)| Neighbour { id: map::id(memory), distance })
            .collect();
        results.sort_by_key(|near| near.distance);
        Ok(Near { results })
    }
}

/// Where a list goes on, as a caller is told.
fn cursor(position: Position) -> Result<String> {
    Ok(base64url(&serde_json::to_vec(&position).map_err(Error::internal)?))
}

fn position(cursor: &str) -> Result<Position> {
    let wrong = || Error::invalid("after", "is not one of ours");
    let bytes = from_base64url(cursor).map_err(|_| wrong())?;
    serde_json::from_slice(&bytes).map_err(|_| wrong())
}

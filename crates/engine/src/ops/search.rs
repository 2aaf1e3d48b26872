//! Searching what was said and what is remembered, with what stood before and after it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use yore_domain::conversation::Message;
use yore_domain::grant::Verb;
use yore_domain::query::Recall;
use yore_domain::{ConversationId, Result, limits};
use yore_policy::Need;
use yore_store::Snapshot;

use super::recall::{Found, Hit, trace};
use crate::call::Call;
use crate::engine::Engine;

/// How many results are weighed for each one that is shown: some are left out.
const SPARE: usize = 3;
/// How many more than those of a page are loaded before it is seen whether they are enough.
const AT_ONCE: usize = 4;
/// How many are weighed at least.
const LEAST: usize = 100;

/// A search.
#[derive(Clone, Debug)]
pub struct Sought {
    /// The question; its limit is how many results are wanted.
    pub recall: Recall,
    /// Whether a result must hold a word of the question.
    pub by_word: bool,
    /// Whether messages on branches that were left count.
    pub branches: bool,
    /// Whether only what attachments say counts.
    pub inside: bool,
    /// Whether only the best message of each conversation counts.
    pub once_each: bool,
    /// Where the page before ended.
    pub after: Option<Place>,
}

/// A place in the results of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// How many results came before.
    pub seen: u32,
    /// The score of the last of them.
    pub score: f32,
    /// Its id, which breaks ties.
    pub id: [u8; 16],
}

/// A page of results.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// The results, best first.
    pub seen: Vec<Seen>,
    /// Where to go on, when there is more.
    pub next: Option<Place>,
}

/// A result with its neighbours.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The result.
    pub hit: Hit,
    /// What was said right before it.
    pub before: Option<Message>,
    /// What was said right after it.
    pub after: Option<Message>,
}

impl Engine {
    /// Searches, a page at a time.
    pub async fn search(&self, call: &Call, sought: Sought) -> Result<Results> {
        let need = Need::one("search", Verb::Read);
        self.look(call, need, sought, |engine, session, snapshot, sought| {
            Box::pin(async move {
                let limit = sought.recall.limit;
                let before = sought.after.map_or(0, |place| place.seen as usize);
                let weighed = ((before + limit + 1) * SPARE).clamp(LEAST, limits::RESULTS);
                let recall = Recall { limit: weighed, ..sought.recall.clone() };
                // What a rule withholds is left out; only recall asks a person for it.
                let enough = |hits: &[Hit]| kept(hits, sought).len() > limit;
                let until = (before + limit + AT_ONCE, &enough as _);
                let found = engine.find_until(session, snapshot, &recall, until);
                let (mut recalled, _) = found.await?;
                let shown = kept(&recalled.results, sought);
                let more = shown.len() > limit;
                let mut found: Vec<Option<Hit>> = recalled.results.drain(..).map(Some).collect();
                let hits: Vec<Hit> =
                    shown.iter().take(limit).filter_map(|at| found[*at].take()).collect();
                let next = hits.last().filter(|_| more).map(|last| Place {
                    seen: u32::try_from(before + limit).unwrap_or(u32::MAX),
                    score: last.score,
                    id: id_of(&last.found),
                });
                recalled.results = hits;
                let trace = trace(&recalled);
                let mut seen = Vec::with_capacity(recalled.results.len());
                for hit in recalled.results {
                    seen.push(among(snapshot, hit).await?);
                }
                Ok((Results { seen, next }, trace))
            })
        })
        .await
    }
}

/// The places of what a search shows of what was found, from where the page before ended.
fn kept(hits: &[Hit], sought: &Sought) -> Vec<usize> {
    let mut places: Vec<usize> = (0..hits.len()).collect();
    places.sort_by(|a, b| {
        let (a, b) = (&hits[*a], &hits[*b]);
        b.score.total_cmp(&a.score).then(id_of(&a.found).cmp(&id_of(&b.found)))
    });
    let mut talks: BTreeSet<ConversationId> = BTreeSet::new();
    places.retain(|place| {
        let hit = &hits[*place];
        let on_path = match &hit.found {
            Found::Memory { .. } => true,
            Found::Message { message, .. } => sought.branches || !message.off_path,
        };
        let first = match &hit.found {
            Found::Message { conversation, .. } if sought.once_each => {
                talks.insert(conversation.id)
            }
            Found::Message { .. } | Found::Memory { .. } => true,
        };
        let said = hit.signals.iter().any(|(name, value)| name == "lexical" && *value > 0.0);
        let inside = !sought.inside || hit.inside.is_some();
        inside && on_path && first && (said || !sought.by_word)
    });
    if let Some(place) = sought.after {
        places.retain(|at| {
            let order = place.score.total_cmp(&hits[*at].score);
            order.then(id_of(&hits[*at].found).cmp(&place.id)).is_gt()
        });
    }
    places
}

fn id_of(found: &Found) -> [u8; 16] {
    match found {
        Found::Memory { version, .. } => version.memory.bytes(),
        Found::Message { message, .. } => message.id.bytes(),
    }
}

async fn among(snapshot: &dyn Snapshot, hit: Hit) -> Result<Seen> {
    let Found::Message { conversation, position, .. } = &hit.found else {
        return Ok(Seen { hit, before: None, after: None });
    };
    let (id, position) = (conversation.id, *position);
    let after = snapshot.messages(id, position + 1, 1).await?.into_iter().next();
    // Positions have gaps where something was erased; then nothing is shown before it.
    let before = match position.checked_sub(1) {
        Some(from) => snapshot.messages(id, from, 1).await?.into_iter().next(),
        None => None,
    };
    let before = before.filter(|before| id_of(&hit.found) != before.id.bytes());
    Ok(Seen { hit, before, after })
}

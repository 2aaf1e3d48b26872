//! How a vault's memories are: how many, how many of them nobody asks for any more, how many say
//! nearly the same.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use yore_domain::grant::Verb;
use yore_domain::kind::Kind;
use yore_domain::query::{Filter, PageRequest};
use yore_domain::scope::ScopeRule;
use yore_domain::{MemoryId, Result, Span, Timestamp, limits};
use yore_policy::Need;
use yore_rank::overlap::{Effort, pairs, words};
use yore_store::Snapshot;

use super::consolidate::Window;
use crate::call::Call;
use crate::engine::{Engine, blocking};
use crate::run::Trace;

/// The share of words from which two memories say nearly the same.
pub(crate) const DRIFT: f64 = 0.7;
/// After how long without a recall something counts as stale.
const STALE: Span = Span::days(30);
/// Pairs that are named.
const NAMED: usize = 20;

/// How memories are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Vitals {
    /// Live memories.
    pub live: u64,
    /// Those that no recall returned in the last 30 days.
    pub stale: u64,
    /// The same in percent of the live ones.
    pub stale_percent: f64,
    /// Pairs of one agent and person that share most of their words.
    pub drifting: u64,
    /// Whether there may be more of them than were counted.
    pub drifting_more: bool,
    /// Some of these pairs, the closest first.
    pub drift: Vec<Drift>,
    /// How many of each kind.
    pub kinds: BTreeMap<Kind, u64>,
}

/// Two memories that say nearly the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Drift {
    /// One.
    pub one: MemoryId,
    /// The other.
    pub other: MemoryId,
    /// How many of all their words they share, from 0 to 1.
    pub share: f64,
}

/// What is said in each window.
type Told = BTreeMap<Window, Vec<(MemoryId, BTreeSet<String>)>>;

impl Engine {
    /// Tells how the memories of a vault are, or those of one agent or person.
    pub async fn vitals(
        &self,
        call: &Call,
        agent: Option<String>,
        user: Option<String>,
    ) -> Result<Vitals> {
        let scope = ScopeRule { agent, user, ..ScopeRule::default() };
        let need = Need::one("vitals", Verb::Admin);
        self.look(call, need, scope, |_, session, snapshot, scope| {
            Box::pin(async move {
                let (mut vitals, told) = counted(snapshot, scope, session.now).await?;
                let (mut drift, more) = blocking(move || drifting(&told)).await?;
                vitals.drifting_more = more;
                vitals.drifting = drift.len() as u64;
                drift.truncate(NAMED);
                vitals.drift = drift;
                let trace = Trace::default().with("live", vitals.live).with("stale", vitals.stale);
                Ok((vitals, trace))
            })
        })
        .await
    }
}

async fn counted(
    snapshot: &dyn Snapshot,
    scope: &ScopeRule,
    now: Timestamp,
) -> Result<(Vitals, Told)> {
    let filter = Filter { scope: scope.clone(), ..Filter::default() };
    let mut page = PageRequest { limit: limits::PAGE, ..PageRequest::default() };
    let (mut vitals, mut told) = (Vitals::default(), Told::new());
    loop {
        let some = snapshot.memories(&filter, &page).await?;
        for memory in &some.items {
            let content = &memory.head.content;
            vitals.live += 1;
            let asked_for = memory.usage.recalled.is_some_and(|at| at >= now.minus(STALE));
            vitals.stale += u64::from(!asked_for);
            *vitals.kinds.entry(content.kind).or_default() += 1;
            let said = (memory.head.memory, words(&content.body.text));
            told.entry(Window::of(&content.scope)).or_default().push(said);
        }
        match some.next {
            Some(next) => page.after = Some(next),
            None => break,
        }
    }
    if vitals.live > 0 {
        vitals.stale_percent = 100.0 * vitals.stale as f64 / vitals.live as f64;
    }
    Ok((vitals, told))
}

/// The pairs, the closest first, and whether there may be more.
fn drifting(told: &Told) -> (Vec<Drift>, bool) {
    let (mut drift, mut effort) = (Vec::new(), Effort::USUAL);
    for window in told.values() {
        let texts: Vec<BTreeSet<String>> = window.iter().map(|(_, words)| words.clone()).collect();
        drift.extend(pairs(&texts, DRIFT, &mut effort).into_iter().map(|pair| Drift {
            one: window[pair.one].0,
            other: window[pair.other].0,
            share: pair.share,
        }));
    }
    drift.sort_by(|a, b| {
        b.share.total_cmp(&a.share).then(a.one.cmp(&b.one)).then(a.other.cmp(&b.other))
    });
    (drift, effort.is_spent())
}

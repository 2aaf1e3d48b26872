//! What an agent would have got lately, had its grant been another.
//!
//! The audit chain keeps no questions, only what was returned. So it is told what would have been
//! missing, not what would have been found besides.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use yore_domain::audit::Outcome;
use yore_domain::grant::Verb;
use yore_domain::memory::Memory;
use yore_domain::{Error, MemoryId, Result, Timestamp};
use yore_policy::Need;
use yore_store::Snapshot;
use yore_store::snapshot::AuditQuery;

use super::grants::{GrantRequest, granted};
use super::shown::{Standing, shown_memory};
use crate::call::Call;
use crate::engine::Engine;
use crate::kept::Kept;
use crate::run::{Session, Trace};

/// How many entries of the audit chain are looked at, the newest first.
const ENTRIES: usize = 2000;
/// Operations that answer a question.
const ANSWERS: [&str; 3] = ["recall", "context", "search"];

/// What would have become of the answers an agent got.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Simulated {
    /// How many questions it asked.
    pub asked: u64,
    /// How many of them would have been answered with less.
    pub poorer: u64,
    /// How many memories it was shown, each as often as it was.
    pub shown: u64,
    /// What would have been hidden and how often, most often first.
    pub hidden: Vec<(Memory, u64)>,
    /// Whether there may be older entries that were not looked at.
    pub partly: bool,
}

impl Engine {
    /// Goes through the answers an agent got since a time, and tells what would have been hidden
    /// under a grant that is not given yet. Only the owner may.
    pub async fn simulate_grant(
        &self,
        call: &Call,
        request: GrantRequest,
        since: Timestamp,
    ) -> Result<Simulated> {
        let need = Need::one("grant.simulate", Verb::Grant);
        self.look(call, need, (request, since), |engine, session, snapshot, (request, since)| {
            Box::pin(async move {
                if !session.is_owner() {
                    return Err(Error::forbidden("only the owner looks with the eyes of others"));
                }
                let told = engine.replayed(session, snapshot, request, *since).await?;
                let trace = Trace::default()
                    .with("agent", request.agent.as_str())
                    .with("asked", told.asked)
                    .with("poorer", told.poorer);
                Ok((told, trace))
            })
        })
        .await
    }

    async fn replayed(
        &self,
        session: &Session,
        snapshot: &dyn Snapshot,
        request: &GrantRequest,
        since: Timestamp,
    ) -> Result<Simulated> {
        let query = AuditQuery {
            agent: Some(request.agent.to_string()),
            from: Some(since),
            limit: ENTRIES,
            newest_first: true,
            ..AuditQuery::default()
        };
        let entries = snapshot.audit(&query).await?;
        let mut told = Simulated { partly: entries.len() == ENTRIES, ..Simulated::default() };
        let mut eyes = Eyes::of(self, session, request).await?;
        let mut hidden: BTreeMap<MemoryId, (Option<Memory>, u64)> = BTreeMap::new();
        for entry in entries {
            let draft = entry.draft;
            if draft.outcome != Outcome::Done || !ANSWERS.contains(&draft.operation.as_str()) {
                continue;
            }
            told.asked += 1;
            let mut poorer = false;
            for target in &draft.targets {
                told.shown += 1;
                let id = target.memory;
                if eyes.see(id).await? {
                    continue;
                }
                if let Entry::Vacant(place) = hidden.entry(id) {
                    // What is gone by now says nothing about the grant.
                    let there = snapshot.memory(id).await?;
                    place.insert((there.filter(|memory| memory.head.status.is_live()), 0));
                }
                if let Some((Some(_), times)) = hidden.get_mut(&id) {
                    *times += 1;
                    poorer = true;
                }
            }
            told.poorer += u64::from(poorer);
        }
        told.hidden = hidden
            .into_values()
            .filter_map(|(memory, times)| memory.map(|memory| (memory, times)))
            .collect();
        told.hidden.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        Ok(told)
    }
}

/// What would be seen with a grant.
struct Eyes {
    /// Nothing where the grant does not let read.
    looking: Option<(Session, Box<dyn Snapshot>)>,
    seen: BTreeMap<MemoryId, bool>,
}

impl Eyes {
    async fn of(engine: &Engine, session: &Session, request: &GrantRequest) -> Result<Self> {
        let grant = granted(engine, session, request).await?;
        let looking = if grant.verbs.has(Verb::Read) {
            let mut agent = Engine::stand_in(session, grant)?;
            let snapshot = engine.store().snapshot(&agent.permit).await?;
            agent.kept = Kept::of(&agent, &*snapshot).await?;
            Some((agent, snapshot))
        } else {
            None
        };
        Ok(Self { looking, seen: BTreeMap::new() })
    }

    async fn see(&mut self, id: MemoryId) -> Result<bool> {
        if let Some(seen) = self.seen.get(&id) {
            return Ok(*seen);
        }
        let seen = match &self.looking {
            None => false,
            Some((agent, snapshot)) => snapshot.memory(id).await?.is_some_and(|memory| {
                let standing = Standing::of(agent, &memory.head);
                shown_memory(agent, memory, &standing).is_some()
            }),
        };
        self.seen.insert(id, seen);
        Ok(seen)
    }
}

//! What lies next to memories: links both ways, what was merged, and what took whose place.
//!
//! Every step is taken among what the caller may see, so that nothing hidden joins two memories.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use yore_domain::grant::Verb;
use yore_domain::scope::{Scope, ScopeRule};
use yore_domain::{Error, MemoryId, Result, limits};
use yore_policy::Need;
use yore_policy::redact::is_secret_to;
use yore_store::Snapshot;

use crate::call::Call;
use crate::engine::Engine;
use crate::run::{Session, Trace};

/// The furthest relations are followed.
pub const HOPS: u8 = 3;
/// Memories that are looked at around one; what lies behind so many is not near.
const MOST: usize = 256;

/// A memory that is related to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Neighbour {
    /// The memory that was asked about.
    pub of: MemoryId,
    /// The one near it.
    pub memory: MemoryId,
    /// The least number of steps between them.
    pub distance: u8,
}

impl Engine {
    /// Returns what is related to some memories, up to some steps away. All of it, and all that
    /// is on the way to it, lies in a scope.
    pub async fn neighbours(
        &self,
        call: &Call,
        of: Vec<MemoryId>,
        within: ScopeRule,
        hops: u8,
    ) -> Result<Vec<Neighbour>> {
        let need = Need::one("neighbours", Verb::Read);
        self.look(call, need, (of, within, hops), |_, session, snapshot, (of, within, hops)| {
            Box::pin(async move {
                let walk = Walk { session, snapshot, within };
                if *hops > HOPS {
                    return Err(Error::invalid("hops", "must be from 0 to 3"));
                }
                if of.len() > limits::PAGE {
                    return Err(Error::too_large("ids", limits::PAGE));
                }
                let mut near = Vec::new();
                for memory in of {
                    near.extend(walk.around(*memory, *hops).await?);
                }
                let trace = Trace::count(near.len());
                Ok((near, trace))
            })
        })
        .await
    }
}

/// Where a walk may go.
struct Walk<'a> {
    session: &'a Session,
    snapshot: &'a dyn Snapshot,
    within: &'a ScopeRule,
}

impl Walk<'_> {
    /// What is near one memory, the nearest first.
    async fn around(&self, of: MemoryId, hops: u8) -> Result<Vec<Neighbour>> {
        let mut near = Vec::new();
        if !self.is_open(of).await? {
            return Ok(near);
        }
        let mut seen = BTreeSet::from([of]);
        let mut edge = vec![of];
        for distance in 1..=hops {
            let mut next = Vec::new();
            for memory in edge {
                for found in self.beside(memory).await? {
                    if seen.len() > MOST || !seen.insert(found) {
                        continue;
                    }
                    if self.is_open(found).await? {
                        near.push(Neighbour { of, memory: found, distance });
                        next.push(found);
                    }
                }
            }
            edge = next;
        }
        Ok(near)
    }

    /// One step from a memory.
    async fn beside(&self, memory: MemoryId) -> Result<BTreeSet<MemoryId>> {
        let mut found: BTreeSet<MemoryId> =
            self.snapshot.related(memory).await?.into_iter().collect();
        for version in self.snapshot.history(memory).await? {
            found.extend(version.absorbs.iter().copied());
            found.extend(version.absorbed_by);
            if let Some(before) = version.replaces
                && let Some(before) = self.snapshot.version(before).await?
            {
                found.insert(before.memory);
            }
        }
        found.remove(&memory);
        Ok(found)
    }

    /// Whether a memory may be walked through: it is there, it lies in the scope, and neither
    /// consent nor a rule nor that it is a secret keeps anything of it from the caller, for that
    /// may be the very link.
    async fn is_open(&self, memory: MemoryId) -> Result<bool> {
        let Some(found) = self.snapshot.memory(memory).await? else { return Ok(false) };
        let content = &found.head.content;
        let session = self.session;
        let whole = session.viewer().withheld(&content.consent).is_empty()
            && session.kept.rule(&found.head).is_none()
            && !is_secret_to(session.permit.principal(), &found.head.class());
        Ok(whole && lies_within(self.within, &content.scope))
    }
}

fn lies_within(rule: &ScopeRule, scope: &Scope) -> bool {
    let ScopeRule { user, project, agent, visibility } = rule;
    (user.is_none() || *user == scope.user)
        && (project.is_none() || *project == scope.project)
        && (agent.is_none() || *agent == scope.agent)
        && visibility.is_none_or(|wanted| wanted == scope.visibility)
}

//! Short-term memory becomes long-term: what proves useful is promoted, what never did is let go.
//!
//! Short-term memory is every live memory of the kind `working`. What one agent remembers of one
//! person is a window. A pass scores every item of every window (`item.rs`) and carries out what
//! follows, item by item (`pass.rs`): each is one commit, under the condition that the item is still
//! the one that was scored. So two passes at once, or one that breaks off, do nothing twice.

mod item;
mod pass;

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use yore_domain::grant::Verb;
use yore_domain::{Error, HoldId, JobId, MemoryId, Result, Span, VaultId};
use yore_policy::Need;
use yore_rank::promote::{Balanced, Reference, Scorer};

use super::DryRun;
use crate::call::Call;
use crate::engine::Engine;
use crate::run::Trace;

pub(crate) use item::Window;
pub(crate) use pass::Pass;

/// Items a window holds; what comes on top of them is looked at right away.
pub const WINDOW: usize = 100;

/// How short-term memory becomes long-term, as the operator decides it.
#[derive(Clone, Debug)]
pub struct Consolidating {
    /// How far passes are apart; zero means that none runs by itself.
    pub every: Span,
    /// The score from which something is promoted.
    pub threshold: f64,
    /// Items a window holds.
    pub window: usize,
    /// The scorers there are; the first is meant where none is named.
    pub scorers: Vec<Arc<dyn Scorer>>,
}

impl Default for Consolidating {
    fn default() -> Self {
        Self {
            every: Span::seconds(60),
            threshold: 0.6,
            window: WINDOW,
            scorers: vec![Arc::new(Balanced), Arc::new(Reference)],
        }
    }
}

impl Consolidating {
    /// The scorer of a name, or the usual one.
    pub(crate) fn scorer(&self, name: Option<&str>) -> Result<Arc<dyn Scorer>> {
        let named = |scorer: &&Arc<dyn Scorer>| name.is_none_or(|name| scorer.name() == name);
        self.scorers.iter().find(named).cloned().ok_or_else(|| {
            let known: Vec<&str> = self.scorers.iter().map(|scorer| scorer.name()).collect();
            Error::invalid("scorer", format!("must be one of {}", known.join(", ")))
        })
    }

    /// Makes the scorer of a name the usual one.
    pub fn prefer(&mut self, name: &str) -> Result<()> {
        let preferred = self.scorer(Some(name))?;
        self.scorers.retain(|scorer| scorer.name() != name);
        self.scorers.insert(0, preferred);
        Ok(())
    }
}

/// Which short-term memory a pass looks at, and how.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Consolidation {
    /// Only this agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only this person's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The scorer; absent means the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scorer: Option<String>,
    /// The score from which something is promoted; absent means the usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
}

/// What becomes of an item.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// It becomes a semantic memory.
    Promote,
    /// Long-term memory says exactly this already: it becomes part of that.
    Merge,
    /// It is forgotten, and can be restored.
    Evict,
    /// It stays where it is.
    Keep,
    /// A rule lets a person decide.
    Hold,
    /// A rule forbids it, or it failed; it stays where it is.
    Refuse,
    /// Somebody else changed it meanwhile.
    Moved,
}

impl Fate {
    /// Returns the word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Promote => "promote",
            Self::Merge => "merge",
            Self::Evict => "evict",
            Self::Keep => "keep",
            Self::Hold => "hold",
            Self::Refuse => "refuse",
            Self::Moved => "moved",
        }
    }

    /// Whether the item leaves short-term memory.
    const fn leaves(self) -> bool {
        matches!(self, Self::Promote | Self::Merge | Self::Evict | Self::Moved)
    }
}

/// One part of a score.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScorePart {
    /// What it measures.
    pub name: String,
    /// What was measured, from 0 to 1.
    pub value: f64,
    /// How much it counts.
    pub weight: f64,
}

/// An item with its score and what became of it, or would.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scored {
    /// The memory.
    pub memory: MemoryId,
    /// The agent whose memory it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The person it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The beginning of what it says.
    pub text: String,
    /// The score, from 0 to 1.
    pub score: f64,
    /// What the score is made of; an item that could not be scored has nothing.
    pub parts: Vec<ScorePart>,
    /// What became of it, or would.
    pub fate: Fate,
    /// Why.
    pub why: String,
    /// Where it waits for a decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<HoldId>,
}

/// What a pass did, or would do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Consolidated {
    /// The scorer that was used.
    pub scorer: String,
    /// The score from which something was promoted.
    pub threshold: f64,
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// The job, when something was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobId>,
    /// How many met which fate.
    pub fates: BTreeMap<Fate, u64>,
    /// Each item, by window, the best first.
    pub items: Vec<Scored>,
}

impl Consolidated {
    /// How many met a fate.
    #[must_use]
    pub fn count(&self, fate: Fate) -> u64 {
        self.fates.get(&fate).copied().unwrap_or_default()
    }

    /// How many items are left in each window.
    pub(crate) fn left(&self) -> BTreeMap<Window, usize> {
        let mut left = BTreeMap::new();
        for item in self.items.iter().filter(|item| !item.fate.leaves()) {
            let window = Window { agent: item.agent.clone(), user: item.user.clone() };
            *left.entry(window).or_default() += 1;
        }
        left
    }

    fn push(&mut self, item: Scored) {
        *self.fates.entry(item.fate).or_default() += 1;
        self.items.push(item);
    }
}

impl Engine {
    /// Looks through short-term memory now, and does what follows unless it is only asked. The
    /// pass itself is the server's work, audited under its own name.
    pub async fn consolidate(
        &self,
        call: &Call,
        asked: Consolidation,
        dry_run: DryRun,
    ) -> Result<Consolidated> {
        let session = self.enter(call, Need::one("consolidate", Verb::Admin)).await?;
        let vault = session.permit.vault();
        let done = async {
            let mut pass = Pass::new(self, vault, asked)?;
            let done = match dry_run {
                DryRun::Yes => pass.weigh_all().await?,
                DryRun::No => pass.run().await?,
            };
            self.0.work.touch(vault);
            let mut trace = Trace::count(done.items.len()).with("dry_run", done.dry_run);
            for (fate, count) in &done.fates {
                trace = trace.with(fate.as_str(), *count);
            }
            Ok((done, trace))
        };
        let done = done.await;
        self.leave(call, &session, done).await
    }

    /// Finishes what was broken off, then makes a pass over everything.
    pub(crate) async fn consolidate_all(&self, vault: VaultId) -> Result<Consolidated> {
        for job in pass::unfinished(self, vault).await? {
            if let Some(mut pass) = Pass::resumed(self, vault, job).await? {
                pass.run().await?;
            }
        }
        Pass::new(self, vault, Consolidation::default())?.run().await
    }
}

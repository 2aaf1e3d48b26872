//! What the owner's rules keep from an agent that reads, and what it was let read for a while.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use yore_domain::hold::{Rule, RuleAction};
use yore_domain::memory::Version;
use yore_domain::{Error, MemoryId, Result, Timestamp};
use yore_policy::redact::Viewer;
use yore_policy::rules::{is_about_reading, withholding};
use yore_store::Snapshot;

use crate::run::Session;

/// Memories that were withheld, with the number of their version, by the rule that withheld them.
pub(crate) type Withheld = BTreeMap<String, Vec<(MemoryId, u32)>>;

/// The rules about reading and the exceptions from them.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    rules: Vec<Rule>,
    passes: Vec<Pass>,
    agent: Option<String>,
}

/// Leave to read some memories for a while, although a rule keeps them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pass {
    /// The rule.
    pub(crate) rule: String,
    /// The memories.
    pub(crate) memories: Vec<MemoryId>,
    /// Until when.
    pub(crate) until: Timestamp,
}

impl Kept {
    /// What is kept from a caller. Nothing is kept from the owner.
    pub(crate) async fn of(session: &Session, snapshot: &dyn Snapshot) -> Result<Self> {
        if session.viewer() == Viewer::Own {
            return Ok(Self::default());
        }
        let mut rules = snapshot.rules().await?;
        rules.retain(is_about_reading);
        let agent = session.permit.principal().agent().map(str::to_owned);
        let passes = match &agent {
            Some(agent) if !rules.is_empty() => passes(snapshot, agent).await?.1,
            Some(_) | None => Vec::new(),
        };
        let passes = passes.into_iter().filter(|pass| session.now < pass.until).collect();
        Ok(Self { rules, passes, agent })
    }

    /// The rule that keeps a version from the caller.
    pub(crate) fn rule(&self, version: &Version) -> Option<&Rule> {
        let rule = withholding(&self.rules, self.agent.as_deref(), &version.content)?;
        let lifts = |pass: &Pass| pass.rule == rule.name && pass.memories.contains(&version.memory);
        let lifted = rule.action == RuleAction::Hold && self.passes.iter().any(lifts);
        (!lifted).then_some(rule)
    }
}

/// The setting that holds what an agent was let read.
pub(crate) fn passes_of(agent: &str) -> String {
    format!("passes:{agent}")
}

/// What an agent was let read, as it is kept and as it is meant.
pub(crate) async fn passes(
    snapshot: &dyn Snapshot,
    agent: &str,
) -> Result<(Option<serde_json::Value>, Vec<Pass>)> {
    let kept = snapshot.setting(&passes_of(agent)).await?;
    let passes = match &kept {
        Some(value) => serde_json::from_value(value.clone()).map_err(Error::internal)?,
        None => Vec::new(),
    };
    Ok((kept, passes))
}

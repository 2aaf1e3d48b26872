//! Operations that wait for a person, and the rules that make them wait.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::class::{Label, Sensitivity};
use crate::kind::Kind;
use crate::learned::Cluster;
use crate::memory::Draft;
use crate::mutation::{Mutation, Patch};
use crate::sensitive::Finding;
use crate::{GrantId, HoldId, MemoryId, Timestamp};

/// Why something waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HoldReason {
    /// The caller asked for approval.
    Requested,
    /// A rule of the owner's asks for it.
    Rule(String),
    /// It looks like something already known.
    NearDuplicate(MemoryId),
    /// It speaks against something already known.
    Contradiction(MemoryId),
    /// Two sides changed the same thing.
    SyncConflict(MemoryId),
    /// It has not been of use, or its use went badly.
    Unhelpful,
}

/// Where a hold stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HoldState {
    /// Nobody has decided.
    #[default]
    Pending,
    /// Approved and carried out.
    Approved,
    /// Turned down.
    Rejected,
    /// Nobody decided in time.
    Expired,
}

/// One line of what approval would change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiffLine {
    /// The member, dotted.
    pub field: String,
    /// What it is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<serde_json::Value>,
    /// What it would become.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<serde_json::Value>,
}

/// An operation that waits for a decision. It has no version until it is approved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hold {
    /// Its id.
    pub id: HoldId,
    /// What was asked for.
    pub mutation: Mutation,
    /// Why it waits.
    pub reason: HoldReason,
    /// Why it was proposed, where nobody asked for it; never contains text of a memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// What approval would change, against the heads it was judged by.
    pub diff: Vec<DiffLine>,
    /// The heads it was judged by.
    pub judged: Vec<(MemoryId, u32)>,
    /// The agent that asked; absent for the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The grant it asked under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantId>,
    /// The protocol it came in by.
    pub protocol: String,
    /// When it was asked.
    pub asked: Timestamp,
    /// When it lapses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// Where it stands.
    #[serde(default)]
    pub state: HoldState,
    /// Who decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<Timestamp>,
    /// What the decider said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The memory that approval made or changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<MemoryId>,
    /// What it has in common with others, where decisions on it may be learned from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<Cluster>,
    /// The learned rule that decided it, while no person has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learned: Option<String>,
}

/// What a matching rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RuleAction {
    /// Wait for a person.
    Hold,
    /// Turn it down.
    Refuse,
    /// Let it through even if a later rule would hold it.
    Allow,
}

/// What a rule asks of the privacy that a writer states. All members that are set must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Privacy {
    /// Whether anything is stated: how long to keep it, whom to show it, which consent it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stated: Option<bool>,
    /// Whether it says how long it may be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<bool>,
    /// Whether it names the consent it rests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<bool>,
    /// An agent it shall be shown to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_with: Option<String>,
}

/// A rule of the owner's. All members that are set must match. Those that name `recall` among
/// their operations are about what agents read, all others about what is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rule {
    /// Its name; unique in the vault.
    pub name: String,
    /// What it does.
    pub action: RuleAction,
    /// Which operations, by name; empty means every write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<String>,
    /// The agent that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The stated source or method of the draft.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The kind written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// A label written, or an ancestor of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    /// At least this sensitive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_sensitivity: Option<Sensitivity>,
    /// Words of which one occurs in the text, case folded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// Sorts of secrets and personal data of which one is found in the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub detects: Vec<Finding>,
    /// What the writer states about privacy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub privacy: Option<Privacy>,
    /// Whether it was learned from decisions rather than written.
    #[serde(default)]
    pub learned: bool,
    /// Whether it is switched off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub off: bool,
}

impl Rule {
    /// A rule that matches every write.
    #[must_use]
    pub fn new(name: impl Into<String>, action: RuleAction) -> Self {
        Self {
            name: name.into(),
            action,
            operations: Vec::new(),
            agent: None,
            source: None,
            kind: None,
            label: None,
            from_sensitivity: None,
            words: Vec::new(),
            detects: Vec::new(),
            privacy: None,
            learned: false,
            off: false,
        }
    }
}

impl Hold {
    /// Takes back what was asked for, and every word of it; that something was asked stays.
    pub fn withdraw(&mut self, at: Timestamp) {
        match &mut self.mutation {
            Mutation::Remember { draft, .. } => {
                **draft = Draft::new(draft.content.kind, String::new());
            }
            Mutation::Revise { patch, .. } => **patch = Patch::default(),
            Mutation::Forget { reason, .. } => *reason = None,
            Mutation::Relabel { .. }
            | Mutation::Merge { .. }
            | Mutation::Restore { .. }
            | Mutation::Disclose { .. } => {}
        }
        self.cluster = None;
        self.diff.clear();
        self.note = None;
        if self.state == HoldState::Pending {
            self.state = HoldState::Expired;
            self.decided = Some(at);
        }
    }
}

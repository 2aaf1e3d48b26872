//! Everything that can change memories, as values: what is judged, held, approved and planned.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::class::Governance;
use crate::consent::Consent;
use crate::kind::{Facet, Kind};
use crate::memory::{Body, Draft, Foreign, Lifecycle, Relation, Status};
use crate::provenance::Provenance;
use crate::scope::Scope;
use crate::{MemoryId, Span, Timestamp, VersionId};

/// How deep forgetting goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Depth {
    /// Out of recall; the text stays and can be restored.
    Tombstone,
    /// Out of recall as suspicious, until somebody has looked at it.
    Quarantine,
    /// The text leaves every version, index, journal and, in time, every backup.
    Erase,
}

/// What a revision changes. Absent members stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Patch {
    /// Replaces the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Body>,
    /// Replaces the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// Replaces the facet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facet: Option<Facet>,
    /// Replaces the lifecycle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifecycle: Option<Lifecycle>,
    /// Replaces the links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relations: Option<Vec<Relation>>,
    /// Replaces the tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Replaces the provenance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
    /// Replaces labels, sensitivity and handling, where what is said and who may see it change
    /// together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governance: Option<Governance>,
    /// From when the successor is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<Timestamp>,
    /// Until when the successor is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_to: Option<Timestamp>,
    /// Replaces a protocol's own members; absent protocols stay.
    #[serde(default, skip_serializing_if = "Foreign::is_empty")]
    pub foreign: Foreign,
    /// Whether the producer calls it settled now: active or candidate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// When the successor was made; absent means now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    /// The id the successor shall have, where that follows from what it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<VersionId>,
}

/// What a relabelling changes. Absent members stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Relabel {
    /// Replaces labels, sensitivity and handling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governance: Option<Governance>,
    /// Replaces the place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// Replaces the consent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<Consent>,
}

/// How duplicates become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MergeStrategy {
    /// The canonical memory stays as it is.
    #[default]
    KeepCanonical,
    /// Texts are joined, metadata united.
    MergeContent,
    /// The most confident one survives; on a tie the older.
    KeepHighestConfidence,
}

/// Which memories an expiry policy takes. All members that are set must hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExpiryPolicy {
    /// Made at least this long ago.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older_than: Option<Span>,
    /// Of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// Less sure than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence_below: Option<f64>,
    /// Not returned by recall for this long, or never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unused_for: Option<Span>,
}

impl ExpiryPolicy {
    /// Whether it demands nothing, which is refused: it would take everything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What expiry does to what it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ExpiryAction {
    /// Tombstones.
    #[default]
    Forget,
    /// Tombstones and marks as archived.
    Archive,
    /// Ranks at a quarter from now on.
    Demote,
}

/// A change somebody asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Mutation {
    /// Store something new.
    Remember {
        /// What.
        draft: Box<Draft>,
        /// The id to use, when the caller may choose one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<MemoryId>,
    },
    /// Append a changed version.
    Revise {
        /// Which memory.
        memory: MemoryId,
        /// What changes.
        patch: Box<Patch>,
        /// The head the caller saw, when it must not have moved.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expected: Option<u32>,
    },
    /// Append a version with other labels, scope or consent.
    Relabel {
        /// Which memory.
        memory: MemoryId,
        /// What changes.
        change: Box<Relabel>,
    },
    /// Forget some memories.
    Forget {
        /// Which.
        memories: Vec<MemoryId>,
        /// How deep.
        depth: Depth,
        /// Why, for the audit chain's reader; never contains text of the memory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Make several memories one.
    Merge {
        /// The one that stays, unless the strategy says otherwise.
        canonical: MemoryId,
        /// The others.
        duplicates: Vec<MemoryId>,
        /// How.
        strategy: MergeStrategy,
    },
    /// Put back an earlier version as the new head.
    Restore {
        /// Which memory.
        memory: MemoryId,
        /// The version to bring back.
        number: u32,
    },
    /// Let an agent read for a while what a rule keeps from it.
    Disclose {
        /// Which.
        memories: Vec<MemoryId>,
        /// The rule, by name.
        rule: String,
        /// The agent.
        agent: String,
    },
}

impl Mutation {
    /// Returns the name the audit chain and rules use.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Remember { .. } => "remember",
            Self::Revise { .. } => "revise",
            Self::Relabel { .. } => "relabel",
            Self::Forget { .. } => "forget",
            Self::Merge { .. } => "merge",
            Self::Restore { .. } => "restore",
            Self::Disclose { .. } => "recall",
        }
    }

    /// Lists the existing memories it touches.
    #[must_use]
    pub fn targets(&self) -> Vec<MemoryId> {
        match self {
            Self::Remember { .. } => Vec::new(),
            Self::Revise { memory, .. }
            | Self::Relabel { memory, .. }
            | Self::Restore { memory, .. } => vec![*memory],
            Self::Forget { memories, .. } | Self::Disclose { memories, .. } => memories.clone(),
            Self::Merge { canonical, duplicates, .. } => {
                std::iter::once(*canonical).chain(duplicates.iter().copied()).collect()
            }
        }
    }
}

/// Free-form members that a request carried for people and rules to see.
pub type Annotations = Map<String, Value>;

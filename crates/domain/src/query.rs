//! Questions to a vault: filters, pages and searches.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::class::{Label, Sensitivity};
use crate::kind::{Facet, Kind};
use crate::memory::Status;
use crate::scope::{Scope, ScopeRule};
use crate::{ConversationId, Timestamp};

/// What a result must be like. All members that are set must hold; lists mean any of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Filter {
    /// Any of these kinds.
    pub kinds: Vec<Kind>,
    /// Any of these facets.
    pub facets: Vec<Facet>,
    /// Any of these states; empty means the live ones.
    pub statuses: Vec<Status>,
    /// This scope where set.
    pub scope: ScopeRule,
    /// What becomes of a memory that lacks a member of the scope or a session.
    pub scope_match: ScopeMatch,
    /// This session.
    pub session: Option<String>,
    /// Any of these declared labels, exactly.
    pub labels: Vec<Label>,
    /// Any of these declared classes.
    pub sensitivities: Vec<Sensitivity>,
    /// All of these tags.
    pub tags: Vec<String>,
    /// Made at or after this.
    pub from: Option<Timestamp>,
    /// Made before this.
    pub until: Option<Timestamp>,
    /// At least this sure.
    pub min_confidence: Option<f64>,
    /// The source the producer stated.
    pub source: Option<String>,
    /// The platform, for conversations.
    pub platform: Option<String>,
    /// The model, for conversations.
    pub model: Option<String>,
    /// This conversation only.
    pub conversation: Option<ConversationId>,
    /// Equal members of the structured body or of a protocol's own members, by dotted path.
    pub members: BTreeMap<String, Value>,
    /// True at this time; absent means now.
    pub valid_at: Option<Timestamp>,
    /// As the vault stood at this time; absent means now.
    pub as_of: Option<Timestamp>,
}

/// What a filter by scope does with what has no such scope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScopeMatch {
    /// It must have each member that is asked for.
    #[default]
    Exact,
    /// What lacks a member belongs everywhere; only another value keeps it out.
    OrAbsent,
}

/// What to search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Corpus {
    /// Memories.
    #[default]
    Memories,
    /// Messages of conversations.
    Messages,
    /// Both, ranked together.
    Both,
}

/// Which models recall may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// The static table alone: microseconds.
    Instant,
    /// The transformer too: milliseconds.
    #[default]
    Balanced,
}

/// A preference of the caller's that moves ranking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Hint {
    /// Newer first.
    Recency,
    /// What matters more first.
    Salience,
    /// What is surer first.
    Confidence,
    /// What lies closer to the asked scope first.
    ScopeMatch,
    /// What rests on more evidence first.
    Provenance,
    /// Closer in meaning first, everything else less.
    Similarity,
}

/// A recall.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recall {
    /// The question.
    pub query: String,
    /// What to search.
    #[serde(default)]
    pub corpus: Corpus,
    /// What results must be like.
    #[serde(default)]
    pub filter: Filter,
    /// The scope the caller speaks from; closer memories rank higher.
    #[serde(default)]
    pub near: Scope,
    /// How many results.
    pub limit: usize,
    /// Which models.
    #[serde(default)]
    pub effort: Effort,
    /// Preferences.
    #[serde(default)]
    pub prefer: Vec<Hint>,
    /// Whether results below the relevance cutoff are left out.
    #[serde(default)]
    pub cutoff: Cutoff,
}

/// What to do with results that are not relevant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Cutoff {
    /// Answer nothing where nothing is relevant, and fill up to the limit otherwise.
    #[default]
    Calibrated,
    /// Leave out each of them, even if nothing remains.
    Each,
    /// Fill up to the limit.
    Off,
}

/// In which order a list comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Newest first.
    #[default]
    NewestFirst,
    /// Oldest first.
    OldestFirst,
}

/// A page of a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PageRequest {
    /// How many rows.
    pub limit: usize,
    /// After this position, as the previous page gave it.
    pub after: Option<Position>,
    /// Skip this many visible rows, for protocols that count.
    pub offset: usize,
    /// The order.
    pub order: Order,
}

/// A place in an order that no hidden row can shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Position {
    /// The time the order sorts by.
    pub at: Timestamp,
    /// The id that breaks ties.
    pub id: [u8; 16],
}

/// Some rows and where the next ones are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Page_of_{T}")]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Where to go on, when there is more.
    pub next: Option<Position>,
}

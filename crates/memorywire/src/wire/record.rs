//! Stored records, a schema for each type.
//!
//! What a record has beyond what every record has may be sent along with a remember; it is kept
//! and comes back with the hits.

use schemars::JsonSchema;
use serde::Deserialize;
use yore_domain::procedure::Machine;

use super::{Object, Sentiment, Type, certain};

/// What every record has.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Common {
    /// The memory.
    #[schemars(length(min = 1))]
    pub id: String,
    /// The agent whose memory it is.
    #[schemars(length(min = 1, max = 256))]
    pub agent_id: String,
    /// The person it is about or was said by.
    #[schemars(length(max = 256))]
    pub user_id: Option<String>,
    /// What sort of memory it is.
    #[serde(rename = "type")]
    pub kind: Type,
    /// What was said about it.
    pub metadata: Option<Object>,
    /// How sure it is.
    #[serde(default = "certain")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: f64,
    /// Where it comes from.
    pub source: Option<String>,
    /// When it was made, in milliseconds since 1970.
    pub created_at: i64,
    /// When it last changed.
    pub updated_at: Option<i64>,
    /// From when it is no longer recalled.
    pub expires_at: Option<i64>,
}

/// A fact.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Semantic {
    /// What every record has.
    #[serde(flatten)]
    pub common: Common,
    /// What it says.
    pub content: String,
}

/// Something that happened.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Episodic {
    /// What every record has.
    #[serde(flatten)]
    pub common: Common,
    /// What it says.
    pub content: String,
    /// When it happened, in milliseconds since 1970.
    pub event_time: Option<i64>,
    /// Where it happened.
    pub location: Option<String>,
    /// Who was there.
    pub participants: Option<Vec<String>>,
}

/// How something felt.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Emotional {
    /// What every record has.
    #[serde(flatten)]
    pub common: Common,
    /// What it says.
    pub content: String,
    /// Whether it felt good.
    pub sentiment: Option<Sentiment>,
    /// How good it felt.
    #[schemars(range(min = -1.0, max = 1.0))]
    pub valence: Option<f64>,
    /// How strong it felt.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub arousal: Option<f64>,
    /// What it felt like.
    pub emotion: Option<String>,
    /// What it was about.
    pub target: Option<String>,
}

/// How to do something. In a request and a hit the machine travels as JSON text.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Procedural {
    /// What every record has.
    #[serde(flatten)]
    pub common: Common,
    /// The machine.
    pub content: Machine,
}

//! Where a memory came from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ConversationId, MessageId, Timestamp};

/// Who or what made a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ActorKind {
    /// The person.
    #[default]
    User,
    /// An agent on the person's behalf.
    Agent,
    /// A model's own inference.
    Model,
    /// An import from elsewhere.
    Import,
    /// A scan of existing files.
    Scan,
}

/// The origin of a version.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// The name or DID of who made it.
    #[serde(default)]
    pub actor: String,
    /// What sort of actor.
    #[serde(default)]
    pub actor_kind: ActorKind,
    /// How it came about, in the producer's word.
    #[serde(default)]
    pub method: String,
    /// A reference to the source, such as a file or a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The vendor it was imported from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// What it rests on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// The messages it was drawn from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<MessageRef>,
    /// When the source spoke, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// One piece of evidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// What is cited.
    pub reference: String,
    /// How much it counts, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
}

/// A message inside the vault that a memory was drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MessageRef {
    /// Its conversation.
    pub conversation: ConversationId,
    /// The message.
    pub message: MessageId,
}

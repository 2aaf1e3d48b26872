//! The audit chain: one entry per attempt, each bound to the one before it.
//!
//! An entry holds ids and salted hashes, never text. Erasing a version destroys its salt,
//! so the hash that stays proves nothing about the text any more.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{GrantId, HoldId, MemoryId, Seq, Timestamp};

/// Who acted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Actor {
    /// The vault's owner.
    Owner,
    /// An agent under a grant.
    Agent {
        /// Its name.
        agent: String,
        /// The grant.
        grant: GrantId,
    },
    /// A service acting for the owner.
    Service {
        /// The token's note or id.
        name: String,
    },
    /// The server's own work.
    System {
        /// Why.
        reason: String,
    },
    /// Nobody in particular: a public read.
    Anonymous,
    /// A credential that did not verify.
    Unknown,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "result", rename_all = "lowercase")]
pub enum Outcome {
    /// It was done.
    Done,
    /// It waits for a decision.
    Held {
        /// The hold.
        hold: HoldId,
    },
    /// It was turned down.
    Refused {
        /// The stable code of the refusal.
        code: String,
    },
}

/// A memory an entry speaks of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// The memory.
    pub memory: MemoryId,
    /// The version's number after the operation, or the one read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// The salted hash of the version's text, for writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// What an entry will say; the store adds number, link and hash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Draft {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: Actor,
    /// By which protocol.
    pub protocol: String,
    /// Which operation.
    pub operation: String,
    /// How it ended.
    pub outcome: Outcome,
    /// What it touched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<Target>,
    /// The request it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Where the request came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The entry this one follows from, such as the decision behind a write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<Seq>,
    /// Counts and flags; never text of a memory or a query.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub detail: Map<String, Value>,
}

/// One link of the chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// Its number; no number is missing.
    pub seq: Seq,
    /// What it says.
    #[serde(flatten)]
    pub draft: Draft,
    /// The hash of the entry before it, in hex; empty for the first.
    pub previous: String,
    /// The hash of this entry and of the one before it, in hex.
    pub hash: String,
}

/// A signed statement of where the chain stood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    /// The last entry covered.
    pub seq: Seq,
    /// Its hash.
    pub hash: String,
    /// When it was signed.
    pub at: Timestamp,
    /// The signer's DID.
    pub signer: String,
    /// The signature over seq, hash and time.
    pub signature: String,
}

/// What a verification of the chain found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// How many entries were read.
    pub entries: u64,
    /// How many checkpoints verified.
    pub checkpoints: u64,
    /// Faults, each with the number it was found at.
    pub faults: Vec<Fault>,
}

/// A fault in the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fault {
    /// Where.
    pub seq: Seq,
    /// What.
    pub what: String,
}

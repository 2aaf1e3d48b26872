//! Requests and answers, as the schemas describe them.
//!
//! Requests may have more members than are known; answers have exactly these, but for the hits
//! of a recall. Their schemas demand of an answer what the protocol demands, which is less than
//! what is always there. No error repeats a value.

pub mod governance;
mod look;
mod read;
pub mod record;
mod recover;
mod word;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use yore_domain::{Error, Result, limits};
use yore_router::envelope::Envelope;

pub use look::{List, Listed, Near, Neighbour, Neighbours};
pub(crate) use read::read;
pub use recover::{Deed, Recover, Recovered, Restore, Restored};
pub use word::{Action, Answered, Fusion, Mode, Sentiment, Strategy, Type, Verdict};

/// Members of a document.
pub type Object = Map<String, Value>;

/// Results of a recall when the caller does not say.
const RESULTS: u32 = 5;
/// The furthest a recall may hop.
const HOPS: u8 = yore_engine::HOPS;
/// The most stores a recall may demand agreement of.
const STORES: u32 = 100;

/// Stores what an agent learned.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Remember {
    /// The agent whose memory it is.
    #[schemars(length(min = 1, max = 256))]
    pub agent_id: String,
    /// What sort of memory it is.
    #[serde(rename = "type")]
    pub kind: Type,
    /// What to remember; a procedural memory is a state machine as JSON text.
    #[schemars(length(min = 1))]
    pub content: String,
    /// The person it is about or was said by.
    #[schemars(length(min = 1, max = 256))]
    pub user_id: Option<String>,
    /// Says that no person is meant, where the server wants one to be named.
    #[serde(default)]
    pub agent_only: bool,
    /// Anything; filters find it by its members.
    pub metadata: Option<Object>,
    /// How sure it is.
    #[serde(default = "certain")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: f64,
    /// Where it comes from.
    pub source: Option<String>,
    /// From when it is no longer recalled, in milliseconds since 1970.
    pub expires_at: Option<i64>,
    /// Whether a person shall approve it first.
    #[serde(default)]
    pub approval_required: bool,
    /// Whether it goes into short-term memory: there it counts as episodic, and in time it
    /// becomes semantic if it proves useful, or is forgotten.
    #[serde(default)]
    pub short_term: bool,
    /// How important it is.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub importance: Option<f64>,
    /// How long it may be kept, who may be shown it, and on which consent it rests.
    pub privacy_intent: Option<PrivacyIntent>,
    /// What else a record has, such as `event_time` or `sentiment`; it is kept.
    #[serde(flatten)]
    pub extra: Object,
}

/// What was agreed on with the person.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct PrivacyIntent {
    /// How long it may be kept from now on: `30d`, `12h`, or an ISO 8601 duration.
    pub retain: Option<String>,
    /// The agents that may be shown it besides its own; an empty list means none.
    #[schemars(length(max = 64))]
    pub share_with: Option<Vec<String>>,
    /// The record of the person's consent, kept as it is.
    #[schemars(length(min = 1, max = 256))]
    pub user_consent_id: Option<String>,
}

/// Finds what answers a question.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Recall {
    /// The agent whose memory is searched.
    #[schemars(length(min = 1, max = 256))]
    pub agent_id: String,
    /// The question.
    #[schemars(length(min = 1))]
    pub query: String,
    /// Only what is this person's.
    #[schemars(length(min = 1, max = 256))]
    pub user_id: Option<String>,
    /// Says that no person is meant, where the server wants one to be named.
    #[serde(default)]
    pub agent_only: bool,
    /// How many results at most.
    #[serde(default = "some_results")]
    #[schemars(range(min = 1, max = 1000))]
    pub k: u32,
    /// Only these types; none means all.
    pub types: Option<Vec<Type>>,
    /// How far related memories may lift each other.
    #[serde(default)]
    #[schemars(range(min = 0, max = 3))]
    pub hops: u8,
    /// How the lists of several stores become one.
    #[serde(default)]
    pub fusion: Fusion,
    /// Members that must be equal, all of them: `agent_id`, `user_id`, `type`, `source`,
    /// `confidence`, and anything else as a dotted path in the metadata.
    pub filter: Option<Object>,
    /// Only what was made in the last so many days.
    pub fresher_than_days: Option<u64>,
    /// How many stores must have a memory before it counts.
    #[serde(default = "one_store")]
    #[schemars(range(min = 1, max = 100))]
    pub quorum_k: u32,
    /// Sign every result, for a store of this name: the one under which the asker knows this
    /// server.
    #[schemars(length(min = 1, max = 256))]
    pub sign_as: Option<String>,
    /// Whether the answer says how each store did.
    #[serde(default)]
    pub report: bool,
}

/// Takes memories out of recall, or removes them for good.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Forget {
    /// The agent whose memory it is.
    #[schemars(length(min = 1, max = 256))]
    pub agent_id: String,
    /// Only what is this person's.
    #[schemars(length(min = 1, max = 256))]
    pub user_id: Option<String>,
    /// Says that no person is meant, where the server wants one to be named.
    #[serde(default)]
    pub agent_only: bool,
    /// These memories.
    pub ids: Option<Vec<String>>,
    /// And those that a filter finds, in the words of recall's.
    pub filter: Option<Object>,
    /// Whether nothing of them shall be left.
    #[serde(default)]
    pub hard_delete: bool,
    /// Why.
    pub reason: Option<String>,
    /// Whether a person shall approve it first.
    #[serde(default)]
    pub approval_required: bool,
}

/// Makes several memories one.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Merge {
    /// The agent whose memory it is.
    #[schemars(length(min = 1, max = 256))]
    pub agent_id: String,
    /// Only what is this person's.
    #[schemars(length(min = 1, max = 256))]
    pub user_id: Option<String>,
    /// Says that no person is meant, where the server wants one to be named.
    #[serde(default)]
    pub agent_only: bool,
    /// What stays: an id, or the `entity_name` in the metadata.
    #[schemars(length(min = 1))]
    pub canonical: String,
    /// What becomes part of it, named likewise.
    #[schemars(length(min = 1))]
    pub duplicates: Vec<String>,
    /// How.
    #[serde(default)]
    pub strategy: Strategy,
    /// Whether a person shall approve it first.
    #[serde(default)]
    pub approval_required: bool,
}

/// Forgets, archives or demotes what a policy describes.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct Expire {
    /// The agent whose memory it is.
    #[schemars(length(min = 1, max = 256))]
    pub agent_id: String,
    /// Only what is this person's.
    #[schemars(length(min = 1, max = 256))]
    pub user_id: Option<String>,
    /// Says that no person is meant, where the server wants one to be named.
    #[serde(default)]
    pub agent_only: bool,
    /// What it takes; it must demand something.
    #[schemars(required)]
    pub policy: Option<Policy>,
    /// What happens to it.
    #[serde(default)]
    pub action: Action,
}

/// Which memories an expiry takes. All members that are set must hold.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct Policy {
    /// Made at least so many days ago.
    #[schemars(range(min = 1))]
    pub older_than_days: Option<u64>,
    /// Of this type.
    #[serde(rename = "type")]
    pub kind: Option<Type>,
    /// Less sure than this.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence_below: Option<f64>,
    /// Not recalled for so many days, or never.
    #[schemars(range(min = 1))]
    pub no_recall_in_days: Option<u64>,
}

/// What became of a remember.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, extend("required" = ["id", "stored_at", "stores", "pending_approval"]))]
pub struct Remembered {
    /// The memory; while it waits, a name under which it will be found once it is approved.
    #[schemars(length(min = 1))]
    pub id: String,
    /// When, in milliseconds since 1970.
    pub stored_at: i64,
    /// The stores that took it; none while it waits.
    pub stores: Vec<String>,
    /// Whether it waits for a person.
    pub pending_approval: bool,
    /// Where the person decides.
    pub approval_url: Option<String>,
}

/// What a recall found.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(
    deny_unknown_fields,
    extend("required" = ["results", "fusion_used", "stores_queried", "latency_ms"])
)]
pub struct Recalled {
    /// The best first.
    pub results: Vec<Hit>,
    /// How lists became one.
    pub fusion_used: Fusion,
    /// The stores that were asked.
    pub stores_queried: Vec<String>,
    /// How long it took.
    pub latency_ms: u64,
    /// Whether it waits for a person if the agent may read some of what answers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pending_approval: bool,
    /// Where the person decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_url: Option<String>,
    /// How each store did, where the request asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stores: Option<Vec<StoreStatus>>,
}

/// How a store did in a recall.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StoreStatus {
    /// The store.
    pub store: String,
    /// Whether it answered.
    pub status: Answered,
    /// How many of its memories were weighed.
    pub count: u64,
}

/// One result of a recall.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(extend("required" = ["id", "type", "content", "score"]))]
pub struct Hit {
    /// What else was kept of the record. It stands first, so that it can replace nothing below.
    #[serde(flatten)]
    pub extra: Object,
    /// The memory.
    pub id: String,
    /// The agent whose memory it is.
    pub agent_id: String,
    /// What sort of memory it is.
    #[serde(rename = "type")]
    pub kind: Type,
    /// What it says.
    pub content: String,
    /// How well it answers; comparable within one answer only.
    pub score: f64,
    /// What was said about it.
    pub metadata: Object,
    /// When it was made, in milliseconds since 1970.
    pub created_at: i64,
    /// When it last changed.
    pub updated_at: i64,
    /// The memories that lifted it.
    pub supporting: Vec<String>,
    /// The store that had it.
    pub source_store: String,
    /// How sure it is.
    pub confidence: f64,
    /// The person it is about or was said by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// Where it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// From when it is no longer recalled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
    /// How important it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub importance: Option<f64>,
    /// Whether it is in short-term memory.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub short_term: bool,
    /// When it was last recalled, where results are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_recalled_at: Option<i64>,
    /// This server's signature under it, where the request asks for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub envelope: Option<Envelope>,
}

/// What became of a forget.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, extend("required" = ["forgotten_ids", "hard_delete", "stores"]))]
pub struct Forgotten {
    /// What is forgotten; nothing while it waits.
    pub forgotten_ids: Vec<String>,
    /// Whether nothing of them is left.
    pub hard_delete: bool,
    /// How many in each store.
    pub stores: Vec<StoreCount>,
    /// Whether it waits for a person.
    pub pending_approval: bool,
    /// Where the person decides.
    pub approval_url: Option<String>,
}

/// How much a store forgot.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, extend("required" = ["store", "count"]))]
pub struct StoreCount {
    /// The store.
    pub store: String,
    /// How many.
    pub count: u64,
    /// Why it failed.
    pub error: Option<String>,
}

/// What became of a merge.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(extend("required" = ["canonical", "merged_count", "strategy_used", "stores"]))]
pub struct Merged {
    /// What is left; what was asked for where nothing was merged.
    pub canonical: String,
    /// How many became part of it.
    pub merged_count: u64,
    /// How.
    pub strategy_used: Strategy,
    /// The stores that did it.
    pub stores: Vec<String>,
    /// Whether it waits for a person.
    pub pending_approval: bool,
    /// Where the person decides.
    pub approval_url: Option<String>,
}

/// What became of an expire.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Expired {
    /// How many the policy took.
    pub matched_count: u64,
    /// What happened to them.
    pub action_taken: Action,
    /// The stores that did it.
    pub stores: Vec<String>,
}

fn certain() -> f64 {
    1.0
}

fn some_results() -> u32 {
    RESULTS
}

fn one_store() -> u32 {
    1
}

impl Remember {
    /// Checks what the schema says beyond the types.
    pub(crate) fn check(&self) -> Result<()> {
        names(&self.agent_id, self.user_id.as_deref())?;
        filled("content", &self.content)?;
        share("confidence", Some(self.confidence))?;
        share("importance", self.importance)?;
        let passing = matches!(self.kind, Type::Semantic | Type::Episodic);
        if self.short_term && !passing {
            return Err(Error::invalid(
                "short_term",
                "what is procedural or emotional is remembered for long",
            ));
        }
        Ok(())
    }
}

impl Recall {
    pub(crate) fn check(&self) -> Result<()> {
        names(&self.agent_id, self.user_id.as_deref())?;
        filled("query", &self.query)?;
        if !(1..=limits::RESULTS).contains(&(self.k as usize)) {
            return Err(Error::invalid("k", "must be from 1 to 1000"));
        }
        if self.hops > HOPS {
            return Err(Error::invalid("hops", "must be from 0 to 3"));
        }
        if !(1..=STORES).contains(&self.quorum_k) {
            return Err(Error::invalid("quorum_k", "must be from 1 to 100"));
        }
        if self.sign_as.as_ref().is_some_and(|it| it.is_empty() || it.len() > limits::NAME_BYTES) {
            return Err(Error::invalid("sign_as", "must be 1 to 256 bytes"));
        }
        Ok(())
    }
}

impl Forget {
    /// Checks it, and that it says what to forget: what says nothing would mean everything.
    pub(crate) fn check(&self) -> Result<()> {
        names(&self.agent_id, self.user_id.as_deref())?;
        let ids = self.ids.as_deref().unwrap_or_default();
        if ids.is_empty() && self.filter.as_ref().is_none_or(Object::is_empty) {
            return Err(Error::invalid("ids", "ids or a filter must say what to forget"));
        }
        if ids.len() > limits::PAGE {
            return Err(Error::too_large("ids", limits::PAGE));
        }
        Ok(())
    }
}

impl Merge {
    pub(crate) fn check(&self) -> Result<()> {
        names(&self.agent_id, self.user_id.as_deref())?;
        filled("canonical", &self.canonical)?;
        if self.duplicates.is_empty() {
            return Err(Error::invalid("duplicates", "must not be empty"));
        }
        if self.duplicates.len() > limits::PAGE {
            return Err(Error::too_large("duplicates", limits::PAGE));
        }
        Ok(())
    }
}

impl Expire {
    /// Checks it and returns the policy. One that demands nothing would take everything; a
    /// member that is not known demands nothing.
    pub(crate) fn check(&self) -> Result<&Policy> {
        names(&self.agent_id, self.user_id.as_deref())?;
        let policy = self.policy.as_ref().filter(|policy| policy.demands());
        let policy = policy.ok_or_else(|| {
            Error::invalid("policy", "must demand something, or it would take everything")
        })?;
        for (path, days) in [
            ("policy.older_than_days", policy.older_than_days),
            ("policy.no_recall_in_days", policy.no_recall_in_days),
        ] {
            if days == Some(0) {
                return Err(Error::invalid(path, "must be at least 1"));
            }
        }
        share("policy.confidence_below", policy.confidence_below)?;
        Ok(policy)
    }
}

impl Policy {
    fn demands(&self) -> bool {
        let Self { older_than_days, kind, confidence_below, no_recall_in_days } = self;
        older_than_days.is_some()
            || kind.is_some()
            || confidence_below.is_some()
            || no_recall_in_days.is_some()
    }
}

pub(crate) fn names(agent: &str, user: Option<&str>) -> Result<()> {
    for (path, name) in [("agent_id", Some(agent)), ("user_id", user)] {
        if name.is_some_and(|name| name.is_empty() || name.len() > limits::NAME_BYTES) {
            return Err(Error::invalid(path, "must be 1 to 256 bytes"));
        }
    }
    Ok(())
}

fn filled(path: &str, text: &str) -> Result<()> {
    if text.trim().is_empty() { Err(Error::invalid(path, "must not be empty")) } else { Ok(()) }
}

fn share(path: &str, number: Option<f64>) -> Result<()> {
    if number.is_some_and(|number| !(0.0..=1.0).contains(&number)) {
        return Err(Error::invalid(path, "must be a number from 0 to 1"));
    }
    Ok(())
}

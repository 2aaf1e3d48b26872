//! What stores hold and what they are asked.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use yore_canon::hash::Sha256;
use yore_canon::jcs;
use yore_domain::kind::Kind;
use yore_domain::memory::{Memory, Version};
use yore_domain::{Timestamp, limits};

use crate::envelope::Envelope;
use crate::error::{Error, Result};
use crate::filter::passes;

/// Members of a document.
pub type Object = Map<String, Value>;

/// Milliseconds of a day.
const DAY: i64 = 86_400_000;
/// The name under which a memory keeps what only this protocol has.
const PROTOCOL: &str = "memorywire";

/// What sort of memory it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Type {
    /// What is so.
    Semantic,
    /// What happened.
    Episodic,
    /// How something is done.
    Procedural,
    /// How something felt.
    Emotional,
}

impl Type {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Semantic, Self::Episodic, Self::Procedural, Self::Emotional];

    /// Returns the word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Semantic => "semantic",
            Self::Episodic => "episodic",
            Self::Procedural => "procedural",
            Self::Emotional => "emotional",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// The type a kind of the model counts as.
    #[must_use]
    pub const fn of(kind: Kind) -> Self {
        match kind {
            Kind::Semantic | Kind::Identity => Self::Semantic,
            Kind::Episodic | Kind::Working => Self::Episodic,
            Kind::Procedural => Self::Procedural,
            Kind::Emotional => Self::Emotional,
        }
    }
}

/// Whose memories a request is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Whose {
    /// The agent.
    pub agent: String,
    /// The person, where only theirs are meant.
    pub user: Option<String>,
}

/// One memory, as every store shall hold it. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The canonical id, the same in all stores. Empty in what a store returns without knowing it.
    #[serde(default)]
    pub id: String,
    /// The agent whose memory it is.
    pub agent_id: String,
    /// The person it is about or was said by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// What sort of memory it is.
    #[serde(rename = "type")]
    pub kind: Type,
    /// What it says.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content: String,
    /// Anything; filters find it by its members.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub metadata: Object,
    /// How sure it is.
    pub confidence: f64,
    /// Where it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// When it was made.
    pub created_at: i64,
    /// When it last changed.
    pub updated_at: i64,
    /// From when it is no longer recalled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
    /// What else the record has, such as `event_time` or `sentiment`.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub extra: Object,
}

impl Record {
    /// A record that says something, with nothing else said about it.
    #[must_use]
    pub fn new(id: impl Into<String>, whose: &Whose, kind: Type, content: &str, at: i64) -> Self {
        Self {
            id: id.into(),
            agent_id: whose.agent.clone(),
            user_id: whose.user.clone(),
            kind,
            content: content.to_owned(),
            metadata: Object::new(),
            confidence: 1.0,
            source: None,
            created_at: at,
            updated_at: at,
            expires_at: None,
            extra: Object::new(),
        }
    }

    /// The record of a memory in the vault; `None` for one that belongs to no agent, which no
    /// store but the vault can hold, or that has no text left.
    #[must_use]
    pub fn of(memory: &Memory) -> Option<Self> {
        let Version { content, recorded, memory: id, .. } = &memory.head;
        if content.body.text.is_empty() {
            return None;
        }
        let extra = content.foreign.get(PROTOCOL).and_then(Value::as_object);
        Some(Self {
            id: yore_canon::encode::hex(&id.bytes()),
            agent_id: content.scope.agent.clone()?,
            user_id: content.scope.user.clone(),
            kind: Type::of(content.kind),
            content: content.body.text.clone(),
            metadata: content.body.structured.clone().unwrap_or_default(),
            confidence: content.lifecycle.confidence.unwrap_or(1.0),
            source: content.provenance.source.clone(),
            created_at: memory.since.millis(),
            updated_at: recorded.millis(),
            expires_at: content.lifecycle.expires.map(Timestamp::millis),
            extra: extra.cloned().unwrap_or_default(),
        })
    }

    /// Whose it is.
    #[must_use]
    pub fn whose(&self) -> Whose {
        Whose { agent: self.agent_id.clone(), user: self.user_id.clone() }
    }

    /// What tells two facts apart, whatever their ids: whose it is, its type and its words. White
    /// space at the ends and repeated inside does not count, for some stores change it.
    #[must_use]
    pub fn hash(&self) -> String {
        let mut hasher = Sha256::hasher();
        let user = self.user_id.as_deref();
        for name in [&self.agent_id, user.unwrap_or_default(), self.kind.as_str()] {
            hasher.update((name.len() as u64).to_le_bytes()).update(name);
        }
        hasher.update([u8::from(user.is_some())]);
        for word in self.content.split_whitespace() {
            hasher.update(word).update(" ");
        }
        hasher.finish().to_hex()
    }

    /// A digest of everything: two records with the same one need not be written twice.
    #[must_use]
    pub fn digest(&self) -> String {
        let said = serde_json::to_value(self).unwrap_or_default();
        Sha256::of(jcs::canonical(&said)).to_hex()
    }

    /// The record without its words, for a mapping to keep.
    #[must_use]
    pub fn without_content(&self) -> Value {
        let bare = Self { content: String::new(), ..self.clone() };
        serde_json::to_value(bare).unwrap_or_default()
    }

    /// Checks what every store relies on.
    pub(crate) fn check(&self) -> Result<()> {
        if self.id.is_empty() {
            return Err(Error::invalid("id", "must not be empty"));
        }
        if self.agent_id.is_empty() || self.agent_id.len() > limits::NAME_BYTES {
            return Err(Error::invalid("agent_id", "must be 1 to 256 bytes"));
        }
        if self.content.is_empty() {
            return Err(Error::invalid("content", "must not be empty"));
        }
        if !(0.0..=1.0).contains(&self.confidence) {
            return Err(Error::invalid("confidence", "must be from 0 to 1"));
        }
        Ok(())
    }
}

/// What a recall asks of one store.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Whose memories are searched.
    pub whose: Whose,
    /// The question.
    pub query: String,
    /// How many answers at most.
    pub k: usize,
    /// Only these types; none means all.
    pub types: Vec<Type>,
    /// Members that must be equal, all of them.
    pub filter: Object,
    /// Only what was made at or after this time.
    pub created_from: Option<i64>,
    /// The time it is asked at: what has expired by then is not found.
    pub now: i64,
}

impl Question {
    /// A question with no conditions.
    #[must_use]
    pub fn new(whose: Whose, query: &str, k: usize, now: i64) -> Self {
        Self {
            whose,
            query: query.to_owned(),
            k,
            types: Vec::new(),
            filter: Object::new(),
            created_from: None,
            now,
        }
    }

    /// Asks for what is at most so many days old.
    #[must_use]
    pub fn fresher_than_days(mut self, days: u64) -> Self {
        let span = i64::try_from(days).unwrap_or(i64::MAX).saturating_mul(DAY);
        self.created_from = Some(self.now.saturating_sub(span));
        self
    }

    /// How many days back it reaches, the last of them begun.
    #[must_use]
    pub fn days(&self) -> Option<u64> {
        let span = self.now.saturating_sub(self.created_from?).max(0);
        Some(span.unsigned_abs().div_ceil(DAY.unsigned_abs()))
    }

    /// Whether a record may answer it.
    #[must_use]
    pub fn admits(&self, record: &Record) -> bool {
        record.agent_id == self.whose.agent
            && self.whose.user.as_ref().is_none_or(|user| record.user_id.as_ref() == Some(user))
            && (self.types.is_empty() || self.types.contains(&record.kind))
            && self.created_from.is_none_or(|from| record.created_at >= from)
            && record.expires_at.is_none_or(|end| end > self.now)
            && passes(&self.filter, record)
    }

    /// Checks what every store relies on.
    pub(crate) fn check(&self) -> Result<()> {
        if self.query.is_empty() {
            return Err(Error::invalid("query", "must not be empty"));
        }
        if !(1..=limits::RESULTS).contains(&self.k) {
            return Err(Error::invalid("k", "must be from 1 to 1000"));
        }
        Ok(())
    }
}

/// Something a store returned.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// What the backend calls it.
    pub place: String,
    /// What it says.
    pub record: Record,
    /// How well it answers, by the backend's own measure; more is better.
    pub score: f64,
    /// When it was last recalled, where the backend keeps that.
    pub recalled_at: Option<i64>,
    /// The backend's signature under it, where it signs.
    pub envelope: Option<Envelope>,
}

impl Found {
    /// Something found, unsigned.
    #[must_use]
    pub fn new(place: impl Into<String>, record: Record, score: f64) -> Self {
        Self { place: place.into(), record, score, recalled_at: None, envelope: None }
    }
}

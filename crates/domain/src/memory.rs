//! A memory is a chain of immutable versions with one head.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use unicode_normalization::UnicodeNormalization;

use crate::class::{Class, Governance};
use crate::consent::Consent;
use crate::kind::{Facet, Kind};
use crate::provenance::Provenance;
use crate::scope::Scope;
use crate::{Error, MemoryId, Result, Span, Timestamp, VersionId, limits};

/// What is remembered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Body {
    /// The text as it was said.
    pub text: String,
    /// A structured part, kept verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Map<String, Value>>,
}

/// When it was said, seen and true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Times {
    /// When it was made.
    pub created: Timestamp,
    /// When it was observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Timestamp>,
    /// From when it is true.
    pub valid_from: Timestamp,
    /// Until when it is true, both ends included. Absent: still true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_to: Option<Timestamp>,
}

impl Times {
    /// Everything at one instant.
    #[must_use]
    pub const fn at(now: Timestamp) -> Self {
        Self { created: now, observed: Some(now), valid_from: now, valid_to: None }
    }

    /// Whether it was true then.
    #[must_use]
    pub fn valid_at(&self, at: Timestamp) -> bool {
        self.valid_from <= at && self.valid_to.is_none_or(|end| at <= end)
    }
}

/// How sure, how important, how lasting.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lifecycle {
    /// From 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// From 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub salience: Option<f64>,
    /// In what time its weight halves. Absent: it does not decay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_life: Option<Span>,
    /// When it was last confirmed; decay counts from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<Timestamp>,
    /// From when it is no longer recalled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
}

/// Where a version stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Recalled.
    #[default]
    Active,
    /// Recalled, and marked as not settled by its producer.
    Candidate,
    /// Put aside as suspicious; not recalled, can be restored.
    Quarantined,
    /// Forgotten softly; not recalled, can be restored.
    Tombstoned,
    /// Its text is gone for good.
    Erased,
}

impl Status {
    /// Whether recall may return it.
    #[must_use]
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Active | Self::Candidate)
    }

    /// Returns the word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Candidate => "candidate",
            Self::Quarantined => "quarantined",
            Self::Tombstoned => "tombstoned",
            Self::Erased => "erased",
        }
    }
}

/// What made a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// The first of its chain.
    Created,
    /// The content changed.
    Revised,
    /// Labels, scope or consent changed, the content did not.
    Relabelled,
    /// The same was said again; evidence was added.
    Reinforced,
    /// Others were merged into it.
    Merged,
    /// It was merged into another.
    Absorbed,
    /// It was forgotten.
    Tombstoned,
    /// Its retention ran out.
    Expired,
    /// It was put aside.
    Quarantined,
    /// An earlier version came back.
    Restored,
}

impl Cause {
    /// Whether the version says something of its own, instead of marking what was said.
    #[must_use]
    pub const fn restates(self) -> bool {
        match self {
            Self::Created | Self::Revised | Self::Merged | Self::Restored => true,
            Self::Relabelled
            | Self::Reinforced
            | Self::Absorbed
            | Self::Tombstoned
            | Self::Expired
            | Self::Quarantined => false,
        }
    }
}

/// A link to another memory or to a named thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Relation {
    /// The type; the vocabulary is open.
    pub kind: String,
    /// What it points at: an id in any spelling, or `entity:<name>`.
    pub target: String,
}

/// Members a protocol has and the model lacks, under the protocol's name.
pub type Foreign = BTreeMap<String, Value>;

/// The exact bytes a signed record arrived as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Seal {
    /// Which format the bytes are in.
    pub format: String,
    /// The record as received.
    pub bytes: String,
    /// The signer's DID.
    pub signer: String,
    /// Whether the signer is the owner.
    pub by_owner: bool,
}

/// What a write wants to be remembered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Draft {
    /// What it says.
    #[serde(flatten)]
    pub content: Content,
    /// The times; absent ones are filled with now.
    #[serde(default)]
    pub time: DraftTimes,
    /// Whether the producer calls it settled.
    #[serde(default)]
    pub status: Status,
    /// The id its first version shall have, where that follows from what it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<VersionId>,
}

/// The times of a draft: only what the producer said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DraftTimes {
    /// When it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    /// When it was observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Timestamp>,
    /// From when it is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<Timestamp>,
    /// Until when it is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_to: Option<Timestamp>,
}

impl DraftTimes {
    /// Fills what is absent with `now`.
    #[must_use]
    pub fn filled(self, now: Timestamp) -> Times {
        let created = self.created.unwrap_or(now);
        Times {
            created,
            observed: self.observed.or(Some(created)),
            valid_from: self.valid_from.unwrap_or(created),
            valid_to: self.valid_to,
        }
    }
}

impl Draft {
    /// A plain statement of fact.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Kind::Semantic, text)
    }

    /// A statement of a kind; the facet follows from the table.
    #[must_use]
    pub fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self {
            content: Content {
                body: Body { text: text.into(), structured: None },
                kind,
                facet: kind.facet(),
                scope: Scope::default(),
                lifecycle: Lifecycle::default(),
                provenance: Provenance::default(),
                governance: Governance::default(),
                consent: Consent::default(),
                relations: Vec::new(),
                tags: Vec::new(),
                foreign: Foreign::new(),
                seal: None,
            },
            time: DraftTimes::default(),
            status: Status::Active,
            version: None,
        }
    }

    /// Returns the visibility class it would have.
    #[must_use]
    pub fn class(&self) -> Class {
        self.content.class()
    }

    /// Checks every limit and range. The rejected value is never repeated in the error.
    pub fn validate(&self) -> Result<()> {
        self.content.validate()?;
        if let (Some(from), Some(to)) = (self.time.valid_from, self.time.valid_to)
            && to < from
        {
            return Err(Error::invalid("time.valid_to", "lies before valid_from"));
        }
        if !self.status.is_live() {
            return Err(Error::invalid("status", "a new memory is active or candidate"));
        }
        Ok(())
    }
}

fn is_name(text: &str) -> bool {
    (1..=limits::NAME_BYTES).contains(&text.len())
}

fn count(path: &str, found: usize, most: usize) -> Result<()> {
    if found > most { Err(Error::too_large(path, most)) } else { Ok(()) }
}

fn bounded_json(what: &str, value: &impl Serialize, most: usize) -> Result<()> {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    serde_json::to_writer(&mut counter, value).map_err(Error::internal)?;
    if counter.0 > most { Err(Error::too_large(what, format!("{most} bytes"))) } else { Ok(()) }
}

/// One immutable link of a chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Version {
    /// Its id.
    pub id: VersionId,
    /// The memory it belongs to.
    pub memory: MemoryId,
    /// Its place in the chain; the first is 1.
    pub number: u32,
    /// What made it.
    pub cause: Cause,
    /// Where it stands.
    pub status: Status,
    /// When the vault took it in; history reads by this.
    pub recorded: Timestamp,
    /// The version that first made this statement; absent when it is this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<VersionId>,
    /// The version that first made the statement before this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<VersionId>,
    /// Memories from other chains that this one replaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absorbs: Vec<MemoryId>,
    /// The memory that replaced it, when it was merged away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absorbed_by: Option<MemoryId>,
    /// The agent under whose grant it was written; absent for the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer: Option<String>,
    /// The times, filled.
    pub time: Times,
    /// Everything else, as drafted.
    #[serde(flatten)]
    pub content: Content,
}

/// What a version says, apart from its place in the chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Content {
    /// The content.
    pub body: Body,
    /// The kind.
    pub kind: Kind,
    /// The facet.
    pub facet: Facet,
    /// The place.
    pub scope: Scope,
    /// Confidence, salience, decay.
    pub lifecycle: Lifecycle,
    /// Where it came from.
    pub provenance: Provenance,
    /// Labels and sensitivity as declared.
    pub governance: Governance,
    /// What was agreed to.
    pub consent: Consent,
    /// Links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relations: Vec<Relation>,
    /// Free tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// What only a protocol understands.
    #[serde(default, skip_serializing_if = "Foreign::is_empty")]
    pub foreign: Foreign,
    /// The signed original, while it still says the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Seal>,
}

impl Content {
    /// Returns the visibility class it has.
    #[must_use]
    pub fn class(&self) -> Class {
        Class::of(&self.governance, &self.scope)
    }

    /// Checks every limit and range. The rejected value is never repeated in the error.
    pub fn validate(&self) -> Result<()> {
        if self.body.text.trim().is_empty() {
            return Err(Error::invalid("body.text", "must not be empty"));
        }
        if self.body.text.len() > limits::TEXT_BYTES {
            return Err(Error::too_large("body.text", "1 MiB"));
        }
        if let Some(structured) = &self.body.structured {
            bounded_json("body.structured", structured, limits::STRUCTURED_BYTES)?;
        }
        bounded_json("foreign members", &self.foreign, limits::FOREIGN_BYTES)?;
        if let Some(seal) = &self.seal
            && seal.bytes.len() > limits::FOREIGN_BYTES
        {
            return Err(Error::too_large("seal", "1 MiB"));
        }
        count("tags", self.tags.len(), limits::TAGS)?;
        count("labels", self.governance.labels.len(), limits::LABELS)?;
        count("relations", self.relations.len(), limits::RELATIONS)?;
        count("provenance.evidence", self.provenance.evidence.len(), limits::EVIDENCE)?;
        count("consent.redact", self.consent.redact.len(), limits::TAGS)?;
        let shared = self.scope.shared_with.iter().flatten();
        count("scope.shared_with", shared.clone().count(), limits::TAGS)?;
        if shared.chain(&self.consent.reference).any(|v| !is_name(v)) {
            let reason = "each agent and the consent's reference must be 1 to 256 bytes";
            return Err(Error::invalid("scope.shared_with", reason));
        }
        let scope = [
            ("scope.user", &self.scope.user),
            ("scope.project", &self.scope.project),
            ("scope.agent", &self.scope.agent),
            ("scope.session", &self.scope.session),
        ];
        for (path, value) in scope {
            if value.as_ref().is_some_and(|v| !is_name(v)) {
                return Err(Error::invalid(path, "must be 1 to 256 bytes"));
            }
        }
        if !self.tags.iter().all(|tag| is_name(tag)) {
            return Err(Error::invalid("tags", "each must be 1 to 256 bytes"));
        }
        let unit = [
            ("lifecycle.confidence", self.lifecycle.confidence),
            ("lifecycle.salience", self.lifecycle.salience),
        ];
        for (path, value) in unit {
            if value.is_some_and(|v| !(0.0..=1.0).contains(&v)) {
                return Err(Error::invalid(path, "must be between 0 and 1"));
            }
        }
        Ok(())
    }
}

impl Version {
    /// Makes the first version of a new chain.
    #[must_use]
    pub fn first(memory: MemoryId, draft: Draft, now: Timestamp, writer: Option<String>) -> Self {
        Self {
            id: draft.version.unwrap_or_else(|| VersionId::at(now)),
            memory,
            number: 1,
            cause: Cause::Created,
            status: draft.status,
            recorded: now,
            origin: None,
            replaces: None,
            absorbs: Vec::new(),
            absorbed_by: None,
            writer,
            time: draft.time.filled(now),
            content: draft.content,
        }
    }

    /// Makes the next version: the same content under a new number and cause.
    #[must_use]
    pub fn next(&self, cause: Cause, now: Timestamp, writer: Option<String>) -> Self {
        let (origin, replaces) = if cause.restates() {
            (None, Some(self.origin()))
        } else {
            (Some(self.origin()), self.replaces)
        };
        Self {
            id: VersionId::at(now),
            number: self.number + 1,
            cause,
            recorded: now.max(self.recorded),
            origin,
            replaces,
            absorbs: Vec::new(),
            absorbed_by: None,
            writer,
            ..self.clone()
        }
    }

    /// Returns the version that first made this statement.
    #[must_use]
    pub fn origin(&self) -> VersionId {
        self.origin.unwrap_or(self.id)
    }

    /// Returns its visibility class.
    #[must_use]
    pub fn class(&self) -> Class {
        self.content.class()
    }

    /// When its text may be kept no longer.
    #[must_use]
    pub fn retained_until(&self) -> Option<Timestamp> {
        self.content.consent.retention.map(|span| self.time.created.plus(span))
    }

    /// When retention or expiry takes it out of recall; once it is out, when retention ends.
    #[must_use]
    pub fn ends(&self) -> Option<Timestamp> {
        let expires = self.content.lifecycle.expires.filter(|_| self.status.is_live());
        match (self.retained_until(), expires) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

/// A memory as it stands: its head and what happened around it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// The newest version.
    pub head: Version,
    /// When the chain began.
    pub since: Timestamp,
    /// How it fared in use.
    pub usage: Usage,
    /// Whether a legal hold protects it from erasure.
    pub legal_hold: bool,
}

/// How a memory fared; changes without a new version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// When recall last returned it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recalled: Option<Timestamp>,
    /// How often recall returned it.
    #[serde(default)]
    pub recalls: u64,
    /// Outcomes reported for it.
    #[serde(default)]
    pub feedback: Feedback,
    /// Demotions by an expiry policy; each quarters its rank.
    #[serde(default)]
    pub demoted: bool,
}

/// Tallies of reported outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Feedback {
    /// It was followed.
    #[serde(default)]
    pub followed: u32,
    /// It was overridden.
    #[serde(default)]
    pub overridden: u32,
    /// It was ignored.
    #[serde(default)]
    pub ignored: u32,
    /// It was contradicted.
    #[serde(default)]
    pub contradicted: u32,
}

/// One reported outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FeedbackOutcome {
    /// It was followed.
    Followed,
    /// It was overridden.
    Overridden,
    /// It was ignored.
    Ignored,
    /// It was contradicted.
    Contradicted,
}

impl FeedbackOutcome {
    /// Reads the word.
    pub fn parse(text: &str) -> Result<Self> {
        match text {
            "followed" => Ok(Self::Followed),
            "overridden" => Ok(Self::Overridden),
            "ignored" => Ok(Self::Ignored),
            "contradicted" => Ok(Self::Contradicted),
            _ => Err(Error::invalid(
                "outcome",
                "must be followed, overridden, ignored or contradicted",
            )),
        }
    }
}

/// Returns the text two memories must share to count as the same statement.
///
/// Unicode is composed, case is folded, runs of white space become one space.
#[must_use]
pub fn normalised(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        if word.is_ascii() {
            out.extend(word.chars().map(|letter| letter.to_ascii_lowercase()));
        } else {
            out.extend(word.nfkc().flat_map(char::to_lowercase));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drafts_are_checked_before_they_are_stored() {
        let now = Timestamp::from_micros(0);
        assert!(Draft::text("tea, no sugar").validate().is_ok());
        type Spoil = fn(&mut Draft);
        let cases: [(&str, Spoil); 8] = [
            ("body.text", |d| d.content.body.text = " \n".into()),
            ("body.text", |d| d.content.body.text = "x".repeat(limits::TEXT_BYTES + 1)),
            ("tags", |d| d.content.tags = vec!["t".into(); limits::TAGS + 1]),
            ("tags", |d| d.content.tags = vec![String::new()]),
            ("scope.user", |d| d.content.scope.user = Some(String::new())),
            ("lifecycle.confidence", |d| d.content.lifecycle.confidence = Some(1.5)),
            ("lifecycle.salience", |d| d.content.lifecycle.salience = Some(f64::NAN)),
            ("status", |d| d.status = Status::Erased),
        ];
        for (path, spoil) in cases {
            let mut draft = Draft::text("tea");
            spoil(&mut draft);
            let error = draft.validate().unwrap_err().to_string();
            assert!(error.contains(path), "{path}: {error}");
        }
        assert_eq!(Draft::text("x").time.filled(now), Times::at(now));
    }

    #[test]
    fn the_same_statement_in_other_clothes_is_the_same() {
        assert_eq!(normalised("  Tea,\n no  SUGAR "), normalised("tea, no sugar"));
        assert_eq!(normalised("e\u{301}"), normalised("É"));
        assert_ne!(normalised("tea"), normalised("teas"));
    }

    #[test]
    fn a_clock_going_backwards_never_reorders_a_chain() {
        let first =
            Version::first(MemoryId::random(), Draft::text("a"), Timestamp::from_micros(10), None);
        let second = first.next(Cause::Revised, Timestamp::from_micros(5), None);
        assert_eq!((second.number, second.recorded), (2, Timestamp::from_micros(10)));
    }

    #[test]
    fn a_version_knows_who_said_it_first_and_what_it_replaced() {
        let now = Timestamp::from_micros(10);
        let id = VersionId::random();
        let draft = Draft { version: Some(id), ..Draft::text("a") };
        let first = Version::first(MemoryId::random(), draft, now, None);
        assert_eq!((first.id, first.origin(), first.replaces), (id, id, None));
        let again = first.next(Cause::Reinforced, now, None);
        assert_eq!((again.origin(), again.replaces), (id, None));
        let revised = again.next(Cause::Revised, now, None);
        assert_eq!((revised.origin(), revised.replaces), (revised.id, Some(id)));
        let gone = revised.next(Cause::Tombstoned, now, None);
        assert_eq!((gone.origin(), gone.replaces), (revised.id, Some(id)));
    }

    #[test]
    fn versions_survive_storage() {
        let version = Version::first(
            MemoryId::random(),
            Draft::text("a"),
            Timestamp::from_micros(10),
            Some("agent".into()),
        );
        let json = serde_json::to_string(&version).unwrap();
        assert_eq!(serde_json::from_str::<Version>(&json).unwrap(), version);
    }
}

//! What an agent may do: verbs × labels × sensitivity ceiling × scope × time.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::class::{Label, Sensitivity};
use crate::regulated::is_regulated;
use crate::scope::ScopeRule;
use crate::{AgentId, Error, GrantId, Result, TenantId, Timestamp, TokenId};

/// One thing a principal may be allowed to do.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Verb {
    /// See memories and conversations.
    Read,
    /// Make, revise, relabel and tombstone.
    Write,
    /// Write something that cites a memory.
    Derive,
    /// Take out in bulk or as a file.
    Export,
    /// Remove for good.
    Erase,
    /// Decide what waits for approval.
    Review,
    /// Issue and revoke grants.
    Grant,
    /// Read the audit chain.
    Audit,
    /// Keys, jobs, retention, backup.
    Admin,
}

impl Verb {
    /// All verbs.
    pub const ALL: [Self; 9] = [
        Self::Read,
        Self::Write,
        Self::Derive,
        Self::Export,
        Self::Erase,
        Self::Review,
        Self::Grant,
        Self::Audit,
        Self::Admin,
    ];

    /// Returns the word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Derive => "derive",
            Self::Export => "export",
            Self::Erase => "erase",
            Self::Review => "review",
            Self::Grant => "grant",
            Self::Audit => "audit",
            Self::Admin => "admin",
        }
    }

    /// Reads the word.
    pub fn parse(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|verb| verb.as_str() == text).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            Error::invalid("verbs", format!("must be one of {known}"))
        })
    }
}

/// A set of verbs.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Verbs(u16);

impl Verbs {
    /// No verb.
    pub const NONE: Self = Self(0);
    /// Every verb.
    pub const ALL: Self = Self((1 << Verb::ALL.len()) - 1);

    /// Makes a set.
    #[must_use]
    pub fn of(verbs: &[Verb]) -> Self {
        Self(verbs.iter().fold(0, |set, verb| set | 1 << *verb as u16))
    }

    /// Returns what the words of an OAuth scope stand for. Words that are not known allow nothing.
    #[must_use]
    pub fn of_scope(scope: &str) -> Self {
        let verbs = scope.split_ascii_whitespace().flat_map(|word| match word {
            "memory:read" => &[Verb::Read][..],
            "memory:write" => &[Verb::Write, Verb::Derive],
            "memory:export" => &[Verb::Export],
            "memory:erase" => &[Verb::Erase],
            _ => &[],
        });
        Self::of(&verbs.copied().collect::<Vec<_>>())
    }

    /// Whether the verb is in the set.
    #[must_use]
    pub const fn has(self, verb: Verb) -> bool {
        self.0 & (1 << verb as u16) != 0
    }

    /// Returns what is in both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Lists the verbs.
    pub fn iter(self) -> impl Iterator<Item = Verb> {
        Verb::ALL.into_iter().filter(move |verb| self.has(*verb))
    }
}

impl std::fmt::Debug for Verbs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter().map(Verb::as_str)).finish()
    }
}

impl Serialize for Verbs {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Verbs {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::of(&Vec::<Verb>::deserialize(deserializer)?))
    }
}

impl JsonSchema for Verbs {
    fn schema_name() -> Cow<'static, str> {
        "Verbs".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let verb = generator.subschema_for::<Verb>();
        schemars::json_schema!({
            "description": "A set of verbs.",
            "type": "array",
            "items": verb,
            "uniqueItems": true,
        })
    }
}

/// Which labels a grant reaches.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Labels {
    /// Every label, but none of what a law protects.
    Any,
    /// Every label, and of what a law protects these and what lies below them.
    #[serde(rename = "any_with")]
    AnyWith(Vec<Label>),
    /// These and what lies below them. Empty reaches nothing.
    Under(Vec<Label>),
}

impl Labels {
    /// Whether a label is reached.
    #[must_use]
    pub fn reach(&self, label: &Label) -> bool {
        match self {
            Self::Any => !is_regulated(label),
            Self::AnyWith(_) if !is_regulated(label) => true,
            Self::AnyWith(granted) | Self::Under(granted) => {
                granted.iter().any(|grant| grant.covers(label))
            }
        }
    }

    /// The labels that are named, and whether every topic is reached besides.
    #[must_use]
    pub fn named(&self) -> (&[Label], bool) {
        match self {
            Self::Any => (&[], true),
            Self::AnyWith(labels) => (labels, true),
            Self::Under(labels) => (labels, false),
        }
    }

    /// Whether another reaches everything that this one does.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        let ((named, every), (_, all)) = (self.named(), other.named());
        (all || !every) && named.iter().all(|label| other.reach(label))
    }
}

impl std::fmt::Display for Labels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (named, every) = self.named();
        let words = every.then_some("*").into_iter().chain(named.iter().map(Label::as_str));
        f.write_str(&words.collect::<Vec<_>>().join(","))
    }
}

/// Authority over a vault, given by its owner to one agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Grant {
    /// Its id; revocation names it.
    pub id: GrantId,
    /// Whom it is for.
    pub agent: AgentId,
    /// Who gave it: the owner's DID, the server's, or a configured issuer's.
    pub issuer: String,
    /// What it allows.
    pub verbs: Verbs,
    /// What it may read.
    pub read: Labels,
    /// What it may write: every label of a written memory must be reached.
    pub write: Labels,
    /// The highest sensitivity it touches.
    pub ceiling: Sensitivity,
    /// The scope it is bound to.
    pub scope: ScopeRule,
    /// Before this it is void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// From this on it is void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// When it was given.
    pub issued: Timestamp,
    /// When it was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Timestamp>,
    /// A note for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Grant {
    /// Whether it holds at this time.
    #[must_use]
    pub fn holds_at(&self, now: Timestamp) -> bool {
        self.revoked.is_none_or(|at| now < at)
            && self.not_before.is_none_or(|from| from <= now)
            && self.expires.is_none_or(|until| now < until)
    }
}

/// Whom a bearer token stands for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Bearer {
    /// The vault's owner.
    Owner,
    /// An agent, through a grant.
    Grant(GrantId),
    /// Nobody: it is exchanged, once, for a new token of the grant.
    Renewal(GrantId),
    /// A service that may act for any user of the tenant. Kept in the catalog.
    Service(TenantId),
    /// Somebody who looks after a tenant: reads everything, changes nothing of it. Kept in the
    /// catalog.
    Admin(TenantId),
}

/// What is kept of a bearer token: never the token, only its hash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Token {
    /// Its id; revocation names it.
    pub id: TokenId,
    /// SHA-256 of the secret, in hex.
    pub hash: String,
    /// Whom it stands for.
    pub bearer: Bearer,
    /// When it was made.
    pub issued: Timestamp,
    /// From this on it is void.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// When it was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Timestamp>,
    /// A note for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Token {
    /// Whether it holds at this time.
    #[must_use]
    pub fn holds_at(&self, now: Timestamp) -> bool {
        self.revoked.is_none_or(|at| now < at) && self.expires.is_none_or(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verb_sets() {
        let set = Verbs::of(&[Verb::Read, Verb::Export]);
        assert!(set.has(Verb::Read) && !set.has(Verb::Write));
        assert_eq!(set.and(Verbs::of(&[Verb::Read, Verb::Write])), Verbs::of(&[Verb::Read]));
        assert!(Verb::ALL.into_iter().all(|verb| Verbs::ALL.has(verb) && !Verbs::NONE.has(verb)));
        let json = serde_json::to_string(&set).unwrap();
        assert_eq!(json, r#"["read","export"]"#);
        assert_eq!(serde_json::from_str::<Verbs>(&json).unwrap(), set);
    }

    #[test]
    fn words_of_a_scope_stand_for_verbs_and_others_for_nothing() {
        let write = [Verb::Read, Verb::Write, Verb::Derive];
        assert_eq!(Verbs::of_scope("openid memory:write  memory:read"), Verbs::of(&write));
        assert_eq!(Verbs::of_scope("memory:export"), Verbs::of(&[Verb::Export]));
        assert_eq!(Verbs::of_scope("memory:erase"), Verbs::of(&[Verb::Erase]));
        for nothing in ["", "memory", "memory:", "MEMORY:READ", "memory:grant", "read write"] {
            assert_eq!(Verbs::of_scope(nothing), Verbs::NONE, "{nothing}");
        }
    }

    #[test]
    fn oamp_313_an_empty_label_list_reaches_nothing() {
        let label = Label::behaviour();
        assert!(!Labels::Under(Vec::new()).reach(&label));
        assert!(Labels::Any.reach(&label));
    }

    #[test]
    fn omp_170_what_a_law_protects_must_be_named() {
        use crate::regulated::Regulated;
        let phi = Regulated::Phi.label();
        let with = Labels::AnyWith(vec![phi.clone()]);
        assert!(!Labels::Any.reach(&phi) && with.reach(&phi) && with.reach(&Label::behaviour()));
        assert!(!with.reach(&Regulated::Npi.label()));
        assert!(Labels::Any.is_within(&with) && !with.is_within(&Labels::Any));
        let some = Labels::Under(vec![phi]);
        assert!(some.is_within(&with) && !some.is_within(&Labels::Any) && !with.is_within(&some));
        assert_eq!(with.to_string(), "*,regulated.phi");
    }
}

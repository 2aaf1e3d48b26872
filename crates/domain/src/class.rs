//! What decides visibility: labels, sensitivity, handling and scope, folded into one [`Class`].
//!
//! Two memories of the same class are visible to exactly the same lenses. Every index is
//! partitioned by class, so a lens selects partitions instead of testing rows.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::regulated::is_regulated;
use crate::scope::{Scope, Visibility};
use crate::{Error, Result, limits};

/// A governance label, such as `health` or `work.calendar`.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String")]
pub struct Label(String);

impl TryFrom<String> for Label {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        Self::new(text)
    }
}

impl Label {
    /// Checks length and that there are no control characters.
    pub fn new(text: impl Into<String>) -> Result<Self> {
        let text = text.into();
        if text.is_empty() || text.len() > limits::NAME_BYTES || text.chars().any(char::is_control)
        {
            return Err(Error::invalid(
                "labels",
                "a label must be 1 to 256 bytes without control characters",
            ));
        }
        Ok(Self(text))
    }

    /// The label of whatever carries none.
    #[must_use]
    pub fn behaviour() -> Self {
        Self("behaviour".to_owned())
    }

    /// The label of what is kept from every agent that was not given it by name.
    #[must_use]
    pub fn secret() -> Self {
        Self("secret".to_owned())
    }

    /// The label of what says who someone is.
    #[must_use]
    pub fn identity() -> Self {
        Self("identity".to_owned())
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a grant of `self` covers `other`: equal, or a dotted ancestor.
    ///
    /// Labels outside the dotted convention are opaque and match only themselves.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self == other
            || (self.is_dotted()
                && other.is_dotted()
                && other.0.strip_prefix(&self.0).is_some_and(|rest| rest.starts_with('.')))
    }

    fn is_dotted(&self) -> bool {
        self.0.split('.').enumerate().all(|(depth, segment)| {
            let mut chars = segment.chars();
            chars.next().is_some_and(|c| c.is_ascii_lowercase())
                && chars.all(|c| {
                    c.is_ascii_lowercase() || c.is_ascii_digit() || (depth > 0 && c == '_')
                })
        })
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How much harm a leak would do, in rising order.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Sensitivity {
    /// None.
    Public,
    /// Little. What carries no class counts as this.
    #[default]
    Internal,
    /// Real.
    Confidential,
    /// Severe.
    Restricted,
}

impl Sensitivity {
    /// All classes, rising.
    pub const ALL: [Self; 4] = [Self::Public, Self::Internal, Self::Confidential, Self::Restricted];

    /// Returns the word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Internal => "internal",
            Self::Confidential => "confidential",
            Self::Restricted => "restricted",
        }
    }

    /// Reads the word.
    pub fn parse(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == text).ok_or_else(|| {
            Error::invalid("sensitivity", "must be public, internal, confidential or restricted")
        })
    }
}

/// A way out of the vault. Handling may exempt a memory from grants on one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Surface {
    /// Get, list, search.
    Retrieval,
    /// Files and bulk output.
    Export,
    /// Live changes.
    Stream,
}

/// Which surfaces ignore grants for this memory.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
pub struct Handling {
    /// Retrieval needs no matching grant.
    #[serde(default)]
    pub open_retrieval: bool,
    /// Export needs no matching grant.
    #[serde(default)]
    pub open_export: bool,
    /// Streaming needs no matching grant.
    #[serde(default)]
    pub open_stream: bool,
}

impl Handling {
    /// Whether grants are not asked on this surface.
    #[must_use]
    pub const fn is_open(self, surface: Surface) -> bool {
        match surface {
            Surface::Retrieval => self.open_retrieval,
            Surface::Export => self.open_export,
            Surface::Stream => self.open_stream,
        }
    }
}

/// Governance as it was declared; what was not declared stays undeclared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Governance {
    /// The declared class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensitivity: Option<Sensitivity>,
    /// The declared labels, in the order given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<Label>,
    /// The declared handling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handling: Option<Handling>,
}

/// Everything a lens looks at, in its effective form.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Class {
    /// Effective labels; never empty.
    pub labels: BTreeSet<Label>,
    /// Effective sensitivity.
    pub sensitivity: Sensitivity,
    /// Effective handling.
    pub handling: Handling,
    /// The user of the scope.
    pub user: Option<String>,
    /// The project of the scope.
    pub project: Option<String>,
    /// The agent of the scope.
    pub agent: Option<String>,
    /// The visibility of the scope.
    pub visibility: Visibility,
    /// The agents the scope is shared with, where it names any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_with: Option<BTreeSet<String>>,
}

impl Class {
    /// Folds governance and scope; absent governance counts as `internal` and `behaviour`.
    #[must_use]
    pub fn of(governance: &Governance, scope: &Scope) -> Self {
        let mut labels: BTreeSet<Label> = governance.labels.iter().cloned().collect();
        // What a law protects says nothing about what a thing is about.
        if labels.iter().all(is_regulated) {
            labels.insert(Label::behaviour());
        }
        Self {
            labels,
            sensitivity: governance.sensitivity.unwrap_or_default(),
            handling: governance.handling.unwrap_or_default(),
            user: scope.user.clone(),
            project: scope.project.clone(),
            agent: scope.agent.clone(),
            visibility: scope.visibility,
            shared_with: scope.shared_with.clone(),
        }
    }

    /// Whether its scope lets an agent be shown it; nobody in particular is no agent.
    #[must_use]
    pub fn is_shared_with(&self, agent: Option<&str>) -> bool {
        let Some(agents) = &self.shared_with else { return true };
        agent.is_some_and(|agent| self.agent.as_deref() == Some(agent) || agents.contains(agent))
    }

    /// Whether it is shared with nobody that another is not shared with.
    #[must_use]
    pub fn is_shared_within(&self, other: &Self) -> bool {
        if other.shared_with.is_none() {
            return true;
        }
        let reaches = |agent: &String| other.is_shared_with(Some(agent));
        self.shared_with.as_ref().is_some_and(|own| own.iter().chain(&self.agent).all(reaches))
    }

    /// Whether anybody may read it: it is public by scope and by sensitivity, and no law protects
    /// it.
    #[must_use]
    pub fn is_public(&self) -> bool {
        self.visibility == Visibility::Public
            && self.sensitivity == Sensitivity::Public
            && self.regulated().next().is_none()
    }

    /// The labels of what a law protects.
    pub fn regulated(&self) -> impl Iterator<Item = &Label> {
        self.labels.iter().filter(|label| is_regulated(label))
    }

    /// The labels of what it is about.
    pub fn topics(&self) -> impl Iterator<Item = &Label> {
        self.labels.iter().filter(|label| !is_regulated(label))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(granted: &str, label: &str) -> bool {
        Label::new(granted).unwrap().covers(&Label::new(label).unwrap())
    }

    #[test]
    fn oamp_331_a_label_covers_itself_and_what_lies_below_it() {
        assert!(covers("health", "health"));
        assert!(covers("health", "health.condition"));
        assert!(!covers("finance.income", "finance.holdings"));
        assert!(!covers("finance.income", "finance"));
        assert!(!covers("work", "workshop"));
    }

    #[test]
    fn oamp_332_labels_outside_the_convention_match_only_themselves() {
        assert!(covers("Health", "Health"));
        assert!(!covers("Health", "Health.condition"));
        assert!(!covers("a_b", "a_b.c"), "the first segment admits no underscore");
        assert!(covers("a.b_c", "a.b_c.d"));
        assert!(!covers("a.", "a..b"));
    }

    #[test]
    fn oamp_321_what_declares_nothing_is_internal_behaviour() {
        let class = Class::of(&Governance::default(), &Scope::default());
        assert_eq!(class.sensitivity, Sensitivity::Internal);
        assert_eq!(class.labels.iter().map(Label::as_str).collect::<Vec<_>>(), ["behaviour"]);
    }

    #[test]
    fn mw_200_what_is_shared_with_some_is_shared_with_nobody_else() {
        let of = |agent: Option<&str>, with: Option<&[&str]>| {
            let shared_with = with.map(|names| names.iter().map(|name| (*name).into()).collect());
            let agent = agent.map(str::to_owned);
            Class::of(&Governance::default(), &Scope { agent, shared_with, ..Scope::default() })
        };
        let open = of(Some("a"), None);
        let some = of(Some("a"), Some(&["b"]));
        let own = of(Some("a"), Some(&[]));
        for (class, agent, shown) in [
            (&open, Some("z"), true),
            (&open, None, true),
            (&some, Some("a"), true),
            (&some, Some("b"), true),
            (&some, Some("z"), false),
            (&some, None, false),
            (&own, Some("a"), true),
            (&own, Some("b"), false),
        ] {
            assert_eq!(class.is_shared_with(agent), shown, "{class:?} {agent:?}");
        }
        assert!(own.is_shared_within(&some) && some.is_shared_within(&open));
        assert!(!some.is_shared_within(&own) && !open.is_shared_within(&some));
        assert!(!of(Some("z"), Some(&[])).is_shared_within(&some), "its own agent sees it, too");
    }

    #[test]
    fn oamp_320_classes_are_ordered() {
        assert!(Sensitivity::ALL.is_sorted());
        for class in Sensitivity::ALL {
            assert_eq!(Sensitivity::parse(class.as_str()).unwrap(), class);
        }
    }
}

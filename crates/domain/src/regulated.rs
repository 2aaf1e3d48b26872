//! What a law protects, said by labels: so it is part of the class, and decides who sees a row.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Timestamp;
use crate::class::Label;
use crate::memory::Foreign;

/// Why something is refused for a child's sake.
pub const PARENTAL_CONSENT: &str = "a child's data needs the consent of a parent";
/// Why nothing is taken before it is known whether the person is a child.
pub const AGE_GATE: &str = "nothing is stored before it is known whether this is a child";
/// Why nothing is taken any more.
pub const STOPPED: &str = "a guardian stopped the collection";
/// Why nothing is concluded from what a child said.
pub const NO_PROFILE: &str = "nothing is derived from what a child said";

/// The label above all of them.
const ROOT: &str = "regulated";

/// A sort of data that a law protects.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Regulated {
    /// Health.
    Phi,
    /// Money.
    Npi,
    /// What a child said, or what is about one.
    Child,
}

impl Regulated {
    /// All sorts.
    pub const ALL: [Self; 3] = [Self::Phi, Self::Npi, Self::Child];

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Phi => "phi",
            Self::Npi => "npi",
            Self::Child => "child",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|sort| sort.as_str() == word)
    }

    /// The label that says so.
    #[must_use]
    pub fn label(self) -> Label {
        Label::new(format!("{ROOT}.{}", self.as_str())).expect("invariant: a plain word is a label")
    }
}

/// Whether a label says that a law protects something.
#[must_use]
pub fn is_regulated(label: &Label) -> bool {
    label.as_str().strip_prefix(ROOT).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The consent of a parent that a document names, whichever protocol brought it.
#[must_use]
pub fn parental_consent(foreign: &Foreign) -> Option<&str> {
    let named = foreign.values().filter_map(|own| own.get("x_parental_consent_id"));
    named.filter_map(Value::as_str).find(|id| !id.is_empty())
}

/// When a document is to be erased, whichever protocol brought it.
#[must_use]
pub fn erased_at(foreign: &Foreign) -> Option<Timestamp> {
    let named = foreign.values().filter_map(|own| own.get("x_retention_expires_at"));
    named.filter_map(Value::as_str).filter_map(|text| text.parse().ok()).min()
}

/// Whether a vault is a child's, and who decides for the child.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Guardianship {
    /// Whether the person is a child; absent until somebody said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child: Option<bool>,
    /// The consent of a parent, by whatever name it is filed under.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consent: Option<String>,
    /// The agent that acts for the parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guardian: Option<String>,
    /// Whether a guardian wants nothing more to be stored.
    pub stopped: bool,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_say_what_is_protected() {
        for sort in Regulated::ALL {
            assert!(is_regulated(&sort.label()));
            assert_eq!(Regulated::parse(sort.as_str()), Some(sort));
        }
        assert!(is_regulated(&Label::new("regulated").unwrap()));
        assert!(!is_regulated(&Label::new("regulatedness").unwrap()));
        assert!(!is_regulated(&Label::behaviour()));
    }

    #[test]
    fn a_consent_is_found_wherever_it_was_said() {
        let mut foreign = Foreign::new();
        assert_eq!(parental_consent(&foreign), None);
        foreign.insert("x".into(), json!({"x_parental_consent_id": ""}));
        assert_eq!(parental_consent(&foreign), None);
        foreign.insert("y".into(), json!({"x_parental_consent_id": "c-1"}));
        assert_eq!(parental_consent(&foreign), Some("c-1"));
    }
}

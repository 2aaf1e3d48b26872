//! Where a memory belongs inside its vault. The owner is the vault itself.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Who may be shown it at all.
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
pub enum Visibility {
    /// The owner and whoever holds a grant.
    #[default]
    Private,
    /// Meant for others who hold a grant.
    Shared,
    /// Anyone, once the owner opens the vault for public reads.
    Public,
}

impl Visibility {
    /// Returns the word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Shared => "shared",
            Self::Public => "public",
        }
    }

    /// Reads the word.
    pub fn parse(text: &str) -> Result<Self> {
        [Self::Private, Self::Shared, Self::Public]
            .into_iter()
            .find(|visibility| visibility.as_str() == text)
            .ok_or_else(|| Error::invalid("visibility", "must be private, shared or public"))
    }
}

/// The place of a memory: whose, which project, which agent, which session.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Scope {
    /// The person it is about or was said by, when the owner serves several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The agent whose memory it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The session it arose in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Who may be shown it.
    #[serde(default)]
    pub visibility: Visibility,
    /// The agents that may be shown it besides its own; absent means whoever holds a grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_with: Option<BTreeSet<String>>,
}

/// A demand on scopes: each member that is set must be equal.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct ScopeRule {
    /// The user it must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The project it must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The agent it must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The visibility it must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
}

impl ScopeRule {
    /// Whether nothing is demanded.
    #[must_use]
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }
}

//! A model of the person, replaced as a whole and versioned by its producer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Timestamp;
use crate::class::{Class, Governance, Label, Sensitivity};
use crate::scope::Scope;

/// One state of a person's profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// Whose it is; the owner when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The producer's number; must rise.
    pub version: u64,
    /// The document, verbatim.
    pub document: Map<String, Value>,
    /// When the vault took it in.
    pub recorded: Timestamp,
}

impl Profile {
    /// Returns the class of every profile. It carries no labels of its own, so it counts as
    /// what it is: who someone is, told in confidence.
    #[must_use]
    pub fn class() -> Class {
        let governance = Governance {
            sensitivity: Some(Sensitivity::Confidential),
            labels: vec![Label::identity()],
            handling: None,
        };
        Class::of(&governance, &Scope::default())
    }
}

//! What the person agreed to for one memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Span;

/// Consent as it was given. Absent members mean that nothing was said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Consent {
    /// How long it may be kept, counted from its creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Span>,
    /// Whether it may leave in an export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exportable: Option<bool>,
    /// Dotted paths to leave out when it crosses a visibility boundary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redact: Vec<String>,
}

impl Consent {
    /// Whether an export may contain it.
    #[must_use]
    pub fn allows_export(&self) -> bool {
        self.exportable != Some(false)
    }
}

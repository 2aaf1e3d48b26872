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
    /// The record of the person's consent that it rests on, in the words of who keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

impl Consent {
    /// Whether an export may contain it.
    #[must_use]
    pub fn allows_export(&self) -> bool {
        self.exportable != Some(false)
    }

    /// Whether it allows nothing that the other does not.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        let retention = match (self.retention, other.retention) {
            (_, None) => true,
            (Some(own), Some(most)) => own <= most,
            (None, Some(_)) => false,
        };
        let redacts = |path: &String| self.redact.iter().any(|own| covers(own, path));
        let rests = other.reference.is_none() || self.reference == other.reference;
        retention
            && rests
            && (other.allows_export() || !self.allows_export())
            && other.redact.iter().all(redacts)
    }
}

/// Whether leaving out one path leaves out another, too.
fn covers(path: &str, other: &str) -> bool {
    other.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consent_is_narrowed_member_by_member() {
        let redact = |paths: &[&str]| Consent {
            redact: paths.iter().map(|path| (*path).to_owned()).collect(),
            ..Consent::default()
        };
        let days = |days| Consent { retention: Some(Span::days(days)), ..Consent::default() };
        let export = |exportable| Consent { exportable, ..Consent::default() };
        let rests = |on: &str| Consent { reference: Some(on.to_owned()), ..Consent::default() };
        let none = Consent::default();
        let table = [
            (none.clone(), none.clone(), true),
            (redact(&["body.structured.pin"]), none.clone(), true),
            (none.clone(), redact(&["body.structured.pin"]), false),
            (redact(&["body"]), redact(&["body.structured.pin"]), true),
            (redact(&["bod"]), redact(&["body"]), false),
            (redact(&["body.structured.pin"]), redact(&["body"]), false),
            (days(1), days(2), true),
            (days(3), days(2), false),
            (none.clone(), days(2), false),
            (export(Some(false)), none.clone(), true),
            (export(Some(true)), export(None), true),
            (none.clone(), export(Some(false)), false),
            (rests("c-1"), none.clone(), true),
            (rests("c-1"), rests("c-1"), true),
            (rests("c-2"), rests("c-1"), false),
            (none, rests("c-1"), false),
        ];
        for (new, old, within) in table {
            assert_eq!(new.is_within(&old), within, "{new:?} {old:?}");
        }
    }
}

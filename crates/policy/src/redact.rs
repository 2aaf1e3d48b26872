//! Leaving out what consent says must not cross a visibility boundary.

use serde_json::Value;
use yore_domain::consent::Consent;

use crate::principal::{Principal, Who};

/// To whom something is shown, as far as consent goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Viewer {
    /// The owner, in person or through a service, or the server itself: nothing is kept from them.
    Own,
    /// Everybody else, and whoever a file is given to.
    Other,
}

impl Viewer {
    /// As whom a caller looks.
    #[must_use]
    pub fn of(principal: &Principal) -> Self {
        match principal.who() {
            Who::Owner | Who::Service { .. } | Who::System { .. } => Self::Own,
            Who::Agent { .. } | Who::Anonymous => Self::Other,
        }
    }

    /// Returns the dotted paths that consent keeps from the viewer. Where there are any, a copy
    /// is redacted.
    #[must_use]
    pub fn withheld(self, consent: &Consent) -> &[String] {
        match self {
            Self::Own => &[],
            Self::Other => &consent.redact,
        }
    }

    /// Whether consent lets the viewer take something away in an export.
    #[must_use]
    pub fn may_take(self, consent: &Consent) -> bool {
        match self {
            Self::Own => true,
            Self::Other => consent.allows_export(),
        }
    }
}

/// Removes the members at the dotted paths; a path that leads nowhere is passed over.
///
/// Returns whether anything was removed, in which case any integrity block no longer fits.
pub fn redact(record: &mut Value, paths: &[String]) -> bool {
    let removed = paths.iter().filter(|path| remove(record, path)).count();
    removed > 0
}

fn remove(record: &mut Value, path: &str) -> bool {
    let mut at = record;
    let mut segments = path.split('.').peekable();
    while let Some(segment) = segments.next() {
        let Some(object) = at.as_object_mut() else {
            return false;
        };
        if segments.peek().is_none() {
            return object.shift_remove(segment).is_some();
        }
        let Some(inner) = object.get_mut(segment) else {
            return false;
        };
        at = inner;
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use yore_domain::VaultId;
    use yore_domain::grant::Verb;

    use super::*;
    use crate::principal::tests::{agent, grant, owner};

    #[test]
    fn ump_057_consent_keeps_nothing_from_the_owner_and_its_paths_from_everybody_else() {
        let consent = Consent {
            exportable: Some(false),
            redact: vec!["body.structured.pin".into()],
            ..Consent::default()
        };
        let system = Principal::system(VaultId::CATALOG, "test");
        for principal in [owner(), system] {
            let viewer = Viewer::of(&principal);
            assert!(viewer.withheld(&consent).is_empty() && viewer.may_take(&consent));
        }
        let viewer = Viewer::of(&agent(&[grant(&[Verb::Read, Verb::Export])]));
        assert_eq!(viewer.withheld(&consent), consent.redact);
        assert!(!viewer.may_take(&consent));
        let silent = Consent::default();
        assert!(viewer.withheld(&silent).is_empty() && viewer.may_take(&silent));
    }

    #[test]
    fn ump_058_paths_remove_members_and_nothing_else() {
        let mut record = json!({"body": {"text": "t", "structured": {"a": 1, "b": 2}}, "x": [1]});
        assert!(redact(&mut record, &["body.structured.a".into(), "no.where".into()]));
        assert_eq!(record, json!({"body": {"text": "t", "structured": {"b": 2}}, "x": [1]}));
        assert!(!redact(&mut record, &["x.0".into(), String::new()]));
    }
}

//! Leaving out what consent says must not cross a visibility boundary.

use serde_json::Value;
use yore_domain::class::{Class, Label};
use yore_domain::consent::Consent;
use yore_domain::grant::Labels;

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
            Who::Agent { .. } | Who::Admin { .. } | Who::Anonymous => Self::Other,
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

/// Whether the words of something are kept from a caller who sees that it is there: it is labelled
/// as a secret, and some grant reaches it without naming it.
#[must_use]
pub fn is_secret_to(principal: &Principal, class: &Class) -> bool {
    let secret = Label::secret();
    let mut secrets = class.labels.iter().filter(|label| secret.covers(label)).peekable();
    if secrets.peek().is_none() {
        return false;
    }
    match principal.who() {
        Who::Owner | Who::Service { .. } | Who::System { .. } => false,
        Who::Admin { .. } | Who::Anonymous => true,
        Who::Agent { grants } => !secrets.all(|label| {
            grants.iter().all(|grant| match &grant.read {
                Labels::Any | Labels::AnyWith(_) => false,
                Labels::Under(_) => grant.read.reach(label),
            })
        }),
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
    use yore_domain::class::Governance;
    use yore_domain::grant::{Grant, Verb};
    use yore_domain::scope::Scope;

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
    fn mw_205_a_secret_is_kept_from_whoever_was_not_given_it_by_name() {
        let class = |label: &str| {
            let labels = vec![Label::new(label).unwrap(), Label::new("work").unwrap()];
            Class::of(&Governance { labels, ..Governance::default() }, &Scope::default())
        };
        let reads = |labels: &[&str]| {
            let labels = labels.iter().map(|label| Label::new(*label).unwrap()).collect();
            agent(&[Grant { read: Labels::Under(labels), ..grant(&[Verb::Read]) }])
        };
        let any = agent(&[grant(&[Verb::Read])]);
        for (principal, label, secret) in [
            (&any, "secret", true),
            (&any, "secret.bank", true),
            (&any, "secretary", false),
            (&reads(&["work"]), "secret.bank", true),
            (&reads(&["secret"]), "secret.bank", false),
            (&reads(&["secret.door"]), "secret.bank", true),
            (&owner(), "secret", false),
        ] {
            assert_eq!(is_secret_to(principal, &class(label)), secret, "{label}");
        }
    }

    #[test]
    fn ump_058_paths_remove_members_and_nothing_else() {
        let mut record = json!({"body": {"text": "t", "structured": {"a": 1, "b": 2}}, "x": [1]});
        assert!(redact(&mut record, &["body.structured.a".into(), "no.where".into()]));
        assert_eq!(record, json!({"body": {"text": "t", "structured": {"b": 2}}, "x": [1]}));
        assert!(!redact(&mut record, &["x.0".into(), String::new()]));
    }
}

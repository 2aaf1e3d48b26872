//! Compliance members: what form each must have wherever it stands.

use serde_json::{Map, Value};
use yore_domain::Timestamp;
use yore_domain::memory::Foreign;

use crate::NAME;
use crate::error::{Refusal, Result};

const FLAGS: [&str; 5] =
    ["x_contains_phi", "x_contains_npi", "x_child_user", "x_human_review", "x_regulatory_hold"];
/// Levels of risk, the lowest first.
pub(crate) const RISKS: [&str; 4] = ["low", "medium", "high", "critical"];

/// What the compliance members of a document say, as far as others inherit it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    pub(crate) phi: bool,
    pub(crate) npi: bool,
    pub(crate) child: bool,
    pub(crate) reviewed: bool,
    /// The place among [`RISKS`].
    pub(crate) risk: Option<usize>,
}

impl Flags {
    pub(crate) fn of(object: &Map<String, Value>) -> Self {
        let flag = |name: &str| object.get(name) == Some(&Value::Bool(true));
        let risk = object.get("x_risk_level").and_then(Value::as_str);
        Self {
            phi: flag("x_contains_phi"),
            npi: flag("x_contains_npi"),
            child: flag("x_child_user"),
            reviewed: flag("x_human_review"),
            risk: risk.and_then(|risk| RISKS.iter().position(|known| *known == risk)),
        }
    }

    /// What something stored says.
    pub(crate) fn in_foreign(foreign: &Foreign) -> Self {
        foreign.get(NAME).and_then(Value::as_object).map(Self::of).unwrap_or_default()
    }

    /// What two documents say together: each flag that one has, and the higher risk.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            phi: self.phi || other.phi,
            npi: self.npi || other.npi,
            child: self.child || other.child,
            reviewed: self.reviewed || other.reviewed,
            risk: self.risk.max(other.risk),
        }
    }

    /// The members that a head lacks of what its messages say.
    pub(crate) fn missing_in(self, own: Option<&Value>) -> Map<String, Value> {
        let mut own = own.and_then(Value::as_object).cloned().unwrap_or_default();
        let before = own.clone();
        self.inherit(&mut own);
        own.retain(|name, value| before.get(name) != Some(value));
        own
    }

    /// Whether a change takes a flag away that only an administrator may take away.
    pub(crate) fn lowered_by(self, change: &Map<String, Value>) -> bool {
        let flags = [
            ("x_contains_phi", self.phi),
            ("x_contains_npi", self.npi),
            ("x_child_user", self.child),
        ];
        let lowers = |name: &str| change.get(name).is_some_and(|value| *value != Value::Bool(true));
        flags.into_iter().any(|(name, set)| set && lowers(name))
    }

    /// Writes what is inherited into a document that does not say so itself.
    pub(crate) fn inherit(self, object: &mut Map<String, Value>) {
        let inherited = [
            ("x_contains_phi", self.phi),
            ("x_contains_npi", self.npi),
            ("x_child_user", self.child),
        ];
        for (name, set) in inherited {
            if set {
                object.insert(name.to_owned(), true.into());
            }
        }
        let own = Self::of(object).risk;
        if let Some(risk) = self.risk.filter(|risk| own.is_none_or(|own| own < *risk)) {
            object.insert("x_risk_level".to_owned(), RISKS[risk].into());
        }
    }
}

/// Whether a change is about a flag at all.
pub(crate) fn names_any(change: &Map<String, Value>) -> bool {
    FLAGS.iter().any(|name| change.contains_key(*name))
}

/// Refuses a compliance member of another form than the protocol gives it.
pub(crate) fn check(object: &Map<String, Value>) -> Result<()> {
    let wrong = |name: &str, reason: &str| Err(Refusal::invalid(name, reason));
    for name in FLAGS {
        if object.get(name).is_some_and(|value| !value.is_boolean() && !value.is_null()) {
            return wrong(name, "must be true or false");
        }
    }
    for (name, value) in object.iter().filter(|(_, value)| !value.is_null()) {
        let text = value.as_str();
        match name.as_str() {
            "x_parental_consent_id" if text.is_none_or(str::is_empty) => {
                return wrong(name, "must be a text");
            }
            "x_risk_level" if !text.is_some_and(|text| RISKS.contains(&text)) => {
                return wrong(name, "must be low, medium, high or critical");
            }
            "x_retention_expires_at"
                if text.is_none_or(|text| text.parse::<Timestamp>().is_err()) =>
            {
                return wrong(name, "must be a time");
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn omp_177_compliance_members_of_another_form_are_refused() {
        let checked = |value: Value| check(value.as_object().unwrap());
        assert!(checked(json!({"x_contains_phi": true, "x_risk_level": "critical"})).is_ok());
        assert!(checked(json!({"x_retention_expires_at": "2027-01-01T00:00:00Z"})).is_ok());
        for wrong in [
            json!({"x_contains_phi": "yes"}),
            json!({"x_contains_npi": 1}),
            json!({"x_child_user": []}),
            json!({"x_parental_consent_id": ""}),
            json!({"x_risk_level": "extreme"}),
            json!({"x_human_review": 0}),
            json!({"x_retention_expires_at": "soon"}),
            json!({"x_regulatory_hold": "true"}),
        ] {
            assert_eq!(checked(wrong.clone()).unwrap_err().status, 400, "{wrong}");
        }
    }
}

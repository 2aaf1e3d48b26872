//! Compliance members: what form each must have wherever it stands.

use serde_json::{Map, Value};
use yore_archive::omp::PROTECTED;
use yore_domain::Timestamp;
use yore_domain::class::{Governance, Label};
use yore_domain::memory::Foreign;
use yore_domain::regulated::Regulated;

use crate::NAME;
use crate::error::{Refusal, Result};
use crate::params::Params;

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

    /// What a conversation or a record says, by its labels and its members.
    pub(crate) fn stored(governance: &Governance, foreign: &Foreign) -> Self {
        let has = |sort: Regulated| governance.labels.contains(&sort.label());
        Self {
            phi: has(Regulated::Phi),
            npi: has(Regulated::Npi),
            child: has(Regulated::Child),
            ..Self::in_foreign(foreign)
        }
    }

    /// The labels of what is protected.
    pub(crate) fn labels(self) -> Vec<Label> {
        let sorts = [
            (Regulated::Phi, self.phi),
            (Regulated::Npi, self.npi),
            (Regulated::Child, self.child),
        ];
        sorts.into_iter().filter(|(_, set)| *set).map(|(sort, _)| sort.label()).collect()
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

/// By which compliance members a list is narrowed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    risk: Option<usize>,
    reviewed: Option<bool>,
}

impl Wanted {
    pub(crate) fn of(params: &Params) -> Result<Self> {
        let place = |word: &str| RISKS.iter().position(|known| *known == word);
        let wrong = || Refusal::invalid("risk_level", "must be low, medium, high or critical");
        let risk = params.one("risk_level").map(|word| place(word).ok_or_else(wrong));
        Ok(Self { risk: risk.transpose()?, reviewed: params.flag("human_review")? })
    }

    /// Whether a document is on the list.
    pub(crate) fn met_by(self, flags: Flags) -> bool {
        (self.risk.is_none() || self.risk == flags.risk)
            && self.reviewed.is_none_or(|reviewed| reviewed == flags.reviewed)
    }
}

/// The labels that a change adds, and those that it takes away: what it does not say stays. A flag
/// that is set becomes a label and is no member.
pub(crate) fn relabelled(change: &mut Map<String, Value>) -> (Vec<Label>, Vec<Label>) {
    let (mut protect, mut release) = (Vec::new(), Vec::new());
    for (name, sort) in PROTECTED {
        match change.get_mut(name) {
            Some(value @ Value::Bool(true)) => {
                *value = Value::Null;
                protect.push(sort.label());
            }
            Some(_) => release.push(sort.label()),
            None => {}
        }
    }
    (protect, release)
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

//! Compliance members: what form each must have wherever it stands.

use serde_json::{Map, Value};
use yore_domain::Timestamp;

use crate::error::{Refusal, Result};

const FLAGS: [&str; 5] =
    ["x_contains_phi", "x_contains_npi", "x_child_user", "x_human_review", "x_regulatory_hold"];
const RISKS: [&str; 4] = ["low", "medium", "high", "critical"];

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

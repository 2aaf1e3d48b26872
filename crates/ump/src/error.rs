//! From the domain's outcomes to the protocol's codes, once.

use std::time::Duration;

use serde_json::{Value, json};
use yore_domain::{Error, HoldId};

/// What a carrier needs to know of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The protocol's code.
    pub code: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// What is said to people.
    pub message: String,
    /// When to come back, where that helps.
    pub retry_after: Option<Duration>,
}

impl Refusal {
    /// Returns the refusal that an error means.
    #[must_use]
    pub fn of(error: &Error) -> Self {
        let mut retry_after = None;
        let (code, status) = match error {
            Error::Unauthenticated { .. } => ("unauthorized", 401),
            Error::Forbidden { .. } => ("forbidden_scope", 403),
            Error::NotFound => ("not_found", 404),
            Error::Invalid { .. } | Error::Conflict { .. } => ("invalid_record", 400),
            Error::TooLarge { .. } => ("invalid_record", 413),
            Error::Consent { .. } => ("consent_violation", 400),
            Error::Signature { .. } => ("signature_invalid", 400),
            Error::Unsupported { .. } => ("unsupported", 400),
            Error::RateLimited { retry_after: after } => {
                retry_after = Some(*after);
                ("rate_limited", 429)
            }
            // Of the codes there are, this is the one that tells a client to come back.
            Error::Busy { retry_after: after, .. } => {
                retry_after = Some(*after);
                ("rate_limited", 503)
            }
            // Operations that can be held answer this themselves; see [`held`].
            Error::Held { .. } => ("unsupported", 400),
            Error::Internal(source) => {
                tracing::error!(error = %source, "internal error");
                ("internal", 500)
            }
        };
        Self { code, status, message: format!("{code}: {error}"), retry_after }
    }

    /// Returns the envelope.
    #[must_use]
    pub fn envelope(&self) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(after) = self.retry_after {
            error["retry_after"] = after.as_secs().max(1).into();
        }
        json!({"error": error})
    }
}

/// The reason of a write that waits for a person.
pub(crate) fn held(hold: HoldId) -> String {
    format!("pending_approval:{hold}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ump_082_every_outcome_has_its_code_and_status() {
        let second = Duration::from_millis(10);
        let table: [(Error, &str, u16); 12] = [
            (Error::unauthenticated("x"), "unauthorized", 401),
            (Error::forbidden("x"), "forbidden_scope", 403),
            (Error::NotFound, "not_found", 404),
            (Error::invalid("body.text", "x"), "invalid_record", 400),
            (Error::conflict("x"), "invalid_record", 400),
            (Error::too_large("x", 1), "invalid_record", 413),
            (Error::consent("x"), "consent_violation", 400),
            (Error::Signature { reason: "x".into() }, "signature_invalid", 400),
            (Error::Unsupported { what: "x".into() }, "unsupported", 400),
            (Error::RateLimited { retry_after: second }, "rate_limited", 429),
            (Error::Busy { reason: "x".into(), retry_after: second }, "rate_limited", 503),
            (Error::internal("the disk is full"), "internal", 500),
        ];
        for (error, code, status) in table {
            let refusal = Refusal::of(&error);
            assert_eq!((refusal.code, refusal.status), (code, status), "{error}");
            let envelope = refusal.envelope();
            assert_eq!(envelope["error"]["code"], code);
            let message = envelope["error"]["message"].as_str().unwrap();
            assert!(message.starts_with(&format!("{code}: ")), "{message}");
            assert!(!message.contains("disk"), "what failed inside is not told");
        }
    }
}

//! Refusals in the protocol's own form: a status, a code and a sentence.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use yore_domain::{Error, HoldId};

/// The challenge that names both ways to authenticate.
const CHALLENGE: &str = "Bearer realm=\"yore\", OAMP-Grant realm=\"yore\"";

/// What a caller is told instead of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The protocol's code.
    pub code: &'static str,
    /// For people; never holds a word of an entry.
    pub message: String,
    /// Seconds after which to try again.
    pub retry_after: Option<u64>,
    /// The decision that is waited for.
    pub hold: Option<HoldId>,
}

/// A result whose failure is a refusal.
pub(crate) type Result<T, E = Refusal> = std::result::Result<T, E>;

impl Refusal {
    pub(crate) fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), retry_after: None, hold: None }
    }

    /// A document or parameter that breaks a rule.
    pub(crate) fn invalid(path: &str, reason: &str) -> Self {
        Error::invalid(path, reason).into()
    }

    /// The same refusal of a write under a grant.
    pub(crate) fn of_write(self) -> Self {
        let code = if self.code == "FORBIDDEN" { "SCOPE_DENIED_WRITE" } else { self.code };
        Self { code, ..self }
    }

    /// The body.
    #[must_use]
    pub fn envelope(&self) -> Value {
        let mut body = json!({"error": self.message, "code": self.code});
        if let Some(hold) = self.hold {
            body["status"] = "pending_approval".into();
            body["hold"] = hold.to_string().into();
        }
        body
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        let of = |status, code| Self::new(status, code, message.clone());
        match error {
            Error::Unauthenticated { .. } => of(401, "UNAUTHORIZED"),
            Error::Forbidden { .. } | Error::Consent { .. } => of(403, "FORBIDDEN"),
            Error::NotFound => of(404, "NOT_FOUND"),
            Error::Invalid { .. } | Error::Signature { .. } | Error::Unsupported { .. } => {
                of(400, "VALIDATION_ERROR")
            }
            Error::Conflict { winner: Some(_), .. } => of(409, "DUPLICATE_ID"),
            Error::Conflict { winner: None, .. } => of(409, "VERSION_CONFLICT"),
            Error::TooLarge { .. } => of(413, "VALIDATION_ERROR"),
            Error::RateLimited { retry_after } => {
                Self { retry_after: Some(retry_after.as_secs().max(1)), ..of(429, "RATE_LIMITED") }
            }
            Error::Busy { retry_after, .. } => {
                Self { retry_after: Some(retry_after.as_secs().max(1)), ..of(503, "UNAVAILABLE") }
            }
            Error::Held { hold } => Self { hold: Some(hold), ..of(202, "PENDING_APPROVAL") },
            Error::Internal(source) => {
                tracing::error!(error = %source, "an operation failed");
                of(500, "INTERNAL")
            }
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, self.envelope().to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(CHALLENGE));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn oamp_065_every_refusal_has_a_text_and_a_code() {
        let hold = HoldId::random();
        let table = [
            (Error::unauthenticated("x"), 401, "UNAUTHORIZED"),
            (Error::forbidden("x"), 403, "FORBIDDEN"),
            (Error::consent("x"), 403, "FORBIDDEN"),
            (Error::NotFound, 404, "NOT_FOUND"),
            (Error::invalid("a", "b"), 400, "VALIDATION_ERROR"),
            (Error::Signature { reason: "x".into() }, 400, "VALIDATION_ERROR"),
            (Error::Unsupported { what: "x".into() }, 400, "VALIDATION_ERROR"),
            (Error::Conflict { reason: "x".into(), winner: Some("y".into()) }, 409, "DUPLICATE_ID"),
            (Error::conflict("x"), 409, "VERSION_CONFLICT"),
            (Error::too_large("x", 1), 413, "VALIDATION_ERROR"),
            (Error::RateLimited { retry_after: Duration::ZERO }, 429, "RATE_LIMITED"),
            (Error::Busy { reason: "x".into(), retry_after: Duration::ZERO }, 503, "UNAVAILABLE"),
            (Error::Held { hold }, 202, "PENDING_APPROVAL"),
            (Error::internal("secret"), 500, "INTERNAL"),
        ];
        for (error, status, code) in table {
            let refusal = Refusal::from(error);
            assert_eq!((refusal.status, refusal.code), (status, code));
            let body = refusal.envelope();
            assert!(body["error"].is_string() && body["code"] == code);
            assert!(!body.to_string().contains("secret"));
        }
    }

    #[test]
    fn oamp_067_whoever_is_too_quick_is_told_when_to_come_back() {
        let refusal = Refusal::from(Error::RateLimited { retry_after: Duration::from_secs(7) });
        let response = refusal.into_response();
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()[RETRY_AFTER], "7");
    }
}

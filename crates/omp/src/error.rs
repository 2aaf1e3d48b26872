//! Refusals in the protocol's own form: a code, a sentence and details.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use yore_domain::{Error, regulated};

use crate::scope::Scope;

/// What a caller is told instead of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The protocol's code.
    pub code: &'static str,
    /// For people; never holds a word of what is stored.
    pub message: String,
    /// What programs may want to know.
    pub details: Box<Map<String, Value>>,
    /// Seconds after which to try again.
    pub retry_after: Option<u64>,
}

/// A result whose failure is a refusal.
pub(crate) type Result<T, E = Refusal> = std::result::Result<T, E>;

impl Refusal {
    pub(crate) fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), details: Box::default(), retry_after: None }
    }

    /// A document or parameter that breaks a rule.
    pub(crate) fn invalid(path: &str, reason: &str) -> Self {
        Error::invalid(path, reason).into()
    }

    /// Adds a detail.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// The same from a route that asks for a scope, unless something in it asked for another.
    pub(crate) fn at(self, scope: Scope) -> Self {
        let said = ["reason", "required_scope"].iter().any(|name| self.details.contains_key(*name));
        match self.code {
            "forbidden" if !said => self.with("required_scope", scope.as_str()),
            _ => self,
        }
    }

    /// The same of a change that named the state it is about.
    pub(crate) fn unless_matched(self, demanded: bool) -> Self {
        match self.status {
            409 if demanded => Self { status: 412, code: "precondition_failed", ..self },
            _ => self,
        }
    }

    /// The body.
    #[must_use]
    pub fn envelope(&self) -> Value {
        json!({"error": {"code": self.code, "message": self.message, "details": self.details}})
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        let of = |status, code| Self::new(status, code, message.clone());
        match error {
            Error::Unauthenticated { .. } => of(401, "unauthorized"),
            Error::Forbidden { .. } => of(403, "forbidden"),
            Error::Consent { reason } => {
                let reason = match reason.as_str() {
                    regulated::PARENTAL_CONSENT => "parental_consent_required",
                    regulated::AGE_GATE => "age_gate_required",
                    regulated::STOPPED => "collection_stopped",
                    regulated::NO_PROFILE => "no_profiling",
                    _ => "regulatory_hold",
                };
                of(403, "forbidden").with("reason", reason)
            }
            Error::NotFound => of(404, "not_found"),
            Error::Invalid { path, .. } => of(400, "invalid_request").with("path", path),
            Error::Signature { .. } | Error::Unsupported { .. } => of(400, "invalid_request"),
            Error::Conflict { winner: Some(id), .. } => of(409, "conflict").with("existing_id", id),
            Error::Conflict { winner: None, .. } => of(409, "conflict"),
            Error::TooLarge { .. } => of(413, "payload_too_large"),
            Error::RateLimited { retry_after } => {
                Self { retry_after: Some(retry_after.as_secs().max(1)), ..of(429, "rate_limited") }
            }
            Error::Busy { retry_after, .. } => {
                Self { retry_after: Some(retry_after.as_secs().max(1)), ..of(503, "unavailable") }
            }
            Error::Held { hold } => of(202, "pending_approval").with("hold", hold.to_string()),
            Error::Internal(source) => {
                tracing::error!(error = %source, "an operation failed");
                of(500, "internal_error")
            }
        }
    }
}

impl From<yore_archive::Error> for Refusal {
    fn from(error: yore_archive::Error) -> Self {
        match error {
            yore_archive::Error::TooLarge { what, limit } => Error::too_large(what, limit).into(),
            yore_archive::Error::Archive { what: "version", reason } => {
                Self::new(400, "invalid_request", reason).with("reason", "unsupported_version")
            }
            yore_archive::Error::Archive { what: "entry", reason } => {
                Self::new(400, "invalid_request", reason)
            }
            yore_archive::Error::Archive { what, reason } => {
                Self::new(400, "invalid_request", reason).with("reason", what)
            }
            // Where it lies here is nobody's business.
            yore_archive::Error::Zip { reason, .. } => {
                Self::new(400, "invalid_request", reason).with("reason", "zip")
            }
            error @ (yore_archive::Error::Form(_) | yore_archive::Error::Stopped(_)) => {
                Self::new(400, "invalid_request", error.to_string())
            }
            error @ yore_archive::Error::Io { .. } => Error::internal(error).into(),
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
            let challenge = HeaderValue::from_static("Bearer realm=\"yore\"");
            headers.insert(WWW_AUTHENTICATE, challenge);
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

    use yore_domain::HoldId;

    use super::*;

    #[test]
    fn omp_126_every_refusal_has_a_code_a_message_and_details() {
        let table = [
            (Error::unauthenticated("x"), 401, "unauthorized"),
            (Error::forbidden("x"), 403, "forbidden"),
            (Error::consent("x"), 403, "forbidden"),
            (Error::NotFound, 404, "not_found"),
            (Error::invalid("a", "b"), 400, "invalid_request"),
            (Error::Signature { reason: "x".into() }, 400, "invalid_request"),
            (Error::Unsupported { what: "x".into() }, 400, "invalid_request"),
            (Error::conflict("x"), 409, "conflict"),
            (Error::too_large("x", 1), 413, "payload_too_large"),
            (Error::RateLimited { retry_after: Duration::from_secs(7) }, 429, "rate_limited"),
            (Error::Busy { reason: "x".into(), retry_after: Duration::ZERO }, 503, "unavailable"),
            (Error::Held { hold: HoldId::random() }, 202, "pending_approval"),
            (Error::internal("secret"), 500, "internal_error"),
        ];
        for (error, status, code) in table {
            let refusal = Refusal::from(error);
            assert_eq!((refusal.status, refusal.code), (status, code));
            let body = refusal.envelope();
            assert_eq!(body["error"]["code"], code);
            assert!(body["error"]["message"].is_string() && body["error"]["details"].is_object());
            assert!(!body.to_string().contains("secret"));
        }
        let quick = Refusal::from(Error::RateLimited { retry_after: Duration::from_secs(7) });
        assert_eq!(quick.into_response().headers()[RETRY_AFTER], "7");
    }

    #[test]
    fn omp_151_a_lack_of_scope_names_it_and_a_hold_does_not() {
        let lacking = Refusal::from(Error::forbidden("x")).at(Scope::Delete);
        assert_eq!(lacking.envelope()["error"]["details"]["required_scope"], "omp:delete");
        let held = Refusal::from(Error::consent("x")).at(Scope::Delete);
        assert_eq!(held.envelope()["error"]["details"], json!({"reason": "regulatory_hold"}));
    }
}

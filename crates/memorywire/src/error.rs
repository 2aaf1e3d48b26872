//! Refusals: a status, one of the server's stable codes, and a sentence.
//!
//! The protocol defines no form for them over HTTP; this is the one of the native API, and the
//! place where carriers look for a code.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use yore_domain::Error;

/// What a caller is told instead of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The stable code.
    pub code: &'static str,
    /// For people; never holds a word of a memory.
    pub message: String,
    /// Seconds after which to try again.
    pub retry_after: Option<u64>,
}

impl Refusal {
    /// The body.
    #[must_use]
    pub fn envelope(&self) -> Value {
        json!({"error": {"code": self.code, "message": self.message}})
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let (code, message) = (error.code(), error.to_string());
        let (status, wait) = match error {
            Error::Unauthenticated { .. } => (401, None),
            Error::Forbidden { .. } | Error::Consent { .. } => (403, None),
            Error::NotFound => (404, None),
            Error::Invalid { .. } | Error::Signature { .. } | Error::Unsupported { .. } => {
                (400, None)
            }
            Error::Conflict { .. } => (409, None),
            Error::TooLarge { .. } => (413, None),
            Error::RateLimited { retry_after } => (429, Some(retry_after)),
            Error::Busy { retry_after, .. } => (503, Some(retry_after)),
            Error::Held { .. } => (202, None),
            Error::Internal(source) => {
                tracing::error!(error = %source, "an operation failed");
                (500, None)
            }
        };
        let retry_after = wait.map(|wait| wait.as_secs().max(1));
        Self { status, code, message, retry_after }
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
    fn every_refusal_has_a_status_and_a_code() {
        let table = [
            (Error::unauthenticated("x"), 401),
            (Error::forbidden("x"), 403),
            (Error::consent("x"), 403),
            (Error::NotFound, 404),
            (Error::invalid("a", "b"), 400),
            (Error::Signature { reason: "x".into() }, 400),
            (Error::Unsupported { what: "x".into() }, 400),
            (Error::conflict("x"), 409),
            (Error::too_large("x", 1), 413),
            (Error::RateLimited { retry_after: Duration::ZERO }, 429),
            (Error::Busy { reason: "x".into(), retry_after: Duration::ZERO }, 503),
            (Error::Held { hold: HoldId::random() }, 202),
            (Error::internal("secret"), 500),
        ];
        for (error, status) in table {
            let code = error.code();
            let refusal = Refusal::from(error);
            assert_eq!((refusal.status, refusal.code), (status, code));
            let body = refusal.envelope();
            assert_eq!(body["error"]["code"], code);
            assert!(!body.to_string().contains("secret"));
        }
    }
}

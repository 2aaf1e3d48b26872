//! From the domain's outcomes to HTTP, once.

use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use yore_client::{Refusal, Refused};
use yore_domain::Error;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Answers with a value as JSON.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => (status, [(CONTENT_TYPE, JSON)], body).into_response(),
        Err(error) => refusal(&Error::internal(error)),
    }
}

/// Answers with a refusal. What an internal error means goes to the log, here and only here.
pub(crate) fn refusal(error: &Error) -> Response {
    let mut hold = None;
    let mut retry = None;
    let status = match error {
        Error::Unauthenticated { .. } => StatusCode::UNAUTHORIZED,
        Error::Forbidden { .. } => StatusCode::FORBIDDEN,
        Error::NotFound => StatusCode::NOT_FOUND,
        Error::Invalid { .. } | Error::Signature { .. } => StatusCode::BAD_REQUEST,
        Error::Conflict { .. } => StatusCode::CONFLICT,
        Error::Consent { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        Error::Unsupported { .. } => StatusCode::NOT_IMPLEMENTED,
        Error::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        Error::RateLimited { retry_after } => {
            retry = Some(*retry_after);
            StatusCode::TOO_MANY_REQUESTS
        }
        Error::Busy { retry_after, .. } => {
            retry = Some(*retry_after);
            StatusCode::SERVICE_UNAVAILABLE
        }
        Error::Held { hold: id } => {
            hold = Some(*id);
            StatusCode::ACCEPTED
        }
        Error::Internal(source) => {
            tracing::error!(error = %chain(&**source), "internal error");
            StatusCode::INTERNAL_SERVER_ERROR
        }
    };
    let mut response = answer(status, error.code(), error.to_string(), hold);
    if status == StatusCode::UNAUTHORIZED {
        let challenge = HeaderValue::from_static("Bearer realm=\"yore\"");
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    if let Some(retry) = retry {
        let seconds = retry.max(Duration::from_secs(1)).as_secs();
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Answers with a refusal that HTTP knows and the domain does not.
pub(crate) fn refused(status: StatusCode, code: &str, message: &str) -> Response {
    answer(status, code, message.to_owned(), None)
}

fn answer(
    status: StatusCode,
    code: &str,
    message: String,
    hold: Option<yore_domain::HoldId>,
) -> Response {
    let error = Refusal {
        status: status.as_u16(),
        code: code.to_owned(),
        message,
        hold,
        retry_after: None,
    };
    json(status, &Refused { error })
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text = format!("{text}: {error}");
        next = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use yore_domain::HoldId;

    use super::*;

    #[tokio::test]
    async fn every_outcome_has_its_status_and_code() {
        let wait = Duration::from_millis(2500);
        let cases = [
            (Error::unauthenticated("x"), 401, "unauthenticated"),
            (Error::forbidden("x"), 403, "forbidden"),
            (Error::NotFound, 404, "not_found"),
            (Error::invalid("a", "b"), 400, "invalid"),
            (Error::conflict("x"), 409, "conflict"),
            (Error::consent("x"), 422, "consent"),
            (Error::Signature { reason: "x".into() }, 400, "signature"),
            (Error::Unsupported { what: "x".into() }, 501, "unsupported"),
            (Error::too_large("x", 1), 413, "too_large"),
            (Error::RateLimited { retry_after: wait }, 429, "rate_limited"),
            (Error::Busy { reason: "x".into(), retry_after: wait }, 503, "busy"),
            (Error::Held { hold: HoldId::random() }, 202, "pending_approval"),
            (Error::internal("the disk says secret things"), 500, "internal"),
        ];
        for (error, status, code) in cases {
            let response = refusal(&error);
            assert_eq!(response.status().as_u16(), status, "{code}");
            assert_eq!(response.headers().contains_key(WWW_AUTHENTICATE), status == 401, "{code}");
            let retry = response.headers().get(RETRY_AFTER).map(|v| v.to_str().unwrap().to_owned());
            assert_eq!(retry.as_deref(), matches!(status, 429 | 503).then_some("2"), "{code}");
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body["error"]["code"], code);
            assert_eq!(body["error"].get("hold").is_some(), status == 202, "{code}");
            assert!(!body.to_string().contains("secret"), "{body}");
        }
    }
}

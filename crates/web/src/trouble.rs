//! Pages that say what went wrong.

use askama::Template;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use yore_domain::Error;

use crate::headers::SignedOut;

/// What a page answers instead of itself.
#[derive(Debug)]
pub(crate) struct Trouble(Error);

/// A page, or what stands in its way.
pub(crate) type Page = std::result::Result<Response, Trouble>;

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

#[derive(Template)]
#[template(path = "trouble.html")]
struct TroublePage<'a> {
    title: &'a str,
    text: &'a str,
}

/// A page of its own that says what went wrong. It needs nobody signed in.
pub(crate) fn page(status: StatusCode, title: &str, text: &str) -> Response {
    (status, shown(&TroublePage { title, text })).into_response()
}

/// The answer to a form that none of our pages of this sign-in made.
pub(crate) fn foreign_form() -> Response {
    let text = "The form is from another sign-in or another site. Open the page again.";
    page(StatusCode::FORBIDDEN, "This form is too old", text)
}

/// Writes a page out.
pub(crate) fn shown(page: &impl Template) -> Response {
    match page.render() {
        Ok(text) => {
            let kind = HeaderValue::from_static("text/html; charset=utf-8");
            ([(CONTENT_TYPE, kind)], text).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "a page could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// An address under the app that leads nowhere.
pub(crate) async fn missing() -> Response {
    Trouble(Error::NotFound).into_response()
}

impl IntoResponse for Trouble {
    fn into_response(self) -> Response {
        let said = self.0.to_string();
        let (status, title) = match &self.0 {
            Error::Unauthenticated { .. } => {
                let mut response = StatusCode::UNAUTHORIZED.into_response();
                response.extensions_mut().insert(SignedOut);
                return response;
            }
            Error::Held { .. } => return Redirect::to("/app/review?said=held").into_response(),
            Error::Forbidden { .. } => (StatusCode::FORBIDDEN, "Not allowed"),
            Error::NotFound => {
                let text = "There is nothing here, or nothing that you may see.";
                return page(StatusCode::NOT_FOUND, "Not found", text);
            }
            Error::Invalid { .. } | Error::Signature { .. } => {
                (StatusCode::BAD_REQUEST, "That cannot be")
            }
            Error::Conflict { .. } => (StatusCode::CONFLICT, "Somebody was faster"),
            Error::Consent { .. } => {
                (StatusCode::UNPROCESSABLE_ENTITY, "Consent stands against it")
            }
            Error::Unsupported { .. } => (StatusCode::NOT_IMPLEMENTED, "Not done here"),
            Error::TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "Too large"),
            Error::RateLimited { .. } => (StatusCode::TOO_MANY_REQUESTS, "Too many at once"),
            Error::Busy { .. } => (StatusCode::SERVICE_UNAVAILABLE, "Busy"),
            Error::Internal(source) => {
                tracing::error!(error = %source, "internal error");
                (StatusCode::INTERNAL_SERVER_ERROR, "Something broke")
            }
        };
        let mut response = page(status, title, &said);
        if let Error::RateLimited { retry_after } | Error::Busy { retry_after, .. } = &self.0 {
            let seconds = HeaderValue::from(retry_after.as_secs().max(1));
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
        response
    }
}

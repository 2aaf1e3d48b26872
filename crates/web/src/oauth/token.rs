//! Redeeming a code for a token.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;
use yore_canon::encode::base64url;
use yore_canon::hash::Sha256;
use yore_domain::grant::Verb;

use super::codes::{Consent, Presented};
use super::{answer, refuse};
use crate::desk::Desk;
use crate::form::Form;

/// Gives a token for a code.
pub(crate) async fn redeem(State(desk): State<Desk>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let form = match yore_http::body(&parts.headers, body, desk.surface.limits.body).await {
        Ok(body) => Form::read(&body),
        Err(error) => return refuse("invalid_request", &error.to_string()),
    };
    if form.get("grant_type") != Some("authorization_code") {
        return refuse("unsupported_grant_type", "only authorization_code is spoken here");
    }
    let code = form.get("code").unwrap_or_default();
    match desk.codes.present(code, desk.engine().now()) {
        Presented::Unknown => refuse("invalid_grant", "the code is unknown or too old"),
        Presented::Again(consent, grant) => {
            if let Some(grant) = grant
                && let Err(error) = desk.engine().revoke_grant(&consent.call, grant).await
            {
                tracing::warn!(code = error.code(), "a grant could not be taken back");
            }
            refuse("invalid_grant", "the code was used before; what came of it is taken back")
        }
        Presented::Good(consent) => match objection(&form, &consent) {
            Some((code, reason)) => refuse(code, reason),
            None => issue(&desk, code, *consent).await,
        },
    }
}

/// What is wrong with a request for a code that is good.
fn objection(form: &Form, consent: &Consent) -> Option<(&'static str, &'static str)> {
    let is = |name: &str, wanted: &str| form.get(name) == Some(wanted);
    let verifier = form.get("code_verifier").unwrap_or_default();
    let hashed = base64url(Sha256::of(verifier).as_bytes());
    if !is("client_id", &consent.client) {
        return Some(("invalid_client", "the code belongs to another client"));
    }
    if !is("redirect_uri", &consent.redirect) {
        return Some(("invalid_grant", "the code was sent to another redirect_uri"));
    }
    if !(43..=128).contains(&verifier.len()) || hashed != consent.challenge {
        return Some(("invalid_grant", "the code_verifier does not match"));
    }
    if form.get("resource").is_some() && form.get("resource") != consent.resource.as_deref() {
        return Some(("invalid_target", "the code was given for another resource"));
    }
    None
}

async fn issue(desk: &Desk, code: &str, consent: Consent) -> Response {
    let verbs = consent.request.verbs;
    let life = consent.request.ttl;
    match desk.engine().issue_grant(&consent.call, consent.request).await {
        Ok(issued) => {
            desk.codes.led_to(code, issued.grant.id);
            let scope: Vec<&str> = verbs.iter().map(Verb::as_str).collect();
            let mut said = json!({
                "access_token": issued.token,
                "token_type": "Bearer",
                "scope": scope.join(" "),
            });
            if let Some(life) = life {
                said["expires_in"] = json!(life.micros() / 1_000_000);
            }
            answer(StatusCode::OK, &said)
        }
        Err(error) => {
            tracing::warn!(code = error.code(), "a grant that was agreed to could not be given");
            refuse("invalid_grant", "the owner's sign-in has ended")
        }
    }
}

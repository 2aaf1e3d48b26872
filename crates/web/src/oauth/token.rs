//! Redeeming a code for a token, and renewing that token.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use serde_json::json;
use yore_canon::encode::base64url;
use yore_canon::hash::Sha256;
use yore_domain::grant::Verb;
use yore_engine::{Call, Credentials, Renewable, Secret};

use super::authorize::is_ours;
use super::codes::{Consent, Presented};
use super::{answer, refuse};
use crate::desk::Desk;
use crate::form::Form;
use crate::visit::{base, call};

/// Gives a token for a code.
pub(crate) async fn redeem(State(desk): State<Desk>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let form = match yore_http::body(&parts.headers, body, desk.surface.limits.body).await {
        Ok(body) => Form::read(&body),
        Err(error) => return refuse("invalid_request", &error.to_string()),
    };
    match form.get("grant_type") {
        Some("authorization_code") => {}
        Some("refresh_token") => return renew(&desk, &parts, &form).await,
        Some(_) | None => {
            let reason = "only authorization_code and refresh_token are spoken here";
            return refuse("unsupported_grant_type", reason);
        }
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
    let client = mark(&consent.client);
    match desk.engine().connect(&consent.call, consent.request, client).await {
        Ok(issued) => {
            desk.codes.led_to(code, issued.grant.id);
            told(&issued)
        }
        Err(error) => {
            tracing::warn!(code = error.code(), "a grant that was agreed to could not be given");
            refuse("invalid_grant", "the owner's sign-in has ended")
        }
    }
}

/// Gives a new token for what renews it, which counts once.
async fn renew(desk: &Desk, parts: &Parts, form: &Form) -> Response {
    let renewal = Secret::new(form.get("refresh_token").unwrap_or_default());
    let resource = form.get("resource");
    if resource.is_some_and(|resource| !is_ours(resource, &base(parts))) {
        return refuse("invalid_target", "the token was given for another resource");
    }
    let client = mark(form.get("client_id").unwrap_or_default());
    let call = Call { credentials: Credentials::default(), ..call(parts, renewal.clone()) };
    match desk.engine().renew(&call, &renewal, &client).await {
        Ok(issued) => told(&issued),
        Err(error) => refuse("invalid_grant", &error.to_string()),
    }
}

/// What is kept of a client, to know it again.
fn mark(client: &str) -> String {
    format!("renews for client {}", &Sha256::of(client).to_hex()[..32])
}

fn told(issued: &Renewable) -> Response {
    let scope: Vec<&str> = issued.grant.verbs.iter().map(Verb::as_str).collect();
    let said = json!({
        "access_token": issued.token.expose(),
        "token_type": "Bearer",
        "expires_in": issued.life.micros() / 1_000_000,
        "refresh_token": issued.renewal.expose(),
        "scope": scope.join(" "),
    });
    answer(StatusCode::OK, &said)
}

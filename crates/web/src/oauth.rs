//! A built-in OAuth 2.1 authorisation server, so that agents are connected by clicking.
//!
//! Authorisation code with PKCE (RFC 7636), server metadata (RFC 8414), resource indicators
//! (RFC 8707), tokens that are renewed, client ID metadata documents, and dynamic registration
//! (RFC 7591) for clients that have none. What an agent gets in the end is an ordinary
//! grant with its token, issued by the engine with the owner's own credential at the moment the
//! code is redeemed; so it is listed, audited and taken back like any other.
//!
//! Clients are public and registering is open to everybody, so a client's id only has to say
//! what it registered: it carries that itself, and nothing is kept (`client.rs`).

pub(crate) mod authorize;
pub(crate) mod cards;
mod client;
pub(crate) mod codes;
pub(crate) mod token;

use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use yore_domain::grant::Verb;

use self::client::Client;
use crate::desk::Desk;
use crate::visit::base;

/// Where the server describes itself.
pub(crate) const WELL_KNOWN: &str = "/.well-known/oauth-authorization-server";
/// What an agent may ask for. More than that, owners give by hand.
pub(crate) const SCOPES: [Verb; 4] = [Verb::Read, Verb::Write, Verb::Derive, Verb::Export];

/// Describes the authorisation server.
pub(crate) async fn metadata(State(desk): State<Desk>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let base = base(&parts);
    answer(
        StatusCode::OK,
        &json!({
            "issuer": base,
            "authorization_endpoint": format!("{base}/app/oauth/authorize"),
            "token_endpoint": format!("{base}/oauth/token"),
            "registration_endpoint": format!("{base}/oauth/register"),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "client_id_metadata_document_supported": desk.options.fetch.is_some(),
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "scopes_supported": SCOPES.map(Verb::as_str),
            "authorization_response_iss_parameter_supported": true,
        }),
    )
}

/// Registers a client: its id is what it says of itself.
pub(crate) async fn register(State(desk): State<Desk>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let limits = desk.surface.limits;
    let said = yore_http::input::<Value>(&parts, body, limits.body, limits.depth).await;
    let client = said
        .map_err(|error| error.to_string())
        .and_then(|said| Client::registered(&said).map_err(str::to_owned));
    match client {
        Ok(client) => answer(
            StatusCode::CREATED,
            &json!({
                "client_id": client.id(),
                "client_name": client.name(),
                "redirect_uris": client.redirects(),
                "grant_types": ["authorization_code", "refresh_token"],
                "response_types": ["code"],
                "token_endpoint_auth_method": "none",
            }),
        ),
        Err(reason) => refuse("invalid_client_metadata", &reason),
    }
}

/// Refuses in the words of the protocol.
fn refuse(code: &str, reason: &str) -> Response {
    answer(StatusCode::BAD_REQUEST, &json!({ "error": code, "error_description": reason }))
}

fn answer(status: StatusCode, body: &Value) -> Response {
    let head = [
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (status, head, body.to_string()).into_response()
}

//! What clients read about how to be let in (RFC 9728), and the refusal that points there.

use axum::http::header::{CONTENT_TYPE, HOST, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use yore_domain::Error;
use yore_domain::grant::Verb;
use yore_http::{Peer, Way};

use crate::options::Options;

/// Where the description of the protected resource lies.
pub(crate) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Describes the endpoint of a path. The resource's path follows the well-known one.
pub(crate) fn describe(options: &Options, parts: &Parts) -> Value {
    let path = parts.uri.path().strip_prefix(WELL_KNOWN).unwrap_or_default();
    let path = if path.is_empty() { crate::http::DOTTED } else { path };
    let mut described = json!({
        "resource": format!("{}{path}", base(parts)),
        "resource_name": "Yore",
        "bearer_methods_supported": ["header"],
        "scopes_supported": Verb::ALL.map(Verb::as_str),
        "resource_documentation": "https://github.com/yore-memory/yore",
        "yore_tokens": "a token that yore issues, or a capability token that the vault's owner signed",
    });
    let own = options.issues_tokens.then(|| base(parts));
    let servers: Vec<&String> = own.iter().chain(&options.authorization_servers).collect();
    if !servers.is_empty() {
        described["authorization_servers"] = json!(servers);
    }
    described
}

/// Refuses a request that presents no credential, or one that does not hold.
pub(crate) fn unauthenticated(parts: &Parts, id: Value, error: &Error) -> Response {
    let path = parts.uri.path();
    let mut challenge = format!(
        "Bearer realm=\"yore\", resource_metadata=\"{}{WELL_KNOWN}{path}\", scope=\"read write\"",
        base(parts)
    );
    if parts.headers.contains_key(axum::http::header::AUTHORIZATION) {
        challenge.push_str(", error=\"invalid_token\"");
    }
    let mut response = refusal(StatusCode::UNAUTHORIZED, id, -32600, &error.to_string());
    if let Ok(challenge) = HeaderValue::from_str(&challenge) {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

/// A refusal in the words of JSON-RPC.
pub(crate) fn refusal(status: StatusCode, id: Value, code: i32, message: &str) -> Response {
    let body = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } });
    (status, [(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body.to_string())
        .into_response()
}

/// The server as the client addressed it.
fn base(parts: &Parts) -> String {
    let named = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let named = named.and_then(|host| host.parse::<Authority>().ok());
    let host = named.or_else(|| parts.uri.authority().cloned());
    let host = host.unwrap_or_else(|| Authority::from_static("localhost"));
    let tls = parts.extensions.get::<Peer>().is_some_and(|peer| peer.way == Way::Tls);
    format!("{}://{host}", if tls { "https" } else { "http" })
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn parts(path: &str) -> Parts {
        let request = Request::builder().uri(path).header(HOST, "127.0.0.1:7070").body(());
        request.unwrap().into_parts().0
    }

    #[test]
    fn each_endpoint_is_described_under_its_own_path() {
        let at = |path| describe(&Options::default(), &parts(path))["resource"].clone();
        assert_eq!(at("/.well-known/oauth-protected-resource"), "http://127.0.0.1:7070/mcp");
        assert_eq!(at("/.well-known/oauth-protected-resource/mcp"), "http://127.0.0.1:7070/mcp");
        let compat = at("/.well-known/oauth-protected-resource/mcp/compat");
        assert_eq!(compat, "http://127.0.0.1:7070/mcp/compat");
    }

    #[test]
    fn those_who_issue_tokens_are_named() {
        let named = |options: &Options| {
            describe(options, &parts(WELL_KNOWN))["authorization_servers"].clone()
        };
        assert_eq!(named(&Options::default()), Value::Null);
        let other = "https://login.example".to_owned();
        let options = Options {
            issues_tokens: true,
            authorization_servers: vec![other.clone()],
            ..Options::default()
        };
        assert_eq!(named(&options), json!(["http://127.0.0.1:7070", other]));
    }

    #[test]
    fn a_refusal_points_to_the_description() {
        let error = Error::unauthenticated("no credential was presented");
        let response = unauthenticated(&parts("/mcp/compat"), json!(7), &error);
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
        let challenge = response.headers()[WWW_AUTHENTICATE].to_str().unwrap();
        let place = "http://127.0.0.1:7070/.well-known/oauth-protected-resource/mcp/compat";
        assert!(challenge.contains(&format!("resource_metadata=\"{place}\"")), "{challenge}");
        assert!(!challenge.contains("error="), "{challenge}");
    }
}

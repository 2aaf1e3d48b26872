//! Streamable HTTP: one endpoint for each spelling of tool names.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::routing::get;
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, SessionConfig};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use yore_http::Surface;

use crate::caller::Caller;
use crate::gate::{self, Gate};
use crate::metadata::{self, WELL_KNOWN};
use crate::options::{Options, ToolNames};
use crate::server::Mcp;

/// Where dotted names are spoken.
pub(crate) const DOTTED: &str = "/mcp";
/// Where underscores are spoken.
pub(crate) const UNDERSCORE: &str = "/mcp/compat";

/// How long an idle legacy session stays: hosts keep theirs open over a working day, and few
/// of them begin a new one when the old one is gone.
const SESSION_LIFE: Duration = Duration::from_secs(12 * 3600);

/// The routes of MCP: `/mcp`, `/mcp/compat`, and the description of who is let in.
pub fn routes(surface: Surface, options: Options) -> Router {
    let endpoint = |names| {
        let mcp = Mcp::new(surface.clone(), options.clone(), names, Caller::PerRequest);
        StreamableHttpService::new(move || Ok(mcp.anew()), sessions(), config(&surface, &options))
    };
    let described = get(async |State(options): State<Arc<Options>>, request: Request| {
        let (parts, _) = request.into_parts();
        let kind = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        (kind, metadata::describe(&options, &parts).to_string()).into_response()
    });
    let described = Router::new()
        .route(WELL_KNOWN, described.clone())
        .route(&format!("{WELL_KNOWN}{DOTTED}"), described.clone())
        .route(&format!("{WELL_KNOWN}{UNDERSCORE}"), described)
        .with_state(Arc::new(options.clone()));
    Router::new()
        .route_service(DOTTED, endpoint(ToolNames::Dotted))
        .route_service(UNDERSCORE, endpoint(ToolNames::Underscore))
        .route_layer(from_fn_with_state(Gate::new(surface.clone()), gate::pass))
        .merge(described)
}

fn sessions() -> Arc<LocalSessionManager> {
    let mut config = SessionConfig::default();
    config.keep_alive = Some(SESSION_LIFE);
    let mut manager = LocalSessionManager::default();
    manager.session_config = config;
    Arc::new(manager)
}

fn config(surface: &Surface, options: &Options) -> StreamableHttpServerConfig {
    let mut hosts: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
    hosts.extend(options.hosts.iter().cloned());
    let own = hosts.iter().flat_map(|host| {
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        [format!("http://{host}:*"), format!("https://{host}:*")]
    });
    let origins: Vec<String> =
        own.chain(options.origins.iter().map(|origin| port(origin))).collect();
    StreamableHttpServerConfig::default()
        .with_allowed_hosts(hosts)
        .with_allowed_origins(origins)
        .enforce_origin_validation()
        .with_json_response(true)
        .with_max_request_body_bytes(surface.limits.body)
        .with_cancellation_token(surface.stop.child_token())
}

/// Writes out the port that an origin leaves to its scheme.
fn port(origin: &str) -> String {
    let origin = origin.trim_end_matches('/');
    let uri: Option<axum::http::Uri> = origin.parse().ok();
    match uri.as_ref().map(|uri| (uri.scheme_str(), uri.port())) {
        Some((Some("https"), None)) => format!("{origin}:443"),
        Some((Some("http"), None)) => format!("{origin}:80"),
        _ => origin.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_name_their_port() {
        let table = [
            ("https://app.example/", "https://app.example:443"),
            ("http://app.example", "http://app.example:80"),
            ("https://app.example:8443", "https://app.example:8443"),
            ("null", "null"),
        ];
        for (given, written) in table {
            assert_eq!(port(given), written);
        }
    }
}

//! Serves a vault that lives as long as the process, with the conformance suite's fixtures and
//! without asking for credentials, so that the suite can be pointed at it:
//!
//! `cargo run -p yore-mcp --features conformance-fixtures --example referee -- 127.0.0.1:7171`
#![expect(clippy::unwrap_used, reason = "it only serves tests")]
#![expect(clippy::wildcard_enum_match_arm, reason = "it only serves tests")]

#[path = "../tests/suite/notes.rs"]
mod notes;
#[path = "../tests/suite/vault.rs"]
mod vault;

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::AUTHORIZATION;
use axum::middleware::{Next, from_fn};
use yore_mcp::{Options, routes};

#[tokio::main]
async fn main() {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".into());
    let address = address.parse().expect("the first argument is an address and a port");
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let (surface, token) = vault::open(directory.path()).await;
    let token = HeaderValue::from_str(&format!("Bearer {token}")).expect("a token is plain text");
    let options = Options { fixtures: true, ..Options::default() };
    // The suite cannot present credentials, so each request gets the owner's.
    let routes =
        routes(surface, options).layer(from_fn(move |mut request: Request, next: Next| {
            request.headers_mut().entry(AUTHORIZATION).or_insert(token.clone());
            next.run(request)
        }));
    let address = vault::serve(routes, address).await;
    println!("http://{address}/mcp");
    std::future::pending::<()>().await;
}

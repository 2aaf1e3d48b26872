//! A vault in a directory, and its server on a port of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use yore_domain::Timestamp;
use yore_engine::dialect::Registry;
use yore_engine::{Call, Engine, FixedClock, Parts, Settings, TokenKind, token};
use yore_http::Surface;
use zeroize::Zeroizing;

use super::notes::Notes;

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const LOCAL_KEY: [u8; 32] = [7; 32];

/// Opens the vault of a directory, and makes a token for its owner.
pub(crate) async fn open(directory: &Path) -> (Surface, String) {
    let (store, keeper) = yore_scratch::open(directory).await;
    let engine = Engine::new(Parts {
        store,
        keeper,
        clock: Arc::new(FixedClock::at(NOW)),
        local_key: Zeroizing::new(LOCAL_KEY),
        settings: Settings::default(),
    });
    let master = Call::bearer("test", token::proof(&LOCAL_KEY, NOW));
    let token = engine.issue_token(&master, TokenKind::Owner, None, None).await.unwrap();
    let registry = Registry::new(vec![Box::new(Notes::new(engine.clone()))]);
    (Surface::new(engine, Arc::new(registry)), token)
}

/// Serves routes as long as the runtime lives.
pub(crate) async fn serve(routes: Router, at: SocketAddr) -> SocketAddr {
    let listener = loop {
        match tokio::net::TcpListener::bind(at).await {
            Ok(listener) => break listener,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    address
}

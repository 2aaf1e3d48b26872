//! How long pages took, for the page that shows it. Each vault has its own times.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use parking_lot::Mutex;
use yore_domain::VaultId;
use yore_engine::Secret;
use yore_engine::token::{self, Shape};

use crate::cookie;
use crate::desk::Desk;

/// How many times of one page, and of how many vaults, are kept.
const KEPT: usize = 120;
const VAULTS: usize = 256;
/// The parts of the app whose times are told.
const PAGES: [&str; 10] = [
    "home",
    "search",
    "memory",
    "review",
    "conversations",
    "access",
    "audit",
    "health",
    "import",
    "backup",
];

/// The times of the pages of one vault, oldest first.
type Times = BTreeMap<&'static str, VecDeque<Duration>>;

/// The times of all vaults whose pages were looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timing(Arc<Mutex<HashMap<VaultId, Times>>>);

impl Timing {
    /// The times of the pages of a vault.
    pub(crate) fn of(&self, vault: VaultId) -> Times {
        self.0.lock().get(&vault).cloned().unwrap_or_default()
    }

    fn note(&self, vault: VaultId, page: &'static str, took: Duration) {
        let mut all = self.0.lock();
        if all.len() >= VAULTS && !all.contains_key(&vault) {
            all.clear();
        }
        let times = all.entry(vault).or_default().entry(page).or_default();
        if times.len() >= KEPT {
            times.pop_front();
        }
        times.push_back(took);
    }
}

/// Notes how long a page took that was shown to somebody who is signed in.
pub(crate) async fn watch(State(desk): State<Desk>, request: Request, next: Next) -> Response {
    let page = (request.method() == Method::GET).then(|| page(request.uri().path())).flatten();
    let token = cookie::value(request.headers(), cookie::SESSION).map(Secret::new);
    let start = Instant::now();
    let response = next.run(request).await;
    if let (Some(page), Some(token)) = (page, token)
        && response.status() == StatusCode::OK
        && let Ok(Shape::Vault(vault)) = token::shape(&token)
    {
        desk.timing.note(vault, page, start.elapsed());
    }
    response
}

/// Which part of the app a page belongs to. What does not end or is a file has no time.
fn page(path: &str) -> Option<&'static str> {
    let rest = path.strip_prefix(crate::PREFIX)?.trim_matches('/');
    if rest.ends_with("/events") || rest.ends_with("/export") || rest.starts_with("backup/") {
        return None;
    }
    let first = rest.split('/').next().unwrap_or_default();
    let first = if first.is_empty() { "home" } else { first };
    PAGES.into_iter().find(|page| *page == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_told_apart() {
        assert_eq!(page("/app"), Some("home"));
        assert_eq!(page("/app/memory/0190"), Some("memory"));
        for other in ["/app/review/events", "/app/audit/export", "/app/assets/app.js", "/v1/x"] {
            assert_eq!(page(other), None, "{other}");
        }
    }

    #[test]
    fn each_vault_has_its_own_times() {
        let timing = Timing::default();
        for round in 0..KEPT + 5 {
            timing.note(VaultId::CATALOG, "home", Duration::from_millis(round as u64));
        }
        let times = timing.of(VaultId::CATALOG);
        assert_eq!((times["home"].len(), times["home"][0]), (KEPT, Duration::from_millis(5)));
    }
}

//! The web app: pages on which an owner sees, searches, decides and controls what is remembered.
//!
//! Pages are written on the server from templates, work without scripts, and ask nobody else
//! for anything. A visitor signs in with the owner's token or a link that works once, and gets a
//! token of its own in a cookie; that token is the credential of every call a page makes. So a
//! page decides nothing: what may be seen and done is up to the engine, a session ends when its
//! token ends, and each look leaves its line in the audit chain.
//!
//! Everything that came from a memory or a conversation is a stranger's text here. Templates
//! escape what they print; only `markup::Markup` passes as it is, and only this crate makes
//! one, from texts it escaped itself. The policy in `headers.rs` is the second wall.
//!
//! Start at [`routes`], then `visit.rs` (who comes, and what every page has at hand) and
//! `pages.rs` (one file per page).

mod assets;
mod branches;
mod cookie;
mod desk;
mod diff;
mod draw;
mod form;
mod headers;
mod intake;
mod link;
mod markdown;
mod markup;
mod numbers;
mod oauth;
mod operators;
mod pages;
mod questions;
mod role;
mod said;
mod snippet;
mod takeout;
mod timing;
mod trouble;
mod visit;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::Redirect;
use axum::routing::{get, post};
use futures::future::BoxFuture;
use yore_domain::{Span, Timestamp, VaultId};
use yore_http::Surface;

pub use link::{SIGN_IN_LIFE, SIGN_IN_NOTE, sign_in};
pub use operators::{Errand, Operators, Providers, Seat, Seated};

use crate::desk::Desk;
use crate::pages::{
    access, admin, api, attachment, audit, backup, conversations, guardian, health, home, import,
    login, memory, operators as providers, passkeys, review, rules, search,
};

/// What the audit chain calls the web app.
pub const NAME: &str = "web";
/// Where all pages lie.
pub const PREFIX: &str = "/app";

/// How long a sign-in lasts.
pub const SESSION: Span = Span::seconds(cookie::SESSION_SECONDS);

/// What the operator decides.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long a decision of the review page can be taken back.
    pub undo: Duration,
    /// How long a page waits for a vault to be counted that is not small.
    pub patience: Duration,
    /// Where uploaded files lie while they are read; without it nothing is uploaded.
    pub spool: Option<PathBuf>,
    /// How large an uploaded file may be.
    pub upload_bytes: u64,
    /// Where copies of vaults lie; without it none are made or shown.
    pub copies: Option<Copies>,
    /// How documents of clients are fetched; without it clients register.
    pub fetch: Option<Fetch>,
    /// Identity providers that let operators in.
    pub operators: Option<Operators>,
    /// The description of everything REST; without it, that of the native API.
    pub document: Option<Document>,
}

/// Makes the OpenAPI document, when somebody asks for it first.
#[derive(Clone)]
pub struct Document(pub Arc<dyn Fn() -> serde_json::Value + Send + Sync>);

impl std::fmt::Debug for Document {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Document")
    }
}

/// Fetches what lies at an https address; says in a few words why not. It follows no redirect and
/// goes nowhere private.
#[derive(Clone)]
pub struct Fetch(pub Arc<dyn Fn(String) -> Fetched + Send + Sync>);

/// What was fetched, once it is there.
pub type Fetched = BoxFuture<'static, std::result::Result<Vec<u8>, String>>;

impl std::fmt::Debug for Fetch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fetch")
    }
}

/// Where copies of vaults lie, and what they are called there.
#[derive(Clone, Debug)]
pub struct Copies {
    /// The folder.
    pub folder: PathBuf,
    /// How often one is made: `daily`, `weekly`, `monthly` or `off`.
    pub every: &'static str,
    /// How many of a vault are kept.
    pub keep: usize,
    /// The name of a copy of a vault that is made at a time.
    pub name: fn(VaultId, Timestamp) -> String,
    /// Of which vault a file is a copy, and from when; nothing when it is none.
    pub told: fn(&Path) -> Option<(VaultId, Timestamp)>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            undo: Duration::from_secs(8),
            patience: Duration::from_millis(8),
            spool: None,
            upload_bytes: 4 << 30,
            copies: None,
            fetch: None,
            operators: None,
            document: None,
        }
    }
}

/// The routes of all pages, of `/`, which leads to them, of `/openapi.json`, and of the
/// authorisation server.
pub fn routes(surface: Surface, options: Options) -> Router {
    let desk = Desk::new(surface, options);
    let pages = Router::new()
        .route(PREFIX, get(home::show))
        .route("/app/", get(async || Redirect::permanent(PREFIX)))
        .route("/app/remember", post(home::remember))
        .route("/app/theme", post(home::theme))
        .route("/app/login", get(login::show).post(login::enter))
        .route("/app/login/ask", post(passkeys::challenge))
        .route("/app/login/passkey", post(passkeys::enter))
        .route("/app/operators", get(providers::leave))
        .route("/app/operators/return", get(providers::come_back))
        .route("/app/operators/seat", post(providers::sit))
        .route("/app/enter", get(login::follow))
        .route("/app/logout", post(login::leave))
        .route("/app/search", get(search::show))
        .route("/app/memory/{id}", get(memory::show))
        .route("/app/memory/{id}/revise", post(memory::revise))
        .route("/app/memory/{id}/label", post(memory::label))
        .route("/app/memory/{id}/forget", post(memory::forget))
        .route("/app/memory/{id}/erase", post(memory::erase))
        .route("/app/memory/{id}/restore", post(memory::restore))
        .route("/app/review", get(review::show).post(review::decide))
        .route("/app/review/undo", post(review::undo))
        .route("/app/review/edit", post(review::edit))
        .route("/app/review/instead", post(review::replace))
        .route("/app/review/events", get(review::events))
        .route("/app/review/{id}", get(review::one))
        .route("/app/rules", get(rules::show).post(rules::put))
        .route("/app/rules/switch", post(rules::switch))
        .route("/app/rules/learn", post(rules::learn))
        .route("/app/rules/remove", post(rules::remove))
        .route("/app/conversations", get(conversations::list))
        .route("/app/conversations/{id}", get(conversations::read))
        .route("/app/conversations/{id}/erase", post(conversations::erase))
        .route("/app/attachments/{blob}", get(attachment::show))
        .route("/app/import", get(import::show).post(import::upload))
        .route("/app/import/{id}", get(import::look).post(import::bring))
        .route("/app/backup", get(backup::show).post(backup::make))
        .route("/app/backup/schedule", post(backup::schedule))
        .route("/app/backup/archive", post(backup::archive))
        .route("/app/backup/{made}", get(backup::download))
        .route("/app/backup/{made}/restore", get(backup::look).post(backup::restore))
        .route("/app/access", get(access::show))
        .route("/app/access/preview", post(access::preview))
        .route("/app/access/issue", post(access::issue))
        .route("/app/access/revoke", post(access::revoke))
        .route("/app/passkeys", post(passkeys::add))
        .route("/app/passkeys/ask", post(passkeys::ask))
        .route("/app/passkeys/remove", post(passkeys::remove))
        .route("/app/guardian", get(guardian::show))
        .route("/app/guardian/stop", post(guardian::stop))
        .route("/app/admin", get(admin::show).post(admin::add))
        .route("/app/admin/users/{user}", get(admin::user))
        .route("/app/admin/users/{user}/remove", post(admin::remove))
        .route("/app/admin/users/{user}/retention", post(admin::retention))
        .route("/app/admin/users/{user}/hold", post(admin::hold))
        .route("/app/audit", get(audit::show))
        .route("/app/audit/verify", post(audit::verify))
        .route("/app/audit/export", get(audit::export))
        .route("/app/health", get(health::show).post(health::check))
        .route("/app/api", get(api::show))
        .route("/app/oauth/authorize", get(oauth::authorize::ask).post(oauth::authorize::decide))
        .route("/app/{*rest}", get(trouble::missing))
        .route("/app/assets/{file}", get(assets::serve))
        .layer(from_fn_with_state(desk.clone(), timing::watch))
        .layer(from_fn(headers::around))
        .with_state(desk.clone());
    let agents = Router::new()
        .route(oauth::WELL_KNOWN, get(oauth::metadata))
        .route("/oauth/register", post(oauth::register))
        .route("/oauth/token", post(oauth::token::redeem))
        .route("/openapi.json", get(api::document))
        .with_state(desk);
    pages.merge(agents).route("/", get(async || Redirect::to(PREFIX)))
}

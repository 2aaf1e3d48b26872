//! The native API: each operation's way into the engine.

mod attach;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::future::BoxFuture;
use yore_client::api::{self, Endpoint};
use yore_client::{input, openapi};
use yore_domain::mutation::Mutation;
use yore_domain::{Error, Result};
use yore_engine::{Call, DryRun, Engine, Peer, Thumbprint};
use yore_http::{Peer as Connected, Way};
use yore_oamp::Oamp;
use yore_uamp::Uamp;

use crate::app::App;
use crate::{place, reply};

/// What the audit chain calls the native API.
const PROTOCOL: &str = "native";

/// What an operation has at hand.
pub(crate) struct Desk<'a> {
    engine: &'a Engine,
    oamp: &'a Oamp,
    uamp: &'a Uamp,
    call: &'a Call,
    /// Where files may be named, when not everywhere.
    files: Files<'a>,
}

/// Which files of the machine a caller may name.
#[derive(Clone, Copy)]
enum Files<'a> {
    /// Any: the caller came through the private socket.
    Any,
    /// Those directly in this directory.
    In(&'a Path),
}

/// An operation that the engine can carry out.
trait Serve: Endpoint {
    fn serve<'a>(desk: &'a Desk<'a>, input: Self::Input) -> BoxFuture<'a, Result<Self::Output>>;
}

macro_rules! serve {
    ($($endpoint:ident($engine:ident, $call:ident, $input:pat) $body:block)*) => {
        $(
            impl Serve for api::$endpoint {
                fn serve<'a>(
                    desk: &'a Desk<'a>,
                    $input: Self::Input,
                ) -> BoxFuture<'a, Result<Self::Output>> {
                    let ($engine, $call) = (desk.engine, desk.call);
                    Box::pin(async move { $body.await })
                }
            }
        )*
    };
}

macro_rules! route {
    ($($endpoint:ident)*) => {
        Router::new()$(.route(&path(api::$endpoint::NAME), post(perform::<api::$endpoint>)))*
    };
}

/// The routes of all operations.
pub(crate) fn routes() -> Router<App> {
    route! {
        Remember Revise Relabel Forget Merge RestoreVersion Recall Context Get GetAsOf History
        List Count Feedback Expire Consolidate Undo Converse Conversation Conversations Messages
        EraseConversation EraseMessage EraseRest Import KnownImports Propose Whoami Export
        IssueGrant IssueCapability
        PublicReads
        Grants ShowGrant ExtendGrant WidenGrant SignGrant BindCertificate RevokeGrant IssueToken Tokens RevokeToken
        Holds ShowHold Decide DecideAll Rules PutRule RemoveRule SwitchRule Learning Learn
        Audit VerifyAudit SealAudit Census Vitals Check Rotate Backup Restore Traces Jobs ShowJob
        CancelJob
        SyncState KeepSyncState
        LegalHold RegisterAgent Agents RemoveAgent WriteToAgent Inbox
    }
    .route(&path(api::WATCH), post(watch::follow))
    .route(&path(api::ATTACH), post(attach::put))
    .route(&format!("{}/{{blob}}", path(api::ATTACH)), get(attach::get))
    .route(openapi::PATH, get(described))
}

/// The description of this API, which is no secret.
async fn described() -> Response {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| openapi::document().to_string());
    let kind = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (kind, DOCUMENT.as_str()).into_response()
}

fn path(name: &str) -> String {
    format!("{}{name}", api::PREFIX)
}

async fn perform<E: Serve>(State(app): State<App>, request: Request) -> Response {
    let (bytes, time) = app.bounds(E::WEIGHT);
    match tokio::time::timeout(time, carry_out::<E>(&app, request, bytes)).await {
        Ok(Ok(output)) => reply::json(StatusCode::OK, &output),
        Ok(Err(error)) => reply::refusal(&error),
        Err(_) => reply::refusal(&Error::Busy {
            reason: format!("no answer within {} s", time.as_secs()),
            retry_after: Duration::from_secs(1),
        }),
    }
}

async fn carry_out<E: Serve>(app: &App, request: Request, bytes: usize) -> Result<E::Output> {
    let (parts, body) = request.into_parts();
    let call = app.surface().call(&parts, PROTOCOL)?;
    let bytes = app.surface().taken(&call, bytes).await;
    let input = yore_http::input(&parts, body, bytes, app.surface().limits.depth).await?;
    let backups = place::backups(&app.config().data);
    let files = match parts.extensions.get::<Connected>() {
        Some(Connected { way: Way::Socket, .. }) => Files::Any,
        Some(_) | None => Files::In(&backups),
    };
    let (engine, oamp, uamp) = (app.engine(), app.oamp(), app.uamp());
    let desk = Desk { engine, oamp, uamp, call: &call, files };
    E::serve(&desk, input).await
}

serve! {
    RegisterAgent(engine, call, input::RegisterAgent { did, agent, recorded }) {
        engine.register_peer(call, Peer { did, agent, recorded, registered: engine.now() })
    }
    Agents(engine, call, _) { engine.peers(call) }
    RemoveAgent(engine, call, input::OneAgent { did }) { engine.remove_peer(call, did) }
    Inbox(engine, call, input::Inbox { did, limit }) {
        async move { engine.letters(call, &did, limit).await }
    }
    Remember(engine, call, input::Remember { draft, id, wish }) {
        engine.mutate(call, Mutation::Remember { draft: Box::new(draft), id }, wish)
    }
    Revise(engine, call, input::Revise { memory, patch, expected, wish }) {
        engine.mutate(call, Mutation::Revise { memory, patch: Box::new(patch), expected }, wish)
    }
    Relabel(engine, call, input::Relabel { memory, change, wish }) {
        engine.mutate(call, Mutation::Relabel { memory, change: Box::new(change) }, wish)
    }
    Forget(engine, call, input::Forget { memories, depth, reason, wish }) {
        engine.mutate(call, Mutation::Forget { memories, depth, reason }, wish)
    }
    Merge(engine, call, input::Merge { canonical, duplicates, strategy, wish }) {
        engine.mutate(call, Mutation::Merge { canonical, duplicates, strategy }, wish)
    }
    RestoreVersion(engine, call, input::RestoreVersion { memory, number, wish }) {
        engine.mutate(call, Mutation::Restore { memory, number }, wish)
    }
    Recall(engine, call, recall) { engine.recall(call, recall) }
    Context(engine, call, input::Context { recall, budget_tokens }) {
        engine.context(call, recall, budget_tokens)
    }
    Get(engine, call, input::Get { reference }) { engine.get(call, reference) }
    GetAsOf(engine, call, input::GetAsOf { memory, at }) { engine.get_as_of(call, memory, at) }
    History(engine, call, input::OneMemory { memory }) { engine.history(call, memory) }
    List(engine, call, input::List { filter, page }) { engine.list(call, filter, page) }
    Count(engine, call, input::Count { filter }) { engine.count(call, filter) }
    Feedback(engine, call, input::Feedback { memory, outcome }) {
        engine.feedback(call, memory, outcome)
    }
    Expire(engine, call, input::Expire { policy, action, dry_run }) {
        engine.expire(call, policy, action, dry_run)
    }
    Consolidate(engine, call, input::Consolidate { pass, dry_run }) {
        engine.consolidate(call, pass, dry_run)
    }
    Undo(engine, call, undo) { engine.undo(call, undo) }
    Converse(engine, call, input::Converse { conversation, messages }) {
        engine.converse(call, conversation, messages)
    }
    Conversation(engine, call, input::OneConversation { conversation }) {
        engine.conversation(call, conversation)
    }
    Conversations(engine, call, input::List { filter, page }) {
        engine.conversations(call, filter, page)
    }
    Messages(engine, call, input::Messages { conversation, from, limit }) {
        engine.messages(call, conversation, from, limit)
    }
    EraseConversation(engine, call, input::OneConversation { conversation }) {
        engine.erase_conversation(call, conversation, Vec::new())
    }
    EraseMessage(engine, call, input::OneMessage { conversation, message }) {
        engine.erase_message(call, conversation, message)
    }
    EraseRest(engine, call, _) { engine.erase_rest(call) }
    Import(engine, call, input::Import { items, dry_run }) {
        async {
            match dry_run {
                DryRun::No => engine.import(call, items).await,
                DryRun::Yes => engine.weigh_import(call, items).await,
            }
        }
    }
    Propose(engine, call, input::Propose { proposals, dry_run }) {
        async {
            match dry_run {
                DryRun::No => engine.propose(call, proposals).await,
                DryRun::Yes => engine.weigh_proposals(call, proposals).await,
            }
        }
    }
    Whoami(engine, call, _) { engine.whoami(call) }
    Export(engine, call, input::Export { filter, page, hands }) {
        engine.export_for(call, hands, filter, page)
    }
    KnownImports(engine, call, input::KnownImports { fingerprints }) {
        engine.imported(call, fingerprints)
    }
    IssueGrant(engine, call, request) { engine.issue_grant(call, request) }
    IssueCapability(engine, call, input::IssueCapability { request, audience }) {
        yore_ump::issue(engine, call, request, audience)
    }
    PublicReads(engine, call, input::PublicReads { open }) { engine.set_public_reads(call, open) }
    Grants(engine, call, _) { engine.grants(call) }
    ShowGrant(engine, call, input::OneGrant { grant }) { engine.grant(call, grant) }
    ExtendGrant(engine, call, input::ExtendGrant { grant, by }) {
        engine.extend_grant(call, grant, by)
    }
    WidenGrant(engine, call, input::WidenGrant { grant, extension }) {
        engine.widen_grant(call, grant, extension)
    }
    BindCertificate(engine, call, input::BindCertificate { grant, certificate }) {
        async move {
            let certificate = Thumbprint::parse(&certificate)?;
            engine.bind_certificate(call, grant, certificate).await.map(drop)
        }
    }
    RevokeGrant(engine, call, input::OneGrant { grant }) { engine.revoke_grant(call, grant) }
    IssueToken(engine, call, input::IssueToken { kind, ttl, note }) {
        engine.issue_token(call, kind, ttl, note)
    }
    Tokens(engine, call, _) { engine.tokens(call) }
    RevokeToken(engine, call, input::OneToken { token }) { engine.revoke_token(call, token) }
    Holds(engine, call, input::Holds { state, limit }) { engine.holds(call, state, limit) }
    ShowHold(engine, call, input::OneHold { hold }) { engine.case(call, hold) }
    Decide(engine, call, input::Decide { hold, decision, note }) {
        engine.review(call, hold, decision, note)
    }
    DecideAll(engine, call, input::DecideAll { which, decision, note }) {
        engine.review_all(call, which, decision, note)
    }
    Rules(engine, call, _) { engine.rules(call) }
    PutRule(engine, call, input::PutRule { rule }) { engine.put_rule(call, rule) }
    RemoveRule(engine, call, input::RemoveRule { name }) { engine.remove_rule(call, name) }
    SwitchRule(engine, call, input::SwitchRule { name, off }) {
        engine.switch_rule(call, name, off)
    }
    Learning(engine, call, _) { engine.learning(call) }
    Learn(engine, call, input::Learn { after }) { engine.set_learning(call, after) }
    Audit(engine, call, query) { engine.audit(call, query) }
    VerifyAudit(engine, call, _) { engine.verify_audit(call) }
    SealAudit(engine, call, _) { engine.seal_audit(call) }
    Census(engine, call, _) { engine.census(call) }
    Vitals(engine, call, input::Vitals { agent, user }) { engine.vitals(call, agent, user) }
    Check(engine, call, input::Check { repair }) { engine.check(call, repair) }
    Rotate(engine, call, _) {
        async { engine.rotate_keys(call).await.map(|(_, done)| done) }
    }
    Traces(engine, call, input::Traces { text }) { engine.traces(call, text) }
    Jobs(engine, call, input::Jobs { limit }) { engine.jobs(call, limit) }
    ShowJob(engine, call, input::OneJob { job }) { engine.job(call, job) }
    CancelJob(engine, call, input::OneJob { job }) { engine.cancel_job(call, job) }
    SyncState(engine, call, input::SyncPeer { peer }) { engine.sync_state(call, peer) }
    KeepSyncState(engine, call, input::KeepSyncState { peer, state }) {
        engine.keep_sync_state(call, peer, state)
    }
    LegalHold(engine, call, input::LegalHold { memory, held }) {
        engine.legal_hold(call, memory, held)
    }
}

impl Serve for api::Backup {
    fn serve<'a>(desk: &'a Desk<'a>, input: input::Backup) -> BoxFuture<'a, Result<u64>> {
        Box::pin(async move {
            let to = desk.files.resolve(input.to, "to")?;
            if let Files::In(place) = desk.files {
                place::make(place).map_err(Error::internal)?;
            }
            desk.engine.backup(desk.call, to).await
        })
    }
}

impl Serve for api::SignGrant {
    fn serve<'a>(desk: &'a Desk<'a>, input: input::OneGrant) -> BoxFuture<'a, Result<String>> {
        Box::pin(desk.oamp.signed_grant(desk.call, input.grant))
    }
}

impl Serve for api::WriteToAgent {
    fn serve<'a>(desk: &'a Desk<'a>, input: input::WriteToAgent) -> BoxFuture<'a, Result<String>> {
        Box::pin(async move { desk.uamp.write_to(desk.call, &input.did, &input.text).await })
    }
}

impl Serve for api::Restore {
    fn serve<'a>(desk: &'a Desk<'a>, input: input::Restore) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let from = desk.files.resolve(input.from, "from")?;
            desk.engine.restore_backup(desk.call, from).await
        })
    }
}

impl Files<'_> {
    /// Returns the file that a caller names.
    fn resolve(self, named: PathBuf, member: &'static str) -> Result<PathBuf> {
        match self {
            Self::Any if named.is_absolute() => Ok(named),
            Self::Any => Err(Error::invalid(member, "must be an absolute path")),
            Self::In(place) => match named.file_name() {
                Some(name) if name == named.as_os_str() => Ok(place.join(name)),
                _ => Err(Error::invalid(member, "must be a plain file name")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_from_afar_name_no_other_files() {
        let place = Path::new("/data/backups");
        let resolve = |name: &str| Files::In(place).resolve(name.into(), "to");
        assert_eq!(resolve("one.db").unwrap(), place.join("one.db"));
        for name in ["", ".", "..", "/etc/passwd", "../x", "a/b", "./a", "a/"] {
            assert!(resolve(name).is_err(), "{name}");
        }
        assert!(Files::Any.resolve("a".into(), "to").is_err());
        assert_eq!(Files::Any.resolve("/a/b".into(), "to").unwrap(), Path::new("/a/b"));
    }
}

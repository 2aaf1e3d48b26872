//! One file per command: its options, what it asks the vault, how it shows the answer.

pub(crate) mod agent;
pub(crate) mod attach;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod conformance;
pub(crate) mod connect;
pub(crate) mod consolidate;
pub(crate) mod context;
pub(crate) mod delete;
pub(crate) mod doctor;
pub(crate) mod expire;
pub(crate) mod export;
pub(crate) mod feedback;
pub(crate) mod forget;
pub(crate) mod get;
pub(crate) mod grant;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod job;
pub(crate) mod key;
pub(crate) mod legal_hold;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod merge;
pub(crate) mod migrate;
pub(crate) mod migrate_store;
pub(crate) mod open;
pub(crate) mod procedure;
pub(crate) mod proxy;
pub(crate) mod publish;
pub(crate) mod recall;
pub(crate) mod recover;
pub(crate) mod remember;
pub(crate) mod restore;
pub(crate) mod review;
pub(crate) mod revise;
pub(crate) mod rule;
pub(crate) mod schema;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod stores;
pub(crate) mod sync;
pub(crate) mod token;
pub(crate) mod traces;
pub(crate) mod trust;
pub(crate) mod undo;
pub(crate) mod watch;

use std::sync::Arc;

use crate::app::App;
use crate::args::Command;
use crate::failure::Result;

/// Runs a command.
pub(crate) async fn run(app: &Arc<App>, command: Command) -> Result {
    match command {
        Command::Serve(args) => Box::pin(serve::run(app, args)).await,
        Command::Remember(args) => remember::run(app, *args).await,
        Command::Recall(args) => recall::run(app, args).await,
        Command::Search(args) => search::run(app, args).await,
        Command::Context(args) => context::run(app, args).await,
        Command::Get(args) => get::run(app, args).await,
        Command::List(args) => list::run(app, args).await,
        Command::History(args) => history::run(app, args).await,
        Command::Revise(args) => revise::run(app, *args).await,
        Command::Merge(args) => merge::run(app, args).await,
        Command::Expire(args) => expire::run(app, args).await,
        Command::Consolidate(args) => consolidate::run(app, args).await,
        Command::Delete(args) => delete::run(app, *args).await,
        Command::Forget(args) => forget::run(app, args).await,
        Command::Undo(args) => undo::run(app, args).await,
        Command::Feedback(args) => feedback::run(app, args).await,
        Command::Review(args) => review::run(app, args).await,
        Command::Rule(args) => rule::run(app, args).await,
        Command::Recover(args) => recover::run(app, args).await,
        Command::Procedure(args) => procedure::run(app, args).await,
        Command::Stores(args) => stores::run(app, args).await,
        Command::Grant(args) => grant::run(app, args).await,
        Command::Token(args) => token::run(app, args).await,
        Command::Agent(args) => agent::run(app, args).await,
        Command::Attach(args) => attach::run(app, args).await,
        Command::LegalHold(args) => legal_hold::run(app, args).await,
        Command::Key(args) => key::run(app, args).await,
        Command::Job(args) => job::run(app, args).await,
        Command::Watch(args) => watch::run(app, args).await,
        Command::Open(args) => open::run(app, args).await,
        Command::Proxy(args) => proxy::run(app, args).await,
        Command::Mcp(args) => mcp::run(Arc::clone(app), args).await,
        Command::Audit(args) => audit::run(app, args).await,
        Command::Import(args) => import::run(app, args).await,
        Command::Export(args) => Box::pin(export::run(app, args)).await,
        Command::Sync(args) => sync::run(app, args).await,
        Command::Migrate(args) => Box::pin(migrate::run(app, args)).await,
        Command::MigrateStore(args) => Box::pin(migrate_store::run(app, args)).await,
        Command::Publish(args) => publish::run(app, args).await,
        Command::Conformance(args) => Box::pin(conformance::run(app, args)).await,
        Command::Backup(args) => backup::run(app, args).await,
        Command::Restore(args) => restore::run(app, args).await,
        Command::Doctor(args) => doctor::run(app, args).await,
        Command::Traces(args) => traces::run(app, args).await,
        Command::Trust(args) => trust::run(app, &args),
        Command::Config(args) => config::run(app, args),
        Command::Connect(args) => connect::run(app, args),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => man::run(&args),
        Command::Schema(args) => schema::run(app, args),
    }
}

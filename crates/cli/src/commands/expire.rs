//! `yore expire`: forgets, archives or demotes what a policy describes.

use clap::ValueEnum;
use yore_client::api::{self, DryRun};
use yore_client::input;
use yore_domain::Span;
use yore_domain::kind::Kind;
use yore_domain::mutation::{ExpiryAction, ExpiryPolicy};

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::filter::{kind, unit};
use crate::output::{ID, count};
use crate::when;

/// Options of `yore expire`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore expire --older-than 90d --kind working --dry-run
  yore expire --older-than 90d --kind working
  yore expire --unused-for 365d --action demote

All conditions that are given must hold; without any the command is refused. Try --dry-run first.")]
pub(crate) struct Args {
    /// Made at least this long ago
    #[arg(long, value_name = "SPAN", value_parser = when::span)]
    older_than: Option<Span>,
    /// Of this kind
    #[arg(long, short, value_name = "KIND", value_parser = kind)]
    kind: Option<Kind>,
    /// Less sure than this
    #[arg(long, value_name = "NUMBER", value_parser = unit)]
    confidence_below: Option<f64>,
    /// Not recalled for this long, or never
    #[arg(long, value_name = "SPAN", value_parser = when::span)]
    unused_for: Option<Span>,
    /// What happens to them
    #[arg(long, value_enum, default_value_t = Action::Forget)]
    action: Action,
    /// Only say which
    #[arg(long)]
    dry_run: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Action {
    /// Out of recall, can be restored
    Forget,
    /// Out of recall and marked as archived
    Archive,
    /// Ranked lower from now on
    Demote,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let policy = ExpiryPolicy {
        older_than: args.older_than,
        kind: args.kind,
        confidence_below: args.confidence_below,
        unused_for: args.unused_for,
    };
    if policy.is_empty() {
        return Err(Failure::usage("no condition was given, which would take everything")
            .hint("say at least one of --older-than, --kind, --confidence-below, --unused-for"));
    }
    let action = match args.action {
        Action::Forget => ExpiryAction::Forget,
        Action::Archive => ExpiryAction::Archive,
        Action::Demote => ExpiryAction::Demote,
    };
    let dry_run = if args.dry_run { DryRun::Yes } else { DryRun::No };
    let mut session = app.session().await?;
    let expired = session.change::<api::Expire>(input::Expire { policy, action, dry_run }).await?;
    app.out.either(&expired, |expired| {
        for id in &expired.matched {
            app.out.line(format!("{ID}{id}{ID:#}"))?;
        }
        let what = count(expired.matched.len(), "memory", "memories");
        let verb = match (args.dry_run, args.action) {
            (true, _) => "would be taken",
            (false, Action::Forget) => "forgotten",
            (false, Action::Archive) => "archived",
            (false, Action::Demote) => "demoted",
        };
        app.out.remark(format!("{what} {verb}"));
        Ok(())
    })
}

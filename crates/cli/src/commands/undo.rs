//! `yore undo`: takes back what an agent did.

use yore_client::api::{self, UndoRequest};

use crate::app::App;
use crate::failure::Result;
use crate::output::{ID, WARN, clean, count};
use crate::when::{self, Instant};

/// Options of `yore undo`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore undo --agent scheduler --since 1h --dry-run
  yore undo --agent scheduler --since 1h
  yore undo --since 10m

What was made is forgotten, what was revised says again what it said before; both as new versions.
What was erased cannot come back. Without --agent everyone's changes are taken back.")]
pub(crate) struct Args {
    /// Whose changes; without it everyone's
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// From this time on: 1h for the last hour, 2026-03-15, or an RFC 3339 time
    #[arg(long, value_name = "TIME", value_parser = when::instant)]
    since: Instant,
    /// Only say which
    #[arg(long)]
    dry_run: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let request = UndoRequest {
        agent: args.agent,
        since: args.since.resolve(app.out.now),
        dry_run: if args.dry_run { api::DryRun::Yes } else { api::DryRun::No },
    };
    let mut session = app.session().await?;
    let undone = session.change::<api::Undo>(request).await?;
    app.out.either(&undone, |undone| {
        for id in &undone.reverted {
            app.out.line(format!("{ID}{id}{ID:#}"))?;
        }
        for (id, why) in &undone.skipped {
            app.out.line(format!("{ID}{id}{ID:#}  {WARN}skipped: {}{WARN:#}", clean(why)))?;
        }
        let what = count(undone.reverted.len(), "memory", "memories");
        app.out.remark(format!(
            "{what} {}",
            if args.dry_run { "would be put back" } else { "put back" }
        ));
        Ok(())
    })
}

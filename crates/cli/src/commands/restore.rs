//! `yore restore`: puts a copy made by backup in the vault's place, or takes an archive in.

use std::path::{Path, PathBuf};

use yore_client::{api, input};
use yore_domain::ConversationId;

use super::import::{self, Choice};
use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::GOOD;
use crate::when::{self, Instant};
use crate::{input as given, progress};

/// Options of `yore restore`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore backup before-restore.yore
  yore restore --yes vault-2026-03-15.yore
  yore restore all.omp.zip
  yore restore --platform claude --since 2026-01-01 all.omp.zip

A copy takes the vault's place: everything that was remembered after it was made is replaced, so
make a backup first. It is checked before anything is touched, and opens only with the master key
it was made with. An archive (.omp.zip, .omp.zip.enc) is added to what is there, all of it or what
the options choose; what is known already stays as it is. What was erased here stays erased.")]
pub(crate) struct Args {
    /// The copy or the archive
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Of an archive: say what would come in, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Of an archive: only what comes from this platform
    #[arg(long, value_name = "NAME")]
    platform: Option<String>,
    /// Of an archive: only what has this tag
    #[arg(long, short, value_name = "TAG")]
    tag: Option<String>,
    /// Of an archive: only this conversation
    #[arg(long, value_name = "ID")]
    conversation: Option<ConversationId>,
    /// Of an archive: only what was said or made at or after this time
    #[arg(long, value_name = "TIME", value_parser = when::instant)]
    since: Option<Instant>,
    /// Of an archive: only what was said or made before this time
    #[arg(long, value_name = "TIME", value_parser = when::instant)]
    until: Option<Instant>,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let choice = Choice {
        platform: args.platform.clone(),
        tag: args.tag.clone(),
        conversation: args.conversation,
        since: args.since.map(|instant| instant.resolve(app.out.now)),
        until: args.until.map(|instant| instant.resolve(app.out.now)),
    };
    if is_archive(&args.file) {
        return import::restore(app, args.file, choice, args.dry_run).await;
    }
    if args.dry_run || choice != Choice::default() {
        return Err(Failure::usage("a copy is put in place whole")
            .hint("only archives (.omp.zip) can be restored in part"));
    }
    replace(app, &args).await
}

async fn replace(app: &App, args: &Args) -> Result {
    let from = app.server_path(&args.file)?;
    if app.is_local() {
        std::fs::metadata(&from).map_err(Failure::file(from.display()))?;
    }
    let question = format!("replace the vault by {}?", from.display());
    if !given::agreed(args.yes, &question)? {
        return Err(Failure::failed("nothing was replaced"));
    }
    let mut session = app.session().await?;
    let spinner = progress::spinner(&app.out, "checking and restoring");
    let restored = session.call::<api::Restore>(input::Restore { from: from.clone() }).await;
    spinner.finish_and_clear();
    restored?;
    let done = serde_json::json!({ "restored": from });
    app.out.either(&done, |_| app.out.line(format!("{GOOD}restored{GOOD:#}  {}", from.display())))
}

/// Whether a name is that of an archive.
pub(crate) fn is_archive(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.ends_with(".omp.zip") || name.ends_with(".omp.zip.enc")
}

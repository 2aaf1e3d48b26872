//! `yore restore`: puts a copy made by backup in the vault's place.

use std::path::PathBuf;

use yore_client::{api, input};

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::GOOD;
use crate::{input as given, progress};

/// Options of `yore restore`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore backup before-restore.yore
  yore restore --yes vault-2026-03-15.yore

Everything that was remembered after the copy was made is replaced: make a backup first. The copy
is checked before anything is touched, and opens only with the master key it was made with.")]
pub(crate) struct Args {
    /// The copy
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
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

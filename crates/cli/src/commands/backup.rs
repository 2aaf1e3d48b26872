//! `yore backup`: copies the vault, while it serves, into an encrypted file.

use std::path::PathBuf;

use yore_client::{api, input};

use crate::app::App;
use crate::failure::{Exit, Failure, Result};
use crate::output::{GOOD, bytes};
use crate::progress;

/// Options of `yore backup`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore backup vault-2026-03-15.yore
  yore backup --url https://memory.example:7443 nightly.yore

The copy is encrypted with the same key as the vault: keep the master key apart from it. With --url
the name must be plain, and the copy stays in the server's own directory for backups.")]
pub(crate) struct Args {
    /// The file to write
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace it if it is there
    #[arg(long)]
    force: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let to = app.server_path(&args.file)?;
    if app.is_local() && to.exists() {
        if !args.force {
            return Err(Failure::new(Exit::Conflict, format!("{} is there already", to.display()))
                .hint("choose another name, or add --force to replace it"));
        }
        std::fs::remove_file(&to).map_err(Failure::file(to.display()))?;
    }
    let mut session = app.session().await?;
    let spinner = progress::spinner(&app.out, "copying the vault");
    let written = session.call::<api::Backup>(input::Backup { to: to.clone() }).await;
    spinner.finish_and_clear();
    let done = serde_json::json!({ "file": to, "bytes": written? });
    app.out.either(&done, |done| {
        let size = done["bytes"].as_u64().unwrap_or_default();
        app.out.line(format!("{GOOD}written{GOOD:#}  {}  {}", to.display(), bytes(size)))
    })
}

//! `yore backup`: copies the vault, while it serves, into an encrypted file or an archive.

mod schedule;

use std::path::{Path, PathBuf};

use yore_client::{api, input};

use super::restore::is_archive;
use crate::app::App;
use crate::archive::{self, Wanted};
use crate::failure::{Exit, Failure, Result};
use crate::output::{GOOD, bytes};
use crate::{password, progress};

/// Options of `yore backup`.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  yore backup vault-2026-03-15.yore
  yore backup all.omp.zip
  yore backup all.omp.zip.enc
  yore backup schedule daily --to /mnt/copies --keep 14
  yore backup --url https://memory.example:7443 nightly.yore

The copy is encrypted with the same key as the vault: keep the master key apart from it. With --url
the name must be plain, and the copy stays in the server's own directory for backups.

A name that ends in .omp.zip makes an archive that other programs read: every conversation with its
attachments, every memory with all its versions; the same vault gives the same bytes, and yore
restore takes it in. It is not encrypted; .omp.zip.enc puts a password around it, from
YORE_ARCHIVE_PASSWORD or the terminal. openssl opens it:
  openssl enc -d -aes-256-cbc -pbkdf2 -iter 600000 -md sha256 -in all.omp.zip.enc -out all.omp.zip
Whatever was written is read again before the command ends."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// The file to write
    #[arg(value_name = "FILE", required = true)]
    file: Option<PathBuf>,
    /// Replace it if it is there
    #[arg(long)]
    force: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show or set how often a server makes copies by itself, where to, and how many it keeps
    Schedule(schedule::Args),
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    if let Some(Command::Schedule(args)) = args.command {
        return schedule::run(app, args);
    }
    let file = args.file.ok_or_else(|| Failure::usage("no file was named"))?;
    if is_archive(&file) {
        free(&file, args.force)?;
        let wanted = Wanted::everything(password::for_writing(&file)?);
        let written = archive::write(app, wanted, &file).await?;
        return app.out.either(&written, |written| {
            written.tell(app);
            Ok(())
        });
    }
    copy(app, &file, args.force).await
}

async fn copy(app: &App, file: &Path, force: bool) -> Result {
    let to = app.server_path(file)?;
    if app.is_local() && to.exists() {
        free(&to, force)?;
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

/// Nothing is replaced unless that is wished.
fn free(file: &Path, force: bool) -> Result {
    if force || !file.exists() {
        return Ok(());
    }
    Err(Failure::new(Exit::Conflict, format!("{} is there already", file.display()))
        .hint("choose another name, or add --force to replace it"))
}

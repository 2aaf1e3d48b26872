//! `yore key`: changes the key a vault is encrypted with.

use clap::Subcommand;
use yore_client::api;
use yore_client::input::Nothing;

use crate::app::App;
use crate::failure::Result;
use crate::output::GOOD;
use crate::progress;

/// Options of `yore key`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore key rotate
  yore key rotate --vault anna

Rotating gives the vault a new random key and encrypts every page with it. The master key stays the
same, and so do passphrase and key file. A crash in between leaves a vault that opens. Backups made
before still open with the master key.")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Encrypt the vault with a new key
    Rotate,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let What::Rotate = args.what;
    let mut session = app.session().await?;
    let spinner = progress::spinner(&app.out, "encrypting the vault with a new key");
    let rotated = session.call::<api::Rotate>(Nothing {}).await;
    spinner.finish_and_clear();
    let done = serde_json::json!({ "rotated": rotated? });
    app.out.either(&done, |done| {
        let what = done["rotated"].as_str().unwrap_or_default();
        app.out.line(format!("{GOOD}rotated{GOOD:#}  {what}"))
    })
}

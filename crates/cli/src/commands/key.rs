//! `yore key`: changes the key a vault is encrypted with, and what opens the data directory.

use std::path::PathBuf;

use clap::Subcommand;
use yore_client::api;
use yore_client::input::Nothing;
use yore_engine::Secret;
use yore_server::{Host, KeySource};

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::GOOD;
use crate::{passphrase, progress};

/// Options of `yore key`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore key rotate
  yore key rotate --vault anna
  yore key change --new-passphrase
  yore key change --new-key-file
  yore key change --new-key-file /media/stick/yore.key

Rotating gives the vault a new random key and encrypts every page with it. The master key stays the
same, and so do passphrase and key file. A crash in between leaves a vault that opens. Backups made
before still open with the master key.

Changing replaces what opens the data directory: a passphrase, or a key file, which is made when it
is not there. It rewrites one small file, so it takes a moment whatever the vaults hold. The server
must be stopped. The old passphrase or key file opens nothing from then on, but a copy of the data
directory that somebody took before; rotate afterwards if the old one may be known to others.")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Encrypt the vault with a new key
    Rotate,
    /// Open the data directory by another passphrase or key file from now on
    Change(Change),
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Change {
    /// Ask for a new passphrase, or take it from YORE_NEW_PASSPHRASE
    #[arg(long)]
    new_passphrase: bool,
    /// Use this key file; without a path the one in the configuration directory
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    #[expect(clippy::option_option, reason = "the option may be given with and without a path")]
    new_key_file: Option<Option<PathBuf>>,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    match args.what {
        What::Rotate => rotate(app).await,
        What::Change(change) => exchange(app, change).await,
    }
}

async fn rotate(app: &App) -> Result {
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

async fn exchange(app: &App, change: Change) -> Result {
    if !app.is_local() {
        return Err(Failure::usage("a master key is changed where the data directory is")
            .hint("run it there, without --url"));
    }
    let config = app.unlocked(app.config()?)?;
    if !config.data.join("master.json").exists() {
        return Err(Failure::usage(format!("{} holds no vault yet", config.data.display()))
            .hint("the first command that opens it takes --passphrase or --key-file"));
    }
    let (key, file) = match change.new_key_file {
        None => {
            let phrase = passphrase::chosen(&config, "YORE_NEW_PASSPHRASE")?;
            (KeySource::Passphrase(Secret::new(phrase)), None)
        }
        Some(None) => (KeySource::Default, Some(yore_server::place::config()?.join("master.key"))),
        Some(Some(path)) => {
            let path = std::path::absolute(&path).map_err(Failure::file(path.display()))?;
            (KeySource::File(path.clone()), Some(path))
        }
    };
    let data = config.data.clone();
    let made = Host::change_key(config, key).await.map_err(|error| {
        let held = matches!(error, yore_server::Error::InUse { .. });
        let failure = Failure::from(error);
        if held { failure.hint("stop yore serve first, then change the key") } else { failure }
    })?;
    let file = file.map(|file| file.display().to_string());
    let done = serde_json::json!({ "data": data, "key_file": file, "made": made.is_some() });
    app.out.either(&done, |_| {
        let opens = match &file {
            Some(file) => format!("the key in {file}"),
            None => "the new passphrase".to_owned(),
        };
        let data = data.display();
        app.out.line(format!("{GOOD}changed{GOOD:#}  {data} is opened by {opens} from now on"))
    })
}

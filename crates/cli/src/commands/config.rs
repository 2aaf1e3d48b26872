//! `yore config`: shows and checks the configuration.

use clap::Subcommand;
use yore_server::place;

use crate::app::App;
use crate::failure::Result;
use crate::local::key_file;
use crate::output::{GOOD, raw};
use crate::show;

/// Options of `yore config`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore config path
  yore config check --config ./yore.toml
  yore config show > config.toml

Settings come from the file, then the environment, then the options given; later ones win. Secrets
are never shown.")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Check the configuration without starting anything
    Check,
    /// Show the effective configuration as TOML
    Show,
    /// Show where configuration, data and key lie
    Path,
}

pub(crate) fn run(app: &App, args: Args) -> Result {
    match args.what {
        What::Check => {
            let config = app.config()?;
            app.out.either(&serde_json::json!({ "ok": true }), |_| {
                app.out.line(format!(
                    "{GOOD}ok{GOOD:#}  data {}, http {}, https {}",
                    config.data.display(),
                    config.listen.http,
                    config.listen.https
                ))
            })
        }
        What::Show => {
            let config = app.config()?;
            if app.out.json {
                return app.out.document(&config);
            }
            raw(config.to_toml()?.trim_end())
        }
        What::Path => {
            let config = app.config()?;
            let file = app.config_file()?;
            let paths = serde_json::json!({
                "config": file,
                "exists": file.exists(),
                "data": config.data,
                "key": key_file(&config),
                "socket": place::socket(&config.data),
            });
            app.out.either(&paths, |_| {
                let key = key_file(&config)
                    .map_or("from the environment".to_owned(), |path| path.display().to_string());
                let missing = if file.exists() { "" } else { " (not there: defaults apply)" };
                show::members(
                    &app.out,
                    &[
                        ("config", format!("{}{missing}", file.display())),
                        ("data", config.data.display().to_string()),
                        ("key", key),
                        ("socket", place::socket(&config.data).display().to_string()),
                    ],
                )
            })
        }
    }
}

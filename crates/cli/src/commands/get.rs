//! `yore get`: shows memories in full.

use yore_client::{api, input};

use crate::app::App;
use crate::failure::Result;
use crate::when::{self, Instant};
use crate::{input as given, show};

/// Options of `yore get`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore get 3f2a9c1e
  yore get --as-of 2026-03-01 3f2a9c1e
  yore list --json | jq -r .head.memory | yore get --json -

An id may be cut short to the first characters that lists show. With --json one memory a line.")]
pub(crate) struct Args {
    /// Ids, names, or - for one a line from standard input
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// As it stood at this time
    #[arg(long, value_name = "TIME", value_parser = when::instant)]
    as_of: Option<Instant>,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let mut session = app.session().await?;
    for (index, id) in given::ids(&args.ids, None)?.iter().enumerate() {
        if index > 0 && !app.out.json {
            app.out.line("")?;
        }
        if let Some(at) = args.as_of {
            let memory = session.memory_id(id).await?;
            let at = at.resolve(app.out.now);
            let version = session.call::<api::GetAsOf>(input::GetAsOf { memory, at }).await?;
            if app.out.json {
                app.out.row(&version)?
            } else {
                show::version(&app.out, &version)?
            }
            continue;
        }
        let memory = session.memory(id).await?;
        if app.out.json { app.out.row(&memory)? } else { show::full(&app.out, &memory)? }
    }
    Ok(())
}

//! `yore legal-hold`: protects memories from erasure, whoever asks for it.

use clap::Subcommand;
use yore_client::{api, input};

use crate::app::App;
use crate::failure::Result;
use crate::input as given;
use crate::output::{GOOD, ID};

/// Options of `yore legal-hold`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore legal-hold set 3f2a9c1e
  yore list --all --label contracts --json | jq -r .head.memory | yore legal-hold set -
  yore legal-hold lift 3f2a9c1e

While it holds, nobody can erase the memory, and neither can retention. It can still be revised or
forgotten without --erase. What was kept only by the hold is erased soon after it is lifted.")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Protect memories from erasure
    Set(Which),
    /// Let them be erased again
    Lift(Which),
}

#[derive(Debug, clap::Args)]
struct Which {
    /// The memories; - reads one id a line from standard input
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let (which, held, word) = match args.what {
        What::Set(which) => (which, true, "held"),
        What::Lift(which) => (which, false, "released"),
    };
    let mut session = app.session().await?;
    let mut done = Vec::new();
    for id in given::ids(&which.ids, None)? {
        let memory = session.memory_id(&id).await?;
        session.change::<api::LegalHold>(input::LegalHold { memory, held }).await?;
        done.push(memory);
    }
    app.out.either(&serde_json::json!({ "memories": done, "held": held }), |_| {
        done.iter().try_for_each(|memory| {
            app.out.line(format!("{GOOD}{word}{GOOD:#}  {ID}{memory}{ID:#}"))
        })
    })
}

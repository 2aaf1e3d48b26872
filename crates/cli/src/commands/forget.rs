//! `yore forget`: takes memories out of recall, or erases them for good.

use yore_client::{api, input};
use yore_domain::mutation::Depth;

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::count;
use crate::{input as given, mutated};

/// How many memories one request forgets.
const BATCH: usize = 200;

/// Options of `yore forget`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore forget 3f2a9c1e
  yore forget --erase --reason \"asked for by the person\" 3f2a9c1e
  yore list --all --tag scratch --json | jq -r .head.memory | yore forget --ids -

Without --erase the text stays and yore revise ID --to-version N brings it back. With --erase it
leaves every version, index, journal and, in time, every backup: nothing brings it back.")]
pub(crate) struct Args {
    /// The memories
    #[arg(value_name = "ID", required_unless_present = "ids_from")]
    ids: Vec<String>,
    /// More ids, separated by commas, or - for one a line from standard input
    #[arg(long = "ids", value_name = "IDS")]
    ids_from: Option<String>,
    /// Erase the text for good
    #[arg(long, alias = "hard")]
    erase: bool,
    /// Why, for the audit chain
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Do not ask before erasing
    #[arg(long, short)]
    yes: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let ids = given::ids(&args.ids, args.ids_from.as_deref())?;
    let what = count(ids.len(), "memory", "memories");
    if args.erase && !given::agreed(args.yes, &format!("erase {what} for good?"))? {
        return Err(Failure::failed("nothing was erased"));
    }
    let mut session = app.session().await?;
    let mut memories = Vec::with_capacity(ids.len());
    for id in &ids {
        memories.push(session.memory_id(id).await?);
    }
    let depth = if args.erase { Depth::Erase } else { Depth::Tombstone };
    let mut done: Option<yore_engine::Mutated> = None;
    for part in memories.chunks(BATCH) {
        let request = input::Forget {
            memories: part.to_vec(),
            depth,
            reason: args.reason.clone(),
            wish: yore_engine::Wish::default(),
        };
        let answer = session.change::<api::Forget>(request).await?;
        match &mut done {
            Some(done) => done.memories.extend(answer.memories),
            None => done = Some(answer),
        }
    }
    done.map_or(Ok(()), |done| mutated::show(app, &done))
}

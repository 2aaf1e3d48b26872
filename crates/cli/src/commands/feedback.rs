//! `yore feedback`: reports how a memory fared when it was used.

use yore_client::{api, input};
use yore_domain::memory::FeedbackOutcome;

use crate::app::App;
use crate::failure::Result;
use crate::filter::said;
use crate::output::{GOOD, ID};

/// Options of `yore feedback`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore feedback 3f2a9c1e followed
  yore feedback 3f2a9c1e contradicted

Outcomes move how high a memory ranks; they never change what it says.")]
pub(crate) struct Args {
    /// The memory
    #[arg(value_name = "ID")]
    id: String,
    /// How it fared: followed, overridden, ignored, contradicted
    #[arg(value_name = "OUTCOME", value_parser = outcome)]
    outcome: FeedbackOutcome,
}

fn outcome(text: &str) -> Result<FeedbackOutcome, String> {
    FeedbackOutcome::parse(text).map_err(said)
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let mut session = app.session().await?;
    let memory = session.memory_id(&args.id).await?;
    session.change::<api::Feedback>(input::Feedback { memory, outcome: args.outcome }).await?;
    let done = serde_json::json!({ "memory": memory, "outcome": args.outcome });
    app.out.either(&done, |_| app.out.line(format!("{GOOD}noted{GOOD:#}  {ID}{memory}{ID:#}")))
}

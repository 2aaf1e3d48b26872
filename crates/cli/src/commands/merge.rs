//! `yore merge`: makes several memories one.

use clap::ValueEnum;
use yore_client::{api, input};
use yore_domain::mutation::MergeStrategy;

use crate::app::App;
use crate::failure::Result;
use crate::{input as given, mutated};

/// Options of `yore merge`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore merge 3f2a9c1e 77b0d2aa 91c4e6f0
  yore merge --strategy merge-content 3f2a9c1e 77b0d2aa

The others are absorbed, not lost: yore history shows them, yore undo brings them back.")]
pub(crate) struct Args {
    /// The memory that stays
    #[arg(value_name = "CANONICAL")]
    canonical: String,
    /// The memories that go into it; - reads one id a line
    #[arg(required = true, value_name = "DUPLICATE")]
    duplicates: Vec<String>,
    /// How they become one
    #[arg(long, value_enum, default_value_t = Strategy::KeepCanonical)]
    strategy: Strategy,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Strategy {
    /// The first stays as it is
    #[value(alias = "keep_canonical")]
    KeepCanonical,
    /// Texts are joined, tags and evidence united
    #[value(alias = "merge_content")]
    MergeContent,
    /// The surest one stays
    #[value(alias = "keep_highest_confidence")]
    KeepHighestConfidence,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let mut session = app.session().await?;
    let canonical = session.memory_id(&args.canonical).await?;
    let mut duplicates = Vec::new();
    for id in given::ids(&args.duplicates, None)? {
        duplicates.push(session.memory_id(&id).await?);
    }
    let strategy = match args.strategy {
        Strategy::KeepCanonical => MergeStrategy::KeepCanonical,
        Strategy::MergeContent => MergeStrategy::MergeContent,
        Strategy::KeepHighestConfidence => MergeStrategy::KeepHighestConfidence,
    };
    let wish = yore_engine::Wish::default();
    let request = input::Merge { canonical, duplicates, strategy, wish };
    mutated::show(app, &session.change::<api::Merge>(request).await?)
}

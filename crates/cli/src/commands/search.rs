//! `yore search`: searches memories and conversations together.

use clap::ValueEnum;
use yore_client::api;
use yore_domain::query::Corpus;

use super::recall::show_results;
use crate::app::App;
use crate::asking::Question;
use crate::failure::Result;

/// Options of `yore search`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore search peanuts
  yore search --in conversations --platform chatgpt \"the recipe with lentils\"
  yore search --since 30d --json invoice")]
pub(crate) struct Args {
    #[command(flatten)]
    question: Question,
    /// Where to look
    #[arg(long = "in", value_enum, default_value_t = Place::Both, value_name = "WHERE")]
    place: Place,
    /// Conversations of this platform
    #[arg(long, value_name = "NAME")]
    platform: Option<String>,
    /// Conversations with this model
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Show what each result was ranked by
    #[arg(long)]
    scores: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Place {
    Memories,
    Conversations,
    Both,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let corpus = match args.place {
        Place::Memories => Corpus::Memories,
        Place::Conversations => Corpus::Messages,
        Place::Both => Corpus::Both,
    };
    let mut recall = args.question.recall(corpus, app.out.now)?;
    recall.filter.platform = args.platform;
    recall.filter.model = args.model;
    let mut session = app.session().await?;
    let found = session.call::<api::Recall>(recall).await?;
    show_results(&app.out, &found, args.scores)
}

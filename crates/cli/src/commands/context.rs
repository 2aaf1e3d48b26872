//! `yore context`: a safe block of memories for a prompt.

use clap::ValueEnum;
use yore_client::{api, input};
use yore_domain::query::Corpus;

use crate::app::App;
use crate::asking::Question;
use crate::failure::Result;
use crate::output::{count, raw};

/// Options of `yore context`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore context --tokens 800 \"plan a dinner for six\"
  yore context --project yore - < question.txt >> prompt.txt

The block marks memories as data, never as instructions; only it is written to standard output.")]
pub(crate) struct Args {
    #[command(flatten)]
    question: Question,
    /// The most tokens it may take
    #[arg(long, default_value_t = 1000, value_name = "N")]
    tokens: usize,
    /// Where to look
    #[arg(long = "in", value_enum, default_value_t = Place::Memories, value_name = "WHERE")]
    place: Place,
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
    let recall = args.question.recall(corpus, app.out.now)?;
    let mut session = app.session().await?;
    let context =
        session.call::<api::Context>(input::Context { recall, budget_tokens: args.tokens }).await?;
    app.out.either(&context, |context| {
        raw(&context.frame)?;
        let used = count(context.used.len(), "memory", "memories");
        app.out.remark(format!("{used}, {} tokens", context.tokens));
        Ok(())
    })
}

//! `yore recall`: finds what answers a question.

use yore_client::api::{self, Hit, Match, Recalled};
use yore_domain::query::Corpus;

use crate::app::App;
use crate::asking::Question;
use crate::failure::Result;
use crate::output::{DIM, Output, clean, count};
use crate::show;

/// Options of `yore recall`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore recall what food should I avoid
  yore recall --project yore --since 7d \"what did we decide about the schema\"
  yore recall --json -n 3 \"coffee or tea\" | jq -r '.results[].found'

What is not relevant is left out, even if nothing remains; --all fills up to the limit.")]
pub(crate) struct Args {
    #[command(flatten)]
    question: Question,
    /// Show what each result was ranked by
    #[arg(long)]
    scores: bool,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let recall = args.question.recall(Corpus::Memories, app.out.now)?;
    let mut session = app.session().await?;
    let found = session.call::<api::Recall>(recall).await?;
    show_results(&app.out, &found, args.scores)
}

/// Shows what a recall found.
pub(crate) fn show_results(out: &Output, found: &Recalled, scores: bool) -> Result {
    out.either(found, |found| {
        for (index, hit) in found.results.iter().enumerate() {
            if index > 0 {
                out.line("")?;
            }
            show_hit(out, hit, scores)?;
        }
        if found.results.is_empty() {
            out.remark("nothing relevant is remembered; --all shows the nearest");
        } else {
            out.remark(format!(
                "{} of {} considered",
                count(found.results.len(), "result", "results"),
                found.considered
            ));
        }
        Ok(())
    })
}

fn show_hit(out: &Output, hit: &Hit, scores: bool) -> Result {
    let lead = format!("{:3.0}%  ", (hit.relevance * 100.0).clamp(0.0, 100.0));
    match &hit.found {
        Match::Memory { version, .. } => show::brief(out, version, &lead)?,
        Match::Message { conversation, position, message } => {
            show::message(out, conversation, *position, message, &lead)?;
            if let Some(passage) = &hit.inside {
                let text = format!("{}: {}", clean(&passage.filename), clean(&passage.text));
                out.line(out.wrapped(&text, 10))?;
            }
        }
    }
    if scores {
        let signals: Vec<String> =
            hit.signals.iter().map(|(name, value)| format!("{name} {value:.3}")).collect();
        out.line(format!("          {DIM}score {:.3}: {}{DIM:#}", hit.score, signals.join(", ")))?;
    }
    Ok(())
}

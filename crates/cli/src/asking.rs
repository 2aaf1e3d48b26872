//! Options of a question, shared by recall, search and context.

use yore_domain::Timestamp;
use yore_domain::query::{Corpus, Cutoff, Effort, Hint, Recall};

use crate::failure::Result;
use crate::filter::Which;
use crate::input;

/// How to ask.
#[derive(Debug, clap::Args)]
pub(crate) struct Question {
    /// The question; - reads standard input
    #[arg(value_name = "QUERY")]
    query: Vec<String>,
    /// How many results
    #[arg(long, short = 'n', default_value_t = 10, value_name = "N", value_parser = limit)]
    limit: usize,
    /// Which models: instant (microseconds) or balanced (milliseconds)
    #[arg(long, value_name = "EFFORT", value_parser = effort)]
    effort: Option<Effort>,
    /// What to rank higher: recency, salience, confidence, scope_match, provenance, similarity
    #[arg(long, value_delimiter = ',', value_name = "HINT", value_parser = hint)]
    prefer: Vec<Hint>,
    /// Fill up to the limit, relevant or not
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    which: Which,
}

impl Question {
    /// Returns the recall it means.
    pub(crate) fn recall(&self, corpus: Corpus, now: Timestamp) -> Result<Recall> {
        Ok(Recall {
            query: input::text(&self.query, "question")?,
            corpus,
            filter: self.which.filter(now),
            near: Default::default(),
            limit: self.limit,
            effort: self.effort.unwrap_or_default(),
            prefer: self.prefer.clone(),
            cutoff: if self.all { Cutoff::Off } else { Cutoff::Calibrated },
        })
    }
}

fn limit(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|number| (1..=yore_domain::limits::RESULTS).contains(number))
        .ok_or_else(|| "must be a number from 1 to 1000".to_owned())
}

fn effort(text: &str) -> Result<Effort, String> {
    match text {
        "instant" => Ok(Effort::Instant),
        "balanced" => Ok(Effort::Balanced),
        _ => Err("must be instant or balanced".to_owned()),
    }
}

fn hint(text: &str) -> Result<Hint, String> {
    serde_json::from_value(text.into()).map_err(|_| {
        "must be recency, salience, confidence, scope_match, provenance or similarity".to_owned()
    })
}

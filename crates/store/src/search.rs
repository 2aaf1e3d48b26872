//! Searching: what is asked, and candidates with raw signals as the answer.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use yore_domain::Timestamp;
use yore_domain::class::Class;
use yore_domain::memory::Feedback;
use yore_domain::query::{Corpus, Filter};

/// A quantised vector: `values × scale` has length one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Vector {
    /// The model that made it.
    pub model: String,
    /// What brings the components back to unit length.
    pub scale: f32,
    /// The components.
    pub values: Vec<i8>,
}

/// A row of a vault as its indexes know it. It means nothing outside the vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RowKey {
    /// Which table.
    pub source: Source,
    /// Which row.
    pub row: u64,
}

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Source {
    /// A version of a memory.
    Version,
    /// A message.
    Message,
}

/// A search for candidates.
#[derive(Clone, Debug)]
pub struct Search<'a> {
    /// The words.
    pub text: &'a str,
    /// WordPiece ids of the words.
    pub tokens: &'a [u16],
    /// The static vector of the words.
    pub statics: Option<&'a Vector>,
    /// The transformer's vector of the words.
    pub dense: Option<&'a Vector>,
    /// What to search.
    pub corpus: Corpus,
    /// What candidates must be like.
    pub filter: &'a Filter,
    /// How many each list contributes.
    pub depth: usize,
    /// The time that counts as now.
    pub now: Timestamp,
}

/// A row that may answer.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The row.
    pub row: RowKey,
    /// The raw signals; the prior is left for the caller to fill from the standing.
    pub signals: yore_rank::Candidate,
    /// How it stands apart from the question.
    pub standing: Standing,
    /// Its class.
    pub class: Arc<Class>,
}

/// What priors are made of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standing {
    /// When it was made, in microseconds.
    pub created: i64,
    /// When it was last confirmed, in microseconds; decay counts from here.
    pub confirmed: i64,
    /// In how many days its weight halves; zero means never.
    pub half_life_days: f32,
    /// Its salience, if stated.
    pub salience: Option<f32>,
    /// Its confidence, if stated.
    pub confidence: Option<f32>,
    /// How many pieces of evidence it rests on.
    pub evidence: u8,
    /// Outcomes reported for it.
    pub feedback: Feedback,
    /// Whether an expiry policy demoted it.
    pub demoted: bool,
    /// Whether it arose in the session that asks.
    pub session: Option<Arc<str>>,
}

//! Recall: candidates from the indexes, priors from their standing, one order out of both.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use yore_domain::conversation::{Conversation, Message};
use yore_domain::grant::Verb;
use yore_domain::hold::RuleAction;
use yore_domain::memory::Version;
use yore_domain::query::{Cutoff, Effort, Recall};
use yore_domain::{Error, HoldId, MemoryId, Result, limits};
use yore_policy::Need;
use yore_rank::{Query, Ranked, Weights, asks_whether, fuse};
use yore_store::snapshot::Loaded;
use yore_store::{Candidate, RowKey, Search, Snapshot};

use super::get::target;
use super::passage::{Passage, passage};
use super::prior::{hints, prior};
use super::shown::{Standing, shown, standing};
use crate::call::Call;
use crate::engine::Engine;
use crate::kept::Withheld;
use crate::run::{Session, Trace};

/// How many candidates each list contributes.
const DEPTH: usize = 100;

/// How many rows are loaded at a time, and whether what was loaded is enough.
pub(crate) type Until<'a> = (usize, &'a (dyn Fn(&[Hit]) -> bool + Sync));

/// The answer to a recall.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recalled {
    /// What was found, best first.
    pub results: Vec<Hit>,
    /// How many candidates were weighed.
    pub considered: usize,
    /// Which models were used.
    pub effort: Effort,
    /// Microseconds spent on turning the query into vectors.
    pub embedded_us: u64,
    /// Where it waits for the owner whether the caller may read what was left out by a rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<HoldId>,
}

/// One result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hit {
    /// The fused score; comparable within one answer only.
    pub score: f32,
    /// How much speaks for it in itself; comparable across answers.
    pub relevance: f32,
    /// The named numbers that put it in its place.
    pub signals: Vec<(String, f32)>,
    /// What was found.
    pub found: Found,
    /// The part of an attachment that answers rather than the message that names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<Passage>,
}

impl Hit {
    /// Returns the words of it: of the part of the attachment, where that is what was found.
    #[must_use]
    pub fn text(&self) -> &str {
        self.inside.as_ref().map_or_else(|| self.found.text(), |passage| &passage.text)
    }
}

/// What a recall found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Found {
    /// A memory.
    Memory {
        /// The version that matched.
        version: Box<Version>,
        /// Whether it is the head.
        head: bool,
    },
    /// A message of a conversation.
    Message {
        /// The conversation, without messages.
        conversation: Box<Conversation>,
        /// Its position there.
        position: u64,
        /// The message.
        message: Box<Message>,
    },
}

impl Found {
    /// Returns the memory's id, when it is one.
    #[must_use]
    pub fn memory(&self) -> Option<MemoryId> {
        match self {
            Self::Memory { version, .. } => Some(version.memory),
            Self::Message { .. } => None,
        }
    }

    /// Returns the words of it.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Memory { version, .. } => &version.content.body.text,
            Self::Message { message, .. } => &message.text,
        }
    }
}

impl Engine {
    /// Finds what answers a question, among what the caller may see.
    pub async fn recall(&self, call: &Call, recall: Recall) -> Result<Recalled> {
        let need = Need::one("recall", Verb::Read);
        let found = self.look(call, need, recall, |engine, session, snapshot, recall| {
            Box::pin(async move {
                let (recalled, withheld) = engine.find(session, snapshot, recall).await?;
                let trace = trace(&recalled);
                Ok(((recalled, withheld), trace))
            })
        });
        let (mut recalled, withheld) = found.await?;
        recalled.waits = self.ask_to_read(call, need, withheld).await?;
        Ok(recalled)
    }

    pub(crate) async fn find(
        &self,
        session: &Session,
        snapshot: &dyn Snapshot,
        recall: &Recall,
    ) -> Result<(Recalled, Withheld)> {
        let limit = checked(recall)?;
        self.find_until(session, snapshot, recall, (limit, &|_| false)).await
    }

    /// Finds, and loads so many rows at a time until it is enough.
    pub(crate) async fn find_until(
        &self,
        session: &Session,
        snapshot: &dyn Snapshot,
        recall: &Recall,
        until: Until<'_>,
    ) -> Result<(Recalled, Withheld)> {
        let limit = checked(recall)?;
        let effort = match self.settings().effort {
            Effort::Instant => Effort::Instant,
            Effort::Balanced => recall.effort,
        };
        let asked = self.ask(&recall.query, effort).await?;
        let search = Search {
            text: &recall.query,
            tokens: &asked.tokens,
            statics: Some(&asked.statics),
            dense: asked.dense.as_deref(),
            corpus: recall.corpus,
            filter: &recall.filter,
            depth: DEPTH.max(limit),
            now: session.now,
        };
        let candidates = snapshot.search(&search).await?;
        let ranked = ranked(&candidates, recall, session);
        let shown = Shown { candidates: &candidates, ranked: &ranked, question: &recall.query };
        let (results, withheld) = load(session, snapshot, shown, limit, until).await?;
        let (considered, embedded_us) = (candidates.len(), asked.took_us);
        Ok((Recalled { results, considered, effort, embedded_us, waits: Vec::new() }, withheld))
    }
}

/// Checks a recall and returns how many results it may have.
fn checked(recall: &Recall) -> Result<usize> {
    if recall.query.trim().is_empty() {
        return Err(Error::invalid("query", "must not be empty"));
    }
    if recall.query.len() > limits::QUERY_BYTES {
        return Err(Error::too_large("query", "64 KiB"));
    }
    if recall.limit == 0 {
        return Err(Error::invalid("limit", "must be at least 1"));
    }
    Ok(recall.limit.min(limits::RESULTS))
}

fn ranked(candidates: &[Candidate], recall: &Recall, session: &Session) -> Vec<Ranked> {
    let signals: Vec<yore_rank::Candidate> = candidates
        .iter()
        .map(|candidate| {
            let prior = prior(candidate, recall, session.now);
            yore_rank::Candidate { prior, ..candidate.signals.clone() }
        })
        .collect();
    let prefer = hints(&recall.prefer);
    let ranked = fuse(&signals, &Query { prefer: &prefer }, &Weights::default());
    match recall.cutoff {
        Cutoff::Off => ranked,
        Cutoff::Calibrated => {
            yore_rank::Cutoff::default().apply(ranked, asks_whether(&recall.query))
        }
        Cutoff::Each => {
            let calibration = yore_rank::Cutoff::default();
            let relevant =
                |one: &Ranked| calibration.relevance(&one.evidence) >= calibration.threshold;
            ranked.into_iter().filter(relevant).collect()
        }
    }
}

/// What was ranked, and for which question.
#[derive(Clone, Copy)]
struct Shown<'a> {
    candidates: &'a [Candidate],
    ranked: &'a [Ranked],
    question: &'a str,
}

/// Loads the best rows, and says which of them rules withhold. Of several versions of one memory
/// only the best stays.
async fn load(
    session: &Session,
    snapshot: &dyn Snapshot,
    Shown { candidates, ranked, question }: Shown<'_>,
    limit: usize,
    (step, enough): Until<'_>,
) -> Result<(Vec<Hit>, Withheld)> {
    let mut withheld = Withheld::new();
    let calibration = yore_rank::Cutoff::default();
    let mut hits = Vec::with_capacity(limit.min(ranked.len()));
    let mut seen = BTreeSet::new();
    let mut rest = ranked;
    while !rest.is_empty() {
        let mut end = step.clamp(1, rest.len());
        // Equals stay together, for others may put them in another order.
        while end < rest.len() && rest[end].score >= rest[end - 1].score {
            end += 1;
        }
        let (batch, later) = rest.split_at(end);
        rest = later;
        let rows: Vec<RowKey> =
            batch.iter().map(|ranked| candidates[ranked.candidate].row).collect();
        let mut loaded = snapshot.load(&rows).await?.into_iter().peekable();
        for (ranked, row) in batch.iter().zip(&rows) {
            // Rows that are gone are left out; the order stays.
            let Some((_, loaded)) = loaded.next_if(|(found, _)| found == row) else { continue };
            if hits.len() < limit {
                withhold(session, &loaded, &mut withheld);
            }
            let Some(found) = found(session, snapshot, loaded).await? else { continue };
            if hits.len() == limit || found.memory().is_some_and(|id| !seen.insert(id)) {
                continue;
            }
            let signals = ranked.signals.named();
            let inside = inside(snapshot, question, &found).await?;
            hits.push(Hit {
                score: ranked.score,
                relevance: calibration.relevance(&ranked.evidence),
                signals: signals.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
                found,
                inside,
            });
        }
        if hits.len() == limit || enough(&hits) {
            break;
        }
    }
    Ok((hits, withheld))
}

/// Notes a row that a rule keeps from the caller until a person decides.
fn withhold(session: &Session, loaded: &Loaded, withheld: &mut Withheld) {
    let Loaded::Memory { version, .. } = loaded else { return };
    let Some(rule) = session.kept.rule(version) else { return };
    if rule.action == RuleAction::Hold {
        let rows = withheld.entry(rule.name.clone()).or_default();
        if !rows.iter().any(|(memory, _)| *memory == version.memory) {
            rows.push((version.memory, version.number));
        }
    }
}

async fn found(
    session: &Session,
    snapshot: &dyn Snapshot,
    loaded: Loaded,
) -> Result<Option<Found>> {
    Ok(match loaded {
        Loaded::Memory { version, head } => {
            let standing = match head {
                true => Standing::of(session, &version),
                false => standing(session, snapshot, version.memory).await?,
            };
            let shown = shown(session, *version, &standing);
            shown.map(|version| Found::Memory { version: Box::new(version), head })
        }
        Loaded::Message { conversation, position, message } => {
            Some(Found::Message { conversation, position, message })
        }
    })
}

/// The part of an attachment that answers, where the message itself does not.
async fn inside(snapshot: &dyn Snapshot, question: &str, found: &Found) -> Result<Option<Passage>> {
    let Found::Message { conversation, message, .. } = found else { return Ok(None) };
    if message.attachments.iter().all(|attachment| attachment.blob.is_none()) {
        return Ok(None);
    }
    let inside = snapshot.inside(conversation.id, message.id).await?;
    Ok(passage(question, message, inside))
}

pub(crate) fn trace(recalled: &Recalled) -> Trace {
    let used: Vec<MemoryId> =
        recalled.results.iter().filter_map(|hit| hit.found.memory()).collect();
    let targets = recalled
        .results
        .iter()
        .filter_map(|hit| match &hit.found {
            Found::Memory { version, .. } => Some(target(version)),
            Found::Message { .. } => None,
        })
        .collect();
    Trace { targets, used, ..Trace::count(recalled.results.len()) }
}

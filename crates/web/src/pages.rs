//! One file per page: what it asks the engine, and what it shows of the answer.

pub(crate) mod access;
pub(crate) mod admin;
pub(crate) mod api;
pub(crate) mod attachment;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod conversations;
pub(crate) mod guardian;
pub(crate) mod health;
pub(crate) mod home;
pub(crate) mod import;
pub(crate) mod login;
pub(crate) mod memory;
pub(crate) mod operators;
pub(crate) mod passkeys;
pub(crate) mod review;
pub(crate) mod rules;
pub(crate) mod search;

use axum::response::{IntoResponse, Redirect, Response};
use yore_domain::audit::{Actor, Entry, Outcome, Target};
use yore_domain::query::Position;
use yore_domain::{Error, Result, Timestamp};

/// How many memories a line of the audit chain names.
const NAMED: usize = 3;

/// Who acted, in a word or two.
fn actor(actor: &Actor) -> String {
    match actor {
        Actor::Owner => "you".into(),
        Actor::Agent { agent, .. } => agent.clone(),
        Actor::Service { name } => format!("service {name}"),
        Actor::System { reason } => format!("the server ({reason})"),
        Actor::Anonymous => "anybody".into(),
        Actor::Unknown => "somebody unknown".into(),
    }
}

/// One line of the audit chain, for people.
struct Line {
    seq: u64,
    at: Timestamp,
    who: String,
    operation: String,
    protocol: String,
    /// Empty when it was done.
    trouble: String,
    /// The first memories it touched, each with a short name.
    memories: Vec<(String, String)>,
    /// How many more it touched.
    more: usize,
    hash: String,
}

impl From<Entry> for Line {
    fn from(entry: Entry) -> Self {
        let name = |target: &Target| {
            let id = target.memory.to_string();
            let short = id.chars().take(8).collect();
            (id, short)
        };
        let trouble = match &entry.draft.outcome {
            Outcome::Done => String::new(),
            Outcome::Held { .. } => "waits for review".into(),
            Outcome::Refused { code } => format!("refused: {code}"),
        };
        Self {
            seq: entry.seq.0,
            at: entry.draft.at,
            who: actor(&entry.draft.actor),
            operation: entry.draft.operation,
            protocol: entry.draft.protocol,
            trouble,
            memories: entry.draft.targets.iter().take(NAMED).map(name).collect(),
            more: entry.draft.targets.len().saturating_sub(NAMED),
            hash: entry.hash,
        }
    }
}

/// Lines of the audit chain, for who may see them; nobody else is refused the page for it.
fn seen(found: Result<Vec<Entry>>) -> Result<Vec<Entry>> {
    match found {
        Err(Error::Forbidden { .. }) => Ok(Vec::new()),
        other => other,
    }
}

/// Goes back to a page after something was done.
fn back(place: &str, code: &'static str) -> Response {
    if code.is_empty() {
        return Redirect::to(place).into_response();
    }
    let mark = if place.contains('?') { '&' } else { '?' };
    Redirect::to(&format!("{place}{mark}said={code}")).into_response()
}

/// A place in a list, as an address can carry it.
fn written(position: &Position) -> String {
    format!("{}.{}", position.at.micros(), yore_canon::encode::hex(&position.id))
}

/// Reads such a place.
fn position(text: &str) -> Result<Position> {
    let wrong = || Error::invalid("after", "is not a place in a list");
    let (at, id) = text.split_once('.').ok_or_else(wrong)?;
    let at = at.parse::<i64>().ok().and_then(|at| Timestamp::try_from(at).ok());
    let id = yore_canon::encode::from_hex(id).ok().and_then(|id| id.try_into().ok());
    Ok(Position { at: at.ok_or_else(wrong)?, id: id.ok_or_else(wrong)? })
}

/// The end of a day that was typed as `2027-01-15`.
fn end_of(day: &str) -> Result<Timestamp> {
    format!("{day}T23:59:59.999999Z")
        .parse()
        .map_err(|_| Error::invalid("date", "must be written like 2027-01-15"))
}

/// The beginning of such a day.
fn start_of(day: &str) -> Result<Timestamp> {
    format!("{day}T00:00:00Z")
        .parse()
        .map_err(|_| Error::invalid("date", "must be written like 2027-01-15"))
}

//! Putting records before a model: verified, filtered, framed as untrusted data.
//!
//! For records from anywhere: files, other servers. What a vault recalls is framed by the
//! engine itself; both use the one frame.

use serde_json::Value;
use yore_canon::seal;
use yore_domain::scope::Visibility;
use yore_engine::frame::{Frame, Line, frame};

use crate::integrity;
use crate::wire::Object;

/// What may enter a frame.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// How many records at most.
    pub limit: usize,
    /// How many tokens at most.
    pub budget_tokens: usize,
    /// The widest visibility that may enter: `Private` takes private records only.
    pub visibility: Visibility,
    /// Whether records without a signature are dropped, too.
    pub unsigned: Unsigned,
}

/// What becomes of records that nobody signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unsigned {
    /// They enter.
    #[default]
    Take,
    /// They are dropped.
    Drop,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            limit: 12,
            budget_tokens: 2000,
            visibility: Visibility::Private,
            unsigned: Unsigned::Take,
        }
    }
}

/// A framed text and the records in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rehydrated {
    /// The text; empty when nothing may enter.
    pub text: String,
    /// The ids of the records in it, in order.
    pub used: Vec<String>,
    /// How many records were kept out because they do not verify.
    pub unverified: usize,
    /// How many tokens the text takes.
    pub tokens: usize,
}

/// Frames records in the order given, best first. Records that do not verify, that were
/// forgotten or that are more visible than wanted are left out before anything is counted;
/// consent is applied to what stays.
pub fn rehydrate(
    records: &[Object],
    options: &Options,
    tokens: impl Fn(&str) -> usize,
) -> Rehydrated {
    let mut unverified = 0;
    let mut entering = Vec::new();
    for record in records {
        if !proven(record, options.unsigned) {
            unverified += 1;
        } else if may_enter(record, options.visibility) && entering.len() < options.limit {
            let mut record = record.clone();
            integrity::redact(&mut record);
            entering.push(record);
        }
    }
    let Frame { text, kept, tokens } =
        frame(entering.iter().map(line), options.budget_tokens, tokens);
    let used = entering.iter().zip(kept).filter(|(_, kept)| *kept);
    let used = used.map(|(record, _)| word(record, &["id"]).to_owned()).collect();
    Rehydrated { text, used, unverified, tokens }
}

fn proven(record: &Object, unsigned: Unsigned) -> bool {
    match seal::verify(record) {
        Ok(_) => true,
        Err(seal::Error::Missing) => unsigned == Unsigned::Take,
        Err(_) => false,
    }
}

fn may_enter(record: &Object, widest: Visibility) -> bool {
    let visibility = Visibility::parse(word(record, &["scope", "visibility"]));
    word(record, &["lifecycle", "status"]) != "tombstoned"
        && visibility.is_ok_and(|visibility| visibility <= widest)
}

fn line(record: &Object) -> Line<'_> {
    Line {
        what: word(record, &["kind"]),
        project: Some(word(record, &["scope", "project"])).filter(|project| !project.is_empty()),
        at: word(record, &["time", "created"]),
        by: word(record, &["provenance", "actor_kind"]),
        id: word(record, &["id"]),
        text: word(record, &["body", "text"]),
    }
}

fn word<'a>(record: &'a Object, path: &[&str]) -> &'a str {
    let mut segments = path.iter();
    let first = segments.next().and_then(|name| record.get(*name));
    let found = segments.fold(first, |at, name| at.and_then(|at| at.get(name)));
    found.and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;

//! What a caller is shown of a version: consent may leave members out for everyone but the owner,
//! a rule may keep it back, and a secret is shown without its words.
//!
//! What stands now counts for the past, too: what the newest version keeps inside is left out of
//! every version before it.

use serde_json::{Value, json};
use yore_domain::consent::Consent;
use yore_domain::hold::Hold;
use yore_domain::memory::{Foreign, Memory, Version};
use yore_domain::mutation::Mutation;
use yore_domain::query::Filter;
use yore_domain::{MemoryId, Result};
use yore_policy::redact::{Viewer, is_secret_to, redact};
use yore_store::Snapshot;

use crate::run::Session;

/// What a portable record calls otherwise than the model does, or in one member where the model
/// has two.
const OTHERWISE: [(&str, &[&str]); 5] = [
    ("provenance.source", &["provenance.source", "provenance.provider"]),
    ("provenance.source.ref", &["provenance.source"]),
    ("provenance.source.provider", &["provenance.provider"]),
    ("lifecycle.decay", &["lifecycle.half_life"]),
    ("supersedes", &["replaces"]),
];
/// Everything of a memory that a secret could be told by.
const WORDS: [&str; 4] = ["body", "tags", "relations", "provenance"];
/// What stands in the place of a secret's words.
const REDACTED: &str = "[redacted]";
/// What only the members that a protocol keeps beside the model could tell.
const KEPT_BESIDE: [&str; 3] = ["scope", "scope.owner", "supersedes"];

/// What the newest version of a memory keeps from a caller.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    /// What it says of consent.
    pub(crate) consent: Consent,
    secret: bool,
    withheld: bool,
}

impl Standing {
    /// Judges by a newest version.
    pub(crate) fn of(session: &Session, head: &Version) -> Self {
        Self {
            consent: head.content.consent.clone(),
            secret: is_secret_to(session.permit.principal(), &head.class()),
            withheld: session.kept.rule(head).is_some(),
        }
    }
}

/// Returns the version as this caller may see it; `None` when nothing of it may be shown.
pub(crate) fn shown(session: &Session, version: Version, standing: &Standing) -> Option<Version> {
    shown_to(session, session.viewer(), version, standing)
}

/// The same for whoever the caller hands it on to. What is kept from the caller is never shown.
pub(crate) fn shown_to(
    session: &Session,
    viewer: Viewer,
    version: Version,
    standing: &Standing,
) -> Option<Version> {
    if standing.withheld || session.kept.rule(&version).is_some() {
        return None;
    }
    let secret = standing.secret || is_secret_to(session.permit.principal(), &version.class());
    let own = viewer.withheld(&version.content.consent);
    let since = viewer.withheld(&standing.consent).iter().filter(|path| !own.contains(path));
    let mut paths: Vec<String> = own.iter().chain(since).cloned().collect();
    if secret {
        paths.extend(WORDS.iter().map(|path| (*path).to_owned()));
    }
    if paths.is_empty() {
        return Some(version);
    }
    let mut record = serde_json::to_value(&version).ok()?;
    redact(&mut record, &in_the_model(&paths));
    restore_shape(&mut record);
    let mut redacted: Version = serde_json::from_value(record).ok()?;
    // Where it lies and what it is are never redacted: a lens decides by them.
    redacted.content.scope.visibility = version.content.scope.visibility;
    redacted.content.governance = version.content.governance;
    redacted.content.consent = Consent { redact: paths, ..version.content.consent };
    // The bytes that were signed and the words that were given say what is left out.
    redacted.content.seal = None;
    if redacted.content.consent.redact.iter().any(|path| KEPT_BESIDE.contains(&path.as_str())) {
        redacted.content.foreign.clear();
    }
    only_names(&mut redacted.content.foreign);
    if secret {
        redacted.content.body.text = REDACTED.to_owned();
    }
    Some(redacted)
}

/// The same for a memory, whichever of its versions is in the place of its head.
pub(crate) fn shown_memory(
    session: &Session,
    memory: Memory,
    standing: &Standing,
) -> Option<Memory> {
    let Memory { head, since, usage, legal_hold } = memory;
    shown(session, head, standing).map(|head| Memory { head, since, usage, legal_hold })
}

/// What the newest version of a memory keeps from a caller. Nothing is looked up for the owner,
/// to whom everything is shown.
pub(crate) async fn standing(
    session: &Session,
    snapshot: &dyn Snapshot,
    memory: MemoryId,
) -> Result<Standing> {
    if session.is_owner() {
        return Ok(Standing::default());
    }
    let found = snapshot.memory(memory).await?;
    Ok(found.map(|memory| Standing::of(session, &memory.head)).unwrap_or_default())
}

/// What the newest version keeps from a caller, where a filter may have put another in its place.
pub(crate) async fn standing_of(
    session: &Session,
    snapshot: &dyn Snapshot,
    filter: &Filter,
    memory: &Memory,
) -> Result<Standing> {
    if filter.as_of.is_none() && filter.valid_at.is_none() {
        return Ok(Standing::of(session, &memory.head));
    }
    standing(session, snapshot, memory.head.memory).await
}

/// A hold as this caller may see it: an agent that proposes a change does not learn by it what
/// consent, a rule or a secret keeps from the agent.
pub(crate) async fn shown_hold(
    session: &Session,
    snapshot: &dyn Snapshot,
    mut hold: Hold,
) -> Result<Hold> {
    let viewer = session.viewer();
    if viewer == Viewer::Own {
        return Ok(hold);
    }
    // It names the most telling word of the memory.
    hold.cluster = None;
    let whole = |memory: &Memory| {
        viewer.withheld(&memory.head.content.consent).is_empty()
            && session.kept.rule(&memory.head).is_none()
            && !is_secret_to(session.permit.principal(), &memory.head.class())
    };
    for (memory, _) in &hold.judged {
        let found = snapshot.memory(*memory).await?;
        if !found.as_ref().is_some_and(whole) {
            hold.diff.iter_mut().for_each(|line| line.before = None);
            // What comes back, or out of several, are not the agent's own words.
            if matches!(hold.mutation, Mutation::Restore { .. } | Mutation::Merge { .. }) {
                hold.diff.clear();
            }
        }
    }
    Ok(hold)
}

/// The paths as the model calls them.
fn in_the_model(paths: &[String]) -> Vec<String> {
    let mut model = Vec::with_capacity(paths.len());
    for path in paths {
        match OTHERWISE.iter().find(|(said, _)| said == path) {
            Some((_, meant)) => model.extend(meant.iter().map(|path| (*path).to_owned())),
            None => model.push(path.clone()),
        }
    }
    model
}

/// Of what protocols keep beside the model only names and lists of names stay: ids, owners,
/// versions. Anything else may repeat what is left out.
fn only_names(foreign: &mut Foreign) {
    let is_name = |value: &Value| match value {
        Value::String(_) => true,
        Value::Array(list) => list.iter().all(Value::is_string),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    };
    foreign.retain(|_, kept| match kept.as_object_mut() {
        Some(members) => {
            members.retain(|_, value| is_name(value));
            true
        }
        None => false,
    });
}

/// Puts empty members where the model wants one, so that what is left can still be read.
fn restore_shape(record: &mut Value) {
    let Some(members) = record.as_object_mut() else { return };
    for name in ["scope", "lifecycle", "provenance", "governance", "consent"] {
        members.entry(name).or_insert_with(|| json!({}));
    }
    let body = members.entry("body").or_insert_with(|| json!({}));
    if let Some(body) = body.as_object_mut() {
        body.entry("text").or_insert_with(|| json!(""));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ump_057_paths_of_a_record_are_those_of_the_model() {
        let model = |path: &str| in_the_model(&[path.to_owned()]);
        assert_eq!(model("provenance.source"), ["provenance.source", "provenance.provider"]);
        assert_eq!(model("provenance.source.ref"), ["provenance.source"]);
        assert_eq!(model("provenance.source.provider"), ["provenance.provider"]);
        assert_eq!(model("lifecycle.decay"), ["lifecycle.half_life"]);
        assert_eq!(model("body.structured.pin"), ["body.structured.pin"]);
    }

    #[test]
    fn only_names_stay_of_what_is_kept_beside_the_model() {
        let mut foreign = Foreign::from([
            ("a".to_owned(), json!({"id": "x", "ids": ["y"], "said": {"z": 1}, "list": [1]})),
            ("b".to_owned(), json!("text")),
        ]);
        only_names(&mut foreign);
        assert_eq!(foreign, Foreign::from([("a".to_owned(), json!({"id": "x", "ids": ["y"]}))]));
    }
}

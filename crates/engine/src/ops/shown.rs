//! What a caller is shown of a version: consent may leave members out for everyone but the owner.
//!
//! What stands now counts for the past, too: a member that the newest version keeps inside is
//! left out of every version before it.

use serde_json::{Value, json};
use yore_domain::consent::Consent;
use yore_domain::hold::Hold;
use yore_domain::memory::{Memory, Version};
use yore_domain::query::Filter;
use yore_domain::{MemoryId, Result};
use yore_policy::redact::redact;
use yore_store::Snapshot;

use crate::run::Session;

/// Returns the version as this caller may see it; `None` when nothing of it may be shown.
/// `standing` is what the memory's newest version says of consent.
pub(crate) fn shown(session: &Session, version: Version, standing: &Consent) -> Option<Version> {
    if session.is_owner() {
        return Some(version);
    }
    let own = &version.content.consent.redact;
    let since = standing.redact.iter().filter(|path| !own.contains(path));
    let paths: Vec<String> = own.iter().chain(since).cloned().collect();
    if paths.is_empty() {
        return Some(version);
    }
    let mut record = serde_json::to_value(&version).ok()?;
    redact(&mut record, &paths);
    restore_shape(&mut record);
    let mut redacted: Version = serde_json::from_value(record).ok()?;
    // Where it lies and what it is are never redacted: a lens decides by them.
    redacted.content.scope.visibility = version.content.scope.visibility;
    redacted.content.governance = version.content.governance;
    redacted.content.consent = Consent { redact: paths, ..version.content.consent };
    redacted.content.seal = None;
    Some(redacted)
}

/// The same for a memory, whichever of its versions is in the place of its head.
pub(crate) fn shown_memory(
    session: &Session,
    memory: Memory,
    standing: &Consent,
) -> Option<Memory> {
    let Memory { head, since, usage, legal_hold } = memory;
    shown(session, head, standing).map(|head| Memory { head, since, usage, legal_hold })
}

/// What the newest version of a memory says of consent. Nothing is looked up for the owner, to
/// whom everything is shown.
pub(crate) async fn standing(
    session: &Session,
    snapshot: &dyn Snapshot,
    memory: MemoryId,
) -> Result<Consent> {
    if session.is_owner() {
        return Ok(Consent::default());
    }
    let found = snapshot.memory(memory).await?;
    Ok(found.map(|memory| memory.head.content.consent).unwrap_or_default())
}

/// What the newest version says of consent, where a filter may have put another in its place.
pub(crate) async fn standing_of(
    session: &Session,
    snapshot: &dyn Snapshot,
    filter: &Filter,
    memory: &Memory,
) -> Result<Consent> {
    if filter.as_of.is_none() && filter.valid_at.is_none() {
        return Ok(memory.head.content.consent.clone());
    }
    standing(session, snapshot, memory.head.memory).await
}

/// A hold as this caller may see it: an agent that proposes a change does not learn by it what
/// consent keeps from the agent.
pub(crate) async fn shown_hold(
    session: &Session,
    snapshot: &dyn Snapshot,
    mut hold: Hold,
) -> Result<Hold> {
    if session.is_owner() {
        return Ok(hold);
    }
    for (memory, _) in &hold.judged {
        let found = snapshot.memory(*memory).await?;
        if found.is_none_or(|memory| !memory.head.content.consent.redact.is_empty()) {
            hold.diff.iter_mut().for_each(|line| line.before = None);
        }
    }
    Ok(hold)
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

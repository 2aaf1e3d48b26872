//! What a caller is shown of a version: consent may leave members out for everyone but the owner.

use serde_json::{Value, json};
use yore_domain::memory::{Memory, Version};
use yore_policy::redact::redact;

use crate::run::Session;

/// Returns the version as this caller may see it; `None` when nothing of it may be shown.
pub(crate) fn shown(session: &Session, version: Version) -> Option<Version> {
    if session.is_owner() || version.content.consent.redact.is_empty() {
        return Some(version);
    }
    let mut record = serde_json::to_value(&version).ok()?;
    if !redact(&mut record, &version.content.consent.redact) {
        return Some(version);
    }
    restore_shape(&mut record);
    let mut redacted: Version = serde_json::from_value(record).ok()?;
    // Where it lies and what it is are never redacted: a lens decides by them.
    redacted.content.scope.visibility = version.content.scope.visibility;
    redacted.content.governance = version.content.governance;
    redacted.content.consent = version.content.consent;
    redacted.content.seal = None;
    Some(redacted)
}

/// The same for a memory.
pub(crate) fn shown_memory(session: &Session, memory: Memory) -> Option<Memory> {
    let Memory { head, since, usage, legal_hold } = memory;
    shown(session, head).map(|head| Memory { head, since, usage, legal_hold })
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

//! Memory records in the archive's JSON, and back.

use serde_json::{Value, json};
use yore_domain::kind::Facet;
use yore_domain::memory::{Draft, Status, Version};
use yore_domain::provenance::ActorKind;
use yore_domain::{ConversationId, MemoryId, Timestamp};

use super::wire::{invalid, own_id};
use super::{entry_id, protect};
use crate::ids;
use crate::item::{Note, Standing};
use crate::json::{Look, Object};
use crate::{Result, time};

const TYPES: [(&str, Facet); 7] = [
    ("preference", Facet::Preference),
    ("fact", Facet::Fact),
    ("decision", Facet::Decision),
    ("summary", Facet::Summary),
    ("entity", Facet::Entity),
    ("instruction", Facet::Instruction),
    ("custom", Facet::Custom),
];

/// Returns a memory in the archive's form; `created` is when its first version was made.
#[must_use]
pub fn memory_json(version: &Version, created: Timestamp) -> Value {
    let content = &version.content;
    let created = first_made(version, created);
    let mut out = Object::new();
    let record = TYPES.iter().find(|(_, facet)| *facet == content.facet);
    out.insert("id".into(), json!(MemoryId::from_bytes(entry_id(version.memory.bytes()))));
    out.insert("record_type".into(), Value::from(record.map_or("custom", |(word, _)| word)));
    out.insert("content".into(), Value::from(content.body.text.as_str()));
    let mut talks: Vec<String> =
        content.provenance.messages.iter().map(|from| named(from.conversation)).collect();
    talks.dedup();
    if !talks.is_empty() {
        out.insert("source_conversations".into(), json!(talks));
    }
    out.insert("created_at".into(), Value::from(created.to_string()));
    let updated = version.time.created.max(created);
    out.insert("updated_at".into(), Value::from(updated.to_string()));
    if let Some(confidence) = content.lifecycle.confidence {
        out.insert("confidence".into(), Value::from(confidence));
    }
    if let Some(expires) = content.lifecycle.expires {
        out.insert("expires_at".into(), Value::from(expires.to_string()));
    }
    if let Some(platform) = &content.provenance.provider {
        out.insert("platform".into(), Value::from(platform.as_str()));
    }
    if !content.tags.is_empty() {
        out.insert("tags".into(), json!(content.tags));
    }
    out.insert("active".into(), Value::from(version.status.is_live()));
    protect::labels_out(&content.governance, &mut out);
    for (name, value) in content.foreign.get("omp").and_then(Value::as_object).into_iter().flatten()
    {
        out.entry(name.clone()).or_insert_with(|| value.clone());
    }
    // What the format has no place for. The seal stays behind: its statement is this server's own.
    let mut rest = json!(content);
    if let Some(rest) = rest.as_object_mut() {
        rest.remove("seal");
        rest.remove("tags");
        if let Some(body) = rest.get_mut("body").and_then(Value::as_object_mut) {
            body.insert("text".into(), Value::from(""));
        }
        let mut foreign = rest.remove("foreign").unwrap_or_default();
        if let Some(foreign) = foreign.as_object_mut().filter(|foreign| !foreign.is_empty()) {
            foreign.shift_remove("omp");
            if !foreign.is_empty() {
                rest.insert("foreign".into(), Value::Object(std::mem::take(foreign)));
            }
        }
        rest.insert("time".into(), json!(version.time));
        if version.status == Status::Candidate {
            rest.insert("status".into(), json!(version.status));
        }
        own_id(rest, version.memory.bytes(), version.memory.to_string());
    }
    out.insert("x_yore".into(), rest);
    Value::Object(out)
}

/// Returns a memory with all its versions, oldest first; nothing when there is none.
#[must_use]
pub fn history_json(versions: &[Version]) -> Option<Value> {
    let (first, last) = (versions.first()?, versions.last()?);
    let mut out = memory_json(last, first.time.created);
    // Where versions are missing the numbers close up, as they do when the memory comes back.
    let numbered = (1..).zip(versions);
    let chain: Vec<Version> =
        numbered.map(|(number, version)| Version { number, ..version.clone() }).collect();
    out["x_yore"] = json!({"versions": chain});
    Some(out)
}

/// A conversation as the archive names it.
fn named(conversation: ConversationId) -> String {
    ConversationId::from_bytes(entry_id(conversation.bytes())).to_string()
}

/// When the first version was made: what was restored remembers it of the archive.
pub(super) fn first_made(version: &Version, created: Timestamp) -> Timestamp {
    let omp = version.content.foreign.get("omp");
    let said = omp.and_then(|omp| omp.text("created_at")).and_then(time::text);
    said.map_or(created, |said| said.min(created))
}

/// Reads a memory.
pub fn memory_from(mut object: Object) -> Result<Note> {
    let native = match object.text("id") {
        Some(id) if !id.is_empty() && id.len() <= 256 => id.to_owned(),
        Some(_) | None => return Err(invalid("id", "must be a text of 1 to 256 bytes")),
    };
    let Some(text) = object.text("content").map(str::to_owned) else {
        return Err(invalid("content", "must be a text"));
    };
    let word = object.text("record_type").unwrap_or_default();
    let Some((_, facet)) = TYPES.iter().find(|(known, _)| *known == word) else {
        return Err(invalid("record_type", "is not one of the seven types"));
    };
    let Some(active) = object.get("active").and_then(Value::as_bool) else {
        return Err(invalid("active", "must be true or false"));
    };
    let times = ["created_at", "updated_at"].map(|name| object.text(name).and_then(time::text));
    let [Some(created), Some(_)] = times else {
        return Err(invalid("created_at", "and updated_at must be times"));
    };
    let mut rest = object.remove("x_yore").unwrap_or_default();
    if let Some(versions) = chain(&mut rest, &text) {
        let last = versions.last().cloned();
        if let Some(Version { memory: id, content, .. }) = last {
            let draft = Draft { content, ..Draft::text(String::new()) };
            return Ok(Note { id, draft, active, standing: Standing::Kept, versions });
        }
    }
    let kept = rest.as_object_mut().and_then(|rest| rest.remove("id"));
    let kept: Option<MemoryId> =
        kept.as_ref().and_then(Value::as_str).and_then(|id| id.parse().ok());
    let mut draft = restored(rest, &text).unwrap_or_else(|| {
        let mut draft = Draft::new(facet.kind(), text.clone());
        draft.content.facet = *facet;
        draft.content.provenance.actor_kind = ActorKind::Import;
        draft.content.provenance.method = "restored".to_owned();
        draft
    });
    let made = draft.time.created;
    draft.time.created = made.or(Some(created));
    let content = &mut draft.content;
    content.tags =
        object.list("tags").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    content.lifecycle.confidence = object.get("confidence").and_then(Value::as_f64);
    content.lifecycle.expires = object.text("expires_at").and_then(time::text);
    content.provenance.provider = object.text("platform").map(str::to_owned);
    for name in [
        "id",
        "content",
        "record_type",
        "active",
        "created_at",
        "updated_at",
        "tags",
        "confidence",
        "expires_at",
        "platform",
    ] {
        object.remove(name);
    }
    if !content.provenance.messages.is_empty() {
        object.remove("source_conversations");
    }
    object.retain(|_, value| !value.is_null());
    protect::labels_in(&mut object, &mut content.governance);
    if !object.is_empty() {
        content.foreign.insert("omp".to_owned(), Value::Object(object));
    }
    if made.is_some_and(|made| made != created) {
        let own = content.foreign.entry("omp".to_owned()).or_insert_with(|| json!({}));
        if let Value::Object(own) = own {
            own.insert("created_at".to_owned(), Value::from(created.to_string()));
        }
    }
    let platform = content.provenance.provider.as_deref().unwrap_or("omp");
    let id: MemoryId = kept.unwrap_or_else(|| ids::memory(platform, &[&native]));
    if kept.is_none() && id.to_string() != native {
        let own = content.foreign.entry("omp".to_owned()).or_insert_with(|| json!({}));
        own["x_native_id"] = Value::from(native);
    }
    Ok(Note { id, draft, active, standing: Standing::Kept, versions: Vec::new() })
}

/// The versions that this program wrote itself, if the last one says what the memory says.
fn chain(rest: &mut Value, text: &str) -> Option<Vec<Version>> {
    let versions = rest.as_object_mut()?.remove("versions")?;
    let versions: Vec<Version> = serde_json::from_value(versions).ok()?;
    let last = versions.last()?;
    let same = versions.iter().all(|version| version.memory == last.memory);
    (same && last.content.body.text == text).then_some(versions)
}

/// What this program wrote itself, with the text put back.
fn restored(mut rest: Value, text: &str) -> Option<Draft> {
    let object = rest.as_object_mut()?;
    object.get_mut("body")?.as_object_mut()?.insert("text".into(), Value::from(text));
    object.remove("seal");
    object.insert("tags".into(), json!([]));
    serde_json::from_value(rest).ok()
}

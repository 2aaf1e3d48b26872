//! Conversations, messages and memory records, and changes of them.

use serde_json::{Map, Value, json};
use yore_http::describe::defined;

use super::{count, flag, maybe_text, moment, open, text};
use crate::flags::RISKS;

pub(super) fn definitions() -> Map<String, Value> {
    let all = [
        ("OmpConversation", conversation()),
        ("OmpConversationHead", head()),
        ("OmpConversationPatch", conversation_patch()),
        ("OmpMessage", message()),
        ("OmpContentBlock", block()),
        ("OmpAttachment", attachment()),
        ("OmpMemory", memory()),
        ("OmpMemoryPatch", memory_patch()),
    ];
    all.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

/// An id as a client may write it; it comes back as a UUID.
fn any_id() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": 256 })
}

/// A time as a client may write it: one without a zone is taken as UTC.
fn any_time() -> Value {
    json!({ "type": "string", "description": "ISO 8601; it comes back in UTC" })
}

/// A list of texts, absent or null where there is none.
fn maybe_texts() -> Value {
    json!({ "type": ["array", "null"], "items": { "type": "string" } })
}

/// Adds the compliance members, which every document may have.
fn flagged(mut members: Value) -> Value {
    let maybe = json!({ "type": ["boolean", "null"] });
    for name in
        ["x_contains_phi", "x_contains_npi", "x_child_user", "x_human_review", "x_regulatory_hold"]
    {
        members[name] = maybe.clone();
    }
    let risks: Vec<Option<&str>> = RISKS.map(Some).into_iter().chain([None]).collect();
    members["x_risk_level"] = json!({ "enum": risks });
    members["x_parental_consent_id"] = json!({ "type": ["string", "null"], "minLength": 1 });
    members["x_retention_expires_at"] =
        json!({ "type": ["string", "null"], "format": "date-time" });
    members
}

/// What a conversation says of itself, with or without its messages.
fn about_conversation() -> Value {
    flagged(json!({
        "id": any_id(),
        "title": maybe_text(),
        "created_at": any_time(),
        "updated_at": any_time(),
        "platform": { "type": "string", "minLength": 1 },
        "model": maybe_text(),
        "message_count": count(),
        "tags": maybe_texts(),
        "summary": maybe_text(),
        "language": maybe_text(),
        "extensions": { "type": ["object", "null"] },
    }))
}

fn conversation() -> Value {
    let mut members = about_conversation();
    members["messages"] = json!({ "type": "array", "items": defined("OmpMessage") });
    open(&["id", "created_at", "updated_at", "platform", "messages"], &members)
}

fn head() -> Value {
    let mut head = open(
        &["id", "created_at", "updated_at", "platform", "message_count"],
        &about_conversation(),
    );
    head["not"] = json!({ "required": ["messages"] });
    head
}

/// What a merge patch may change; members of others begin with `x_`.
fn patch(members: Value) -> Value {
    json!({
        "type": "object",
        "properties": flagged(members),
        "patternProperties": { "^x_": {} },
        "additionalProperties": false,
    })
}

fn conversation_patch() -> Value {
    patch(json!({ "title": maybe_text(), "summary": maybe_text(), "tags": maybe_texts() }))
}

fn message() -> Value {
    let blocks = json!({ "type": "array", "items": defined("OmpContentBlock") });
    open(
        &["id", "role", "content", "timestamp"],
        &flagged(json!({
            "id": any_id(),
            "role": { "enum": ["user", "assistant", "system", "tool"] },
            "content": { "anyOf": [text(), blocks] },
            "timestamp": any_time(),
            "model": maybe_text(),
            "platform": maybe_text(),
            "attachments": {
                "type": ["array", "null"],
                "items": defined("OmpAttachment"),
            },
            "extensions": { "type": ["object", "null"] },
        })),
    )
}

/// A block of a kind that is not known has any members.
fn block() -> Value {
    let kinds: [(&str, &[&str]); 6] = [
        ("text", &["text"]),
        ("image", &["media_type", "data"]),
        ("document", &["media_type", "data", "filename"]),
        ("code", &["language", "text"]),
        ("tool_use", &["tool_name", "tool_input"]),
        ("tool_result", &["tool_name", "output"]),
    ];
    let rules: Vec<Value> = kinds
        .into_iter()
        .map(|(kind, required)| {
            let members: Map<String, Value> = required
                .iter()
                .map(|name| {
                    let kind = if *name == "tool_input" { "object" } else { "string" };
                    ((*name).to_owned(), json!({ "type": kind }))
                })
                .collect();
            json!({
                "if": { "required": ["type"], "properties": { "type": { "const": kind } } },
                "then": { "required": required, "properties": members },
            })
        })
        .collect();
    let mut block = open(&["type"], &json!({ "type": text() }));
    block["allOf"] = rules.into();
    block
}

fn attachment() -> Value {
    open(
        &["filename", "media_type", "data"],
        &json!({
            "filename": text(),
            "media_type": text(),
            "data": {
                "type": "string",
                "description": "Base64, an address, or nothing where the bytes are not here",
            },
            "size_bytes": { "type": ["integer", "null"], "minimum": 0 },
            "source": { "description": "user_upload or ai_generated" },
            "x_sha256": maybe_text(),
            "x_missing": { "type": ["boolean", "null"] },
        }),
    )
}

fn memory() -> Value {
    open(
        &["id", "record_type", "content", "created_at", "updated_at", "active"],
        &flagged(json!({
            "id": any_id(),
            "record_type": {
                "enum": [
                    "preference", "fact", "decision", "summary", "entity", "instruction", "custom",
                ],
            },
            "content": text(),
            "created_at": any_time(),
            "updated_at": any_time(),
            "active": flag(),
            "source_conversations": maybe_texts(),
            "platform": maybe_text(),
            "confidence": { "type": ["number", "null"] },
            "expires_at": maybe_text(),
            "supersedes": maybe_text(),
            "tags": maybe_texts(),
        })),
    )
}

fn memory_patch() -> Value {
    let expires = json!({ "anyOf": [moment(), { "type": "null" }] });
    patch(json!({
        "content": text(),
        "tags": maybe_texts(),
        "active": flag(),
        "expires_at": expires,
    }))
}

//! The three JSON Schemas of the specification, under the ids it gives them.

use serde_json::{Value, json};

const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The names of the schemas.
pub const NAMES: [&str; 3] = ["envelope", "delta", "manifest"];

/// Returns a schema by its name.
#[must_use]
pub fn named(name: &str) -> Option<Value> {
    match name {
        "envelope" => Some(envelope()),
        "delta" => Some(delta()),
        "manifest" => Some(manifest()),
        _ => None,
    }
}

/// Returns all of them, by name.
pub fn all() -> impl Iterator<Item = (String, Value)> {
    NAMES.into_iter().filter_map(|name| Some((name.to_owned(), named(name)?)))
}

fn envelope() -> Value {
    let uuid = json!({ "type": "string", "format": "uuid" });
    json!({
        "$schema": DRAFT,
        "$id": "https://uamp.dev/schemas/envelope-1.0.json",
        "type": "object",
        "required": ["id", "ts", "from", "to", "intent", "body", "sig"],
        "additionalProperties": false,
        "properties": {
            "id": uuid,
            "ts": { "type": "string", "format": "date-time" },
            "from": { "type": "string", "format": "uri" },
            "to": { "type": "array", "items": { "type": "string", "format": "uri" }, "minItems": 1 },
            "intent": { "enum": crate::Intent::ALL.map(crate::Intent::as_str) },
            "reply_to": uuid,
            "context": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["id", "hash"],
                    "properties": {
                        "id": uuid,
                        "hash": { "type": "string", "pattern": "^sha256:[0-9a-f]{64}$" },
                    },
                },
            },
            "stream_id": { "type": "string" },
            "delta_window": { "type": "integer", "minimum": 1, "default": 64 },
            "body": {
                "type": "object",
                "required": ["type", "content"],
                "properties": {
                    "type": { "type": "string" },
                    "content": { "type": "string" },
                    "encoding": { "type": "string", "default": "utf-8" },
                    "compression": { "type": "string", "default": "none" },
                },
            },
            "cap_token": { "type": "string" },
            "sig": { "type": "string" },
            "ext": { "type": "object", "additionalProperties": true },
        },
    })
}

fn delta() -> Value {
    json!({
        "$schema": DRAFT,
        "$id": "https://uamp.dev/schemas/delta-1.0.json",
        "type": "object",
        "required": ["delta_seq", "stream_id", "ts", "type"],
        "additionalProperties": false,
        "properties": {
            "delta_seq": { "type": "integer", "minimum": 0 },
            "stream_id": { "type": "string" },
            "ts": { "type": "string", "format": "date-time" },
            "type": { "enum": ["patch", "chunk", "progress", "done", "cancel", "error"] },
            "payload": { "type": "object" },
        },
    })
}

fn manifest() -> Value {
    json!({
        "$schema": DRAFT,
        "$id": "https://uamp.dev/schemas/manifest-1.0.json",
        "type": "object",
        "required": ["agent", "description", "intents", "body_types", "auth", "limits"],
        "additionalProperties": false,
        "properties": {
            "agent": { "type": "string", "pattern": "^uamp/1\\.[0-9]+$" },
            "description": { "type": "string" },
            "intents": { "type": "array", "items": { "type": "string" } },
            "body_types": { "type": "array", "items": { "type": "string" } },
            "auth": { "type": "array", "items": { "enum": ["oauth2", "mtls"] } },
            "limits": {
                "type": "object",
                "properties": {
                    "max_body_kb": { "type": "integer" },
                    "rate_lph": { "type": "integer" },
                },
                "additionalProperties": false,
            },
        },
    })
}

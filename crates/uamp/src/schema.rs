//! The three JSON Schemas of the specification, under the ids it gives them, and the bodies of the
//! routes for the description of the server.

use serde_json::{Map, Value, json};
use yore_http::describe::{Bodies, Form, defined};

/// The media type of messages, without its parameter.
const MEDIA_TYPE: &str = "application/uamp+json";
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

/// What stands in requests and answers, by the names under which [`bodies`] refers to it.
#[must_use]
pub fn definitions() -> Map<String, Value> {
    let text = json!({ "type": "string" });
    let jws = json!({
        "type": "object",
        "required": ["protected", "payload", "signature"],
        "properties": { "protected": text, "payload": text, "signature": text },
        "additionalProperties": false,
    });
    let card = json!({
        "type": "object",
        "required": ["protocolVersion", "name", "version", "supportedInterfaces", "skills"],
        "properties": {
            "protocolVersion": text, "name": text, "description": text, "version": text,
            "supportedInterfaces": { "type": "array", "items": { "type": "object" } },
            "capabilities": { "type": "object" },
            "skills": { "type": "array", "items": { "type": "object" } },
        },
    });
    let did = json!({
        "type": "object",
        "required": ["id", "verificationMethod"],
        "properties": {
            "id": text,
            "verificationMethod": { "type": "array", "items": { "type": "object" } },
        },
    });
    let own = [
        ("UampEnvelope", unnamed(envelope())),
        ("UampDelta", unnamed(delta())),
        ("UampManifest", unnamed(manifest())),
        ("UampSigned", jws),
        ("UampAgentCard", card),
        ("UampDidDocument", did),
    ];
    own.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

/// What a route takes and gives, by its method and its path; nothing for a route that has no
/// schema of this protocol.
#[must_use]
pub fn bodies(method: &str, path: &str) -> Option<Bodies> {
    let envelope = || Form { media_type: MEDIA_TYPE, schema: Some(defined("UampEnvelope")) };
    let (takes, gives) = match (method, path) {
        ("post", "/v1/messages") => (Some(envelope()), vec![(202, envelope()), (200, envelope())]),
        ("get", "/v1/stream/{id}") => (None, vec![(200, events("UampDelta"))]),
        ("get", "/uamp/1/inbox") => (None, vec![(200, events("UampEnvelope"))]),
        ("get", "/.well-known/agent-manifest.json") => (None, signed("application/manifest+jws")),
        ("get", "/.well-known/agent-hub.json") => (None, signed("application/hub+jws")),
        ("get", "/.well-known/agent-card.json") => {
            (None, vec![(200, Form::json(defined("UampAgentCard")))])
        }
        ("get", "/.well-known/did.json") => {
            let schema = Some(defined("UampDidDocument"));
            (None, vec![(200, Form { media_type: "application/did+json", schema })])
        }
        _ => return None,
    };
    Some(Bodies { takes, gives, refuses: Some(envelope()) })
}

/// A signed document: compact, or as JSON for those who ask for that.
fn signed(media_type: &'static str) -> Vec<(u16, Form)> {
    let compact = json!({ "type": "string" });
    vec![
        (200, Form { media_type, schema: Some(compact) }),
        (200, Form::json(defined("UampSigned"))),
    ]
}

/// Server-sent events whose data is JSON.
fn events(name: &str) -> Form {
    let schema = json!({
        "description": "Server-sent events; the data of each is JSON",
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": defined(name),
    });
    Form { media_type: "text/event-stream", schema: Some(schema) }
}

/// A schema as it may stand inside another document: without a name of its own.
fn unnamed(mut schema: Value) -> Value {
    if let Some(members) = schema.as_object_mut() {
        members.remove("$schema");
        members.remove("$id");
    }
    schema
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

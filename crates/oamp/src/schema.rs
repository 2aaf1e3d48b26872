//! The operations as carriers describe them.

use serde_json::{Value, json};
use yore_engine::dialect::{EffectHint, OperationSchema};

/// All operations, in the order in which they are listed.
pub(crate) fn operations() -> Vec<OperationSchema> {
    vec![
        OperationSchema {
            name: "list",
            title: "Search knowledge",
            summary: "Searches or lists what is known about the person, the best or newest first. \
                      Without a query everything is listed, a page at a time.",
            input: object(
                &[],
                json!({
                    "query": text("What to look for"),
                    "category": category(),
                    "sensitivity_class": list_of(sensitivity()),
                    "governance_label": list_of(json!({"type": "string"})),
                    "as_of": moment("As it was known then"),
                    "limit": json!({"type": "integer", "minimum": 1, "maximum": 200}),
                    "offset": json!({"type": "integer", "minimum": 0}),
                    "user_id": user(),
                }),
            ),
            output: answer("entries", list_of(open())),
            effect: EffectHint::Reads,
        },
        OperationSchema {
            name: "get",
            title: "Read an entry",
            summary: "Returns one knowledge entry by its id.",
            input: object(
                &["id"],
                json!({
                    "id": text("The entry's UUID"),
                    "as_of": moment("As it was then"),
                    "user_id": user(),
                }),
            ),
            output: answer("entry", open()),
            effect: EffectHint::Reads,
        },
        OperationSchema {
            name: "create",
            title: "Store an entry",
            summary: "Stores a knowledge entry with its source, and returns it.",
            input: object(&["entry"], json!({"entry": entry()})),
            output: answer("entry", open()),
            effect: EffectHint::Writes,
        },
        OperationSchema {
            name: "patch",
            title: "Adjust an entry",
            summary: "Changes confidence, tags or decay of an entry; nothing else can be changed.",
            input: object(
                &["id", "change"],
                json!({
                    "id": text("The entry's UUID"),
                    "change": json!({
                        "type": "object",
                        "properties": {
                            "confidence": share(),
                            "tags": list_of(json!({"type": "string"})),
                            "decay": open(),
                        },
                        "additionalProperties": false,
                    }),
                    "user_id": user(),
                }),
            ),
            output: answer("entry", open()),
            effect: EffectHint::WritesOnce,
        },
        OperationSchema {
            name: "delete",
            title: "Delete an entry",
            summary: "Removes an entry for good; it cannot be brought back.",
            input: object(&["id"], json!({"id": text("The entry's UUID"), "user_id": user()})),
            output: answer("deleted", json!({"type": "boolean"})),
            effect: EffectHint::Erases,
        },
        OperationSchema {
            name: "import",
            title: "Import a store",
            summary: "Takes in a knowledge store and accounts for every entry of it.",
            input: object(&["store"], json!({"store": open()})),
            output: open(),
            effect: EffectHint::WritesOnce,
        },
        OperationSchema {
            name: "user_model",
            title: "Read the user model",
            summary: "Returns how the person communicates, what they know and what they corrected.",
            input: object(&[], json!({"as_of": moment("As it was then"), "user_id": user()})),
            output: answer("user_model", open()),
            effect: EffectHint::Reads,
        },
        OperationSchema {
            name: "put_user_model",
            title: "Replace the user model",
            summary: "Replaces the user model by one with a higher model_version.",
            input: object(&["user_model"], json!({"user_model": open()})),
            output: answer("user_model", open()),
            effect: EffectHint::WritesOnce,
        },
        OperationSchema {
            name: "capabilities",
            title: "What the server can do",
            summary: "Returns which optional features of the protocol are supported.",
            input: object(&[], json!({})),
            output: open(),
            effect: EffectHint::Reads,
        },
    ]
}

fn object(required: &[&str], properties: Value) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// An answer with one member that is always there.
fn answer(name: &str, schema: Value) -> Value {
    json!({"type": "object", "properties": {name: schema}, "required": [name]})
}

fn entry() -> Value {
    json!({
        "type": "object",
        "properties": {
            "oamp_version": text("Such as 1.0.0, or 1.2.0 where governance is used"),
            "type": json!({"const": "knowledge_entry"}),
            "id": text("A UUID of version 4 that the caller makes up"),
            "user_id": user(),
            "category": category(),
            "content": text("What is known, in one statement"),
            "confidence": share(),
            "source": json!({
                "type": "object",
                "properties": {
                    "session_id": text("The session it comes from"),
                    "timestamp": moment("When it was said"),
                    "agent_id": text("The agent that heard it"),
                },
                "required": ["session_id", "timestamp"],
                "additionalProperties": false,
            }),
            "provenance": open(),
            "governance": json!({
                "type": "object",
                "properties": {
                    "sensitivity_class": sensitivity(),
                    "labels": list_of(json!({"type": "string"})),
                    "handling": open(),
                },
                "required": ["sensitivity_class"],
                "additionalProperties": false,
            }),
            "decay": open(),
            "tags": list_of(json!({"type": "string"})),
            "metadata": open(),
        },
        "required": ["oamp_version", "type", "id", "category", "content", "confidence", "source"],
        "additionalProperties": false,
    })
}

fn open() -> Value {
    json!({"type": "object"})
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn moment(description: &str) -> Value {
    json!({"type": "string", "format": "date-time", "description": description})
}

fn user() -> Value {
    text("Whose knowledge; may be left out where the credential has one person only")
}

fn share() -> Value {
    json!({"type": "number", "minimum": 0, "maximum": 1})
}

fn category() -> Value {
    json!({"enum": ["fact", "preference", "pattern", "correction"]})
}

fn sensitivity() -> Value {
    json!({"enum": ["public", "internal", "confidential", "restricted"]})
}

fn list_of(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

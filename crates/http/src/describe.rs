//! What a route takes and gives, as a protocol says it for the description of the server.

use serde_json::Value;

/// What a route takes and gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bodies {
    /// The body of a request, where one has any.
    pub takes: Option<Form>,
    /// The answers that are no refusals, by their status.
    pub gives: Vec<(u16, Form)>,
    /// The form of every refusal.
    pub refuses: Option<Form>,
}

/// One form of a body.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// Its media type.
    pub media_type: &'static str,
    /// What stands in it, as a JSON Schema; `None` for bytes.
    pub schema: Option<Value>,
}

impl Form {
    /// A body of JSON.
    #[must_use]
    pub const fn json(schema: Value) -> Self {
        Self { media_type: "application/json", schema: Some(schema) }
    }
}

/// A reference to a definition that all routes of the description share.
#[must_use]
pub fn defined(name: &str) -> Value {
    serde_json::json!({ "$ref": format!("#/components/schemas/{name}") })
}

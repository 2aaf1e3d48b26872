//! What this server says it can do.

use serde_json::{Value, json};

use crate::Ump;
use crate::wire::{KINDS, Wire};

/// The most results of one recall.
pub(crate) const MAX_RECALL: usize = 50;
/// The results of a recall that does not say how many.
pub(crate) const DEFAULT_RECALL: usize = 8;
/// The level that is claimed.
const LEVEL: &str = "L3";
const BINDINGS: [&str; 3] = ["mcp", "http", "file"];
/// The protocol's own names first, then ours.
pub(crate) const SIGNALS: [&str; 8] = [
    "similarity",
    "scope_match",
    "recency",
    "salience",
    "provenance_depth",
    "lexical",
    "feedback",
    "weight",
];

/// A published file that the well-known document lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Where it lies.
    pub url: String,
    /// Its form: `ump.json`, `ump.md` or `ndjson`.
    pub format: String,
}

impl Ump {
    /// Describes the server. Nothing of a vault is looked at.
    #[must_use]
    pub fn capabilities(&self, wire: Wire) -> Value {
        json!({
            "server": {"name": "yore", "version": env!("CARGO_PKG_VERSION")},
            "ump": wire.as_str(),
            "conformance": LEVEL,
            "kinds": KINDS.map(|kind| kind.as_str()),
            "bindings": BINDINGS,
            "retrieval_signals": SIGNALS,
            "max_recall": MAX_RECALL,
            "writable": true,
            "audit": true,
        })
    }

    /// The document at `/.well-known/ump.json`.
    #[must_use]
    pub fn well_known(&self, wire: Wire) -> Value {
        let mut document = json!({
            "ump": wire.as_str(),
            "conformance": LEVEL,
            "bindings": BINDINGS,
            "kinds": KINDS.map(|kind| kind.as_str()),
            "retrieval_signals": SIGNALS,
        });
        if let Some(endpoint) = &self.options.endpoint {
            document["endpoint"] = endpoint.as_str().into();
        }
        if !self.options.exports.is_empty() {
            document["exports"] = self
                .options
                .exports
                .iter()
                .map(|export| json!({"url": export.url, "format": export.format}))
                .collect();
        }
        if let Some(owner) = &self.options.owner {
            document["owner"] = owner.as_str().into();
        }
        document
    }
}

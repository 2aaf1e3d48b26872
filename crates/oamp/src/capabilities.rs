//! What this server can do, said from what it does.

use serde_json::{Value, json};
use yore_domain::class::Sensitivity;

use crate::accept::ENVELOPE;
use crate::stream::{EVENTS, FILTERS, SUBPROTOCOL};
use crate::{Oamp, VERSION};

/// The labels on top that mean the same to every vendor.
const RESERVED: [&str; 10] = [
    "identity",
    "location",
    "health",
    "finance",
    "relationships",
    "work",
    "preferences",
    "creative",
    "beliefs",
    "behaviour",
];

impl Oamp {
    /// Returns the document.
    pub(crate) fn capabilities(&self) -> Value {
        let shared = self.engine.settings().shared_secret.is_some();
        let algorithms: &[&str] =
            if shared { &["EdDSA", "ES256", "HS256"] } else { &["EdDSA", "ES256"] };
        json!({
            "oamp_version": VERSION,
            "capabilities": {
                "streaming": {
                    "supported": true,
                    "subprotocol": SUBPROTOCOL,
                    "endpoint": "/v1/stream",
                    "event_types": EVENTS,
                    "filter_keys": FILTERS,
                },
                "as_of": {
                    "supported": true,
                    "endpoints": [
                        "/v1/knowledge",
                        "/v1/knowledge/{id}",
                        "/v1/user-model/{user_id}",
                    ],
                    "min_resolution_ms": 1,
                },
                "governance": {
                    "supported": true,
                    "sensitivity_classes": Sensitivity::ALL.map(Sensitivity::as_str),
                    "labels_supported": true,
                    "extended_provenance_supported": true,
                    "withheld_stub_support": false,
                    "enforcement": {
                        "supported": true,
                        "spec_version": VERSION,
                        "label_hierarchy": "dotted-prefix",
                        "reserved_top_level_labels": RESERVED,
                        "grant_transport": ["jwt-claims", "oamp-grant-header"],
                        "existence_hiding": true,
                        "stream_filtering": true,
                        "export_full_supported": false,
                    },
                },
                "user_id_format": {
                    "description": "opaque text of 1 to 256 bytes; on a server with one owner \
                                    it is 'owner' or the vault's DID",
                },
                "id_preservation": "preserved",
                "content_types": ["application/json", ENVELOPE],
                "auth_schemes": ["Bearer", "OAMP-Grant"],
                "metadata": {
                    "server": concat!("yore/", env!("CARGO_PKG_VERSION")),
                    "grant_algorithms": algorithms,
                },
            },
        })
    }
}

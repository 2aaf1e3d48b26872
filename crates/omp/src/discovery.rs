//! What this server does, said from what it does.

use serde_json::{Value, json};
use yore_domain::query::Effort;

use crate::{Omp, VERSION};

impl Omp {
    /// Returns the well-known document. A level is claimed only when all of it runs.
    pub(crate) fn discovery(&self) -> Value {
        let mut capabilities = vec!["search", "realtime_sync"];
        if self.options.spool.is_some() {
            capabilities.extend(["backup", "restore"]);
        }
        if self.engine.settings().effort == Effort::Balanced {
            capabilities.push("semantic_search");
        }
        let mut document = json!({
            "omp_version": VERSION,
            "implementation": {"name": "yore", "version": env!("CARGO_PKG_VERSION")},
            "capabilities": capabilities,
            "connectors": [],
            "compliance_profiles": [],
        });
        if self.options.spool.is_some() && !self.options.clear_text {
            document["conformance_level"] = "portable".into();
        }
        document
    }
}

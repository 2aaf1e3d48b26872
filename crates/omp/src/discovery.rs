//! What this server does, said from what it does.

use serde_json::{Value, json};
use yore_domain::query::Effort;
use yore_engine::Gate;

use crate::{Omp, Profile, VERSION};

impl Omp {
    /// Returns the well-known document. A level is claimed only when all of it runs.
    pub(crate) fn discovery(&self) -> Value {
        let mut capabilities = vec!["search", "realtime_sync", "connectors"];
        if self.options.spool.is_some() {
            capabilities.extend(["backup", "restore", "auto_backup"]);
        }
        if self.engine.settings().effort == Effort::Balanced {
            capabilities.push("semantic_search");
        }
        let mut document = json!({
            "omp_version": VERSION,
            "implementation": {"name": "yore", "version": env!("CARGO_PKG_VERSION")},
            "capabilities": capabilities,
            "connectors": connectors(),
            "compliance_profiles": self.profiles(),
            "baa_available": self.options.baa_available,
            "data_residency_regions": self.options.regions,
        });
        if self.options.spool.is_some() && !self.options.clear_text {
            // The enterprise level asks for declared laws; who declares none is at the one below.
            let laws = self.profiles();
            let level = if laws.is_empty() { "connected" } else { "enterprise" };
            document["conformance_level"] = level.into();
        }
        document
    }

    /// The laws that are heeded. Of those that the operator declares, the one about children counts
    /// only where the age gate is closed.
    fn profiles(&self) -> Vec<Profile> {
        let gated = self.engine.settings().gate == Gate::Closed;
        let heeded = |profile: &Profile| *profile != Profile::Coppa || gated;
        self.options.profiles.iter().copied().filter(heeded).collect()
    }
}

/// The platforms whose exports are read, in the app and on the command line.
fn connectors() -> Vec<&'static str> {
    let mut names: Vec<&str> =
        yore_archive::connectors::all().iter().map(|connector| connector.platform()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

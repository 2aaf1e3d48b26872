//! The bill of materials, in CycloneDX 1.5.
//!
//! It says nothing of the moment or the machine, so the same lock file gives the same bytes.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::graph::{Graph, Part};

/// Writes what a program is made of.
pub(super) fn document(graph: &Graph, checksums: &BTreeMap<(String, String), String>) -> Value {
    let own = |part: &&Part| part.name == "yore";
    let components: Vec<Value> = graph
        .parts
        .iter()
        .filter(|part| !own(part))
        .map(|part| component(part, checksums))
        .collect();
    let dependencies: Vec<Value> = graph
        .parts
        .iter()
        .map(|part| {
            let used = part
                .uses
                .iter()
                .filter_map(|id| graph.parts.iter().find(|other| other.id == *id).map(reference));
            json!({"ref": reference(part), "dependsOn": used.collect::<Vec<_>>()})
        })
        .collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "tools": {"components": [{"type": "application", "name": "cargo xtask sbom"}]},
            "component": graph.parts.iter().find(own).map(|part| component(part, checksums)),
        },
        "components": components,
        "dependencies": dependencies,
    })
}

fn component(part: &Part, checksums: &BTreeMap<(String, String), String>) -> Value {
    let mut component = json!({
        "type": if part.name == "yore" { "application" } else { "library" },
        "bom-ref": reference(part),
        "name": part.name,
        "version": part.version,
        "purl": reference(part),
    });
    if !part.licence.is_empty() {
        // The old way to write a choice is no expression.
        let expression = part.licence.replace(" / ", " OR ").replace('/', " OR ");
        component["licenses"] = json!([{"expression": expression}]);
    }
    if let Some(sum) = checksums.get(&(part.name.clone(), part.version.clone())) {
        component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
    }
    component
}

fn reference(part: &Part) -> String {
    format!("pkg:cargo/{}@{}", part.name, part.version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_its_name_its_terms_and_its_checksum() {
        let part = |name: &str, licence: &str, uses: &[&str]| Part {
            id: name.to_owned(),
            name: name.to_owned(),
            version: "1.2.3".to_owned(),
            licence: licence.to_owned(),
            source: None,
            uses: uses.iter().map(|id| (*id).to_owned()).collect(),
        };
        let parts =
            vec![part("serde", "MIT/Apache-2.0", &[]), part("yore", "Apache-2.0", &["serde"])];
        let sums = BTreeMap::from([(("serde".to_owned(), "1.2.3".to_owned()), "ab".to_owned())]);
        let found = document(&Graph { parts }, &sums);
        assert_eq!(found["metadata"]["component"]["purl"], "pkg:cargo/yore@1.2.3");
        assert_eq!(found["components"].as_array().unwrap().len(), 1);
        let serde = &found["components"][0];
        assert_eq!(serde["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(serde["hashes"][0]["content"], "ab");
        assert_eq!(found["dependencies"][1]["dependsOn"][0], "pkg:cargo/serde@1.2.3");
    }
}

//! What a program is made of: its crates and which uses which.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::Value;

/// One crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) version: String,
    /// As it states it; empty when it states none.
    pub(super) licence: String,
    /// Where it comes from; nothing for our own.
    pub(super) source: Option<String>,
    /// The crates it uses, by id.
    pub(super) uses: Vec<String>,
}

/// All crates of a program, by name and version.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) parts: Vec<Part>,
}

impl Graph {
    /// Follows from one package what is linked or run to build it; tests count for nothing.
    pub(super) fn of(metadata: &Value, package: &str) -> Result<Self> {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let nodes: BTreeMap<String, Vec<String>> = list(&metadata["resolve"]["nodes"])
            .iter()
            .map(|node| {
                let linked = |used: &Value| {
                    list(&used["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev")
                };
                let used = list(&node["deps"]);
                let used = used.iter().filter(|used| linked(used)).map(|used| text(&used["pkg"]));
                (text(&node["id"]), used.collect())
            })
            .collect();
        let packages = list(&metadata["packages"]);
        let first = packages.iter().find(|one| one["name"] == package);
        let first = text(&first.with_context(|| format!("there is no package {package}"))?["id"]);
        let (mut reached, mut next) = (BTreeSet::new(), vec![first]);
        while let Some(id) = next.pop() {
            if reached.insert(id.clone()) {
                next.extend(nodes.get(&id).cloned().unwrap_or_default());
            }
        }
        let mut parts: Vec<Part> = packages
            .iter()
            .filter(|one| reached.contains(one["id"].as_str().unwrap_or_default()))
            .map(|one| {
                let id = text(&one["id"]);
                let mut uses = nodes.get(&id).cloned().unwrap_or_default();
                uses.sort();
                Part {
                    uses,
                    id,
                    name: text(&one["name"]),
                    version: text(&one["version"]),
                    licence: text(&one["license"]),
                    source: one["source"].as_str().map(str::to_owned),
                }
            })
            .collect();
        parts.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
        Ok(Self { parts })
    }
}

/// The checksums of a lock file, by name and version.
pub(super) fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut found = BTreeMap::new();
    let (mut name, mut version) = (String::new(), String::new());
    for line in lock.lines() {
        let value = |prefix: &str| {
            line.strip_prefix(prefix).map(|rest| rest.trim_matches(['"', ' ']).to_owned())
        };
        if let Some(found) = value("name = ") {
            name = found;
        } else if let Some(found) = value("version = ") {
            version = found;
        } else if let Some(sum) = value("checksum = ") {
            found.insert((name.clone(), version.clone()), sum);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_only_tests_use_is_not_part_of_it() {
        let package = |name: &str| json!({"id": name, "name": name, "version": "1.0.0"});
        let used = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [package("yore"), package("linked"), package("built"), package("tested")],
            "resolve": {"nodes": [
                {"id": "yore", "deps": [used("linked", Value::Null), used("tested", json!("dev"))]},
                {"id": "linked", "deps": [used("built", json!("build"))]},
                {"id": "tested", "deps": []},
            ]},
        });
        let graph = Graph::of(&metadata, "yore").unwrap();
        let names: Vec<&str> = graph.parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["built", "linked", "yore"]);
        assert!(Graph::of(&metadata, "other").is_err());
    }

    #[test]
    fn checksums_belong_to_a_name_and_a_version() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n\n\
                    [[package]]\nname = \"b\"\nversion = \"2.0.0\"\nchecksum = \"ff\"\n";
        let sums = checksums(lock);
        assert_eq!(sums.len(), 1);
        assert_eq!(sums[&("b".to_owned(), "2.0.0".to_owned())], "ff");
    }
}

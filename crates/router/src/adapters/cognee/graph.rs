//! What Cognee's graph says about which data are near each other.
//!
//! A document has chunks, a chunk has entities, and entities have relations. Two documents that
//! name one entity are one step apart, each relation between entities is one more. What sets and
//! types join is not related by that.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::super::{must, text};
use crate::error::{Error, Result};

/// Nodes that join everything.
const TOO_WIDE: [&str; 2] = ["NodeSet", "EntityType"];
/// From a document to its chunk and an entity, and from there to another chunk and its document,
/// are four edges and one step.
const EDGES_BESIDE_STEPS: u8 = 3;

/// The graph of a dataset.
#[derive(Debug, Default)]
pub(super) struct Graph {
    documents: BTreeSet<String>,
    edges: BTreeMap<String, Vec<String>>,
}

impl Graph {
    /// Reads the answer of the server.
    pub(super) fn read(answer: &Value) -> Result<Self> {
        let list = |name: &'static str| {
            let list = answer.get(name).and_then(Value::as_array);
            list.ok_or_else(|| Error::Garbage(format!("{name} is not a list")))
        };
        let mut graph = Self::default();
        let mut narrow = BTreeSet::new();
        for node in list("nodes")? {
            let (id, kind) = (must(node, "id")?, text(node, "type").unwrap_or_default());
            if TOO_WIDE.contains(&kind) {
                continue;
            }
            narrow.insert(id);
            if kind.ends_with("Document") {
                graph.documents.insert(id.to_owned());
            }
        }
        for edge in list("edges")? {
            let (from, to) = (must(edge, "source")?, must(edge, "target")?);
            if narrow.contains(from) && narrow.contains(to) {
                graph.edges.entry(from.to_owned()).or_default().push(to.to_owned());
                graph.edges.entry(to.to_owned()).or_default().push(from.to_owned());
            }
        }
        Ok(graph)
    }

    /// The documents near one, and how many steps away they are.
    pub(super) fn near(&self, document: &str, hops: u8) -> Vec<(&str, u8)> {
        let mut near = Vec::new();
        let mut seen = BTreeSet::from([document]);
        let mut edge = vec![document];
        for walked in 1..=hops.saturating_add(EDGES_BESIDE_STEPS) {
            let mut next = Vec::new();
            for from in edge {
                for to in self.edges.get(from).into_iter().flatten() {
                    if !seen.insert(to) {
                        continue;
                    }
                    next.push(to.as_str());
                    if self.documents.contains(to) {
                        near.push((to.as_str(), walked.saturating_sub(EDGES_BESIDE_STEPS).max(1)));
                    }
                }
            }
            edge = next;
        }
        near
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mw_085_a_shared_entity_is_one_step_and_a_set_is_none() {
        let node = |id: &str, kind: &str| json!({"id": id, "type": kind, "label": id});
        let edge = |from: &str, to: &str| json!({"source": from, "target": to, "label": "x"});
        let mut nodes = vec![node("set", "NodeSet"), node("type", "EntityType")];
        let mut edges = vec![edge("london", "england")];
        for (document, entity) in
            [("a", "london"), ("b", "london"), ("c", "england"), ("d", "mars")]
        {
            let chunk = format!("chunk-{document}");
            nodes.extend([node(document, "TextDocument"), node(&chunk, "DocumentChunk")]);
            nodes.push(node(entity, "Entity"));
            edges.extend([edge(&chunk, document), edge(&chunk, entity)]);
            edges.extend([edge(&chunk, "set"), edge(entity, "type")]);
        }
        let graph = Graph::read(&json!({"nodes": nodes, "edges": edges})).unwrap();
        assert_eq!(graph.near("a", 1), [("b", 1)]);
        assert_eq!(graph.near("a", 3), [("b", 1), ("c", 2)]);
        assert_eq!(graph.near("d", 3), []);
        assert_eq!(graph.near("unknown", 3), []);
        assert!(Graph::read(&json!({"nodes": []})).is_err());
    }
}

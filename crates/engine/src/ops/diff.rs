//! What approving a held operation would change, line by line.

use serde_json::{Map, Value};
use yore_domain::hold::DiffLine;
use yore_domain::memory::{Content, Memory};
use yore_domain::mutation::Mutation;

/// Compares what is with what would be. Members that stay the same are left out.
pub(crate) fn lines(
    targets: &[Memory],
    mutation: &Mutation,
    after: Option<&Content>,
) -> Vec<DiffLine> {
    match mutation {
        Mutation::Remember { draft, .. } => compare(None, Some(&draft.content)),
        Mutation::Revise { .. } | Mutation::Relabel { .. } | Mutation::Restore { .. } => {
            compare(targets.first().map(|target| &target.head.content), after)
        }
        Mutation::Forget { .. } | Mutation::Merge { .. } => targets
            .iter()
            .map(|target| DiffLine {
                field: format!("memory.{}", target.head.memory),
                before: Some(Value::String(target.head.content.body.text.clone())),
                after: None,
            })
            .collect(),
        // What an agent asks to read is not put before its eyes by the asking.
        Mutation::Disclose { .. } => Vec::new(),
    }
}

pub(super) fn compare(before: Option<&Content>, after: Option<&Content>) -> Vec<DiffLine> {
    let (before, after) = (flat(before), flat(after));
    let fields: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    fields
        .into_iter()
        .filter(|field| before.get(*field) != after.get(*field))
        .map(|field| DiffLine {
            field: field.clone(),
            before: before.get(field).cloned(),
            after: after.get(field).cloned(),
        })
        .collect()
}

fn flat(content: Option<&Content>) -> Map<String, Value> {
    let mut members = Map::new();
    let value = content.and_then(|content| serde_json::to_value(content).ok());
    if let Some(Value::Object(object)) = value {
        for (name, value) in object {
            descend(name, value, &mut members);
        }
    }
    members
}

fn descend(path: String, value: Value, into: &mut Map<String, Value>) {
    match value {
        Value::Null => {}
        Value::Object(object) => {
            for (name, inner) in object {
                descend(format!("{path}.{name}"), inner, into);
            }
        }
        leaf @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            into.insert(path, leaf);
        }
    }
}

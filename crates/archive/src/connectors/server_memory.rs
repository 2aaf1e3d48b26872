//! The knowledge graph of MCP's memory server: a line for each entity and each relation.

use std::collections::HashMap;

use serde_json::Value;
use yore_domain::kind::Facet;
use yore_domain::memory::Relation;

use super::memories::Found;
use crate::Result;
use crate::connector::{Connector, Sample, Sink, each_line};
use crate::json::Look;
use crate::source::{File, Source};

/// Reads graphs of MCP's memory server.
#[derive(Debug)]
pub(super) struct ServerMemory;

const PLATFORM: &str = "mcp-memory";

impl Connector for ServerMemory {
    fn platform(&self) -> &'static str {
        PLATFORM
    }

    fn recognise(&self, sample: &Sample<'_>) -> u8 {
        let shape = &sample.shape;
        let known = shape.has(1, "entityType") || shape.all(1, &["from", "to", "relationType"]);
        u8::from(shape.json && !shape.array && shape.has(1, "type") && known) * 88
    }

    fn read(&self, source: &Source, files: &[&File], sink: &mut Sink<'_>) -> Result<()> {
        for file in files {
            let done = graph(source, file, sink);
            sink.pass(file.path(), None, done)?;
        }
        Ok(())
    }
}

fn graph(source: &Source, file: &File, sink: &mut Sink<'_>) -> Result<()> {
    let (mut entities, mut broken) = (Vec::new(), Vec::new());
    let mut relations: HashMap<String, Vec<Relation>> = HashMap::new();
    each_line(source, file, |number, line| {
        match line {
            Some(line) if line.text("type") == Some("relation") => {
                if let (Some(from), Some(to), Some(kind)) =
                    (line.filled("from"), line.filled("to"), line.filled("relationType"))
                {
                    let target = format!("entity:{to}");
                    let relation = Relation { kind: kind.to_owned(), target };
                    relations.entry(from.to_owned()).or_default().push(relation);
                }
            }
            Some(line) => entities.push((number, line)),
            None => broken.push(number),
        }
        Ok(())
    })?;
    for number in broken {
        sink.skip(file.path(), Some(format!("line {number}")), "not a whole line of JSON")?;
    }
    for (number, entity) in entities {
        let Some(name) = entity.filled("name") else {
            sink.skip(file.path(), Some(format!("line {number}")), "an entity without a name")?;
            continue;
        };
        let kind = entity.filled("entityType").unwrap_or("entity");
        let mut links = relations.remove(name).unwrap_or_default();
        let observations = entity.list("observations").iter().filter_map(Value::as_str);
        // A relation alone is worth a memory of the entity it starts at.
        let texts: Vec<String> = observations.map(|said| format!("{name}: {said}")).collect();
        let texts = if texts.is_empty() { vec![format!("{name} ({kind})")] } else { texts };
        for text in texts {
            let found = Found {
                platform: PLATFORM,
                key: &["entity", name, &text],
                facet: Facet::Entity,
                text: &text,
                created: None,
                source: file.path(),
                native: Some(entity.clone()),
            };
            let mut note = found.note();
            note.draft.content.tags.push(kind.to_owned());
            note.draft.content.relations = std::mem::take(&mut links);
            sink.note(file.path(), note)?;
        }
    }
    Ok(())
}

//! mem0: what its `get_all` returns.

use serde_json::Value;
use yore_domain::kind::Facet;
use yore_domain::memory::Relation;

use super::memories::Found;
use crate::connector::{Connector, Sample, Sink, each_piece};
use crate::json::Look;
use crate::source::{File, Source};
use crate::{Error, Result, time};

/// Reads mem0's memories.
#[derive(Debug)]
pub(super) struct Mem0;

const PLATFORM: &str = "mem0";

impl Connector for Mem0 {
    fn platform(&self) -> &'static str {
        PLATFORM
    }

    fn recognise(&self, sample: &Sample<'_>) -> u8 {
        let shape = &sample.shape;
        let wrapped = shape.has(1, "results") && shape.all(2, &["memory", "hash"]);
        let bare = shape.array && shape.all(1, &["memory", "hash", "id"]);
        u8::from(shape.json && (wrapped || bare)) * 88
    }

    fn read(&self, source: &Source, files: &[&File], sink: &mut Sink<'_>) -> Result<()> {
        for file in files {
            each_piece(source, file, sink, |sink, key, value, _| match key {
                Some("results") | None => memory(file, sink, &value),
                Some("relations") => relation(file, sink, &value),
                Some(_) => Ok(()),
            })?;
        }
        Ok(())
    }
}

fn memory(file: &File, sink: &mut Sink<'_>, value: &Value) -> Result<()> {
    let (Some(id), Some(text)) = (value.filled("id"), value.filled("memory")) else {
        return Err(Error::form("it has no id or no text"));
    };
    let found = Found {
        platform: PLATFORM,
        key: &[id],
        facet: Facet::Fact,
        text,
        created: value.get("created_at").and_then(time::any),
        source: file.path(),
        native: Some(value.clone()),
    };
    let mut note = found.note();
    let content = &mut note.draft.content;
    let categories = value.list("categories").iter().filter_map(Value::as_str);
    content.tags = categories.map(str::to_owned).collect();
    content.lifecycle.expires = value.get("expiration_date").and_then(time::any);
    sink.note(file.path(), note)
}

/// An edge of the graph: an entity that is related to another.
fn relation(file: &File, sink: &mut Sink<'_>, value: &Value) -> Result<()> {
    let target = value.filled("target").or(value.filled("destination"));
    let (Some(from), Some(kind), Some(to)) =
        (value.filled("source"), value.filled("relationship"), target)
    else {
        return Err(Error::form("a relation without its ends"));
    };
    let text = format!("{from} {} {to}", kind.replace('_', " "));
    let found = Found {
        platform: PLATFORM,
        key: &["relation", from, kind, to],
        facet: Facet::Entity,
        text: &text,
        created: None,
        source: file.path(),
        native: Some(value.clone()),
    };
    let mut note = found.note();
    note.draft
        .content
        .relations
        .push(Relation { kind: kind.to_owned(), target: format!("entity:{to}") });
    sink.note(file.path(), note)
}

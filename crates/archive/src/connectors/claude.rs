//! Claude.ai data exports: batch zips, a zip per category, and single conversations as browser
//! extensions save them.

mod artifacts;
mod message;
mod others;

use std::collections::HashMap;

use serde_json::{Value, json};
use yore_domain::{ConversationId, Timestamp};

use crate::connector::{Around, Connector, Sample, Sink, each_unknown_piece};
use crate::json::{self, Look, Object};
use crate::source::{File, Source};
use crate::thread::{Leaf, Thread, Turn};
use crate::{Error, Result, time};

/// Reads Claude.ai exports.
#[derive(Debug)]
pub(super) struct Claude;

const PLATFORM: &str = "claude";
/// The parent of first messages, which is no message.
const ROOT: &str = "00000000-0000-4000-8000-000000000000";

impl Connector for Claude {
    fn platform(&self) -> &'static str {
        PLATFORM
    }

    fn recognise(&self, sample: &Sample<'_>) -> u8 {
        let shape = &sample.shape;
        if !shape.json || shape.lines {
            return 0;
        }
        if shape.has(1, "chat_messages") {
            return 95;
        }
        u8::from(others::knows(sample)) * 85
    }

    fn read(&self, source: &Source, files: &[&File], sink: &mut Sink<'_>) -> Result<()> {
        for name in ["users.json", "login_history.json"] {
            source.named(name).for_each(|file| sink.used(file));
        }
        let mut seen = HashMap::new();
        for file in files {
            let sample = file.sample().unwrap_or_default();
            let shape = crate::shape::Shape::of(&sample);
            if !shape.has(1, "chat_messages") {
                others::read(source, file, sink)?;
            } else if shape.array {
                let around = Around { platform: PLATFORM, beside: &[] };
                each_unknown_piece(source, file, Some(around), sink, |sink, _, value, mended| {
                    conversation(file, sink, &value, mended, &mut seen)
                })?;
            } else {
                let one = source.document(file).and_then(|bytes| json::parse(&bytes));
                let done = one.and_then(|(value, mended)| {
                    conversation(file, sink, &value, mended, &mut seen)
                });
                sink.pass(file.path(), None, done)?;
            }
        }
        Ok(())
    }
}

/// Reads a conversation. `seen` holds when each one was last changed: of two copies in two parts
/// of an export the newer one counts.
fn conversation(
    file: &File,
    sink: &mut Sink<'_>,
    native: &Value,
    mended: bool,
    seen: &mut HashMap<ConversationId, Option<Timestamp>>,
) -> Result<()> {
    let Some(object) = native.as_object() else { return Err(Error::form("not a conversation")) };
    let Some(key) = object.filled("uuid") else { return Err(Error::form("it has no uuid")) };
    let Some(messages) = object.get("chat_messages").and_then(Value::as_array) else {
        return sink.skip(file.path(), Some(key.to_owned()), "a stub without messages");
    };
    let mut thread = head(object, key);
    if mended {
        thread.extra.insert("mended_surrogates".into(), Value::from(true));
    }
    match seen.get(&thread.id()) {
        Some(known) if *known >= thread.updated => return Ok(()),
        Some(_) | None => seen.insert(thread.id(), thread.updated),
    };
    let branching = messages.iter().any(|message| message.get("parent_message_uuid").is_some());
    let mut order: Vec<usize> = (0..messages.len()).collect();
    if !branching {
        order.sort_by_key(|place| sent(&messages[*place]));
    }
    let mut artifacts = artifacts::Artifacts::default();
    for place in order {
        let native = &messages[place];
        let key = native.filled("uuid").map_or_else(|| format!("#{place}"), str::to_owned);
        let mut said = message::said(native, &mut thread, &mut artifacts);
        if said.model.is_none() && said.role == yore_domain::conversation::Role::Assistant {
            said.model = object.filled("model").map(str::to_owned);
        }
        let said = Some(said.from(native));
        let parent = if branching {
            let parent = native.filled("parent_message_uuid");
            parent.filter(|parent| *parent != ROOT).map(str::to_owned)
        } else {
            thread.turns.last().map(|turn| turn.key.clone())
        };
        thread.turns.push(Turn { key, parent, at: sent(native), said });
    }
    sink.talk(file.path(), thread.finish(Some(native)))
}

fn sent(message: &Value) -> Option<Timestamp> {
    message.get("created_at").and_then(time::any)
}

fn head(object: &Object, key: &str) -> Thread {
    let mut thread = Thread::new(PLATFORM, key);
    thread.leaf = Leaf::Newest;
    thread.title = object.filled("name").map(str::to_owned);
    thread.summary = object.filled("summary").map(str::to_owned);
    thread.created = object.get("created_at").and_then(time::any);
    thread.updated = object.get("updated_at").and_then(time::any);
    thread.current = object.filled("current_leaf_message_uuid").map(str::to_owned);
    thread.model = object.filled("model").map(str::to_owned);
    let project = object.inner("project").and_then(|project| project.text("uuid"));
    if let Some(id) = object.filled("project_uuid").or(project) {
        thread.context.push(json!({"type": "project", "id": id}));
    }
    thread
}

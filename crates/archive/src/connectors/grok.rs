//! Grok exports: a tree of responses under each conversation, assets by id.

use std::collections::HashMap;

use serde_json::{Value, json};
use yore_domain::conversation::Role;
use yore_domain::kind::Facet;

use super::memories::Found;
use crate::connector::{Connector, Sample, Sink, each_piece};
use crate::json::Look;
use crate::source::{File, Source};
use crate::thread::{Said, Thread, Turn};
use crate::{Error, Result, content, time};

/// Reads Grok exports.
#[derive(Debug)]
pub(super) struct Grok;

const PLATFORM: &str = "grok";

impl Connector for Grok {
    fn platform(&self) -> &'static str {
        PLATFORM
    }

    fn recognise(&self, sample: &Sample<'_>) -> u8 {
        let shape = &sample.shape;
        let known = !shape.array && shape.has(1, "conversations") && shape.has(2, "conversation");
        u8::from(shape.json && known) * 93
    }

    fn read(&self, source: &Source, files: &[&File], sink: &mut Sink<'_>) -> Result<()> {
        let mut assets = HashMap::new();
        for file in source.files() {
            if file.name().starts_with("prod-mc-") {
                sink.used(file);
            }
            if file.name() == "content"
                && let Some(id) = file.folder().rsplit('/').next()
            {
                assets.insert(id.to_owned(), file);
            }
        }
        for file in files {
            each_piece(source, file, sink, |sink, key, value, _| match key {
                Some("conversations") => conversation(source, file, sink, &value, &assets),
                Some("projects") => project(file, sink, &value),
                Some(_) | None => Ok(()),
            })?;
        }
        Ok(())
    }
}

fn conversation(
    source: &Source,
    file: &File,
    sink: &mut Sink<'_>,
    native: &Value,
    assets: &HashMap<String, &File>,
) -> Result<()> {
    let head = native.get("conversation").unwrap_or(&Value::Null);
    let Some(id) = head.filled("id").or(head.filled("_id")) else {
        return Err(Error::form("it has no id"));
    };
    let mut thread = Thread::new(PLATFORM, id);
    thread.title = head.filled("title").map(str::to_owned);
    thread.summary = head.filled("summary").map(str::to_owned);
    thread.created = head.get("create_time").and_then(time::any);
    thread.updated = head.get("modify_time").and_then(time::any);
    thread.current = head.filled("leaf_response_id").map(str::to_owned);
    for (place, outer) in native.list("responses").iter().enumerate() {
        let response = outer.get("response").filter(|inner| inner.is_object()).unwrap_or(outer);
        let key = response.filled("_id").or(response.filled("id"));
        let key = key.map_or_else(|| format!("#{place}"), str::to_owned);
        let mut said = said(response);
        for asset in response.list("file_attachments").iter().filter_map(Value::as_str) {
            let blob = assets.get(asset).and_then(|file| {
                sink.used(file);
                source.blob(file).ok()
            });
            said.attachments.push(thread.attach(asset, None, blob));
        }
        for url in response.list("generated_image_urls").iter().filter_map(Value::as_str) {
            let name = url.rsplit('/').next().unwrap_or(url);
            let mut made = thread.attach(name, None, None);
            made.foreign.insert(PLATFORM.into(), json!({"url": url}));
            said.attachments.push(made);
        }
        let parent = response.filled("parent_response_id").map(str::to_owned);
        let at = response.get("create_time").and_then(time::any);
        thread.turns.push(Turn { key, parent, at, said: Some(said.from(response)) });
    }
    sink.talk(file.path(), thread.finish(Some(native)))
}

fn said(response: &Value) -> Said {
    let human = response.text("sender").is_some_and(|who| who.eq_ignore_ascii_case("human"));
    let role = if human { Role::User } else { Role::Assistant };
    let mut blocks = Vec::new();
    blocks.extend(response.filled("thinking_trace").map(content::thinking));
    for trace in response.list("agent_thinking_traces") {
        blocks.extend(trace.as_str().or(trace.filled("text")).map(content::thinking));
    }
    blocks.extend(response.filled("message").map(content::text));
    let mut said = Said::new(role, content::content(blocks));
    if role == Role::Assistant {
        said = said.model(response.text("model"));
    }
    let cited = response.list("cited_web_search_results");
    if cited.is_empty() { said } else { said.flag("sources", cited.to_vec()) }
}

fn project(file: &File, sink: &mut Sink<'_>, project: &Value) -> Result<()> {
    let (Some(id), Some(text)) = (project.filled("id"), project.filled("custom_personality"))
    else {
        return Ok(());
    };
    let found = Found {
        platform: PLATFORM,
        key: &["project", id, text],
        facet: Facet::Instruction,
        text,
        created: None,
        source: file.path(),
        native: Some(project.clone()),
    };
    sink.note(file.path(), found.note())
}

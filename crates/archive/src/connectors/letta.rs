//! Letta agent files: the agent's messages and its memory blocks.

use serde_json::{Value, json};
use yore_domain::conversation::Role;
use yore_domain::kind::Facet;

use super::memories::Found;
use crate::connector::{Connector, Sample, Sink};
use crate::json::{self, Look};
use crate::source::{File, Source};
use crate::thread::{Said, Thread};
use crate::{Error, Result, content, time};

/// Reads Letta agent files.
#[derive(Debug)]
pub(super) struct Letta;

const PLATFORM: &str = "letta";

impl Connector for Letta {
    fn platform(&self) -> &'static str {
        PLATFORM
    }

    fn recognise(&self, sample: &Sample<'_>) -> u8 {
        let shape = &sample.shape;
        let new =
            shape.has(1, "agents") && (shape.has(2, "llm_config") || shape.has(2, "block_ids"));
        let old = shape.has(1, "core_memory") && shape.has(1, "messages");
        // Some files are a text that holds the file.
        let twice = sample.path().ends_with(".af") && sample.head.starts_with(b"\"{");
        u8::from(!shape.array && (new || old) || twice) * 90
    }

    fn read(&self, source: &Source, files: &[&File], sink: &mut Sink<'_>) -> Result<()> {
        for file in files {
            let done = agents(source, file, sink);
            sink.pass(file.path(), None, done)?;
        }
        Ok(())
    }
}

fn agents(source: &Source, file: &File, sink: &mut Sink<'_>) -> Result<()> {
    let bytes = source.document(file)?;
    let mut native = json::parse(&bytes)?.0;
    for _ in 0..2 {
        if let Some(inner) = native.as_str() {
            native = json::parse(inner.as_bytes())?.0;
        }
    }
    if !native.is_object() {
        return Err(Error::form("not an agent file"));
    }
    // Ids are local to the file.
    let digest = crate::source::hash(&bytes).to_string();
    let blocks = native.list("blocks").iter().chain(native.list("core_memory"));
    for (place, block) in blocks.enumerate() {
        let Some(text) = block.filled("value") else { continue };
        let label = block.filled("label").unwrap_or("block");
        let found = Found {
            platform: PLATFORM,
            key: &[&digest, "block", &place.to_string()],
            facet: if label == "persona" { Facet::Instruction } else { Facet::Fact },
            text,
            created: native.get("created_at").and_then(time::any),
            source: file.path(),
            native: Some(block.clone()),
        };
        let mut note = found.note();
        note.draft.content.tags.push(label.to_owned());
        sink.note(file.path(), note)?;
    }
    let listed = native.list("agents");
    let old = std::slice::from_ref(&native);
    let listed = if listed.is_empty() && native.get("messages").is_some() { old } else { listed };
    for (place, agent) in listed.iter().enumerate() {
        let id = agent.filled("id").map_or_else(|| format!("agent-{place}"), str::to_owned);
        let mut thread = Thread::new(PLATFORM, format!("{digest}:{id}"));
        thread.title = agent.filled("name").map(str::to_owned);
        thread.created = native.get("created_at").and_then(time::any);
        for (number, message) in agent.list("messages").iter().enumerate() {
            let key = message.filled("id").map_or_else(|| format!("#{number}"), str::to_owned);
            let at = message.get("created_at").and_then(time::any);
            thread.created = thread.created.min(at.or(thread.created));
            thread.follow(key, at, said(message).from(message));
        }
        sink.talk(file.path(), thread.finish(Some(agent)))?;
    }
    Ok(())
}

fn said(message: &Value) -> Said {
    let role = match message.text("role") {
        Some("assistant") => Role::Assistant,
        Some("user") => Role::User,
        Some("tool") => Role::Tool,
        Some(_) | None => Role::System,
    };
    let mut blocks = Vec::new();
    blocks.extend(message.filled("content").or(message.filled("text")).map(content::text));
    for block in message.list("content") {
        match block.text("type") {
            Some("reasoning") => blocks.extend(block.filled("reasoning").map(content::thinking)),
            Some(_) | None => blocks.extend(block.filled("text").map(content::text)),
        }
    }
    if role == Role::Tool {
        let name = message.filled("name").unwrap_or("tool");
        let texts: Vec<&str> = blocks.iter().filter_map(|block| block.text("text")).collect();
        blocks = vec![content::tool_result(name, &Value::from(texts.join("\n")))];
    }
    for call in message.list("tool_calls") {
        let function = call.get("function").unwrap_or(call);
        let name = function.filled("name").unwrap_or("tool");
        let made = content::tool_use_text(name, function.text("arguments").unwrap_or("{}"));
        blocks.push(content::with(made, "x_id", json!(call.get("id"))));
    }
    let spoke = role == Role::Assistant;
    Said::new(role, content::content(blocks)).model(message.text("model").filter(|_| spoke))
}

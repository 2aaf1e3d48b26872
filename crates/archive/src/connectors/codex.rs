//! Codex CLI sessions, plain or packed by zstd. `event_msg` lines repeat what `response_item`
//! lines say, so only the latter are messages.

use std::collections::HashMap;

use serde_json::{Value, json};
use yore_domain::Timestamp;
use yore_domain::conversation::Role;

use crate::connector::{Connector, Sample, Sink, each_line};
use crate::json::Look;
use crate::source::{File, Source};
use crate::thread::{Said, Thread};
use crate::{Result, content, time};

/// Reads Codex CLI sessions.
#[derive(Debug)]
pub(super) struct Codex;

const PLATFORM: &str = "codex";
/// How texts begin that the program adds to what the person says.
const INJECTED: [&str; 5] = [
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "# AGENTS.md instructions",
    "<turn_aborted>",
];

impl Connector for Codex {
    fn platform(&self) -> &'static str {
        PLATFORM
    }

    fn recognise(&self, sample: &Sample<'_>) -> u8 {
        let shape = &sample.shape;
        if !shape.json || shape.array {
            return 0;
        }
        if shape.all(1, &["timestamp", "type", "payload"]) {
            return 92;
        }
        // The oldest form has bare items.
        let old = sample.path().contains("rollout-") && shape.all(1, &["role", "content", "type"]);
        u8::from(old) * 80
    }

    fn read(&self, source: &Source, files: &[&File], sink: &mut Sink<'_>) -> Result<()> {
        let mut titles = HashMap::new();
        for file in source.named("session_index.jsonl") {
            sink.used(file);
            let read = each_line(source, file, |_, line| {
                let line = line.unwrap_or_default();
                if let (Some(id), Some(name)) = (line.filled("id"), line.filled("thread_name")) {
                    titles.insert(id.to_owned(), name.to_owned());
                }
                Ok(())
            });
            sink.pass(file.path(), None, read)?;
        }
        source.named("history.jsonl").for_each(|file| sink.used(file));
        for file in files {
            let done = session(source, file, sink, &titles);
            sink.pass(file.path(), None, done)?;
        }
        Ok(())
    }
}

fn session(
    source: &Source,
    file: &File,
    sink: &mut Sink<'_>,
    titles: &HashMap<String, String>,
) -> Result<()> {
    let (mut items, mut events, mut broken) = (Vec::new(), Vec::new(), Vec::new());
    each_line(source, file, |number, line| {
        match line {
            None => broken.push(number),
            Some(line) if line.text("type") == Some("response_item") => items.push(line),
            Some(line) if line.get("payload").is_none() && line.get("type").is_some() => {
                items.push(json!({"payload": line}));
            }
            Some(line) => events.push(line),
        }
        Ok(())
    })?;
    for number in broken {
        sink.skip(file.path(), Some(format!("line {number}")), "not a whole line of JSON")?;
    }
    let payload = |kind: &str| {
        let found = events.iter().find(|event| event.text("type") == Some(kind));
        found.and_then(|event| event.get("payload")).cloned().unwrap_or_default()
    };
    let meta = payload("session_meta");
    let stem = file.name().split('.').next().unwrap_or_default();
    let tail = stem.get(stem.len().saturating_sub(36)..).unwrap_or(stem);
    let key = meta.filled("id").unwrap_or(tail).to_owned();
    let mut thread = Thread::new(PLATFORM, key);
    thread.title = titles.get(&thread.key).cloned();
    thread.created = meta.get("timestamp").and_then(time::any);
    if let Some(folder) = meta.filled("cwd") {
        let url = meta.get("git").and_then(|git| git.get("repository_url"));
        thread.context.push(json!({"type": "repo", "id": folder, "url": url}));
    }
    let model = payload("turn_context").filled("model").map(str::to_owned);
    let mut names: HashMap<String, String> = HashMap::new();
    for (place, item) in items.iter().enumerate() {
        let payload = item.get("payload").unwrap_or(&Value::Null);
        let at: Option<Timestamp> = item.get("timestamp").and_then(time::any);
        let mut said = said(payload, &mut thread, &mut names);
        if said.role == Role::Assistant {
            said.model.clone_from(&model);
        }
        let key = payload.filled("id").map_or_else(|| format!("#{place}"), str::to_owned);
        thread.follow(key, at, said.from(item));
    }
    if thread.turns.is_empty() {
        return Ok(());
    }
    thread.events(events);
    sink.talk(file.path(), thread.finish(None))
}

fn said(item: &Value, thread: &mut Thread, names: &mut HashMap<String, String>) -> Said {
    let kind = item.text("type").unwrap_or_default();
    let call = item.filled("call_id").unwrap_or_default();
    let name = item.filled("name").unwrap_or(kind);
    match kind {
        "message" => message(item, thread),
        "reasoning" => {
            let parts = item.list("summary").iter().chain(item.list("content"));
            let blocks = parts.filter_map(|part| part.filled("text")).map(content::thinking);
            let blocks: Vec<Value> = blocks.collect();
            Said::new(Role::Assistant, Value::Array(blocks)).flag("reasoning", true)
        }
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
            let output = item.get("output").cloned().unwrap_or_default();
            let name = names.get(call).map_or("tool", String::as_str);
            let made = content::with(content::tool_result(name, &output), "x_id", call);
            Said::new(Role::Tool, json!([made]))
        }
        _ if kind.ends_with("_call") => {
            names.insert(call.to_owned(), name.to_owned());
            let arguments = item.text("arguments").or(item.text("input"));
            let made = match arguments {
                Some(text) => content::tool_use_text(name, text),
                None => content::tool_use(name, item.get("action").cloned().unwrap_or_default()),
            };
            Said::new(Role::Assistant, json!([content::with(made, "x_id", call)]))
        }
        // What is not known yet is kept native.
        _ => Said::new(Role::System, Value::from("")).flag("kind", kind),
    }
}

fn message(item: &Value, thread: &mut Thread) -> Said {
    let (mut blocks, mut attachments) = (Vec::new(), Vec::new());
    blocks.extend(item.filled("content").map(content::text));
    for part in item.list("content") {
        match part.filled("image_url") {
            Some(url) if url.starts_with("data:") => {
                attachments.push(thread.attach_base64("image.png", None, url));
            }
            Some(url) => attachments.push(thread.attach(url, None, None)),
            None => blocks.extend(part.filled("text").map(content::text)),
        }
    }
    let injected = blocks
        .first()
        .and_then(|block| block.text("text"))
        .is_some_and(|text| INJECTED.iter().any(|begin| text.trim_start().starts_with(begin)));
    let role = match item.text("role") {
        Some("assistant") => Role::Assistant,
        Some("user") if !injected => Role::User,
        Some(_) | None => Role::System,
    };
    let mut said = Said::new(role, content::content(blocks));
    said.attachments = attachments;
    if role == Role::System { said.flag("injected", true) } else { said }
}

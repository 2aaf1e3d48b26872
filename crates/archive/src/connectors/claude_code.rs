//! Claude Code sessions: one line a message, a tree by parent, sub-agents in files of their own.

use serde_json::{Value, json};
use yore_domain::conversation::Role;

use crate::connector::{Connector, Sample, Sink, each_line};
use crate::json::Look;
use crate::source::{File, Source};
use crate::thread::{Said, Thread, Turn};
use crate::{Result, content, time};

/// Reads Claude Code sessions.
#[derive(Debug)]
pub(super) struct ClaudeCode;

const PLATFORM: &str = "claude-code";

impl Connector for ClaudeCode {
    fn platform(&self) -> &'static str {
        PLATFORM
    }

    fn recognise(&self, sample: &Sample<'_>) -> u8 {
        let shape = &sample.shape;
        if !shape.json || shape.array {
            return 0;
        }
        if shape.has(1, "parentUuid") && shape.has(1, "sessionId") {
            return 92;
        }
        u8::from(shape.all(1, &["display", "pastedContents", "project"])) * 80
    }

    fn read(&self, source: &Source, files: &[&File], sink: &mut Sink<'_>) -> Result<()> {
        for file in files {
            let done = session(source, file, sink);
            sink.pass(file.path(), None, done)?;
        }
        Ok(())
    }
}

fn session(source: &Source, file: &File, sink: &mut Sink<'_>) -> Result<()> {
    let (mut lines, mut broken, mut events) = (Vec::new(), Vec::new(), Vec::new());
    each_line(source, file, |number, line| {
        match line {
            Some(line) if line.get("display").is_some() => {}
            Some(line) if is_message(&line) => lines.push(line),
            Some(line) => events.push(line),
            None => broken.push(number),
        }
        Ok(())
    })?;
    for number in broken {
        sink.skip(file.path(), Some(format!("line {number}")), "not a whole line of JSON")?;
    }
    if lines.is_empty() {
        return Ok(());
    }
    let stem = file.name().split('.').next().unwrap_or_default();
    let first = &lines[0];
    let named = first.filled("sessionId").unwrap_or(stem);
    let agent = first.filled("agentId").filter(|_| first.flag("isSidechain"));
    let key = match agent {
        Some(agent) => format!("{named}:{agent}"),
        None if stem.len() == 36 => stem.to_owned(),
        None => named.to_owned(),
    };
    let mut thread = Thread::new(PLATFORM, key);
    if agent.is_some() {
        thread.extra.insert("sidechain_of".into(), Value::from(named));
        thread.tags.push("sidechain".into());
    }
    if let Some(folder) = first.filled("cwd") {
        thread.context.push(json!({"type": "repo", "id": folder, "name": first.get("gitBranch")}));
    }
    let titled = |name: &str| {
        let found = events.iter().rev().find_map(|event| event.filled(name));
        found.map(str::to_owned)
    };
    thread.title = titled("customTitle").or_else(|| titled("summary"));
    let mut counted = std::collections::HashSet::new();
    for (place, line) in lines.iter().enumerate() {
        let key = line.filled("uuid").map_or_else(|| format!("#{place}"), str::to_owned);
        let parent = line.filled("parentUuid").or(line.filled("logicalParentUuid"));
        let mut said = said(line, &mut thread);
        // One answer of the model spans several lines, and each repeats its usage.
        let message = line.get("message").unwrap_or(&Value::Null);
        if let (Some(id), Some(usage)) = (message.filled("id"), message.get("usage"))
            && counted.insert(id.to_owned())
        {
            said.omp.insert(
                "token_usage".into(),
                json!({
                    "prompt": usage.get("input_tokens"), "completion": usage.get("output_tokens"),
                    "x_cached": usage.get("cache_read_input_tokens"),
                }),
            );
        }
        let at = line.get("timestamp").and_then(time::any);
        let parent = parent.map(str::to_owned);
        thread.turns.push(Turn { key, parent, at, said: Some(said.from(line)) });
    }
    thread.events(events);
    sink.talk(file.path(), thread.finish(None))
}

fn is_message(line: &Value) -> bool {
    let kind = line.text("type").unwrap_or_default();
    matches!(kind, "user" | "assistant" | "system") && line.get("uuid").is_some()
}

fn said(line: &Value, thread: &mut Thread) -> Said {
    let message = line.get("message").unwrap_or(line);
    let mut blocks = Vec::new();
    let mut attachments = Vec::new();
    let mut results = 0;
    match message.text("content") {
        Some(text) => blocks.extend((!text.is_empty()).then(|| content::text(text))),
        None => {
            for block in message.list("content") {
                results += usize::from(block.text("type") == Some("tool_result"));
                super::anthropic::add(block, thread, &mut blocks, &mut attachments);
            }
        }
    }
    let role = match line.text("type") {
        Some("assistant") => Role::Assistant,
        Some("user") if results > 0 => Role::Tool,
        Some("user") => Role::User,
        Some(_) | None => Role::System,
    };
    let mut said = Said::new(role, content::content(blocks)).model(message.text("model"));
    said.attachments = attachments;
    for (name, flag) in
        [("isMeta", "meta"), ("isCompactSummary", "compact_summary"), ("isSidechain", "sidechain")]
    {
        if line.flag(name) {
            said = said.flag(flag, true);
        }
    }
    said
}

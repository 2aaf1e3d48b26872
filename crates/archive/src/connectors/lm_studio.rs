//! LM Studio's conversations: every message has versions, one of which is selected.

use serde_json::{Value, json};
use yore_domain::Timestamp;
use yore_domain::conversation::Role;

use crate::connector::{Connector, Sample, Sink};
use crate::json::{self, Look};
use crate::source::{File, Source};
use crate::thread::{Said, Thread, Turn};
use crate::{Result, content, time};

/// Reads LM Studio's conversations.
#[derive(Debug)]
pub(super) struct LmStudio;

const PLATFORM: &str = "lm-studio";

impl Connector for LmStudio {
    fn platform(&self) -> &'static str {
        PLATFORM
    }

    fn recognise(&self, sample: &Sample<'_>) -> u8 {
        let shape = &sample.shape;
        let versions = shape.has(1, "messages") && shape.has(2, "versions");
        let empty = sample.path().ends_with(".conversation.json") && shape.has(1, "messages");
        u8::from(shape.json && !shape.array && (versions || empty)) * 90
    }

    fn read(&self, source: &Source, files: &[&File], sink: &mut Sink<'_>) -> Result<()> {
        for file in files {
            let done = conversation(source, file, sink);
            sink.pass(file.path(), None, done)?;
        }
        Ok(())
    }
}

fn conversation(source: &Source, file: &File, sink: &mut Sink<'_>) -> Result<()> {
    let native = json::parse(&source.document(file)?)?.0;
    // The id is in the file's name only.
    let key = file.name().split('.').next().unwrap_or_default();
    let mut thread = Thread::new(PLATFORM, key);
    thread.title = native.filled("name").map(str::to_owned);
    thread.created = native.get("createdAt").and_then(time::any);
    let folder = file.folder().rsplit('/').next().unwrap_or_default();
    if !folder.is_empty() && folder != "conversations" {
        thread.context.push(json!({"type": "folder", "id": folder, "name": folder}));
    }
    let fields = native.pointer("/perChatPredictionConfig/fields").and_then(Value::as_array);
    let field = fields
        .into_iter()
        .flatten()
        .find(|field| field.text("key") == Some("llm.prediction.systemPrompt"));
    let system = native.filled("systemPrompt").or(field.and_then(|field| field.filled("value")));
    let mut before = None;
    if let Some(system) = system {
        thread.follow("system", thread.created, Said::new(Role::System, Value::from(system)));
        before = Some("system".to_owned());
    }
    for (place, message) in native.list("messages").iter().enumerate() {
        let chosen = message.get("currentlySelected").and_then(Value::as_u64).unwrap_or(0);
        let mut next = None;
        for (number, version) in message.list("versions").iter().enumerate() {
            let key = format!("{place}.{number}");
            if number as u64 == chosen || next.is_none() {
                next = Some(key.clone());
            }
            let (said, at) = said(source, sink, &mut thread, version);
            let parent = before.clone();
            thread.turns.push(Turn { key, parent, at, said: Some(said.from(version)) });
        }
        before = next.or(before);
    }
    thread.current = before;
    sink.talk(file.path(), thread.finish(Some(&native)))
}

fn said(
    source: &Source,
    sink: &mut Sink<'_>,
    thread: &mut Thread,
    version: &Value,
) -> (Said, Option<Timestamp>) {
    let role = match version.text("role") {
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        Some(_) | None => Role::User,
    };
    let (mut blocks, mut attachments, mut at) = (Vec::new(), Vec::new(), None);
    let mut model = version.pointer("/senderInfo/senderName").and_then(Value::as_str);
    for part in version.list("content") {
        if let Some(id) = part.filled("fileIdentifier") {
            let stored = source.named(id).next();
            let blob = stored.and_then(|stored| {
                sink.used(stored);
                source.blob(stored).ok()
            });
            attachments.push(thread.attach(id, None, blob));
        }
        blocks.extend(part.filled("text").map(content::text));
    }
    for step in version.list("steps") {
        let millis = step.text("stepIdentifier").and_then(|id| id.split('-').next());
        at = at.or_else(|| millis.and_then(time::text));
        model = step.pointer("/genInfo/identifier").and_then(Value::as_str).or(model);
        let thinking = step.pointer("/style/type").and_then(Value::as_str) == Some("thinking");
        let mut text = String::new();
        for part in step.list("content") {
            match part.text("type") {
                Some("toolCallRequest") => {
                    let name = part.filled("name").unwrap_or("tool");
                    let input = part.get("parameters").cloned().unwrap_or_default();
                    blocks.push(content::tool_use(name, input));
                }
                Some("toolCallResult") => {
                    let output = part.get("content").cloned().unwrap_or_default();
                    blocks.push(content::tool_result("tool", &output));
                }
                Some(_) | None => text.push_str(part.text("text").unwrap_or_default()),
            }
        }
        if !text.is_empty() {
            blocks.push(if thinking { content::thinking(text) } else { content::text(text) });
        }
    }
    let mut said = Said::new(role, content::content(blocks)).model(model);
    said.attachments = attachments;
    (said, at)
}

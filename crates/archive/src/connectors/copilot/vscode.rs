//! Chat sessions of VS Code.

use serde_json::{Value, json};
use yore_domain::conversation::Role;

use super::replay;
use crate::connector::{Sink, each_line};
use crate::json::{self, Look};
use crate::source::{File, Source};
use crate::thread::{Said, Thread};
use crate::{Result, content, time};

const PLATFORM: &str = "vscode-copilot";

pub(super) fn read(source: &Source, file: &File, sink: &mut Sink<'_>) -> Result<()> {
    let native = if file.name().ends_with(".jsonl") {
        let (mut state, mut broken) = (Value::Null, Vec::new());
        each_line(source, file, |number, line| {
            match line {
                Some(change) => replay::apply(&mut state, &change),
                None => broken.push(number),
            }
            Ok(())
        })?;
        for number in broken {
            sink.skip(file.path(), Some(format!("line {number}")), "not a whole line of JSON")?;
        }
        state
    } else {
        json::parse(&source.document(file)?)?.0
    };
    let stem = file.name().split('.').next().unwrap_or_default();
    let mut thread = Thread::new(PLATFORM, native.filled("sessionId").unwrap_or(stem));
    thread.title = native.filled("customTitle").map(str::to_owned);
    thread.created = native.get("creationDate").and_then(time::any);
    thread.updated = native.get("lastMessageDate").and_then(time::any);
    if let Some(folder) = workspace(source, file) {
        thread.context.push(json!({"type": "repo", "id": folder}));
    }
    for (place, request) in native.list("requests").iter().enumerate() {
        let key = request.filled("requestId").map_or_else(|| format!("#{place}"), str::to_owned);
        let at = request.get("timestamp").and_then(time::any);
        let message = request.get("message").unwrap_or(&Value::Null);
        let asked = message.filled("text").or(message.as_str()).unwrap_or_default();
        let said = Said::new(Role::User, Value::from(asked)).from(request);
        thread.follow(key.clone(), at, said);
        let blocks = answer(request.list("response"));
        if blocks.is_empty() {
            continue;
        }
        let mut said =
            Said::new(Role::Assistant, content::content(blocks)).model(request.text("modelId"));
        if let Some(about) = request.pointer("/result/metadata") {
            let (prompt, completion) = (about.get("promptTokens"), about.get("outputTokens"));
            if prompt.is_some() || completion.is_some() {
                let usage = json!({"prompt": prompt, "completion": completion});
                said.omp.insert("token_usage".into(), usage);
            }
        }
        thread.follow(format!("{key}:response"), at, said);
    }
    if thread.turns.is_empty() {
        return sink.skip(file.path(), None, "a session without a request");
    }
    sink.talk(file.path(), thread.finish(Some(&native)))
}

/// Pieces of text that follow each other are one text.
fn answer(parts: &[Value]) -> Vec<Value> {
    let (mut blocks, mut text) = (Vec::new(), String::new());
    for part in parts {
        let value = part.get("value").unwrap_or(&Value::Null);
        let said = value.as_str().or(value.text("value")).or(part.as_str());
        match part.text("kind") {
            None | Some("markdownContent") => text.push_str(said.unwrap_or_default()),
            Some("inlineReference") => text.push_str(part.text("name").unwrap_or_default()),
            Some(kind) => {
                if !text.is_empty() {
                    blocks.push(content::text(std::mem::take(&mut text)));
                }
                match kind {
                    "thinking" => blocks.extend(said.map(content::thinking)),
                    "toolInvocationSerialized" => {
                        let name = part.filled("toolId").unwrap_or("tool");
                        let message = part.get("invocationMessage").cloned().unwrap_or_default();
                        blocks.push(content::tool_use(name, json!({"message": message})));
                    }
                    // Marks of progress and of edits are kept native.
                    _ => {}
                }
            }
        }
    }
    if !text.is_empty() {
        blocks.push(content::text(text));
    }
    blocks
}

/// The folder a session belongs to stands in a file beside its folder.
fn workspace(source: &Source, file: &File) -> Option<String> {
    let above = file.folder().rsplit_once('/').map_or("", |(above, _)| above);
    let about = source.named("workspace.json").find(|about| about.folder() == above)?;
    let value = json::parse(&about.bytes(1 << 20).ok()?).ok()?.0;
    value.filled("folder").or(value.filled("workspace")).map(str::to_owned)
}

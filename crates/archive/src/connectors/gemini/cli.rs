//! Gemini CLI sessions.

use serde_json::json;
use yore_domain::conversation::Role;

use crate::connector::Sink;
use crate::json::{self, Look};
use crate::source::{File, Source};
use crate::thread::{Said, Thread};
use crate::{Error, Result, content, time};

pub(super) fn read(source: &Source, file: &File, sink: &mut Sink<'_>) -> Result<()> {
    let native = json::parse(&source.document(file)?)?.0;
    let Some(id) = native.filled("sessionId") else { return Err(Error::form("it has no id")) };
    let mut thread = Thread::new("gemini-cli", id);
    thread.created = native.get("startTime").and_then(time::any);
    thread.updated = native.get("lastUpdated").and_then(time::any);
    if let Some(project) = native.filled("projectHash") {
        thread.context.push(json!({"type": "repo", "id": project}));
    }
    for (place, message) in native.list("messages").iter().enumerate() {
        let mut blocks = Vec::new();
        for thought in message.list("thoughts") {
            let parts = [thought.filled("subject"), thought.filled("description")];
            let text = parts.into_iter().flatten().collect::<Vec<_>>().join("\n");
            blocks.push(content::thinking(text));
        }
        let said = message.get("content").map(super::super::anthropic::plain).unwrap_or_default();
        if !said.is_empty() {
            blocks.push(content::text(said));
        }
        for call in message.list("toolCalls") {
            let name = call.filled("name").unwrap_or("tool");
            let input = call.get("args").cloned().unwrap_or_default();
            blocks.push(content::tool_use(name, input));
            let result = call.get("result").filter(|result| !result.is_null());
            blocks.extend(result.map(|result| content::tool_result(name, result)));
        }
        let role = match message.text("type") {
            Some("user") => Role::User,
            Some("gemini" | "model") => Role::Assistant,
            Some(_) | None => Role::System,
        };
        let mut said = Said::new(role, content::content(blocks)).model(message.text("model"));
        if let Some(tokens) = message.get("tokens").filter(|tokens| tokens.is_object()) {
            said.omp.insert(
                "token_usage".into(),
                json!({"prompt": tokens.get("input"), "completion": tokens.get("output")}),
            );
        }
        let key = message.filled("id").map_or_else(|| format!("#{place}"), str::to_owned);
        let at = message.get("timestamp").and_then(time::any);
        thread.follow(key, at, said.from(message));
    }
    sink.talk(file.path(), thread.finish(Some(&native)))
}

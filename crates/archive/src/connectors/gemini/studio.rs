//! AI Studio: prompts as files without an ending.

use serde_json::{Value, json};
use yore_domain::conversation::Role;

use super::PLATFORM;
use crate::connector::Sink;
use crate::json::{self, Look};
use crate::source::{File, Source};
use crate::thread::{Said, Thread};
use crate::{Result, content, time};

pub(super) fn read(source: &Source, file: &File, sink: &mut Sink<'_>) -> Result<()> {
    let native = json::parse(&source.document(file)?)?.0;
    let chunks = native.get("chunkedPrompt").map(|prompt| prompt.list("chunks"));
    let chunks = chunks.unwrap_or_default();
    let first = chunks.iter().find_map(|chunk| chunk.get("createTime").and_then(time::any));
    // A file has no id: its name and its beginning tell it from others.
    let begin = chunks.first().map(Value::to_string).unwrap_or_default();
    let key = format!("{}:{}", file.name(), crate::source::hash(begin.as_bytes()));
    let mut thread = Thread::new(PLATFORM, key);
    thread.title = Some(file.name().to_owned());
    thread.created = first.or(file.modified());
    thread.tags.push("ai-studio".into());
    let model = native.pointer("/runSettings/model").and_then(Value::as_str).unwrap_or_default();
    let model = model.trim_start_matches("models/");
    if let Some(system) = native.get("systemInstruction") {
        let parts = system.list("parts").iter().filter_map(|part| part.filled("text"));
        let text = system.filled("text").into_iter().chain(parts).collect::<Vec<_>>().join("\n");
        if !text.is_empty() {
            let said = Said::new(Role::System, Value::from(text)).from(system);
            thread.follow("system", None, said);
        }
    }
    for (place, chunk) in chunks.iter().enumerate() {
        let said = said(chunk, &mut thread, model);
        let at = chunk.get("createTime").and_then(time::any);
        thread.follow(format!("chunk {place}"), at, said.from(chunk));
    }
    sink.talk(file.path(), thread.finish(Some(&native)))
}

fn said(chunk: &Value, thread: &mut Thread, model: &str) -> Said {
    let role = if chunk.text("role") == Some("user") { Role::User } else { Role::Assistant };
    let (mut blocks, mut attachments) = (Vec::new(), Vec::new());
    // The text repeats the parts.
    if let Some(text) = chunk.filled("text") {
        let thought = chunk.flag("isThought");
        blocks.push(if thought { content::thinking(text) } else { content::text(text) });
    }
    let parts = chunk.list("parts").iter();
    for part in std::iter::once(chunk).chain(parts) {
        if let Some(code) = part.get("executableCode") {
            let language = code.filled("language").unwrap_or("python").to_lowercase();
            blocks.extend(code.filled("code").map(|text| content::code(&language, text)));
        }
        if let Some(result) = part.get("codeExecutionResult") {
            let output = result.get("output").cloned().unwrap_or_default();
            blocks.push(content::tool_result("code_execution", &output));
        }
        for name in ["inlineFile", "inlineImage", "inlineData"] {
            if let Some(inline) = part.get(name) {
                let kind = inline.filled("mimeType");
                let file = format!("inline.{}", crate::sniff::ending(kind.unwrap_or_default()));
                let data = inline.filled("data").unwrap_or_default();
                attachments.push(thread.attach_base64(&file, kind, data));
            }
        }
    }
    for name in ["driveDocument", "driveImage", "driveVideo", "driveAudio", "youtubeVideo"] {
        if let Some(id) = chunk.get(name).and_then(|drive| drive.filled("id")) {
            let mut made = thread.attach(id, None, None);
            made.foreign.insert(PLATFORM.into(), json!({"kind": name, "id": id}));
            attachments.push(made);
        }
    }
    let mut said = Said::new(role, content::content(blocks));
    if role == Role::Assistant {
        said = said.model(Some(model));
    }
    said.attachments = attachments;
    match chunk.filled("errorMessage") {
        Some(error) => said.flag("error", error),
        None => said,
    }
}

//! What a message says, for every type of content.

use serde_json::Value;
use yore_domain::conversation::{Attachment, Role};

use super::assets::{Pointer, id_of};
use crate::content;
use crate::json::{Look, Object};
use crate::thread::Said;

/// Makes a message of its native form. `find` attaches what it points at.
pub(super) fn said(native: &Value, mut find: impl FnMut(&Pointer) -> Attachment) -> Said {
    let empty = Object::new();
    let content = native.inner("content").unwrap_or(&empty);
    let metadata = native.inner("metadata").unwrap_or(&empty);
    let author = native.inner("author").unwrap_or(&empty);
    let kind = content.text("content_type").unwrap_or_default();

    let attachments: Vec<(Pointer, Attachment)> = pointers(content, metadata)
        .into_iter()
        .map(|pointer| {
            let attachment = find(&pointer);
            (pointer, attachment)
        })
        .collect();
    let mut role = match author.text("role") {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        Some(_) | None => Role::System,
    };
    if kind == "user_editable_context" {
        role = Role::System;
    }
    let mut blocks = blocks(kind, content, &attachments);
    let tool = author.filled("name").unwrap_or("tool");
    if role == Role::Tool {
        blocks = results(tool, blocks);
    }
    let recipient = native.filled("recipient").unwrap_or("all");
    if recipient != "all" && role == Role::Assistant {
        blocks = calls(recipient, blocks);
    }
    let mut said = Said::new(role, content::content(blocks)).model(metadata.text("model_slug"));
    said.attachments = attachments.into_iter().map(|(_, attachment)| attachment).collect();
    let weightless = native.get("weight").and_then(Value::as_f64) == Some(0.0);
    if weightless || metadata.flag("is_visually_hidden_from_conversation") {
        said = said.flag("hidden", true);
    }
    if let Some(references) = metadata
        .get("content_references")
        .filter(|list| list.as_array().is_some_and(|list| !list.is_empty()))
    {
        said = said.flag("content_references", references.clone());
    }
    if kind == "reasoning_recap" {
        said = said.flag("reasoning_recap", content.get("content").cloned().unwrap_or_default());
    }
    said
}

fn blocks(kind: &str, content: &Object, attachments: &[(Pointer, Attachment)]) -> Vec<Value> {
    let text = |name: &str| content.filled(name).map(content::text);
    match kind {
        "text" | "multimodal_text" => {
            content.list("parts").iter().filter_map(|part| part_of(part, attachments)).collect()
        }
        "code" => {
            let language = content.filled("language").unwrap_or("unknown");
            content.filled("text").map(|code| content::code(language, code)).into_iter().collect()
        }
        "thoughts" => content.list("thoughts").iter().filter_map(thought).collect(),
        "reasoning_recap" => Vec::new(),
        "user_editable_context" => {
            [text("user_profile"), text("user_instructions")].into_iter().flatten().collect()
        }
        "model_editable_context" => text("model_set_context").into_iter().collect(),
        "tether_browsing_display" => {
            [text("result"), text("summary")].into_iter().flatten().collect()
        }
        "tether_quote" | "sonic_webpage" => {
            [text("title"), text("url"), text("text")].into_iter().flatten().collect()
        }
        "citable_code_output" => text("output_str").into_iter().collect(),
        // Unknown types are kept native; what they call their text can be shown.
        _ => [text("text"), text("result")].into_iter().flatten().collect(),
    }
}

fn thought(thought: &Value) -> Option<Value> {
    let parts = [thought.filled("summary"), thought.filled("content")];
    let text: Vec<&str> = parts.into_iter().flatten().collect();
    (!text.is_empty()).then(|| content::thinking(text.join("\n\n")))
}

fn part_of(part: &Value, attachments: &[(Pointer, Attachment)]) -> Option<Value> {
    if let Some(text) = part.as_str() {
        return (!text.is_empty()).then(|| content::text(text));
    }
    match part.text("content_type") {
        Some("audio_transcription") => part.filled("text").map(content::text),
        Some("image_asset_pointer") => {
            let id = id_of(part.text("asset_pointer")?);
            let (_, attachment) = attachments.iter().find(|(pointer, _)| pointer.id == id)?;
            Some(image(attachment))
        }
        Some(_) | None => part.filled("text").map(content::text),
    }
}

/// A block that points at an attachment by its place in an archive.
fn image(attachment: &Attachment) -> Value {
    let data =
        attachment.blob.map(|blob| crate::omp::attachment_path(blob, &attachment.media_type));
    let missing = data.is_none();
    let block = serde_json::json!({"type": "image", "media_type": attachment.media_type,
        "data": data.unwrap_or_default()});
    if missing { content::with(block, "x_missing", true) } else { block }
}

/// What a tool gave back: its texts are one result, its images stay beside it.
fn results(tool: &str, blocks: Vec<Value>) -> Vec<Value> {
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block.text("text")).collect();
    let result = content::tool_result(tool, &Value::from(texts.join("\n")));
    let others = blocks.iter().filter(|block| block.text("type") == Some("image")).cloned();
    std::iter::once(result).chain(others).collect()
}

/// What is said to a tool is a call of it.
fn calls(recipient: &str, blocks: Vec<Value>) -> Vec<Value> {
    let mut made = Vec::new();
    for block in blocks {
        let is_thinking = block.text("x_kind").is_some();
        let Some(input) = block.text("text").filter(|_| !is_thinking) else {
            made.push(block);
            continue;
        };
        let call = content::tool_use_text(recipient, input);
        if block.text("type") == Some("code") && call.flag("x_wrapped") {
            made.push(block.clone());
        }
        if recipient.starts_with("canmore.create")
            && let Some(text) = call.pointer("/tool_input/content").and_then(Value::as_str)
        {
            let name = call.pointer("/tool_input/name").and_then(Value::as_str);
            made.push(content::document("text/markdown", name.unwrap_or("document"), text));
        }
        made.push(call);
    }
    made
}

/// Everything a message points at, each once.
fn pointers(content: &Object, metadata: &Object) -> Vec<Pointer> {
    let mut found: Vec<Pointer> = Vec::new();
    let mut add = |id: &str, name: Option<&str>, media_type: Option<&str>| {
        let (name, media_type) = (name.map(str::to_owned), media_type.map(str::to_owned));
        match found.iter_mut().find(|pointer| pointer.id == id) {
            Some(known) => {
                known.name = known.name.take().or(name);
                known.media_type = known.media_type.take().or(media_type);
            }
            None => found.push(Pointer { id: id.to_owned(), name, media_type }),
        }
    };
    for part in content.list("parts") {
        let inner = [part.get("audio_asset_pointer"), part.get("video_container_asset_pointer")];
        let frames = part.list("frames_asset_pointers").iter();
        for holder in [Some(part)].into_iter().chain(inner).flatten().chain(frames) {
            let pointer = holder.text("asset_pointer").or(holder.as_str());
            if let Some(pointer) = pointer.filter(|pointer| pointer.contains("://")) {
                add(id_of(pointer), None, None);
            }
        }
    }
    for file in metadata.list("attachments") {
        if let Some(id) = file.filled("id") {
            add(id, file.text("name"), file.text("mime_type"));
        }
    }
    for text in content.list("parts").iter().filter_map(Value::as_str) {
        for link in text.split("sandbox:/").skip(1) {
            let end = link.find([')', ']', '"', '\'', '>', ' ', '\n']).unwrap_or(link.len());
            if !link[..end].is_empty() {
                add(&format!("sandbox:/{}", &link[..end]), None, None);
            }
        }
    }
    found
}

//! What a message says: its blocks, in their order.

use serde_json::{Value, json};
use yore_domain::conversation::Role;

use super::artifacts::Artifacts;
use crate::content;
use crate::item::Blob;
use crate::json::Look;
use crate::thread::{Said, Thread};

/// Makes a message of its native form.
pub(super) fn said(native: &Value, thread: &mut Thread, artifacts: &mut Artifacts) -> Said {
    let role = match native.text("sender").or(native.text("role")) {
        Some("human" | "user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some(_) | None => Role::System,
    };
    let mut blocks = Vec::new();
    for block in native.list("content") {
        add(block, &mut blocks, artifacts);
    }
    // Old exports have no blocks, and newer ones repeat them in `text`.
    if native.list("content").is_empty() {
        blocks.extend(native.filled("text").map(content::text));
    }
    let mut said = Said::new(role, content::content(blocks)).model(native.text("model"));
    for attachment in native.list("attachments") {
        let name = attachment.filled("file_name").unwrap_or("pasted.txt");
        let text = attachment.filled("extracted_content");
        let blob = text.map(|text| Blob::new(text.as_bytes()));
        let media_type = text.map(|_| "text/plain");
        let mut made = thread.attach(name, media_type, blob);
        made.foreign.insert(
            super::PLATFORM.into(),
            json!({
                "file_type": attachment.get("file_type"), "file_size": attachment.get("file_size"),
            }),
        );
        said.attachments.push(made);
    }
    let named = ["files", "files_v2"].map(|list| native.list(list));
    for file in named.into_iter().flatten() {
        let name = file.filled("file_name").unwrap_or("unnamed");
        let mut made = thread.attach(name, None, None);
        made.foreign.insert(super::PLATFORM.into(), json!({"file_uuid": file.get("file_uuid")}));
        let twin = |known: &yore_domain::conversation::Attachment| {
            known.filename == made.filename && known.foreign == made.foreign
        };
        if !said.attachments.iter().any(twin) {
            said.attachments.push(made);
        }
    }
    said
}

fn add(block: &Value, blocks: &mut Vec<Value>, artifacts: &mut Artifacts) {
    match block.text("type") {
        Some("text" | "voice_note") => {
            if let Some(text) = block.filled("text") {
                let made = content::text(text);
                let citations = block.list("citations");
                blocks.push(if citations.is_empty() {
                    made
                } else {
                    content::with(made, "x_citations", citations.to_vec())
                });
            }
        }
        Some("thinking") => {
            blocks.extend(block.filled("thinking").map(content::thinking));
        }
        Some("tool_use") => {
            let name = block.filled("name").unwrap_or("tool");
            let input = block.get("input").cloned().unwrap_or_default();
            if name == "artifacts"
                && let Some(document) = artifacts.replay(&input)
            {
                blocks.push(document);
            }
            let made = content::tool_use(name, input);
            blocks.push(match block.filled("id") {
                Some(id) => content::with(made, "x_id", id),
                None => made,
            });
        }
        Some("tool_result") => {
            let name = block.filled("name").unwrap_or("tool");
            let made = content::tool_result(name, &Value::from(result(block)));
            let made = match block.filled("tool_use_id") {
                Some(id) => content::with(made, "x_id", id),
                None => made,
            };
            let failed = block.flag("is_error");
            blocks.push(if failed { content::with(made, "x_is_error", true) } else { made });
        }
        // Budgets and blocks that are not known yet are kept in the native form.
        Some("token_budget") => {}
        Some(_) | None => blocks.extend(block.filled("text").map(content::text)),
    }
}

/// The text of what a tool gave back.
fn result(block: &Value) -> String {
    if let Some(text) = block.text("content") {
        return text.to_owned();
    }
    let lines = block.list("content").iter().map(|part| {
        let parts = [part.filled("title"), part.filled("url"), part.filled("text")];
        parts.into_iter().flatten().collect::<Vec<_>>().join("\n")
    });
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n\n")
}

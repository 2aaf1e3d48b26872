//! Blocks in the form of Anthropic's API, which several programs keep.

use serde_json::Value;
use yore_domain::conversation::Attachment;

use crate::content;
use crate::json::Look;
use crate::thread::Thread;

/// Adds a block, and attaches what it holds.
pub(super) fn add(
    block: &Value,
    thread: &mut Thread,
    blocks: &mut Vec<Value>,
    attachments: &mut Vec<Attachment>,
) {
    match block.text("type") {
        Some("thinking") => blocks.extend(block.filled("thinking").map(content::thinking)),
        Some("tool_use") => {
            let name = block.filled("name").unwrap_or("tool");
            let made = content::tool_use(name, block.get("input").cloned().unwrap_or_default());
            blocks.push(identified(made, block.filled("id")));
        }
        Some("tool_result") => {
            for part in block.list("content") {
                if part.text("type") == Some("image") {
                    add(part, thread, blocks, attachments);
                }
            }
            let output = Value::from(plain(block.get("content").unwrap_or(&Value::Null)));
            let made = content::tool_result("tool", &output);
            let made = identified(made, block.filled("tool_use_id"));
            let failed = block.flag("is_error");
            blocks.push(if failed { content::with(made, "x_is_error", true) } else { made });
        }
        Some("image" | "document") => {
            let source = block.get("source").unwrap_or(block);
            if let Some(data) = source.filled("data") {
                let media_type = source.filled("media_type");
                let ending = crate::sniff::ending(media_type.unwrap_or_default());
                let name = format!("image.{ending}");
                attachments.push(thread.attach_base64(&name, media_type, data));
            }
        }
        Some(_) | None => blocks.extend(block.filled("text").map(content::text)),
    }
}

fn identified(block: Value, id: Option<&str>) -> Value {
    match id {
        Some(id) => content::with(block, "x_id", id),
        None => block,
    }
}

/// The text of a content that is a text or a list of parts.
pub(super) fn plain(value: &Value) -> String {
    if let Some(text) = value.as_str() {
        return text.to_owned();
    }
    let parts = value.as_array().into_iter().flatten();
    parts.filter_map(|part| part.text("text")).collect::<Vec<_>>().join("\n")
}

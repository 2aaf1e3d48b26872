//! One message of the editor.

use serde_json::Value;
use yore_domain::Timestamp;
use yore_domain::conversation::Role;

use crate::json::Look;
use crate::thread::{Said, Thread};
use crate::{content, time};

/// Adds a message.
pub(super) fn add(thread: &mut Thread, key: &str, bubble: &Value, model: Option<&str>) {
    let kind = bubble.get("type");
    let human = kind.and_then(Value::as_u64) == Some(1) || bubble.text("type") == Some("user");
    let role = if human { Role::User } else { Role::Assistant };
    let mut blocks = Vec::new();
    let thought = bubble.get("thinking").and_then(|thinking| {
        thinking.filled("text").or(thinking.as_str().filter(|text| !text.is_empty()))
    });
    blocks.extend(thought.map(content::thinking));
    let text = bubble.filled("text").or(bubble.filled("rawText"));
    blocks.extend(text.map(content::text));
    for code in bubble.list("codeBlocks") {
        let language = code.filled("languageId").unwrap_or("unknown");
        blocks.extend(code.filled("content").map(|text| content::code(language, text)));
    }
    if let Some(tool) = bubble.get("toolFormerData").filter(|tool| tool.is_object()) {
        let name = tool.filled("name").unwrap_or("tool");
        let input = tool.text("rawArgs").or(tool.text("params")).unwrap_or("{}");
        blocks.push(content::tool_use_text(name, input));
        let output = tool.get("result").filter(|output| !output.is_null());
        blocks.extend(output.map(|output| content::tool_result(name, output)));
    }
    let own = bubble.pointer("/modelInfo/modelName").and_then(Value::as_str);
    let own = own.or(bubble.filled("modelType")).or(model);
    let said = Said::new(role, content::content(blocks)).model(if human { None } else { own });
    thread.follow(key, at(bubble), said.from(bubble));
}

/// The time, or that of the answer's making. Small numbers are a running clock, not a time.
fn at(bubble: &Value) -> Option<Timestamp> {
    let timing = bubble.get("timingInfo");
    let started = timing.and_then(|timing| timing.get("clientStartTime"));
    let started = started.and_then(Value::as_f64).filter(|time| *time >= 1e12);
    bubble.get("createdAt").and_then(time::any).or_else(|| started.and_then(time::epoch))
}

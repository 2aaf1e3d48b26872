//! Content blocks, and the words of them.

use serde_json::{Map, Value, json};

use crate::json::Look;

/// Bytes of a message's text that are searched; its content is kept whole.
const SEARCHED: usize = 1 << 20;

pub(crate) fn text(text: impl Into<String>) -> Value {
    json!({"type": "text", "text": text.into()})
}

pub(crate) fn thinking(text: impl Into<String>) -> Value {
    json!({"type": "text", "text": text.into(), "x_kind": "thinking"})
}

pub(crate) fn code(language: &str, text: impl Into<String>) -> Value {
    json!({"type": "code", "language": language, "text": text.into()})
}

pub(crate) fn document(media_type: &str, filename: &str, text: &str) -> Value {
    let data = data_encoding::BASE64.encode(text.as_bytes());
    json!({"type": "document", "media_type": media_type, "data": data, "filename": filename,
        "x_text": text})
}

/// A call of a tool. What is not an object is wrapped, and says so.
pub(crate) fn tool_use(name: &str, input: Value) -> Value {
    if input.is_object() {
        json!({"type": "tool_use", "tool_name": name, "tool_input": input})
    } else {
        json!({"type": "tool_use", "tool_name": name, "tool_input": {"value": input},
            "x_wrapped": true})
    }
}

/// A call whose input is JSON text, or another text.
pub(crate) fn tool_use_text(name: &str, input: &str) -> Value {
    match serde_json::from_str(input) {
        Ok(Value::Object(object)) => tool_use(name, Value::Object(object)),
        Ok(_) | Err(_) => tool_use(name, Value::from(input)),
    }
}

/// What a tool gave back. A structure is kept beside its text.
pub(crate) fn tool_result(name: &str, output: &Value) -> Value {
    match output.as_str() {
        Some(text) => json!({"type": "tool_result", "tool_name": name, "output": text}),
        None => json!({"type": "tool_result", "tool_name": name, "output": output.to_string(),
            "x_output": output}),
    }
}

/// Adds a member to a block.
pub(crate) fn with(mut block: Value, name: &str, value: impl Into<Value>) -> Value {
    if let Some(block) = block.as_object_mut() {
        block.insert(name.to_owned(), value.into());
    }
    block
}

/// Makes blocks a content: one plain text stands for itself.
pub(crate) fn content(mut blocks: Vec<Value>) -> Value {
    let plain = |block: &Value| block.as_object().is_some_and(is_plain_text);
    if blocks.is_empty() {
        return Value::from("");
    }
    if blocks.len() == 1
        && plain(&blocks[0])
        && let Some(text) = blocks[0].get_mut("text")
    {
        return text.take();
    }
    Value::Array(blocks)
}

fn is_plain_text(block: &Map<String, Value>) -> bool {
    block.len() == 2 && block.text("type") == Some("text") && block.contains_key("text")
}

/// Returns the words of a content that search looks at: no thinking, no calls.
pub(crate) fn words(content: &Value) -> String {
    let mut words = String::new();
    let blocks = match content.as_str() {
        Some(text) => {
            add(&mut words, text);
            &[][..]
        }
        None => content.as_array().map_or(&[][..], Vec::as_slice),
    };
    for block in blocks {
        if block.text("x_kind") == Some("thinking") {
            continue;
        }
        let said = match block.text("type") {
            Some("text" | "code") => block.text("text"),
            Some("tool_result") => block.text("output"),
            Some("document") => block.text("x_text"),
            Some(_) | None => None,
        };
        add(&mut words, said.unwrap_or_default());
    }
    words
}

fn add(words: &mut String, said: &str) {
    let said = strip(said);
    let said = said.trim();
    if said.is_empty() || words.len() >= SEARCHED {
        return;
    }
    if !words.is_empty() {
        words.push('\n');
    }
    let mut end = said.len().min(SEARCHED - words.len().min(SEARCHED));
    while !said.is_char_boundary(end) {
        end -= 1;
    }
    words.push_str(&said[..end]);
}

/// Takes out the marks of citations and of rendered cards, which nobody searches for.
fn strip(text: &str) -> std::borrow::Cow<'_, str> {
    const SPANS: [(&str, &str); 3] = [
        ("\u{e200}", "\u{e201}"),
        ("<grok:render", "</grok:render>"),
        ("<xai:tool_usage_card>", "</xai:tool_usage_card>"),
    ];
    if !SPANS.iter().any(|(open, _)| text.contains(open)) {
        return text.into();
    }
    let mut out = text.to_owned();
    for (open, close) in SPANS {
        let (mut kept, mut rest) = (String::new(), out.as_str());
        while let Some(from) = rest.find(open) {
            let Some(to) = rest[from..].find(close) else { break };
            kept.push_str(&rest[..from]);
            rest = &rest[from + to + close.len()..];
        }
        kept.push_str(rest);
        out = kept;
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omp_037_what_is_not_an_object_is_wrapped_and_structures_keep_their_form() {
        let call = tool_use_text("python", "print(1)");
        assert_eq!(call["tool_input"], json!({"value": "print(1)"}));
        assert_eq!(call["x_wrapped"], json!(true));
        assert_eq!(tool_use_text("t", "{\"a\":1}")["tool_input"], json!({"a": 1}));
        let result = tool_result("t", &json!({"rows": [1]}));
        assert_eq!(result["output"], json!("{\"rows\":[1]}"));
        assert_eq!(result["x_output"], json!({"rows": [1]}));
    }

    #[test]
    fn omp_038_thinking_keeps_its_place_and_is_not_searched() {
        let blocks = json!([thinking("secret plan"), text("the answer"), tool_use("t", json!({}))]);
        assert_eq!(blocks[0]["x_kind"], "thinking");
        assert_eq!(words(&blocks), "the answer");
    }

    #[test]
    fn marks_of_citations_are_not_searched() {
        let said = "18 kg. \u{e200}cite\u{e202}turn0search1\u{e201} Done \u{e200}open";
        assert_eq!(words(&Value::from(said)), "18 kg.  Done \u{e200}open");
    }
}

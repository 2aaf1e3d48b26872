//! What a provider answered: in one document, or piece by piece.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::record::{Form, Turn};
use super::responses;

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) turn: Turn,
    /// The model that gave it.
    pub(super) model: Option<String>,
    /// What else was said about it: its id, why it ended, what it cost.
    pub(super) about: Map<String, Value>,
}

/// Reads an answer that came in one document.
pub(super) fn whole(form: Form, bytes: &[u8]) -> Option<Answer> {
    let Value::Object(mut document) = serde_json::from_slice(bytes).ok()? else { return None };
    let model = document.get("model").and_then(Value::as_str).map(str::to_owned);
    let message = match form {
        Form::Responses => return responses::whole(document),
        Form::OpenAi => {
            let Value::Array(mut choices) = document.remove("choices")? else { return None };
            if choices.is_empty() {
                return None;
            }
            let Value::Object(mut first) = choices.remove(0) else { return None };
            let Value::Object(message) = first.remove("message")? else { return None };
            document.extend(first);
            if !choices.is_empty() {
                document.insert("choices".to_owned(), Value::Array(choices));
            }
            message
        }
        Form::Anthropic => {
            let mut message = Map::new();
            message.insert("role".to_owned(), document.remove("role")?);
            message.insert("content".to_owned(), document.remove("content")?);
            message
        }
    };
    Some(Answer { turn: Turn::of(message)?, model, about: document })
}

/// Reads an answer that came piece by piece; one that was cut off has what came.
pub(super) fn streamed(form: Form, bytes: &[u8]) -> Option<Answer> {
    let text = String::from_utf8_lossy(bytes);
    let events = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let events = events.filter_map(|data| serde_json::from_str::<Value>(data.trim()).ok());
    match form {
        Form::OpenAi => openai(events),
        Form::Responses => responses::streamed(events),
        Form::Anthropic => anthropic(events),
    }
}

fn openai(events: impl Iterator<Item = Value>) -> Option<Answer> {
    let (mut said, mut thought) = (String::new(), String::new());
    let mut calls: BTreeMap<u64, Value> = BTreeMap::new();
    let mut about = Map::new();
    let mut model = None;
    let mut began = false;
    for event in events {
        let Some(choice) = event["choices"].as_array() else { continue };
        began = true;
        for name in ["id", "created", "usage", "system_fingerprint"] {
            if let Some(value) = event.get(name).filter(|value| !value.is_null()) {
                about.insert(name.to_owned(), value.clone());
            }
        }
        model = event["model"].as_str().map(str::to_owned).or(model);
        let Some(choice) = choice.iter().find(|choice| choice["index"] == 0) else { continue };
        if let Some(why) = choice["finish_reason"].as_str() {
            about.insert("finish_reason".to_owned(), Value::from(why));
        }
        let delta = &choice["delta"];
        said.push_str(delta["content"].as_str().unwrap_or_default());
        thought.push_str(delta["reasoning_content"].as_str().unwrap_or_default());
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            let known = calls.entry(call["index"].as_u64().unwrap_or(0)).or_insert_with(
                || json!({"id": "", "type": "function", "function": {"name": "", "arguments": ""}}),
            );
            for path in ["/id", "/function/name", "/function/arguments"] {
                let more = call.pointer(path).and_then(Value::as_str).unwrap_or_default();
                if let Some(Value::String(text)) = known.pointer_mut(path) {
                    text.push_str(more);
                }
            }
        }
    }
    if !began {
        return None;
    }
    let mut message = Map::new();
    message.insert("role".to_owned(), Value::from("assistant"));
    let content = if said.is_empty() && !calls.is_empty() { Value::Null } else { said.into() };
    message.insert("content".to_owned(), content);
    if !thought.is_empty() {
        message.insert("reasoning_content".to_owned(), Value::from(thought));
    }
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), calls.into_values().collect());
    }
    Some(Answer { turn: Turn::of(message)?, model, about })
}

fn anthropic(events: impl Iterator<Item = Value>) -> Option<Answer> {
    let mut about = Map::new();
    let mut model = None;
    let mut blocks: BTreeMap<u64, Value> = BTreeMap::new();
    let mut inputs: BTreeMap<u64, String> = BTreeMap::new();
    let mut began = false;
    for mut event in events {
        let index = event["index"].as_u64().unwrap_or(0);
        match event["type"].as_str() {
            Some("message_start") => {
                began = true;
                if let Value::Object(mut message) = event["message"].take() {
                    message.remove("content");
                    message.remove("role");
                    model = message.get("model").and_then(Value::as_str).map(str::to_owned);
                    about.extend(message);
                }
            }
            Some("content_block_start") if event["content_block"].is_object() => {
                blocks.insert(index, event["content_block"].take());
            }
            Some("content_block_delta") => {
                let delta = &event["delta"];
                if let Some(more) = delta["partial_json"].as_str() {
                    inputs.entry(index).or_default().push_str(more);
                    continue;
                }
                let Some(block) = blocks.get_mut(&index) else { continue };
                for name in ["text", "thinking", "signature"] {
                    if let Some(more) = delta[name].as_str() {
                        let before = block[name].as_str().unwrap_or_default();
                        block[name] = Value::from(format!("{before}{more}"));
                    }
                }
                if let Some(citation) = delta.get("citation") {
                    match block["citations"].as_array_mut() {
                        Some(known) => known.push(citation.clone()),
                        None => block["citations"] = json!([citation]),
                    }
                }
            }
            Some("message_delta") => {
                if let Value::Object(delta) = event["delta"].take() {
                    about.extend(delta);
                }
                if let Value::Object(usage) = event["usage"].take() {
                    let known = about.entry("usage").or_insert_with(|| json!({}));
                    if let Some(known) = known.as_object_mut() {
                        known.extend(usage);
                    }
                }
            }
            Some(_) | None => {}
        }
    }
    for (index, text) in inputs {
        if let Some(block) = blocks.get_mut(&index) {
            // What was cut off is kept as it came.
            block["input"] = serde_json::from_str(&text).unwrap_or(Value::from(text));
        }
    }
    if !began {
        return None;
    }
    let content: Vec<Value> = blocks.into_values().collect();
    let mut message = Map::new();
    message.insert("role".to_owned(), Value::from("assistant"));
    message.insert("content".to_owned(), Value::Array(content));
    about.retain(|_, value| !value.is_null());
    Some(Answer { turn: Turn::of(message)?, model, about })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(all: &[Value]) -> Vec<u8> {
        all.iter().map(|event| format!("data: {event}\n\n")).collect::<String>().into_bytes()
    }

    #[test]
    fn pieces_make_the_answer_that_one_document_would_have_been() {
        let piece = |delta: Value, why: Value| json!({"id": "c", "model": "m-1", "choices": [{"index": 0, "delta": delta, "finish_reason": why}]});
        let mut bytes = events(&[
            piece(json!({"role": "assistant", "content": ""}), json!(null)),
            piece(json!({"content": "forty "}), json!(null)),
            piece(json!({"content": "thousand"}), json!(null)),
            piece(
                json!({"tool_calls": [{"index": 0, "id": "t", "function": {"name": "w", "arguments": "{\"a\""}}]}),
                json!(null),
            ),
            piece(
                json!({"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]}),
                json!(null),
            ),
            piece(json!({}), json!("stop")),
        ]);
        bytes.extend(b"data: [DONE]\n\n");
        let answer = streamed(Form::OpenAi, &bytes).unwrap();
        assert_eq!(answer.turn.content, "forty thousand");
        assert_eq!(answer.turn.rest["tool_calls"][0]["function"]["arguments"], "{\"a\":1}");
        assert_eq!(answer.about["finish_reason"], "stop");
        assert_eq!(answer.model.as_deref(), Some("m-1"));
        let cut = streamed(Form::OpenAi, &bytes[..bytes.len() / 2]).unwrap();
        assert!("forty thousand".starts_with(cut.turn.content.as_str().unwrap()));
        assert!(streamed(Form::OpenAi, b"event: ping\n\n").is_none());
    }

    #[test]
    fn blocks_are_put_together_in_their_order() {
        let bytes = events(&[
            json!({"type": "message_start", "message": {"id": "x", "role": "assistant", "model": "c-1", "content": [], "usage": {"input_tokens": 3}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}}),
            json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "forty "}}),
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "thousand"}}),
            json!({"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "t", "name": "w", "input": {}}}),
            json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "{\"a\":"}}),
            json!({"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "1}"}}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}}),
        ]);
        let answer = streamed(Form::Anthropic, &bytes).unwrap();
        assert_eq!(
            answer.turn.content,
            json!([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "forty thousand"},
                {"type": "tool_use", "id": "t", "name": "w", "input": {"a": 1}}])
        );
        assert_eq!(answer.about["usage"], json!({"input_tokens": 3, "output_tokens": 5}));
        assert_eq!(answer.about["stop_reason"], "tool_use");
    }

    #[test]
    fn what_is_no_answer_is_none() {
        for bytes in ["", "[]", "{}", r#"{"error":{"message":"no"}}"#, r#"{"choices":[]}"#] {
            assert!(whole(Form::OpenAi, bytes.as_bytes()).is_none(), "{bytes}");
            assert!(whole(Form::Anthropic, bytes.as_bytes()).is_none(), "{bytes}");
            assert!(whole(Form::Responses, bytes.as_bytes()).is_none(), "{bytes}");
        }
    }
}

//! The responses API of OpenAI: items instead of messages, and a memory at the provider.
//!
//! What a model says in one answer is several items (thinking, calls, words); here it is one turn,
//! whether it comes as an answer or is sent back with the next question. Where the next question
//! only names the answer before it, the proxy remembers which conversation that was.

use std::collections::{BTreeMap, HashMap, VecDeque};

use serde_json::{Map, Value, json};
use yore_domain::conversation::Role;
use yore_domain::{ConversationId, MessageId};

use super::answer::Answer;
use super::record::Turn;

/// Answers whose conversation is remembered.
const REMEMBERED: usize = 10_000;

/// Where a conversation goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thread {
    pub(crate) conversation: ConversationId,
    /// How many messages it has.
    pub(crate) messages: usize,
    /// The last of them.
    pub(crate) last: MessageId,
}

/// Which conversation an answer belongs to, for the latest of them.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    known: HashMap<String, Thread>,
    order: VecDeque<String>,
}

impl Threads {
    pub(crate) fn get(&self, response: &str) -> Option<Thread> {
        self.known.get(response).copied()
    }

    pub(crate) fn insert(&mut self, response: String, thread: Thread) {
        if self.order.len() >= REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        self.order.push_back(response.clone());
        self.known.insert(response, thread);
    }
}

/// What a request says, turn by turn.
pub(super) fn turns(request: &Value) -> Option<Vec<Turn>> {
    let mut turns = Vec::new();
    if let Some(text) = request["instructions"].as_str() {
        turns.push(Turn { role: Role::System, content: Value::from(text), rest: Map::new() });
    }
    match request.get("input")? {
        Value::String(text) => {
            turns.push(Turn {
                role: Role::User,
                content: Value::from(text.as_str()),
                rest: Map::new(),
            });
        }
        Value::Array(items) => {
            let mut answered = Vec::new();
            for item in items {
                let item = item.as_object()?;
                if is_models(item) {
                    answered.push(Value::Object(item.clone()));
                    continue;
                }
                turns.extend(said(std::mem::take(&mut answered)));
                turns.push(asked(item.clone())?);
            }
            turns.extend(said(answered));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    }
    Some(turns)
}

/// Whether an item is part of what the model said.
fn is_models(item: &Map<String, Value>) -> bool {
    let kind = item.get("type").and_then(Value::as_str).unwrap_or("message");
    match kind {
        "message" => item.get("role").is_some_and(|role| role == "assistant"),
        kind => !kind.ends_with("_output") && kind != "item_reference",
    }
}

/// An item that is not the model's.
fn asked(mut item: Map<String, Value>) -> Option<Turn> {
    let kind = item.get("type").and_then(Value::as_str).unwrap_or("message").to_owned();
    if kind == "message" {
        item.remove("type");
        return Turn::of(item);
    }
    let content = item.remove("output").unwrap_or_default();
    Some(Turn { role: Role::Tool, content, rest: item })
}

/// The items of one answer as one turn; nothing when there are none.
fn said(items: Vec<Value>) -> Option<Turn> {
    let (mut content, mut calls) = (Vec::new(), Vec::new());
    for mut item in items {
        match item["type"].as_str() {
            Some("message") | None => match item["content"].take() {
                Value::Array(blocks) => content.extend(blocks),
                Value::String(text) => content.push(json!({"type": "output_text", "text": text})),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
            },
            Some("function_call" | "custom_tool_call") => {
                let told = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
                let given = if item["arguments"].is_null() { "input" } else { "arguments" };
                calls.push(json!([told("call_id"), told("name"), told(given)]));
                content.push(item);
            }
            Some(_) => content.push(item),
        }
    }
    let mut rest = Map::new();
    if !calls.is_empty() {
        rest.insert("tool_calls".to_owned(), Value::Array(calls));
    }
    let turn = Turn { role: Role::Assistant, content: Value::Array(content), rest };
    turn.content.as_array().is_some_and(|content| !content.is_empty()).then_some(turn)
}

/// Reads an answer that came in one document.
pub(super) fn whole(mut document: Map<String, Value>) -> Option<Answer> {
    let Value::Array(items) = document.remove("output")? else { return None };
    let model = document.get("model").and_then(Value::as_str).map(str::to_owned);
    // What the request said is recorded with it.
    document.retain(|name, value| {
        !value.is_null() && !matches!(name.as_str(), "instructions" | "tools" | "text" | "input")
    });
    Some(Answer { turn: said(items)?, model, about: document })
}

/// Reads an answer that came piece by piece; one that was cut off has what came.
pub(super) fn streamed(events: impl Iterator<Item = Value>) -> Option<Answer> {
    let mut items: BTreeMap<u64, Value> = BTreeMap::new();
    let mut texts: BTreeMap<(u64, u64), String> = BTreeMap::new();
    let mut begun: Option<Map<String, Value>> = None;
    for mut event in events {
        let place = event["output_index"].as_u64().unwrap_or(0);
        let part = event["content_index"].as_u64().unwrap_or(0);
        match event["type"].as_str() {
            Some("response.created" | "response.in_progress") => {
                if let Value::Object(response) = event["response"].take() {
                    begun = Some(response);
                }
            }
            Some("response.output_item.done") => {
                texts.retain(|(item, _), _| *item != place);
                items.insert(place, event["item"].take());
            }
            Some("response.output_text.delta") => {
                let more = event["delta"].as_str().unwrap_or_default();
                texts.entry((place, part)).or_default().push_str(more);
            }
            Some("response.completed" | "response.incomplete" | "response.failed") => {
                let Value::Object(response) = event["response"].take() else { continue };
                let told = response.get("output").and_then(Value::as_array);
                if told.is_some_and(|items| !items.is_empty()) {
                    return whole(response);
                }
                begun = Some(response);
            }
            Some(_) | None => {}
        }
    }
    for ((place, _), text) in texts {
        let item = items.entry(place).or_insert_with(|| json!({"type": "message", "content": []}));
        if let Some(content) = item["content"].as_array_mut() {
            content.push(json!({"type": "output_text", "text": text}));
        }
    }
    let mut document = begun?;
    document.insert("output".to_owned(), items.into_values().collect());
    whole(document)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(request: &Value) -> Vec<Role> {
        turns(request).unwrap().iter().map(|turn| turn.role).collect()
    }

    #[test]
    fn items_become_turns() {
        let request = json!({"model": "m", "instructions": "be brief", "input": "How many bees?"});
        assert_eq!(roles(&request), [Role::System, Role::User]);
        let request = json!({"input": [
            {"role": "user", "content": [{"type": "input_text", "text": "weigh it"}]},
            {"type": "reasoning", "id": "r", "summary": []},
            {"type": "function_call", "call_id": "c", "name": "weigh", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "18"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "18 kg"}]},
            {"role": "user", "content": "and now?"}]});
        assert_eq!(
            roles(&request),
            [Role::User, Role::Assistant, Role::Tool, Role::Assistant, Role::User]
        );
        for bad in [json!({}), json!({"input": 7}), json!({"input": ["x"]})] {
            assert!(turns(&bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn pieces_make_the_answer_that_one_document_would_have_been() {
        let item = json!({"type": "message", "role": "assistant", "id": "m1", "status": "completed",
            "content": [{"type": "output_text", "text": "forty thousand", "annotations": []}]});
        let response = |output: Value| json!({"id": "resp_1", "model": "m-1", "output": output});
        let events = [
            json!({"type": "response.created", "response": response(json!([]))}),
            json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "forty "}),
            json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "thousand"}),
            json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
            json!({"type": "response.completed", "response": response(json!([item]))}),
        ];
        let all = streamed(events.iter().cloned()).unwrap();
        let Value::Object(document) = response(json!([item])) else { panic!() };
        assert_eq!(all, whole(document).unwrap());
        assert_eq!(all.model.as_deref(), Some("m-1"));
        let without_end = streamed(events[..4].iter().cloned()).unwrap();
        assert_eq!(without_end.turn.content, all.turn.content);
        let cut = streamed(events[..2].iter().cloned()).unwrap();
        assert_eq!(cut.turn.content, json!([{"type": "output_text", "text": "forty "}]));
        assert!(streamed(events[..1].iter().cloned()).is_none(), "nothing was said yet");
    }

    #[test]
    fn the_oldest_answers_are_forgotten_first() {
        let thread = Thread {
            conversation: ConversationId::random(),
            messages: 2,
            last: MessageId::random(),
        };
        let mut threads = Threads::default();
        for number in 0..=REMEMBERED {
            threads.insert(number.to_string(), thread);
        }
        assert_eq!((threads.get("0"), threads.get("1")), (None, Some(thread)));
    }
}

//! What was asked and what was answered, as a conversation.
//!
//! A request repeats everything that was said before, so nothing has to be remembered between
//! two of them: a conversation is named by how it began, up to and with its first answer, and a
//! message by its place in it and what it says. What is stored already stays as it is.

use serde_json::{Map, Value, json};
use yore_canon::hash::Sha256;
use yore_domain::conversation::{Conversation, Message, Role};
use yore_domain::memory::Foreign;
use yore_domain::{ConversationId, MessageId, Timestamp};

use super::answer::{self, Answer};
use super::responses::{self, Thread};

/// In which form a provider is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Chat completions, as OpenAI has them.
    OpenAi,
    /// Responses, as OpenAI has them.
    Responses,
    /// Messages, as Anthropic has them.
    Anthropic,
}

impl Form {
    /// The form of what is posted to a path; nothing for everything that is no conversation.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let path = path.trim_end_matches('/');
        if path.ends_with("/chat/completions") {
            return Some(Self::OpenAi);
        }
        if path.ends_with("/responses") {
            return Some(Self::Responses);
        }
        path.ends_with("/v1/messages").then_some(Self::Anthropic)
    }

    /// The platform that a conversation is said to be of.
    pub(crate) const fn platform(self) -> &'static str {
        match self {
            Self::OpenAi | Self::Responses => "openai",
            Self::Anthropic => "anthropic",
        }
    }
}

/// One thing that was said.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Turn {
    pub(super) role: Role,
    pub(super) content: Value,
    /// The members that have no place of their own.
    pub(super) rest: Map<String, Value>,
}

impl Turn {
    /// Reads a message as a request or an answer has it.
    pub(super) fn of(mut message: Map<String, Value>) -> Option<Self> {
        let word = message.remove("role")?;
        let content = message.remove("content").unwrap_or_default();
        let role = match word.as_str()? {
            "user" if only_results(&content) => Role::Tool,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "system" | "developer" => Role::System,
            "tool" | "function" => Role::Tool,
            _ => return None,
        };
        message.retain(|_, value| !value.is_null());
        Some(Self { role, content, rest: message })
    }

    fn text(&self) -> String {
        words(&self.content)
    }

    /// What tells it from another turn at the same place.
    fn mark(&self) -> String {
        let calls = self.rest.get("tool_calls").map(Value::to_string).unwrap_or_default();
        let said = match (&self.content, self.text()) {
            // A text and one block of it are the same to a client that sends them back.
            (_, text) if !text.is_empty() => text,
            // Thinking beside a call need not be sent back with it.
            (Value::Array(_), _) if !calls.is_empty() => String::new(),
            (content, _) => content.to_string(),
        };
        format!("{:?}\n{said}\n{calls}", self.role)
    }
}

/// Whether a message of the person's holds nothing but what tools gave back.
fn only_results(content: &Value) -> bool {
    content.as_array().is_some_and(|blocks| {
        !blocks.is_empty() && blocks.iter().all(|block| block["type"] == "tool_result")
    })
}

/// The words of a content: no pictures, no thinking, no calls.
fn words(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter(|block| {
                matches!(block["type"].as_str(), Some("text" | "input_text" | "output_text"))
            });
            texts.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// A request for an answer.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    form: Form,
    turns: Vec<Turn>,
    model: Option<String>,
    /// The answer that this one goes on from, where only its name is sent.
    previous: Option<String>,
    /// The conversation that the provider keeps.
    kept: Option<String>,
    /// Where the recorded conversation goes on.
    thread: Option<Thread>,
}

impl Exchange {
    /// Reads a request; nothing when it is none.
    pub(crate) fn of(form: Form, request: &Value) -> Option<Self> {
        let turns = match form {
            Form::Responses => responses::turns(request)?,
            Form::OpenAi | Form::Anthropic => messages(form, request)?,
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let member = |name: &str| request.get(name).and_then(text);
        let is_kept = form == Form::Responses;
        let previous = member("previous_response_id").filter(|_| is_kept);
        let kept = request.get("conversation").filter(|_| is_kept);
        let kept = kept.and_then(|kept| text(kept).or_else(|| text(&kept["id"])));
        let model = member("model");
        let exchange = Self { form, turns, model, previous, kept, thread: None };
        (!exchange.turns.is_empty()).then_some(exchange)
    }

    /// The name of the answer that this one goes on from.
    pub(crate) fn previous(&self) -> Option<&str> {
        self.previous.as_deref()
    }

    /// Goes on with a conversation that is recorded already.
    pub(crate) fn going_on(self, thread: Option<Thread>) -> Self {
        Self { thread, ..self }
    }

    /// What the person asked last.
    pub(crate) fn question(&self) -> Option<String> {
        let asked = self.turns.iter().rfind(|turn| turn.role == Role::User)?;
        Some(asked.text()).filter(|text| !text.trim().is_empty())
    }

    /// The conversation with its answer, which came in these bytes. Nothing when there is none.
    pub(crate) fn answered(
        mut self,
        bytes: &[u8],
        stream: bool,
        whole: bool,
        now: Timestamp,
    ) -> Option<(Conversation, Vec<Message>)> {
        let Answer { turn, model, about } = match stream {
            true => answer::streamed(self.form, bytes)?,
            false => answer::whole(self.form, bytes)?,
        };
        let answered = self.turns.len();
        self.turns.push(turn);
        let id = self.thread.map_or_else(|| self.conversation(), |thread| thread.conversation);
        let begun = self.thread.map_or(0, |thread| thread.messages);
        // What the provider keeps is not repeated: the same words may come again and are said again.
        let round = self.kept.as_ref().and(about.get("id")).and_then(Value::as_str);
        let round = round.unwrap_or_default().to_owned();
        let platform = self.form.platform();
        let asked_of = self.model.take();
        let mut messages: Vec<Message> = Vec::with_capacity(self.turns.len());
        for (place, turn) in self.turns.iter().enumerate() {
            let mut own = turn.rest.clone();
            let mut said_by = None;
            if place == answered {
                own.insert("answer".to_owned(), Value::Object(about.clone()));
                let kept = self.kept.iter().map(|kept| ("conversation", kept));
                let previous = self.previous.iter().map(|previous| ("previous", previous));
                for (name, value) in kept.chain(previous) {
                    own.insert(name.to_owned(), Value::from(value.as_str()));
                }
                if !whole {
                    own.insert("partial".to_owned(), Value::from(true));
                }
                said_by = model.clone().or_else(|| asked_of.clone());
            }
            let mut foreign = Foreign::new();
            if !own.is_empty() {
                foreign.insert(platform.to_owned(), Value::Object(own));
            }
            messages.push(Message {
                id: named(&format!("{id}\n{round}{}\n{}", begun + place, turn.mark())),
                role: turn.role,
                content: turn.content.clone(),
                text: turn.text(),
                at: now,
                model: said_by,
                platform: Some(platform.to_owned()),
                parent: match messages.last() {
                    Some(before) => Some(before.id),
                    None => self.thread.map(|thread| thread.last),
                },
                off_path: false,
                attachments: Vec::new(),
                foreign,
            });
        }
        let first = self.turns.iter().find(|turn| turn.role == Role::User).map(Turn::text);
        let head = Conversation {
            id,
            title: first.as_deref().and_then(title),
            platform: platform.to_owned(),
            model: None,
            created: now,
            updated: now,
            scope: yore_domain::scope::Scope::default(),
            governance: yore_domain::class::Governance::default(),
            tags: Vec::new(),
            summary: None,
            language: None,
            foreign: Foreign::from([("yore".to_owned(), json!({"recorded": "proxy"}))]),
        };
        Some((head, messages))
    }

    /// A conversation is how it began, up to and with the first answer.
    fn conversation(&self) -> ConversationId {
        // What the provider keeps, or what this proxy has not heard, has a name of its own.
        if let Some(name) = self.kept.as_ref().or(self.previous.as_ref()) {
            return ConversationId::from_bytes(digest(&format!("proxy:openai:{name}")));
        }
        let first = self.turns.iter().position(|turn| turn.role == Role::Assistant);
        let begun = &self.turns[..=first.unwrap_or(self.turns.len() - 1)];
        let marks: Vec<String> = begun.iter().map(Turn::mark).collect();
        let text = format!("proxy:{}\n{}", self.form.platform(), marks.join("\n"));
        ConversationId::from_bytes(digest(&text))
    }
}

/// The turns of a request that repeats everything that was said.
fn messages(form: Form, request: &Value) -> Option<Vec<Turn>> {
    let mut turns = Vec::new();
    if form == Form::Anthropic
        && let Some(system) = request.get("system").filter(|system| !system.is_null())
    {
        let content = system.clone();
        turns.push(Turn { role: Role::System, content, rest: Map::new() });
    }
    for message in request.get("messages")?.as_array()? {
        turns.push(Turn::of(message.as_object()?.clone())?);
    }
    Some(turns)
}

/// Puts the frame with memories into a request: before what is asked, and never in its place.
pub(crate) fn framed(form: Form, mut request: Value, frame: &str) -> Value {
    match form {
        Form::OpenAi => {
            if let Some(messages) = request.get_mut("messages").and_then(Value::as_array_mut) {
                let asked = messages.iter().rposition(|message| message["role"] == "user");
                let place = asked.unwrap_or(messages.len());
                messages.insert(place, json!({"role": "system", "content": frame}));
            }
        }
        Form::Responses => {
            let told = request["instructions"].as_str().map(|told| format!("{told}\n\n{frame}"));
            request["instructions"] = Value::from(told.unwrap_or_else(|| frame.to_owned()));
        }
        Form::Anthropic => {
            let system = request.get("system").cloned().unwrap_or_default();
            request["system"] = match system {
                Value::String(text) => Value::from(format!("{text}\n\n{frame}")),
                Value::Array(mut blocks) => {
                    blocks.push(json!({"type": "text", "text": frame}));
                    Value::Array(blocks)
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
                    Value::from(frame)
                }
            };
        }
    }
    request
}

/// The first words of what was asked.
fn title(text: &str) -> Option<String> {
    let line = text.lines().find(|line| !line.trim().is_empty())?.trim();
    Some(line.chars().take(80).collect())
}

fn named(text: &str) -> MessageId {
    MessageId::from_bytes(digest(text))
}

/// The first half of a hash, with the bits of a UUID v4.
fn digest(text: &str) -> [u8; 16] {
    let digest = Sha256::of(text);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest.as_bytes()[..16]);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn said(request: &Value, answer: &str) -> (Conversation, Vec<Message>) {
        let exchange = Exchange::of(Form::OpenAi, request).unwrap();
        let bytes = json!({"id": "x", "model": "m-1", "choices": [{"index": 0,
            "finish_reason": "stop", "message": {"role": "assistant", "content": answer}}]});
        exchange.answered(bytes.to_string().as_bytes(), false, true, NOW).unwrap()
    }

    #[test]
    fn a_conversation_that_goes_on_is_the_same_and_repeats_its_messages() {
        let ask = |more: Vec<Value>| {
            let mut messages = vec![
                json!({"role": "system", "content": "be brief"}),
                json!({"role": "user", "content": "how many bees?"}),
            ];
            messages.extend(more);
            json!({"model": "m", "messages": messages})
        };
        let (first, one) = said(&ask(vec![]), "many");
        // The client sends the answer back as a block, which is the same answer.
        let back = json!({"role": "assistant", "content": [{"type": "text", "text": "many"}]});
        let more = ask(vec![back, json!({"role": "user", "content": "how many?"})]);
        let (second, two) = said(&more, "forty thousand");
        assert_eq!(first.id, second.id);
        assert_eq!((one.len(), two.len()), (3, 5));
        let ids = |messages: &[Message]| messages.iter().map(|one| one.id).collect::<Vec<_>>();
        assert_eq!(ids(&one), ids(&two)[..3]);
        assert_eq!(two[4].parent, Some(two[3].id));
        assert_eq!(
            (two[4].text.as_str(), two[4].model.as_deref()),
            ("forty thousand", Some("m-1"))
        );
        assert_eq!(first.title.as_deref(), Some("how many bees?"));
        let (other, _) = said(&ask(vec![]), "few");
        assert_ne!(first.id, other.id, "what begins alike and is answered otherwise is another");
    }

    #[test]
    fn only_conversations_are_recorded() {
        assert_eq!(Form::of("/v1/chat/completions"), Some(Form::OpenAi));
        assert_eq!(Form::of("/v1/messages"), Some(Form::Anthropic));
        assert_eq!(Form::of("/v1/responses"), Some(Form::Responses));
        assert_eq!(Form::of("/v1/responses/resp_1/cancel"), None);
        for other in ["/v1/embeddings", "/v1/messages/count_tokens", "/v1/models", "/"] {
            assert_eq!(Form::of(other), None, "{other}");
        }
        for request in [json!({}), json!({"messages": []}), json!({"messages": [{"role": "x"}]})] {
            assert!(Exchange::of(Form::OpenAi, &request).is_none(), "{request}");
        }
    }

    #[test]
    fn the_frame_comes_before_the_question_and_changes_nothing_else() {
        let request = json!({"model": "m", "messages": [{"role": "user", "content": "q"}], "n": 1});
        let framed_request = framed(Form::OpenAi, request.clone(), "F");
        assert_eq!(framed_request["messages"][0], json!({"role": "system", "content": "F"}));
        assert_eq!(framed_request["messages"][1], request["messages"][0]);
        assert_eq!(framed_request["n"], 1);
        let request = json!({"instructions": "s", "input": "q"});
        assert_eq!(framed(Form::Responses, request, "F")["instructions"], "s\n\nF");
        for (system, expected) in [
            (json!(null), json!("F")),
            (json!("s"), json!("s\n\nF")),
            (
                json!([{"type": "text", "text": "s"}]),
                json!([{"type": "text", "text": "s"}, {"type": "text", "text": "F"}]),
            ),
        ] {
            let request = json!({"system": system, "messages": []});
            assert_eq!(framed(Form::Anthropic, request, "F")["system"], expected);
        }
    }

    #[test]
    fn responses_go_on_by_what_they_repeat_by_name_and_where_the_provider_keeps_them() {
        let answer = |id: &str, items: Value| {
            json!({"id": id, "model": "m-1", "output": items}).to_string().into_bytes()
        };
        let told =
            |exchange: Exchange, bytes: &[u8]| exchange.answered(bytes, false, true, NOW).unwrap();
        let of = |request: &Value| Exchange::of(Form::Responses, request).unwrap();
        let call =
            json!({"type": "function_call", "call_id": "c", "name": "weigh", "arguments": "{}"});
        let thought = json!({"type": "reasoning", "id": "r", "summary": []});
        let first = json!({"model": "m", "input": "weigh it"});
        let (head, one) = told(of(&first), &answer("resp_1", json!([thought, call])));
        assert_eq!(one.len(), 2);
        // The client sends the call back with what it gave, and leaves out the thinking.
        let result = json!({"type": "function_call_output", "call_id": "c", "output": "18"});
        let second = json!({"input": [{"role": "user", "content": "weigh it"}, call, result]});
        let words = json!([{"type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": "18 kg"}]}]);
        let (same, two) = told(of(&second), &answer("resp_2", words.clone()));
        assert_eq!(head.id, same.id);
        assert_eq!([one[0].id, one[1].id], [two[0].id, two[1].id]);
        assert_eq!((two[3].text.as_str(), two[2].role), ("18 kg", Role::Tool));
        // Another names the answer before it only.
        let third = json!({"input": "sure?", "previous_response_id": "resp_2"});
        let thread = Thread { conversation: same.id, messages: 4, last: two[3].id };
        let (same, three) =
            told(of(&third).going_on(Some(thread)), &answer("resp_3", words.clone()));
        assert_eq!((head.id, three.len(), three[0].parent), (same.id, 2, Some(two[3].id)));
        assert_eq!(three[1].foreign["openai"]["previous"], "resp_2");
        let kept = json!({"input": "q", "conversation": {"id": "conv_1"}});
        let (a, _) = told(of(&kept), &answer("resp_4", words.clone()));
        let (b, _) = told(of(&kept), &answer("resp_5", words));
        assert!(a.id == b.id && a.id != head.id);
    }

    #[test]
    fn what_tools_gave_back_is_the_tools_word() {
        let request = json!({"system": "s", "messages": [
            {"role": "user", "content": "weigh it"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "w", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "18"}]}]});
        let exchange = Exchange::of(Form::Anthropic, &request).unwrap();
        let roles: Vec<Role> = exchange.turns.iter().map(|turn| turn.role).collect();
        assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Tool]);
        assert_eq!(exchange.question().as_deref(), Some("weigh it"));
    }
}

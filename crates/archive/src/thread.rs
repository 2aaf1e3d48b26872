//! From turns as a platform has them to a conversation as a vault has it.
//!
//! A connector says what each turn is and which one it follows; here the active path is found,
//! ids and missing times are filled in, and the native form is packed beside each message.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};
use yore_domain::class::Governance;
use yore_domain::conversation::{Attachment, Conversation, Message, Role};
use yore_domain::memory::Foreign;
use yore_domain::scope::Scope;
use yore_domain::{ConversationId, MessageId, Timestamp, limits};

use crate::item::{Blob, Talk};
use crate::json::Object;
use crate::tree::{self, Node};
use crate::{content, ids, residue};

pub(crate) use crate::tree::Leaf;

/// A conversation as it is read.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) platform: &'static str,
    /// The platform's own id of it.
    pub(crate) key: String,
    pub(crate) title: Option<String>,
    pub(crate) summary: Option<String>,
    pub(crate) created: Option<Timestamp>,
    pub(crate) updated: Option<Timestamp>,
    pub(crate) model: Option<String>,
    pub(crate) tags: Vec<String>,
    /// What it belongs to: projects, folders, repositories.
    pub(crate) context: Vec<Value>,
    /// More members to keep under the platform's name.
    pub(crate) extra: Object,
    pub(crate) turns: Vec<Turn>,
    /// The turn the active path ends at, if the source says.
    pub(crate) current: Option<String>,
    pub(crate) leaf: Leaf,
    pub(crate) blobs: Vec<Blob>,
    /// Places in the native form that repeat a turn's: their address, and the turn.
    pub(crate) repeats: Vec<(usize, String)>,
}

/// A place in a conversation; not every one was spoken at.
#[derive(Debug)]
pub(crate) struct Turn {
    /// The platform's own id of it.
    pub(crate) key: String,
    pub(crate) parent: Option<String>,
    pub(crate) at: Option<Timestamp>,
    pub(crate) said: Option<Said>,
}

/// What was said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) role: Role,
    pub(crate) content: Value,
    pub(crate) model: Option<String>,
    pub(crate) attachments: Vec<Attachment>,
    /// More members to keep under the platform's name.
    pub(crate) extra: Object,
    /// Members the archive format has for it.
    pub(crate) omp: Object,
    address: Option<usize>,
    packed: Option<Value>,
}

impl Said {
    /// Something said by someone.
    pub(crate) fn new(role: Role, content: Value) -> Self {
        Self {
            role,
            content,
            model: None,
            attachments: Vec::new(),
            extra: Object::new(),
            omp: Object::new(),
            address: None,
            packed: None,
        }
    }

    /// Keeps the native form it was made from.
    pub(crate) fn from(mut self, native: &Value) -> Self {
        self.packed = Some(residue::pack(native, &self.content));
        self.address = Some(residue::address(native));
        self
    }

    pub(crate) fn model(mut self, model: Option<&str>) -> Self {
        self.model = model.filter(|model| !model.is_empty()).map(str::to_owned);
        self
    }

    pub(crate) fn flag(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.extra.insert(name.to_owned(), value.into());
        self
    }
}

impl Thread {
    pub(crate) fn new(platform: &'static str, key: impl Into<String>) -> Self {
        Self {
            platform,
            key: key.into(),
            title: None,
            summary: None,
            created: None,
            updated: None,
            model: None,
            tags: Vec::new(),
            context: Vec::new(),
            extra: Object::new(),
            turns: Vec::new(),
            current: None,
            leaf: Leaf::Newest,
            blobs: Vec::new(),
            repeats: Vec::new(),
        }
    }

    /// Adds a turn that follows the one before it.
    pub(crate) fn follow(&mut self, key: impl Into<String>, at: Option<Timestamp>, said: Said) {
        let parent = self.turns.last().map(|turn| turn.key.clone());
        self.turns.push(Turn { key: key.into(), parent, at, said: Some(said) });
    }

    /// Attaches bytes and returns the attachment that names them.
    pub(crate) fn attach(
        &mut self,
        filename: &str,
        media_type: Option<&str>,
        blob: Option<Blob>,
    ) -> Attachment {
        let sniffed = blob
            .as_ref()
            .map(Blob::media_type)
            .filter(|found| *found != "text/plain" && *found != "application/octet-stream");
        let by_name = crate::sniff::by_name(filename);
        let plain = blob.as_ref().map(Blob::media_type);
        let media_type =
            sniffed.or(media_type).or(by_name).or(plain).unwrap_or("application/octet-stream");
        let attachment = Attachment {
            filename: if filename.is_empty() { "unnamed".into() } else { filename.into() },
            media_type: media_type.to_owned(),
            blob: blob.as_ref().map(|blob| blob.hash),
            size: blob.as_ref().map(|blob| blob.size),
            foreign: Foreign::new(),
        };
        if let Some(blob) = blob
            && !self.blobs.iter().any(|known| known.hash == blob.hash)
        {
            self.blobs.push(blob);
        }
        attachment
    }

    /// Attaches bytes that stand in the text as base64, with or without a `data:` prefix.
    pub(crate) fn attach_base64(
        &mut self,
        filename: &str,
        media_type: Option<&str>,
        data: &str,
    ) -> Attachment {
        let (media_type, data) = match data.strip_prefix("data:").and_then(|d| d.split_once(',')) {
            Some((kind, data)) => (kind.split(';').next().or(media_type), data),
            None => (media_type, data),
        };
        let clean: Vec<u8> = data.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let bytes = data_encoding::BASE64.decode(&clean).ok();
        self.attach(filename, media_type, bytes.map(Blob::new))
    }

    /// Keeps what is no message, as far as it is small.
    pub(crate) fn events(&mut self, events: Vec<Value>) {
        const BYTES: usize = 1 << 20;
        let (mut kept, mut left, mut size) = (Vec::new(), 0_u64, 0);
        for event in events {
            size += event.to_string().len();
            if size <= BYTES { kept.push(event) } else { left += 1 }
        }
        if !kept.is_empty() {
            self.extra.insert("events".into(), Value::Array(kept));
        }
        if left > 0 {
            self.extra.insert("events_left_out".into(), Value::from(left));
        }
    }

    /// Makes the conversation. `native` is the value that the turns' native forms lie in.
    pub(crate) fn finish(self, native: Option<&Value>) -> Talk {
        let Self { platform, key, turns, .. } = &self;
        let nodes: Vec<Node> = turns
            .iter()
            .map(|turn| Node {
                key: turn.key.clone(),
                parent: turn.parent.clone(),
                at: turn.at,
                spoken: turn.said.is_some(),
            })
            .collect();
        let paths = tree::paths(&nodes, self.current.as_deref(), self.leaf);
        let ids = self.message_ids();
        let first = turns.iter().filter_map(|turn| turn.at).min();
        let created = self.created.or(first).unwrap_or_default();

        let mut times: Vec<Option<Timestamp>> = turns.iter().map(|turn| turn.at).collect();
        let mut before = created;
        let on_path = paths.active.iter().map(|place| (*place, false));
        let order: Vec<(usize, bool)> =
            on_path.chain(paths.left.iter().map(|place| (*place, true))).collect();
        for (place, _) in &order {
            if turns[*place].said.is_some() {
                let above = paths.above[*place].and_then(|above| times[above]);
                let time = times[*place].or(above).unwrap_or(before);
                times[*place] = Some(time);
                before = time;
            }
        }
        let last = times.iter().flatten().max().copied();
        let updated = self.updated.or(last).unwrap_or(created).max(created);
        let id = ids::conversation(platform, key);
        let repeated = self.repeats.iter();
        let mut addresses: HashMap<usize, String> =
            repeated.map(|(address, turn)| (*address, self.message_id(turn).to_string())).collect();
        let mut slots: Vec<Option<Message>> = Vec::new();
        let mut native_key = Vec::new();
        let (platform, context) = (self.platform, self.context);
        let key = self.key.clone();
        for (turn, (message, time)) in
            self.turns.into_iter().zip(ids.iter().copied().zip(times.iter().copied()))
        {
            let synthetic = turn.at.is_none();
            native_key.push(turn.key);
            let Some(said) = turn.said else {
                slots.push(None);
                continue;
            };
            if let Some(address) = said.address {
                addresses.insert(address, message.to_string());
            }
            let spelled = native_key.last().filter(|key| **key != message.to_string());
            slots.push(Some(message_of(
                platform,
                said,
                message,
                time.unwrap_or(created),
                synthetic,
                spelled.map(String::as_str),
            )));
        }
        let mut messages = Vec::with_capacity(slots.len());
        for (place, off_path) in order {
            if let Some(mut message) = slots[place].take() {
                message.off_path = off_path;
                message.parent = paths.above[place].map(|above| ids[above]);
                messages.push(message);
            }
        }
        let model = self.model.or_else(|| one_model(&messages));
        let mut own = self.extra;
        if let Some(native) = native {
            own.insert(residue::NATIVE.into(), residue::skeleton(native, &addresses));
        }
        if key != id.to_string() {
            own.insert("conversation_id".into(), Value::from(key));
        }
        let mut foreign = Foreign::new();
        if !own.is_empty() {
            foreign.insert(platform.to_owned(), Value::Object(own));
        }
        if !context.is_empty() {
            foreign.insert("omp".to_owned(), json!({"context": context}));
        }
        let mut tags = self.tags;
        tags.retain(|tag| !tag.is_empty() && tag.len() <= limits::NAME_BYTES);
        tags.truncate(limits::TAGS);
        let head = Conversation {
            id,
            title: self.title.filter(|title| !title.trim().is_empty()),
            platform: platform.to_owned(),
            model,
            created,
            updated,
            scope: Scope::default(),
            governance: Governance::default(),
            tags,
            summary: self.summary.filter(|summary| !summary.trim().is_empty()),
            language: None,
            foreign,
        };
        Talk { head, messages, blobs: self.blobs, print: None }
    }

    /// Returns the id the conversation will have.
    pub(crate) fn id(&self) -> ConversationId {
        ids::conversation(self.platform, &self.key)
    }

    /// Returns the id a turn's message will have.
    pub(crate) fn message_id(&self, key: &str) -> MessageId {
        ids::message(self.platform, &self.key, key)
    }

    /// Two turns of one name are two messages.
    fn message_ids(&self) -> Vec<MessageId> {
        let mut seen = HashSet::new();
        self.turns
            .iter()
            .map(|turn| {
                let mut id = self.message_id(&turn.key);
                let mut again = 2;
                while !seen.insert(id) {
                    id = self.message_id(&format!("{}#{again}", turn.key));
                    again += 1;
                }
                id
            })
            .collect()
    }
}

fn message_of(
    platform: &str,
    said: Said,
    id: MessageId,
    at: Timestamp,
    synthetic: bool,
    native_key: Option<&str>,
) -> Message {
    let Said { role, content, model, attachments, extra: mut own, mut omp, packed, .. } = said;
    if let Some(packed) = packed {
        own.insert(residue::NATIVE.into(), packed);
    }
    if let Some(key) = native_key {
        own.insert("message_id".into(), Value::from(key));
    }
    if synthetic {
        omp.insert("extensions".into(), json!({"omp_synthetic_timestamp": true}));
    }
    let mut foreign = Foreign::new();
    if !own.is_empty() {
        foreign.insert(platform.to_owned(), Value::Object(own));
    }
    if !omp.is_empty() {
        foreign.insert("omp".to_owned(), Value::Object(omp));
    }
    Message {
        id,
        role,
        text: content::words(&content),
        content,
        at,
        model,
        platform: Some(platform.to_owned()),
        parent: None,
        off_path: false,
        attachments,
        foreign,
    }
}

/// The model, when one spoke throughout.
fn one_model(messages: &[Message]) -> Option<String> {
    let mut models = messages
        .iter()
        .filter(|message| message.role == Role::Assistant && !message.off_path)
        .map(|message| message.model.as_deref());
    let first = models.next()??;
    models.all(|model| model == Some(first)).then(|| first.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_times_come_from_the_message_before_and_say_so() {
        let mut thread = Thread::new("x", "c");
        let said = || Said::new(Role::User, Value::from("hi"));
        thread.follow("a", Some(Timestamp::from_micros(5_000_000)), said());
        thread.follow("b", None, said());
        let talk = thread.finish(None);
        assert_eq!(talk.messages[1].at, talk.messages[0].at);
        assert_eq!(
            talk.messages[1].foreign["omp"]["extensions"]["omp_synthetic_timestamp"],
            json!(true)
        );
        assert!(!talk.messages[0].foreign.contains_key("omp"));
        assert_eq!(talk.head.created, talk.messages[0].at);
    }

    #[test]
    fn two_turns_of_one_name_are_two_messages() {
        let mut thread = Thread::new("x", "c");
        thread.follow("a", None, Said::new(Role::User, Value::from("one")));
        thread.follow("a", None, Said::new(Role::User, Value::from("two")));
        let talk = thread.finish(None);
        assert_eq!(talk.messages.len(), 2);
        assert_ne!(talk.messages[0].id, talk.messages[1].id);
    }
}

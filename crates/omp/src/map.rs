//! From documents to the model and back, by the archive's own mapping.
//!
//! An archive has its attachments beside the documents; over REST their bytes come inside them
//! and go out as addresses.

use serde_json::{Map, Value, json};
use yore_archive::omp::{attachment_path, conversation_json, message_from, message_json};
use yore_archive::omp::{conversation_from, memory_json};
use yore_canon::encode::from_base64;
use yore_domain::conversation::{Conversation, Message};
use yore_domain::memory::Memory;
use yore_domain::{BlobHash, ConversationId, MessageId, Timestamp};
use yore_engine::{Listed, Talk};

use crate::error::{Refusal, Result};
use crate::flags::{self, Flags};
use crate::links::Links;

/// A JSON object.
pub(crate) type Object = Map<String, Value>;

/// What a client sent: messages and the bytes that came inside them.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    pub(crate) messages: Vec<Message>,
    pub(crate) attached: Vec<Vec<u8>>,
}

/// Whether ids that are not the protocol's are taken, under ids made of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    Mapped,
    Strict,
}

/// Reads a conversation. One message that is not valid refuses all of it.
pub(crate) fn conversation(
    mut object: Object,
    links: &Links,
    ids: Ids,
) -> Result<(Conversation, Sent)> {
    checked_id(&object, ids)?;
    flags::check(&object)?;
    let (mut attached, mut said) = (Vec::new(), Flags::default());
    if let Some(Value::Array(messages)) = object.get_mut("messages") {
        for message in messages.iter_mut().filter_map(Value::as_object_mut) {
            prepared(message, links, ids, &mut attached)?;
            said = said.or(Flags::of(message));
        }
    }
    said.inherit(&mut object);
    let mut wrong = Vec::new();
    let (head, mut messages) = conversation_from(object, &mut wrong)?;
    if let Some((_, reason)) = wrong.first() {
        let errors = wrong.iter().map(|(id, reason)| json!({"id": id, "reason": reason}));
        let errors: Vec<Value> = errors.collect();
        return Err(Refusal::new(400, "invalid_request", reason).with("errors", errors));
    }
    messages.iter_mut().for_each(|message| placed(message, &head));
    Ok((head, Sent { messages, attached }))
}

/// Reads messages for a conversation: one, or a list of them.
pub(crate) fn messages(value: Value, head: &Conversation, links: &Links, ids: Ids) -> Result<Sent> {
    let values = match value {
        Value::Array(values) => values,
        one @ (Value::Object(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)) => vec![one],
    };
    let own = head.foreign.get(&head.platform);
    let native = own.and_then(|own| own.get("conversation_id")).and_then(Value::as_str);
    let native = native.map_or_else(|| head.id.to_string(), str::to_owned);
    let mut sent = Sent::default();
    for mut value in values {
        if let Some(message) = value.as_object_mut() {
            prepared(message, links, ids, &mut sent.attached)?;
        }
        let mut message = message_from(value, &head.platform, &native)?;
        placed(&mut message, head);
        sent.messages.push(message);
    }
    Ok(sent)
}

/// A message that does not say where it was said was said where its conversation was.
fn placed(message: &mut Message, head: &Conversation) {
    message.platform.get_or_insert_with(|| head.platform.clone());
}

fn prepared(
    message: &mut Object,
    links: &Links,
    ids: Ids,
    attached: &mut Vec<Vec<u8>>,
) -> Result<()> {
    checked_id(message, ids)?;
    flags::check(message)?;
    let Some(Value::Array(attachments)) = message.get_mut("attachments") else { return Ok(()) };
    for attachment in attachments.iter_mut().filter_map(Value::as_object_mut) {
        if let Some(bytes) = detached(attachment, links)? {
            attached.push(bytes);
        }
    }
    Ok(())
}

/// Takes the bytes out of an attachment and leaves their place instead.
fn detached(attachment: &mut Object, links: &Links) -> Result<Option<Vec<u8>>> {
    let Some(data) = attachment.get("data").and_then(Value::as_str) else { return Ok(None) };
    let (blob, bytes) = match (links.named(data), data.split_once(';')) {
        (Some(blob), _) => (blob, None),
        (None, Some((_, rest))) if data.starts_with("data:") => {
            let bytes = rest.strip_prefix("base64,").map(from_base64);
            let bytes = bytes.and_then(|bytes| bytes.ok()).ok_or_else(not_base64)?;
            (BlobHash::of(&bytes), Some(bytes))
        }
        // An address elsewhere, a place in an archive, or nothing.
        (None, _) if data.is_empty() || data.contains(':') || data.starts_with("attachments/") => {
            return Ok(None);
        }
        (None, _) => {
            let bytes = from_base64(data).map_err(|_| not_base64())?;
            (BlobHash::of(&bytes), Some(bytes))
        }
    };
    let media_type = attachment.get("media_type").and_then(Value::as_str).unwrap_or_default();
    let path = attachment_path(blob, media_type);
    attachment.insert("data".into(), path.into());
    if let Some(bytes) = &bytes {
        attachment.insert("size_bytes".into(), bytes.len().into());
    }
    Ok(bytes)
}

fn not_base64() -> Refusal {
    Refusal::invalid("attachments.data", "is neither base64 nor an address")
}

fn checked_id(object: &Object, ids: Ids) -> Result<()> {
    let Some(text) = object.get("id").and_then(Value::as_str).filter(|_| ids == Ids::Strict) else {
        return Ok(());
    };
    let v4 = text.parse::<MessageId>().is_ok_and(|id| {
        let bytes = id.bytes();
        bytes[6] >> 4 == 4 && bytes[8] >> 6 == 2 && id.to_string() == text
    });
    if v4 { Ok(()) } else { Err(Refusal::invalid("id", "must be a UUID of version 4")) }
}

/// Writes a conversation. Where messages name the one they follow, the order is the source's;
/// otherwise it is that of their times, and of their arrival where these are equal.
pub(crate) fn conversation_out(mut talk: Talk, links: &Links) -> Object {
    if talk.messages.iter().all(|message| message.parent.is_none()) {
        talk.messages.sort_by_key(|message| message.at);
    }
    let path = |blob| Some(links.attachment(blob));
    let mut object = own_named(conversation_json(&talk.head, &talk.messages, &path));
    if talk.held {
        object.insert("x_regulatory_hold".into(), true.into());
    }
    let branches = format!("{}_branches", talk.head.platform);
    each_own_named(object.get_mut("messages"));
    let extensions = object.get_mut("extensions");
    each_own_named(extensions.and_then(|extensions| extensions.get_mut(branches.as_str())));
    object
}

/// Writes a conversation without its messages.
pub(crate) fn listed_out(listed: &Listed) -> Object {
    let mut object = own_named(conversation_json(&listed.head, &[], &|_| None));
    object.shift_remove("messages");
    object.insert("message_count".into(), listed.messages.into());
    object
}

/// Writes a message.
pub(crate) fn message_out(message: &Message, links: &Links) -> Object {
    own_named(message_json(message, &|blob| Some(links.attachment(blob))))
}

/// Writes a memory.
/// One whose time is over no longer holds, whatever else is said of it.
pub(crate) fn memory_out(memory: &Memory, now: Timestamp) -> Object {
    let created = memory.since.min(memory.head.time.created);
    let mut object = own_named(memory_json(&memory.head, created));
    if has_expired(memory, now) {
        object.insert("active".into(), false.into());
    }
    if memory.legal_hold {
        object.insert("x_regulatory_hold".into(), true.into());
    }
    let from = memory.head.content.provenance.messages.iter();
    let mut talks: Vec<ConversationId> = from.map(|from| from.conversation).collect();
    talks.dedup();
    if !talks.is_empty() {
        object.insert("source_conversations".into(), json!(talks));
    }
    object
}

/// Whether the time of a record is over.
pub(crate) fn has_expired(memory: &Memory, now: Timestamp) -> bool {
    memory.head.content.lifecycle.expires.is_some_and(|at| at <= now)
}

/// A document under the id by which it is asked for here. An archive has no place for every id,
/// and keeps such a one beside the document's own.
fn own_named(value: Value) -> Object {
    let mut object = members(value);
    let own = object.get_mut("x_yore").and_then(Value::as_object_mut);
    let Some((id, rest)) = own.and_then(|own| Some((own.shift_remove("id")?, own.len()))) else {
        return object;
    };
    if rest == 0 {
        object.shift_remove("x_yore");
    }
    object.insert("id".into(), id);
    object
}

fn each_own_named(list: Option<&mut Value>) {
    for message in list.and_then(Value::as_array_mut).into_iter().flatten() {
        *message = Value::Object(own_named(message.take()));
    }
}

fn members(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Object::new()
        }
    }
}

/// What is told of something that may not be shown.
pub(crate) fn only_id(id: impl serde::Serialize) -> Object {
    members(json!({"id": id}))
}

/// Reads an id in a path; what is none names nothing.
pub(crate) fn conversation_id(text: &str) -> Result<ConversationId> {
    text.parse().map_err(|_| yore_domain::Error::NotFound.into())
}

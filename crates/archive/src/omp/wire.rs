//! Conversations and messages in the archive's JSON, and back.
//!
//! Members the model has no place for are kept under `omp`; extensions of a platform under the
//! platform's name without its prefix. So what was read is written again, whoever wrote it first.

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use yore_domain::class::Governance;
use yore_domain::conversation::{Attachment, Conversation, Message, Role};
use yore_domain::memory::Foreign;
use yore_domain::scope::Scope;
use yore_domain::{BlobHash, ConversationId, MessageId, Timestamp};

use super::{attachment_at, entry_id, protect};
use crate::json::{Look, Object};
use crate::{Error, Result, content, ids, time};

/// The name under which the format's own members are kept.
const OMP: &str = "omp";
const ROLES: [(&str, Role); 4] = [
    ("user", Role::User),
    ("assistant", Role::Assistant),
    ("system", Role::System),
    ("tool", Role::Tool),
];

/// Where an attachment lies, if it is there.
pub(super) type Paths<'a> = &'a dyn Fn(BlobHash) -> Option<String>;

/// Returns a conversation in the archive's form. `path` says where an attachment lies.
#[must_use]
pub fn conversation_json(
    head: &Conversation,
    messages: &[Message],
    path: &dyn Fn(BlobHash) -> Option<String>,
) -> Value {
    let mut out = Object::new();
    let (active, left): (Vec<&Message>, Vec<&Message>) =
        messages.iter().partition(|message| !message.off_path);
    out.insert("id".into(), json!(ConversationId::from_bytes(entry_id(head.id.bytes()))));
    put(&mut out, "title", head.title.as_deref());
    out.insert("created_at".into(), Value::from(head.created.to_string()));
    out.insert("updated_at".into(), Value::from(head.updated.to_string()));
    out.insert("platform".into(), Value::from(head.platform.as_str()));
    put(&mut out, "model", head.model.as_deref());
    out.insert("message_count".into(), Value::from(active.len()));
    if !head.tags.is_empty() {
        out.insert("tags".into(), json!(head.tags));
    }
    put(&mut out, "summary", head.summary.as_deref());
    put(&mut out, "language", head.language.as_deref());
    let said: Vec<Value> = active.iter().map(|message| message_json(message, path)).collect();
    out.insert("messages".into(), Value::Array(said));
    protect::labels_out(&head.governance, &mut out);
    let mut extensions = foreign_out(&head.foreign, &mut out);
    if !left.is_empty() {
        let branches: Vec<Value> = left.iter().map(|message| message_json(message, path)).collect();
        extensions.insert(format!("{}_branches", head.platform), Value::Array(branches));
        let name = format!("{}_tree", head.platform);
        extensions.entry(name).or_insert_with(|| tree(messages));
    }
    if !extensions.is_empty() {
        out.insert("extensions".into(), Value::Object(extensions));
    }
    let mut own = Object::new();
    if head.scope != Scope::default() || head.governance != Governance::default() {
        own.insert("scope".into(), json!(head.scope));
        own.insert("governance".into(), json!(head.governance));
    }
    own_id(&mut own, head.id.bytes(), head.id.to_string());
    if !own.is_empty() {
        out.insert("x_yore".into(), Value::Object(own));
    }
    Value::Object(out)
}

/// Returns a message in the archive's form.
#[must_use]
pub fn message_json(message: &Message, path: &dyn Fn(BlobHash) -> Option<String>) -> Value {
    let mut out = Object::new();
    let mut own = Object::new();
    out.insert("id".into(), json!(MessageId::from_bytes(entry_id(message.id.bytes()))));
    own_id(&mut own, message.id.bytes(), message.id.to_string());
    let role = ROLES.iter().find(|(_, role)| *role == message.role).map_or("user", |(w, _)| w);
    out.insert("role".into(), Value::from(role));
    let said = if check_content(&message.content).is_ok() {
        relocated(&message.content, path)
    } else {
        // Others read the words of it; what was said stands beside them.
        own.insert("content".into(), message.content.clone());
        Value::from(message.text.as_str())
    };
    if message.text != content::words(&said) {
        own.insert("text".into(), Value::from(message.text.as_str()));
    }
    out.insert("content".into(), said);
    out.insert("timestamp".into(), Value::from(message.at.to_string()));
    let spoke = matches!(message.role, Role::Assistant | Role::Tool);
    match &message.model {
        None if spoke => {
            out.insert("model".into(), Value::from("unknown"));
            out.insert("x_model_source".into(), Value::from("unknown"));
        }
        model => {
            out.insert("model".into(), json!(model));
        }
    }
    out.insert("platform".into(), json!(message.platform));
    if !message.attachments.is_empty() {
        let list = message.attachments.iter().map(|one| attachment_json(one, path)).collect();
        out.insert("attachments".into(), Value::Array(list));
    }
    if let Some(parent) = message.parent {
        out.insert("x_parent".into(), json!(parent));
    }
    if !own.is_empty() {
        out.insert("x_yore".into(), Value::Object(own));
    }
    let extensions = foreign_out(&message.foreign, &mut out);
    if !extensions.is_empty() {
        out.insert("extensions".into(), Value::Object(extensions));
    }
    Value::Object(out)
}

/// Keeps an id that the format has no place for.
pub(super) fn own_id(own: &mut Object, id: [u8; 16], text: String) {
    if entry_id(id) != id {
        own.insert("id".into(), Value::from(text));
    }
}

fn attachment_json(attachment: &Attachment, path: Paths<'_>) -> Value {
    let mut out = Object::new();
    out.insert("filename".into(), Value::from(attachment.filename.as_str()));
    out.insert("media_type".into(), Value::from(attachment.media_type.as_str()));
    match (attachment.blob, attachment.blob.and_then(path)) {
        (Some(blob), Some(path)) => {
            out.insert("data".into(), Value::from(path));
            out.insert("x_sha256".into(), json!(blob));
        }
        // An address elsewhere, or bytes that stand in the text.
        (None, _) if kept(&attachment.foreign, "data") => {}
        (blob, _) => {
            out.insert("data".into(), Value::from(""));
            out.insert("x_missing".into(), Value::from(true));
            if let Some(blob) = blob {
                out.insert("x_sha256".into(), json!(blob));
            }
        }
    }
    if let Some(size) = attachment.size {
        out.insert("size_bytes".into(), Value::from(size));
    }
    let extensions = foreign_out(&attachment.foreign, &mut out);
    if !extensions.is_empty() {
        out.insert("x_extensions".into(), Value::Object(extensions));
    }
    Value::Object(out)
}

fn kept(foreign: &Foreign, name: &str) -> bool {
    foreign.get(OMP).is_some_and(|own| own.get(name).is_some())
}

/// Blocks that point into the archive follow their attachment to where it lies.
fn relocated(content: &Value, path: Paths<'_>) -> Value {
    let Some(blocks) = content.as_array() else { return content.clone() };
    let moved = blocks.iter().map(|block| {
        let lies = block.text("data").and_then(attachment_at).and_then(path);
        match lies {
            Some(path) => content::with(block.clone(), "data", path),
            None => block.clone(),
        }
    });
    moved.collect()
}

/// Writes the members kept for the format, and returns the extensions.
fn foreign_out(foreign: &Foreign, out: &mut Object) -> Object {
    let mut extensions = Object::new();
    for (name, kept) in foreign {
        let Some(kept) = kept.as_object() else { continue };
        if name != OMP {
            extensions
                .extend(kept.iter().map(|(key, value)| (format!("{name}_{key}"), value.clone())));
            continue;
        }
        for (key, value) in kept {
            match (key.as_str(), value.as_object()) {
                ("extensions", Some(own)) => extensions.extend(own.clone()),
                // What the model says cannot be overruled by what was kept.
                _ => {
                    out.entry(key.clone()).or_insert_with(|| value.clone());
                }
            }
        }
    }
    extensions
}

fn tree(messages: &[Message]) -> Value {
    let mut children: Map<String, Value> = Map::new();
    for message in messages {
        if let Some(parent) = message.parent {
            let list = children.entry(parent.to_string()).or_insert_with(|| json!([]));
            if let Some(list) = list.as_array_mut() {
                list.push(json!(message.id));
            }
        }
    }
    let nodes: Object = messages
        .iter()
        .map(|message| {
            let id = message.id.to_string();
            let below = children.remove(&id).unwrap_or_else(|| json!([]));
            let entry = MessageId::from_bytes(entry_id(message.id.bytes()));
            let node = json!({"parent": message.parent, "children": below, "message_id": entry});
            (message.id.to_string(), node)
        })
        .collect();
    let current = messages.iter().rfind(|message| !message.off_path).map(|message| message.id);
    json!({"current": current, "nodes": nodes})
}

fn put(out: &mut Object, name: &str, text: Option<&str>) {
    if let Some(text) = text {
        out.insert(name.to_owned(), Value::from(text));
    }
}

/// Reads a conversation. Messages that are not valid are listed with their reason.
pub fn conversation_from(
    mut object: Object,
    wrong: &mut Vec<(String, String)>,
) -> Result<(Conversation, Vec<Message>)> {
    let native = id_of(&object)?;
    let platform = match object.remove("platform").as_ref().and_then(Value::as_str) {
        Some(platform) if !platform.is_empty() => platform.to_owned(),
        Some(_) | None => return Err(invalid("platform", "must be a text")),
    };
    object.remove("id");
    let place = object.remove("x_yore").unwrap_or_default();
    let kept = place.text("id").and_then(|id| id.parse().ok());
    let id = kept.unwrap_or_else(|| ids::conversation(&platform, &native));
    let mut foreign = Foreign::new();
    if kept.is_none() && id.to_string() != native {
        keep(&mut foreign, &platform, "conversation_id", Value::from(native.as_str()));
    }
    let mut zoneless = false;
    let created = time_of(&mut object, "created_at", &mut zoneless)?;
    let updated = time_of(&mut object, "updated_at", &mut zoneless)?;
    let said = object.remove("messages").unwrap_or(Value::Null);
    let Value::Array(said) = said else { return Err(invalid("messages", "must be a list")) };
    object.remove("message_count");
    let mut text = |name: &str| {
        let value = object.remove(name)?;
        value.as_str().map(str::to_owned)
    };
    let (title, model) = (text("title"), text("model"));
    let (summary, language) = (text("summary"), text("language"));
    let tags = object.remove("tags").unwrap_or_default();
    let tags = tags.as_array().into_iter().flatten().filter_map(Value::as_str);
    let tags = tags.map(str::to_owned).collect();

    let mut messages = Vec::with_capacity(said.len());
    let mut taken = HashSet::new();
    let mut take = |said: Vec<Value>, off_path: bool, messages: &mut Vec<Message>| {
        for (place, value) in said.into_iter().enumerate() {
            let name = value.filled("id").map(str::to_owned);
            let name = name.unwrap_or_else(|| format!("message {}", place + 1));
            match message_from(value, &platform, &native) {
                Ok(message) if taken.insert(message.id) => {
                    messages.push(Message { off_path, ..message });
                }
                Ok(_) => wrong.push((name, "its id is another message's".to_owned())),
                Err(error) => wrong.push((name, error.to_string())),
            }
        }
    };
    take(said, false, &mut messages);
    let branches = object
        .get_mut("extensions")
        .and_then(Value::as_object_mut)
        .and_then(|extensions| extensions.remove(&format!("{platform}_branches")));
    if let Some(Value::Array(branches)) = branches {
        take(branches, true, &mut messages);
    }
    let made = tree(&messages);
    if let Some(extensions) = object.get_mut("extensions").and_then(Value::as_object_mut) {
        let name = format!("{platform}_tree");
        if extensions.get(&name) == Some(&made) {
            extensions.remove(&name);
        }
    }
    let part = |name: &str| place.get(name).cloned().unwrap_or_else(|| json!({}));
    let mut governance: Governance = serde_json::from_value(part("governance")).unwrap_or_default();
    protect::labels_in(&mut object, &mut governance);
    // A flag on any message is one of its conversation.
    for (name, sort) in protect::PROTECTED {
        let set = |message: &Message| message.foreign.get(OMP)?.get(name)?.as_bool();
        if messages.iter().any(|message| set(message) == Some(true)) {
            protect::raise(&mut governance, sort);
        }
    }
    foreign_in(object, &mut foreign);
    if zoneless {
        flag(&mut foreign, "omp_assumed_utc");
    }
    let head = Conversation {
        id,
        title,
        platform,
        model,
        created,
        updated,
        scope: serde_json::from_value(part("scope")).unwrap_or_default(),
        governance,
        tags,
        summary,
        language,
        foreign,
    };
    Ok((head, messages))
}

/// Reads a message of a conversation, which is named as its platform names it.
pub fn message_from(value: Value, platform: &str, conversation: &str) -> Result<Message> {
    let Value::Object(mut object) = value else { return Err(invalid("message", "not an object")) };
    let native = id_of(&object)?;
    object.remove("id");
    let role = object.remove("role");
    let role = role.as_ref().and_then(Value::as_str).unwrap_or_default();
    let role = ROLES
        .iter()
        .find(|(word, _)| *word == role)
        .map(|(_, role)| *role)
        .ok_or_else(|| invalid("role", "must be user, assistant, system or tool"))?;
    let content = object.remove("content").unwrap_or_default();
    check_content(&content)?;
    let own = object.remove("x_yore").unwrap_or_default();
    let text = own.text("text").map_or_else(|| content::words(&content), str::to_owned);
    let content = own.get("content").cloned().unwrap_or(content);
    let mut zoneless = false;
    let at = time_of(&mut object, "timestamp", &mut zoneless)?;
    let unknown = object.text("x_model_source") == Some("unknown");
    if unknown {
        object.remove("x_model_source");
    }
    let model = object.remove("model").unwrap_or_default();
    let model = model.as_str().filter(|_| !unknown).map(str::to_owned);
    let said_on = object.remove("platform").unwrap_or_default();
    let parent = object.remove("x_parent").unwrap_or_default();
    let attachments = object.remove("attachments").unwrap_or_default();
    let attachments = attachments.as_array().map_or(&[][..], Vec::as_slice);
    let attachments = attachments.iter().map(attachment_from).collect::<Result<_>>()?;
    let kept = own.text("id").and_then(|id| id.parse().ok());
    let id = kept.unwrap_or_else(|| ids::message(platform, conversation, &native));
    let mut foreign = Foreign::new();
    foreign_in(object, &mut foreign);
    if kept.is_none() && id.to_string() != native {
        keep(&mut foreign, platform, "message_id", Value::from(native));
    }
    if zoneless {
        flag(&mut foreign, "omp_assumed_utc");
    }
    Ok(Message {
        id,
        role,
        text,
        content,
        at,
        model,
        platform: said_on.as_str().map(str::to_owned),
        parent: parent.as_str().and_then(|parent| parent.parse::<MessageId>().ok()),
        off_path: false,
        attachments,
        foreign,
    })
}

/// A block without its type, or without what its type must have, is no block.
fn check_content(content: &Value) -> Result<()> {
    if content.is_string() {
        return Ok(());
    }
    let Some(blocks) = content.as_array() else {
        return Err(invalid("content", "must be a text or a list of blocks"));
    };
    for (place, block) in blocks.iter().enumerate() {
        let path = format!("content[{place}]");
        let Some(kind) = block.text("type") else { return Err(invalid(path, "has no type")) };
        let needed: &[&str] = match kind {
            "text" => &["text"],
            "image" => &["media_type", "data"],
            "document" => &["media_type", "data", "filename"],
            "code" => &["language", "text"],
            "tool_result" => &["tool_name", "output"],
            "tool_use" => &["tool_name"],
            // What is not known is kept as it is.
            _ => &[],
        };
        for name in needed {
            if block.text(name).is_none() {
                return Err(invalid(format!("{path}.{name}"), "must be a text"));
            }
        }
        if kind == "tool_use" && block.inner("tool_input").is_none() {
            return Err(invalid(format!("{path}.tool_input"), "must be an object"));
        }
    }
    Ok(())
}

fn attachment_from(value: &Value) -> Result<Attachment> {
    let Some(object) = value.as_object() else {
        return Err(invalid("attachments", "not an object"));
    };
    let need = |name: &str| {
        let text = object.text(name).map(str::to_owned);
        text.ok_or_else(|| invalid(format!("attachments.{name}"), "must be a text"))
    };
    let (filename, media_type, data) = (need("filename")?, need("media_type")?, need("data")?);
    let mut rest = object.clone();
    for name in ["filename", "media_type", "size_bytes"] {
        rest.remove(name);
    }
    let lies = attachment_at(&data);
    let missing = data.is_empty();
    if lies.is_some() || missing {
        rest.remove("data");
        rest.remove("x_missing");
    }
    if lies.is_some() {
        rest.remove("x_sha256");
    }
    let mut foreign = Foreign::new();
    if let Some(Value::Object(extensions)) = rest.remove("x_extensions") {
        rest.insert("extensions".into(), Value::Object(extensions));
    }
    foreign_in(rest, &mut foreign);
    let size = object.get("size_bytes").and_then(Value::as_u64);
    Ok(Attachment { filename, media_type, blob: lies, size, foreign })
}

/// Keeps what is left: extensions under their platform, the rest under the format's name.
fn foreign_in(mut object: Object, foreign: &mut Foreign) {
    if let Some(Value::Object(extensions)) = object.remove("extensions") {
        for (name, value) in extensions {
            match name.split_once('_') {
                Some((platform, key))
                    if !platform.is_empty() && platform != OMP && !key.is_empty() =>
                {
                    keep(foreign, platform, key, value);
                }
                Some(_) | None => {
                    let own = foreign.entry(OMP.to_owned()).or_insert_with(|| json!({}));
                    own["extensions"][name] = value;
                }
            }
        }
    }
    for (name, value) in object {
        if !value.is_null() {
            keep(foreign, OMP, &name, value);
        }
    }
}

fn keep(foreign: &mut Foreign, platform: &str, name: &str, value: Value) {
    let own = foreign.entry(platform.to_owned()).or_insert_with(|| json!({}));
    own[name] = value;
}

fn flag(foreign: &mut Foreign, name: &str) {
    let own = foreign.entry(OMP.to_owned()).or_insert_with(|| json!({}));
    own["extensions"][name] = Value::from(true);
}

fn id_of(object: &Object) -> Result<String> {
    match object.text("id") {
        Some(id) if !id.is_empty() && id.len() <= 256 => Ok(id.to_owned()),
        Some(_) | None => Err(invalid("id", "must be a text of 1 to 256 bytes")),
    }
}

fn time_of(object: &mut Object, name: &str, zoneless: &mut bool) -> Result<Timestamp> {
    let value = object.remove(name).unwrap_or_default();
    let text = value.as_str().ok_or_else(|| invalid(name, "must be a time"))?;
    *zoneless |= time::lacks_zone(text);
    time::text(text).ok_or_else(|| invalid(name, "is not a time"))
}

pub(super) fn invalid(path: impl Into<String>, reason: &str) -> Error {
    Error::archive("entry", format!("{}: {reason}", path.into()))
}

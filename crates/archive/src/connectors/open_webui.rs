//! Open WebUI: exported chats, and its own database.

use serde_json::{Value, json};
use yore_domain::conversation::Role;
use yore_domain::kind::Facet;

use super::memories::Found;
use crate::connector::{Connector, Sample, Sink, each_piece};
use crate::item::Blob;
use crate::json::{self, Look};
use crate::source::{File, Source};
use crate::thread::{Said, Thread, Turn};
use crate::{Error, Result, content, html, residue, sqlite, time};

/// Reads Open WebUI's exports and database.
#[derive(Debug)]
pub(super) struct OpenWebUi;

const PLATFORM: &str = "open-webui";

impl Connector for OpenWebUi {
    fn platform(&self) -> &'static str {
        PLATFORM
    }

    fn recognise(&self, sample: &Sample<'_>) -> u8 {
        let shape = &sample.shape;
        if shape.sqlite {
            let known = sample.holds("share_id") && sample.holds("chat JSON");
            return u8::from(known) * 90;
        }
        let wrapped = shape.has(1, "chat") && (shape.has(2, "history") || shape.has(2, "messages"));
        let bare = shape.has(1, "history") && shape.has(2, "currentId");
        u8::from(shape.json && !shape.lines && (wrapped || bare)) * 91
    }

    fn read(&self, source: &Source, files: &[&File], sink: &mut Sink<'_>) -> Result<()> {
        for file in files {
            let head = file.sample().unwrap_or_default();
            if head.starts_with(b"SQLite") {
                let done = database(source, file, sink);
                sink.pass(file.path(), None, done)?;
            } else if head.trim_ascii_start().starts_with(b"[") {
                each_piece(source, file, sink, |sink, _, value, _| {
                    chat(source, file, sink, &value)
                })?;
            } else {
                let one = source.document(file).and_then(|bytes| json::parse(&bytes));
                let done = one.and_then(|(value, _)| chat(source, file, sink, &value));
                sink.pass(file.path(), None, done)?;
            }
        }
        Ok(())
    }
}

fn database(source: &Source, file: &File, sink: &mut Sink<'_>) -> Result<()> {
    let connection = sqlite::open(source, file)?;
    sqlite::each_row(&connection, "chat", "ORDER BY id", [], |mut row| {
        let id = row.text("id").map(str::to_owned);
        for name in ["chat", "meta"] {
            if let Some(text) = row.text(name).map(str::to_owned) {
                match json::parse(text.as_bytes()) {
                    Ok((value, _)) => row.insert(name.to_owned(), value),
                    Err(error) => return sink.pass(file.path(), id, Err(error)),
                };
            }
        }
        let done = chat(source, file, sink, &Value::Object(row));
        sink.pass(file.path(), id, done)
    })?;
    if sqlite::columns(&connection, "memory")?.is_empty() {
        return Ok(());
    }
    sqlite::each_row(&connection, "memory", "ORDER BY id", [], |row| {
        let (Some(id), Some(text)) = (row.filled("id"), row.filled("content")) else {
            return sink.skip(file.path(), Some("memory".into()), "it has no text");
        };
        let found = Found {
            platform: PLATFORM,
            key: &[id],
            facet: Facet::Fact,
            text,
            created: row.get("created_at").and_then(time::any),
            source: file.path(),
            native: None,
        };
        let note = found.note();
        sink.note(file.path(), note)
    })
}

fn chat(source: &Source, file: &File, sink: &mut Sink<'_>, native: &Value) -> Result<()> {
    // Old exports hold the chat itself.
    let chat = native.get("chat").filter(|chat| chat.is_object()).unwrap_or(native);
    let Some(messages) = chat.pointer("/history/messages").and_then(Value::as_object) else {
        return Err(Error::form("a chat without its history"));
    };
    let id = native.filled("id").or(chat.filled("id")).map(str::to_owned);
    let id = id.unwrap_or_else(|| crate::source::hash(native.to_string().as_bytes()).to_string());
    let mut thread = Thread::new(PLATFORM, id);
    thread.title = native.filled("title").or(chat.filled("title")).map(str::to_owned);
    thread.created = native.get("created_at").or(chat.get("timestamp")).and_then(time::any);
    thread.updated = native.get("updated_at").and_then(time::any);
    thread.current = chat.pointer("/history/currentId").and_then(Value::as_str).map(str::to_owned);
    let tags = native.get("meta").map(|meta| meta.list("tags")).unwrap_or_default();
    thread.tags = tags.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    if let Some(folder) = native.filled("folder_id") {
        thread.context.push(json!({"type": "folder", "id": folder}));
    }
    for (key, message) in messages {
        let mut said = said(message);
        for attached in message.list("files") {
            let name = attached.filled("name").unwrap_or("unnamed");
            let inner = attached.get("file").unwrap_or(attached);
            let text = inner.get("data").and_then(|data| data.filled("content"));
            let stored = inner.filled("id").and_then(|id| {
                let path = |file: &&File| file.name().starts_with(&format!("{id}_"));
                source.files().iter().find(path)
            });
            let blob = match stored {
                Some(stored) => {
                    sink.used(stored);
                    source.blob(stored).ok()
                }
                None => text.map(|text| Blob::new(text.as_bytes())),
            };
            let kind = inner.get("meta").and_then(|meta| meta.filled("content_type"));
            let made = match attached.filled("url").filter(|url| url.starts_with("data:")) {
                Some(url) if blob.is_none() => thread.attach_base64(name, kind, url),
                Some(_) | None => thread.attach(name, kind, blob),
            };
            said.attachments.push(made);
        }
        thread.turns.push(Turn {
            key: key.clone(),
            parent: message.filled("parentId").map(str::to_owned),
            at: message.get("timestamp").and_then(time::any),
            said: Some(said.from(message)),
        });
    }
    // The list of messages repeats the active path.
    for message in chat.list("messages") {
        if let Some(id) = message.text("id")
            && messages.get(id) == Some(message)
        {
            thread.repeats.push((residue::address(message), id.to_owned()));
        }
    }
    sink.talk(file.path(), thread.finish(Some(native)))
}

fn said(message: &Value) -> Said {
    let role = match message.text("role") {
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        Some("tool") => Role::Tool,
        Some(_) | None => Role::User,
    };
    let text = match message.get("content") {
        Some(content) => super::anthropic::plain(content),
        None => String::new(),
    };
    let mut said = Said::new(role, content::content(blocks(&text))).model(message.text("model"));
    if let Some(usage) = message.get("usage").filter(|usage| usage.is_object()) {
        said.omp.insert(
            "token_usage".into(),
            json!({
                "prompt": usage.get("prompt_tokens"), "completion": usage.get("completion_tokens"),
            }),
        );
    }
    if let Some(rating) = message.get("annotation").and_then(|note| note.get("rating")) {
        said.omp
            .insert("annotations".into(), json!([{"type": "rating", "text": rating.to_string()}]));
    }
    said
}

/// Thoughts and calls stand in the text as `<details>`.
fn blocks(text: &str) -> Vec<Value> {
    let (mut blocks, mut rest) = (Vec::new(), text);
    let plain = |text: &str, blocks: &mut Vec<Value>| {
        let text = text.trim();
        blocks.extend((!text.is_empty()).then(|| content::text(text)));
    };
    while let Some(from) = rest.find("<details type=\"") {
        let Some(length) = rest[from..].find("</details>") else { break };
        plain(&rest[..from], &mut blocks);
        let details = &rest[from..from + length];
        let (tag, inner) = details.split_once('>').unwrap_or((details, ""));
        let inner = inner.split_once("</summary>").map_or(inner, |(_, body)| body);
        let lines = html::unescaped(inner);
        let quoted = lines.trim().lines().map(|line| line.strip_prefix("> ").unwrap_or(line));
        let inner = quoted.collect::<Vec<_>>().join("\n");
        if tag.contains("\"reasoning\"") {
            blocks.push(content::thinking(inner));
        } else {
            let attribute = |name: &str| {
                let value = tag.split_once(&format!(" {name}=\""))?.1;
                Some(html::unescaped(value.split('"').next()?))
            };
            let name = attribute("name").unwrap_or_else(|| "tool".to_owned());
            let input = attribute("arguments").unwrap_or_default();
            blocks.push(content::tool_use_text(&name, &input));
            let output = attribute("result").unwrap_or(inner);
            blocks.push(content::tool_result(&name, &Value::from(output)));
        }
        rest = &rest[from + length + "</details>".len()..];
    }
    if blocks.is_empty() {
        return if text.is_empty() { Vec::new() } else { vec![content::text(text)] };
    }
    plain(rest, &mut blocks);
    blocks
}

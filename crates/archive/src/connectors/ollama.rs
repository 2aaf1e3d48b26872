//! Ollama: the database of its app, and the prompts its command line remembers.

use std::collections::HashMap;

use rusqlite::Connection;
use serde_json::{Value, json};
use yore_domain::conversation::Role;

use crate::connector::{Connector, Sample, Sink};
use crate::item::Blob;
use crate::json::{Look, Object};
use crate::source::{File, Source};
use crate::thread::{Said, Thread};
use crate::{Error, Result, content, sqlite, time};

/// Reads Ollama's conversations.
#[derive(Debug)]
pub(super) struct Ollama;

const PLATFORM: &str = "ollama";

impl Connector for Ollama {
    fn platform(&self) -> &'static str {
        PLATFORM
    }

    fn recognise(&self, sample: &Sample<'_>) -> u8 {
        if sample.shape.sqlite {
            let known = sample.holds("CREATE TABLE chats") && sample.holds("chat_id");
            return u8::from(known) * 90;
        }
        // Lines of prompts look like any text: only here does the name decide.
        let name = sample.path().to_lowercase();
        let named = name.ends_with(".ollama/history") || name.ends_with("ollama-history");
        u8::from(named && std::str::from_utf8(sample.head).is_ok()) * 40
    }

    fn read(&self, source: &Source, files: &[&File], sink: &mut Sink<'_>) -> Result<()> {
        for file in files {
            let head = file.sample().unwrap_or_default();
            let done = if head.starts_with(b"SQLite") {
                database(source, file, sink)
            } else {
                prompts(source, file, sink)
            };
            sink.pass(file.path(), None, done)?;
        }
        Ok(())
    }
}

fn database(source: &Source, file: &File, sink: &mut Sink<'_>) -> Result<()> {
    let connection = sqlite::open(source, file)?;
    sqlite::has(&sqlite::columns(&connection, "messages")?, "chat_id")?;
    sqlite::each_row(&connection, "chats", "ORDER BY id", [], |row| {
        let id = row.text("id").unwrap_or_default().to_owned();
        let done = chat(&connection, &id, &row)
            .and_then(|thread| sink.talk(file.path(), thread.finish(None)));
        sink.pass(file.path(), Some(id), done)
    })
}

fn chat(connection: &Connection, id: &str, row: &Object) -> Result<Thread> {
    if id.is_empty() {
        return Err(Error::form("a chat without an id"));
    }
    let mut thread = Thread::new(PLATFORM, id);
    thread.title = row.filled("title").map(str::to_owned);
    thread.created = row.get("created_at").and_then(time::any);
    let calls = beside(connection, "tool_calls", id)?;
    let mut files = attachments(connection, id)?;
    sqlite::each_row(connection, "messages", "WHERE chat_id = ?1 ORDER BY id", [id], |row| {
        let key = row.get("id").map(Value::to_string).unwrap_or_default();
        let mut blocks = Vec::new();
        blocks.extend(row.filled("thinking").map(content::thinking));
        let role = match row.text("role") {
            Some("assistant") => Role::Assistant,
            Some("system") => Role::System,
            Some("tool") => Role::Tool,
            Some(_) | None => Role::User,
        };
        let said = row.filled("content");
        match (role, row.filled("tool_result").or(said)) {
            (Role::Tool, Some(output)) => {
                blocks.push(content::tool_result("tool", &Value::from(output)));
            }
            _ => blocks.extend(said.map(content::text)),
        }
        for call in calls.get(&key).into_iter().flatten() {
            let name = call.filled("function_name").unwrap_or("tool");
            let input = call.text("function_arguments").unwrap_or_default();
            blocks.push(content::tool_use_text(name, input));
            let output = call.get("function_result").filter(|output| !output.is_null());
            blocks.extend(output.map(|output| content::tool_result(name, output)));
        }
        let at = row.get("created_at").and_then(time::any);
        let mut said = Said::new(role, content::content(blocks)).model(row.text("model_name"));
        for (name, bytes) in files.remove(&key).unwrap_or_default() {
            said.attachments.push(thread.attach(&name, None, Some(Blob::new(bytes))));
        }
        let calls = calls.get(&key).cloned().unwrap_or_default();
        let native = json!({"message": row, "tool_calls": calls});
        thread.follow(key, at, said.from(&native));
        Ok(())
    })?;
    Ok(thread)
}

/// The rows of a table that belong to messages of a chat, by message.
fn beside(
    connection: &Connection,
    table: &str,
    chat: &str,
) -> Result<HashMap<String, Vec<Object>>> {
    let mut found: HashMap<String, Vec<Object>> = HashMap::new();
    if sqlite::columns(connection, table)?.is_empty() {
        return Ok(found);
    }
    let of_chat = "WHERE message_id IN (SELECT id FROM messages WHERE chat_id = ?1) ORDER BY id";
    sqlite::each_row(connection, table, of_chat, [chat], |row| {
        let message = row.get("message_id").map(Value::to_string).unwrap_or_default();
        found.entry(message).or_default().push(row);
        Ok(())
    })?;
    Ok(found)
}

type Files = HashMap<String, Vec<(String, Vec<u8>)>>;

fn attachments(connection: &Connection, chat: &str) -> Result<Files> {
    let mut found = Files::new();
    if sqlite::columns(connection, "attachments")?.is_empty() {
        return Ok(found);
    }
    let mut statement = connection.prepare(
        "SELECT message_id, filename, data FROM attachments \
         WHERE message_id IN (SELECT id FROM messages WHERE chat_id = ?1) ORDER BY id",
    )?;
    let mut rows = statement.query([chat])?;
    while let Some(row) = rows.next()? {
        let (message, name): (i64, String) = (row.get(0)?, row.get(1)?);
        found.entry(message.to_string()).or_default().push((name, row.get(2)?));
    }
    Ok(found)
}

/// What was typed, without answers and without times.
fn prompts(source: &Source, file: &File, sink: &mut Sink<'_>) -> Result<()> {
    let bytes = source.document(file)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut thread = Thread::new(PLATFORM, format!("history:{}", file.name()));
    thread.title = Some("Prompts typed on the command line".to_owned());
    thread.created = file.modified();
    thread.extra.insert("prompts_only".into(), Value::from(true));
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        // The file keeps the last hundred: a place in it is no name.
        let key = format!("prompt:{line}");
        thread.follow(key, None, Said::new(Role::User, Value::from(line)));
    }
    sink.talk(file.path(), thread.finish(None))
}

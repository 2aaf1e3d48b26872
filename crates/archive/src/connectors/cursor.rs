//! Cursor: the editor's global store, what its workspaces keep, and the sessions of its command
//! line. Databases may have many gigabytes: rows are read by ranges of keys.

mod agent;
mod bubble;
mod workspace;

use std::collections::HashMap;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::connector::{Connector, Sample, Sink};
use crate::json::{self, Look};
use crate::source::{File, Source};
use crate::thread::Thread;
use crate::{Error, Result, sqlite, time};

/// Reads Cursor's stores.
#[derive(Debug)]
pub(super) struct Cursor;

const PLATFORM: &str = "cursor";

/// The kinds of stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Store {
    /// The editor's: the global one has the conversations, those of workspaces say which are theirs.
    Editor,
    Agent,
    Transcript,
}

fn store(path: &str, head: &[u8]) -> Option<Store> {
    let holds = |text: &str| memchr::memmem::find(head, text.as_bytes()).is_some();
    if head.starts_with(b"SQLite format 3\0") {
        if holds("cursorDiskKV") || holds("composer.composerData") || holds("aichat.chatdata") {
            return Some(Store::Editor);
        }
        return (holds("TABLE blobs") && holds("TABLE meta")).then_some(Store::Agent);
    }
    let shape = crate::shape::Shape::of(head);
    let transcript = path.contains("agent-transcripts") && shape.all(1, &["role", "message"]);
    transcript.then_some(Store::Transcript)
}

impl Connector for Cursor {
    fn platform(&self) -> &'static str {
        PLATFORM
    }

    fn recognise(&self, sample: &Sample<'_>) -> u8 {
        u8::from(store(sample.path(), sample.head).is_some()) * 90
    }

    fn read(&self, source: &Source, files: &[&File], sink: &mut Sink<'_>) -> Result<()> {
        source.named("workspace.json").for_each(|file| sink.used(file));
        source.named("meta.json").for_each(|file| sink.used(file));
        let mut kinds: Vec<(Store, &File)> = Vec::new();
        for file in files {
            let head = file.sample().unwrap_or_default();
            kinds.extend(store(file.path(), &head).map(|store| (store, *file)));
        }
        let of = |kind: Store| {
            kinds.iter().filter(move |(found, _)| *found == kind).map(|(_, file)| *file)
        };
        let mut folders = HashMap::new();
        for file in of(Store::Editor) {
            let done = workspace::read(source, file, sink, &mut folders);
            sink.pass(file.path(), None, done)?;
        }
        for file in of(Store::Editor) {
            let done = global(source, file, sink, &folders);
            sink.pass(file.path(), None, done)?;
        }
        let mut sessions = Vec::new();
        for file in of(Store::Agent) {
            let done = agent::store(source, file, sink);
            if let Ok(id) = &done {
                sessions.push(id.clone());
            }
            sink.pass(file.path(), None, done.map(|_| ()))?;
        }
        for file in of(Store::Transcript) {
            // The store of the same session has more.
            let stem = file.name().split('.').next().unwrap_or_default();
            if sessions.iter().any(|id| id == stem) {
                continue;
            }
            let done = agent::transcript(source, file, sink, stem);
            sink.pass(file.path(), None, done)?;
        }
        Ok(())
    }
}

fn global(
    source: &Source,
    file: &File,
    sink: &mut Sink<'_>,
    folders: &HashMap<String, String>,
) -> Result<()> {
    let connection = sqlite::open(source, file)?;
    if sqlite::columns(&connection, "cursorDiskKV")?.is_empty() {
        return Ok(());
    }
    let mut keys = connection.prepare(
        "SELECT key FROM cursorDiskKV WHERE key >= 'composerData:' AND key < 'composerData;' \
         ORDER BY key",
    )?;
    let keys = keys.query_map([], |row| row.get::<_, String>(0))?;
    let keys: Vec<String> = keys.collect::<Result<_, _>>()?;
    for key in keys {
        let id = key.strip_prefix("composerData:").unwrap_or(&key).to_owned();
        let done = composer(source, &connection, &id, &key, file, sink, folders);
        sink.pass(file.path(), Some(id), done)?;
    }
    Ok(())
}

/// Reads a value of the store; rows may hold nothing.
fn value(source: &Source, connection: &Connection, key: &str) -> Result<Option<Value>> {
    let mut statement =
        connection.prepare_cached("SELECT value FROM cursorDiskKV WHERE key = ?1")?;
    let mut rows = statement.query([key])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let bytes = match row.get_ref(0)? {
        rusqlite::types::ValueRef::Text(bytes) | rusqlite::types::ValueRef::Blob(bytes) => bytes,
        rusqlite::types::ValueRef::Null
        | rusqlite::types::ValueRef::Integer(_)
        | rusqlite::types::ValueRef::Real(_) => return Ok(None),
    };
    if bytes.len() > source.limits().piece {
        return Err(Error::too_large(key, format!("{} bytes", source.limits().piece)));
    }
    Ok(Some(json::parse(bytes)?.0))
}

fn composer(
    source: &Source,
    connection: &Connection,
    id: &str,
    key: &str,
    file: &File,
    sink: &mut Sink<'_>,
    folders: &HashMap<String, String>,
) -> Result<()> {
    let Some(native) = value(source, connection, key)? else {
        return sink.skip(file.path(), Some(id.to_owned()), "an empty row");
    };
    let mut thread = Thread::new(PLATFORM, id);
    thread.title = native.filled("name").map(str::to_owned);
    thread.created = native.get("createdAt").and_then(time::any);
    thread.updated = native.get("lastUpdatedAt").and_then(time::any);
    let model = native.pointer("/modelConfig/modelName").and_then(Value::as_str);
    if let Some(folder) = folders.get(id) {
        thread.context.push(json!({"type": "repo", "id": folder}));
    }
    let listed = native.list("fullConversationHeadersOnly");
    for (place, head) in listed.iter().enumerate() {
        let Some(bubble) = head.filled("bubbleId") else { continue };
        let inline = native.get("conversationMap").and_then(|map| map.get(bubble)).cloned();
        let found = match inline {
            Some(found) => Some(found),
            None => value(source, connection, &format!("bubbleId:{id}:{bubble}"))?,
        };
        match found {
            Some(found) => bubble::add(&mut thread, bubble, &found, model),
            None => {
                let what = Some(format!("{id}, message {}", place + 1));
                sink.skip(file.path(), what, "the store lacks it")?;
            }
        }
    }
    for (place, found) in native.list("conversation").iter().enumerate() {
        let bubble = found.filled("bubbleId").map_or_else(|| format!("#{place}"), str::to_owned);
        bubble::add(&mut thread, &bubble, found, model);
    }
    if thread.turns.is_empty() {
        return sink.skip(file.path(), Some(id.to_owned()), "a conversation that never began");
    }
    sink.talk(file.path(), thread.finish(Some(&native)))
}

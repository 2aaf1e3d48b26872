//! What a workspace keeps: which composers belong to it, and the chat pane of 2024.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension};
use serde_json::{Value, json};

use super::{PLATFORM, bubble};
use crate::connector::Sink;
use crate::json::{self, Look};
use crate::source::{File, Source};
use crate::thread::Thread;
use crate::{Result, sqlite, time};

/// Reads a workspace's store, and notes the folder of each composer.
pub(super) fn read(
    source: &Source,
    file: &File,
    sink: &mut Sink<'_>,
    folders: &mut HashMap<String, String>,
) -> Result<()> {
    let connection = sqlite::open(source, file)?;
    if sqlite::columns(&connection, "ItemTable")?.is_empty() {
        return Ok(());
    }
    let folder = folder(source, file);
    if let Some(folder) = &folder
        && let Some(listed) = item(&connection, "composer.composerData")?
    {
        for composer in listed.list("allComposers") {
            if let Some(id) = composer.filled("composerId") {
                folders.insert(id.to_owned(), folder.clone());
            }
        }
    }
    let chats = item(&connection, "workbench.panel.aichat.view.aichat.chatdata")?;
    for tab in chats.as_ref().map(|chats| chats.list("tabs")).unwrap_or_default() {
        let Some(id) = tab.filled("tabId") else { continue };
        let mut thread = Thread::new(PLATFORM, id);
        thread.title = tab.filled("chatTitle").map(str::to_owned);
        thread.created = tab.get("lastSendTime").and_then(time::any);
        thread.tags.push("chat-pane".into());
        if let Some(folder) = &folder {
            thread.context.push(json!({"type": "repo", "id": folder}));
        }
        for (place, found) in tab.list("bubbles").iter().enumerate() {
            let key = found.filled("id").map_or_else(|| format!("#{place}"), str::to_owned);
            bubble::add(&mut thread, &key, found, None);
        }
        if thread.turns.is_empty() {
            sink.skip(file.path(), Some(id.to_owned()), "a conversation that never began")?;
        } else {
            sink.talk(file.path(), thread.finish(Some(tab)))?;
        }
    }
    Ok(())
}

fn item(connection: &Connection, key: &str) -> Result<Option<Value>> {
    let found = connection
        .query_row("SELECT value FROM ItemTable WHERE key = ?1", [key], |row| {
            Ok(sqlite::json(row.get_ref(0)?))
        })
        .optional()?;
    let text = found.as_ref().and_then(Value::as_str);
    text.map(|text| Ok(json::parse(text.as_bytes())?.0)).transpose()
}

fn folder(source: &Source, file: &File) -> Option<String> {
    let about = source.named("workspace.json").find(|about| about.folder() == file.folder())?;
    let value = json::parse(&about.bytes(1 << 20).ok()?).ok()?.0;
    value.filled("folder").or(value.filled("workspace")).map(str::to_owned)
}

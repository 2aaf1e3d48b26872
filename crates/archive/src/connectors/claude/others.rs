//! What an export holds beside conversations: memories, projects and design chats.

use serde_json::{Value, json};
use yore_domain::conversation::Role;
use yore_domain::kind::Facet;

use super::PLATFORM;
use crate::connector::{Sample, Sink};
use crate::connectors::memories::Found;
use crate::item::Blob;
use crate::json::{self, Look};
use crate::source::{File, Source};
use crate::thread::{Said, Thread};
use crate::{Error, Result, content, time};

/// Whether a file is one of them.
pub(super) fn knows(sample: &Sample<'_>) -> bool {
    let shape = &sample.shape;
    shape.has(1, "conversations_memory")
        || shape.has(1, "memory_files")
        || shape.all(1, &["uuid", "prompt_template", "docs"])
        || (shape.all(1, &["uuid", "title", "messages", "project"]) && !shape.array)
}

/// Reads one of them.
pub(super) fn read(source: &Source, file: &File, sink: &mut Sink<'_>) -> Result<()> {
    let parsed = source.document(file).and_then(|bytes| Ok(json::parse(&bytes)?.0));
    let listed = match parsed {
        Ok(Value::Array(listed)) => listed,
        Ok(one) => vec![one],
        Err(error) => return sink.pass(file.path(), None, Err(error)),
    };
    for value in listed {
        let what = value.filled("uuid").map(str::to_owned);
        let done = one(file, sink, &value);
        sink.pass(file.path(), what, done)?;
    }
    Ok(())
}

fn one(file: &File, sink: &mut Sink<'_>, value: &Value) -> Result<()> {
    if value.get("conversations_memory").is_some() || value.get("memory_files").is_some() {
        return memories(file, sink, value);
    }
    if value.get("prompt_template").is_some() {
        return project(file, sink, value);
    }
    if value.get("messages").is_some() {
        return design_chat(file, sink, value);
    }
    Err(Error::form("nothing that is known in a Claude export"))
}

/// One memory for each heading of the summary, one for each project, one for each file.
fn memories(file: &File, sink: &mut Sink<'_>, value: &Value) -> Result<()> {
    let account = value.filled("account_uuid").unwrap_or_default();
    let whole = value.filled("conversations_memory").unwrap_or_default();
    for (place, (heading, text)) in sections(whole).into_iter().enumerate() {
        let shown = if heading.is_empty() { text.clone() } else { format!("{heading}: {text}") };
        let native =
            (place == 0).then(|| json!({"conversations_memory": whole, "account_uuid": account}));
        let found = Found {
            platform: PLATFORM,
            key: &["conversations", account, &heading, &text],
            facet: Facet::Summary,
            text: &shown,
            created: None,
            source: file.path(),
            native,
        };
        sink.note(file.path(), found.note())?;
    }
    for (project, text) in value.inner("project_memories").into_iter().flatten() {
        let Some(text) = text.as_str().filter(|text| !text.trim().is_empty()) else { continue };
        let found = Found {
            platform: PLATFORM,
            key: &["project", project, text],
            facet: Facet::Summary,
            text,
            created: None,
            source: file.path(),
            native: Some(json!({"project_uuid": project})),
        };
        sink.note(file.path(), found.note())?;
    }
    for memory in value.list("memory_files") {
        let text = memory.filled("content").or(memory.filled("text")).or(memory.as_str());
        let Some(text) = text else { continue };
        let name = memory.filled("path").or(memory.filled("name")).unwrap_or_default();
        let found = Found {
            platform: PLATFORM,
            key: &["file", account, name, text],
            facet: Facet::Summary,
            text,
            created: memory.get("created_at").and_then(time::any),
            source: file.path(),
            native: Some(memory.clone()),
        };
        sink.note(file.path(), found.note())?;
    }
    Ok(())
}

/// Splits a text at lines that are a bold heading alone.
fn sections(text: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = vec![(String::new(), String::new())];
    for line in text.lines() {
        let trimmed = line.trim();
        let heading = trimmed.strip_prefix("**").and_then(|rest| rest.strip_suffix("**"));
        match heading.filter(|heading| !heading.is_empty() && !heading.contains("**")) {
            Some(heading) => found.push((heading.to_owned(), String::new())),
            None => {
                if let Some((_, body)) = found.last_mut() {
                    body.push_str(line);
                    body.push('\n');
                }
            }
        }
    }
    found.retain(|(_, body)| !body.trim().is_empty());
    found.into_iter().map(|(heading, body)| (heading, body.trim().to_owned())).collect()
}

/// A project: its instructions as a memory, and its documents attached to a record of its own.
fn project(file: &File, sink: &mut Sink<'_>, value: &Value) -> Result<()> {
    let Some(id) = value.filled("uuid") else { return Err(Error::form("it has no uuid")) };
    let created = value.get("created_at").and_then(time::any);
    let prompt = value.filled("prompt_template").unwrap_or_default();
    if !prompt.trim().is_empty() {
        let found = Found {
            platform: PLATFORM,
            key: &["project prompt", id, prompt],
            facet: Facet::Instruction,
            text: prompt,
            created,
            source: file.path(),
            native: Some(json!({"project_uuid": id, "project_name": value.get("name")})),
        };
        sink.note(file.path(), found.note())?;
    }
    let mut thread = Thread::new(PLATFORM, format!("project:{id}"));
    thread.title = value.filled("name").map(str::to_owned);
    thread.summary = value.filled("description").map(str::to_owned);
    thread.created = created;
    thread.updated = value.get("updated_at").and_then(time::any);
    thread.tags.push("project".into());
    thread.context.push(json!({"type": "project", "id": id, "name": value.get("name")}));
    let mut said = Said::new(Role::System, Value::from(prompt));
    for document in value.list("docs") {
        let name = document.filled("filename").unwrap_or("document.txt");
        let blob = document.filled("content").map(|text| Blob::new(text.as_bytes()));
        let mut made = thread.attach(name, Some("text/plain"), blob);
        made.foreign.insert(PLATFORM.into(), json!({"doc_uuid": document.get("uuid")}));
        said.attachments.push(made);
    }
    thread.follow("project", created, said.from(value));
    sink.talk(file.path(), thread.finish(Some(value)))
}

fn design_chat(file: &File, sink: &mut Sink<'_>, value: &Value) -> Result<()> {
    let Some(key) = value.filled("uuid") else { return Err(Error::form("it has no uuid")) };
    let mut thread = Thread::new(PLATFORM, key);
    thread.title = value.filled("title").map(str::to_owned);
    thread.created = value.get("created_at").and_then(time::any);
    thread.updated = value.get("updated_at").and_then(time::any);
    thread.tags.push("design".into());
    if let Some(project) = value.inner("project") {
        thread.context.push(json!({"type": "project", "id": project.get("uuid"),
            "name": project.get("name")}));
    }
    for (place, native) in value.list("messages").iter().enumerate() {
        let inner = native.get("content").unwrap_or(&Value::Null);
        let role = if native.text("role") == Some("user") { Role::User } else { Role::Assistant };
        let mut blocks: Vec<Value> = Vec::new();
        blocks.extend(inner.filled("content").or(inner.as_str()).map(content::text));
        for block in inner.list("contentBlocks") {
            match block.get("toolCall") {
                Some(call) => {
                    let name = call.filled("name").unwrap_or("tool");
                    let input = call.get("input").cloned().unwrap_or_default();
                    blocks.push(content::tool_use(name, input));
                    blocks.extend(call.get("output").map(|out| content::tool_result(name, out)));
                }
                None if block.text("type") == Some("thinking") => {
                    blocks.extend(
                        block.filled("text").or(block.filled("thinking")).map(content::thinking),
                    );
                }
                None => blocks.extend(block.filled("text").map(content::text)),
            }
        }
        let mut said = Said::new(role, content::content(blocks));
        for attachment in inner.list("attachments") {
            let name = attachment.filled("name").unwrap_or("unnamed");
            let blob = attachment.filled("content").map(|text| Blob::new(text.as_bytes()));
            let made = thread.attach(name, None, blob);
            said.attachments.push(made);
        }
        let key = native.filled("uuid").map_or_else(|| format!("#{place}"), str::to_owned);
        let at = native.get("created_at").and_then(time::any);
        thread.follow(key, at, said.from(native));
    }
    sink.talk(file.path(), thread.finish(Some(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_falls_into_its_headings() {
        let text = "lead\n**Work context**\n\nBees.\n\n**Personal context**\n\nMetric **units**.\n**Empty**\n";
        let found = sections(text);
        let pairs: Vec<_> = found.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(
            pairs,
            [("", "lead"), ("Work context", "Bees."), ("Personal context", "Metric **units**."),]
        );
    }
}

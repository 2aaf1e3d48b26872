//! Sessions of the command line: a store of blobs under one root, and a plain transcript.

use rusqlite::{Connection, OptionalExtension};
use serde_json::Value;
use yore_domain::conversation::Role;

use super::PLATFORM;
use crate::connector::{Sink, each_line};
use crate::connectors::anthropic;
use crate::json::{self, Look};
use crate::source::{File, Source};
use crate::thread::{Said, Thread};
use crate::{Error, Result, content, sqlite, time};

/// Reads a store, and returns the session's id.
pub(super) fn store(source: &Source, file: &File, sink: &mut Sink<'_>) -> Result<String> {
    let connection = sqlite::open(source, file)?;
    let about: String =
        connection.query_row("SELECT value FROM meta WHERE key = '0'", [], |row| row.get(0))?;
    let about = data_encoding::HEXLOWER_PERMISSIVE
        .decode(about.as_bytes())
        .map_err(|_| Error::form("its description is not hexadecimal"))?;
    let about = json::parse(&about)?.0;
    let folder = file.folder().rsplit('/').next().unwrap_or_default();
    let id = about.filled("agentId").unwrap_or(folder).to_owned();
    let mut thread = Thread::new(PLATFORM, id.as_str());
    thread.title = about.filled("name").map(str::to_owned);
    thread.created = about.get("createdAt").and_then(time::any);
    thread.tags.push("cli".into());
    let model = about.filled("lastUsedModel");
    let root = about.filled("latestRootBlobId").unwrap_or_default();
    let root = blob(&connection, root)?.ok_or_else(|| Error::form("its root is missing"))?;
    for (place, name) in children(&root).into_iter().enumerate() {
        let what = format!("{id}, message {}", place + 1);
        match blob(&connection, &name)?.map(|bytes| json::parse(&bytes)) {
            Some(Ok((message, _))) => add(&mut thread, &name, &message, model),
            Some(Err(error)) => sink.pass(file.path(), Some(what), Err(error))?,
            None => sink.skip(file.path(), Some(what), "the store lacks it")?,
        }
    }
    sink.talk(file.path(), thread.finish(None))?;
    Ok(id)
}

fn blob(connection: &Connection, id: &str) -> Result<Option<Vec<u8>>> {
    let found = connection.query_row("SELECT data FROM blobs WHERE id = ?1", [id], |row| {
        let data = row.get_ref(0)?;
        Ok(data.as_bytes().map(<[u8]>::to_vec).unwrap_or_default())
    });
    Ok(found.optional()?)
}

/// The ids in a root: field 1 of a protocol buffer, 32 bytes each, in order.
fn children(root: &[u8]) -> Vec<String> {
    let (mut found, mut rest) = (Vec::new(), root);
    while let Some((tag, after)) = varint(rest) {
        rest = match tag & 7 {
            0 => match varint(after) {
                Some((_, after)) => after,
                None => break,
            },
            1 => after.get(8..).unwrap_or_default(),
            2 => {
                let Some((length, after)) = varint(after) else { break };
                let Ok(length) = usize::try_from(length) else { break };
                let Some(bytes) = after.get(..length) else { break };
                if tag >> 3 == 1 && length == 32 {
                    found.push(data_encoding::HEXLOWER.encode(bytes));
                }
                &after[length..]
            }
            5 => after.get(4..).unwrap_or_default(),
            _ => break,
        };
    }
    found
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    for (place, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[place + 1..]));
        }
    }
    None
}

/// Reads a transcript.
pub(super) fn transcript(
    source: &Source,
    file: &File,
    sink: &mut Sink<'_>,
    id: &str,
) -> Result<()> {
    let mut thread = Thread::new(PLATFORM, id);
    thread.created = file.modified();
    thread.tags.push("cli".into());
    let mut broken = Vec::new();
    each_line(source, file, |number, line| {
        match line {
            Some(line) => add(&mut thread, &format!("line {number}"), &line, None),
            None => broken.push(number),
        }
        Ok(())
    })?;
    for number in broken {
        sink.skip(file.path(), Some(format!("line {number}")), "not a whole line of JSON")?;
    }
    sink.talk(file.path(), thread.finish(None))
}

fn add(thread: &mut Thread, key: &str, native: &Value, model: Option<&str>) {
    let message = native.get("message").unwrap_or(native);
    let role = match native.text("role").or(message.text("role")) {
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        Some("tool") => Role::Tool,
        Some(_) | None => Role::User,
    };
    let (mut blocks, mut attachments) = (Vec::new(), Vec::new());
    blocks.extend(message.filled("content").map(|text| content::text(bare(text))));
    for block in message.list("content") {
        match block.filled("text") {
            Some(text) if block.text("type") == Some("text") => {
                blocks.push(content::text(bare(text)));
            }
            Some(_) | None => anthropic::add(block, thread, &mut blocks, &mut attachments),
        }
    }
    let mut said = Said::new(role, content::content(blocks));
    said.attachments = attachments;
    if role == Role::Assistant {
        said = said.model(model);
    }
    thread.follow(key, None, said.from(native));
}

/// What the person typed, without the tags around it.
fn bare(text: &str) -> &str {
    let inner = text
        .trim()
        .strip_prefix("<user_query>")
        .and_then(|rest| rest.strip_suffix("</user_query>"));
    inner.map_or(text, str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_names_its_messages_and_nonsense_ends_it() {
        let mut root = vec![0x08, 0x05, 0x0a, 32];
        root.extend([0xab; 32]);
        root.extend([0x12, 1, 9]);
        assert_eq!(children(&root), ["ab".repeat(32)]);
        root.extend([0x0a, 0xff, 0xff]);
        assert_eq!(children(&root).len(), 1);
        assert!(children(&[0xff; 40]).is_empty());
    }
}

//! A message as its row holds it.
//!
//! Most messages are plain texts whose words are the content itself, without the spaces around
//! it. Those stand in the row once.

use rusqlite::Row;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use yore_domain::conversation::{Attachment, Message, Role};
use yore_domain::memory::Foreign;
use yore_domain::{MessageId, Timestamp};

use crate::select::json;

/// Writes a message.
pub(crate) fn written(message: &Message) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Said<'a> {
        id: MessageId,
        role: Role,
        content: &'a Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<&'a str>,
        at: Timestamp,
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        platform: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<MessageId>,
        off_path: bool,
        #[serde(skip_serializing_if = "<[Attachment]>::is_empty")]
        attachments: &'a [Attachment],
        #[serde(skip_serializing_if = "Foreign::is_empty")]
        foreign: &'a Foreign,
    }
    let Message {
        id,
        role,
        content,
        text,
        at,
        model,
        platform,
        parent,
        off_path,
        attachments,
        foreign,
    } = message;
    let repeats = content.as_str().is_some_and(|content| content.trim() == text);
    serde_json::to_string(&Said {
        id: *id,
        role: *role,
        content,
        text: (!repeats).then_some(text),
        at: *at,
        model: model.as_deref(),
        platform: platform.as_deref(),
        parent: *parent,
        off_path: *off_path,
        attachments,
        foreign,
    })
}

/// Reads a message from a column.
pub(crate) fn message(row: &Row<'_>, column: usize) -> rusqlite::Result<Message> {
    #[derive(Deserialize)]
    struct Said {
        id: MessageId,
        role: Role,
        content: Value,
        text: Option<String>,
        at: Timestamp,
        model: Option<String>,
        platform: Option<String>,
        parent: Option<MessageId>,
        #[serde(default)]
        off_path: bool,
        #[serde(default)]
        attachments: Vec<Attachment>,
        #[serde(default)]
        foreign: Foreign,
    }
    let Said {
        id,
        role,
        content,
        text,
        at,
        model,
        platform,
        parent,
        off_path,
        attachments,
        foreign,
    } = json(row, column)?;
    let text = text.unwrap_or_else(|| trimmed(&content));
    Ok(Message {
        id,
        role,
        content,
        text,
        at,
        model,
        platform,
        parent,
        off_path,
        attachments,
        foreign,
    })
}

/// Reads only the words of a message.
pub(crate) fn words(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    #[derive(Deserialize)]
    struct Said {
        #[serde(default)]
        content: Value,
        text: Option<String>,
    }
    let Said { content, text } = json(row, column)?;
    Ok(text.unwrap_or_else(|| trimmed(&content)))
}

fn trimmed(content: &Value) -> String {
    content.as_str().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_comes_back_and_plain_words_stand_once() {
        let conn = Connection::open_in_memory().unwrap();
        let cases = [
            (json!(" the bees \n"), "the bees", true),
            (json!("the bees"), "the bees", true),
            (json!(""), "", true),
            (json!(" the bees"), " the bees", false),
            (json!("the bees"), "", false),
            (json!("the bees"), "other words", false),
            (json!([{"type": "text", "text": "the bees"}]), "the bees", false),
        ];
        for (content, text, once) in cases {
            let message = Message {
                id: MessageId::random(),
                role: Role::User,
                content,
                text: text.to_owned(),
                at: Timestamp::from_micros(7),
                model: Some("m".to_owned()),
                platform: None,
                parent: Some(MessageId::random()),
                off_path: true,
                attachments: Vec::new(),
                foreign: Foreign::from_iter([("x".to_owned(), json!({"a": 1}))]),
            };
            let data = written(&message).unwrap();
            let stored: Value = serde_json::from_str(&data).unwrap();
            assert_eq!(stored.get("text").is_none(), once, "{data}");
            let whole = serde_json::to_string(&message).unwrap();
            for data in [&data, &whole] {
                let (read, said) = conn
                    .query_row("SELECT ?1", [data], |row| {
                        Ok((super::message(row, 0)?, words(row, 0)?))
                    })
                    .unwrap();
                assert_eq!(said, message.text);
                assert_eq!(read, message);
            }
        }
    }
}

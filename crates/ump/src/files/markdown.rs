//! One record as Markdown: its other members between `---` lines, then its text.
//!
//! The reference form loses blanks around the text. Where they would be lost, the exact text is
//! written among the members, too, and counts as long as the visible text was not edited.

use serde_json::{Value, json};
use yore_domain::{Error, Result};

use super::front;
use crate::wire::Object;

/// Writes a record.
pub(super) fn print(record: &Object) -> String {
    let mut front = record.clone();
    let mut text = String::new();
    if let Some(Value::Object(body)) = front.get_mut("body")
        && let Some(Value::String(said)) = body.get("text").cloned()
    {
        if visible(&said) == said {
            body.shift_remove("text");
        }
        let empty = body.is_empty();
        text = said;
        if empty {
            front.shift_remove("body");
        }
    }
    let front = serde_json::to_string_pretty(&front).expect("invariant: a record is plain JSON");
    format!("---\n{front}\n---\n\n{text}\n")
}

/// Reads a record.
pub(super) fn parse(file: &str) -> Result<Object> {
    let (mut record, rest) = front::split(file)?
        .ok_or_else(|| Error::invalid("front matter", "must begin with a line of ---"))?;
    let shown = visible(rest);
    if !record.contains_key("body") {
        // Where records have it, so that a file in another form comes out the same.
        let after_kind = record.keys().position(|name| name == "kind").map_or(0, |at| at + 1);
        record.shift_insert(after_kind, "body".to_owned(), json!({}));
    }
    let body = record.entry("body").or_insert_with(|| json!({}));
    let body = body.as_object_mut().ok_or_else(|| Error::invalid("body", "must be an object"))?;
    let exact = body.get("text").and_then(Value::as_str);
    if exact.is_none_or(|exact| visible(exact) != shown) {
        body.shift_insert(0, "text".to_owned(), shown.into());
    }
    Ok(record)
}

/// What a reader of the file sees of a text: no blank lines before it, no blanks after it.
fn visible(text: &str) -> &str {
    let mut text = text;
    while let Some((line, rest)) = text.split_once('\n') {
        if !line.trim().is_empty() {
            break;
        }
        text = rest;
    }
    text.trim_end()
}

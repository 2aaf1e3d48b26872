//! The file binding: `*.ump.json`, one record per line, and `*.ump.md`.
//!
//! Every form holds whole records and gives them back as they were, to the last blank of their
//! text. Nothing here opens a file: texts come in and go out. `exchange` turns records into
//! what the engine imports and back, `notes` reads what people wrote for other tools.

mod exchange;
mod front;
mod markdown;
mod notes;

use serde_json::Value;
use yore_canon::json::{self, Limits};
use yore_domain::{Error, Result};

use crate::id;
use crate::wire::Object;

pub use exchange::{Export, Exported, Extent, Redaction, items};
pub use notes::{NOTE_BYTES, Source, drafts, is_skipped, notes};

/// How large a file may be.
pub const FILE_BYTES: usize = 256 << 20;
/// How large a file may be and how deep it may nest.
const LIMITS: Limits = Limits { bytes: FILE_BYTES, depth: 64, nodes: 50_000_000 };

/// A form of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A list of records.
    Json,
    /// A record per line.
    Ndjson,
    /// One record, its text as Markdown under its other members.
    Markdown,
}

impl Format {
    /// All forms.
    pub const ALL: [Self; 3] = [Self::Json, Self::Ndjson, Self::Markdown];

    /// Returns its name, which is also how file names end.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Json => "ump.json",
            Self::Ndjson => "ndjson",
            Self::Markdown => "ump.md",
        }
    }

    /// Reads a name.
    pub fn parse(text: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|format| format.as_str() == text)
            .ok_or_else(|| Error::invalid("format", "must be ump.json, ndjson or ump.md"))
    }

    /// Says which form a file has, by its name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        let lower = name.to_ascii_lowercase();
        if lower.ends_with(".jsonl") {
            return Some(Self::Ndjson);
        }
        Self::ALL.into_iter().find(|format| lower.ends_with(&format!(".{}", format.as_str())))
    }
}

/// Writes records. Markdown holds one.
pub fn print(records: &[Object], format: Format) -> Result<String> {
    match format {
        Format::Json => {
            let mut text = serde_json::to_string_pretty(records).map_err(Error::internal)?;
            text.push('\n');
            Ok(text)
        }
        Format::Ndjson => Ok(records
            .iter()
            .map(|record| format!("{}\n", Value::Object(record.clone())))
            .collect()),
        Format::Markdown => match records {
            [record] => Ok(markdown::print(record)),
            _ => Err(Error::invalid("records", "a Markdown file holds one record")),
        },
    }
}

/// Writes records as they come, in a form that holds many.
#[derive(Debug)]
pub struct Writer {
    format: Format,
    written: usize,
}

impl Writer {
    /// Begins. Markdown holds one record and is refused.
    pub fn new(format: Format) -> Result<Self> {
        match format {
            Format::Json | Format::Ndjson => Ok(Self { format, written: 0 }),
            Format::Markdown => Err(Error::invalid("format", "a Markdown file holds one record")),
        }
    }

    /// Returns the text of one more record.
    pub fn next(&mut self, record: &Object) -> Result<String> {
        self.written += 1;
        if self.format == Format::Ndjson {
            return print(std::slice::from_ref(record), Format::Ndjson);
        }
        let text = serde_json::to_string_pretty(record).map_err(Error::internal)?;
        let before = if self.written == 1 { "[\n  " } else { ",\n  " };
        Ok(format!("{before}{}", text.replace('\n', "\n  ")))
    }

    /// Returns what ends the file.
    #[must_use]
    pub fn end(self) -> &'static str {
        match (self.format, self.written) {
            (Format::Json, 0) => "[]\n",
            (Format::Json, _) => "\n]\n",
            (Format::Ndjson | Format::Markdown, _) => "",
        }
    }
}

/// Reads records. A list may be a single record.
pub fn parse(text: &str, format: Format) -> Result<Vec<Object>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match format {
        Format::Json => {
            let value = value(text, "the file")?;
            let Value::Array(list) = value else { return Ok(vec![record(value, "the file")?]) };
            let numbered = list.into_iter().enumerate();
            numbered.map(|(at, one)| record(one, &format!("record {}", at + 1))).collect()
        }
        Format::Ndjson => text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
            .map(|(at, line)| {
                let place = format!("line {}", at + 1);
                record(value(line, &place)?, &place)
            })
            .collect(),
        Format::Markdown => Ok(vec![markdown::parse(text)?]),
    }
}

/// Returns a short text that differs when records differ in anything but their proof.
#[must_use]
pub fn fingerprint(record: &Object) -> String {
    yore_canon::seal::content_hash(record).to_string()
}

/// Whether a value looks like a record, whole or not.
#[must_use]
pub fn is_record(value: &Value) -> bool {
    let has = |name: &str| value.get(name).is_some();
    has("ump") || (has("kind") && has("body") && has("scope"))
}

/// Whether a text is Markdown whose front matter is a record's.
#[must_use]
pub fn has_record(text: &str) -> bool {
    let members = front::split(text).ok().flatten();
    members.is_some_and(|(members, _)| members.contains_key("ump") && members.contains_key("kind"))
}

/// Returns the name of the file that holds one record.
#[must_use]
pub fn file_name(record: &Object) -> String {
    let id = record.get("id").and_then(Value::as_str).unwrap_or_default();
    let rest = id.strip_prefix(id::PREFIX).unwrap_or(id);
    let safe: String = rest
        .chars()
        .map(|c| if matches!(c, 'a'..='z' | '2'..='7') { c } else { '-' })
        .take(128)
        .collect();
    format!("{safe}.{}", Format::Markdown.as_str())
}

fn value(text: &str, place: &str) -> Result<Value> {
    json::parse_with(text.as_bytes(), LIMITS)
        .map_err(|error| Error::invalid(place, error.to_string()))
}

fn record(value: Value, place: &str) -> Result<Object> {
    let Value::Object(record) = value else {
        return Err(Error::invalid(place, "must be a record"));
    };
    Ok(record)
}

#[cfg(test)]
mod tests;

//! Front matter: what stands between the first two lines of `---`, as JSON, YAML or JSON-LD.

use serde_json::Value;
use yore_canon::json::{self, Limits};
use yore_domain::{Error, Result};

use crate::wire::Object;

const FENCE: &str = "---";
/// How large front matter may be.
const BYTES: usize = 4 << 20;
const LIMITS: Limits = Limits { bytes: BYTES, depth: 64, nodes: 1_000_000 };
/// What linked data put before the protocol's own names.
const PREFIX: &str = "ump:";

/// Splits a file into its front matter and the rest; `None` when it has none.
pub(super) fn split(file: &str) -> Result<Option<(Object, &str)>> {
    let Some((front, rest)) = cut(file) else { return Ok(None) };
    let front = match front.trim_start().starts_with('{') {
        true => json::parse_with(front.as_bytes(), LIMITS)
            .map_err(|error| Error::invalid("front matter", error.to_string()))?,
        false => yaml(front)?,
    };
    match front {
        Value::Object(members) => Ok(Some((plain(members), rest))),
        Value::Null => Ok(Some((Object::new(), rest))),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(Error::invalid("front matter", "must be a map"))
        }
    }
}

/// Cuts a file after its front matter.
pub(super) fn cut(file: &str) -> Option<(&str, &str)> {
    let file = file.strip_prefix('\u{feff}').unwrap_or(file);
    let (first, rest) = file.split_once('\n')?;
    if first.trim_end() != FENCE {
        return None;
    }
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == FENCE {
            return Some((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

fn yaml(text: &str) -> Result<Value> {
    if text.len() > BYTES {
        return Err(Error::too_large("front matter", "4 MiB"));
    }
    // The parser's own words would repeat the file's.
    serde_saphyr::from_str(text)
        .map_err(|_| Error::invalid("front matter", "is neither JSON nor YAML"))
}

/// Members without what linked data and YAML make of them.
fn plain(members: Object) -> Object {
    let mut plain = Object::new();
    for (name, value) in members {
        let name = match name.as_str() {
            "@id" => "id",
            "@context" | "@type" => continue,
            name => name.strip_prefix(PREFIX).unwrap_or(name),
        };
        let value = match (name, value) {
            // A version without quotes is a number to YAML.
            ("ump", Value::Number(number)) => {
                format!("{:.1}", number.as_f64().unwrap_or_default()).into()
            }
            ("body", Value::Object(body)) => body
                .into_iter()
                .map(|(name, value)| (name.strip_prefix(PREFIX).unwrap_or(&name).to_owned(), value))
                .collect::<Object>()
                .into(),
            (_, value) => unlinked(value),
        };
        plain.insert(name.to_owned(), value);
    }
    plain
}

fn unlinked(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            // `{"@id": "…"}` is how linked data writes a reference, `{"@value": …}` a value.
            if let [(name, inner)] = members.iter().collect::<Vec<_>>()[..]
                && matches!(name.as_str(), "@id" | "@value")
            {
                return inner.clone();
            }
            plain(members).into()
        }
        Value::Array(list) => list.into_iter().map(unlinked).collect(),
        value @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => value,
    }
}

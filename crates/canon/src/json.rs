//! Strict I-JSON (RFC 7493): one meaning per document, bounded before it is built.
//!
//! Duplicate member names, lone surrogates, bytes that are not UTF-8 and numbers outside
//! the IEEE double range are refused, because two readers could disagree about them and a
//! signature over the text would then mean two things.

use std::fmt;

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Number, Value};

/// A JSON object with its members in the order they were sent.
pub type Object = Map<String, Value>;

/// The deepest nesting any [`Limits`] can allow, whatever its `depth` says.
pub const MAX_DEPTH: usize = 127;

/// Bounds on a document, checked before and while it is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest accepted document in bytes.
    pub bytes: usize,
    /// The deepest accepted nesting; a scalar is at depth 0 and `[]` at depth 1.
    pub depth: usize,
    /// The most values (scalars, arrays and objects together) a document may hold.
    pub nodes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 1 << 20, depth: 32, nodes: 100_000 }
    }
}

/// Why a document was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The document is longer than the limit.
    #[error("document of {actual} bytes is over the limit of {limit}")]
    TooLarge {
        /// The limit that was passed.
        limit: usize,
        /// The length of the document.
        actual: usize,
    },
    /// The document nests deeper than the limit.
    #[error("nesting at byte {offset} is over the limit of {limit}")]
    TooDeep {
        /// The limit that was passed.
        limit: usize,
        /// The byte that opens the first level too many.
        offset: usize,
    },
    /// The document holds more values than the limit.
    #[error("value at {path} is over the limit of {limit} values")]
    TooMany {
        /// The limit that was passed.
        limit: usize,
        /// JSON pointer of the first value too many.
        path: String,
    },
    /// The bytes are not UTF-8.
    #[error("not UTF-8 at byte {offset}")]
    NotUtf8 {
        /// The first byte that is not part of a character.
        offset: usize,
    },
    /// An object names a member twice.
    #[error("duplicate member at {path}")]
    Duplicate {
        /// JSON pointer of the second member of that name.
        path: String,
    },
    /// The text is not JSON, or holds a lone surrogate or a number outside the double range.
    #[error("{reason} at byte {offset}, inside {path}")]
    Syntax {
        /// What the parser found wrong.
        reason: String,
        /// How far the parser had read.
        offset: usize,
        /// JSON pointer of the innermost value being read.
        path: String,
    },
    /// The document is valid but has another shape than the one asked for.
    #[error("unexpected shape: {0}")]
    Shape(String),
}

/// Parses a document under the default [`Limits`].
pub fn parse(bytes: &[u8]) -> Result<Value, Error> {
    parse_with(bytes, Limits::default())
}

/// Parses a document under the given limits.
pub fn parse_with(bytes: &[u8], limits: Limits) -> Result<Value, Error> {
    if bytes.len() > limits.bytes {
        return Err(Error::TooLarge { limit: limits.bytes, actual: bytes.len() });
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Error::NotUtf8 { offset: error.valid_up_to() })?;
    // Before parsing, so that no recursion happens on behalf of a document that will be refused.
    check_depth(bytes, limits.depth.min(MAX_DEPTH))?;

    let mut walk = Walk::new(limits.nodes);
    let mut parser = serde_json::Deserializer::from_str(text);
    Node { walk: &mut walk }
        .deserialize(&mut parser)
        .and_then(|value| parser.end().map(|()| value))
        .map_err(|error| walk.refusal(text, &error))
}

/// Parses a document that must be an object.
pub fn parse_object(bytes: &[u8], limits: Limits) -> Result<Object, Error> {
    match parse_with(bytes, limits)? {
        Value::Object(object) => Ok(object),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(Error::Shape("expected an object".to_owned()))
        }
    }
}

/// Parses a document strictly and then reads it as `T`.
pub fn parse_as<T: DeserializeOwned>(bytes: &[u8], limits: Limits) -> Result<T, Error> {
    let value = parse_with(bytes, limits)?;
    serde_json::from_value(value).map_err(|error| Error::Shape(error.to_string()))
}

fn check_depth(bytes: &[u8], limit: usize) -> Result<(), Error> {
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    for (offset, byte) in bytes.iter().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'[' | b'{' => {
                depth += 1;
                if depth > limit {
                    return Err(Error::TooDeep { limit, offset });
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Ok(())
}

enum Refusal {
    TooMany,
    Duplicate,
}

/// What the visitor learns on the way. The path is filled only while an error unwinds, so an
/// accepted document pays nothing for it.
struct Walk {
    limit: usize,
    left: usize,
    refusal: Option<Refusal>,
    path: Vec<String>,
}

impl Walk {
    fn new(limit: usize) -> Self {
        Self { limit, left: limit, refusal: None, path: Vec::new() }
    }

    fn refusal(&self, text: &str, error: &serde_json::Error) -> Error {
        let path = self.pointer();
        match self.refusal {
            Some(Refusal::TooMany) => Error::TooMany { limit: self.limit, path },
            Some(Refusal::Duplicate) => Error::Duplicate { path },
            None => Error::Syntax {
                reason: reason(error),
                offset: offset(text, error.line(), error.column()),
                path,
            },
        }
    }

    fn pointer(&self) -> String {
        if self.path.is_empty() {
            return "the document".to_owned();
        }
        let mut pointer = String::new();
        for segment in self.path.iter().rev() {
            pointer.push('/');
            pointer.push_str(segment);
        }
        pointer
    }

    fn inside_member(&mut self, name: &str) {
        const LONGEST: usize = 64;
        let mut segment: String = name.chars().take(LONGEST).flat_map(char::escape_debug).collect();
        segment = segment.replace('~', "~0").replace('/', "~1");
        if name.chars().nth(LONGEST).is_some() {
            segment.push('…');
        }
        self.path.push(segment);
    }
}

fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

fn offset(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (start + column).min(text.len())
}

struct Node<'w> {
    walk: &'w mut Walk,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.walk.left == 0 {
            self.walk.refusal = Some(Refusal::TooMany);
            return Err(D::Error::custom("too many values"));
        }
        self.walk.left -= 1;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            match access.next_element_seed(Node { walk: &mut *self.walk }) {
                Ok(Some(item)) => items.push(item),
                Ok(None) => return Ok(Value::Array(items)),
                Err(error) => {
                    self.walk.path.push(items.len().to_string());
                    return Err(error);
                }
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut object = Object::new();
        while let Some(name) = access.next_key::<String>()? {
            if object.contains_key(&name) {
                self.walk.refusal = Some(Refusal::Duplicate);
                self.walk.inside_member(&name);
                return Err(A::Error::custom("duplicate member"));
            }
            match access.next_value_seed(Node { walk: &mut *self.walk }) {
                Ok(value) => object.insert(name, value),
                Err(error) => {
                    self.walk.inside_member(&name);
                    return Err(error);
                }
            };
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn accepts_what_has_one_meaning() {
        let cases = [
            ("null", json!(null)),
            (" [1, -2, 0.5, 1e3] ", json!([1, -2, 0.5, 1000.0])),
            (r#"{"b":1,"a":{"b":1}}"#, json!({"b": 1, "a": {"b": 1}})),
            (r#""\ud83d\ude00\u0000/""#, json!("😀\0/")),
            ("18446744073709551615", json!(u64::MAX)),
        ];
        for (text, value) in cases {
            assert_eq!(parse(text.as_bytes()), Ok(value), "{text}");
        }
    }

    #[test]
    fn uamp_014_ambiguous_documents_are_refused_with_their_place() {
        let cases: [(&[u8], &str); 14] = [
            (br#"{"a":1,"a":1}"#, "duplicate member at /a"),
            (br#"{"x":[0,{"a":1,"\u0061":2}]}"#, "duplicate member at /x/1/a"),
            (b"[\"\xff\"]", "not UTF-8 at byte 2"),
            (b"\xef\xbb\xbf1", "expected value at byte 1, inside the document"),
            (b"[1,1e400]", "number out of range at byte 8, inside /1"),
            (b"{\"n\":\n-1e999}", "number out of range at byte 12, inside /n"),
            (br#"["\ud800"]"#, "unexpected end of hex escape at byte 9, inside /0"),
            (br#"["\udc00"]"#, "lone leading surrogate in hex escape at byte 8, inside /0"),
            (br#"{"\ud800x":1}"#, "unexpected end of hex escape at byte 9, inside the document"),
            (b"[1,]", "trailing comma at byte 4, inside /1"),
            (b"1 2", "trailing characters at byte 3, inside the document"),
            (b"", "EOF while parsing a value at byte 0, inside the document"),
            (b"NaN", "expected value at byte 1, inside the document"),
            (b"01", "invalid number at byte 2, inside the document"),
        ];
        for (bytes, message) in cases {
            let refused = parse(bytes).expect_err("must be refused");
            assert_eq!(refused.to_string(), message);
        }
    }

    #[test]
    fn limits_hold_at_their_edges() {
        let limits = Limits { bytes: 12, depth: 2, nodes: 4 };
        assert!(parse_with(b"[[1],\"[{[{\"]", limits).is_ok());
        assert_eq!(
            parse_with(b"[[1],\"[{[{\"] ", limits),
            Err(Error::TooLarge { limit: 12, actual: 13 })
        );
        assert_eq!(
            parse_with(b"[{\"a\":[]}]", limits),
            Err(Error::TooDeep { limit: 2, offset: 6 })
        );
        assert!(parse_with(b"[1,2,3]", limits).is_ok());
        assert_eq!(
            parse_with(b"[1,2,[3]]", limits),
            Err(Error::TooMany { limit: 4, path: "/2/0".to_owned() })
        );
    }

    #[test]
    fn depth_never_exceeds_what_the_parser_can_recurse() {
        let limits = Limits { depth: usize::MAX, ..Limits::default() };
        let nested = |levels: usize| [b"[".repeat(levels), b"]".repeat(levels)].concat();
        assert!(parse_with(&nested(MAX_DEPTH), limits).is_ok());
        assert_eq!(
            parse_with(&nested(MAX_DEPTH + 1), limits),
            Err(Error::TooDeep { limit: MAX_DEPTH, offset: MAX_DEPTH })
        );
    }

    #[test]
    fn long_names_are_cut_in_messages() {
        let name = "k".repeat(5000);
        let text = format!(r#"{{"{name}":1,"{name}":2}}"#);
        let message = parse(text.as_bytes()).expect_err("duplicate").to_string();
        assert!(message.len() < 120, "{message}");
    }

    #[test]
    fn typed_parsing_is_strict_too() {
        assert_eq!(parse_as::<Vec<u8>>(b"[1,2]", Limits::default()), Ok(vec![1, 2]));
        assert!(matches!(parse_as::<Vec<u8>>(b"[256]", Limits::default()), Err(Error::Shape(_))));
        assert!(matches!(parse_object(b"[]", Limits::default()), Err(Error::Shape(_))));
    }
}

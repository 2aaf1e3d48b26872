//! JSON as exports have it: strict, but for surrogates that stand alone.

use serde_json::{Map, Value};

use crate::Result;

/// A JSON object.
pub(crate) type Object = Map<String, Value>;

/// Parses a document. A lone surrogate becomes U+FFFD; whether one was found is told.
pub(crate) fn parse(bytes: &[u8]) -> Result<(Value, bool)> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match mended(bytes) {
        None => Ok((serde_json::from_slice(bytes)?, false)),
        Some(mended) => Ok((serde_json::from_slice(&mended)?, true)),
    }
}

/// Replaces the escapes of surrogates that have no partner.
fn mended(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out: Option<Vec<u8>> = None;
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', bytes.get(at..).unwrap_or_default()) {
        let escape = at + found;
        at = escape + 2;
        if bytes.get(escape + 1) != Some(&b'u') {
            continue;
        }
        let Some(unit) = unit(bytes, escape) else { continue };
        if !(0xd800..0xe000).contains(&unit) {
            continue;
        }
        let paired = unit < 0xdc00
            && bytes.get(escape + 6) == Some(&b'\\')
            && bytes.get(escape + 7) == Some(&b'u')
            && self::unit(bytes, escape + 6).is_some_and(|low| (0xdc00..0xe000).contains(&low));
        if paired {
            at = escape + 12;
            continue;
        }
        let out = out.get_or_insert_with(|| bytes.to_vec());
        out[escape..escape + 6].copy_from_slice(b"\\ufffd");
        at = escape + 6;
    }
    out
}

fn unit(bytes: &[u8], escape: usize) -> Option<u32> {
    let digits = std::str::from_utf8(bytes.get(escape + 2..escape + 6)?).ok()?;
    u32::from_str_radix(digits, 16).ok()
}

/// Looks things up in values that may have any form.
pub(crate) trait Look {
    /// Returns a member that is a text.
    fn text(&self, name: &str) -> Option<&str>;
    /// Returns a member that is a text which is not empty.
    fn filled(&self, name: &str) -> Option<&str> {
        self.text(name).filter(|text| !text.is_empty())
    }
    /// Returns a member that is a list, or nothing to iterate over.
    fn list(&self, name: &str) -> &[Value];
    /// Returns a member that is an object.
    fn inner(&self, name: &str) -> Option<&Object>;
    /// Whether a member is `true`.
    fn flag(&self, name: &str) -> bool;
}

impl Look for Object {
    fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    fn list(&self, name: &str) -> &[Value] {
        self.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn inner(&self, name: &str) -> Option<&Object> {
        self.get(name)?.as_object()
    }

    fn flag(&self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool) == Some(true)
    }
}

impl Look for Value {
    fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    fn list(&self, name: &str) -> &[Value] {
        self.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn inner(&self, name: &str) -> Option<&Object> {
        self.get(name)?.as_object()
    }

    fn flag(&self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool) == Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_are_replaced_and_told() {
        let cases = [
            (r#""a\ud83d""#, "a\u{fffd}", true),
            (r#""\udc1d!""#, "\u{fffd}!", true),
            (r#""\ud83d\ud83d\udc1d""#, "\u{fffd}\u{1f41d}", true),
            (r#""\ud83d\udc1d""#, "\u{1f41d}", false),
            (r#""\\ud83d""#, "\\ud83d", false),
            (r#""\u0000""#, "\0", false),
        ];
        for (text, expected, told) in cases {
            assert_eq!(parse(text.as_bytes()).unwrap(), (Value::from(expected), told), "{text}");
        }
    }

    #[test]
    fn nesting_that_would_need_a_deep_stack_is_refused() {
        let deep = [b"[".repeat(1_000_000), b"]".repeat(1_000_000)].concat();
        assert!(parse(&deep).is_err());
    }

    #[test]
    fn times_keep_their_last_digit() {
        for text in ["1773480413.589793", "1696118400.0", "0.1", "1e-7", "18446744073709551615"] {
            let value = parse(text.as_bytes()).unwrap().0;
            let again = parse(value.to_string().as_bytes()).unwrap().0;
            assert_eq!(value, again, "{text}");
        }
        assert_eq!(parse(b"1773480413.589793").unwrap().0.to_string(), "1773480413.589793");
    }
}

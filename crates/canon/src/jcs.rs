//! JSON Canonicalization Scheme (RFC 8785): the one byte sequence that stands for a value.
//!
//! Members are ordered by UTF-16 code units, numbers are printed as ECMAScript prints
//! doubles (so integers beyond 2^53 are rounded first), and strings escape only what JSON
//! forbids.

use serde::Serialize;
use serde_json::{Number, Value};

use crate::json::Object;

/// Why a Rust value has no canonical form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not expressible as JSON: {0}")]
pub struct Error(String);

/// Returns the canonical text of a value.
pub fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write_value(&mut out, value);
    out
}

/// Returns the canonical text of an object.
pub fn canonical_object(object: &Object) -> String {
    canonical_without(object, &[])
}

/// Returns the canonical text of an object with some of its top-level members left out.
pub fn canonical_without(object: &Object, left_out: &[&str]) -> String {
    let mut out = String::new();
    write_members(&mut out, object, left_out);
    out
}

/// Returns the canonical text of anything that serialises; floats that are not finite become
/// `null`, as they do everywhere in `serde_json`.
pub fn canonical_of<T: Serialize + ?Sized>(value: &T) -> Result<String, Error> {
    serde_json::to_value(value)
        .map(|value| canonical(&value))
        .map_err(|error| Error(error.to_string()))
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(out, item);
            }
            out.push(']');
        }
        Value::Object(object) => write_members(out, object, &[]),
    }
}

fn write_members(out: &mut String, object: &Object, left_out: &[&str]) {
    let mut members: Vec<(&String, &Value)> =
        object.iter().filter(|(name, _)| !left_out.contains(&name.as_str())).collect();
    members.sort_unstable_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
    out.push('{');
    for (index, (name, value)) in members.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(out, name);
        out.push(':');
        write_value(out, value);
    }
    out.push('}');
}

fn write_number(out: &mut String, number: &Number) {
    let double = number.as_f64().expect("invariant: every JSON number here has a double");
    out.push_str(ryu_js::Buffer::new().format_finite(double));
}

fn write_string(out: &mut String, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push('"');
    let mut plain = 0;
    for (index, byte) in text.bytes().enumerate() {
        let short = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            0x08 => "\\b",
            0x09 => "\\t",
            0x0a => "\\n",
            0x0c => "\\f",
            0x0d => "\\r",
            0x00..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[plain..index]);
        plain = index + 1;
        if short.is_empty() {
            out.push_str("\\u00");
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 0xf)]));
        } else {
            out.push_str(short);
        }
    }
    out.push_str(&text[plain..]);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ump_031_numbers_print_as_ecmascript() {
        let cases = [
            ("0", "0"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("1.0", "1"),
            ("1e2", "100"),
            ("1e20", "100000000000000000000"),
            ("1e21", "1e+21"),
            ("1e-6", "0.000001"),
            ("1e-7", "1e-7"),
            ("5e-324", "5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("9007199254740991", "9007199254740991"),
            ("9007199254740993", "9007199254740992"),
            ("-9007199254740993", "-9007199254740992"),
            ("18446744073709551615", "18446744073709552000"),
            ("295147905179352830000", "295147905179352830000"),
            ("9.999999999999997e22", "9.999999999999997e+22"),
            ("333333333.33333329", "333333333.3333333"),
            ("1424953923781206.2", "1424953923781206.2"),
        ];
        for (text, printed) in cases {
            let value: Value = serde_json::from_str(text).expect("a number");
            assert_eq!(canonical(&value), printed, "{text}");
        }
    }

    #[test]
    fn ump_031_only_the_mandated_escapes_are_written() {
        let value =
            json!("\u{0}\u{7}\u{8}\t\n\u{b}\u{c}\r\u{1f} \"\\/\u{7f}\u{80}\u{2028}\u{2029}é😀");
        assert_eq!(
            canonical(&value),
            "\"\\u0000\\u0007\\b\\t\\n\\u000b\\f\\r\\u001f \\\"\\\\/\u{7f}\u{80}\u{2028}\u{2029}é😀\""
        );
    }

    #[test]
    fn ump_031_members_sort_by_utf16_at_every_depth() {
        let value =
            json!({"\u{fb33}": 1, "😀": {"b": 1, "B": 2, "": 3}, "10": [{"z": 1, "a": 2}], "9": 0});
        assert_eq!(
            canonical(&value),
            "{\"10\":[{\"a\":2,\"z\":1}],\"9\":0,\"😀\":{\"\":3,\"B\":2,\"b\":1},\"\u{fb33}\":1}"
        );
    }

    #[test]
    fn members_are_left_out_at_the_top_only() {
        let value = json!({"sig": 1, "a": {"sig": 2}});
        let object = value.as_object().expect("an object");
        assert_eq!(canonical_without(object, &["sig", "absent"]), r#"{"a":{"sig":2}}"#);
        assert_eq!(canonical_object(object), r#"{"a":{"sig":2},"sig":1}"#);
    }

    #[test]
    fn anything_that_serialises_has_a_canonical_form() {
        #[derive(Serialize)]
        struct Point {
            y: f64,
            x: Option<u8>,
        }
        assert_eq!(canonical_of(&Point { y: 2.0, x: None }).as_deref(), Ok(r#"{"x":null,"y":2}"#));
        assert!(canonical_of(&std::collections::BTreeMap::from([((1, 2), 3)])).is_err());
    }
}

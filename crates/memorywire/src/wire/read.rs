//! From members to a request, with errors that say where and repeat nothing.

use serde::de::DeserializeOwned;
use serde_json::Value;
use yore_domain::{Error, Result};

use super::Object;

/// Reads a request.
pub(crate) fn read<T: DeserializeOwned>(input: Object) -> Result<T> {
    let input = Value::Object(input);
    T::deserialize(&input).map_err(|error| {
        let text = error.to_string();
        match missing(&text) {
            Some(name) => Error::invalid(name, "is required"),
            None => Error::invalid(culprit::<T>(&input, &text), without_values(&text)),
        }
    })
}

fn missing(text: &str) -> Option<&str> {
    let (name, _) = text.strip_prefix("missing field `")?.split_once('`')?;
    Some(name)
}

/// The member that fails by itself in the same way.
fn culprit<T: DeserializeOwned>(input: &Value, text: &str) -> String {
    let mut members = input.as_object().into_iter().flatten();
    let found = members.find(|(name, value)| {
        let alone = Value::Object(Object::from_iter([((*name).clone(), (*value).clone())]));
        T::deserialize(&alone).is_err_and(|error| error.to_string() == text)
    });
    found.map_or_else(|| "input".to_owned(), |(name, _)| name.clone())
}

/// The parser's words without the caller's, which stand in double quotes.
fn without_values(text: &str) -> String {
    match (text.find('"'), text.rfind('"')) {
        (Some(first), Some(last)) => format!("{}…{}", &text[..first], &text[last + 1..]),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Recall, Remember};
    use super::*;

    fn object(value: Value) -> Object {
        value.as_object().cloned().unwrap()
    }

    fn said<T: DeserializeOwned>(input: Value) -> String {
        match read::<T>(object(input)) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn mw_005_a_request_that_breaks_a_rule_is_told_where_and_hears_no_value_again() {
        let table = [
            (json!({"agent_id": "a", "type": "semantic"}), "invalid content: is required"),
            (
                json!({"agent_id": "a", "type": "secret", "content": "x"}),
                "invalid type: must be one of semantic episodic procedural emotional",
            ),
            (
                json!({"agent_id": "a", "type": "semantic", "content": "x", "confidence": "se\"cret"}),
                "invalid confidence: invalid type: string …, expected f64",
            ),
        ];
        for (input, expected) in table {
            assert_eq!(said::<Remember>(input), expected);
        }
        let negative = said::<Recall>(json!({"agent_id": "a", "query": "x", "k": -1}));
        assert!(negative.starts_with("invalid k: "), "{negative}");
    }

    #[test]
    fn mw_004_members_that_are_not_known_are_no_fault_and_are_kept() {
        let input = json!({
            "agent_id": "a", "type": "episodic", "content": "x", "event_time": 7, "new": {"a": 1},
        });
        let read: Remember = read(object(input)).unwrap();
        assert_eq!(Value::Object(read.extra), json!({"event_time": 7, "new": {"a": 1}}));
    }
}

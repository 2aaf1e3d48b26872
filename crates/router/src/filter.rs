//! The filters of recall and forget: members that must be equal, all of them.

use serde_json::Value;

use crate::record::{Object, Record};

/// Whether a record has all members of a filter (MW-060). `agent_id`, `user_id`, `type`, `source`
/// and `confidence` are the record's own; every other name is a path in its metadata, dots
/// descending. Only texts, numbers and truth values are ever equal; a list or an object in the
/// filter matches nothing.
#[must_use]
pub fn passes(filter: &Object, record: &Record) -> bool {
    filter.iter().all(|(name, wanted)| match name.as_str() {
        "agent_id" => is_text(wanted, Some(&record.agent_id)),
        "user_id" => is_text(wanted, record.user_id.as_deref()),
        "type" => is_text(wanted, Some(record.kind.as_str())),
        "source" => is_text(wanted, record.source.as_deref()),
        "confidence" => wanted.as_f64() == Some(record.confidence),
        path => at(&record.metadata, path).is_some_and(|value| equal(value, wanted)),
    })
}

fn is_text(wanted: &Value, text: Option<&str>) -> bool {
    text.is_some() && wanted.as_str() == text
}

/// What lies at a path. A member with dots in its own name counts before what lies deeper.
fn at<'a>(members: &'a Object, path: &str) -> Option<&'a Value> {
    if let Some(value) = members.get(path) {
        return Some(value);
    }
    let (first, rest) = path.split_once('.')?;
    at(members.get(first)?.as_object()?, rest)
}

fn equal(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        // 1 and 1.0 are one number.
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_),
            _,
        ) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::record::{Type, Whose};

    fn record() -> Record {
        let whose = Whose { agent: "a".into(), user: Some("alice".into()) };
        let mut record = Record::new("1", &whose, Type::Semantic, "text", 0);
        record.metadata = json!({"n": 1, "flag": true, "deep": {"er": "x"}, "list": [1], "a.b": 2})
            .as_object()
            .cloned()
            .unwrap();
        record.confidence = 0.5;
        record
    }

    #[test]
    fn mw_060_members_must_be_equal_and_only_scalars_are() {
        for (filter, expected) in [
            (json!({}), true),
            (json!({"n": 1}), true),
            (json!({"n": 1.0}), true),
            (json!({"n": "1"}), false),
            (json!({"n": {"gt": 0}}), false),
            (json!({"list": [1]}), false),
            (json!({"absent": null}), false),
            (json!({"deep.er": "x"}), true),
            (json!({"a.b": 2}), true),
            (json!({"deep": {"er": "x"}}), false),
            (json!({"type": "semantic", "user_id": "alice", "confidence": 0.5}), true),
            (json!({"type": "episodic"}), false),
            (json!({"flag": true, "n": 2}), false),
            (json!({"source": null}), false),
        ] {
            let members = filter.as_object().unwrap();
            assert_eq!(passes(members, &record()), expected, "{filter}");
        }
    }

    #[test]
    fn mw_061_an_agent_in_the_filter_cannot_widen_the_request() {
        let mut question =
            crate::Question::new(Whose { agent: "b".into(), user: None }, "text", 5, 0);
        question.filter = json!({"agent_id": "a"}).as_object().cloned().unwrap();
        assert!(!question.admits(&record()));
    }
}

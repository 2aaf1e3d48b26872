//! A session as a log of changes: a snapshot, then values set, pushed and removed by path.

use serde_json::Value;

use crate::json::Look;

/// The longest list a path may reach into.
const LONGEST: usize = 1_000_000;

/// Applies one line of a log; what makes no sense is passed over.
pub(super) fn apply(state: &mut Value, change: &Value) {
    let value = change.get("v").cloned().unwrap_or_default();
    let path = change.list("k");
    match change.get("kind").and_then(Value::as_u64) {
        Some(0) => *state = value,
        Some(1) => {
            if let Some(place) = reach(state, path) {
                *place = value;
            }
        }
        Some(2) => {
            let Some(place) = reach(state, path) else { return };
            if !place.is_array() {
                *place = Value::Array(Vec::new());
            }
            if let Some(list) = place.as_array_mut() {
                if let Some(from) = change.get("i").and_then(Value::as_u64) {
                    list.truncate(usize::try_from(from).unwrap_or(usize::MAX));
                }
                list.extend(value.as_array().cloned().unwrap_or_default());
            }
        }
        Some(3) => {
            let Some((last, above)) = path.split_last() else { return };
            let Some(place) = reach(state, above) else { return };
            if let Some(name) = last.as_str()
                && let Some(object) = place.as_object_mut()
            {
                object.remove(name);
            }
        }
        Some(_) | None => {}
    }
}

/// Walks to a place, making objects on the way; lists are not made longer than a step.
fn reach<'a>(state: &'a mut Value, path: &[Value]) -> Option<&'a mut Value> {
    let mut place = state;
    for step in path.iter().take(64) {
        place = if let Some(name) = step.as_str() {
            if !place.is_object() {
                *place = Value::Object(serde_json::Map::new());
            }
            place.as_object_mut()?.entry(name.to_owned()).or_insert(Value::Null)
        } else {
            let index = usize::try_from(step.as_u64()?).ok().filter(|index| *index < LONGEST)?;
            if !place.is_array() {
                *place = Value::Array(Vec::new());
            }
            let list = place.as_array_mut()?;
            // A log may lack its snapshot: the places before are then unknown.
            while list.len() <= index && list.len() < 10_000 {
                list.push(Value::Null);
            }
            list.get_mut(index)?
        };
    }
    Some(place)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_log_is_replayed_and_nonsense_is_passed_over() {
        let mut state = Value::Null;
        for change in [
            json!({"kind": 0, "v": {"requests": []}}),
            json!({"kind": 2, "k": ["requests"], "v": [{"response": []}]}),
            json!({"kind": 2, "k": ["requests", 0, "response"], "v": [1, 2]}),
            json!({"kind": 2, "k": ["requests", 0, "response"], "v": [3], "i": 0}),
            json!({"kind": 1, "k": ["title"], "v": "t"}),
            json!({"kind": 1, "k": ["gone"], "v": 1}),
            json!({"kind": 3, "k": ["gone"]}),
            json!({"kind": 1, "k": ["requests", 99_999_999_999_u64], "v": 1}),
            json!({"kind": 3, "k": []}),
            json!({"kind": 9}),
            json!([]),
        ] {
            apply(&mut state, &change);
        }
        assert_eq!(state, json!({"requests": [{"response": [3]}], "title": "t"}));
    }
}

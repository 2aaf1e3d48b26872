//! Leaving out what consent says must not cross a visibility boundary.

use serde_json::Value;

/// Removes the members at the dotted paths; a path that leads nowhere is passed over.
///
/// Returns whether anything was removed, in which case any integrity block no longer fits.
pub fn redact(record: &mut Value, paths: &[String]) -> bool {
    let removed = paths.iter().filter(|path| remove(record, path)).count();
    removed > 0
}

fn remove(record: &mut Value, path: &str) -> bool {
    let mut at = record;
    let mut segments = path.split('.').peekable();
    while let Some(segment) = segments.next() {
        let Some(object) = at.as_object_mut() else {
            return false;
        };
        if segments.peek().is_none() {
            return object.shift_remove(segment).is_some();
        }
        let Some(inner) = object.get_mut(segment) else {
            return false;
        };
        at = inner;
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ump_058_paths_remove_members_and_nothing_else() {
        let mut record = json!({"body": {"text": "t", "structured": {"a": 1, "b": 2}}, "x": [1]});
        assert!(redact(&mut record, &["body.structured.a".into(), "no.where".into()]));
        assert_eq!(record, json!({"body": {"text": "t", "structured": {"b": 2}}, "x": [1]}));
        assert!(!redact(&mut record, &["x.0".into(), String::new()]));
    }
}

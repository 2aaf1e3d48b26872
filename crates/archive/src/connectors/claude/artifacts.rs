//! Artifacts: documents that a conversation writes and changes piece by piece.

use std::collections::HashMap;

use serde_json::Value;

use crate::content;
use crate::json::Look;

/// The documents of a conversation as they stand.
#[derive(Debug, Default)]
pub(super) struct Artifacts {
    texts: HashMap<String, (String, String, String)>,
}

impl Artifacts {
    /// Replays one call and returns the document as it stands after it.
    pub(super) fn replay(&mut self, input: &Value) -> Option<Value> {
        let id = input.filled("id")?;
        let known = self.texts.entry(id.to_owned()).or_default();
        if let Some(title) = input.filled("title") {
            title.clone_into(&mut known.0);
        }
        if let Some(kind) = input.filled("type") {
            kind.clone_into(&mut known.1);
        }
        match input.text("command") {
            Some("update") => {
                let (old, new) = (input.filled("old_str")?, input.text("new_str")?);
                known.2 = known.2.replacen(old, new, 1);
            }
            Some(_) | None => input.text("content")?.clone_into(&mut known.2),
        }
        let (title, kind, text) = known;
        let name = if title.is_empty() { id } else { title };
        let media_type = if kind.is_empty() { "text/plain" } else { kind };
        Some(content::document(media_type, name, text))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_are_replayed() {
        let mut artifacts = Artifacts::default();
        let made = json!({"id": "a", "command": "create", "title": "T", "type": "text/markdown",
            "content": "one two"});
        artifacts.replay(&made).unwrap();
        let changed = json!({"id": "a", "command": "update", "old_str": "two", "new_str": "2"});
        let document = artifacts.replay(&changed).unwrap();
        assert_eq!((&document["x_text"], &document["filename"]), (&json!("one 2"), &json!("T")));
        assert!(artifacts.replay(&json!({"command": "create"})).is_none());
    }
}

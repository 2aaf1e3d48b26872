//! What erasing means in every backend: the words to be found wherever else they were written
//! down, and what is left of a version.

use std::collections::BTreeSet;

use serde_json::Value;
use yore_domain::memory::{Body, Lifecycle, Status, Version};
use yore_domain::provenance::Provenance;

/// Strings shorter than this count only as a whole: as a part they are in everything.
const TELLING: usize = 12;

/// What the versions of one memory said.
#[derive(Debug, Default)]
pub struct Words(BTreeSet<String>);

impl Words {
    /// Takes in the text and every telling string of the structured and foreign parts.
    pub fn add(&mut self, version: &Version) -> serde_json::Result<()> {
        let content = &version.content;
        if !content.body.text.is_empty() {
            self.0.insert(content.body.text.clone());
        }
        if let Some(seal) = &content.seal {
            self.0.insert(seal.bytes.clone());
        }
        self.collect(&serde_json::to_value(&content.body.structured)?);
        self.collect(&serde_json::to_value(&content.foreign)?);
        Ok(())
    }

    fn collect(&mut self, value: &Value) {
        match value {
            Value::String(text) if text.len() >= TELLING => {
                self.0.insert(text.clone());
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            Value::Object(members) => members.values().for_each(|item| self.collect(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Empties every string that holds the words; says whether there was one.
    pub fn scrub(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => {
                let telling = self.0.iter().any(|word| {
                    text == word || (word.len() >= TELLING && text.contains(word.as_str()))
                });
                if telling {
                    text.clear();
                }
                telling
            }
            Value::Array(items) => {
                items.iter_mut().fold(false, |found, item| self.scrub(item) | found)
            }
            Value::Object(members) => {
                members.values_mut().fold(false, |found, item| self.scrub(item) | found)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Whether bytes hold the words, plainly or spelt as JSON.
    #[must_use]
    pub fn within(&self, bytes: &[u8]) -> bool {
        self.0.iter().filter(|word| word.len() >= TELLING).any(|word| {
            let spelt = Value::from(word.as_str()).to_string();
            let spelt = &spelt.as_bytes()[1..spelt.len() - 1];
            contains(bytes, word.as_bytes()) || contains(bytes, spelt)
        })
    }
}

fn contains(bytes: &[u8], word: &[u8]) -> bool {
    memchr::memmem::find(bytes, word).is_some()
}

/// What is left of a version.
#[must_use]
pub fn emptied(mut version: Version) -> Version {
    version.status = Status::Erased;
    let content = &mut version.content;
    content.body = Body::default();
    content.scope.session = None;
    content.lifecycle = Lifecycle::default();
    content.provenance = Provenance::default();
    content.consent.redact.clear();
    content.consent.reference = None;
    content.relations.clear();
    content.tags.clear();
    content.foreign.clear();
    content.seal = None;
    version
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use yore_domain::memory::Draft;
    use yore_domain::{MemoryId, Timestamp};

    use super::*;

    fn words(text: &str) -> Words {
        let draft = Draft::text(text);
        let version = Version::first(MemoryId::random(), draft, Timestamp::MIN, None);
        let mut words = Words::default();
        words.add(&version).unwrap();
        words
    }

    #[test]
    fn strings_that_hold_the_words_are_emptied_and_others_kept() {
        let mut value = json!({"a": ["the blood pressure is high, she said", 7], "b": "the"});
        assert!(words("blood pressure is high").scrub(&mut value));
        assert_eq!(value, json!({"a": ["", 7], "b": "the"}));
        assert!(!words("blood pressure is high").scrub(&mut value));

        let mut short = json!(["tea", "tea with milk"]);
        assert!(words("tea").scrub(&mut short));
        assert_eq!(short, json!(["", "tea with milk"]));
    }

    #[test]
    fn bytes_are_searched_in_both_spellings() {
        let said = words("she said \"never again\"");
        assert!(said.within(br#"{"text":"she said \"never again\""}"#));
        assert!(said.within(b"... she said \"never again\" ..."));
        assert!(!said.within(b"she said nothing"));
    }
}

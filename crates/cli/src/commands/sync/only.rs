//! What of two hosts is kept in step: the owner chooses what leaves and what stays.

use std::fmt;

use serde_json::Value;

use crate::failure::{Failure, Result};

/// What is chosen. Of one sort any will do, and of each sort that is named one must.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Only {
    platforms: Vec<String>,
    labels: Vec<String>,
    tags: Vec<String>,
}

impl Only {
    /// Reads `platform:NAME`, `label:NAME` and `tag:NAME`.
    pub(super) fn parse(words: &[String]) -> Result<Self> {
        let mut only = Self::default();
        for word in words {
            let wrong = || {
                Failure::usage(format!(
                    "--only {word}: write platform:NAME, label:NAME or tag:NAME"
                ))
            };
            let (sort, name) = word.split_once(':').ok_or_else(wrong)?;
            let list = match sort {
                "platform" => &mut only.platforms,
                "label" => &mut only.labels,
                "tag" => &mut only.tags,
                _ => return Err(wrong()),
            };
            if name.is_empty() {
                return Err(wrong());
            }
            list.push(name.to_owned());
        }
        for list in [&mut only.platforms, &mut only.labels, &mut only.tags] {
            list.sort();
            list.dedup();
        }
        Ok(only)
    }

    /// Whether a document is chosen.
    pub(super) fn takes(&self, document: &Value) -> bool {
        let platform = document["platform"].as_str();
        let tags = texts(&document["tags"]);
        let labels = texts(&document["x_yore"]["governance"]["labels"]);
        let below = |label: &&str, wanted: &String| {
            label
                .strip_prefix(wanted.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        any(&self.platforms, |wanted| platform == Some(wanted))
            && any(&self.tags, |wanted| tags.contains(&wanted.as_str()))
            && any(&self.labels, |wanted| labels.iter().any(|label| below(label, wanted)))
    }
}

fn any(wanted: &[String], holds: impl Fn(&String) -> bool) -> bool {
    wanted.is_empty() || wanted.iter().any(holds)
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

impl fmt::Display for Only {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sorts = [("platform", &self.platforms), ("label", &self.labels), ("tag", &self.tags)];
        for (sort, names) in sorts {
            for name in names {
                write!(f, "{sort}:{name} ")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn only(words: &[&str]) -> Only {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Only::parse(&words).unwrap()
    }

    #[test]
    fn one_of_each_sort_must_hold() {
        let talk = json!({"platform": "claude", "tags": ["work"],
            "x_yore": {"governance": {"labels": ["health.diet"]}}});
        for words in [
            &[][..],
            &["platform:claude"],
            &["platform:grok", "platform:claude", "tag:work"],
            &["label:health"],
            &["label:health.diet"],
        ] {
            assert!(only(words).takes(&talk), "{words:?}");
        }
        for words in [&["platform:grok"][..], &["tag:work", "label:money"], &["label:heal"]] {
            assert!(!only(words).takes(&talk), "{words:?}");
        }
        assert!(Only::parse(&["claude".to_owned()]).is_err());
        assert!(Only::parse(&["tag:".to_owned()]).is_err());
        assert_eq!(only(&["tag:b", "tag:a"]).to_string(), only(&["tag:a", "tag:b"]).to_string());
    }
}

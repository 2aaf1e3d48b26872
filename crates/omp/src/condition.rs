//! Conditional requests: which state of a thing a request is about.

use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName};

use crate::error::{Refusal, Result};

/// The tags that a change demands; none when it demands nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Expected {
    tags: Vec<String>,
    stated: bool,
}

impl Expected {
    /// Reads `If-Match`. Any state will do for `*`.
    pub(crate) fn of(headers: &HeaderMap, required: bool) -> Result<Self> {
        let listed = tags(headers, IF_MATCH);
        if listed.is_empty() {
            return match required {
                true => Err(Refusal::new(428, "precondition_required", "If-Match is missing")),
                false => Ok(Self::default()),
            };
        }
        if listed.iter().any(|tag| tag == "*") {
            return Ok(Self { tags: Vec::new(), stated: true });
        }
        let strong = listed.into_iter().filter(|tag| !tag.starts_with("W/")).collect::<Vec<_>>();
        match strong.is_empty() {
            true => Err(Refusal::new(412, "precondition_failed", "If-Match has no strong tag")),
            false => Ok(Self { tags: strong.iter().map(|tag| bare(tag)).collect(), stated: true }),
        }
    }

    /// Whether the request named a state at all.
    pub(crate) const fn stated(&self) -> bool {
        self.stated
    }

    /// The tags, any of which will do; none means every state.
    pub(crate) fn tags(&self) -> Vec<String> {
        self.tags.clone()
    }

    /// Refuses a state that is not the one the request is about.
    pub(crate) fn check(&self, tag: &str) -> Result<()> {
        if self.tags.is_empty() || self.tags.iter().any(|known| known == tag) {
            return Ok(());
        }
        Err(Refusal::new(412, "precondition_failed", "it was changed meanwhile"))
    }
}

/// Whether a reader has this state already.
pub(crate) fn known(headers: &HeaderMap, tag: &str) -> bool {
    let listed = tags(headers, IF_NONE_MATCH);
    listed.iter().any(|one| one == "*" || bare(one.trim_start_matches("W/")) == tag)
}

fn tags(headers: &HeaderMap, name: HeaderName) -> Vec<String> {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    let each = lines.flat_map(|line| line.split(',')).map(str::trim);
    each.filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
}

fn bare(tag: &str) -> String {
    tag.trim_matches('"').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, line: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, line.parse().unwrap());
        headers
    }

    #[test]
    fn omp_162_strong_tags_decide_and_a_missing_one_may_be_refused() {
        let demanded = |line: &str| Expected::of(&headers(IF_MATCH, line), false);
        assert!(demanded("\"a\", \"b\"").unwrap().check("b").is_ok());
        assert_eq!(demanded("\"a\"").unwrap().check("b").unwrap_err().status, 412);
        assert!(demanded("*").unwrap().check("b").is_ok());
        assert_eq!(demanded("W/\"b\"").unwrap_err().status, 412);
        assert!(!Expected::of(&HeaderMap::new(), false).unwrap().stated());
        assert_eq!(Expected::of(&HeaderMap::new(), true).unwrap_err().status, 428);
        assert!(known(&headers(IF_NONE_MATCH, "W/\"b\""), "b"));
        assert!(known(&headers(IF_NONE_MATCH, "*"), "b"));
        assert!(!known(&headers(IF_NONE_MATCH, "\"a\""), "b"));
    }
}

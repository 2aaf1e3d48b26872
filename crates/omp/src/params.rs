//! Query strings.

use axum::extract::Query;
use axum::http::Uri;
use serde_json::Value;
use yore_domain::query::Filter;
use yore_domain::{ConversationId, Timestamp};

use crate::error::{Refusal, Result};

/// Rows of a page: by default and at most.
const ROWS: (usize, usize) = (50, 200);

/// What a list, a backup or a deletion may be narrowed by.
const FILTERS: [&str; 6] = ["platform", "model", "tags", "from", "to", "conversation_id"];

/// The parameters of a request, decoded.
#[derive(Debug, Default)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    pub(crate) fn of(uri: &Uri) -> Result<Self> {
        match Query::try_from_uri(uri) {
            Ok(Query(pairs)) => Ok(Self(pairs)),
            Err(_) => Err(Refusal::invalid("query", "is not a query string")),
        }
    }

    /// The members of an object that stand for parameters: texts, and lists of texts.
    pub(crate) fn members(value: Option<&Value>) -> Result<Self> {
        let wrong = || Refusal::invalid("filter", "must be an object of texts and lists of texts");
        let Some(value) = value.filter(|value| !value.is_null()) else {
            return Ok(Self::default());
        };
        let mut pairs = Vec::new();
        for (name, value) in value.as_object().ok_or_else(wrong)? {
            if !FILTERS.contains(&name.as_str()) {
                return Err(Refusal::invalid("filter", "has a member that is not known"));
            }
            let one = std::slice::from_ref(value);
            for text in value.as_array().map_or(one, Vec::as_slice) {
                let text = text.as_str().ok_or_else(wrong)?;
                pairs.push((name.clone(), text.to_owned()));
            }
        }
        Ok(Self(pairs))
    }

    /// The same with more, which count before what is there.
    pub(crate) fn with(&self, more: Vec<(String, String)>) -> Self {
        Self(self.0.iter().cloned().chain(more).collect())
    }

    /// The last value of a parameter.
    pub(crate) fn one(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The words of a parameter that may be repeated, or hold several between commas.
    pub(crate) fn words(&self, name: &str) -> Vec<String> {
        let values = self.0.iter().filter(|(known, _)| known == name);
        let words = values.flat_map(|(_, value)| value.split(',')).map(str::trim);
        words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    /// A parameter that is `true` or `false`.
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>> {
        match self.one(name) {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => Err(Refusal::invalid(name, "must be true or false")),
        }
    }

    /// How many rows are asked for; more than are allowed are as many as are allowed.
    pub(crate) fn limit(&self) -> Result<usize> {
        let Some(text) = self.one("limit") else { return Ok(ROWS.0) };
        match text.parse::<u64>() {
            Ok(number @ 1..) => Ok(usize::try_from(number).unwrap_or(ROWS.1).min(ROWS.1)),
            Ok(0) | Err(_) => Err(Refusal::invalid("limit", "must be a whole number above 0")),
        }
    }

    /// What all lists and searches may be narrowed by.
    pub(crate) fn filter(&self) -> Result<Filter> {
        let conversation = match self.one("conversation_id") {
            None => None,
            Some(id) => {
                let id: Result<ConversationId, _> = id.parse();
                Some(id.map_err(|_| Refusal::invalid("conversation_id", "is not an id"))?)
            }
        };
        Ok(Filter {
            platform: self.one("platform").map(str::to_owned),
            model: self.one("model").map(str::to_owned),
            tags: self.words("tags"),
            from: self.one("from").map(|text| moment("from", text, false)).transpose()?,
            until: self.one("to").map(|text| moment("to", text, true)).transpose()?,
            conversation,
            ..Filter::default()
        })
    }
}

/// A time, or a day. The end of a range includes what it names.
fn moment(name: &str, text: &str, end: bool) -> Result<Timestamp> {
    const DAY: i64 = 86_400_000_000;
    // In a query string a plus sign is a space, but clients forget that offsets have one.
    let text = text.trim().replace(' ', "+");
    let wrong = |_| Refusal::invalid(name, "must be a day, or a time with an offset");
    let (at, length) = match text.len() {
        10 => (format!("{text}T00:00:00Z").parse::<Timestamp>().map_err(wrong)?, DAY),
        _ => (text.parse::<Timestamp>().map_err(wrong)?, 1),
    };
    Ok(if end { Timestamp::from_micros(at.micros().saturating_add(length)) } else { at })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(query: &str) -> Params {
        Params::of(&format!("/x?{query}").parse().unwrap()).unwrap()
    }

    #[test]
    fn omp_125_limits_are_clamped_above_and_refused_below() {
        for (query, limit) in [("", 50), ("limit=7", 7), ("limit=200", 200), ("limit=9999", 200)] {
            assert_eq!(params(query).limit().unwrap(), limit, "{query}");
        }
        for query in ["limit=0", "limit=-1", "limit=ten", "limit=1.5", "limit="] {
            assert_eq!(params(query).limit().unwrap_err().status, 400, "{query}");
        }
    }

    #[test]
    fn omp_112_filters_are_read_and_days_include_their_end() {
        let filter = params("platform=claude&tags=a,b&tags=c&from=2026-03-01&to=2026-03-02")
            .filter()
            .unwrap();
        assert_eq!(filter.tags, ["a", "b", "c"]);
        assert_eq!(filter.from.unwrap().to_string(), "2026-03-01T00:00:00Z");
        assert_eq!(filter.until.unwrap().to_string(), "2026-03-03T00:00:00Z");
        let exact = params("to=2026-03-02T10:00:00+02:00").filter().unwrap();
        assert_eq!(exact.until.unwrap().to_string(), "2026-03-02T08:00:00.000001Z");
        for query in ["from=yesterday", "conversation_id=x"] {
            assert_eq!(params(query).filter().unwrap_err().status, 400, "{query}");
        }
        assert!(params("active=maybe").flag("active").is_err());
    }
}

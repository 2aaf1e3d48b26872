//! What a client accepts and what its query string says.

use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use percent_encoding::percent_decode_str;
use yore_domain::Timestamp;

use crate::error::{Refusal, Result};

/// JSON with what else is known about the answer.
pub(crate) const ENVELOPE: &str = "application/json+oamp";

/// The shape of an answer that lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A bare array.
    Plain,
    /// An object with the array and its totals.
    Envelope,
}

/// Reads what the client accepts; a client that takes no JSON gets none.
pub(crate) fn shape(headers: &HeaderMap) -> Result<Shape> {
    let mut best: Option<(u16, Shape)> = None;
    let mut asked = false;
    for line in headers.get_all(ACCEPT) {
        let line = line.to_str().map_err(|_| not_acceptable())?;
        for range in line.split(',').map(str::trim).filter(|range| !range.is_empty()) {
            asked = true;
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
            let weight = weight(parts)?;
            let shape = match kind.as_str() {
                "application/json" | "application/*" | "*/*" => Shape::Plain,
                ENVELOPE => Shape::Envelope,
                _ => continue,
            };
            if weight > 0 && best.is_none_or(|(most, _)| weight > most) {
                best = Some((weight, shape));
            }
        }
    }
    match best {
        Some((_, shape)) => Ok(shape),
        None if asked => Err(not_acceptable()),
        None => Ok(Shape::Plain),
    }
}

fn weight<'a>(parameters: impl Iterator<Item = &'a str>) -> Result<u16> {
    for parameter in parameters {
        if let Some(value) = parameter.strip_prefix("q=").or(parameter.strip_prefix("Q=")) {
            let share: f32 = value.parse().map_err(|_| not_acceptable())?;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1")]
            return Ok((share.clamp(0.0, 1.0) * 1000.0) as u16);
        }
    }
    Ok(1000)
}

fn not_acceptable() -> Refusal {
    let offered = format!("only application/json and {ENVELOPE} are offered");
    Refusal::new(406, "NOT_ACCEPTABLE", offered)
}

/// Whether a body is in a form that is understood.
pub(crate) fn sent(headers: &HeaderMap) -> Result<()> {
    let Some(kind) = headers.get(CONTENT_TYPE) else { return Ok(()) };
    let essence = kind.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    if yore_http::is_json(essence) || essence.trim_ascii().eq_ignore_ascii_case(ENVELOPE.as_bytes())
    {
        return Ok(());
    }
    Err(Refusal::new(415, "UNSUPPORTED_MEDIA_TYPE", "the body must be application/json"))
}

/// A query string, decoded, in order.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Result<Self> {
        let decoded = |text: &str| {
            let text = text.replace('+', " ");
            let decoded = percent_decode_str(&text).decode_utf8();
            decoded
                .map(|text| text.into_owned())
                .map_err(|_| Refusal::invalid("query", "is not UTF-8"))
        };
        let mut pairs = Vec::new();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            pairs.push((decoded(name)?, decoded(value)?));
        }
        Ok(Self(pairs))
    }

    /// The last value of a parameter that counts once.
    pub(crate) fn one(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// All values of a parameter that may be repeated.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A number inside bounds; one beyond them counts as the bound.
    pub(crate) fn number(&self, name: &str, default: usize, most: usize) -> Result<Option<usize>> {
        let Some(text) = self.one(name) else { return Ok(Some(default.min(most))) };
        let number: i64 =
            text.trim().parse().map_err(|_| Refusal::invalid(name, "must be a whole number"))?;
        Ok(usize::try_from(number).ok().map(|number| number.min(most)))
    }

    /// The time that is asked for; the future is now.
    pub(crate) fn as_of(&self, now: Timestamp) -> Result<Option<Timestamp>> {
        let Some(text) = self.one("as_of") else { return Ok(None) };
        // In a query string a plus sign is a space, but clients forget that offsets have one.
        let at: Timestamp = text
            .replace(' ', "+")
            .parse()
            .map_err(|_| Refusal::invalid("as_of", "must be a date and time with an offset"))?;
        Ok(Some(at.min(now)))
    }

    /// Refuses a time on anything that changes something.
    pub(crate) fn only_now(&self) -> Result<()> {
        match self.one("as_of") {
            None => Ok(()),
            Some(_) => Err(Refusal::invalid("as_of", "the past cannot be changed")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepting(lines: &[&str]) -> Result<Shape> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(ACCEPT, line.parse().unwrap());
        }
        shape(&headers)
    }

    #[test]
    fn oamp_061_oamp_062_oamp_063_json_is_the_default_and_the_only_form() {
        for lines in [
            &[][..],
            &["*/*"],
            &["application/json"],
            &["application/protobuf, application/json;q=0.1"],
            &["text/html", "application/*;q=0.5"],
        ] {
            assert_eq!(accepting(lines).unwrap(), Shape::Plain, "{lines:?}");
        }
        for lines in
            [&["application/json+oamp"][..], &["application/json;q=0.2, application/json+oamp"]]
        {
            assert_eq!(accepting(lines).unwrap(), Shape::Envelope, "{lines:?}");
        }
        for lines in [&["application/protobuf"][..], &["text/html"], &["application/json;q=0"]] {
            let refusal = accepting(lines).unwrap_err();
            assert_eq!((refusal.status, refusal.code), (406, "NOT_ACCEPTABLE"), "{lines:?}");
        }
    }

    #[test]
    fn queries_are_decoded_and_may_repeat() {
        let query =
            Query::parse(Some("a=1&b=x+y%21&a=2&c&limit=-3&as_of=2026-01-01T00:00:00+02:00"))
                .unwrap();
        assert_eq!(query.one("b"), Some("x y!"));
        assert_eq!(query.all("a").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(query.one("c"), Some(""));
        assert_eq!(query.number("limit", 50, 200).unwrap(), None);
        assert_eq!(query.number("a", 50, 1).unwrap(), Some(1));
        assert!(query.number("b", 50, 200).is_err());
        let now = Timestamp::from_millis(1_800_000_000_000);
        assert_eq!(query.as_of(now).unwrap().unwrap().to_string(), "2025-12-31T22:00:00Z");
        assert!(Query::parse(Some("as_of=yesterday")).unwrap().as_of(now).is_err());
        assert!(Query::parse(Some("a=%ff")).is_err());
    }
}

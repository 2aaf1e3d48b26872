//! Media types: what a client sends and what it takes.

use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};

use crate::error::{Refusal, Result};

/// A kind of document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Conversation,
    Memory,
    Archive,
    /// Whatever has no media type of its own.
    Plain,
}

const JSON: &str = "application/json";

impl Kind {
    /// The protocol's own media type.
    const fn own(self) -> &'static str {
        match self {
            Self::Conversation => "application/vnd.omp.conversation+json",
            Self::Memory => "application/vnd.omp.memory+json",
            Self::Archive => "application/vnd.omp.archive+zip",
            Self::Plain => JSON,
        }
    }

    /// Returns the type to answer with: the protocol's own where the client names it, plain JSON
    /// otherwise. A client that takes neither gets nothing.
    pub(crate) fn accepted(self, headers: &HeaderMap) -> Result<&'static str> {
        let mut asked = false;
        let mut plain = false;
        for line in headers.get_all(ACCEPT) {
            let line = line.to_str().unwrap_or_default();
            for range in line.split(',').map(str::trim).filter(|range| !range.is_empty()) {
                asked = true;
                let mut parts = range.split(';').map(str::trim);
                let name = parts.next().unwrap_or_default().to_ascii_lowercase();
                let refused = parts.any(|part| {
                    let weight = part.strip_prefix("q=").and_then(|q| q.parse::<f32>().ok());
                    weight == Some(0.0)
                });
                match name.as_str() {
                    _ if refused => {}
                    name if name == self.own() && name != JSON => return Ok(self.own()),
                    "application/zip" if self == Self::Archive => plain = true,
                    "application/json" | "application/*" | "*/*" => plain = true,
                    _ => {}
                }
            }
        }
        if plain || !asked {
            // An archive always goes out under its own name.
            return Ok(if self == Self::Archive { self.own() } else { JSON });
        }
        let offered = format!("only {JSON} and {} are offered", self.own());
        Err(Refusal::new(406, "not_acceptable", offered))
    }
}

/// Whether a body is in a form that is understood.
pub(crate) fn sent(headers: &HeaderMap) -> Result<()> {
    let Some(kind) = headers.get(CONTENT_TYPE) else { return Ok(()) };
    let essence = kind.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default();
    let essence = String::from_utf8_lossy(essence.trim_ascii()).to_ascii_lowercase();
    let known =
        [JSON, Kind::Conversation.own(), Kind::Memory.own(), "application/merge-patch+json"];
    if known.contains(&essence.as_str()) {
        return Ok(());
    }
    Err(Refusal::new(415, "unsupported_media_type", "the body must be JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepting(kind: Kind, line: &str) -> Result<&'static str> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, line.parse().unwrap());
        kind.accepted(&headers)
    }

    #[test]
    fn omp_127_the_protocols_own_types_and_json_are_equals() {
        let own = "application/vnd.omp.conversation+json";
        let talk = Kind::Conversation;
        assert_eq!(talk.accepted(&HeaderMap::new()).unwrap(), JSON);
        assert_eq!(accepting(talk, "*/*").unwrap(), JSON);
        assert_eq!(accepting(talk, own).unwrap(), own);
        assert_eq!(accepting(talk, "text/html, application/json;q=0.2").unwrap(), JSON);
        for line in ["text/html", "application/json;q=0", "application/vnd.omp.memory+json"] {
            assert_eq!(accepting(talk, line).unwrap_err().status, 406, "{line}");
        }
        let mut headers = HeaderMap::new();
        for (kind, taken) in [(JSON, true), (own, true), ("text/plain", false)] {
            headers.insert(CONTENT_TYPE, format!("{kind}; charset=utf-8").parse().unwrap());
            assert_eq!(sent(&headers).is_ok(), taken, "{kind}");
        }
    }
}

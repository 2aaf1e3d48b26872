//! Refusals in the protocol's own words, and what each transport calls them.

use serde_json::{Value, json};
use yore_domain::Error;

/// The codes there are. The specification has five; the others keep to its class digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// 4.00: it cannot be read, or breaks a rule.
    Malformed,
    /// 4.01: nobody vouches for it.
    Unauthenticated,
    /// 4.03: its sender may not.
    Forbidden,
    /// 4.04: there is no such stream or recipient, or nobody may know.
    Unknown,
    /// 4.09: a frame is missing, or was never sent.
    Missing,
    /// 4.13: it is too large.
    TooLarge,
    /// 4.15: its body is of a kind that is not understood.
    Unsupported,
    /// 5.00: a fault of ours.
    Internal,
    /// 5.04: it cannot be done now.
    Busy,
}

impl Code {
    /// Returns the code as it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "4.00",
            Self::Unauthenticated => "4.01",
            Self::Forbidden => "4.03",
            Self::Unknown => "4.04",
            Self::Missing => "4.09",
            Self::TooLarge => "4.13",
            Self::Unsupported => "4.15",
            Self::Internal => "5.00",
            Self::Busy => "5.04",
        }
    }

    /// Whether trying again may help.
    #[must_use]
    pub const fn retry(self) -> bool {
        matches!(self, Self::Missing | Self::Busy)
    }

    /// Returns the HTTP status.
    #[must_use]
    pub const fn http(self) -> u16 {
        match self {
            Self::Malformed => 400,
            Self::Unauthenticated => 401,
            Self::Forbidden => 403,
            Self::Unknown => 404,
            Self::Missing => 409,
            Self::TooLarge => 413,
            Self::Unsupported => 415,
            Self::Internal => 500,
            Self::Busy => 503,
        }
    }
}

/// What a sender is told instead of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The code.
    pub code: Code,
    /// For people; never repeats what was said.
    pub message: String,
    /// Seconds after which to try again, when that is known.
    pub retry_after: Option<u64>,
    /// Whether it is a quota that is used up.
    pub quota: bool,
    /// The first frame that is kept and the last there is, where a frame was asked for.
    pub frames: Option<(u64, u64)>,
}

/// A result whose failure is a refusal.
pub(crate) type Result<T, E = Refusal> = std::result::Result<T, E>;

impl Refusal {
    /// A refusal of a kind.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message, retry_after: None, quota: false, frames: None }
    }

    /// What cannot be read, by its member.
    pub(crate) fn malformed(member: &str, reason: &str) -> Self {
        Self::new(Code::Malformed, format!("invalid {member}: {reason}"))
    }

    /// A frame that is not there.
    pub(crate) fn missing(first: u64, next: u64) -> Self {
        let frames = Some((first, next.saturating_sub(1)));
        Self { frames, ..Self::new(Code::Missing, "the frame was never sent or is gone") }
    }

    /// Returns the HTTP status: a quota that is used up has one of its own.
    #[must_use]
    pub const fn http(&self) -> u16 {
        if self.quota { 429 } else { self.code.http() }
    }

    /// Returns what an error says, as an envelope's content or a frame's payload.
    #[must_use]
    pub fn content(&self) -> Value {
        let mut content = json!({
            "code": self.code.as_str(),
            "message": self.message,
            "retry": self.code.retry(),
        });
        if let Some(seconds) = self.retry_after {
            content["retry_after"] = seconds.into();
        }
        if let Some((first, last)) = self.frames {
            content["first"] = first.into();
            content["last"] = last.into();
        }
        content
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        let of = |code| Self::new(code, message.clone());
        match error {
            Error::Unauthenticated { .. } | Error::Signature { .. } => of(Code::Unauthenticated),
            Error::Forbidden { .. } | Error::Consent { .. } => of(Code::Forbidden),
            Error::NotFound => of(Code::Unknown),
            Error::Invalid { .. } => of(Code::Malformed),
            Error::TooLarge { .. } => of(Code::TooLarge),
            Error::Unsupported { .. } => of(Code::Unsupported),
            Error::RateLimited { retry_after } => Self {
                retry_after: Some(retry_after.as_secs().max(1)),
                quota: true,
                ..of(Code::Busy)
            },
            Error::Busy { retry_after, .. } => {
                Self { retry_after: Some(retry_after.as_secs().max(1)), ..of(Code::Busy) }
            }
            Error::Conflict { .. } | Error::Held { .. } => {
                Self { retry_after: Some(1), ..of(Code::Busy) }
            }
            Error::Internal(source) => {
                tracing::error!(error = %source, "a message could not be worked on");
                of(Code::Internal)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn uamp_090_uamp_091_uamp_092_every_outcome_has_its_code_status_and_retry() {
        let busy = Error::Busy { reason: "x".into(), retry_after: Duration::from_secs(7) };
        let table = [
            (Error::unauthenticated("x"), "4.01", 401, false),
            (Error::Signature { reason: "x".into() }, "4.01", 401, false),
            (Error::forbidden("x"), "4.03", 403, false),
            (Error::consent("x"), "4.03", 403, false),
            (Error::NotFound, "4.04", 404, false),
            (Error::invalid("a", "b"), "4.00", 400, false),
            (Error::too_large("x", 1), "4.13", 413, false),
            (Error::Unsupported { what: "x".into() }, "4.15", 415, false),
            (Error::RateLimited { retry_after: Duration::ZERO }, "5.04", 429, true),
            (busy, "5.04", 503, true),
            (Error::conflict("x"), "5.04", 503, true),
            (Error::internal("secret"), "5.00", 500, false),
        ];
        for (error, code, status, retry) in table {
            let refusal = Refusal::from(error);
            let content = refusal.content();
            assert_eq!((content["code"].as_str(), refusal.http()), (Some(code), status));
            assert_eq!(content["retry"], retry, "{code}");
            assert!(!content.to_string().contains("secret"));
        }
        let missing = Refusal::missing(3, 9);
        assert_eq!((missing.http(), missing.code.retry()), (409, true));
        assert_eq!(missing.content()["first"], 3);
        assert_eq!(missing.content()["last"], 8);
    }
}

//! How a command ends when it does not end well: an exit code, what was wrong, what to do.

use std::fmt;
use std::process::ExitCode;

use yore_domain::Error;

/// What to do about a full disk.
pub(crate) const FULL: &str = "what was stored before is safe; make room on the disk and try again";

/// A command's result.
pub(crate) type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// The documented exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Ok = 0,
    /// It failed.
    Failed = 1,
    /// The command line or the input is wrong.
    Usage = 2,
    /// What was named does not exist, or may not be seen.
    NotFound = 3,
    /// The credential is missing, wrong or too narrow.
    NotAuthorised = 4,
    /// It waits for a person's decision.
    Held = 5,
    /// The state moved on, or a name is taken.
    Conflict = 6,
    /// No server answers, or another process holds the data directory.
    Unreachable = 7,
    /// The data or the key is not what it should be.
    Damaged = 8,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command did not do what it was asked.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// How the process ends.
    pub(crate) exit: Exit,
    /// A stable word for programs.
    pub(crate) code: String,
    /// What was wrong.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
    /// The hold that waits, when the exit code says so.
    pub(crate) hold: Option<String>,
}

impl Failure {
    /// A failure with an exit code.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        let code = match exit {
            Exit::Ok => "ok",
            Exit::Failed => "failed",
            Exit::Usage => "usage",
            Exit::NotFound => "not_found",
            Exit::NotAuthorised => "not_authorised",
            Exit::Held => "pending_approval",
            Exit::Conflict => "conflict",
            Exit::Unreachable => "unreachable",
            Exit::Damaged => "damaged",
        };
        Self { exit, code: code.to_owned(), message: message.into(), hint: None, hold: None }
    }

    /// A failure of the input.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Anything else that went wrong.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    /// The reader of our output went away, which is no failure of ours.
    pub(crate) fn reader_gone() -> Self {
        Self::new(Exit::Ok, String::new())
    }

    /// Says what to do.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Says where it happened.
    #[must_use]
    pub(crate) fn at(mut self, place: impl fmt::Display) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }

    /// A failure to read or write a file.
    pub(crate) fn file(path: impl fmt::Display) -> impl FnOnce(std::io::Error) -> Self {
        move |error| {
            let missing = error.kind() == std::io::ErrorKind::NotFound;
            let exit = if missing { Exit::NotFound } else { Exit::Failed };
            Self::new(exit, format!("{path}: {error}"))
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match &error {
            Error::Unauthenticated { .. } | Error::Forbidden { .. } => Exit::NotAuthorised,
            Error::NotFound => Exit::NotFound,
            Error::Invalid { .. }
            | Error::TooLarge { .. }
            | Error::Signature { .. }
            | Error::Unsupported { .. } => Exit::Usage,
            Error::Conflict { .. } | Error::Consent { .. } => Exit::Conflict,
            Error::RateLimited { .. } | Error::Internal(_) => Exit::Failed,
            Error::Busy { .. } => Exit::Unreachable,
            Error::Held { .. } => Exit::Held,
        };
        // Whoever runs the command may see what lies below.
        let message = if let Error::Internal(source) = &error {
            source.to_string()
        } else {
            error.to_string()
        };
        let hold = if let Error::Held { hold } = &error { Some(hold.to_string()) } else { None };
        let mut failure = Self::new(exit, message);
        failure.code = error.code().to_owned();
        failure.hold = hold;
        failure.hinted()
    }
}

impl Failure {
    /// Adds what usually helps with this exit code, unless something better was said.
    #[must_use]
    pub(crate) fn hinted(mut self) -> Self {
        if self.hint.is_some() {
            return self;
        }
        self.hint = match self.exit {
            Exit::NotAuthorised => Some(
                "pass a token that allows this with --token or YORE_TOKEN, or use --data on the \
                 machine that keeps the vault"
                    .to_owned(),
            ),
            Exit::NotFound => Some("yore list shows what there is".to_owned()),
            Exit::Held => {
                self.hold.as_ref().map(|hold| format!("decide with: yore review approve {hold}"))
            }
            Exit::Conflict => Some("look at the present state and try again".to_owned()),
            Exit::Damaged => Some("yore doctor says what is wrong and what to do".to_owned()),
            Exit::Unreachable if self.message.contains("the disk is full") => Some(FULL.to_owned()),
            Exit::Ok | Exit::Failed | Exit::Usage | Exit::Unreachable => None,
        };
        self
    }
}

#[cfg(test)]
mod tests {
    use yore_domain::HoldId;

    use super::*;

    #[test]
    fn every_outcome_has_its_documented_exit_code() {
        let hold = HoldId::random();
        let cases = [
            (Error::NotFound, 3),
            (Error::unauthenticated("x"), 4),
            (Error::forbidden("x"), 4),
            (Error::invalid("body.text", "empty"), 2),
            (Error::too_large("text", "1 MiB"), 2),
            (Error::conflict("moved"), 6),
            (Error::consent("legal hold"), 6),
            (Error::Held { hold }, 5),
            (Error::Busy { reason: "full".into(), retry_after: Default::default() }, 7),
            (Error::internal("boom"), 1),
        ];
        for (error, code) in cases {
            let text = error.to_string();
            assert_eq!(Failure::from(error).exit as u8, code, "{text}");
        }
        let held = Failure::from(Error::Held { hold });
        assert!(held.hint.unwrap().contains(&hold.to_string()));
    }
}

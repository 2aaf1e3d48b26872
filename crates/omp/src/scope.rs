//! The five scopes of the protocol, as names for the verbs of a grant.

use yore_domain::grant::{Grant, Verb};

/// What a route asks of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Read,
    Write,
    Delete,
    Backup,
    Admin,
}

impl Scope {
    /// All scopes.
    pub(crate) const ALL: [Self; 5] =
        [Self::Read, Self::Write, Self::Delete, Self::Backup, Self::Admin];

    /// The word of the protocol.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "omp:read",
            Self::Write => "omp:write",
            Self::Delete => "omp:delete",
            Self::Backup => "omp:backup",
            Self::Admin => "omp:admin",
        }
    }

    /// Reads the word.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == word)
    }

    /// What a grant of this scope allows. None of them holds another.
    pub(crate) const fn verbs(self) -> &'static [Verb] {
        match self {
            Self::Read => &[Verb::Read],
            Self::Write => &[Verb::Write, Verb::Derive],
            Self::Delete => &[Verb::Erase],
            Self::Backup => &[Verb::Export],
            Self::Admin => &[Verb::Admin, Verb::Audit, Verb::Grant, Verb::Review],
        }
    }

    /// Whether a grant covers it.
    pub(crate) fn given_by(self, grant: &Grant) -> bool {
        self.verbs().iter().all(|verb| grant.verbs.has(*verb))
    }
}

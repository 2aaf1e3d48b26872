//! What a message means to do.

/// The ten intents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Intent {
    /// Asks for an answer.
    Ask,
    /// Tells something and wants nothing back.
    Inform,
    /// Offers a plan.
    Propose,
    /// Says yes.
    Confirm,
    /// Says no.
    Deny,
    /// Tells how far something is.
    Progress,
    /// Takes a request back.
    Cancel,
    /// Wants to be told of changes.
    Subscribe,
    /// Tells of a change.
    Notify,
    /// Reports a failure.
    Error,
}

impl Intent {
    /// All of them, in the order of the specification.
    pub const ALL: [Self; 10] = [
        Self::Ask,
        Self::Inform,
        Self::Propose,
        Self::Confirm,
        Self::Deny,
        Self::Progress,
        Self::Cancel,
        Self::Subscribe,
        Self::Notify,
        Self::Error,
    ];

    /// Returns the word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Inform => "inform",
            Self::Propose => "propose",
            Self::Confirm => "confirm",
            Self::Deny => "deny",
            Self::Progress => "progress",
            Self::Cancel => "cancel",
            Self::Subscribe => "subscribe",
            Self::Notify => "notify",
            Self::Error => "error",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|intent| intent.as_str() == word)
    }

    /// Whether it opens a stream on which it is answered.
    #[must_use]
    pub const fn opens(self) -> bool {
        matches!(self, Self::Ask | Self::Propose | Self::Subscribe)
    }

    /// Whether it speaks about something said before, and must say about what.
    #[must_use]
    pub const fn refers(self) -> bool {
        matches!(self, Self::Confirm | Self::Deny | Self::Progress | Self::Cancel | Self::Error)
    }
}

//! Sorts of secrets and personal data, and what the operator wants done when they are found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::class::Label;

/// Something in a text that should not lie around.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// A key, a token, a password.
    Secret,
    /// The number of a payment card.
    Card,
    /// The number of a bank account.
    Iban,
    /// An e-mail address.
    Email,
    /// A telephone number.
    Phone,
    /// A number that a state gave a person.
    NationalId,
}

impl Finding {
    /// All sorts.
    pub const ALL: [Self; 6] =
        [Self::Secret, Self::Card, Self::Iban, Self::Email, Self::Phone, Self::NationalId];

    /// Returns the word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::Card => "card",
            Self::Iban => "iban",
            Self::Email => "email",
            Self::Phone => "phone",
            Self::NationalId => "national-id",
        }
    }

    /// Reads the word for it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|finding| finding.as_str() == text)
    }

    /// Returns the label of what holds it.
    #[must_use]
    pub fn label(self) -> Label {
        Label::new(format!("sensitive.{}", self.as_str()))
            .expect("invariant: the words are short and plain")
    }
}

/// What is done when something is found in what is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Care {
    /// Nothing is looked for.
    #[default]
    Off,
    /// What holds it is labelled `sensitive.<sort>`, so that grants can leave it out.
    Label,
    /// An agent's write waits for the owner, and is labelled.
    Hold,
}

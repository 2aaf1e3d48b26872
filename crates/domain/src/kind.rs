//! Two axes of what a memory is: [`Kind`] and [`Facet`], and the table between them.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Error;

/// What sort of memory it is, as agents think of it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A fact about the world or a person.
    Semantic,
    /// Something that happened.
    Episodic,
    /// How to do something.
    Procedural,
    /// Short-lived state of a task.
    Working,
    /// Who someone is.
    Identity,
    /// How something felt.
    Emotional,
}

impl Kind {
    /// All kinds, in a fixed order.
    pub const ALL: [Self; 6] = [
        Self::Semantic,
        Self::Episodic,
        Self::Procedural,
        Self::Working,
        Self::Identity,
        Self::Emotional,
    ];

    /// Returns the word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Semantic => "semantic",
            Self::Episodic => "episodic",
            Self::Procedural => "procedural",
            Self::Working => "working",
            Self::Identity => "identity",
            Self::Emotional => "emotional",
        }
    }

    /// Returns a small stable number for indexes.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the facet a write on this axis alone fills in.
    #[must_use]
    pub const fn facet(self) -> Facet {
        match self {
            Self::Semantic | Self::Emotional => Facet::Fact,
            Self::Episodic => Facet::Summary,
            Self::Procedural => Facet::Instruction,
            Self::Working => Facet::Pattern,
            Self::Identity => Facet::Preference,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            Error::invalid("kind", format!("must be one of {known}"))
        })
    }
}

/// What role it plays for the person.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Facet {
    /// Something true.
    Fact,
    /// Something liked or wanted.
    Preference,
    /// Something that recurs.
    Pattern,
    /// Something the person put right.
    Correction,
    /// Something decided.
    Decision,
    /// A digest of something longer.
    Summary,
    /// A person, place or thing.
    Entity,
    /// Something to do whenever it applies.
    Instruction,
    /// None of these; its own word is in `foreign`.
    Custom,
}

impl Facet {
    /// All facets, in a fixed order.
    pub const ALL: [Self; 9] = [
        Self::Fact,
        Self::Preference,
        Self::Pattern,
        Self::Correction,
        Self::Decision,
        Self::Summary,
        Self::Entity,
        Self::Instruction,
        Self::Custom,
    ];

    /// Returns the word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fact => "fact",
            Self::Preference => "preference",
            Self::Pattern => "pattern",
            Self::Correction => "correction",
            Self::Decision => "decision",
            Self::Summary => "summary",
            Self::Entity => "entity",
            Self::Instruction => "instruction",
            Self::Custom => "custom",
        }
    }

    /// Returns the kind a write on this axis alone fills in.
    #[must_use]
    pub const fn kind(self) -> Kind {
        match self {
            Self::Fact | Self::Decision | Self::Entity | Self::Custom | Self::Pattern => {
                Kind::Semantic
            }
            Self::Preference => Kind::Identity,
            Self::Correction | Self::Instruction => Kind::Procedural,
            Self::Summary => Kind::Episodic,
        }
    }
}

impl fmt::Display for Facet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Facet {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|facet| facet.as_str() == text).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            Error::invalid("facet", format!("must be one of {known}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip_and_strangers_are_named() {
        for kind in Kind::ALL {
            assert_eq!(kind.as_str().parse::<Kind>().unwrap(), kind);
        }
        for facet in Facet::ALL {
            assert_eq!(facet.as_str().parse::<Facet>().unwrap(), facet);
        }
        let error = "wisdom".parse::<Kind>().unwrap_err().to_string();
        assert!(error.contains("semantic") && !error.contains("wisdom"));
    }
}

//! The closed lists of words.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum $name {
            $($(#[$about])* $variant,)*
        }

        impl $name {
            /// All of them, the default first.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the word for it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            /// Reads the word.
            #[must_use]
            pub fn named(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_str() == word)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = String::deserialize(deserializer)?;
                Self::named(&word).ok_or_else(|| {
                    de::Error::custom(concat!("must be one of" $(, " ", $word)*))
                })
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "enum": [$($word),*] })
            }
        }
    )*};
}

words! {
    /// How far a recovery goes.
    Mode {
        /// By where memories come from and what they say.
        #[default]
        Provenance = "provenance",
        /// And what is unsure expires.
        ProvenanceExpire = "provenance+expire",
    }

    /// What is to become of a memory that was looked at.
    Verdict {
        /// It stays.
        #[default]
        Keep = "keep",
        /// It is put aside, to be looked at.
        Quarantine = "quarantine",
        /// It is forgotten.
        Purge = "purge",
    }

    /// What sort of memory it is.
    Type {
        /// A fact about the world or a person.
        #[default]
        Semantic = "semantic",
        /// Something that happened.
        Episodic = "episodic",
        /// How to do something, as a state machine.
        Procedural = "procedural",
        /// How something felt.
        Emotional = "emotional",
    }

    /// How the lists of several stores become one.
    Fusion {
        /// By rank.
        #[default]
        Rrf = "rrf",
        /// By the highest score.
        Max = "max",
        /// By the sum of weighted scores.
        Weighted = "weighted",
    }

    /// Whether a store answered.
    Answered {
        /// It did.
        #[default]
        Ok = "ok",
        /// Not within its deadline.
        Late = "late",
        /// It failed.
        Failed = "failed",
        /// It was not asked, because it had failed often.
        LeftAlone = "left_alone",
    }

    /// How duplicates become one.
    Strategy {
        /// The canonical memory stays as it is.
        #[default]
        KeepCanonical = "keep_canonical",
        /// Texts are joined, metadata united.
        MergeContent = "merge_content",
        /// The surest one survives; on a tie the older.
        KeepHighestConfidence = "keep_highest_confidence",
    }

    /// Whether something felt good.
    Sentiment {
        /// Neither.
        #[default]
        Neutral = "neutral",
        /// It did.
        Positive = "positive",
        /// It did not.
        Negative = "negative",
        /// Both.
        Mixed = "mixed",
    }

    /// What expiry does to what it takes.
    Action {
        /// Takes it out of recall.
        #[default]
        Forget = "forget",
        /// Takes it out of recall and marks it as archived.
        Archive = "archive",
        /// Ranks it at a quarter from now on.
        Demote = "demote",
    }
}

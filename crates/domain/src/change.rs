//! The outbox: what changed, in order, without the content.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::class::Class;
use crate::memory::{Cause, Status};
use crate::{ConversationId, GrantId, HoldId, JobId, MemoryId, MessageId, Seq, Timestamp};

/// One change, written in the transaction that made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Its place in the vault's order.
    pub seq: Seq,
    /// When.
    pub at: Timestamp,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    /// A memory has a new head.
    Memory {
        /// Which.
        memory: MemoryId,
        /// The head's number.
        head: u32,
        /// Where it stands now.
        status: Status,
        /// What made the head.
        cause: Cause,
        /// Its class now.
        class: Class,
        /// Its class before, when that differs: who loses sight must be told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        was: Option<Class>,
    },
    /// A memory's text was erased.
    Erased {
        /// Which.
        memory: MemoryId,
        /// The head's number.
        head: u32,
        /// The class it had.
        class: Class,
    },
    /// A conversation was made or its head changed.
    Conversation {
        /// Which.
        conversation: ConversationId,
        /// Its class now.
        class: Class,
        /// Whether it was made.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        made: bool,
    },
    /// A message was appended.
    Message {
        /// The conversation.
        conversation: ConversationId,
        /// The message.
        message: MessageId,
        /// The conversation's class.
        class: Class,
    },
    /// A conversation or one of its messages was erased.
    ConversationErased {
        /// The conversation.
        conversation: ConversationId,
        /// The message, when not the whole.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<MessageId>,
        /// The class it had.
        class: Class,
    },
    /// A profile was replaced or removed.
    Profile {
        /// Whose.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<String>,
    },
    /// A hold was made or decided.
    Hold {
        /// Which.
        hold: HoldId,
    },
    /// A grant was issued or revoked.
    Grant {
        /// Which.
        grant: GrantId,
        /// Whether it was revoked.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        revoked: bool,
    },
    /// A job moved.
    Job {
        /// Which.
        job: JobId,
        /// Whether it was completed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        completed: bool,
    },
}

impl What {
    /// The class a lens must see for this to be told, or `None` when only the owner is told.
    #[must_use]
    pub fn class(&self) -> Option<&Class> {
        match self {
            Self::Memory { class, .. }
            | Self::Erased { class, .. }
            | Self::Conversation { class, .. }
            | Self::Message { class, .. }
            | Self::ConversationErased { class, .. } => Some(class),
            Self::Profile { .. } | Self::Hold { .. } | Self::Grant { .. } | Self::Job { .. } => {
                None
            }
        }
    }
}

//! Who is told of changes over the web, of which, and how far that has come.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Seq, Timestamp, WebhookId};

/// What somebody may be told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// A conversation was made.
    ConversationCreated,
    /// A memory was made.
    MemoryCreated,
    /// An archive that was asked for is ready.
    BackupCompleted,
    /// A grant was taken back.
    AccessRevoked,
}

impl Topic {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::ConversationCreated,
        Self::MemoryCreated,
        Self::BackupCompleted,
        Self::AccessRevoked,
    ];

    /// Its name where it is told.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConversationCreated => "conversation.created",
            Self::MemoryCreated => "memory.created",
            Self::BackupCompleted => "backup.completed",
            Self::AccessRevoked => "access.revoked",
        }
    }

    /// Reads the name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|topic| topic.as_str() == name)
    }
}

/// Somebody who is told of changes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Webhook {
    /// Its id.
    pub id: WebhookId,
    /// Where it listens.
    pub url: String,
    /// What it is told of.
    pub topics: Vec<Topic>,
    /// The key of its signatures.
    pub secret: [u8; 32],
    /// When it was registered.
    pub created: Timestamp,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook")
            .field("id", &self.id)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// How far somebody has been told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The last change that needs nothing more.
    pub after: Seq,
    /// How many notices were taken.
    #[serde(default)]
    pub delivered: u64,
    /// How often the next notice was tried in vain.
    #[serde(default)]
    pub attempts: u32,
    /// When it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    /// What went wrong the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether nothing is sent any more, until somebody switches it on again.
    #[serde(default)]
    pub off: bool,
}

//! Conversations: ordered messages, kept verbatim.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::class::{Class, Governance};
use crate::memory::Foreign;
use crate::scope::Scope;
use crate::{BlobHash, ConversationId, Error, MessageId, Result, Timestamp, limits};

/// Who spoke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
    /// Instructions.
    System,
    /// A tool.
    Tool,
}

/// A conversation without its messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conversation {
    /// Its id.
    pub id: ConversationId,
    /// A title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The platform it was held on, a lower-case slug.
    pub platform: String,
    /// The model, when it was one throughout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// When it began.
    pub created: Timestamp,
    /// When its last message was added.
    pub updated: Timestamp,
    /// The place.
    #[serde(default)]
    pub scope: Scope,
    /// Labels and sensitivity as declared.
    #[serde(default)]
    pub governance: Governance,
    /// Free tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// A digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// BCP 47.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// What only a protocol or a platform understands.
    #[serde(default, skip_serializing_if = "Foreign::is_empty")]
    pub foreign: Foreign,
}

impl Conversation {
    /// Returns its visibility class, which its messages share.
    #[must_use]
    pub fn class(&self) -> Class {
        Class::of(&self.governance, &self.scope)
    }

    /// Checks every limit.
    pub fn validate(&self) -> Result<()> {
        if self.platform.is_empty() || self.platform.len() > limits::NAME_BYTES {
            return Err(Error::invalid("platform", "must be 1 to 256 bytes"));
        }
        if self.tags.len() > limits::TAGS {
            return Err(Error::too_large("tags", limits::TAGS));
        }
        Ok(())
    }
}

/// One turn, never edited once stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Its id, unique in the conversation.
    pub id: MessageId,
    /// Who spoke.
    pub role: Role,
    /// What was said: a string, or blocks as the protocol has them.
    pub content: Value,
    /// The words of it, for search and display.
    pub text: String,
    /// When it was said.
    pub at: Timestamp,
    /// The model that spoke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The platform it was said on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// The message it follows, where the source has branches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<MessageId>,
    /// Whether it lies on a branch that was left.
    #[serde(default)]
    pub off_path: bool,
    /// What was attached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// What only a protocol or a platform understands.
    #[serde(default, skip_serializing_if = "Foreign::is_empty")]
    pub foreign: Foreign,
}

impl Message {
    /// Checks every limit.
    pub fn validate(&self) -> Result<()> {
        if self.text.len() > limits::MESSAGE_BYTES {
            return Err(Error::too_large("message text", "16 MiB"));
        }
        Ok(())
    }
}

/// A file that came with a message. The bytes lie apart, by hash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attachment {
    /// Its name.
    pub filename: String,
    /// Its media type.
    pub media_type: String,
    /// The hash of its bytes; absent when the source did not ship them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<BlobHash>,
    /// Its size in bytes, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// What only a platform understands.
    #[serde(default, skip_serializing_if = "Foreign::is_empty")]
    pub foreign: Foreign,
}

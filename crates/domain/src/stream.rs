//! Delivery state of messages between agents: streams of frames and inboxes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{HoldId, Timestamp};

/// Where an exchange stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamState {
    /// Work goes on.
    #[default]
    InProgress,
    /// It ended well.
    Completed,
    /// It was withdrawn.
    Cancelled,
    /// It failed.
    Error,
}

impl StreamState {
    /// Whether nothing follows any more.
    #[must_use]
    pub const fn is_final(self) -> bool {
        match self {
            Self::InProgress => false,
            Self::Completed | Self::Cancelled | Self::Error => true,
        }
    }
}

/// What the end of a stream waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pending {
    /// The answer to a question.
    Answer {
        /// When it is too late.
        until: Timestamp,
    },
    /// A person's decision.
    Decision {
        /// What is to be decided; absent until it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hold: Option<HoldId>,
    },
    /// Nothing: changes are told until the sender has enough.
    Changes {
        /// After which change to go on; absent before the first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
    },
}

/// A stream of frames from the server to one sender. Its key is (sender, id).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stream {
    /// Who opened it.
    pub sender: String,
    /// The id the sender chose or was given.
    pub id: String,
    /// Where it stands.
    pub state: StreamState,
    /// Frames that may be unacknowledged at once.
    pub window: u32,
    /// The number of the next frame.
    pub next: u64,
    /// Frames below this are acknowledged.
    pub acknowledged: u64,
    /// The message that opened it.
    pub request: String,
    /// What its end waits for.
    pub pending: Pending,
    /// Counts its changes, so that none is lost when two come at once.
    pub revision: u64,
    /// When it was opened.
    pub opened: Timestamp,
    /// When it last moved.
    pub updated: Timestamp,
}

/// One frame of a stream, exact bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Frame {
    /// Its number in the stream, from 0.
    pub number: u64,
    /// The frame as sent.
    pub bytes: Vec<u8>,
}

/// Where a letter stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LetterState {
    /// Waiting.
    #[default]
    Queued,
    /// Handed out, not acknowledged.
    Delivered,
    /// Acknowledged.
    Acknowledged,
    /// Its time ran out.
    Expired,
    /// It could not be delivered.
    Bounced,
}

/// A message that waits in an agent's inbox. Its key is (sender, id).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Letter {
    /// Whose inbox.
    pub inbox: String,
    /// Who sent it.
    pub sender: String,
    /// The message's id.
    pub id: String,
    /// The digest of the message; the same id with another digest is an attack.
    pub digest: String,
    /// What the thread it belongs to is called.
    pub thread: String,
    /// The stream it opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// The message as received.
    pub bytes: Vec<u8>,
    /// Where it stands.
    pub state: LetterState,
    /// When it came.
    pub received: Timestamp,
    /// When it lapses.
    pub expires: Timestamp,
    /// When it was last handed out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<Timestamp>,
}

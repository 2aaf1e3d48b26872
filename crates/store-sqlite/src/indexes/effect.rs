//! What a commit means for the indexes.

use yore_domain::MessageId;
use yore_domain::memory::{Feedback, Version};
use yore_store::plan::Indexing;
use yore_store::{RowKey, Vector};

/// One consequence of a committed write. Applying the same effects again changes nothing.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// A memory has a new head; the head before it becomes history.
    Version {
        /// The row of the version.
        row: u64,
        /// The row of the memory.
        memory_row: u64,
        /// The class of the version, which is the memory's class from now on.
        class: u32,
        /// The version.
        version: Box<Version>,
        /// What makes it findable; without a static vector it is not indexed.
        indexing: Indexing,
    },
    /// Every version of a memory was erased.
    Erased {
        /// The row of the memory.
        memory_row: u64,
    },
    /// The tallies of a memory changed; they are the new totals.
    Feedback {
        /// The row of the memory.
        memory_row: u64,
        /// All tallies.
        tallies: Feedback,
    },
    /// A memory was demoted or promoted again.
    Demoted {
        /// The row of the memory.
        memory_row: u64,
        /// Whether.
        demoted: bool,
    },
    /// A model made a vector for a row.
    Vector {
        /// The row.
        row: RowKey,
        /// The vector.
        vector: Vector,
    },
    /// A conversation was made or its head replaced; its messages move with its class.
    Conversation {
        /// The row of the conversation.
        row: u64,
        /// Its class.
        class: u32,
        /// The session of its scope.
        session: Option<String>,
    },
    /// A message was appended.
    Message {
        /// The row of the message.
        row: u64,
        /// The row of its conversation.
        conversation_row: u64,
        /// The class of the conversation.
        class: u32,
        /// Its id.
        id: MessageId,
        /// Its position.
        position: u64,
        /// When it was said, in microseconds.
        at: i64,
        /// Its words.
        text: String,
        /// What makes it findable; without a static vector it is not indexed.
        indexing: Indexing,
    },
    /// The number of what attachments say that the effects before it contain.
    Read {
        /// Its number.
        number: u64,
    },
    /// Messages were erased.
    MessagesErased {
        /// The row of their conversation.
        conversation_row: u64,
        /// Their rows.
        rows: Vec<u64>,
    },
    /// The number of the last change that the effects before it contain.
    Changed {
        /// The number in the outbox.
        seq: u64,
    },
}

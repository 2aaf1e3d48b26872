//! What a commit consists of.

use std::sync::Arc;

use serde_json::Value;
use yore_domain::audit;
use yore_domain::change::What;
use yore_domain::class::Class;
use yore_domain::conversation::{Conversation, Message};
use yore_domain::grant::{Grant, Token};
use yore_domain::hold::{Hold, Rule};
use yore_domain::job::{Job, JobState};
use yore_domain::memory::{FeedbackOutcome, Version};
use yore_domain::procedure::Procedure;
use yore_domain::profile::Profile;
use yore_domain::stream::{Frame, Letter, Stream};
use yore_domain::{
    BlobHash, ConversationId, Error, GrantId, HoldId, JobId, MemoryId, MessageId, Seq, TenantId,
    Timestamp, TokenId, VaultId,
};

use crate::inside::Inside;
use crate::search::Vector;
use crate::snapshot::Extent;

/// Row changes, their audit entry, and what must still be true for them to be right.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What changes, in order.
    pub writes: Vec<Write>,
    /// The one audit entry of the attempt.
    pub audit: audit::Draft,
    /// What must still hold inside the transaction.
    pub preconditions: Vec<Precondition>,
    /// The client's operation id and the result to give again on a retry.
    pub operation: Option<Operation>,
    /// Whether the caller waits for the disk.
    pub durability: Durability,
}

impl Plan {
    /// A plan that only says what was attempted.
    #[must_use]
    pub fn of(audit: audit::Draft) -> Self {
        Self {
            writes: Vec::new(),
            audit,
            preconditions: Vec::new(),
            operation: None,
            durability: Durability::Strict,
        }
    }
}

/// A client-made operation id, kept for a day.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Whose id it is, so that two callers cannot collide.
    pub caller: String,
    /// The id.
    pub id: String,
    /// A hash of the request: the same id with another request is refused.
    pub fingerprint: String,
    /// What the first attempt answered.
    pub result: Value,
}

/// Whether a commit waits for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It returns when the change is on disk.
    Strict,
    /// It returns at once and is on disk within 50 ms. Only for traces of reads.
    Relaxed,
}

/// What must be true inside the transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum Precondition {
    /// The memory's head has this number; `None` means it does not exist.
    Head(MemoryId, Option<u32>),
    /// No live memory with this statement digest exists in this class.
    Unsaid(String),
    /// Grants and tokens are as they were.
    GrantEpoch(u64),
    /// Rules are as they were.
    RuleEpoch(u64),
    /// The hold still waits.
    Pending(HoldId),
    /// No hold has this id, decided or not.
    Unasked(HoldId),
    /// The profile's version is this; `None` means there is none.
    Profile(Option<String>, Option<u64>),
    /// The conversation exists, or does not.
    Conversation(ConversationId, bool),
    /// The stream (sender, id) has changed so often; `None` means that it does not exist.
    Stream(String, String, Option<u64>),
    /// No letter of this sender has this id.
    Unsent(String, String),
    /// The setting has this value; `None` means that it was never set.
    Setting(String, Option<Value>),
    /// The conversation is as it was found: its head, and which messages it has.
    Talk(Box<Conversation>, Extent),
}

/// One row change.
#[derive(Clone, Debug)]
pub enum Write {
    /// Appends a version; number 1 begins a memory.
    Version {
        /// The version.
        version: Box<Version>,
        /// What makes it findable at once.
        indexing: Indexing,
    },
    /// Removes the text of a memory from every version, index and journal.
    Erase {
        /// Which.
        memory: MemoryId,
    },
    /// Adds to a memory's use.
    Used {
        /// Which.
        memories: Vec<MemoryId>,
        /// When.
        at: Timestamp,
    },
    /// Counts an outcome.
    Feedback {
        /// Which.
        memory: MemoryId,
        /// What happened.
        outcome: FeedbackOutcome,
    },
    /// Ranks a memory at a quarter, or at its full weight again.
    Demote {
        /// Which.
        memory: MemoryId,
        /// Whether.
        demoted: bool,
    },
    /// Protects a memory from erasure, or releases it.
    LegalHold {
        /// Which.
        memory: MemoryId,
        /// Whether.
        held: bool,
    },
    /// Gives a memory, a version or a conversation another name.
    Alias {
        /// In whose namespace; empty is the owner's.
        namespace: String,
        /// The name.
        name: String,
        /// What it names.
        target: AliasTarget,
        /// What it may name until now; any other use of the name is a conflict.
        instead_of: Option<AliasTarget>,
    },
    /// A vector that a model made after the commit.
    Vector {
        /// The row.
        row: crate::search::RowKey,
        /// The vector.
        vector: Vector,
    },
    /// Makes or replaces the head of a conversation.
    Conversation(Box<Conversation>),
    /// Appends a message; the same (conversation, id) is kept as it is.
    Message {
        /// The conversation.
        conversation: ConversationId,
        /// The message; whoever plans may hold on to it.
        message: Arc<Message>,
        /// What makes it findable at once.
        indexing: Indexing,
    },
    /// Makes a message findable by what its attachments say, too. Without any, they were read and
    /// say nothing.
    Inside {
        /// The message.
        row: crate::search::RowKey,
        /// What each of them says.
        inside: Vec<Inside>,
        /// What makes it findable by meaning.
        indexing: Indexing,
    },
    /// Removes a conversation and all its messages for good.
    EraseConversation(ConversationId),
    /// Removes one message for good.
    EraseMessage(ConversationId, MessageId),
    /// Notes that something was erased elsewhere, so that nothing brings it back here.
    Bury(Grave),
    /// Stores a piece of an attachment.
    BlobChunk {
        /// The hash of the whole.
        blob: BlobHash,
        /// Which piece, from 0.
        number: u32,
        /// The bytes.
        bytes: Vec<u8>,
        /// The size of the whole; set with the last piece, which makes it readable.
        complete: Option<u64>,
    },
    /// Gives the pieces of an attachment that were stored under another name its own, once the
    /// hash of the whole is known. They must be all there.
    BlobNamed {
        /// The name they were stored under.
        staged: BlobHash,
        /// The hash of the whole.
        blob: BlobHash,
        /// Its size.
        size: u64,
    },
    /// Issues or replaces a grant.
    Grant(Box<Grant>),
    /// Takes a grant back.
    RevokeGrant(GrantId, Timestamp),
    /// Stores a token's record.
    Token(Box<Token>),
    /// Takes a token back.
    RevokeToken(TokenId, Timestamp),
    /// Makes or decides a hold.
    Hold(Box<Hold>),
    /// Takes an operation back that waits or was decided, with every word of it.
    EraseHold(HoldId),
    /// Adds or replaces a rule by its name.
    Rule(Box<Rule>),
    /// Removes a rule.
    RemoveRule(String),
    /// Replaces a profile.
    Profile(Box<Profile>),
    /// Removes a profile and its history.
    EraseProfile(Option<String>),
    /// Stores a machine's state.
    Procedure(Box<Procedure>),
    /// Makes or moves a job.
    Job(Box<Job>),
    /// Removes a finished job.
    RemoveJob(JobId),
    /// Opens or moves a stream.
    Stream(Box<Stream>),
    /// Appends a frame.
    Frame {
        /// Who opened the stream.
        sender: String,
        /// The stream.
        stream: String,
        /// The frame.
        frame: Frame,
    },
    /// Drops acknowledged frames below a number.
    DropFrames {
        /// Who opened the stream.
        sender: String,
        /// The stream.
        stream: String,
        /// The first one kept.
        below: u64,
    },
    /// Removes streams that ended before this, and their frames.
    DropStreams(Timestamp),
    /// Puts a letter into an inbox or moves it.
    Letter(Box<Letter>),
    /// Removes letters that nobody waits for and that came before this.
    DropLetters(Timestamp),
    /// A setting of the vault, or of the server when the vault is the catalog.
    Setting(String, Value),
    /// A tenant; catalog only.
    Tenant {
        /// Its id.
        id: TenantId,
        /// Its name.
        name: String,
    },
    /// Where an id lies, for services that do not say whose it is; catalog only.
    Locate {
        /// HMAC of the id.
        mac: [u8; 32],
        /// The vault.
        vault: VaultId,
    },
}

/// What was erased: its name alone, never a word of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grave {
    /// A memory.
    Memory(MemoryId),
    /// A conversation with everything in it.
    Conversation(ConversationId),
    /// One message.
    Message(ConversationId, MessageId),
}

/// What an alias names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AliasTarget {
    /// A memory.
    Memory(MemoryId),
    /// One version of a memory.
    Version(MemoryId, u32),
    /// A conversation.
    Conversation(ConversationId),
}

/// What is computed before the commit so that the row is findable right after it.
#[derive(Clone, Debug, Default)]
pub struct Indexing {
    /// WordPiece ids of the text.
    pub tokens: Vec<u16>,
    /// The static vector; absent when the row is not to be indexed.
    pub statics: Option<Vector>,
    /// The digest of the normalised text, scope and kind, for exact duplicates.
    pub statement: String,
}

/// Where a commit landed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// The number of its last change; the previous last one when it changed nothing.
    pub change: Seq,
    /// The number of its audit entry; zero while it is relaxed.
    pub audit: Seq,
}

/// Why a commit did not happen.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// A precondition no longer holds; facts and judgement must be repeated.
    #[error("stale: {0}")]
    Stale(&'static str),
    /// It failed, and nothing was written.
    #[error(transparent)]
    Failed(#[from] Error),
}

/// What a backend needs to know of the rows a write replaces to tell the outbox.
#[derive(Clone, Debug, Default)]
pub struct Before {
    /// The class of the memory's previous head.
    pub class: Option<Class>,
    /// The number of the head, for erasures.
    pub head: u32,
    /// The class the conversation had, for it and its messages.
    pub conversation: Option<Class>,
}

impl Write {
    /// What the outbox says about this write. Every backend asks here, so that folding the
    /// outbox always yields the tables.
    #[must_use]
    pub fn change(&self, before: &Before) -> Option<What> {
        Some(match self {
            Self::Version { version, .. } => {
                let class = version.class();
                What::Memory {
                    memory: version.memory,
                    head: version.number,
                    status: version.status,
                    cause: version.cause,
                    was: before.class.clone().filter(|was| *was != class),
                    class,
                }
            }
            Self::Erase { memory } => {
                What::Erased { memory: *memory, head: before.head, class: before.class.clone()? }
            }
            Self::Conversation(conversation) => What::Conversation {
                conversation: conversation.id,
                class: conversation.class(),
                made: before.conversation.is_none(),
            },
            Self::Message { conversation, message, .. } => What::Message {
                conversation: *conversation,
                message: message.id,
                class: before.conversation.clone()?,
            },
            Self::EraseConversation(conversation) => What::ConversationErased {
                conversation: *conversation,
                message: None,
                class: before.conversation.clone()?,
            },
            Self::EraseMessage(conversation, message) => What::ConversationErased {
                conversation: *conversation,
                message: Some(*message),
                class: before.conversation.clone()?,
            },
            Self::Profile(profile) => What::Profile { user: profile.user.clone() },
            Self::EraseProfile(user) => What::Profile { user: user.clone() },
            Self::Hold(hold) => What::Hold { hold: hold.id },
            Self::EraseHold(hold) => What::Hold { hold: *hold },
            Self::Grant(grant) => What::Grant { grant: grant.id, revoked: false },
            Self::RevokeGrant(grant, _) => What::Grant { grant: *grant, revoked: true },
            Self::Job(job) => {
                What::Job { job: job.id, completed: job.state == JobState::Completed }
            }
            Self::Used { .. }
            | Self::Feedback { .. }
            | Self::Demote { .. }
            | Self::LegalHold { .. }
            | Self::Alias { .. }
            | Self::Vector { .. }
            | Self::Inside { .. }
            | Self::Bury(_)
            | Self::BlobChunk { .. }
            | Self::BlobNamed { .. }
            | Self::Token(_)
            | Self::RevokeToken(..)
            | Self::Rule(_)
            | Self::RemoveRule(_)
            | Self::Procedure(_)
            | Self::RemoveJob(_)
            | Self::Stream(_)
            | Self::Frame { .. }
            | Self::DropFrames { .. }
            | Self::DropStreams(_)
            | Self::Letter(_)
            | Self::DropLetters(_)
            | Self::Setting(..)
            | Self::Tenant { .. }
            | Self::Locate { .. } => return None,
        })
    }
}

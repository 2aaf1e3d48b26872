//! What a vault consists of, in a form that no backend owns.
//!
//! Numbers of rows are kept: they are the order in which things were written, and what vectors and
//! the audit chain name. Values that both backends store as the same JSON travel as that text, so
//! they arrive byte for byte.

use serde_json::Value;
use yore_domain::class::Class;
use yore_domain::conversation::{Conversation, Message};
use yore_domain::memory::Relation;
use yore_domain::{BlobHash, TenantId, VaultId};

use crate::key::Key;
use crate::plan::Operation;
use crate::search::{RowKey, Vector};

mod digest;

/// One row of a vault.
#[derive(Clone, Debug)]
pub enum Row {
    /// The seed of the key that signs for the vault.
    Seed(Key),
    /// Where its numbers stand, as far as rows do not tell.
    Counters(Counters),
    /// A class and its number.
    Class(u32, Class),
    /// A setting that is not the store's own.
    Setting(String, Value),
    /// A memory; its versions follow.
    Memory(Box<MemoryRow>),
    /// A version.
    Version(Box<VersionRow>),
    /// A link of a memory's head: the memory's row, which of its links, the link.
    Relation(i64, i32, Relation),
    /// Another name: namespace, name, what kind of thing it names, its id, its number.
    Alias(String, String, u8, [u8; 16], u32),
    /// A conversation: its row, its class, how many messages it counts.
    Talk(i64, u32, u64, Box<Conversation>),
    /// A message.
    Message(Box<MessageRow>),
    /// An attachment that is whole, and its size.
    Blob(BlobHash, u64),
    /// A piece of it.
    Piece(BlobHash, u32, Vec<u8>),
    /// A vector that a model made.
    Vector(RowKey, Vector),
    /// A value that is found by what it says itself, as JSON.
    Kept(Kept, String),
    /// A rule and its place among the others.
    Rule(i64, String),
    /// A frame: sender, stream, number, bytes.
    Frame(String, String, u64, Vec<u8>),
    /// A letter and its number among those of the vault.
    Letter(i64, String),
    /// What an operation id was answered, and when.
    Operation(Box<Operation>, i64),
    /// What was erased: namespace, name, the message if it was one, its kind, when.
    Grave(String, String, Vec<u8>, u8, i64),
    /// An entry of the audit chain.
    Entry(Box<EntryRow>),
    /// A memory that an entry names without writing a version of it.
    Named(i64, u64),
    /// A signed checkpoint of the audit chain.
    Checkpoint(u64, String),
    /// A tenant; catalog only.
    Tenant(TenantId, String),
    /// Where an id lies; catalog only.
    Place(Vec<u8>, VaultId),
    /// Something that cannot be told apart from its digest any more, and stays behind.
    Lost(&'static str),
}

/// Values that are found by what they say themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// A grant.
    Grant,
    /// A token's record.
    Token,
    /// A hold.
    Hold,
    /// A version of a profile.
    Profile,
    /// A procedure.
    Procedure,
    /// A job.
    Job,
    /// A stream.
    Stream,
}

/// Where a vault's numbers stand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// The last row given to a message.
    pub message: u64,
    /// The last number given to a letter.
    pub letter: u64,
    /// How often grants changed.
    pub grants: u64,
    /// How often rules changed.
    pub rules: u64,
}

/// A memory.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the columns of the tables, which say what they are")]
pub struct MemoryRow {
    pub row: i64,
    pub id: [u8; 16],
    pub head: u32,
    pub head_row: i64,
    pub class: u32,
    pub status: u8,
    pub kind: u8,
    pub since: i64,
    pub created: i64,
    pub ends: Option<i64>,
    pub statement: Option<String>,
    pub legal_hold: bool,
    pub recalled: Option<i64>,
    pub recalls: u64,
    pub followed: u64,
    pub overridden: u64,
    pub ignored: u64,
    pub contradicted: u64,
    pub demoted: bool,
}

/// What makes a version or a message findable without a model.
#[derive(Clone, Debug)]
pub struct Indexed {
    /// WordPiece ids.
    pub tokens: Vec<u16>,
    /// The static vector. Its model has no name where the source keeps none.
    pub statics: Vector,
}

/// A version.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the columns of the table, which say what they are")]
pub struct VersionRow {
    pub row: i64,
    pub id: [u8; 16],
    pub memory: i64,
    pub number: u32,
    pub class: u32,
    pub status: u8,
    pub recorded: i64,
    pub entry: u64,
    pub salt: Option<Vec<u8>>,
    pub data: String,
    pub indexed: Option<Indexed>,
}

/// A message.
#[derive(Clone, Debug)]
pub struct MessageRow {
    /// Its row.
    pub row: i64,
    /// The row of its conversation.
    pub talk: i64,
    /// Its place in the conversation.
    pub position: u64,
    /// The message.
    pub message: Message,
    /// What makes it findable.
    pub indexed: Option<Indexed>,
    /// What its attachments say, as JSON.
    pub inside: Option<String>,
    /// Whether they were not read yet.
    pub unread: bool,
}

/// An entry of the audit chain.
#[derive(Clone, Debug)]
pub struct EntryRow {
    /// Its number.
    pub seq: u64,
    /// When.
    pub at: i64,
    /// Which operation.
    pub operation: String,
    /// Which agent.
    pub agent: Option<String>,
    /// Exactly what was hashed.
    pub data: String,
    /// The hash of it and of the entry before it.
    pub hash: Vec<u8>,
    /// How many changes were made by then.
    pub change: u64,
    /// What changed, as JSON.
    pub changes: Option<String>,
}

impl Row {
    /// What it is, for people.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Seed(_) | Self::Counters(_) => "keys and counters",
            Self::Class(..) => "classes",
            Self::Setting(..) => "settings",
            Self::Memory(_) => "memories",
            Self::Version(_) => "versions",
            Self::Relation(..) => "links",
            Self::Alias(..) => "names",
            Self::Talk(..) => "conversations",
            Self::Message(_) => "messages",
            Self::Blob(..) => "attachments",
            Self::Piece(..) => "pieces of attachments",
            Self::Vector(..) => "vectors",
            Self::Kept(kept, _) => match kept {
                Kept::Grant => "grants",
                Kept::Token => "tokens",
                Kept::Hold => "holds",
                Kept::Profile => "profiles",
                Kept::Procedure => "procedures",
                Kept::Job => "jobs",
                Kept::Stream => "streams",
            },
            Self::Rule(..) => "rules",
            Self::Frame(..) => "frames",
            Self::Letter(..) => "letters",
            Self::Operation(..) => "answered operations",
            Self::Grave(..) => "names of what was erased",
            Self::Entry(_) => "audit entries",
            Self::Named(..) => "mentions in audit entries",
            Self::Checkpoint(..) => "checkpoints",
            Self::Tenant(..) => "tenants",
            Self::Place(..) => "places of ids",
            Self::Lost(what) => what,
        }
    }

    /// About how many bytes it takes, where that may be many.
    pub(super) fn weight(&self) -> usize {
        if let Self::Piece(_, _, bytes) | Self::Frame(_, _, _, bytes) = self {
            return bytes.len();
        }
        if let Self::Kept(_, data) | Self::Letter(_, data) = self {
            return data.len();
        }
        if let Self::Message(message) = self {
            // What a message says mostly stands in it twice.
            return 2 * message.message.text.len() + message.inside.as_ref().map_or(0, String::len);
        }
        if let Self::Version(version) = self { version.data.len() } else { 0 }
    }
}

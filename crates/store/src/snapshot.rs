//! Reading a vault. Whatever a lens hides is absent here, in every method alike.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use yore_domain::audit::{Checkpoint, Entry};
use yore_domain::change::Change;
use yore_domain::conversation::{Conversation, Message};
use yore_domain::grant::{Grant, Token};
use yore_domain::hold::{Hold, HoldState, Rule};
use yore_domain::job::Job;
use yore_domain::memory::{Memory, Version};
use yore_domain::procedure::Procedure;
use yore_domain::profile::Profile;
use yore_domain::query::{Filter, Page, PageRequest};
use yore_domain::stream::{Frame, Letter, Stream};
use yore_domain::{
    BlobHash, ConversationId, GrantId, HoldId, JobId, MemoryId, MessageId, Seq, TenantId,
    Timestamp, VaultId, VersionId,
};

use crate::Answer;
use crate::inside::{Inside, Unread};
use crate::plan::{AliasTarget, Grave, Operation};
use crate::search::{Candidate, RowKey, Search};

/// A consistent view of one vault through one lens.
///
/// Grants, tokens, rules, epochs and settings are those of the moment it was opened; rows are
/// those of the moment the first row was asked for, and stay so. A hidden row and a missing row
/// run the same statements and give the same answer.
pub trait Snapshot: Send + Sync {
    /// Returns a memory as it stands.
    fn memory(&self, id: MemoryId) -> Answer<'_, Option<Memory>>;
    /// Returns a memory as it stood at a time the vault took things in.
    fn memory_as_of(&self, id: MemoryId, at: Timestamp) -> Answer<'_, Option<Version>>;
    /// Returns every version, oldest first; empty when there is none to see.
    fn history(&self, id: MemoryId) -> Answer<'_, Vec<Version>>;
    /// Returns one version by its own id.
    fn version(&self, id: VersionId) -> Answer<'_, Option<Version>>;
    /// Returns what a name means in a namespace, if it is visible.
    fn resolve<'a>(&'a self, namespace: &'a str, name: &'a str) -> Answer<'a, Option<AliasTarget>>;
    /// Returns the names of a memory.
    fn aliases(&self, id: MemoryId) -> Answer<'_, Vec<(String, String)>>;
    /// Lists memories.
    fn memories<'a>(
        &'a self,
        filter: &'a Filter,
        page: &'a PageRequest,
    ) -> Answer<'a, Page<Memory>>;
    /// Counts the visible memories that pass a filter.
    fn count<'a>(&'a self, filter: &'a Filter) -> Answer<'a, u64>;
    /// Returns the live memory that makes exactly this statement.
    fn said<'a>(&'a self, statement: &'a str) -> Answer<'a, Option<MemoryId>>;
    /// Returns live memories whose retention or expiry has passed.
    fn ended(&self, now: Timestamp, limit: usize) -> Answer<'_, Vec<MemoryId>>;
    /// Returns memories that relate to this one, that this one relates to, or that relate to the
    /// same entity.
    fn related(&self, id: MemoryId) -> Answer<'_, Vec<MemoryId>>;

    /// Gathers candidates.
    fn search<'a>(&'a self, search: &'a Search<'a>) -> Answer<'a, Vec<Candidate>>;
    /// Loads rows that a search named, in the order given; rows that are gone are left out.
    fn load<'a>(&'a self, rows: &'a [RowKey]) -> Answer<'a, Vec<(RowKey, Loaded)>>;
    /// Lists rows that lack a vector of this model, newest first.
    fn unembedded<'a>(&'a self, model: &'a str, limit: usize) -> Answer<'a, Vec<(RowKey, String)>>;

    /// Returns a conversation without its messages, and their number.
    fn conversation(&self, id: ConversationId) -> Answer<'_, Option<(Conversation, u64)>>;
    /// Lists conversations, by when they were last added to.
    fn conversations<'a>(
        &'a self,
        filter: &'a Filter,
        page: &'a PageRequest,
    ) -> Answer<'a, Page<(Conversation, u64)>>;
    /// Returns which messages a conversation has, without reading them.
    fn extent(&self, id: ConversationId) -> Answer<'_, Option<Extent>>;
    /// Returns messages from a position on, in order.
    fn messages(
        &self,
        conversation: ConversationId,
        from: u64,
        limit: usize,
    ) -> Answer<'_, Vec<Message>>;
    /// Returns one message and its position.
    fn message(
        &self,
        conversation: ConversationId,
        id: MessageId,
    ) -> Answer<'_, Option<(u64, Message)>>;
    /// Lists messages whose attachments are whole and were not yet read, newest first.
    fn unread(&self, limit: usize) -> Answer<'_, Vec<Unread>>;
    /// Returns what the attachments of a message say, as far as they were read.
    fn inside(&self, conversation: ConversationId, id: MessageId) -> Answer<'_, Vec<Inside>>;
    /// Returns what was erased under a name of a namespace.
    fn buried<'a>(&'a self, namespace: &'a str, name: &'a str) -> Answer<'a, Buried>;
    /// Lists what was erased and when, oldest first; owner only.
    fn graves(&self) -> Answer<'_, Vec<(Grave, Timestamp)>>;
    /// Returns the size of a complete attachment that a visible message or memory names.
    fn blob(&self, blob: BlobHash) -> Answer<'_, Option<u64>>;
    /// Returns one piece of it.
    fn blob_chunk(&self, blob: BlobHash, number: u32) -> Answer<'_, Option<Vec<u8>>>;

    /// Returns a grant; owner only.
    fn grant(&self, id: GrantId) -> Answer<'_, Option<Grant>>;
    /// Lists grants; owner only.
    fn grants(&self) -> Answer<'_, Vec<Grant>>;
    /// Returns the record of a token by the hash of its secret.
    fn token<'a>(&'a self, hash: &'a str) -> Answer<'a, Option<Token>>;
    /// Lists tokens; owner only.
    fn tokens(&self) -> Answer<'_, Vec<Token>>;
    /// Returns a hold; the owner's, or the asking agent's own.
    fn hold(&self, id: HoldId) -> Answer<'_, Option<Hold>>;
    /// Lists holds in a state, oldest first; the owner sees all, an agent its own.
    fn holds(&self, state: HoldState, limit: usize) -> Answer<'_, Vec<Hold>>;
    /// Lists the rules in order.
    fn rules(&self) -> Answer<'_, Vec<Rule>>;
    /// Returns the numbers that change whenever grants or rules do.
    fn epochs(&self) -> Answer<'_, Epochs>;
    /// Returns what an operation id was answered before.
    fn operation<'a>(&'a self, caller: &'a str, id: &'a str) -> Answer<'a, Option<Operation>>;
    /// Returns a setting.
    fn setting<'a>(&'a self, name: &'a str) -> Answer<'a, Option<Value>>;

    /// Lists the tenants that were named; catalog only.
    fn tenants(&self) -> Answer<'_, Vec<(TenantId, String)>>;
    /// Returns where an id lies, by the HMAC of the id; catalog only.
    fn located<'a>(&'a self, mac: &'a [u8; 32]) -> Answer<'a, Option<VaultId>>;

    /// Returns a profile, now or as it was. A lens sees it as it sees its class.
    fn profile<'a>(
        &'a self,
        user: Option<&'a str>,
        as_of: Option<Timestamp>,
    ) -> Answer<'a, Option<Profile>>;
    /// Returns the machine a memory carries.
    fn procedure(&self, memory: MemoryId) -> Answer<'_, Option<Procedure>>;
    /// Finds machines by name.
    fn procedures<'a>(&'a self, name: Option<&'a str>) -> Answer<'a, Vec<Procedure>>;
    /// Returns a job.
    fn job(&self, id: JobId) -> Answer<'_, Option<Job>>;
    /// Lists jobs, newest first.
    fn jobs(&self, limit: usize) -> Answer<'_, Vec<Job>>;

    /// Lists changes after a number, in order, unfiltered: the feed filters per subscriber.
    fn changes(&self, after: Seq, limit: usize) -> Answer<'_, Vec<Change>>;
    /// Lists audit entries.
    fn audit<'a>(&'a self, query: &'a AuditQuery) -> Answer<'a, Vec<Entry>>;
    /// Returns the newest signed checkpoint.
    fn checkpoint(&self) -> Answer<'_, Option<Checkpoint>>;
    /// Counts what the vault holds; owner only.
    fn census(&self) -> Answer<'_, Census>;
    /// Counts the live memories that give cause for a concern, and names the first of them; owner
    /// only.
    fn concerning(&self, concern: Concern, limit: usize) -> Answer<'_, (u64, Vec<MemoryId>)>;
    /// Counts conversations and messages by platform and month; owner only.
    fn tally(&self) -> Answer<'_, Vec<Tally>>;

    /// Returns a stream.
    fn stream<'a>(&'a self, sender: &'a str, id: &'a str) -> Answer<'a, Option<Stream>>;
    /// Returns frames from a number on.
    fn frames<'a>(
        &'a self,
        sender: &'a str,
        id: &'a str,
        from: u64,
        limit: usize,
    ) -> Answer<'a, Vec<Frame>>;
    /// Returns a letter by its sender and id.
    fn letter<'a>(&'a self, sender: &'a str, id: &'a str) -> Answer<'a, Option<Letter>>;
    /// Lists the letters of an inbox that are not acknowledged, in order.
    fn letters<'a>(&'a self, inbox: &'a str, limit: usize) -> Answer<'a, Vec<Letter>>;
    /// Counts the letters of an inbox that are not acknowledged, by sender.
    fn waiting<'a>(&'a self, inbox: &'a str) -> Answer<'a, Vec<(String, u64)>>;
}

/// What was erased under one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buried {
    /// Whether everything was.
    pub whole: bool,
    /// The messages that were erased one by one.
    pub messages: Vec<MessageId>,
}

/// A row that a search named.
#[derive(Clone, Debug)]
pub enum Loaded {
    /// A memory whose version matched.
    Memory {
        /// The version that matched.
        version: Box<Version>,
        /// Whether it is the head.
        head: bool,
    },
    /// A message that matched.
    Message {
        /// Its conversation, without messages.
        conversation: Box<Conversation>,
        /// Its position.
        position: u64,
        /// The message.
        message: Box<Message>,
    },
}

/// Which messages a conversation has: two extents are equal only if the messages are the same.
///
/// It must not leave the server: `last` counts messages of the whole vault, hidden ones too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// How many there are.
    pub messages: u64,
    /// How many of them lie on branches that were left.
    pub off_path: u64,
    /// The number of the newest one; numbers are never used again.
    pub last: u64,
}

/// Numbers that change whenever grants or rules do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Epochs {
    /// Grants and tokens.
    pub grants: u64,
    /// Rules.
    pub rules: u64,
}

/// Which entries of the audit chain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AuditQuery {
    /// After this number.
    pub after: Seq,
    /// Before this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Seq>,
    /// Only this operation.
    pub operation: Option<String>,
    /// Only this agent.
    pub agent: Option<String>,
    /// Only those that touched this memory.
    pub memory: Option<MemoryId>,
    /// From this time on.
    pub from: Option<Timestamp>,
    /// Before this time.
    pub until: Option<Timestamp>,
    /// How many.
    pub limit: usize,
    /// Newest first.
    pub newest_first: bool,
}

/// Why somebody should look after a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Concern {
    /// It was there before this and no recall ever returned it; oldest first.
    Unused(Timestamp),
    /// It was there before this and no recall returned it since; longest unseen first.
    Stale(Timestamp),
    /// It ends after the first and before the second time; soonest first.
    Ending(Timestamp, Timestamp),
    /// It has more versions than this; most first.
    Changing(u32),
}

/// What was said on one platform in one month.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// The platform.
    pub platform: String,
    /// The month in which the conversations began, as `2027-01`.
    pub month: String,
    /// How many conversations.
    pub conversations: u64,
    /// How many messages they have.
    pub messages: u64,
}

/// What a vault holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Census {
    /// Live memories.
    pub memories: u64,
    /// Versions in all.
    pub versions: u64,
    /// Conversations.
    pub conversations: u64,
    /// Messages.
    pub messages: u64,
    /// Attachments.
    pub blobs: u64,
    /// Operations that wait.
    pub pending: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// Rows without a transformer vector.
    pub unembedded: u64,
}

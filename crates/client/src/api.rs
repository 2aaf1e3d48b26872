//! Every operation of the native API: its name, what it takes, what it answers.
//!
//! An operation is `POST /api/v1/<name>` with the input as JSON; the output comes back as
//! JSON. `watch` is the exception: it answers with a stream of server-sent events.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use yore_domain::BlobHash;
use yore_domain::audit::{Entry, Report};
use yore_domain::conversation::{Conversation as Talk, Message};
use yore_domain::grant::{Grant, Token};
use yore_domain::hold::{Hold, Rule};
use yore_domain::job::Job;
use yore_domain::memory::{Memory, Version};
use yore_domain::query::{self, Page};
use yore_domain::stream::Letter;

use crate::input::{self, Nothing};
use crate::openapi::Book;

pub use yore_domain::change::What;
pub use yore_engine::{
    AuditQuery, CONVERSATIONS, Caller, Case, Census as Counts, Changes, Consolidated,
    Consolidation, Context as Frame, Conversed, Decided, Decision, DryRun, Event, Expired,
    Extension, Fate, Found as Match, GrantRequest, Hands, Health, Hit, Imported, Issued, Item,
    Mutated, Peer, Proposal, Proposed, Recalled, Reference, Reviewed, Scored, Sealed, TokenKind,
    Traces as Found, Undo as UndoRequest, Undone, Vitals as Signs, Which, Wish, fingerprint,
};

/// Where every operation lies.
pub const PREFIX: &str = "/api/v1/";
/// The header with the client's id for an operation: a retry returns the first result.
pub const OPERATION_ID: &str = "yore-operation-id";
/// The header that names the owner or id of the vault, for credentials that cover several.
pub const VAULT: &str = "yore-vault";
/// The header with the request's id, for logs and the audit chain.
pub const REQUEST_ID: &str = "x-request-id";

/// An operation of the native API.
pub trait Endpoint: Send + Sync + 'static {
    /// Its name in the path.
    const NAME: &'static str;
    /// How large its input may be, and how long it may take.
    const WEIGHT: Weight;
    /// What it takes.
    type Input: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
    /// What it answers.
    type Output: Serialize + DeserializeOwned + JsonSchema + Send + 'static;
}

/// How much an operation may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// A small input and a prompt answer.
    Light,
    /// A large input or an answer that takes its time.
    Heavy,
}

macro_rules! endpoints {
    ($(#[doc = $doc:literal] $name:ident = $path:literal, $weight:ident, $input:ty => $output:ty;)*) => {
        $(
            #[doc = $doc]
            #[derive(Clone, Copy, Debug)]
            pub struct $name;

            impl Endpoint for $name {
                const NAME: &'static str = $path;
                const WEIGHT: Weight = Weight::$weight;
                type Input = $input;
                type Output = $output;
            }
        )*

        /// The names of all operations that answer with JSON.
        pub const NAMES: &[&str] = &[$($path),*];

        /// Describes all of them.
        pub(crate) fn describe(book: &mut Book) {
            $(book.operation::<$input, $output>($path, $doc);)*
        }
    };
}

endpoints! {
    /// Stores something new.
    Remember = "remember", Light, input::Remember => Mutated;
    /// Appends a changed version.
    Revise = "revise", Light, input::Revise => Mutated;
    /// Appends a version with other labels, scope or consent.
    Relabel = "relabel", Light, input::Relabel => Mutated;
    /// Forgets memories.
    Forget = "forget", Light, input::Forget => Mutated;
    /// Makes several memories one.
    Merge = "merge", Light, input::Merge => Mutated;
    /// Puts back an earlier version as the new head.
    RestoreVersion = "restore-version", Light, input::RestoreVersion => Mutated;
    /// Finds what is relevant to a question.
    Recall = "recall", Light, query::Recall => Recalled;
    /// Finds what is relevant and frames it as text for a model.
    Context = "context", Light, input::Context => Frame;
    /// Returns one memory.
    Get = "get", Light, input::Get => Memory;
    /// Returns one memory as it stood at a time.
    GetAsOf = "get-as-of", Light, input::GetAsOf => Version;
    /// Returns all versions of a memory, oldest first.
    History = "history", Light, input::OneMemory => Vec<Version>;
    /// Lists memories.
    List = "list", Light, input::List => Page<Memory>;
    /// Counts memories.
    Count = "count", Light, input::Count => u64;
    /// Tells how a memory fared.
    Feedback = "feedback", Light, input::Feedback => ();
    /// Lets memories expire by a policy.
    Expire = "expire", Heavy, input::Expire => Expired;
    /// Looks through short-term memory: promotes what is of use, lets go what never was.
    Consolidate = "consolidate", Heavy, input::Consolidate => Consolidated;
    /// Takes back what an agent did.
    Undo = "undo", Heavy, UndoRequest => Undone;
    /// Appends messages to a conversation.
    Converse = "converse", Heavy, input::Converse => Conversed;
    /// Returns a conversation and how many messages it has.
    Conversation = "conversation", Light, input::OneConversation => (Talk, u64);
    /// Lists conversations, each with how many messages it has.
    Conversations = "conversations", Light, input::List => Page<(Talk, u64)>;
    /// Returns messages of a conversation.
    Messages = "messages", Light, input::Messages => Vec<Message>;
    /// Erases a conversation; answers how many messages went.
    EraseConversation = "conversation.erase", Light, input::OneConversation => u64;
    /// Erases one message.
    EraseMessage = "message.erase", Light, input::OneMessage => ();
    /// Erases what is left when memories and conversations are gone; answers how much it was.
    EraseRest = "erase-rest", Light, Nothing => usize;
    /// Takes in a batch of items.
    Import = "import", Heavy, input::Import => Imported;
    /// Says of conversations, by their fingerprints, whether exactly they came in before.
    KnownImports = "import.known", Light, input::KnownImports => Vec<bool>;
    /// Puts before a person what might be worth remembering, each once.
    Propose = "propose", Heavy, input::Propose => Proposed;
    /// Tells who the caller is and whose vault it reached.
    Whoami = "whoami", Light, Nothing => Caller;
    /// Gives out a page of items.
    Export = "export", Heavy, input::Export => Page<Item>;
    /// Gives an agent a grant, and the token that stands for it.
    IssueGrant = "grant.issue", Light, GrantRequest => Issued;
    /// Gives an agent a grant as a capability token that the vault signs.
    IssueCapability = "grant.capability", Light, input::IssueCapability => Issued;
    /// Lists grants.
    Grants = "grant.list", Light, Nothing => Vec<Grant>;
    /// Returns a grant.
    ShowGrant = "grant.show", Light, input::OneGrant => Grant;
    /// Makes a grant hold longer.
    ExtendGrant = "grant.extend", Light, input::ExtendGrant => Grant;
    /// Gives the agent of a grant more for a while, and a token for it.
    WidenGrant = "grant.widen", Light, input::WidenGrant => Issued;
    /// Writes a grant as a token signed by the vault, to be shown elsewhere.
    SignGrant = "grant.sign", Light, input::OneGrant => String;
    /// Lets whoever holds the key of a client certificate act under a grant.
    BindCertificate = "grant.certificate", Light, input::BindCertificate => ();
    /// Takes a grant back.
    RevokeGrant = "grant.revoke", Light, input::OneGrant => ();
    /// Makes a token.
    IssueToken = "token.issue", Light, input::IssueToken => String;
    /// Lists tokens, without their secrets.
    Tokens = "token.list", Light, Nothing => Vec<Token>;
    /// Takes a token back.
    RevokeToken = "token.revoke", Light, input::OneToken => ();
    /// Lists what waits for a decision.
    Holds = "review.list", Light, input::Holds => Vec<Hold>;
    /// Returns one operation that waits.
    ShowHold = "review.show", Light, input::OneHold => Case;
    /// Decides an operation that waits.
    Decide = "review.decide", Light, input::Decide => Reviewed;
    /// Decides everything that waits and fits a description.
    DecideAll = "review.decide-all", Heavy, input::DecideAll => Vec<Decided>;
    /// Lists the owner's rules.
    Rules = "rule.list", Light, Nothing => Vec<Rule>;
    /// Writes a rule.
    PutRule = "rule.put", Light, input::PutRule => ();
    /// Removes a rule.
    RemoveRule = "rule.remove", Light, input::RemoveRule => ();
    /// Switches a rule off, or on again.
    SwitchRule = "rule.switch", Light, input::SwitchRule => ();
    /// Says after how many equal decisions a rule is learned, if one is.
    Learning = "rule.learning", Light, Nothing => Option<u32>;
    /// Lets rules be learned from decisions, or no longer.
    Learn = "rule.learn", Light, input::Learn => ();
    /// Lists audit entries.
    Audit = "audit.query", Light, AuditQuery => Vec<Entry>;
    /// Verifies the audit chain.
    VerifyAudit = "audit.verify", Heavy, Nothing => Report;
    /// Signs where the audit chain stands.
    SealAudit = "audit.seal", Light, Nothing => Sealed;
    /// Counts what the vault holds.
    Census = "census", Light, Nothing => Counts;
    /// Tells how memories are: stale, nearly the same, of which kinds.
    Vitals = "vitals", Heavy, input::Vitals => Signs;
    /// Checks the vault's files, audit chain and indexes.
    Check = "check", Heavy, input::Check => Health;
    /// Gives the vault a new key; answers what was done.
    Rotate = "rotate", Heavy, Nothing => String;
    /// Copies the vault into an encrypted file; answers its bytes.
    Backup = "backup", Heavy, input::Backup => u64;
    /// Puts a copy back in place of the vault.
    Restore = "restore", Heavy, input::Restore => ();
    /// Looks for a text in every decrypted page, journal and snapshot.
    Traces = "traces", Heavy, input::Traces => Found;
    /// Registers an agent by the DID it signs with.
    RegisterAgent = "agent.register", Light, input::RegisterAgent => Peer;
    /// Lists registered agents.
    Agents = "agent.list", Light, Nothing => Vec<Peer>;
    /// Strikes an agent off the register.
    RemoveAgent = "agent.remove", Light, input::OneAgent => ();
    /// Writes to a registered agent; answers the message's id.
    WriteToAgent = "agent.send", Light, input::WriteToAgent => String;
    /// Lists the letters that wait for an agent.
    Inbox = "agent.inbox", Light, input::Inbox => Vec<Letter>;
    /// Lists jobs.
    Jobs = "job.list", Light, input::Jobs => Vec<Job>;
    /// Returns a job.
    ShowJob = "job.show", Light, input::OneJob => Job;
    /// Ends a job.
    CancelJob = "job.cancel", Light, input::OneJob => ();
    /// Lets anybody read what is public, or no longer.
    PublicReads = "public-reads", Light, input::PublicReads => ();
    /// Returns how far the vault and another host are in step.
    SyncState = "sync.state", Light, input::SyncPeer => Option<Value>;
    /// Keeps how far the vault and another host are in step.
    KeepSyncState = "sync.keep", Heavy, input::KeepSyncState => ();
    /// Sets or lifts a legal hold.
    LegalHold = "legal-hold", Light, input::LegalHold => ();
}

/// The path of attachments: bytes go in by `POST`, and come out by `GET` with their hash behind.
pub const ATTACH: &str = "attachment";

/// An attachment that was taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attached {
    /// The hash of its bytes, by which messages name it.
    pub blob: BlobHash,
    /// Its size in bytes.
    pub size: u64,
}

/// The path of the stream of changes.
pub const WATCH: &str = "watch";

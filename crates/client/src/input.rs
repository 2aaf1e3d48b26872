//! What the operations take. Unknown members are refused, so that a misspelt one is noticed.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use yore_domain::conversation::{Conversation as Head, Message};
use yore_domain::hold::{HoldState, Rule};
use yore_domain::memory::{Draft, FeedbackOutcome};
use yore_domain::mutation::{
    Depth, ExpiryAction, ExpiryPolicy, MergeStrategy, Patch, Relabel as Change,
};
use yore_domain::query::{Filter, PageRequest, Recall};
use yore_domain::{
    AgentId, ConversationId, GrantId, HoldId, JobId, MemoryId, MessageId, Span, Timestamp, TokenId,
};
use yore_engine::{
    Consolidation, Decision, DryRun, Extension, GrantRequest, Hands, Item, Proposal, Reference,
    TokenKind, Which, Wish,
};

macro_rules! inputs {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name { $($(#[$field_doc])* pub $field: $kind,)* }
    )*};
}

inputs! {
    /// Something new.
    Remember {
        /// What.
        draft: Draft,
        /// The id to use, when the caller may choose one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<MemoryId>,
        /// What else is wished.
        #[serde(default)]
        wish: Wish,
    }
    /// A changed version.
    Revise {
        /// Which memory.
        memory: MemoryId,
        /// What changes.
        patch: Patch,
        /// The head the caller saw, when it must not have moved.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expected: Option<u32>,
        /// What else is wished.
        #[serde(default)]
        wish: Wish,
    }
    /// Other labels, scope or consent.
    Relabel {
        /// Which memory.
        memory: MemoryId,
        /// What changes.
        change: Change,
        /// What else is wished.
        #[serde(default)]
        wish: Wish,
    }
    /// Memories to forget.
    Forget {
        /// Which.
        memories: Vec<MemoryId>,
        /// How deep.
        depth: Depth,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// What else is wished.
        #[serde(default)]
        wish: Wish,
    }
    /// Memories that become one.
    Merge {
        /// The one that stays, unless the strategy says otherwise.
        canonical: MemoryId,
        /// The others.
        duplicates: Vec<MemoryId>,
        /// How.
        #[serde(default)]
        strategy: MergeStrategy,
        /// What else is wished.
        #[serde(default)]
        wish: Wish,
    }
    /// An earlier version to put back.
    RestoreVersion {
        /// Which memory.
        memory: MemoryId,
        /// The version's number.
        number: u32,
        /// What else is wished.
        #[serde(default)]
        wish: Wish,
    }
    /// A recall whose results become a frame of text.
    Context {
        /// The recall.
        recall: Recall,
        /// The most tokens the frame may take.
        budget_tokens: usize,
    }
    /// One memory.
    Get {
        /// Which.
        reference: Reference,
    }
    /// One memory as it stood.
    GetAsOf {
        /// Which.
        memory: MemoryId,
        /// When.
        at: Timestamp,
    }
    /// A memory.
    OneMemory {
        /// Which.
        memory: MemoryId,
    }
    /// A page of a list.
    List {
        /// What the rows must be like.
        #[serde(default)]
        filter: Filter,
        /// Which page.
        #[serde(default)]
        page: PageRequest,
    }
    /// Something to count.
    Count {
        /// What the rows must be like.
        #[serde(default)]
        filter: Filter,
    }
    /// How a memory fared.
    Feedback {
        /// Which.
        memory: MemoryId,
        /// How.
        outcome: FeedbackOutcome,
    }
    /// Memories to let expire.
    Expire {
        /// Which.
        policy: ExpiryPolicy,
        /// What happens to them.
        #[serde(default)]
        action: ExpiryAction,
        /// Whether to only say what would happen.
        #[serde(default)]
        dry_run: DryRun,
    }
    /// Short-term memory to look through.
    Consolidate {
        /// Whose, and how.
        #[serde(default)]
        pass: Consolidation,
        /// Whether to only say what would happen.
        #[serde(default)]
        dry_run: DryRun,
    }
    /// Whose memories to tell about.
    Vitals {
        /// Only this agent's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// Only this person's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user: Option<String>,
    }
    /// Messages to append to a conversation.
    Converse {
        /// The conversation, made when it is new.
        conversation: Head,
        /// The messages, in order.
        messages: Vec<Message>,
    }
    /// A conversation.
    OneConversation {
        /// Which.
        conversation: ConversationId,
    }
    /// A stretch of a conversation.
    Messages {
        /// Which conversation.
        conversation: ConversationId,
        /// The position to begin at.
        #[serde(default)]
        from: u64,
        /// How many.
        limit: usize,
    }
    /// A message.
    OneMessage {
        /// Its conversation.
        conversation: ConversationId,
        /// Which.
        message: MessageId,
    }
    /// Things to take in.
    Import {
        /// At most 500.
        items: Vec<Item>,
        /// Whether to say only what would become of them.
        #[serde(default)]
        dry_run: DryRun,
    }
    /// Conversations that may have come in before.
    KnownImports {
        /// Their fingerprints, at most 500.
        fingerprints: Vec<String>,
    }
    /// A page of what is taken out.
    Export {
        /// What the rows must be like.
        #[serde(default)]
        filter: Filter,
        /// Which page.
        #[serde(default)]
        page: PageRequest,
        /// Whose hands the file is for.
        #[serde(default)]
        hands: Hands,
    }
    /// Things that might be worth remembering.
    Propose {
        /// At most 500.
        proposals: Vec<Proposal>,
        /// Whether to say only what would become of them.
        #[serde(default)]
        dry_run: DryRun,
    }
    /// A grant as a capability token.
    IssueCapability {
        /// What it allows.
        request: GrantRequest,
        /// The servers it is meant for; none means any that trusts the vault.
        #[serde(default)]
        audience: Vec<String>,
    }
    /// Whether anybody may read what is public.
    PublicReads {
        /// Whether.
        open: bool,
    }
    /// A grant.
    OneGrant {
        /// Which.
        grant: GrantId,
    }
    /// A client certificate that shall stand for a grant.
    BindCertificate {
        /// Which grant.
        grant: GrantId,
        /// The SHA-256 of the certificate, as 64 hexadecimal digits.
        certificate: String,
    }
    /// A grant that shall hold longer.
    ExtendGrant {
        /// Which.
        grant: GrantId,
        /// How much longer.
        by: Span,
    }
    /// A grant that shall allow more for a while.
    WidenGrant {
        /// Which.
        grant: GrantId,
        /// What else it allows.
        extension: Extension,
    }
    /// A token to make.
    IssueToken {
        /// Whom it stands for.
        kind: TokenKind,
        /// How long it holds; absent means until it is revoked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ttl: Option<Span>,
        /// A note for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    }
    /// A token.
    OneToken {
        /// Which.
        token: TokenId,
    }
    /// What waits.
    Holds {
        /// In which state.
        #[serde(default)]
        state: HoldState,
        /// How many.
        limit: usize,
    }
    /// An operation that waits.
    OneHold {
        /// Which.
        hold: HoldId,
    }
    /// A decision.
    Decide {
        /// Which hold.
        hold: HoldId,
        /// What.
        decision: Decision,
        /// A note for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    }
    /// A decision on many holds.
    DecideAll {
        /// Which of those that wait.
        which: Which,
        /// What; many cannot be edited at once.
        decision: Decision,
        /// A note for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    }
    /// A rule to write.
    PutRule {
        /// The rule.
        rule: Rule,
    }
    /// A rule by its name.
    RemoveRule {
        /// Its name.
        name: String,
    }
    /// A rule to switch.
    SwitchRule {
        /// Its name.
        name: String,
        /// Whether it is off from now on.
        off: bool,
    }
    /// Whether rules are learned.
    Learn {
        /// After how many equal decisions; absent means never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<u32>,
    }
    /// A check of the vault.
    Check {
        /// Whether what can be mended is mended.
        #[serde(default)]
        repair: bool,
    }
    /// A copy of the vault to write.
    Backup {
        /// Where to: any path over the local socket, a plain file name elsewhere.
        to: PathBuf,
    }
    /// A copy of the vault to put back.
    Restore {
        /// Where from: any path over the local socket, a plain file name elsewhere.
        from: PathBuf,
    }
    /// A text to look for in every file of the vault.
    Traces {
        /// The text.
        text: String,
    }
    /// An agent to register.
    RegisterAgent {
        /// The DID it signs with.
        did: String,
        /// The name its grants state; absent for what speaks as the owner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentId>,
        /// Whether what is said with it is kept as a conversation.
        recorded: bool,
    }
    /// A registered agent.
    OneAgent {
        /// Its DID.
        did: String,
    }
    /// A message to a registered agent.
    WriteToAgent {
        /// Its DID.
        did: String,
        /// What to say.
        text: String,
    }
    /// Letters that wait.
    Inbox {
        /// For whom.
        did: String,
        /// How many.
        limit: usize,
    }
    /// Jobs.
    Jobs {
        /// How many.
        limit: usize,
    }
    /// A job.
    OneJob {
        /// Which.
        job: JobId,
    }
    /// Another host that the vault is kept in step with.
    SyncPeer {
        /// What it is called here.
        peer: String,
    }
    /// How far the vault and another host are in step.
    KeepSyncState {
        /// What it is called here.
        peer: String,
        /// Whatever a sync needs to go on; absent forgets it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<Value>,
    }
    /// A legal hold to set or lift.
    LegalHold {
        /// Which memory.
        memory: MemoryId,
        /// Whether it is protected from now on.
        held: bool,
    }
    /// Changes to follow.
    Watch {
        /// The cursor of the last event seen; absent means from now on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<String>,
    }
}

/// No input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

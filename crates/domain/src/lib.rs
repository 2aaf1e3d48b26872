//! The model under every protocol: what a vault holds, and what is always true of it.
//!
//! Nothing here does I/O, reads a clock or knows a protocol by name. Values are checked
//! where they are made; the rest of the program may rely on them. Start reading at
//! [`memory`] (a memory is a chain of versions), then [`grant`] and [`class`] (who may
//! see what), then [`mutation`] (everything that can change a vault).

pub mod audit;
pub mod change;
pub mod class;
pub mod consent;
pub mod conversation;
pub mod error;
pub mod grant;
pub mod hold;
pub mod id;
pub mod job;
pub mod kind;
pub mod learned;
pub mod limits;
pub mod memory;
pub mod mutation;
pub mod procedure;
pub mod profile;
pub mod provenance;
pub mod query;
pub mod regulated;
pub mod scope;
pub mod sensitive;
pub mod stream;
pub mod time;
pub mod webhook;

pub use error::{Error, Result};
pub use id::{
    AgentId, BlobHash, BlobHasher, ConversationId, GrantId, HoldId, JobId, KeyId, MemoryId,
    MessageId, Seq, TenantId, TokenId, VaultId, VersionId, WebhookId,
};
pub use time::{Span, Timestamp};

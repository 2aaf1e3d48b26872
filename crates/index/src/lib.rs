//! The derived in-memory index of one corpus of one vault: postings, vectors, sessions.
//!
//! Documents are partitioned by visibility class. A search names the classes it may see and touches
//! only those partitions: every statistic (document frequencies, average lengths, languages) is summed
//! over the selected partitions, and ties are broken by the document's own id. So a document outside
//! the selection changes no bit of any result, and cost follows what is visible.
//!
//! The crate gathers candidates with raw signals. It does not fuse or order them by relevance (that is
//! `yore-rank`), does not embed text, does not encrypt snapshots, and knows nothing about grants or rows:
//! the caller decides the classes and passes a filter for whatever else narrows the answer.
//!
//! A store that keeps its postings elsewhere analyses texts with [`analysis`] and scores as this crate does.
//!
//! Start at [`Index`], then `search.rs`, which walks lexical → vectors → context → signals.

pub mod analysis;
mod bits;
mod codec;
mod context;
mod dictionary;
mod document;
mod index;
mod lexical;
mod partition;
mod places;
mod postings;
mod search;
mod signs;
mod snapshot;
mod soft;
mod top;
mod vectors;

pub use analysis::{Language, terms};
pub use document::{ClassId, Document, DocumentError, Meta, STATIC_DIMS, TokenTable, Vector};
pub use index::Index;
pub use postings::{frequency_as_scored, length_as_scored};
pub use search::{Candidate, Candidates, NEIGHBOUR_OFFSETS, Origin, Search};
pub use snapshot::SnapshotError;
pub use soft::Soft;

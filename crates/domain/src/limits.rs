//! How large things may be. Checked before anything is stored.

/// Bytes of one memory's text.
pub const TEXT_BYTES: usize = 1 << 20;
/// Bytes of the structured part, printed as JSON.
pub const STRUCTURED_BYTES: usize = 1 << 20;
/// Tags on one memory.
pub const TAGS: usize = 256;
/// Labels on one memory.
pub const LABELS: usize = 64;
/// Bytes of a tag, a label, or a member of a scope.
pub const NAME_BYTES: usize = 256;
/// Relations from one memory.
pub const RELATIONS: usize = 256;
/// Pieces of evidence under one memory.
pub const EVIDENCE: usize = 256;
/// Bytes of everything a protocol keeps under its own name.
pub const FOREIGN_BYTES: usize = 1 << 20;
/// Bytes of one message's content.
pub const MESSAGE_BYTES: usize = 16 << 20;
/// Bytes of a query.
pub const QUERY_BYTES: usize = 64 << 10;
/// Results of one recall.
pub const RESULTS: usize = 1000;
/// Rows of one page of a list.
pub const PAGE: usize = 1000;
/// States of one machine.
pub const STATES: usize = 256;
/// Transitions of one machine.
pub const TRANSITIONS: usize = 4096;

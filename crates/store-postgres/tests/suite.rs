//! The guarantees of every store, told against a PostgreSQL with pgvector.
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that fails")]

#[path = "shared/support.rs"]
mod support;

yore_store::stories!(if it can: support::empty_store);

/// The same, with vectors found through the index instead of one by one; `index.rs` shows that it is
/// really asked.
mod through_the_index {
    yore_store::stories!(if it can: super::support::indexed_store);
}

/// Few vaults: every answer is a handful of statements.
mod visible {
    yore_store::visibility!(super::support::empty_store, 6);
}

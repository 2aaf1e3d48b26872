//! The store for more than one machine: every vault in one PostgreSQL with pgvector.
//!
//! Rows lie in tables that are hash-partitioned by vault, behind row-level security that the
//! role of the server cannot go round: a transaction says whose rows it wants (`pool`) and sees
//! no others. Values are encrypted under each vault's own key before they leave the process, and
//! names are looked up by keyed digests (`vault`); vectors, times and counts are in clear, which
//! docs/threat-model.md spells out. A commit is one transaction that locks the vault's tail
//! (`commit`), so several servers may write to one database. A view is one read-only transaction
//! (`snapshot`). Words are found through postings of keyed numbers and scored by `yore-rank`
//! with the same partitions as the in-memory index has (`search`).
//!
//! This crate judges nothing, reads no clock and embeds no text. It keeps nothing that another
//! server could make wrong: classes never change, and books are read again when their number
//! moved. Start at [`PostgresStore`], then `commit` for the way in, `snapshot` and `search` for
//! the way out.

mod audit;
mod books;
mod commit;
pub mod doctor;
mod error;
mod keeper;
mod listen;
mod migrate;
mod pool;
mod roots;
mod search;
mod shared;
mod snapshot;
mod store;
mod tls;
mod transfer;
mod vault;

pub use error::{Error, Result};
pub use store::{Options, PostgresStore};
pub use transfer::{PostgresSource, PostgresTarget};

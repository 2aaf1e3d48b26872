//! The default store: one encrypted SQLite file per vault, and indexes in memory beside it.
//!
//! The rows are the truth. Everything in `indexes` can be built from them again, and the
//! snapshot of it on disk is encrypted like the rows. One thread writes each vault
//! (`writer`), many read-only connections read it (`vault`), and a plan is carried out in
//! `commit` with its audit entry and what changed in the same transaction. Keys never lie
//! on disk unwrapped (`key`). The catalog is a vault with a few tables more.
//!
//! This crate judges nothing: who may do what was decided where the permit was made. It
//! reads no clock and embeds no text. Start at [`SqliteStore`], then `writer` and `commit`
//! for the way in, `snapshot` and `search` for the way out.

mod audit;
mod books;
mod catalog;
mod commit;
mod error;
mod indexes;
mod keeper;
mod key;
mod migrate;
mod open;
mod outbox;
mod readers;
mod said;
mod sealed;
mod search;
mod select;
mod snapshot;
mod store;
mod transfer;
mod vault;
mod writer;

pub use error::{Error, Result};
pub use key::root::key_kind;
pub use store::{Options, Overwrite, SqliteStore};
pub use transfer::{SqliteSource, SqliteTarget};
pub use yore_store::key::{Cost, KeyKind, MasterKey};

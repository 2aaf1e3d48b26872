//! What a store of vaults must do, whichever engine lies below.
//!
//! A store has two doors. [`Store::snapshot`] reads: everything it returns has passed the
//! permit's lens. [`Store::commit`] writes: a [`Plan`] is row changes, the audit entry, the
//! outbox rows that follow from the changes, and the preconditions under which all of it is
//! still right; it happens as a whole or not at all. A change without its audit entry cannot
//! be expressed. Keys, backups and repair are the [`Keeper`]'s, behind a permit too.
//!
//! What backends must agree on to the letter is here, too: which rows a filter passes (`select`),
//! what erasing leaves (`erasure`), how values are encrypted (`key`).
//!
//! This crate holds no SQL and decides nothing; `suite` states the guarantees that every
//! backend is tested against. Start at [`Store`], then [`plan`], [`snapshot`], [`search`].

pub mod erasure;
pub mod inside;
pub mod keeper;
pub mod key;
pub mod plan;
pub mod search;
pub mod select;
pub mod snapshot;
#[cfg(feature = "suite")]
pub mod suite;
pub mod transfer;

use std::fmt::Debug;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::watch;
use yore_domain::{Error, Result, Seq, Timestamp};
use yore_policy::Permit;

pub use keeper::Keeper;
pub use plan::{CommitError, Durability, Plan, Precondition, Receipt, Write};
pub use search::{Candidate, RowKey, Search, Source, Standing, Vector};
pub use snapshot::Snapshot;

/// A store of vaults. The permit says which vault, and who is asking.
pub trait Store: Debug + Send + Sync {
    /// Opens a consistent view of the permit's vault, through the permit's lens.
    fn snapshot<'a>(&'a self, permit: &'a Permit) -> BoxFuture<'a, Result<Box<dyn Snapshot>>>;

    /// Carries out a plan as a whole, durably before it returns unless the plan says relaxed.
    fn commit<'a>(
        &'a self,
        permit: &'a Permit,
        plan: Plan,
    ) -> BoxFuture<'a, Result<Receipt, CommitError>>;

    /// Watches the number of the last change of the permit's vault.
    fn watch<'a>(&'a self, permit: &'a Permit) -> BoxFuture<'a, Result<watch::Receiver<Seq>>>;

    /// Takes work in the permit's vault for this server alone, until it is given back or so much
    /// time has passed; whoever has it already gets it for longer. Says whether it was to be had.
    /// Where only one process can open the store, it always is.
    fn lease<'a>(
        &'a self,
        _permit: &'a Permit,
        _work: &'a str,
        _time: Duration,
    ) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async { Ok(true) })
    }

    /// Gives work back that was taken.
    fn give_back<'a>(&'a self, _permit: &'a Permit, _work: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { Ok(()) })
    }

    /// Takes one from a bucket that all servers of the store share, and says whether there was
    /// one: it holds so many, and that many flow in each minute. Where only one process can open
    /// the store, its own count is enough, and there always is.
    fn draw<'a>(
        &'a self,
        _permit: &'a Permit,
        _bucket: &'a str,
        _per_minute: u32,
        _now: Timestamp,
    ) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async { Ok(true) })
    }
}

/// What the boxed futures of this crate return.
pub type Answer<'a, T> = BoxFuture<'a, Result<T>>;

impl From<CommitError> for Error {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Stale(what) => Self::conflict(format!("{what} changed meanwhile")),
            CommitError::Failed(error) => error,
        }
    }
}

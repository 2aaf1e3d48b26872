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
pub mod keeper;
pub mod key;
pub mod plan;
pub mod search;
pub mod select;
pub mod snapshot;
#[cfg(feature = "suite")]
pub mod suite;

use std::fmt::Debug;

use futures::future::BoxFuture;
use tokio::sync::watch;
use yore_domain::{Error, Result, Seq};
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

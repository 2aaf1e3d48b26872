//! Moving whole vaults from one store to another.
//!
//! A vault is a stream of [`Row`]s that mean the same to every backend: a [`Source`] reads them out
//! and a [`Target`] takes them in, a batch at a time. What a backend derives for itself (indexes,
//! digests of names, encryption) is in no row. A [`Tally`] of what was read and one of what the
//! target gives back say whether they are the same.
//!
//! Both sides are offline: no server runs on either. A source is never changed. Start at
//! [`transfer`] in `moving`; `row` says what there is.

mod moving;
mod row;
mod tally;

use std::fmt::Debug;

use serde::Serialize;
use tokio::sync::mpsc;
use yore_domain::{Error, Result};
use yore_policy::Permit;

use crate::Answer;
use crate::keeper::VaultInfo;

pub use moving::{Fate, Listener, Moved, Told, compare, survey, transfer};
pub use row::{Counters, EntryRow, Indexed, Kept, MemoryRow, MessageRow, Row, VersionRow};
pub use tally::Tally;

/// How many rows travel together at most, and about how many bytes.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 1 << 20;
/// How many batches wait for whoever takes them.
const WAITING: usize = 2;

/// A vault's line in the catalog, without its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// What the catalog says of it.
    pub info: VaultInfo,
    /// The copy of its last signed audit checkpoint, as stored.
    pub checkpoint: Option<String>,
}

/// Where a vault's audit chain ends: the number and hash of its last entry. Every change has an
/// entry, so vaults that end alike are alike.
pub type Tip = Option<(u64, Vec<u8>)>;

/// Where a target stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing was ever stored in it.
    Empty,
    /// A move into it has begun, from the store of this name.
    Moving(String),
    /// It holds something.
    Used,
}

/// A store that is read, row by row. Every method wants a permit to keep the vault; the catalog's
/// for what concerns no vault.
pub trait Source: Debug + Send + Sync {
    /// The DID that signs for the catalog: the store's name, which goes with what it holds.
    fn name<'a>(&'a self, permit: &'a Permit) -> Answer<'a, String>;
    /// Lists the vaults.
    fn lines<'a>(&'a self, permit: &'a Permit) -> Answer<'a, Vec<Line>>;
    /// Says where the audit chain of the permit's vault ends.
    fn tip<'a>(&'a self, permit: &'a Permit) -> Answer<'a, Tip>;
    /// Counts what the permit's vault holds: memories, versions, conversations, messages,
    /// attachments and audit entries.
    fn counts<'a>(&'a self, permit: &'a Permit) -> Answer<'a, Vec<(&'static str, u64)>>;
    /// Reads everything the permit's vault holds, in the order in which it can be taken in.
    fn rows<'a>(&'a self, permit: &'a Permit) -> Answer<'a, Rows>;
}

/// A store that takes vaults in.
pub trait Target: Source {
    /// Says where it stands.
    fn standing<'a>(&'a self, permit: &'a Permit) -> Answer<'a, Standing>;
    /// Notes that a move has begun from the store of this name. Nothing serves it until the catalog
    /// was taken in, too.
    fn begin<'a>(&'a self, permit: &'a Permit, origin: &'a str) -> Answer<'a, ()>;
    /// Begins to take in the permit's vault. Without a line it is the catalog, which ends the move.
    fn intake<'a>(
        &'a self,
        permit: &'a Permit,
        line: Option<&'a Line>,
    ) -> Answer<'a, Box<dyn Intake + 'a>>;
    /// Throws away a vault that was taken in before.
    fn discard<'a>(&'a self, permit: &'a Permit) -> Answer<'a, ()>;
}

/// A vault that is being taken in. Dropped before it is kept, it leaves nothing that counts.
pub trait Intake: Send {
    /// Takes rows.
    fn put(&mut self, rows: Vec<Row>) -> Answer<'_, ()>;
    /// Reads back what was taken.
    fn rows(&mut self) -> Answer<'_, Rows>;
    /// Makes the vault one of the target's.
    fn keep(self: Box<Self>) -> Answer<'static, ()>;
}

type Batch = Result<Vec<Row>>;

/// Rows as they arrive.
#[derive(Debug)]
pub struct Rows(mpsc::Receiver<Batch>);

impl Rows {
    /// Returns the next rows, and nothing after the last.
    pub async fn next(&mut self) -> Result<Option<Vec<Row>>> {
        self.0.recv().await.transpose()
    }
}

/// Where a reader puts rows; it waits while too many were not taken yet.
#[derive(Debug)]
pub struct Outlet {
    sender: mpsc::Sender<Batch>,
    batch: Vec<Row>,
    bytes: usize,
}

/// Makes both ends of a stream of rows.
#[must_use]
pub fn stream() -> (Outlet, Rows) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (Outlet { sender, batch: Vec::new(), bytes: 0 }, Rows(receiver))
}

impl Outlet {
    fn add(&mut self, row: Row) -> Option<Batch> {
        self.bytes += row.weight();
        self.batch.push(row);
        let full = self.batch.len() >= BATCH || self.bytes >= BATCH_BYTES;
        full.then(|| self.taken())
    }

    fn taken(&mut self) -> Batch {
        self.bytes = 0;
        Ok(std::mem::take(&mut self.batch))
    }

    /// Puts a row.
    pub async fn put(&mut self, row: Row) -> Result<()> {
        match self.add(row) {
            Some(batch) => self.sender.send(batch).await.map_err(|_| gone()),
            None => Ok(()),
        }
    }

    /// The same from a thread that may block.
    pub fn put_blocking(&mut self, row: Row) -> Result<()> {
        match self.add(row) {
            Some(batch) => self.sender.blocking_send(batch).map_err(|_| gone()),
            None => Ok(()),
        }
    }

    /// Sends what is left, or why there is no more.
    pub async fn end(mut self, read: Result<()>) {
        let last = read.and_then(|()| self.taken());
        // Whoever no longer listens wants no end either.
        let _ = self.sender.send(last).await;
    }

    /// The same from a thread that may block.
    pub fn end_blocking(mut self, read: Result<()>) {
        let last = read.and_then(|()| self.taken());
        // Whoever no longer listens wants no end either.
        let _ = self.sender.blocking_send(last);
    }
}

fn gone() -> Error {
    Error::internal("nobody takes the rows any more")
}

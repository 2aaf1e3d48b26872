//! Where time comes from. The engine never reads the machine's clock itself.

use std::fmt::Debug;
use std::sync::atomic::{AtomicI64, Ordering};

use yore_domain::{Span, Timestamp};

/// A source of the current time.
pub trait Clock: Debug + Send + Sync {
    /// Returns the time now.
    fn now(&self) -> Timestamp;

    /// Returns what the machine's clock says, even after it was set back: other processes of
    /// the machine date their proofs by it.
    fn machine(&self) -> Timestamp {
        self.now()
    }
}

/// A clock that stands still until it is moved, for tests and replays.
#[derive(Debug)]
pub struct FixedClock(AtomicI64);

impl FixedClock {
    /// Stands at a time.
    #[must_use]
    pub fn at(time: Timestamp) -> Self {
        Self(AtomicI64::new(time.micros()))
    }

    /// Moves forward.
    pub fn advance(&self, span: Span) {
        self.0.fetch_add(span.micros(), Ordering::SeqCst);
    }

    /// Moves anywhere, backwards too.
    pub fn set(&self, time: Timestamp) {
        self.0.store(time.micros(), Ordering::SeqCst);
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

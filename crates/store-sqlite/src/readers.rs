//! Read-only connections of one vault, kept for the next who asks.

use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;
use yore_domain::Error as DomainError;

use crate::error::Result;
use crate::key::Key;
use crate::open::{self, Role, Tuning};
use crate::outbox;

/// How many idle readers a vault keeps.
const IDLE: usize = 4;
/// How long a change of key waits for those who read.
const PATIENCE: Duration = Duration::from_secs(10);

/// The readers of a vault.
pub(crate) struct Readers {
    db: PathBuf,
    tuning: Tuning,
    state: Mutex<State>,
    signal: Condvar,
}

struct State {
    key: Key,
    idle: Vec<Connection>,
    active: usize,
    paused: bool,
}

impl Readers {
    pub(crate) fn new(db: PathBuf, key: Key, tuning: Tuning) -> Self {
        let state = State { key, idle: Vec::new(), active: 0, paused: false };
        Self { db, tuning, state: Mutex::new(state), signal: Condvar::new() }
    }

    pub(crate) fn key(&self) -> Key {
        self.state.lock().key.clone()
    }

    /// Returns a connection inside an open read transaction.
    pub(crate) fn take(readers: &Arc<Self>) -> Result<Reader> {
        let (pooled, key) = {
            let mut state = readers.state.lock();
            while state.paused {
                readers.signal.wait(&mut state);
            }
            state.active += 1;
            (state.idle.pop(), state.key.clone())
        };
        let mut reader = Reader { conn: None, readers: Arc::clone(readers) };
        reader.conn = Some(match pooled {
            Some(conn) => conn,
            None => open::connect(&readers.db, &key, Role::Reader, readers.tuning)?,
        });
        reader.execute_batch("BEGIN")?;
        // A deferred transaction sees the file as it is at its first read: make that now.
        outbox::last(&reader)?;
        Ok(reader)
    }

    /// Does work while there is no reader; the work returns the key to go on with.
    pub(crate) fn pause(&self, work: impl FnOnce() -> Result<Key>) -> Result<()> {
        let mut state = self.state.lock();
        while state.paused {
            self.signal.wait(&mut state);
        }
        state.paused = true;
        while state.active > 0 {
            if self.signal.wait_for(&mut state, PATIENCE).timed_out() && state.active > 0 {
                state.paused = false;
                self.signal.notify_all();
                return Err(DomainError::Busy {
                    reason: "the vault is being read".into(),
                    retry_after: PATIENCE,
                }
                .into());
            }
        }
        state.idle.clear();
        drop(state);
        let outcome = work();
        let mut state = self.state.lock();
        state.paused = false;
        self.signal.notify_all();
        state.key = outcome?;
        Ok(())
    }
}

/// A read-only connection inside one transaction; it goes back to the others when dropped.
pub(crate) struct Reader {
    conn: Option<Connection>,
    readers: Arc<Readers>,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("db", &self.readers.db).finish()
    }
}

impl Deref for Reader {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.conn.as_ref().expect("invariant: a reader has its connection until it is dropped")
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let conn = self.conn.take().filter(|conn| conn.execute_batch("ROLLBACK").is_ok());
        let mut state = self.readers.state.lock();
        state.active -= 1;
        if let Some(conn) = conn
            && state.idle.len() < IDLE
        {
            state.idle.push(conn);
        }
        self.readers.signal.notify_all();
    }
}

//! The derived indexes of one vault: what makes memories and messages findable.
//!
//! Rows are the truth. The writer applies the effects of a commit before anyone hears that it
//! happened, so a search is never behind a write that was acknowledged. A saved copy spares
//! analysing everything again at the next start; whatever is wrong with it, the rows decide.

mod compare;
mod effect;
mod load;
mod meta;
mod saved;
mod seats;
mod state;

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use rusqlite::Connection;

pub(crate) use effect::Effect;
pub(crate) use meta::{Head, is_head, session_number, statement_number, status_of, tag_bits};
pub(crate) use state::{Partition, State};

/// The setting that names the model whose vectors the indexes hold.
pub(crate) const DENSE_MODEL: &str = "dense_model";

/// The indexes of a vault.
#[derive(Debug)]
pub(crate) struct Indexes {
    state: RwLock<State>,
    /// What was applied while another model's indexes are being built.
    journal: Mutex<Option<Vec<Effect>>>,
    switching: AtomicBool,
}

impl Indexes {
    /// Opens the indexes from a saved copy and the rows after it, or from the rows alone.
    pub(crate) fn open(conn: &Connection, saved: Option<&[u8]>) -> rusqlite::Result<Indexes> {
        let mut state = saved.and_then(saved::state_of);
        if let Some(restored) = &mut state
            && !load::catch_up(conn, restored)?
        {
            state = None;
        }
        let state = match state {
            Some(state) => state,
            None => load::rebuilt(conn, None)?,
        };
        Ok(Self {
            state: RwLock::new(state),
            journal: Mutex::new(None),
            switching: AtomicBool::new(false),
        })
    }

    /// Takes over what a commit did, in order.
    pub(crate) fn apply(&self, effects: Vec<Effect>) {
        let mut state = self.state.write();
        if let Some(journal) = self.journal.lock().as_mut() {
            journal.extend(effects.iter().cloned());
        }
        for effect in effects {
            state.apply(effect);
        }
    }

    /// How many documents the indexes hold.
    pub(crate) fn len(&self) -> usize {
        let state = self.state.read();
        state.versions.len() + state.messages.len()
    }

    /// Writes a copy to keep; it must be encrypted before it lies anywhere.
    pub(crate) fn save(&self, conn: &Connection, out: &mut dyn Write) -> io::Result<()> {
        let mut state = self.state.write();
        state.beside.mark = load::mark(conn, state.beside.seq).map_err(io::Error::other)?;
        saved::write(&RwLockWriteGuard::downgrade(state), out)
    }

    /// Says where the indexes and the rows differ.
    pub(crate) fn differences(&self, conn: &Connection) -> rusqlite::Result<Vec<String>> {
        compare::differences(&self.state.read(), conn)
    }

    /// Builds everything again from the rows. Only the writer calls, so nothing is missed.
    pub(crate) fn rebuild(&self, conn: &Connection) -> rusqlite::Result<()> {
        let fresh = load::rebuilt(conn, None)?;
        *self.state.write() = fresh;
        Ok(())
    }

    /// Returns the model to switch to when the vault asks for another than the indexes hold,
    /// once: whoever is told must call [`Indexes::switch_model`].
    pub(crate) fn model_due(&self, wanted: Option<&str>) -> Option<String> {
        let wanted = wanted?;
        let due = Some(wanted) != self.state.read().model();
        (due && !self.switching.swap(true, Ordering::AcqRel)).then(|| wanted.to_owned())
    }

    /// Fills the indexes with another model's vectors while the old ones answer.
    pub(crate) fn switch_model<C, E>(
        &self,
        open: impl FnOnce() -> Result<C, E>,
        model: &str,
    ) -> Result<(), E>
    where
        C: std::ops::Deref<Target = Connection>,
        E: From<rusqlite::Error>,
    {
        *self.journal.lock() = Some(Vec::new());
        // The view is opened after the journal: what it does not contain, the journal does.
        let built = open().and_then(|conn| Ok(load::rebuilt(&conn, Some(model))?));
        let mut state = self.state.write();
        let journal = self.journal.lock().take().unwrap_or_default();
        self.switching.store(false, Ordering::Release);
        let mut fresh = built?;
        for effect in journal {
            fresh.apply(effect);
        }
        *state = fresh;
        Ok(())
    }

    /// Looks at the state; commits wait as long as this is held.
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read()
    }
}

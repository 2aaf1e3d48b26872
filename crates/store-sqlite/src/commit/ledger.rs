//! What was erased: its names stay, so that nothing brings it back.

use yore_store::plan::Grave;

use super::Commit;
use crate::error::Result;

/// Only ids are kept of names: a name that a person made up would be a word of what is gone.
const IS_ID: &str = "name GLOB '????????-????-????-????-????????????'";

impl Commit<'_> {
    /// Notes that something is gone, under its own id and under those that callers chose for it.
    pub(super) fn bury(&self, grave: Grave) -> Result<()> {
        let (kind, id, name, message) = match grave {
            Grave::Memory(id) => (0, id.bytes(), id.to_string(), Vec::new()),
            Grave::Conversation(id) => (2, id.bytes(), id.to_string(), Vec::new()),
            Grave::Message(id, message) => {
                (2, id.bytes(), id.to_string(), message.bytes().to_vec())
            }
        };
        let at = self.at.micros();
        self.run(
            "INSERT OR IGNORE INTO ledger VALUES ('', ?1, ?2, ?3, ?4)",
            (&name, &message, kind, at),
        )?;
        self.run(
            &format!(
                "INSERT OR IGNORE INTO ledger
                 SELECT namespace, name, ?2, kind, ?4 FROM alias
                 WHERE target = ?1 AND kind = ?3 AND {IS_ID}"
            ),
            (id, &message, kind, at),
        )?;
        Ok(())
    }
}

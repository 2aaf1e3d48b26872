//! What attachments say, once somebody has read them.

use rusqlite::OptionalExtension as _;
use yore_domain::MessageId;
use yore_store::inside::{Inside, words};
use yore_store::plan::Indexing;
use yore_store::{RowKey, Source};

use super::Commit;
use super::memory::Columns;
use crate::error::Result;
use crate::indexes::Effect;
use crate::said;

impl Commit<'_> {
    /// Makes a message findable by what its attachments say. One that is gone meanwhile, or was
    /// read already, stays so.
    pub(super) fn inside(
        &mut self,
        key: RowKey,
        inside: &[Inside],
        indexing: &Indexing,
    ) -> Result<()> {
        let row = key.row;
        let waited = self.run("DELETE FROM unread WHERE message = ?1", [row])? > 0;
        if key.source != Source::Message || !waited || inside.is_empty() {
            return Ok(());
        }
        let found = self
            .conn
            .prepare_cached(
                "SELECT m.conversation, c.class, m.id, m.position, m.at, m.data
                 FROM message m JOIN conversation c ON c.row = m.conversation WHERE m.row = ?1",
            )?
            .query_row([row], |found| {
                let text = said::words(found, 5)?;
                Ok(Effect::Message {
                    row,
                    conversation_row: found.get(0)?,
                    class: found.get(1)?,
                    id: MessageId::from_bytes(found.get(2)?),
                    position: found.get(3)?,
                    at: found.get(4)?,
                    text: words(&text, inside),
                    indexing: indexing.clone(),
                })
            })
            .optional()?;
        let Some(effect) = found else { return Ok(()) };
        self.run(
            "INSERT INTO inside (message, data) VALUES (?1, ?2)",
            (row, serde_json::to_string(inside)?),
        )?;
        let number = self.conn.last_insert_rowid().cast_unsigned();
        let columns = Columns::of(indexing);
        self.run(
            "UPDATE message SET tokens = ?2, model = ?3, scale = ?4, statics = ?5 WHERE row = ?1",
            (row, columns.tokens, columns.model, columns.scale, columns.statics),
        )?;
        // The vector of what was said alone is made anew.
        self.run("DELETE FROM vector WHERE source = 1 AND row = ?1", [row])?;
        self.effects.push(effect);
        self.effects.push(Effect::Read { number });
        Ok(())
    }
}

//! Erasing a memory: no table keeps a word of it.
//!
//! What stays is what proves that it was there and is gone: ids, numbers, times, class and
//! the status. The salts go, so the digests in the audit chain fit any text from now on.

use serde_json::Value;
use yore_domain::hold::{Hold, HoldState};
use yore_domain::job::Job;
use yore_domain::memory::Version;
use yore_domain::mutation::Mutation;
use yore_domain::stream::Letter;
use yore_domain::{Error as DomainError, HoldId, MemoryId};
use yore_store::CommitError;
use yore_store::erasure::{Words, emptied};
use yore_store::plan::{Before, Grave};

use super::{Commit, missing};
use crate::error::Result;
use crate::indexes::Effect;
use crate::select::its_versions;

impl Commit<'_> {
    pub(super) fn erase(&mut self, memory: MemoryId) -> Result<Before, CommitError> {
        let row = self.memory_row(memory)?.ok_or_else(missing)?;
        if row.legal_hold {
            return Err(DomainError::consent("a legal hold protects the memory").into());
        }
        let words = self.erase_versions(row.row)?;
        for sql in [
            "UPDATE memory SET status = 4, statement = NULL, ends = NULL WHERE row = ?1",
            "DELETE FROM relation WHERE memory = ?1",
        ] {
            self.run(sql, [row.row])?;
        }
        self.bury(Grave::Memory(memory))?;
        for sql in [
            "DELETE FROM alias WHERE kind IN (0, 1) AND target = ?1",
            "DELETE FROM procedure WHERE memory = ?1",
        ] {
            self.run(sql, [memory.bytes()])?;
        }
        self.scrub_holds(memory, &words)?;
        self.scrub_jobs(&words)?;
        self.scrub_operations(&words)?;
        self.scrub_post(&words)?;
        self.erased = true;
        self.effects.push(Effect::Erased { memory_row: row.row.cast_unsigned() });
        let class = Some((*self.classes.get(row.class)).clone());
        Ok(Before { class, head: row.head, conversation: None })
    }

    /// Empties every version and returns the words they held.
    fn erase_versions(&self, memory_row: i64) -> Result<Words> {
        let mut words = Words::default();
        let mut statement = self.conn.prepare_cached(concat!(
            "SELECT v.row, v.data FROM memory m JOIN version v
                ON ",
            its_versions!(),
            "
             WHERE m.row = ?1"
        ))?;
        let versions = statement
            .query_map([memory_row], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<Vec<(i64, String)>>>()?;
        for (row, data) in versions {
            let version: Version = serde_json::from_str(&data)?;
            words.add(&version)?;
            let empty = serde_json::to_string(&emptied(version))?;
            self.run(
                "UPDATE version SET data = ?2, status = 4, salt = NULL, tokens = NULL, model = NULL,
                     scale = NULL, statics = NULL
                 WHERE row = ?1",
                (row, empty),
            )?;
            self.run("DELETE FROM vector WHERE source = 0 AND row = ?1", [row])?;
        }
        Ok(words)
    }

    pub(super) fn erase_hold(&mut self, id: HoldId) -> Result<()> {
        let data: Option<String> = self.one("SELECT data FROM hold WHERE id = ?1", [id.bytes()])?;
        let mut hold: Hold = serde_json::from_str(&data.ok_or_else(missing)?)?;
        hold.withdraw(self.at);
        self.hold(&hold)?;
        self.erased = true;
        Ok(())
    }

    fn scrub_holds(&self, memory: MemoryId, words: &Words) -> Result<()> {
        let mut statement = self.conn.prepare_cached("SELECT data FROM hold")?;
        let holds = statement
            .query_map([], |row| row.get(0))?
            .collect::<rusqlite::Result<Vec<String>>>()?;
        for data in holds {
            let mut hold: Hold = serde_json::from_str(&data)?;
            let id = hold.id;
            let concerned = hold.mutation.targets().contains(&memory)
                || hold.outcome == Some(memory)
                || matches!(&hold.mutation, Mutation::Remember { id, .. } if *id == Some(memory));
            if concerned {
                hold.withdraw(self.at);
                self.hold(&hold)?;
            } else if hold.state == HoldState::Pending {
                // Another's proposal that happens to say the same stays theirs; only what it
                // shows of the erased memory goes.
                let before = hold.diff.clone();
                for line in &mut hold.diff {
                    if let Some(value) = &mut line.before {
                        words.scrub(value);
                    }
                }
                if hold.diff != before {
                    self.hold(&hold)?;
                }
            } else {
                let mut value = serde_json::to_value(&hold)?;
                if words.scrub(&mut value) {
                    match serde_json::from_value::<Hold>(value) {
                        Ok(scrubbed) => self.hold(&scrubbed)?,
                        Err(_) => {
                            self.run("DELETE FROM hold WHERE id = ?1", [id.bytes()])?;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

impl Commit<'_> {
    /// A retry must not do the erased thing again, so the id stays and the words go.
    fn scrub_operations(&self, words: &Words) -> Result<()> {
        let mut statement = self.conn.prepare_cached("SELECT caller, id, result FROM operation")?;
        let rows = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<rusqlite::Result<Vec<(String, String, String)>>>()?;
        for (caller, id, result) in rows {
            let mut value: Value = serde_json::from_str(&result)?;
            if words.scrub(&mut value) {
                self.run(
                    "UPDATE operation SET result = ?3 WHERE caller = ?1 AND id = ?2",
                    (caller, id, value.to_string()),
                )?;
            }
        }
        Ok(())
    }

    fn scrub_jobs(&self, words: &Words) -> Result<()> {
        let mut statement = self.conn.prepare_cached("SELECT data FROM job")?;
        let rows = statement
            .query_map([], |row| row.get(0))?
            .collect::<rusqlite::Result<Vec<String>>>()?;
        for data in rows {
            let mut job: Job = serde_json::from_str(&data)?;
            let mut scrubbed = words.scrub(&mut job.input);
            scrubbed |= words.scrub(&mut job.checkpoint);
            scrubbed |= words.scrub(&mut job.report);
            if scrubbed {
                self.job(&job)?;
            }
        }
        Ok(())
    }

    /// Frames and letters that carry the words keep their place and lose their content.
    fn scrub_post(&self, words: &Words) -> Result<()> {
        let mut statement = self.conn.prepare_cached("SELECT rowid, bytes FROM frame")?;
        let mut rows = statement.query([])?;
        let mut telling = Vec::new();
        while let Some(row) = rows.next()? {
            if words.within(row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?) {
                telling.push(row.get::<_, i64>(0)?);
            }
        }
        for row in telling {
            self.run("UPDATE frame SET bytes = x'' WHERE rowid = ?1", [row])?;
        }
        let mut statement = self.conn.prepare_cached("SELECT data FROM letter")?;
        let letters = statement
            .query_map([], |row| row.get(0))?
            .collect::<rusqlite::Result<Vec<String>>>()?;
        for data in letters {
            let mut letter: Letter = serde_json::from_str(&data)?;
            if words.within(&letter.bytes) {
                letter.bytes.clear();
                self.letter(&letter)?;
            }
        }
        Ok(())
    }
}

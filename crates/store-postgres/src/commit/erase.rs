//! Erasing a memory: no table keeps a word of it.
//!
//! What stays is what proves that it was there and is gone: ids, numbers, times, class and
//! the status. The salts go, so the digests in the audit chain fit any text from now on.

use yore_domain::hold::{Hold, HoldState};
use yore_domain::job::Job;
use yore_domain::memory::Version;
use yore_domain::mutation::Mutation;
use yore_domain::stream::Letter;
use yore_domain::{Error as DomainError, HoldId, MemoryId};
use yore_store::erasure::{Words, emptied};
use yore_store::plan::{Before, Grave};
use yore_store::{CommitError, Source};

use super::{Answered, Commit, missing};
use crate::error::Result;
use crate::vault::{numbered, within};

impl Commit<'_> {
    pub(super) async fn erase(&mut self, memory: MemoryId) -> Result<Before, CommitError> {
        let row = self.memory_row(memory).await?.ok_or_else(missing)?;
        if row.legal_hold {
            return Err(DomainError::consent("a legal hold protects the memory").into());
        }
        let words = self.erase_versions(row.row).await?;
        for sql in [
            "UPDATE memory SET status = 4, statement = NULL, said = NULL, ends = NULL, session = 0
             WHERE vault = $1 AND row = $2",
            "DELETE FROM relation WHERE vault = $1 AND memory = $2",
        ] {
            self.run(sql, &[&row.row]).await?;
        }
        self.bury(Grave::Memory(memory)).await?;
        for sql in [
            "DELETE FROM alias WHERE vault = $1 AND kind IN (0, 1) AND target = $2",
            "DELETE FROM procedure WHERE vault = $1 AND memory = $2",
        ] {
            self.run(sql, &[&memory.bytes().as_slice()]).await?;
        }
        self.scrub_holds(memory, &words).await?;
        self.scrub_jobs(&words).await?;
        self.scrub_operations(&words).await?;
        self.scrub_post(&words).await?;
        let class = Some(self.class(row.class)?);
        Ok(Before { class, head: row.head.cast_unsigned(), conversation: None })
    }

    /// Empties every version and returns the words they held.
    async fn erase_versions(&self, memory_row: i64) -> Result<Words> {
        let mut words = Words::default();
        let sql = "SELECT row, data FROM version WHERE vault = $1 AND memory = $2";
        let mut rows = Vec::new();
        for found in self.conn.rows(sql, &[&memory_row]).await? {
            let row: i64 = found.get(0);
            let version: Version = self.open("version", &numbered(row), found.get(1))?;
            words.add(&version)?;
            let empty = self.seal("version", &numbered(row), &emptied(version))?;
            self.run(
                "UPDATE version SET data = $3, status = 4, salt = NULL
                 WHERE vault = $1 AND row = $2",
                &[&row, &empty],
            )
            .await?;
            rows.push(row);
        }
        self.unfind(Source::Version, &rows).await?;
        Ok(words)
    }

    pub(super) async fn erase_hold(&self, id: HoldId) -> Result<()> {
        let sql = "SELECT data FROM hold WHERE vault = $1 AND id = $2";
        let row = self.conn.row(sql, &[&id.bytes().as_slice()]).await?.ok_or_else(missing)?;
        let mut hold: Hold = self.open("hold", &id.bytes(), row.get(0))?;
        hold.withdraw(self.at);
        self.hold(&hold).await
    }

    async fn scrub_holds(&self, memory: MemoryId, words: &Words) -> Result<()> {
        for row in self.conn.rows("SELECT id, data FROM hold WHERE vault = $1", &[]).await? {
            let id: &[u8] = row.get(0);
            let mut hold: Hold = self.open("hold", id, row.get(1))?;
            let concerned = hold.mutation.targets().contains(&memory)
                || hold.outcome == Some(memory)
                || matches!(&hold.mutation, Mutation::Remember { id, .. } if *id == Some(memory));
            if concerned {
                hold.withdraw(self.at);
                self.hold(&hold).await?;
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
                    self.hold(&hold).await?;
                }
            } else {
                let mut value = serde_json::to_value(&hold)?;
                if words.scrub(&mut value) {
                    match serde_json::from_value::<Hold>(value) {
                        Ok(scrubbed) => self.hold(&scrubbed).await?,
                        Err(_) => {
                            let sql = "DELETE FROM hold WHERE vault = $1 AND id = $2";
                            self.run(sql, &[&id]).await?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// A retry must not do the erased thing again, so the id stays and the words go.
    async fn scrub_operations(&self, words: &Words) -> Result<()> {
        let sql = "SELECT mac, data FROM operation WHERE vault = $1";
        for row in self.conn.rows(sql, &[]).await? {
            let mac: &[u8] = row.get(0);
            let mut answered: Answered = self.open("operation", mac, row.get(1))?;
            if words.scrub(&mut answered.result) {
                let data = self.seal("operation", mac, &answered)?;
                let sql = "UPDATE operation SET data = $3 WHERE vault = $1 AND mac = $2";
                self.run(sql, &[&mac, &data]).await?;
            }
        }
        Ok(())
    }

    async fn scrub_jobs(&self, words: &Words) -> Result<()> {
        for row in self.conn.rows("SELECT id, data FROM job WHERE vault = $1", &[]).await? {
            let mut job: Job = self.open("job", row.get(0), row.get(1))?;
            let mut scrubbed = words.scrub(&mut job.input);
            scrubbed |= words.scrub(&mut job.checkpoint);
            scrubbed |= words.scrub(&mut job.report);
            if scrubbed {
                self.job(&job).await?;
            }
        }
        Ok(())
    }

    /// Frames and letters that carry the words keep their place and lose their content.
    async fn scrub_post(&mut self, words: &Words) -> Result<()> {
        let sql = "SELECT stream, number, data FROM frame WHERE vault = $1";
        for row in self.conn.rows(sql, &[]).await? {
            let (stream, number): (&[u8], i64) = (row.get(0), row.get(1));
            let place = within(stream, number);
            let bytes = self.vault.open_bytes("frame", &place, row.get(2))?;
            if words.within(&bytes) {
                let empty = self.vault.seal_bytes("frame", &place, &[]);
                self.run(
                    "UPDATE frame SET data = $4 WHERE vault = $1 AND stream = $2 AND number = $3",
                    &[&stream, &number, &empty],
                )
                .await?;
            }
        }
        let sql = "SELECT mac, data FROM letter WHERE vault = $1";
        for row in self.conn.rows(sql, &[]).await? {
            let mut letter: Letter = self.open("letter", row.get(0), row.get(1))?;
            if words.within(&letter.bytes) {
                letter.bytes.clear();
                self.letter(&letter).await?;
            }
        }
        Ok(())
    }
}

//! Rows into a new file, which takes its place when it was compared.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::Connection;
use yore_store::Answer;
use yore_store::transfer::{Counters, Intake, Line, Row, Rows};

use super::walked;
use crate::catalog;
use crate::commit::{GRANT_EPOCH, RULE_EPOCH};
use crate::error::{Error, Result};
use crate::key::{Key, root};
use crate::migrate::{self, Schema};
use crate::open::{self, Files, Role, with_suffix};
use crate::store::{Inner, blocking};

mod insert;

/// What a file is to become.
#[derive(Debug)]
pub(super) enum Place {
    /// A vault, under a key of its own.
    Vault { line: Line, key: Key },
    /// The catalog; the mark of the move goes with it.
    Catalog { mark: PathBuf },
}

/// A vault that is being taken in.
pub(super) struct SqliteIntake {
    inner: Arc<Inner>,
    place: Place,
    files: Files,
    /// Where the rows go until the vault counts.
    path: PathBuf,
    key: Key,
    statics: Arc<str>,
    /// Absent while a thread works with it.
    conn: Option<Connection>,
    counters: Counters,
}

/// Everything SQLite may put beside a file.
const BESIDE: [&str; 4] = ["", "-wal", "-shm", "-journal"];

impl SqliteIntake {
    pub(super) fn begin(inner: Arc<Inner>, place: Place, statics: String) -> Result<Self> {
        let (files, key, schema) = match &place {
            Place::Vault { line, key } => (inner.files(line.info.id), key.clone(), Schema::Vault),
            Place::Catalog { .. } => {
                let files = Files::new(inner.options.data.join("catalog.db"));
                (files, root::catalog(inner.roots.lock().newest()), Schema::Catalog)
            }
        };
        let path = with_suffix(&files.db, ".moving");
        for leftover in BESIDE {
            open::remove(&with_suffix(&path, leftover))?;
        }
        let mut conn = open::connect(&path, &key, Role::Writer, inner.tuning())?;
        migrate::migrate(&mut conn, schema, &path)?;
        // Nothing of it counts before it is whole, so a crash need not be survived.
        journal(&conn, "OFF")?;
        conn.pragma_update(None, "synchronous", "OFF")?;
        let (statics, counters) = (statics.into(), Counters::default());
        Ok(Self { inner, place, files, path, key, statics, conn: Some(conn), counters })
    }

    /// Does work with the connection in a thread that may block.
    async fn work<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let conn = self.conn.take().ok_or(Error::Stopped)?;
        let (conn, done) = blocking(move || {
            let done = work(&conn);
            Ok((conn, done))
        })
        .await?;
        self.conn = Some(conn);
        done
    }

    /// Makes the file whole on the disk and closes it.
    fn put_down(&mut self) -> Result<()> {
        let conn = self.conn.take().ok_or(Error::Stopped)?;
        if let Place::Catalog { .. } = self.place {
            for line in catalog::all(&*self.inner.catalog()?.reader()?)? {
                catalog::insert(&conn, &line)?;
            }
        }
        journal(&conn, "WAL")?;
        open::truncate_wal(&conn)?;
        conn.close().map_err(|(_, error)| Error::from(error))?;
        File::open(&self.path).and_then(|file| file.sync_all()).map_err(Error::file(&self.path))?;
        for leftover in &BESIDE[1..] {
            open::remove(&with_suffix(&self.path, leftover))?;
        }
        Ok(())
    }

    fn take_place(&self) -> Result<()> {
        for path in self.files.all().iter().skip(1) {
            open::remove(path)?;
        }
        std::fs::rename(&self.path, &self.files.db).map_err(Error::file(&self.files.db))?;
        open::sync_parent(&self.files.db)
    }

    fn keep(mut self) -> Result<()> {
        self.put_down()?;
        match &self.place {
            Place::Vault { line, key } => {
                // The file first, as when a vault is made: never a line without its file.
                self.take_place()?;
                let Line { info, checkpoint } = line.clone();
                let wrapped = self.inner.roots.lock().wrap(&info.id.bytes(), key);
                let line = catalog::Line { info, wrapped, checkpoint };
                let catalog = self.inner.catalog()?;
                catalog.writer.ask_blocking(move |desk| catalog::insert(&desk.conn, &line))
            }
            Place::Catalog { mark } => {
                // What the catalog still has to put away must not land beside the new one.
                self.inner.close()?;
                self.take_place()?;
                open::remove(mark)?;
                open::sync_parent(mark)
            }
        }
    }
}

impl Drop for SqliteIntake {
    fn drop(&mut self) {
        self.conn = None;
        for leftover in BESIDE {
            // What cannot be removed is removed when the vault is begun again.
            let _ = open::remove(&with_suffix(&self.path, leftover));
        }
    }
}

impl Intake for SqliteIntake {
    fn put(&mut self, rows: Vec<Row>) -> Answer<'_, ()> {
        Box::pin(async move {
            for row in &rows {
                if let Row::Counters(counters) = row {
                    self.counters = *counters;
                }
            }
            let statics = Arc::clone(&self.statics);
            let put = self.work(move |conn| {
                conn.execute_batch("BEGIN")?;
                for row in &rows {
                    insert::row(conn, row, &statics)?;
                }
                Ok(conn.execute_batch("COMMIT")?)
            });
            Ok(put.await?)
        })
    }

    fn rows(&mut self) -> Answer<'_, Rows> {
        Box::pin(async move {
            let counters = self.counters;
            self.work(move |conn| count(conn, counters)).await?;
            let (path, key, tuning) = (self.path.clone(), self.key.clone(), self.inner.tuning());
            let opened = blocking(move || open::connect(&path, &key, Role::Reader, tuning));
            Ok(walked(opened.await?))
        })
    }

    fn keep(self: Box<Self>) -> Answer<'static, ()> {
        Box::pin(async move { Ok(blocking(move || Self::keep(*self)).await?) })
    }
}

/// Sets what is counted beside the rows.
fn count(conn: &Connection, counters: Counters) -> Result<()> {
    for (table, last) in [("message", counters.message), ("letter", counters.letter)] {
        let sql = "UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1";
        if conn.execute(sql, (table, last))? == 0 && last > 0 {
            conn.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", (table, last))?;
        }
    }
    for (name, epoch) in [(GRANT_EPOCH, counters.grants), (RULE_EPOCH, counters.rules)] {
        if epoch > 0 {
            let sql = "INSERT OR REPLACE INTO setting VALUES (?1, ?2)";
            conn.execute(sql, (name, epoch.to_string()))?;
        }
    }
    Ok(())
}

fn journal(conn: &Connection, mode: &str) -> Result<()> {
    let now: String = conn.pragma_update_and_check(None, "journal_mode", mode, |row| row.get(0))?;
    if now.eq_ignore_ascii_case(mode) {
        return Ok(());
    }
    Err(Error::Damaged(format!("the journal stays {now}")))
}

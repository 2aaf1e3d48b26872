//! Moving vaults out of a data directory and into one, while nothing serves it.
//!
//! The source is opened for reading alone: no writer, no migration, no checkpoint. A vault that is
//! taken in lies in a file beside its place until it was compared, so a move that breaks off leaves
//! nothing that counts. The catalog is taken in the same way and replaced in the end.

mod read;
mod write;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use yore_canon::did::Did;
use yore_domain::grant::Verb;
use yore_domain::{Error as DomainError, VaultId};
use yore_policy::Permit;
use yore_store::transfer::{Intake, Line, Rows, Source, Standing, Target, Tip, stream};
use yore_store::{Answer, Keeper as _};

use crate::catalog;
use crate::error::{Error, Result};
use crate::key::root::{self, Roots};
use crate::key::{self, Key};
use crate::migrate::{self, Schema};
use crate::open::{self, Role, Tuning, with_suffix};
use crate::store::{self, Options, SqliteStore, blocking};
use write::{Place, SqliteIntake};

/// The file that says from where a move into the directory was begun.
pub(crate) const MARK: &str = "moving";

/// A data directory that is only read.
#[derive(Debug)]
pub struct SqliteSource {
    shelf: Arc<Shelf>,
    _lock: File,
}

/// A data directory that vaults are moved into.
#[derive(Debug)]
pub struct SqliteTarget {
    store: SqliteStore,
    /// What the static vectors of a source are called that does not say.
    statics: String,
}

/// Where the files are, and what opens them.
#[derive(Debug)]
struct Shelf {
    data: PathBuf,
    roots: Roots,
    tuning: Tuning,
}

impl SqliteSource {
    /// Opens a directory that is there. Blocks, and refuses while another process uses it.
    pub fn open(options: &Options) -> Result<Self> {
        let data = options.data.clone();
        let path = data.join("catalog.db");
        if open::is_empty(&path)? || !data.join("master.json").exists() {
            return Err(Error::Foreign { path });
        }
        let lock = store::lock(&data.join("store.lock"))?;
        refuse_half(&data)?;
        let roots = Roots::open(&data, &options.master, options.cost)?;
        let shelf = Shelf { data, roots, tuning: options.tuning() };
        // The key fits, or it is said now.
        shelf.catalog()?;
        Ok(Self { shelf: Arc::new(shelf), _lock: lock })
    }
}

impl SqliteTarget {
    /// Opens a directory, or makes it. Blocks, and refuses while another process uses it.
    pub fn open(options: Options, statics: impl Into<String>) -> Result<Self> {
        let target = Self { store: SqliteStore::open_half(options)?, statics: statics.into() };
        // The catalog took its place, and only the mark was left behind.
        if target.origin()?.is_some_and(|origin| target.shelf().name().is_ok_and(|n| n == origin)) {
            open::remove(&target.mark())?;
            open::sync_parent(&target.mark())?;
        }
        Ok(target)
    }

    /// From where a move into the directory was begun.
    fn origin(&self) -> Result<Option<String>> {
        let mark = self.mark();
        if !mark.exists() {
            return Ok(None);
        }
        std::fs::read_to_string(&mark).map(Some).map_err(Error::file(&mark))
    }

    fn shelf(&self) -> Shelf {
        let inner = &self.store.inner;
        let (data, roots) = (inner.options.data.clone(), inner.roots.lock().clone());
        Shelf { data, roots, tuning: inner.tuning() }
    }

    fn mark(&self) -> PathBuf {
        self.store.inner.options.data.join(MARK)
    }
}

/// Refuses a directory into which a move was begun and not finished.
pub(crate) fn refuse_half(data: &Path) -> Result<()> {
    if data.join(MARK).exists() {
        return Err(Error::Half { path: data.to_owned() });
    }
    Ok(())
}

impl Shelf {
    fn catalog(&self) -> Result<Connection> {
        let path = self.data.join("catalog.db");
        let mut failure = Error::Foreign { path: path.clone() };
        for root in self.roots.all().iter().rev() {
            match open::connect(&path, &root::catalog(root), Role::Reader, self.tuning) {
                Ok(conn) => return self.fit(conn, &root::catalog(root), Schema::Catalog, &path),
                Err(error @ Error::Foreign { .. }) => failure = error,
                Err(error) => return Err(error),
            }
        }
        Err(failure)
    }

    fn vault(&self, id: VaultId) -> Result<Connection> {
        if id == VaultId::CATALOG {
            return self.catalog();
        }
        let line =
            catalog::get(&self.catalog()?, id)?.ok_or(Error::Domain(DomainError::NotFound))?;
        let path = self.data.join("vaults").join(format!("{id}.db"));
        if open::is_empty(&path)? {
            return Err(Error::Foreign { path });
        }
        let mut failure = Error::WrongKey;
        for wrapped in key::wraps(&line.wrapped)? {
            let key = self.roots.unwrap(&id.bytes(), wrapped).ok_or(Error::WrongKey)?;
            match open::connect(&path, &key, Role::Reader, self.tuning) {
                Ok(conn) => return self.fit(conn, &key, Schema::Vault, &path),
                Err(error @ Error::Foreign { .. }) => failure = error,
                Err(error) => return Err(error),
            }
        }
        Err(failure)
    }

    /// Returns a connection whose tables are of this version. Those of an older file are brought up
    /// to date in a copy, which goes with its connection: the source stays as it is.
    fn fit(&self, conn: Connection, key: &Key, schema: Schema, path: &Path) -> Result<Connection> {
        if migrate::is_newest(&conn, schema)? {
            conn.execute_batch("BEGIN")?;
            return Ok(conn);
        }
        let copy = with_suffix(path, &format!(".reading-{}", VaultId::random()));
        let made = crate::keeper::backup::copy_database(&conn, &copy, key).and_then(|()| {
            let mut conn = open::connect(&copy, key, Role::Writer, self.tuning)?;
            migrate::migrate(&mut conn, schema, &copy)?;
            Ok(conn)
        });
        // What is open stays readable without its name.
        for leftover in ["", "-wal", "-shm", "-journal"] {
            open::remove(&with_suffix(&copy, leftover))?;
        }
        made
    }

    fn lines(&self) -> Result<Vec<Line>> {
        let line = |line: catalog::Line| Line { info: line.info, checkpoint: line.checkpoint };
        Ok(catalog::all(&self.catalog()?)?.into_iter().map(line).collect())
    }

    fn name(&self) -> Result<String> {
        let signer = crate::vault::stored_signer(&self.catalog()?)?;
        let signer = signer.ok_or_else(|| Error::Damaged("the signing key is missing".into()))?;
        Ok(Did::of_key(&signer.verifying_key()).as_str().to_owned())
    }
}

/// Reads all rows of a file in a thread of its own.
fn walked(conn: Connection) -> Rows {
    let (mut out, rows) = stream();
    tokio::task::spawn_blocking(move || {
        let read = read::walk(&conn, &mut out);
        // The file is let go of before the end is told.
        drop(conn);
        out.end_blocking(read.map_err(Into::into));
    });
    rows
}

fn admin(permit: &Permit) -> Result<(), DomainError> {
    if permit.allows(Verb::Admin) {
        return Ok(());
    }
    Err(DomainError::forbidden("moving a vault needs the verb 'admin'"))
}

fn ask<'a, T: Send + 'static>(
    permit: &Permit,
    shelf: Arc<Shelf>,
    work: impl FnOnce(&Shelf) -> Result<T> + Send + 'static,
) -> Answer<'a, T> {
    let allowed = admin(permit);
    Box::pin(async move {
        allowed?;
        Ok(blocking(move || work(&shelf)).await?)
    })
}

macro_rules! source {
    ($type:ty, $shelf:expr) => {
        impl Source for $type {
            fn name<'a>(&'a self, permit: &'a Permit) -> Answer<'a, String> {
                ask(permit, $shelf(self), Shelf::name)
            }

            fn lines<'a>(&'a self, permit: &'a Permit) -> Answer<'a, Vec<Line>> {
                ask(permit, $shelf(self), Shelf::lines)
            }

            fn tip<'a>(&'a self, permit: &'a Permit) -> Answer<'a, Tip> {
                let id = permit.vault();
                ask(permit, $shelf(self), move |shelf| read::tip(&shelf.vault(id)?))
            }

            fn counts<'a>(&'a self, permit: &'a Permit) -> Answer<'a, Vec<(&'static str, u64)>> {
                let id = permit.vault();
                ask(permit, $shelf(self), move |shelf| read::counts(&shelf.vault(id)?))
            }

            fn rows<'a>(&'a self, permit: &'a Permit) -> Answer<'a, Rows> {
                let id = permit.vault();
                ask(permit, $shelf(self), move |shelf| Ok(walked(shelf.vault(id)?)))
            }
        }
    };
}

source!(SqliteSource, |source: &SqliteSource| Arc::clone(&source.shelf));
source!(SqliteTarget, |target: &SqliteTarget| Arc::new(target.shelf()));

impl Target for SqliteTarget {
    fn standing<'a>(&'a self, permit: &'a Permit) -> Answer<'a, Standing> {
        let origin = self.origin();
        ask(permit, Arc::new(self.shelf()), move |shelf| {
            if let Some(origin) = origin? {
                return Ok(Standing::Moving(origin));
            }
            let catalog = shelf.catalog()?;
            let used = !catalog::all(&catalog)?.is_empty() || read::tip(&catalog)?.is_some();
            Ok(if used { Standing::Used } else { Standing::Empty })
        })
    }

    fn begin<'a>(&'a self, permit: &'a Permit, origin: &'a str) -> Answer<'a, ()> {
        let (mark, origin) = (self.mark(), origin.to_owned());
        ask(permit, Arc::new(self.shelf()), move |_| open::replace(&mark, origin.as_bytes()))
    }

    fn intake<'a>(
        &'a self,
        permit: &'a Permit,
        line: Option<&'a Line>,
    ) -> Answer<'a, Box<dyn Intake + 'a>> {
        let inner = Arc::clone(&self.store.inner);
        let (line, statics, mark) = (line.cloned(), self.statics.clone(), self.mark());
        let begun = ask(permit, Arc::new(self.shelf()), move |_| {
            let place = match line {
                Some(line) => Place::Vault { line, key: Key::random() },
                None => Place::Catalog { mark },
            };
            SqliteIntake::begin(inner, place, statics)
        });
        Box::pin(async move { Ok(Box::new(begun.await?) as Box<dyn Intake>) })
    }

    fn discard<'a>(&'a self, permit: &'a Permit) -> Answer<'a, ()> {
        self.store.destroy(permit)
    }
}

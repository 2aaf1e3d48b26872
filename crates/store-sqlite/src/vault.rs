//! One open vault: its classes, its readers, its writer and its indexes.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex, RwLock};
use rusqlite::Connection;
use tokio::sync::watch;
use yore_canon::{jcs, key as signing};
use yore_domain::class::Class;
use yore_domain::{Seq, VaultId};
use yore_index::TokenTable;
use yore_store::keeper::VaultInfo;

use crate::books::Books;
use crate::commit::Tail;
use crate::commit::drop_abandoned;
use crate::error::{Error, Result};
use crate::indexes::Indexes;
use crate::key::{self, Key};
use crate::migrate::{self, Schema};
use crate::open::{self, Files, Role, Tuning};
use crate::outbox;
pub(crate) use crate::readers::Reader;
use crate::readers::Readers;
use crate::sealed::load_index;
use crate::writer::{self, Desk, Writer};

/// The setting that holds the seed of the vault's signing key. Names that begin with
/// `store:` are the store's own: no plan writes them and no snapshot shows them.
pub(crate) const SEED: &str = "store:seed";

pub(crate) type Tokens = Arc<dyn TokenTable + Send + Sync>;

/// An open vault. The catalog is one, too.
pub(crate) struct Vault {
    pub(crate) id: VaultId,
    pub(crate) indexes: Arc<Indexes>,
    pub(crate) classes: Arc<Classes>,
    pub(crate) files: Files,
    pub(crate) signer: signing::SigningKey,
    pub(crate) changes: watch::Sender<Seq>,
    /// Vectors of single tokens, when the store was given any.
    pub(crate) tokens: Option<Tokens>,
    /// What the catalog says of it; absent for the catalog itself.
    pub(crate) info: Option<VaultInfo>,
    books: Arc<RwLock<Arc<Books>>>,
    // Readers close before the writer learns that it is alone and empties the journal.
    readers: Arc<Readers>,
    pub(crate) writer: Writer,
    pub(crate) gate: Arc<Gate>,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").field("id", &self.id).field("db", &self.files.db).finish()
    }
}

impl Vault {
    /// Opens or makes the file, brings it to the newest schema and starts its writer.
    pub(crate) fn open(opening: Opening) -> Result<Self> {
        let Opening { id, info, files, key, schema, tuning, notary, gate, tokens, lock } = opening;
        let mut conn = open::connect(&files.db, &key, Role::Writer, tuning)?;
        migrate::migrate(&mut conn, schema, &files.db)?;
        drop_abandoned(&conn)?;
        // What a crash left in the journal goes into the file now.
        open::truncate_wal(&conn)?;
        let signer = signing_key(&conn)?;
        let classes = Arc::new(Classes::load(&conn)?);
        let saved = load_index(&files, &key, id);
        let indexes = Arc::new(Indexes::open(&conn, saved.as_deref())?);
        let changes = watch::Sender::new(Seq(outbox::last(&conn)?));
        let tail = Tail::read(&conn)?;
        let books = Arc::new(RwLock::new(Arc::new(Books::load(&conn)?)));
        let rewrite_due = conn.query_row(
            "SELECT count(*) > 0 FROM setting WHERE name = ?1",
            [writer::REWRITE],
            |row| row.get(0),
        )?;
        let desk = Desk {
            conn,
            id,
            classes: Arc::clone(&classes),
            indexes: Arc::clone(&indexes),
            files: files.clone(),
            key: key.clone(),
            signer: signer.clone(),
            changes: changes.clone(),
            tuning,
            notary,
            truncation_due: false,
            rewrite_due,
            checkpointed: 0,
            _lock: lock,
            unsaved: 0,
            tail,
            books: Arc::clone(&books),
        };
        let readers = Arc::new(Readers::new(files.db.clone(), key, tuning));
        let writer = writer::start(desk, Arc::clone(&gate))?;
        Ok(Self {
            id,
            indexes,
            classes,
            files,
            signer,
            changes,
            tokens,
            info,
            books,
            readers,
            writer,
            gate,
        })
    }

    /// The books as they are now.
    pub(crate) fn books(&self) -> Arc<Books> {
        Arc::clone(&self.books.read())
    }

    /// Returns a connection inside an open read transaction.
    pub(crate) fn reader(&self) -> Result<Reader> {
        Readers::take(&self.readers)
    }

    /// The key the file is under now.
    pub(crate) fn key(&self) -> Key {
        self.readers.key()
    }

    /// Puts the file under another key while nobody reads it.
    pub(crate) fn rekey(&self, key: &Key) -> Result<()> {
        self.readers.pause(|| {
            let fresh = key.clone();
            self.writer.ask_blocking(move |desk| desk.rekey(fresh))
        })
    }
}

/// What is needed to open a vault.
pub(crate) struct Opening {
    pub(crate) id: VaultId,
    pub(crate) info: Option<VaultInfo>,
    pub(crate) files: Files,
    pub(crate) key: Key,
    pub(crate) schema: Schema,
    pub(crate) tuning: Tuning,
    /// The catalog's writer, which keeps a copy of signed checkpoints.
    pub(crate) notary: Option<Writer>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) tokens: Option<Tokens>,
    /// The lock on the data directory, which outlives the writer.
    pub(crate) lock: Option<Arc<File>>,
}

fn signing_key(conn: &Connection) -> Result<signing::SigningKey> {
    if let Some(signer) = stored_signer(conn)? {
        return Ok(signer);
    }
    let seed = Key::random();
    let text = zeroize::Zeroizing::new(yore_canon::encode::hex(seed.bytes()));
    conn.execute("INSERT INTO setting VALUES (?1, ?2)", (SEED, text.as_str()))?;
    signer(&seed)
}

/// Returns the key that signs for a vault, when it has one already.
pub(crate) fn stored_signer(conn: &Connection) -> Result<Option<signing::SigningKey>> {
    use rusqlite::OptionalExtension as _;
    let seed: Option<String> = conn
        .query_row("SELECT value FROM setting WHERE name = ?1", [SEED], |row| row.get(0))
        .optional()?;
    let Some(text) = seed else { return Ok(None) };
    let seed = yore_canon::encode::from_hex(&text).ok();
    let seed = seed.and_then(|bytes| Key::from_slice(&bytes));
    signer(&seed.ok_or_else(|| Error::Damaged("the signing key is unreadable".into()))?).map(Some)
}

fn signer(seed: &Key) -> Result<signing::SigningKey> {
    signing::SigningKey::from_seed(signing::Algorithm::Ed25519, seed.bytes())
        .map_err(|error| Error::Damaged(error.to_string()))
}

/// Every class of a vault and its number.
#[derive(Debug, Default)]
pub(crate) struct Classes(RwLock<Table>);

#[derive(Debug, Default)]
struct Table {
    by_id: HashMap<u32, Arc<Class>>,
    by_class: HashMap<Arc<Class>, u32>,
}

impl Classes {
    pub(crate) fn load(conn: &Connection) -> Result<Self> {
        let classes = Self::default();
        classes.reload(conn)?;
        Ok(classes)
    }

    /// Reads the table again, which forgets classes of a change that was rolled back.
    pub(crate) fn reload(&self, conn: &Connection) -> Result<()> {
        let mut table = Table::default();
        let mut statement = conn.prepare_cached("SELECT id, data FROM class")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let id: u32 = row.get(0)?;
            let class: Arc<Class> = Arc::new(serde_json::from_str(
                row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?,
            )?);
            table.by_id.insert(id, Arc::clone(&class));
            table.by_class.insert(class, id);
        }
        *self.0.write() = table;
        Ok(())
    }

    /// Returns the number of a class and makes one when it has none. Only the writer calls.
    pub(crate) fn id_of(&self, conn: &Connection, class: &Class) -> Result<u32> {
        if let Some(id) = self.0.read().by_class.get(class) {
            return Ok(*id);
        }
        let data = jcs::canonical_of(class).map_err(|error| Error::Damaged(error.to_string()))?;
        conn.prepare_cached("INSERT INTO class (data) VALUES (?1)")?.execute([data])?;
        let id = u32::try_from(conn.last_insert_rowid())
            .map_err(|_| Error::Damaged("too many classes".into()))?;
        let class = Arc::new(class.clone());
        let mut table = self.0.write();
        table.by_id.insert(id, Arc::clone(&class));
        table.by_class.insert(class, id);
        Ok(id)
    }

    pub(crate) fn get(&self, id: u32) -> Arc<Class> {
        let table = self.0.read();
        Arc::clone(table.by_id.get(&id).expect("invariant: rows name only classes that exist"))
    }

    pub(crate) fn all(&self) -> Vec<(u32, Arc<Class>)> {
        self.0.read().by_id.iter().map(|(id, class)| (*id, Arc::clone(class))).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.read().by_id.len()
    }
}

/// Opens once the writer of a vault has put everything away.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    closed: Mutex<bool>,
    signal: Condvar,
}

impl Gate {
    pub(crate) fn close(&self) {
        *self.closed.lock() = true;
        self.signal.notify_all();
    }

    pub(crate) fn wait(&self) {
        let mut closed = self.closed.lock();
        while !*closed {
            self.signal.wait(&mut closed);
        }
    }

    /// Waits for a while; says whether the vault closed.
    pub(crate) fn wait_for(&self, time: std::time::Duration) -> bool {
        let mut closed = self.closed.lock();
        while !*closed {
            if self.signal.wait_for(&mut closed, time).timed_out() {
                return *closed;
            }
        }
        true
    }
}

/// Draws the salt of a version's digest.
pub(crate) fn salt() -> [u8; 16] {
    key::random()
}

#[cfg(test)]
pub(crate) mod tests;

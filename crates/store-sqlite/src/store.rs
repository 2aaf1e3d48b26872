//! The store: a data directory, its catalog, and the vaults that are open.

use std::collections::HashMap;
use std::fmt;
use std::fs::{File, TryLockError};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use lru::LruCache;
use parking_lot::Mutex;
use tokio::sync::watch;
use yore_domain::{Error as DomainError, Seq, VaultId};
use yore_index::TokenTable;
use yore_policy::Permit;
use yore_store::keeper::VaultInfo;
use yore_store::key::{Cost, MasterKey};
use yore_store::{CommitError, Durability, Plan, Receipt, Snapshot, Store};

use crate::catalog::{self, Line};
use crate::error::{Error, Result};
use crate::key::root::{self, Roots};
use crate::key::{self, Key};
use crate::migrate::Schema;
use crate::open::{self, Files, Tuning};
use crate::snapshot::SqliteSnapshot;
use crate::vault::{Gate, Opening, Vault};

/// How long exclusive work waits for those who still read a vault.
const PATIENCE: Duration = Duration::from_secs(10);

/// What happens to bytes that are deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overwrite {
    /// They are overwritten.
    #[default]
    Always,
    /// They stay until something else takes their place. Only for proving that the search
    /// for traces finds them.
    Never,
}

/// How a store is opened.
#[derive(Clone)]
pub struct Options {
    /// The data directory; made when it is not there.
    pub data: PathBuf,
    /// The key to it.
    pub master: MasterKey,
    /// What guessing the passphrase costs; used when the directory is made.
    pub cost: Cost,
    /// How many vaults stay open at once.
    pub max_open_vaults: NonZeroUsize,
    /// What happens to deleted bytes.
    pub overwrite: Overwrite,
    /// Page cache of a vault's writer in KiB.
    pub writer_cache_kib: u32,
    /// Page cache of each of a vault's readers in KiB.
    pub reader_cache_kib: u32,
    /// Vectors of single tokens, for the part of search that forgives other words.
    pub tokens: Option<Arc<dyn TokenTable + Send + Sync>>,
}

impl Options {
    /// The usual settings for a directory and its key.
    #[must_use]
    pub fn new(data: impl Into<PathBuf>, master: MasterKey) -> Self {
        Self {
            data: data.into(),
            master,
            cost: Cost::default(),
            max_open_vaults: NonZeroUsize::new(64).expect("invariant: 64 is not zero"),
            overwrite: Overwrite::default(),
            writer_cache_kib: 4 * 1024,
            reader_cache_kib: 16 * 1024,
            tokens: None,
        }
    }

    pub(crate) fn tuning(&self) -> Tuning {
        Tuning {
            secure_delete: self.overwrite == Overwrite::Always,
            writer_kib: self.writer_cache_kib,
            reader_kib: self.reader_cache_kib,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("data", &self.data)
            .field("master", &self.master)
            .field("max_open_vaults", &self.max_open_vaults)
            .finish_non_exhaustive()
    }
}

/// A store of vaults in one data directory.
#[derive(Clone, Debug)]
pub struct SqliteStore {
    pub(crate) inner: Arc<Inner>,
}

/// What all clones of a store share.
pub(crate) struct Inner {
    pub(crate) options: Options,
    pub(crate) roots: Mutex<Roots>,
    pub(crate) catalog: Mutex<Option<Arc<Vault>>>,
    slots: Mutex<HashMap<VaultId, Arc<Slot>>>,
    recent: Mutex<LruCache<VaultId, Arc<Vault>>>,
    /// Serialises the making of vaults, so that one owner never gets two.
    pub(crate) making: Mutex<()>,
    /// Held while the directory is in use.
    lock: Arc<File>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Where a vault is opened and closed, by one thread at a time.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    opened: Mutex<Option<(Weak<Vault>, Arc<Gate>)>>,
}

impl SqliteStore {
    /// Opens the directory, or makes it. Blocks, and refuses a second opener.
    pub fn open(options: Options) -> Result<Self> {
        crate::transfer::refuse_half(&options.data)?;
        Self::open_half(options)
    }

    /// The same for a directory into which a move was begun.
    pub(crate) fn open_half(options: Options) -> Result<Self> {
        make_directory(&options.data)?;
        make_directory(&options.data.join("vaults"))?;
        let lock = Arc::new(lock(&options.data.join("store.lock"))?);
        let mut roots = Roots::open(&options.data, &options.master, options.cost)?;
        let catalog = open_catalog(&options, &roots, &lock)?;
        crate::keeper::rotate::finish(&mut roots, &catalog)?;
        let recent = Mutex::new(LruCache::new(options.max_open_vaults));
        Ok(Self {
            inner: Arc::new(Inner {
                options,
                roots: Mutex::new(roots),
                catalog: Mutex::new(Some(Arc::new(catalog))),
                slots: Mutex::default(),
                recent,
                making: Mutex::new(()),
                lock,
            }),
        })
    }

    /// Returns an open vault, opening it if need be.
    pub(crate) async fn vault(&self, id: VaultId) -> Result<Arc<Vault>, DomainError> {
        if id == VaultId::CATALOG {
            return Ok(self.inner.catalog()?);
        }
        if let Some(vault) = self.inner.recent(id) {
            return Ok(vault);
        }
        let inner = Arc::clone(&self.inner);
        Ok(blocking(move || inner.open_vault(id)).await?)
    }
}

impl Inner {
    /// Returns a vault that is open and was used of late.
    pub(crate) fn recent(&self, id: VaultId) -> Option<Arc<Vault>> {
        self.recent.lock().get(&id).map(Arc::clone)
    }

    pub(crate) fn catalog(&self) -> Result<Arc<Vault>> {
        self.catalog.lock().clone().ok_or(Error::Stopped)
    }

    pub(crate) fn tuning(&self) -> Tuning {
        self.options.tuning()
    }

    pub(crate) fn files(&self, id: VaultId) -> Files {
        Files::new(self.options.data.join("vaults").join(format!("{id}.db")))
    }

    pub(crate) fn line(&self, id: VaultId) -> Result<Line> {
        let reader = self.catalog()?.reader()?;
        catalog::get(&reader, id)?.ok_or(Error::Domain(DomainError::NotFound))
    }

    fn slot(&self, id: VaultId) -> Arc<Slot> {
        Arc::clone(self.slots.lock().entry(id).or_default())
    }

    pub(crate) fn open_vault(&self, id: VaultId) -> Result<Arc<Vault>> {
        let slot = self.slot(id);
        let mut opened = slot.opened.lock();
        if let Some((weak, gate)) = opened.as_ref() {
            if let Some(vault) = weak.upgrade() {
                self.remember(&vault);
                return Ok(vault);
            }
            gate.wait();
        }
        let line = self.line(id)?;
        let vault = Arc::new(self.try_keys(&line)?);
        *opened = Some((Arc::downgrade(&vault), Arc::clone(&vault.gate)));
        self.remember(&vault);
        Ok(vault)
    }

    fn remember(&self, vault: &Arc<Vault>) {
        // The one that falls out is dropped after the lock is released: closing takes time.
        let evicted = self.recent.lock().push(vault.id, Arc::clone(vault));
        drop(evicted);
    }

    /// Opens a vault with whichever of its wrapped keys fits, and forgets the others.
    fn try_keys(&self, line: &Line) -> Result<Vault> {
        let id = line.info.id;
        let files = self.files(id);
        // The catalog names only vaults that were made: an empty file would become a new one.
        if open::is_empty(&files.db)? {
            return Err(Error::Foreign { path: files.db });
        }
        let mut failure = Error::WrongKey;
        let keys = self.unwrap_keys(line)?;
        for (number, key) in keys.iter().enumerate() {
            match self.start(id, Some(line.info.clone()), key.clone()) {
                Ok(vault) => {
                    if keys.len() > 1 && number < keys.len() {
                        self.settle(id, key)?;
                    }
                    return Ok(vault);
                }
                Err(error @ Error::Foreign { .. }) => failure = error,
                Err(error) => return Err(error),
            }
        }
        Err(failure)
    }

    pub(crate) fn unwrap_keys(&self, line: &Line) -> Result<Vec<Key>> {
        let roots = self.roots.lock();
        key::wraps(&line.wrapped)?
            .map(|wrapped| roots.unwrap(&line.info.id.bytes(), wrapped).ok_or(Error::WrongKey))
            .collect()
    }

    /// Makes a key the only one of a vault.
    pub(crate) fn settle(&self, id: VaultId, key: &Key) -> Result<()> {
        let wrapped = self.roots.lock().wrap(&id.bytes(), key);
        self.catalog()?
            .writer
            .ask_blocking(move |desk| catalog::set_wrapped(&desk.conn, id, &wrapped))
    }

    /// Opens a vault's file and starts its writer.
    pub(crate) fn start(&self, id: VaultId, info: Option<VaultInfo>, key: Key) -> Result<Vault> {
        Vault::open(Opening {
            id,
            info,
            files: self.files(id),
            key,
            schema: Schema::Vault,
            tuning: self.tuning(),
            notary: Some(self.catalog()?.writer.clone()),
            gate: Arc::default(),
            tokens: self.options.tokens.clone(),
            lock: Some(Arc::clone(&self.lock)),
        })
    }

    /// Closes a vault and does work while nobody can open it.
    pub(crate) fn alone<T>(&self, id: VaultId, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let slot = self.slot(id);
        let mut opened = slot.opened.lock();
        self.recent.lock().pop(&id);
        if let Some((_, gate)) = opened.as_ref()
            && !gate.wait_for(PATIENCE)
        {
            return Err(DomainError::Busy {
                reason: "the vault is being read".into(),
                retry_after: PATIENCE,
            }
            .into());
        }
        *opened = None;
        work()
    }

    /// Closes every vault, then the catalog.
    pub(crate) fn close(&self) -> Result<()> {
        let slots: Vec<_> = self.slots.lock().values().cloned().collect();
        self.recent.lock().clear();
        for slot in slots {
            if let Some((_, gate)) = slot.opened.lock().as_ref() {
                gate.wait_for(PATIENCE);
            }
        }
        if let Some(catalog) = self.catalog.lock().take() {
            let gate = Arc::clone(&catalog.gate);
            drop(catalog);
            gate.wait_for(PATIENCE);
        }
        Ok(())
    }
}

impl Drop for Inner {
    /// Waits for the writers. A process that ended under them would take away the cryptography
    /// they still use.
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::warn!(%error, "the store was not closed in order");
        }
    }
}

impl Store for SqliteStore {
    fn snapshot<'a>(
        &'a self,
        permit: &'a Permit,
    ) -> BoxFuture<'a, Result<Box<dyn Snapshot>, DomainError>> {
        Box::pin(async move {
            let vault = self.vault(permit.vault()).await?;
            let snapshot: Box<dyn Snapshot> = Box::new(SqliteSnapshot::new(vault, permit));
            Ok(snapshot)
        })
    }

    fn commit<'a>(
        &'a self,
        permit: &'a Permit,
        plan: Plan,
    ) -> BoxFuture<'a, Result<Receipt, CommitError>> {
        Box::pin(async move {
            let vault = self.vault(permit.vault()).await?;
            match plan.durability {
                Durability::Strict => {
                    let answer = vault.writer.strict(plan)?;
                    answer.await.map_err(|_| CommitError::from(Error::Stopped))?
                }
                Durability::Relaxed => {
                    vault.writer.relaxed(plan)?;
                    Ok(Receipt { change: *vault.changes.borrow(), audit: Seq(0) })
                }
            }
        })
    }

    fn watch<'a>(
        &'a self,
        permit: &'a Permit,
    ) -> BoxFuture<'a, Result<watch::Receiver<Seq>, DomainError>> {
        Box::pin(async move { Ok(self.vault(permit.vault()).await?.changes.subscribe()) })
    }
}

/// Runs work that may wait for the disk away from the async threads.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Error::Stopped)?
}

fn open_catalog(options: &Options, roots: &Roots, lock: &Arc<File>) -> Result<Vault> {
    let path = options.data.join("catalog.db");
    // A new catalog would hide that the keys of these vaults are gone.
    if open::is_empty(&path)? && holds_vaults(&options.data.join("vaults"))? {
        return Err(Error::Foreign { path });
    }
    let mut failure = Error::Foreign { path: path.clone() };
    for root in roots.all().iter().rev() {
        let opened = Vault::open(Opening {
            id: VaultId::CATALOG,
            info: None,
            files: Files::new(path.clone()),
            key: root::catalog(root),
            schema: Schema::Catalog,
            tuning: options.tuning(),
            notary: None,
            gate: Arc::default(),
            tokens: None,
            lock: Some(Arc::clone(lock)),
        });
        match opened {
            Ok(vault) => return Ok(vault),
            Err(error @ Error::Foreign { .. }) => failure = error,
            Err(error) => return Err(error),
        }
    }
    Err(failure)
}

fn holds_vaults(place: &Path) -> Result<bool> {
    for entry in std::fs::read_dir(place).map_err(Error::file(place))? {
        let path = entry.map_err(Error::file(place))?.path();
        if path.extension().is_some_and(|end| end == "db") && !open::is_empty(&path)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn make_directory(path: &Path) -> Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(Error::file(path))
}

pub(crate) fn lock(path: &Path) -> Result<File> {
    use std::io::Write as _;
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let mut file = options.open(path).map_err(Error::file(path))?;
    let own = std::process::id().to_string();
    let mut tries = 0;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) => {
                let pid = std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
                // A store that this process has just dropped may still be putting things away.
                if pid != own || tries == 100 {
                    return Err(Error::InUse(pid));
                }
                tries += 1;
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(TryLockError::Error(error)) => return Err(Error::file(path)(error)),
        }
    }
    file.set_len(0)
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(Error::file(path))?;
    Ok(file)
}

//! The store: a database, its catalog, and the vaults whose keys are known.

use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use lru::LruCache;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc, watch};
use yore_canon::encode;
use yore_domain::{Error as DomainError, Seq, Timestamp, VaultId};
use yore_index::TokenTable;
use yore_policy::Permit;
use yore_store::key::{self, Cost, Key, MasterKey};
use yore_store::{CommitError, Durability, Plan, Receipt, Snapshot, Store};

use crate::commit;
use crate::error::{Error, Result};
use crate::keeper;
use crate::listen::{self, News};
use crate::migrate;
use crate::pool::{Begin, Conn, Pool, Setup};
use crate::roots::Root;
use crate::snapshot::PostgresSnapshot;
use crate::tls;
use crate::transfer;
use crate::vault::{Place, SEED, Setting, Vault};

/// How many commits that nobody waits for may be under way at once.
const RELAXED: usize = 256;
/// How many connections answer what is asked in passing.
pub(crate) const LOOKUPS: usize = 4;

/// How a store is opened.
#[derive(Clone)]
pub struct Options {
    /// The address of the database.
    pub url: String,
    /// The role the server acts as; made with the tables when it is not there. It must not be
    /// one that goes round row-level security.
    pub role: String,
    /// The key to the vaults.
    pub master: MasterKey,
    /// What guessing the passphrase costs; used when the tables are made.
    pub cost: Cost,
    /// How many connections views may use; a few more answer short questions and listen.
    pub readers: usize,
    /// How many connections commits may use.
    pub writers: usize,
    /// The longest a statement may take.
    pub statement_timeout: Duration,
    /// The longest a statement waits for a lock.
    pub lock_timeout: Duration,
    /// The longest a view may lie idle before the database ends it.
    pub idle_timeout: Duration,
    /// The longest anyone waits for a connection.
    pub patience: Duration,
    /// How often it is asked what other servers committed, in case they were not heard.
    pub poll: Duration,
    /// How many vaults' keys are kept at hand.
    pub max_open_vaults: NonZeroUsize,
    /// Up to how many visible documents every search by vector is exact.
    pub exact_up_to: u32,
    /// By what name this server takes work; the same after a restart, so that it goes on with what
    /// it had.
    pub node: [u8; 16],
    /// Vectors of single tokens, for the part of search that forgives other words.
    pub tokens: Option<Arc<dyn TokenTable + Send + Sync>>,
}

impl Options {
    /// The usual settings for a database and its key.
    #[must_use]
    pub fn new(url: impl Into<String>, master: MasterKey) -> Self {
        Self {
            url: url.into(),
            role: "yore_app".into(),
            master,
            cost: Cost::default(),
            readers: 16,
            writers: 8,
            statement_timeout: Duration::from_secs(30),
            lock_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(120),
            patience: Duration::from_secs(10),
            poll: Duration::from_secs(5),
            max_open_vaults: NonZeroUsize::new(4096).expect("invariant: 4096 is not zero"),
            exact_up_to: 20_000,
            node: key::random(),
            tokens: None,
        }
    }

    pub(crate) fn setup(&self) -> Result<Setup> {
        let (config, connector) = tls::read(&self.url)?;
        let mut letters = self.role.chars();
        let begins = letters.next().is_some_and(|c| c.is_ascii_lowercase() || c == '_');
        let goes_on = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if !begins || !letters.all(goes_on) {
            return Err(Error::Unfit(
                "the role must be lower-case letters, digits and underscores".into(),
            ));
        }
        Ok(Setup {
            config,
            connector,
            role: self.role.clone(),
            statement: self.statement_timeout,
            lock: self.lock_timeout,
            idle: self.idle_timeout,
            patience: self.patience,
        })
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may hold a password.
        f.debug_struct("Options")
            .field("role", &self.role)
            .field("master", &self.master)
            .field("readers", &self.readers)
            .field("writers", &self.writers)
            .finish_non_exhaustive()
    }
}

/// A store of vaults in one database.
#[derive(Clone, Debug)]
pub struct PostgresStore {
    pub(crate) inner: Arc<Inner>,
}

/// What all clones of a store share.
pub(crate) struct Inner {
    pub(crate) options: Options,
    pub(crate) root: Root,
    catalog: Arc<Vault>,
    /// Views, commits and short questions have connections of their own. Who holds a view may
    /// wait for a commit or an answer; neither ever waits for a view.
    pub(crate) readers: Arc<Pool>,
    pub(crate) writers: Arc<Pool>,
    pub(crate) lookups: Arc<Pool>,
    vaults: Mutex<LruCache<VaultId, Arc<Vault>>>,
    watches: Mutex<Watches>,
    news: mpsc::Sender<News>,
    relaxed: Arc<Semaphore>,
}

/// Who watches which vault here.
#[derive(Default)]
struct Watches {
    senders: HashMap<VaultId, watch::Sender<Seq>>,
    /// The vaults by the names that other servers tell.
    named: HashMap<String, VaultId>,
}

impl Watches {
    /// Forgets what nobody watches any more.
    fn tidy(&mut self) {
        self.senders.retain(|_, sender| sender.receiver_count() > 0);
        self.named.retain(|_, vault| self.senders.contains_key(vault));
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("options", &self.options).finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Connects, makes the tables where they are missing, and opens the catalog.
    pub async fn open(options: Options) -> Result<Self> {
        let setup = options.setup()?;
        let mut client = setup.connect().await?;
        if !transfer::shares(&client).await? {
            return Err(Error::InUse("vaults are being moved out of it or into it"));
        }
        migrate::migrate(&mut client, &setup.role).await?;
        drop(client);
        refuse_powers(&setup).await?;
        let readers = Pool::new(setup.clone(), options.readers);
        let writers = Pool::new(setup.clone(), options.writers);
        let lookups = Pool::new(setup.clone(), LOOKUPS);
        let conn = writers.begin(VaultId::CATALOG, Begin::Strict).await?;
        let (root, catalog) = found(&conn, &options).await?;
        if transfer::begun(&conn, &catalog).await?.is_some() {
            return Err(Error::Half);
        }
        let catalog = Arc::new(catalog);
        conn.commit().await?;
        let vaults = Mutex::new(LruCache::new(options.max_open_vaults));
        let (news, untold) = mpsc::channel(RELAXED);
        let poll = options.poll;
        let inner = Arc::new(Inner {
            options,
            root,
            catalog,
            readers,
            writers,
            lookups,
            vaults,
            watches: Mutex::default(),
            news,
            relaxed: Arc::new(Semaphore::new(RELAXED)),
        });
        tokio::spawn(listen::run(setup, Arc::downgrade(&inner), untold, poll));
        Ok(Self { inner })
    }
}

/// Opens the root and the catalog, or makes them in an empty database.
pub(crate) async fn found(conn: &Conn, options: &Options) -> Result<(Root, Vault)> {
    let root = Root::open(conn, &options.master, options.cost).await?;
    let key = root.catalog();
    let known = conn.row("SELECT 1 FROM tail WHERE vault = $1", &[]).await?;
    if known.is_none() {
        furnish(conn, VaultId::CATALOG, &key, &Key::random()).await?;
    }
    let catalog = Vault::open(conn, VaultId::CATALOG, None, &key).await?;
    Ok((root, catalog))
}

/// Refuses to serve as a role that row-level security does not hold.
pub(crate) async fn refuse_powers(setup: &Setup) -> Result<()> {
    let client = setup.connect_lesser().await?;
    let powers =
        "SELECT rolsuper OR rolbypassrls OR pg_has_role(current_user, c.relowner, 'MEMBER')
        FROM pg_roles, pg_class c WHERE rolname = current_user AND c.oid = 'yore.memory'::regclass";
    if client.query_one(powers, &[]).await?.get(0) {
        return Err(Error::Unfit(format!(
            "the role {} owns the tables or may go round row-level security",
            setup.role
        )));
    }
    Ok(())
}

/// Writes what every vault begins with, inside a transaction of the vault.
pub(crate) async fn furnish(conn: &Conn, id: VaultId, key: &Key, seed: &Key) -> Result<()> {
    let vault = Vault::new(id, None, key, seed)?;
    conn.run("INSERT INTO tail (vault) VALUES ($1)", &[]).await?;
    let name = vault.mac("setting", &[SEED]);
    let value = encode::hex(seed.bytes()).into();
    let data = vault.seal("setting", &name, &Setting { name: SEED.into(), value })?;
    conn.run("INSERT INTO setting (vault, name, data) VALUES ($1, $2, $3)", &[&name, &data])
        .await?;
    Ok(())
}

impl Inner {
    /// Returns a vault, asking the catalog for its key if need be.
    pub(crate) async fn vault(&self, id: VaultId) -> Result<Arc<Vault>> {
        if id == VaultId::CATALOG {
            return Ok(Arc::clone(&self.catalog));
        }
        if let Some(vault) = self.recent(id) {
            return Ok(vault);
        }
        let conn = self.lookups.begin(id, Begin::View).await?;
        let line = keeper::line(&conn).await?.ok_or(Error::Domain(DomainError::NotFound))?;
        let key = self.root.unwrap(id, &line.wrapped)?;
        let vault = Arc::new(Vault::open(&conn, id, Some(line.info), &key).await?);
        conn.roll_back().await?;
        self.vaults.lock().put(id, Arc::clone(&vault));
        Ok(vault)
    }

    /// A vault that was used of late.
    pub(crate) fn recent(&self, id: VaultId) -> Option<Arc<Vault>> {
        self.vaults.lock().get(&id).map(Arc::clone)
    }

    /// Forgets a vault that is gone.
    pub(crate) fn forget(&self, id: VaultId) {
        self.vaults.lock().pop(&id);
        self.watches.lock().senders.remove(&id);
    }

    /// The vaults that are watched here.
    pub(crate) fn watched(&self) -> Vec<VaultId> {
        let mut watches = self.watches.lock();
        watches.tidy();
        watches.senders.keys().copied().collect()
    }

    /// Takes in what another server told.
    pub(crate) fn heard(&self, name: &str, seq: Seq) {
        let vault = self.watches.lock().named.get(name).copied();
        if let Some(vault) = vault {
            self.tell(vault, seq);
        }
    }

    /// Tells those who watch a vault that it changed.
    pub(crate) fn tell(&self, id: VaultId, seq: Seq) {
        if let Some(sender) = self.watches.lock().senders.get(&id) {
            sender.send_if_modified(|last| {
                let newer = *last < seq;
                *last = (*last).max(seq);
                newer
            });
        }
    }

    async fn commit(
        &self,
        vault: &Vault,
        mut place: Place,
        plan: &Plan,
        how: Begin,
    ) -> Result<Receipt, CommitError> {
        place.come_up().await;
        let done = commit::carry_out(&self.writers, vault, plan, how).await?;
        vault.reached(done.receipt.change);
        if done.changed {
            self.tell(vault.id, done.receipt.change);
            // Others ask from time to time: what does not fit is not worth a wait.
            if self.news.try_send((vault.id, done.receipt.change)).is_err() {
                tracing::debug!("a change is not told to other servers");
            }
        }
        Ok(done.receipt)
    }

    /// Waits for the commits that nobody waits for.
    pub(crate) async fn settle(&self) {
        let all = u32::try_from(RELAXED).expect("invariant: relaxed commits are few");
        // The semaphore is never closed.
        drop(self.relaxed.acquire_many(all).await);
    }

    pub(crate) async fn last_change(&self, id: VaultId) -> Result<Seq> {
        let conn = self.lookups.begin(id, Begin::View).await?;
        let row = conn.row("SELECT change FROM tail WHERE vault = $1", &[]).await?;
        conn.roll_back().await?;
        let row = row.ok_or(Error::Domain(DomainError::NotFound))?;
        Ok(Seq(row.get::<_, i64>(0).cast_unsigned()))
    }
}

impl Store for PostgresStore {
    fn snapshot<'a>(
        &'a self,
        permit: &'a Permit,
    ) -> BoxFuture<'a, Result<Box<dyn Snapshot>, DomainError>> {
        Box::pin(async move {
            let vault = self.inner.vault(permit.vault()).await?;
            let opened = PostgresSnapshot::open(Arc::clone(&self.inner), vault, permit).await?;
            let snapshot: Box<dyn Snapshot> = Box::new(opened);
            Ok(snapshot)
        })
    }

    fn commit<'a>(
        &'a self,
        permit: &'a Permit,
        plan: Plan,
    ) -> BoxFuture<'a, Result<Receipt, CommitError>> {
        Box::pin(async move {
            let vault = self.inner.vault(permit.vault()).await?;
            match plan.durability {
                Durability::Strict => {
                    let place = vault.line_up();
                    self.inner.commit(&vault, place, &plan, Begin::Strict).await
                }
                Durability::Relaxed => {
                    let change = vault.last_reached();
                    let slot = Arc::clone(&self.inner.relaxed).acquire_owned().await;
                    let (inner, place) = (Arc::clone(&self.inner), vault.line_up());
                    tokio::spawn(async move {
                        let done = inner.commit(&vault, place, &plan, Begin::Relaxed).await;
                        if let Err(error) = done {
                            let vault = vault.id;
                            tracing::warn!(%vault, %error, "a relaxed commit of vault {vault} failed");
                        }
                        drop(slot);
                    });
                    Ok(Receipt { change, audit: Seq(0) })
                }
            }
        })
    }

    fn watch<'a>(
        &'a self,
        permit: &'a Permit,
    ) -> BoxFuture<'a, Result<watch::Receiver<Seq>, DomainError>> {
        Box::pin(async move {
            let id = permit.vault();
            self.inner.vault(id).await?;
            let receiver = {
                let mut watches = self.inner.watches.lock();
                watches.tidy();
                watches.named.insert(self.inner.root.notice(id), id);
                let fresh = || watch::Sender::new(Seq(0));
                watches.senders.entry(id).or_insert_with(fresh).subscribe()
            };
            // Whatever is committed from here on is told; what was before is asked for.
            let last = self.inner.last_change(id).await?;
            self.inner.tell(id, last);
            Ok(receiver)
        })
    }

    fn lease<'a>(
        &'a self,
        permit: &'a Permit,
        work: &'a str,
        time: Duration,
    ) -> BoxFuture<'a, Result<bool, DomainError>> {
        Box::pin(async move { Ok(self.inner.lease(permit.vault(), work, time).await?) })
    }

    fn give_back<'a>(
        &'a self,
        permit: &'a Permit,
        work: &'a str,
    ) -> BoxFuture<'a, Result<(), DomainError>> {
        Box::pin(async move { Ok(self.inner.give_back(permit.vault(), work).await?) })
    }

    fn draw<'a>(
        &'a self,
        permit: &'a Permit,
        bucket: &'a str,
        per_minute: u32,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<bool, DomainError>> {
        Box::pin(async move { Ok(self.inner.draw(permit.vault(), bucket, per_minute, now).await?) })
    }
}

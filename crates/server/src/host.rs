//! One data directory, its engine, and the process that serves it.

mod attach;
mod idle;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use yore_client::Credential;
use yore_engine::{
    Background, Call, Clock, Engine, Issuers, Parts, Secret, Settings, TokenKind, token,
};
use yore_memorywire::Stores;
use yore_store_postgres::PostgresStore;
use yore_store_sqlite::{Error as StoreError, MasterKey, Options, SqliteStore};
use zeroize::Zeroizing;

use crate::app::{self, App};
use crate::backup::Keeping;
use crate::claim::{Claim, Note, Wish};
use crate::clock::SystemClock;
use crate::config::{Bind, Config};
use crate::error::{Error, Result};
use crate::key::{self, KeySource, Obtained};
use crate::listen::{Acceptor, Listeners};
use crate::oauth::Known;
use crate::sign_in::SignIns;
use crate::stores;
use crate::tls::Identity;

pub use attach::{Attached, attach, discover, proof};
pub use idle::{Held, Idle, Near};

/// How often the certificate is looked at.
const CERTIFICATE_CHECK: Duration = Duration::from_secs(12 * 3600);
/// How often it is looked whether somebody else replaced the certificate.
const CERTIFICATE_LOOK: Duration = Duration::from_secs(5);

/// How long a server waits for commands to leave the directory, and how often it looks.
const TURNS: Duration = Duration::from_secs(30);
const TURN: Duration = Duration::from_millis(25);

/// How often it is looked for jobs that another server left.
const TAKE_UP: Duration = Duration::from_secs(300);

/// An open data directory. Nothing else can open it meanwhile.
#[derive(Debug)]
pub struct Host {
    engine: Engine,
    config: Config,
    clock: Arc<SystemClock>,
    local_key: Arc<Zeroizing<[u8; 32]>>,
    first_token: Option<Secret>,
    made_key: Option<PathBuf>,
    claim: Claim,
}

impl Host {
    /// Opens the data directory, or makes it. At the first start it makes the default vault
    /// and an owner token, which is shown once and kept only as a hash.
    pub async fn open(config: Config) -> Result<Self> {
        let mut host = Self::open_to_stay(config).await?;
        host.engine.default_vault().await?;
        let call = host.own_call();
        if host.engine.tokens(&call).await?.is_empty() {
            let note = Some("made at the first start".to_owned());
            let made = host.engine.issue_token(&call, TokenKind::Owner, None, note).await?;
            host.first_token = Some(Secret::new(made));
        }
        if let Some(open) = host.config.ump.public_reads {
            host.engine.set_public_reads(&call, open).await?;
        }
        Ok(host)
    }

    /// Opens the data directory, after the commands that serve it in turns have left it.
    async fn open_to_stay(config: Config) -> Result<Self> {
        let (mut wish, mut waited) = (None, Duration::ZERO);
        loop {
            match Self::open_quietly(config.clone()).await {
                Err(Error::InUse { .. })
                    if waited < TURNS
                        && !Note::read(&config.data).is_some_and(|note| note.stays()) =>
                {
                    if wish.is_none() {
                        let data = config.data.clone();
                        let said = tokio::task::spawn_blocking(move || Wish::express(&data)).await;
                        wish = Some(said.map_err(|error| Error::Interrupted(error.to_string()))??);
                    }
                    tokio::time::sleep(TURN).await;
                    waited += TURN;
                }
                opened => return opened,
            }
        }
    }

    /// Puts a data directory under another master key. No server may hold it meanwhile.
    pub async fn change_key(config: Config, key: KeySource) -> Result<Option<PathBuf>> {
        let data = config.data.clone();
        let host = Self::open_to_stay(config).await?;
        let Obtained { master, made } = blocking(move || key.obtain_new(&data)).await?;
        let changed = host.engine.change_master(&host.own_call(), master).await;
        let closed = host.close(None).await;
        changed?;
        closed.map(|()| made)
    }

    async fn open_quietly(config: Config) -> Result<Self> {
        config.check()?;
        // The directory is the server's own even when the vaults lie elsewhere: where it
        // listens, its certificates and its proofs are there.
        let (data, source) = (config.data.clone(), config.key.clone());
        let (claim, obtained) =
            blocking(move || Ok((Claim::take(&data)?, source.obtain(&data)?))).await?;
        // Opening a database is a large future; whoever opens a host should not carry it along.
        let vaults = Box::pin(Vaults::open(&config, &obtained.master)).await?;
        let (data, master) = (config.data.clone(), obtained.master.clone());
        let local_key = Arc::new(blocking(move || key::local(&master, &data)).await?);
        let clock = Arc::new(SystemClock::default());
        let settings = Settings {
            strict_audit: config.strict_audit,
            effort: config.effort,
            care: config.sensitive,
            gate: config.omp.gate(),
            reads_per_minute: config.limits.reads_per_minute,
            writes_per_minute: config.limits.writes_per_minute,
            recalls_per_minute: config.limits.recalls_per_minute,
            consolidation: config.consolidation.settings()?,
            audiences: config.trust.audiences.clone(),
            issuers: config.trust.issuers.clone(),
            did: config.trust.did.clone().unwrap_or_default(),
            shared_secret: config.oamp.shared_secret()?,
            published: published(&config),
            messages_per_hour: config.uamp.messages_per_hour,
        };
        let proof = Zeroizing::new(**local_key);
        let engine = vaults.engine(clock.clone(), proof, settings);
        let made_key = obtained.made;
        Ok(Self { engine, config, clock, local_key, first_token: None, made_key, claim })
    }

    /// The engine.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The owner token of a first start.
    #[must_use]
    pub const fn first_token(&self) -> Option<&Secret> {
        self.first_token.as_ref()
    }

    /// The key file that was made, which its owner should keep safe.
    #[must_use]
    pub fn made_key(&self) -> Option<&Path> {
        self.made_key.as_deref()
    }

    /// A credential of this process, which holds the master key.
    #[must_use]
    pub fn credential(&self) -> Credential {
        fresh(Arc::clone(&self.local_key), Arc::clone(&self.clock))
    }

    fn own_call(&self) -> Call {
        Call::bearer("native", token::proof(&self.local_key, self.clock.now()))
    }

    /// Binds the addresses of the configuration.
    pub async fn listen(&self) -> Result<Listeners> {
        let identity = match self.config.listen.https {
            Bind::Off => None,
            Bind::At(_) => {
                let (config, now) = (self.config.clone(), self.clock.now());
                let opened =
                    tokio::task::spawn_blocking(move || Identity::open(&config, now)).await;
                let opened = opened.map_err(|error| Error::Interrupted(error.to_string()))?;
                Some(Arc::new(opened?))
            }
        };
        Listeners::bind(&self.config, identity).await
    }

    /// Serves until `shutdown` is done; requests under way are answered first.
    pub async fn serve(
        self,
        listeners: Listeners,
        shutdown: impl Future<Output = ()>,
    ) -> Result<()> {
        let background = self.engine.start();
        // A server that stays spares its first questions the look at the whole table of tokens.
        let kin = std::thread::Builder::new().name("yore-kin".into());
        if let Err(error) = kin.spawn(|| yore_embed::builtin().statics.meet_kin()) {
            tracing::warn!(%error, "the kin of tokens are looked up when they are needed");
        }
        let stores = self.stores()?;
        let (halt, halted) = watch::channel(false);
        let deliveries = stores.iter().flat_map(|stores| stores.deliveries(&self.engine));
        let deliveries: Vec<_> = deliveries
            .map(|delivery| {
                let halted = halted.clone();
                tokio::spawn(async move { delivery.run(halted).await })
            })
            .collect();
        let telling = self.engine.start_telling(Arc::new(yore_omp::Messenger::default()));
        let copies = tokio::spawn(self.copies().run(halted.clone()));
        let (app, acceptor) = self.assemble(stores);
        let renewal = listeners.identity().map(|identity| self.renew(identity));
        self.announce(&listeners)?;
        if let Err(error) = app.omp().resume().await {
            tracing::error!(%error, "unfinished jobs could not be taken up");
        }
        let taking_up = tokio::spawn(take_up(app.clone(), halted.clone()));
        app.set_ready(true);
        let stop = app.surface().stop.clone();
        let serving = tokio::spawn(acceptor.run(listeners));
        shutdown.await;
        tracing::info!("ending");
        app.set_ready(false);
        stop.cancel();
        if let Err(error) = serving.await {
            tracing::error!(%error, "the listeners ended badly");
        }
        if let Some(renewal) = renewal {
            renewal.abort();
        }
        app.uamp().stop().await;
        halt.send_replace(true);
        if let Err(error) = copies.await {
            tracing::error!(%error, "the making of copies ended badly");
        }
        for delivery in deliveries {
            if let Err(error) = delivery.await {
                tracing::error!(%error, "a delivery ended badly");
            }
        }
        telling.stop().await;
        if let Err(error) = taking_up.await {
            tracing::error!(%error, "the taking up of jobs ended badly");
        }
        app.omp().halt().await;
        drop(app);
        self.close(Some(background)).await
    }

    /// The stores beside the vault. Only a server that stays speaks to them.
    fn stores(&self) -> Result<Option<Stores>> {
        let (key, clock) = (Arc::clone(&self.local_key), Arc::clone(&self.clock));
        let caller = move || Call::bearer("memorywire", token::proof(&key, clock.now()));
        stores::open(&self.config, &self.local_key, Arc::new(caller))
    }

    /// Who makes copies of the vaults when they are due. Only a server that stays does.
    fn copies(&self) -> Keeping {
        let (key, clock) = (Arc::clone(&self.local_key), Arc::clone(&self.clock));
        let caller = move || Call::bearer("background", token::proof(&key, clock.now()));
        Keeping {
            engine: self.engine.clone(),
            backups: self.config.backup.clone(),
            folder: self.config.backup.folder(&self.config.data),
            clock: self.clock.clone(),
            caller: Arc::new(caller),
        }
    }

    /// The identity providers that let operators in, when there are any.
    fn operators(&self) -> Option<yore_web::Operators> {
        let providers = self.config.sign_in.clone();
        if providers.is_empty() {
            return None;
        }
        let (key, clock) = (Arc::clone(&self.local_key), Arc::clone(&self.clock));
        let caller = move || Call::bearer(yore_web::NAME, token::proof(&key, clock.now()));
        let sign_ins = SignIns::new(providers, self.engine.clone(), Arc::new(caller));
        Some(yore_web::Operators(Arc::new(sign_ins)))
    }

    fn assemble(&self, stores: Option<Stores>) -> (App, Arc<Acceptor>) {
        let stop = CancellationToken::new();
        let (engine, operators) = (self.engine.clone(), self.operators());
        let app = App::new(engine, self.config.clone(), stores, operators, stop.clone());
        let router = app::router(app.clone());
        let acceptor = Acceptor::new(router, &self.config.limits, stop, app.open().clone());
        (app, acceptor)
    }

    /// What is said of all routes, and what the router says of them itself.
    #[cfg(test)]
    pub(crate) fn described(&self) -> (serde_json::Value, String) {
        let (app, _) = self.assemble(None);
        let document = crate::describe::document(&app.surface().registry);
        (document, format!("{:?}", app::router(app)))
    }

    fn announce(&self, listeners: &Listeners) -> Result<()> {
        self.claim.announce(&Note {
            pid: std::process::id(),
            http: listeners.http(),
            https: listeners.https(),
            ca: listeners.authority(),
            socket: listeners.socket(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }

    /// Replaces the certificate before it ends.
    fn renew(&self, identity: Arc<Identity>) -> tokio::task::JoinHandle<()> {
        let clock = Arc::clone(&self.clock);
        tokio::spawn(async move {
            let mut checked = Instant::now();
            loop {
                tokio::time::sleep(CERTIFICATE_LOOK).await;
                let due = checked.elapsed() >= CERTIFICATE_CHECK;
                if due {
                    checked = Instant::now();
                }
                let (identity, now) = (Arc::clone(&identity), clock.now());
                let look = move || match identity.changed() || due {
                    true => identity.refresh(now),
                    false => Ok(()),
                };
                match tokio::task::spawn_blocking(look).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => tracing::error!(%error, "the certificate was not renewed"),
                    Err(error) => tracing::error!(%error, "the certificate was not renewed"),
                }
            }
        })
    }

    /// Ends the work behind the scenes and writes everything down.
    async fn close(self, background: Option<Background>) -> Result<()> {
        if let Some(background) = background {
            background.stop().await;
        }
        let Self { engine, claim, .. } = self;
        let closed = engine.close().await;
        // The store lets go of the directory first: who finds the claim free finds it usable.
        drop(engine);
        drop(claim);
        Ok(closed?)
    }
}

/// The authorisation servers whose tokens count, when there are any.
fn published(config: &Config) -> Option<Arc<dyn Issuers>> {
    let issuers = config.trust.oauth.clone();
    let fetch = crate::fetch::fetching(config);
    (!issuers.is_empty()).then(|| Arc::new(Known::new(issuers, fetch)) as Arc<dyn Issuers>)
}

/// Takes up jobs of servers that share the database and did not come back.
async fn take_up(app: App, mut halted: watch::Receiver<bool>) {
    while app.config().database.is_some() {
        tokio::select! {
            _ = halted.wait_for(|halt| *halt) => return,
            () = tokio::time::sleep(TAKE_UP) => {}
        }
        if let Err(error) = app.omp().resume().await {
            tracing::error!(%error, "unfinished jobs could not be taken up");
        }
    }
}

/// Where vaults lie.
enum Vaults {
    Files(Arc<SqliteStore>),
    Database(Arc<PostgresStore>),
}

impl Vaults {
    /// Opens the database of the configuration, or else the data directory.
    async fn open(config: &Config, master: &MasterKey) -> Result<Self> {
        let kin = Arc::new(|token| yore_embed::builtin().statics.kin(token));
        if let Some(address) = &config.database {
            let mut options = yore_store_postgres::Options::new(address.expose(), master.clone());
            options.tokens = Some(kin);
            let data = config.data.clone();
            options.node = blocking(move || key::node(&data)).await?;
            return Ok(Self::Database(Arc::new(PostgresStore::open(options).await?)));
        }
        let data = config.data.clone();
        let mut options = Options::new(&data, master.clone());
        options.tokens = Some(kin);
        blocking(move || match SqliteStore::open(options) {
            Err(StoreError::InUse(pid)) => Err(Error::InUse { data, pid }),
            opened => Ok(Self::Files(Arc::new(opened?))),
        })
        .await
    }

    fn engine(
        self,
        clock: Arc<SystemClock>,
        local_key: Zeroizing<[u8; 32]>,
        settings: Settings,
    ) -> Engine {
        Engine::new(match self {
            Self::Files(store) => {
                Parts { keeper: store.clone(), store, clock, local_key, settings }
            }
            Self::Database(store) => {
                Parts { keeper: store.clone(), store, clock, local_key, settings }
            }
        })
    }
}

/// Examines the database of the configuration; nothing is found where there is none.
pub async fn examine_database(config: &Config) -> Vec<yore_store_postgres::doctor::Finding> {
    let Some(address) = &config.database else { return Vec::new() };
    // No vault is opened, so the key does not matter.
    let master = MasterKey::text(String::new());
    let options = yore_store_postgres::Options::new(address.expose(), master);
    let clock = SystemClock::default();
    Box::pin(yore_store_postgres::doctor::examine(&options, || clock.now())).await
}

/// Runs work that may wait for the disk away from the async threads.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Error::Interrupted(error.to_string()))?
}

/// A credential made anew for each call: proofs of the master key live a minute.
fn fresh(key: Arc<Zeroizing<[u8; 32]>>, clock: Arc<SystemClock>) -> Credential {
    Credential::Fresh(Arc::new(move || token::proof(&key, clock.now())))
}

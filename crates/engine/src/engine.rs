//! The engine and what it is made of.

use std::fmt;
use std::sync::Arc;

use tokio::sync::OnceCell;
use yore_canon::did::Did;
use yore_canon::key::VerifyingKey;
use yore_domain::grant::Verb;
use yore_domain::query::Effort;
use yore_domain::sensitive::Care;
use yore_domain::{Error, Result, TenantId, Timestamp, VaultId};
use yore_embed::{Builtin, builtin};
use yore_policy::{Gate, Need, Permit, Principal, authorise};
use yore_store::{Keeper, Store};
use zeroize::Zeroizing;

use crate::ask::Questions;
use crate::background::Work;
use crate::budget::Budgets;
use crate::call::{Issuers, Secret};
use crate::clock::Clock;
use crate::ops::accept::Swept;
use crate::ops::consolidate::Consolidating;

/// The owner of the one vault of a server that was never told about owners.
pub const DEFAULT_OWNER: &str = "owner";

/// What the operator decides.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether reads wait until their audit entry is on disk.
    pub strict_audit: bool,
    /// Which models recall uses when the caller does not say.
    pub effort: Effort,
    /// The names under which signed claims may address this server.
    pub audiences: Vec<String>,
    /// DIDs whose claims count besides the owner's and the server's.
    pub issuers: Vec<String>,
    /// A secret shared with an issuer whose claims carry a MAC instead of a signature. Absent
    /// means that no such claims are taken.
    pub shared_secret: Option<Secret>,
    /// Authorisation servers elsewhere whose tokens count.
    pub published: Option<Arc<dyn Issuers>>,
    /// What is done about secrets and personal data in what is written.
    pub care: Care,
    /// Whether it must be known of a person that they are no child before anything is stored.
    pub gate: Gate,
    /// The server's own DID.
    pub did: String,
    /// Reads a minute that each agent may make; absent means as many as it likes.
    pub reads_per_minute: Option<u32>,
    /// Writes a minute that each agent may make.
    pub writes_per_minute: Option<u32>,
    /// Recalls a minute that each agent may make, besides the limit on reads.
    pub recalls_per_minute: Option<u32>,
    /// Messages an hour that each sender may send.
    pub messages_per_hour: Option<u32>,
    /// How short-term memory becomes long-term.
    pub consolidation: Consolidating,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            strict_audit: false,
            effort: Effort::Balanced,
            audiences: Vec::new(),
            issuers: Vec::new(),
            shared_secret: None,
            published: None,
            care: Care::Off,
            gate: Gate::Open,
            did: String::new(),
            reads_per_minute: None,
            writes_per_minute: None,
            recalls_per_minute: None,
            messages_per_hour: None,
            consolidation: Consolidating::default(),
        }
    }
}

/// What an engine is assembled from.
pub struct Parts {
    /// Where vaults lie.
    pub store: Arc<dyn Store>,
    /// Who keeps them.
    pub keeper: Arc<dyn Keeper>,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// The key that proves possession of the master key.
    pub local_key: Zeroizing<[u8; 32]>,
    /// What the operator decides.
    pub settings: Settings,
}

/// The pipeline. Cheap to clone; all clones are the same engine.
#[derive(Clone)]
pub struct Engine(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) parts: Parts,
    pub(crate) models: &'static Builtin,
    pub(crate) questions: Questions,
    pub(crate) budgets: Budgets,
    pub(crate) work: Work,
    /// Messages that were taken in since the start.
    pub(crate) swept: Swept,
    default_vault: OnceCell<VaultId>,
    server_key: OnceCell<VerifyingKey>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("settings", &self.0.parts.settings).finish_non_exhaustive()
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Engine {
    /// Assembles an engine. The models inside the binary are loaded on first use.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(Inner {
            parts,
            models: builtin(),
            questions: Questions::default(),
            budgets: Budgets::default(),
            work: Work::default(),
            swept: Swept::default(),
            default_vault: OnceCell::new(),
            server_key: OnceCell::new(),
        }))
    }

    /// Returns the time now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.0.parts.clock.now()
    }

    /// Returns what the operator decided.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.0.parts.settings
    }

    /// Returns the vault of a server with one owner, making it on the first call.
    pub async fn default_vault(&self) -> Result<VaultId> {
        self.0
            .default_vault
            .get_or_try_init(|| async { self.create_vault(TenantId::DEFAULT, DEFAULT_OWNER).await })
            .await
            .copied()
    }

    /// Returns the key by which others know this server.
    pub async fn server_key(&self) -> Result<VerifyingKey> {
        let known = self.0.server_key.get_or_try_init(|| async {
            let permit = self.system(VaultId::CATALOG, "name the server")?;
            self.keeper().key(&permit).await
        });
        known.await.copied()
    }

    /// Returns the name by which others know this server: the one the operator gave it on the
    /// web, or its key itself.
    pub async fn server_did(&self) -> Result<String> {
        let named = &self.settings().did;
        if named.starts_with("did:web:") {
            return Ok(named.clone());
        }
        Ok(Did::of_key(&self.server_key().await?).as_str().to_owned())
    }

    /// Signs what the server itself says to others.
    pub async fn sign_as_server(&self, message: &[u8]) -> Result<[u8; 64]> {
        let permit = self.system(VaultId::CATALOG, "sign for the server")?;
        self.keeper().sign(&permit, message).await
    }

    pub(crate) async fn create_vault(&self, tenant: TenantId, owner: &str) -> Result<VaultId> {
        let permit = self.system(VaultId::CATALOG, "make a vault")?;
        Ok(self.keeper().create(&permit, tenant, owner, self.now()).await?.id)
    }

    pub(crate) async fn find_vault(
        &self,
        tenant: TenantId,
        owner: &str,
    ) -> Result<Option<VaultId>> {
        let permit = self.system(VaultId::CATALOG, "find a vault")?;
        Ok(self.keeper().find(&permit, tenant, owner).await?.map(|info| info.id))
    }

    /// A permit for the server's own work, audited under its reason.
    pub(crate) fn system(&self, vault: VaultId, reason: &'static str) -> Result<Permit> {
        let principal = Principal::system(vault, reason);
        authorise(&principal, Need::one(reason, Verb::Admin), self.now())
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.0.parts.store
    }

    pub(crate) fn keeper(&self) -> &dyn Keeper {
        &*self.0.parts.keeper
    }

    /// Writes everything down and closes all vaults. Nothing may be called afterwards.
    pub async fn close(&self) -> Result<()> {
        self.keeper().close().await
    }
}

/// Runs what would hold up other work on a thread of its own.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(Error::internal)
}

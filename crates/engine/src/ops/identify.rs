//! Whom a call comes from and whose vault it means, for protocols that write both into records.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use yore_canon::hash::{Blake3, hmac_sha256};
use yore_canon::seal;
use yore_domain::grant::Verb;
use yore_domain::{Error, Result, VaultId};
use yore_policy::Need;
use yore_policy::redact::Viewer;

use crate::call::Call;
use crate::engine::Engine;
use crate::evidence::Unknown;
use crate::run::Trace;

/// A believed caller and the vault it means. Only [`Engine::identify`] makes one.
#[derive(Clone, Debug)]
pub struct Identity {
    vault: VaultId,
    did: String,
    owner: String,
    agent: Option<String>,
    viewer: Viewer,
    /// Who gave the grants under which it calls.
    issuers: Vec<String>,
}

impl Identity {
    /// Returns the vault.
    #[must_use]
    pub const fn vault(&self) -> VaultId {
        self.vault
    }

    /// Returns the DID that signs for the vault.
    #[must_use]
    pub fn did(&self) -> &str {
        &self.did
    }

    /// Returns the owner's name inside the tenant.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Returns the agent's name, when one calls.
    #[must_use]
    pub fn agent(&self) -> Option<&str> {
        self.agent.as_deref()
    }

    /// Whether it may write in the name of somebody, by DID or name: the owner in anyone's, an
    /// agent in the owner's and in that of whoever gave it its grant.
    #[must_use]
    pub fn speaks_for(&self, owner: &str) -> bool {
        self.is_owner() || self.is_own(owner) || self.issuers.iter().any(|issuer| issuer == owner)
    }

    /// Whether somebody, by DID or name, is the vault's owner.
    #[must_use]
    pub fn is_own(&self, owner: &str) -> bool {
        owner == self.did || owner == self.owner
    }

    /// As whom it looks: it decides what consent leaves out.
    #[must_use]
    pub const fn viewer(&self) -> Viewer {
        self.viewer
    }

    /// Whether the owner calls.
    #[must_use]
    pub const fn is_owner(&self) -> bool {
        matches!(self.viewer, Viewer::Own)
    }
}

/// Who a caller is to a vault, for the caller itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Caller {
    /// The DID that signs for the vault.
    pub did: String,
    /// The owner's name inside the tenant.
    pub owner: String,
    /// The agent's name, when one calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Whether the owner calls.
    pub is_owner: bool,
}

impl Engine {
    /// Tells a caller who it is and whose vault it reached.
    pub async fn whoami(&self, call: &Call) -> Result<Caller> {
        let identity = self.identify(call, Verb::Read).await?;
        let is_owner = identity.is_owner();
        let Identity { did, owner, agent, .. } = identity;
        Ok(Caller { did, owner, agent, is_owner })
    }

    /// Says who calls. It allows nothing: every operation verifies and authorises by itself.
    pub async fn identify(&self, call: &Call, verb: Verb) -> Result<Identity> {
        let unknown = if verb == Verb::Write { Unknown::Create } else { Unknown::Refuse };
        let (evidence, principal) = match self.believe(call, self.now(), unknown).await {
            Ok(believed) => believed,
            Err((_, error)) => {
                // Entering fails for the same reason, and leaves its trace in the audit chain.
                self.enter(call, Need::one("identify", verb)).await?;
                return Err(error);
            }
        };
        let permit = self.system(evidence.vault, "name the owner")?;
        let info = self.keeper().info(&permit).await?.ok_or(Error::NotFound)?;
        Ok(Identity {
            vault: evidence.vault,
            did: info.did,
            owner: info.owner,
            agent: principal.agent().map(str::to_owned),
            issuers: principal.grants().iter().map(|grant| grant.issuer.clone()).collect(),
            viewer: Viewer::of(&principal),
        })
    }

    /// Whether a caller is anybody at all. It allows nothing and leaves no trace: what is asked
    /// for does.
    pub async fn believes(&self, call: &Call) -> bool {
        matches!(self.serves(call).await, Ok(Some(_)))
            || self.believe(call, self.now(), Unknown::Refuse).await.is_ok()
    }

    /// Demands a verb besides the one that an operation asks for itself. A refusal leaves its
    /// trace in the audit chain.
    pub async fn demand(&self, call: &Call, operation: &'static str, verb: Verb) -> Result<()> {
        self.enter(call, Need::one(operation, verb)).await.map(drop)
    }

    /// Demands a verb for what is handed out without the engine, and leaves a trace in the audit
    /// chain whether it is refused or not.
    pub async fn witness(&self, call: &Call, operation: &'static str, verb: Verb) -> Result<()> {
        self.look(call, Need::one(operation, verb), (), |_, _, _, ()| {
            Box::pin(async { Ok(((), Trace::default())) })
        })
        .await
    }

    /// Seals with the vault's own key a record that was read from it: the signature is over the
    /// record's hash and fits nothing but a seal. The read itself is in the audit chain.
    pub async fn seal(&self, identity: &Identity, hash: &Blake3) -> Result<[u8; 64]> {
        let permit = self.system(identity.vault, "seal what was read")?;
        self.keeper().sign(&permit, seal::signed_digest(hash).as_bytes()).await
    }

    /// Signs with the vault's own key an answer that was read from it. The statement names its own
    /// form, so that the signature fits nothing else. The read itself is in the audit chain.
    pub async fn vouch(&self, identity: &Identity, statement: &str) -> Result<[u8; 64]> {
        let permit = self.system(identity.vault, "vouch for an answer")?;
        self.keeper().sign(&permit, statement.as_bytes()).await
    }

    /// Returns a tag that only this server can make, and only for this caller's view of this
    /// vault and for this purpose: what comes back under it was handed out here.
    #[must_use]
    pub fn stamp(&self, identity: &Identity, purpose: &str, said: &[u8]) -> [u8; 32] {
        let mut message = b"stamp\0".to_vec();
        message.extend(identity.vault.bytes());
        for part in [identity.agent.as_deref().unwrap_or_default(), purpose] {
            message.extend((part.len() as u64).to_be_bytes());
            message.extend(part.as_bytes());
        }
        message.extend(said);
        hmac_sha256(&*self.0.parts.local_key, &message)
    }

    /// Counts the tokens of a text, as the built-in models cut it.
    #[must_use]
    pub fn tokens_of(&self, text: &str) -> usize {
        self.0.models.statics.tokens(text).len()
    }
}

//! Whom a call comes from and whose vault it means, for protocols that write both into records.

use yore_domain::audit::Actor;
use yore_domain::grant::Verb;
use yore_domain::{Error, Result, VaultId};
use yore_policy::{Evidence, Need, Principal, verify};

use crate::call::Call;
use crate::engine::Engine;
use crate::evidence::Unknown;

/// A believed caller and the vault it means. Only [`Engine::identify`] makes one.
#[derive(Clone, Debug)]
pub struct Identity {
    vault: VaultId,
    did: String,
    owner: String,
    agent: Option<String>,
    is_owner: bool,
}

impl Identity {
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

    /// Whether the owner calls: nothing is redacted for them.
    #[must_use]
    pub const fn is_owner(&self) -> bool {
        self.is_owner
    }
}

impl Engine {
    /// Says who calls. It allows nothing: every operation verifies and authorises by itself.
    pub async fn identify(&self, call: &Call, verb: Verb) -> Result<Identity> {
        let (evidence, principal) = match self.believe(call, verb).await {
            Ok(believed) => believed,
            Err(error) => {
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
            is_owner: principal.is_owner() || matches!(principal.actor(), Actor::System { .. }),
        })
    }

    async fn believe(&self, call: &Call, verb: Verb) -> Result<(Evidence, Principal)> {
        let now = self.now();
        let unknown = if verb == Verb::Write { Unknown::Create } else { Unknown::Refuse };
        let evidence = self.gather(call, now, unknown).await?;
        let principal = verify(&evidence, now)?;
        Ok((evidence, principal))
    }

    /// Signs with the vault's own key what was read from it.
    pub async fn sign(&self, identity: &Identity, message: &[u8]) -> Result<[u8; 64]> {
        let permit = self.system(identity.vault, "sign what was read")?;
        self.keeper().sign(&permit, message).await
    }

    /// Counts the tokens of a text, as the built-in models cut it.
    #[must_use]
    pub fn tokens_of(&self, text: &str) -> usize {
        self.0.models.statics.tokens(text).len()
    }
}

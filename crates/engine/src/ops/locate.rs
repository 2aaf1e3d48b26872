//! Where an id lies, for a service that acts for many owners and does not say whose it is.

use yore_canon::hash::hmac_sha256;
use yore_domain::audit::{Actor, Outcome};
use yore_domain::{Error, MemoryId, Result, TenantId, VaultId};
use yore_policy::{Evidence, verify};
use yore_store::keeper::VaultInfo;
use yore_store::{CommitError, Plan, Write};

use crate::call::{Call, VaultRef};
use crate::engine::Engine;
use crate::run::{Session, Trace};

impl Engine {
    /// Returns the tenant whose owners the caller acts for; nothing when it is no service.
    pub async fn serves(&self, call: &Call) -> Result<Option<TenantId>> {
        let now = self.now();
        let Some((tenant, token)) = self.service_token(call, now).await? else { return Ok(None) };
        let evidence =
            Evidence { vault: VaultId::CATALOG, presented: vec![token], public_reads: false };
        verify(&evidence, now)?;
        Ok(Some(tenant))
    }

    /// Addresses the call of a service to the vault that holds a memory. Every other call
    /// knows its vault already.
    pub async fn locate(&self, call: &Call, memory: MemoryId) -> Result<Call> {
        let tenant = match (&call.vault, call.credentials.subject()) {
            // What is signed says whose it is, wherever else such an id may lie.
            (VaultRef::Default, None) => self.serves(call).await?,
            (VaultRef::Default, Some(_)) | (VaultRef::Id(_) | VaultRef::Owner(_), _) => None,
        };
        let Some(tenant) = tenant else { return Ok(call.clone()) };
        let permit = self.system(VaultId::CATALOG, "find where an id lies")?;
        let snapshot = self.store().snapshot(&permit).await?;
        match snapshot.located(&self.place_of(tenant, memory)).await? {
            None => Err(Error::NotFound),
            Some(VaultId::CATALOG) => {
                Err(Error::invalid("user_id", "must be given: several users have this id"))
            }
            Some(vault) => Ok(Call { vault: VaultRef::Id(vault), ..call.clone() }),
        }
    }

    /// Lists the vaults a service acts in; for everyone else there is no list.
    pub async fn served_vaults(&self, call: &Call) -> Result<Vec<VaultInfo>> {
        let Some(tenant) = self.serves(call).await? else { return Ok(Vec::new()) };
        let permit = self.system(VaultId::CATALOG, "list the vaults of a tenant")?;
        let mut vaults = self.keeper().vaults(&permit).await?;
        vaults.retain(|info| info.tenant == tenant);
        Ok(vaults)
    }

    /// Notes where the ids lie that a service is about to use, once nothing speaks against it.
    /// A note without its memory leads to a vault that has no such memory, which is as good as
    /// none; a memory without its note could not be found again.
    pub(crate) async fn note_place(&self, session: &Session, ids: Vec<MemoryId>) -> Result<()> {
        let actor = session.permit.actor();
        if ids.is_empty() || !matches!(actor, Actor::Service { .. }) {
            return Ok(());
        }
        let vault = session.permit.vault();
        let info = self.keeper().info(&session.permit).await?.ok_or(Error::NotFound)?;
        let permit = self.system(VaultId::CATALOG, "note where ids lie")?;
        let trace = Trace::count(ids.len());
        let call = Call::anonymous("engine");
        let audit = self.draft(&call, permit.actor(), "locate", session.now, Outcome::Done, trace);
        let place = |id| Write::Locate { mac: self.place_of(info.tenant, id), vault };
        let writes = ids.into_iter().map(place).collect();
        match self.store().commit(&permit, Plan { writes, ..Plan::of(audit) }).await {
            Ok(_) => Ok(()),
            Err(CommitError::Stale(what)) => Err(Error::internal(what)),
            Err(CommitError::Failed(error)) => Err(error),
        }
    }

    /// Tenants know nothing of each other's ids.
    fn place_of(&self, tenant: TenantId, memory: MemoryId) -> [u8; 32] {
        let said = [&b"place of "[..], &tenant.bytes(), &memory.bytes()].concat();
        hmac_sha256(&*self.0.parts.local_key, &said)
    }
}

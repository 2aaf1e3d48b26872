//! Tenants and their users, for whoever looks after them.
//!
//! Whoever holds the master key governs all tenants; a service or an admin of one tenant governs
//! that one, and learns of no other. A user is a vault.

use serde::{Deserialize, Serialize};
use yore_domain::audit::{Actor, Outcome};
use yore_domain::grant::{Bearer, Token, Verb};
use yore_domain::memory::Status;
use yore_domain::query::{Filter, PageRequest};
use yore_domain::{Error, Result, TenantId, Timestamp, VaultId, limits};
use yore_policy::{Evidence, Need, verify};
use yore_store::keeper::VaultInfo;
use yore_store::{CommitError, Plan, Write};

use super::sign_in::governors;
use crate::call::{Call, Secret, VaultRef};
use crate::engine::{DEFAULT_OWNER, Engine};
use crate::run::Trace;
use crate::token::{self, Seed};

/// What a vault holds that is not gone for good.
const KEPT: [Status; 4] =
    [Status::Active, Status::Candidate, Status::Quarantined, Status::Tombstoned];

/// A tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tenant {
    /// Its id.
    pub id: TenantId,
    /// Its name; the tenant of a server that was never told about tenants has none.
    pub name: Option<String>,
    /// How many users it has.
    pub users: usize,
}

/// Whoever governs, and what.
struct Governor {
    actor: Actor,
    /// The only tenant it governs.
    only: Option<TenantId>,
}

impl Governor {
    /// Another tenant is to it as if it were not there.
    fn over(&self, tenant: TenantId) -> Result<()> {
        match self.only {
            Some(own) if own != tenant => Err(Error::NotFound),
            Some(_) | None => Ok(()),
        }
    }
}

impl Engine {
    /// Lists the tenants the caller governs.
    pub async fn tenants(&self, call: &Call) -> Result<Vec<Tenant>> {
        let operation = "tenant.list";
        let governor = self.governor(call, operation).await?;
        let mut found = self.all_tenants().await?;
        found.retain(|tenant| governor.over(tenant.id).is_ok());
        let trace = Trace::count(found.len());
        self.note(call, governor, operation, trace, Vec::new()).await?;
        Ok(found)
    }

    /// Makes a tenant. Only whoever holds the master key may.
    pub async fn add_tenant(&self, call: &Call, name: String) -> Result<Tenant> {
        let operation = "tenant.add";
        let governor = self.governor(call, operation).await?;
        if governor.only.is_some() {
            return Err(Error::forbidden("only whoever holds the master key makes tenants"));
        }
        check(&name)?;
        let tenant = Tenant { id: TenantId::random(), name: Some(name.clone()), users: 0 };
        let trace = Trace::default().with("tenant", tenant.id.to_string());
        let write = Write::Tenant { id: tenant.id, name };
        self.note(call, governor, operation, trace, vec![write]).await?;
        Ok(tenant)
    }

    /// Lists the users of a tenant.
    pub async fn users(&self, call: &Call, tenant: TenantId) -> Result<Vec<VaultInfo>> {
        let operation = "user.list";
        let governor = self.governed(call, operation, tenant).await?;
        let permit = self.system(VaultId::CATALOG, operation)?;
        let mut users = self.keeper().vaults(&permit).await?;
        users.retain(|info| info.tenant == tenant);
        users.sort_by(|one, other| one.owner.cmp(&other.owner));
        let trace = Trace::count(users.len()).with("tenant", tenant.to_string());
        self.note(call, governor, operation, trace, Vec::new()).await?;
        Ok(users)
    }

    /// Returns a user of a tenant.
    pub async fn user(&self, call: &Call, tenant: TenantId, name: &str) -> Result<VaultInfo> {
        let operation = "user.look";
        let governor = self.governed(call, operation, tenant).await?;
        let permit = self.system(VaultId::CATALOG, operation)?;
        let found = self.keeper().find(&permit, tenant, name).await?.ok_or(Error::NotFound)?;
        let trace = Trace::default().with("user", found.id.to_string());
        self.note(call, governor, operation, trace, Vec::new()).await?;
        Ok(found)
    }

    /// Makes a user with an empty vault.
    pub async fn add_user(&self, call: &Call, tenant: TenantId, name: &str) -> Result<VaultInfo> {
        let operation = "user.add";
        let governor = self.governed(call, operation, tenant).await?;
        check(name)?;
        let permit = self.system(VaultId::CATALOG, operation)?;
        if self.keeper().find(&permit, tenant, name).await?.is_some() {
            return Err(Error::conflict("the user is there already"));
        }
        let made = self.keeper().create(&permit, tenant, name, self.now()).await?;
        let trace = Trace::default().with("user", made.id.to_string());
        self.note(call, governor, operation, trace, Vec::new()).await?;
        Ok(made)
    }

    /// Removes a user whose vault is empty. What is in one is deleted by its own ways, which
    /// honour holds.
    pub async fn remove_user(&self, call: &Call, tenant: TenantId, name: &str) -> Result<()> {
        let operation = "user.remove";
        let governor = self.governed(call, operation, tenant).await?;
        if (tenant, name) == (TenantId::DEFAULT, DEFAULT_OWNER) {
            return Err(Error::conflict("the owner of the server stays"));
        }
        let permit = self.system(VaultId::CATALOG, operation)?;
        let found = self.keeper().find(&permit, tenant, name).await?.ok_or(Error::NotFound)?;
        let own = self.system(found.id, operation)?;
        let empty = {
            let snapshot = self.store().snapshot(&own).await?;
            let filter = Filter { statuses: KEPT.to_vec(), ..Filter::default() };
            let page = PageRequest { limit: 1, ..PageRequest::default() };
            snapshot.count(&filter).await? == 0
                && snapshot.conversations(&Filter::default(), &page).await?.items.is_empty()
        };
        if !empty {
            return Err(Error::conflict("the vault is not empty; delete what is in it first"));
        }
        self.keeper().destroy(&own).await?;
        let trace = Trace::default().with("user", found.id.to_string());
        self.note(call, governor, operation, trace, Vec::new()).await
    }

    /// Makes the token of an administrator's sign-in, which lasts no longer than what it is made
    /// with.
    pub(super) async fn sign_in_governor(
        &self,
        call: &Call,
        tenant: TenantId,
        until: Timestamp,
        note: &str,
    ) -> Result<Secret> {
        let operation = "sign-in";
        let governor = self.governed(call, operation, tenant).await?;
        let Some(presented) = self.own_token(call).await? else { return Err(Error::NotFound) };
        if presented.bearer != Bearer::Admin(tenant) {
            return Err(Error::forbidden("a service does not sign in"));
        }
        let until = presented.expires.map_or(until, |bound| bound.min(until));
        let seed = Seed::random()?;
        let note = match &presented.note {
            Some(name) => format!("{name}, {note}"),
            None => note.to_owned(),
        };
        let token = governors(tenant, &seed, self.now(), until, &note);
        let trace = Trace::default().with("token", token.id.to_string());
        self.note(call, governor, operation, trace, vec![Write::Token(Box::new(token))]).await?;
        Ok(token::seeded_service(tenant, &seed))
    }

    /// Takes the token back that is presented.
    pub(super) async fn sign_out_governor(&self, call: &Call) -> Result<()> {
        let operation = "sign-out";
        let governor = self.governor(call, operation).await?;
        let Some(presented) = self.own_token(call).await? else { return Err(Error::NotFound) };
        let trace = Trace::default().with("token", presented.id.to_string());
        let write = Write::RevokeToken(presented.id, self.now());
        self.note(call, governor, operation, trace, vec![write]).await
    }

    /// The row of the token that is presented, among those of the catalog.
    async fn own_token(&self, call: &Call) -> Result<Option<Token>> {
        let Some(bearer) = &call.credentials.bearer else { return Ok(None) };
        let permit = self.system(VaultId::CATALOG, "look up credentials")?;
        self.store().snapshot(&permit).await?.token(&token::digest(bearer)).await
    }

    async fn all_tenants(&self) -> Result<Vec<Tenant>> {
        let permit = self.system(VaultId::CATALOG, "list the tenants")?;
        let named = self.store().snapshot(&permit).await?.tenants().await?;
        let vaults = self.keeper().vaults(&permit).await?;
        let mut ids: Vec<(TenantId, Option<String>)> = vec![(TenantId::DEFAULT, None)];
        ids.extend(named.into_iter().map(|(id, name)| (id, Some(name))));
        // Services may have served tenants that nobody named.
        for info in &vaults {
            if !ids.iter().any(|(id, _)| *id == info.tenant) {
                ids.push((info.tenant, None));
            }
        }
        let users = |id| vaults.iter().filter(|info| info.tenant == id).count();
        Ok(ids.into_iter().map(|(id, name)| Tenant { id, name, users: users(id) }).collect())
    }

    /// Whoever governs a tenant that is there.
    async fn governed(
        &self,
        call: &Call,
        operation: &'static str,
        tenant: TenantId,
    ) -> Result<Governor> {
        let governor = self.governor(call, operation).await?;
        governor.over(tenant)?;
        let known = self.all_tenants().await?.iter().any(|known| known.id == tenant);
        if !known && governor.only != Some(tenant) {
            return Err(Error::NotFound);
        }
        Ok(governor)
    }

    async fn governor(&self, call: &Call, operation: &'static str) -> Result<Governor> {
        let now = self.now();
        if let Some((tenant, token)) = self.service_token(call, now).await? {
            let evidence =
                Evidence { vault: VaultId::CATALOG, presented: vec![token], public_reads: false };
            let actor = verify(&evidence, now)?.actor();
            return Ok(Governor { actor, only: Some(tenant) });
        }
        let home = Call { vault: VaultRef::Id(VaultId::CATALOG), ..call.clone() };
        match self.enter(&home, Need::one(operation, Verb::Admin)).await {
            Ok(session) => Ok(Governor { actor: session.permit.actor(), only: None }),
            Err(Error::Unauthenticated { .. }) if self.believes(call).await => {
                Err(Error::forbidden("only whoever looks after a tenant may"))
            }
            Err(error) => Err(error),
        }
    }

    /// Commits what was done to the catalog, with who did it.
    async fn note(
        &self,
        call: &Call,
        governor: Governor,
        operation: &'static str,
        trace: Trace,
        writes: Vec<Write>,
    ) -> Result<()> {
        let permit = self.system(VaultId::CATALOG, operation)?;
        let audit = self.draft(call, governor.actor, operation, self.now(), Outcome::Done, trace);
        match self.store().commit(&permit, Plan { writes, ..Plan::of(audit) }).await {
            Ok(_) => Ok(()),
            Err(CommitError::Stale(what)) => Err(Error::internal(what)),
            Err(CommitError::Failed(error)) => Err(error),
        }
    }
}

fn check(name: &str) -> Result<()> {
    let fine = !name.trim().is_empty() && name.len() <= limits::NAME_BYTES;
    match fine && !name.chars().any(char::is_control) {
        true => Ok(()),
        false => Err(Error::invalid("name", "must be 1 to 256 bytes without control characters")),
    }
}

//! From credentials to evidence: all I/O that happens before anything is believed.

use std::borrow::Cow;

use yore_canon::did::Did;
use yore_canon::hash::hmac_sha256_matches;
use yore_canon::key::Signature;
use yore_domain::grant::Bearer;
use yore_domain::{Error, Result, TenantId, Timestamp, VaultId};
use yore_policy::{Evidence, Presented, Principal, Standing, verify};
use yore_store::Snapshot;
use yore_store::keeper::VaultInfo;

use crate::call::{Call, Claims, Credentials, Proof, Secret, VaultRef};
use crate::engine::Engine;
use crate::ops::passkeys::shown;
use crate::token::{self, Shape};

/// Whether an unknown owner gets a vault when the credential may act for any owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    Create,
    Refuse,
}

/// What is said to everyone who names an owner or a vault and presents nothing that holds.
const STRANGER: &str = "the credential does not open this vault";

/// What a bearer token turned out to be, with the place it points at.
enum Found {
    Nothing,
    InVault(VaultId, Secret),
    Anywhere(TenantId, Presented),
}

impl Found {
    /// The tenant in which names of owners are meant.
    fn tenant(&self) -> TenantId {
        match self {
            Self::Anywhere(tenant, _) => *tenant,
            Self::Nothing | Self::InVault(..) => TenantId::DEFAULT,
        }
    }
}

/// Whether the bearer token is all that is presented.
fn is_alone(call: &Call) -> bool {
    let Credentials { unreadable, claims, taken_up, passkey, certificate, .. } = &call.credentials;
    let more = [unreadable.is_some(), passkey.is_some(), certificate.is_some()];
    claims.is_empty() && taken_up.is_empty() && !more.contains(&true)
}

impl Engine {
    /// Looks up everything about a caller and believes it, or says why not, and for which vault.
    pub(crate) async fn believe(
        &self,
        call: &Call,
        now: Timestamp,
        unknown: Unknown,
    ) -> Result<(Evidence, Principal), (VaultId, Error)> {
        let gathered = self.gather(call, now, unknown).await;
        let evidence = gathered.map_err(|error| (VaultId::CATALOG, error))?;
        match verify(&evidence, now) {
            Ok(principal) => Ok((evidence, principal)),
            Err(error) => Err((evidence.vault, veiled(call, &evidence.presented, error))),
        }
    }

    /// Looks up everything about a caller. Refuses only what names no vault at all.
    async fn gather(&self, call: &Call, now: Timestamp, unknown: Unknown) -> Result<Evidence> {
        let mut presented = Vec::new();
        if let Some(reason) = call.credentials.unreadable {
            presented.push(Presented::Unreadable { reason });
        }
        let found = self.find_bearer(call, now).await?;
        let call = &addressed(call, &found);
        let home = found.tenant();
        let vault = self.find_asked(call, &found, now, unknown).await?;
        let permit = self.system(vault, "look up credentials")?;
        let (snapshot, found) = match (self.store().snapshot(&permit).await, found) {
            (Ok(snapshot), found) => (snapshot, found),
            // Whoever holds the master key is known without the vault: a vault that cannot be
            // read any more is to be examined and replaced.
            (
                Err(Error::Internal(_)),
                Found::Anywhere(_, proof @ Presented::MasterKey { proven: true }),
            ) if is_alone(call) => {
                return Ok(Evidence { vault, presented: vec![proof], public_reads: false });
            }
            (Err(error), _) => return Err(error),
        };
        match found {
            Found::Nothing => {}
            Found::Anywhere(_, proof) => presented.push(proof),
            Found::InVault(home, secret) => {
                if home != vault {
                    return Err(elsewhere());
                }
                presented.push(stored(&*snapshot, &secret).await?);
            }
        }
        for claims in &call.credentials.claims {
            presented.push(self.weigh(&*snapshot, vault, home, claims).await?);
        }
        for id in &call.credentials.taken_up {
            let grant = snapshot.grant(*id).await?.map(Box::new);
            presented.push(Presented::TakenUp { grant });
        }
        if let Some(assertion) = &call.credentials.passkey {
            presented.push(Presented::Passkey(shown(&*snapshot, assertion).await?));
        }
        let open = snapshot.setting("public_reads").await?;
        let public_reads = open.and_then(|value| value.as_bool()).unwrap_or(false);
        if let Some(certificate) = &call.credentials.certificate {
            let known = kept(&*snapshot, &certificate.kept()).await?;
            if matches!(known, Presented::Token { token: Some(_), .. }) {
                presented.push(known);
            } else if presented.is_empty() && !public_reads {
                // Browsers and proxies show certificates that were never meant for us: beside
                // another credential, or where nobody needs one, they are passed over.
                presented.push(Presented::Unreadable {
                    reason: "the client certificate stands for no grant of this vault",
                });
            }
        }
        Ok(Evidence { vault, presented, public_reads })
    }

    async fn find_bearer(&self, call: &Call, now: Timestamp) -> Result<Found> {
        let Some(secret) = &call.credentials.bearer else { return Ok(Found::Nothing) };
        Ok(match token::shape(secret) {
            Err(_) => Found::Anywhere(
                TenantId::DEFAULT,
                Presented::Unreadable { reason: "the token is not one of ours" },
            ),
            Ok(Shape::Vault(vault)) => Found::InVault(vault, secret.clone()),
            Ok(Shape::Proof(_)) => {
                // A process that started after the clock was set back dates its proofs by it.
                let proven = [now, self.0.parts.clock.machine()]
                    .into_iter()
                    .any(|now| token::proves(secret, &self.0.parts.local_key, now));
                Found::Anywhere(TenantId::DEFAULT, Presented::MasterKey { proven })
            }
            Ok(Shape::Service(tenant)) => {
                let permit = self.system(VaultId::CATALOG, "look up credentials")?;
                let snapshot = self.store().snapshot(&permit).await?;
                let mut found = stored(&*snapshot, secret).await?;
                if let Presented::Token { token, .. } = &mut found
                    && token.as_ref().is_some_and(|t| {
                        ![Bearer::Service(tenant), Bearer::Admin(tenant)].contains(&t.bearer)
                    })
                {
                    *token = None;
                }
                Found::Anywhere(tenant, found)
            }
        })
    }

    /// The service token of a call with what is known of it, when it presents one.
    pub(crate) async fn service_token(
        &self,
        call: &Call,
        now: Timestamp,
    ) -> Result<Option<(TenantId, Presented)>> {
        let shape = call.credentials.bearer.as_ref().map(token::shape);
        let Some(Ok(Shape::Service(_))) = shape else { return Ok(None) };
        Ok(match self.find_bearer(call, now).await? {
            Found::Anywhere(tenant, token) => Some((tenant, token)),
            Found::Nothing | Found::InVault(..) => None,
        })
    }

    async fn find_asked(
        &self,
        call: &Call,
        found: &Found,
        now: Timestamp,
        unknown: Unknown,
    ) -> Result<VaultId> {
        let nobody = || {
            Error::unauthenticated(match (&call.vault, found) {
                _ if is_silent(call) => "no credential was presented",
                (VaultRef::Owner(_) | VaultRef::Id(_), _) => STRANGER,
                (VaultRef::Default, _) => "the token is unknown, expired or revoked",
            })
        };
        let asked = match (&call.vault, found) {
            (VaultRef::Id(vault), _) | (VaultRef::Default, Found::InVault(vault, _)) => *vault,
            (VaultRef::Default, Found::Anywhere(tenant, _)) if *tenant != TenantId::DEFAULT => {
                return Err(Error::invalid("vault", "the owner must be named"));
            }
            (VaultRef::Default, Found::Nothing | Found::Anywhere(..)) => {
                return self.default_vault().await;
            }
            (VaultRef::Owner(owner), _) => {
                let tenant = found.tenant();
                if let Some(vault) = self.find_owned(tenant, owner).await? {
                    return Ok(vault);
                }
                return match found {
                    Found::Anywhere(_, proof) if stands(proof, now) => match unknown {
                        Unknown::Create
                            if call.credentials.claims.is_empty() && may_create(proof) =>
                        {
                            self.create_vault(tenant, owner).await
                        }
                        Unknown::Create | Unknown::Refuse => Err(Error::NotFound),
                    },
                    // Whoever has no standing learns no more of an owner who is not there than
                    // of one who is.
                    Found::Nothing => {
                        Err(self.refused_anywhere(call, now).await?.unwrap_or_else(nobody))
                    }
                    Found::Anywhere(..) => Err(nobody()),
                    Found::InVault(..) => Err(elsewhere()),
                };
            }
        };
        if asked == VaultId::CATALOG {
            return if has_master_key(found) { Ok(asked) } else { Err(nobody()) };
        }
        if matches!(found, Found::InVault(home, _) if *home != asked) {
            return Err(elsewhere());
        }
        let permit = self.system(asked, "look up credentials")?;
        match self.keeper().info(&permit).await? {
            Some(info) if has_master_key(found) || home_of(found, info.tenant) => Ok(asked),
            Some(_) | None => match found {
                Found::Nothing => {
                    Err(self.refused_anywhere(call, now).await?.unwrap_or_else(nobody))
                }
                Found::InVault(..) | Found::Anywhere(..) => Err(nobody()),
            },
        }
    }

    /// Finds the vault of an owner by name, or by the DID that signs for it.
    async fn find_owned(&self, tenant: TenantId, owner: &str) -> Result<Option<VaultId>> {
        let named = self.find_vault(tenant, owner).await?;
        if named.is_some() || !owner.starts_with("did:") {
            return Ok(named);
        }
        let permit = self.system(VaultId::CATALOG, "find a vault")?;
        let vaults = self.keeper().vaults(&permit).await?;
        let found = vaults.iter().find(|info| info.tenant == tenant && info.did == owner);
        Ok(found.map(|info| info.id))
    }

    /// Verifies signed claims and finds out how their signer stands to the vault.
    async fn weigh(
        &self,
        snapshot: &dyn Snapshot,
        vault: VaultId,
        home: TenantId,
        claims: &Claims,
    ) -> Result<Presented> {
        let Claims { grant, audience, subject, proof } = claims;
        let settings = self.settings();
        let own = self.server_did().await?;
        let (signature, shared) = match proof {
            Proof::Signature { key, message, signature } => {
                let signer = Did::of_key(key);
                let signature = signer.as_str() == grant.issuer
                    && Signature::from_slice(key.algorithm(), signature)
                        .is_ok_and(|signature| key.verify(message, &signature).is_ok());
                (signature, false)
            }
            Proof::Published(published) => {
                let vouched = match &settings.published {
                    Some(issuers) => issuers.vouch(&grant.issuer, published).await,
                    None => false,
                };
                (vouched, true)
            }
            Proof::Shared { message, tag } => {
                let secret = settings.shared_secret.as_ref();
                let matches = secret.is_some_and(|secret| {
                    hmac_sha256_matches(secret.expose().as_bytes(), message, tag)
                });
                (matches, true)
            }
        };
        let permit = self.system(vault, "look up credentials")?;
        let info = self.keeper().info(&permit).await?;
        let owner = info.as_ref().map(|info| &info.did);
        let subject = subject
            .as_ref()
            .is_none_or(|subject| info.as_ref().is_some_and(|info| is_about(subject, home, info)));
        let issuer = if shared {
            Standing::Configured
        } else if owner == Some(&grant.issuer) {
            Standing::Owner
        } else if own == grant.issuer || (!settings.did.is_empty() && settings.did == grant.issuer)
        {
            Standing::Server
        } else if settings.issuers.contains(&grant.issuer) {
            Standing::Configured
        } else {
            Standing::Stranger
        };
        let audience = (!audience.is_empty()).then(|| {
            let is_ours = |name: &String| {
                own == *name || settings.did == *name || settings.audiences.contains(name)
            };
            audience.iter().any(is_ours)
        });
        let revoked = snapshot.setting(&revocation(grant.id)).await?.is_some();
        let mut grant = Box::new(grant.clone());
        if issuer == Standing::Owner
            && let Some(kept) = snapshot.grant(grant.id).await?
        {
            // What is signed says less than the row that is kept: never more verbs than those.
            grant.verbs = grant.verbs.and(kept.verbs);
        }
        Ok(Presented::Claims { grant, signature, issuer, audience, subject, revoked })
    }

    /// What the claims of a call are refused for whichever vault they name, if for anything.
    async fn refused_anywhere(&self, call: &Call, now: Timestamp) -> Result<Option<Error>> {
        if is_silent(call) {
            return Ok(None);
        }
        let permit = self.system(VaultId::CATALOG, "look up credentials")?;
        let snapshot = self.store().snapshot(&permit).await?;
        let mut presented = Vec::new();
        for claims in &call.credentials.claims {
            let anyone = Claims { subject: None, ..claims.clone() };
            presented
                .push(self.weigh(&*snapshot, VaultId::CATALOG, TenantId::DEFAULT, &anyone).await?);
        }
        if let Some(reason) = call.credentials.unreadable {
            presented.push(Presented::Unreadable { reason });
        }
        let evidence = Evidence { vault: VaultId::CATALOG, presented, public_reads: false };
        let asked = match &call.vault {
            VaultRef::Owner(owner) => Some(owner),
            VaultRef::Default | VaultRef::Id(_) => None,
        };
        let other = |claims: &Claims| claims.subject.is_some() && claims.subject.as_ref() != asked;
        let narrow = call.credentials.claims.iter().any(other);
        Ok(match verify(&evidence, now) {
            Err(error) => Some(veiled(call, &evidence.presented, error)),
            // In a vault that is there they would be for another one.
            Ok(_) if narrow => Some(Error::forbidden("the grant is for another vault")),
            Ok(_) => None,
        })
    }
}

/// Whether nothing at all is presented.
fn is_silent(call: &Call) -> bool {
    let Credentials { bearer, claims, certificate, passkey, taken_up, unreadable } =
        &call.credentials;
    bearer.is_none()
        && passkey.is_none()
        && claims.is_empty()
        && certificate.is_none()
        && taken_up.is_empty()
        && unreadable.is_none()
}

/// What is said of a credential that opens another vault than the one that is asked for.
fn elsewhere() -> Error {
    Error::forbidden("the credential is for another vault")
}

/// Whoever names an owner or a vault and presents nothing with any standing there learns neither
/// what was wrong nor, by that, whether the vault is there.
fn veiled(call: &Call, presented: &[Presented], error: Error) -> Error {
    let named = call.vault != VaultRef::Default
        || call.credentials.claims.iter().any(|claims| claims.subject.is_some());
    let stands = |one: &Presented| match one {
        Presented::MasterKey { proven } => *proven,
        Presented::Token { token, .. } => token.is_some(),
        Presented::Claims { signature, issuer, .. } => *signature && *issuer != Standing::Stranger,
        Presented::Passkey(passkey) => passkey.known && passkey.signature,
        Presented::TakenUp { .. } | Presented::Unreadable { .. } => false,
    };
    let stranger = named && !is_silent(call) && !presented.iter().any(stands);
    if stranger && matches!(error, Error::Unauthenticated { .. }) {
        return Error::unauthenticated(STRANGER);
    }
    error
}

/// Claims that say whose vault they open are looked up there when nothing else says it.
fn addressed<'a>(call: &'a Call, found: &Found) -> Cow<'a, Call> {
    let silent = match (&call.vault, found) {
        (VaultRef::Default, Found::Nothing) => true,
        // A service shows somebody's grant: it acts for whom the grant is about.
        (VaultRef::Default, Found::Anywhere(_, Presented::Token { .. })) => true,
        (VaultRef::Default, Found::InVault(..) | Found::Anywhere(..))
        | (VaultRef::Id(_) | VaultRef::Owner(_), _) => false,
    };
    match call.credentials.subject().filter(|_| silent) {
        Some(owner) => {
            Cow::Owned(Call { vault: VaultRef::Owner(owner.to_owned()), ..call.clone() })
        }
        None => Cow::Borrowed(call),
    }
}

/// Whether claims that name an owner mean the owner of this vault. A DID is one person's
/// everywhere, a name only within its tenant.
fn is_about(subject: &str, home: TenantId, info: &VaultInfo) -> bool {
    subject == info.did || (subject == info.owner && home == info.tenant)
}

/// The setting that says a grant was revoked, whether or not its row is kept here.
pub(crate) fn revocation(grant: yore_domain::GrantId) -> String {
    format!("revoked:{grant}")
}

/// Whoever holds the master key may open every vault, and nobody else the catalog.
fn has_master_key(found: &Found) -> bool {
    matches!(found, Found::Anywhere(_, Presented::MasterKey { proven: true }))
}

/// A service serves the owners of its own tenant.
fn home_of(found: &Found, tenant: TenantId) -> bool {
    match found {
        Found::Anywhere(home, _) => *home == tenant,
        Found::Nothing | Found::InVault(..) => true,
    }
}

/// Whether a credential counts in the vaults of a tenant.
fn stands(proof: &Presented, now: Timestamp) -> bool {
    match proof {
        Presented::MasterKey { proven } => *proven,
        Presented::Token { token, .. } => token.as_ref().is_some_and(|t| t.holds_at(now)),
        Presented::Claims { .. }
        | Presented::Passkey(_)
        | Presented::TakenUp { .. }
        | Presented::Unreadable { .. } => false,
    }
}

/// Whether somebody who stands in a tenant makes vaults by writing; an admin does not write.
fn may_create(proof: &Presented) -> bool {
    match proof {
        Presented::Token { token, .. } => {
            token.as_ref().is_some_and(|t| !matches!(t.bearer, Bearer::Admin(_)))
        }
        Presented::MasterKey { .. } => true,
        Presented::Claims { .. }
        | Presented::Passkey(_)
        | Presented::TakenUp { .. }
        | Presented::Unreadable { .. } => false,
    }
}

async fn stored(snapshot: &dyn Snapshot, secret: &Secret) -> Result<Presented> {
    kept(snapshot, &token::digest(secret)).await
}

/// What is known of a credential by what is kept of it.
async fn kept(snapshot: &dyn Snapshot, hash: &str) -> Result<Presented> {
    let token = snapshot.token(hash).await?.map(Box::new);
    let grant = match token.as_ref().map(|token| &token.bearer) {
        Some(Bearer::Grant(id)) => snapshot.grant(*id).await?.map(Box::new),
        Some(Bearer::Owner | Bearer::Renewal(_) | Bearer::Service(_) | Bearer::Admin(_)) | None => {
            None
        }
    };
    Ok(Presented::Token { token, grant })
}

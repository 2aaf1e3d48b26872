//! Giving agents authority over a vault, and taking it back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use yore_canon::captoken::Unsigned;
use yore_canon::encode::base64url;
use yore_canon::hash::Blake3;
use yore_canon::json::Object;
use yore_domain::class::{Label, Sensitivity};
use yore_domain::grant::{Bearer, Grant, Labels, Token, Verb, Verbs};
use yore_domain::scope::ScopeRule;
use yore_domain::{AgentId, Error, GrantId, Result, Span, Timestamp, TokenId, VaultId};
use yore_policy::Need;
use yore_policy::regulated::may_disclose;
use yore_store::keeper::VaultInfo;
use yore_store::{Snapshot, Write};

use super::guardian::guardianship;
use super::renew::Renewal;
use crate::call::Call;
use crate::engine::Engine;
use crate::evidence::revocation;
use crate::mutate::epochs;
use crate::run::{Planned, Session, Trace};
use crate::token::{self, Seed};

/// What a new grant shall allow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GrantRequest {
    /// Whom it is for.
    pub agent: AgentId,
    /// What it allows.
    pub verbs: Verbs,
    /// What it may read.
    pub read: Labels,
    /// What it may write.
    pub write: Labels,
    /// The highest sensitivity it touches.
    pub ceiling: Sensitivity,
    /// The scope it is bound to.
    #[serde(default)]
    pub scope: ScopeRule,
    /// How long it holds; absent means until it is revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Span>,
    /// A note for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What a grant shall allow besides, for a while.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Extension {
    /// For how long.
    pub ttl: Span,
    /// What else it may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<Label>,
    /// What else it may write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<Label>,
    /// The highest sensitivity it touches, when that is higher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Sensitivity>,
    /// A note for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A grant with the token that stands for it, told once.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Issued {
    /// The grant.
    pub grant: Grant,
    /// The token.
    pub token: String,
}

impl std::fmt::Debug for Issued {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issued").field("grant", &self.grant).finish_non_exhaustive()
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Issue {
    pub(super) request: GrantRequest,
    #[serde(skip)]
    pub(super) seed: Seed,
    /// What renews the token, which then lives for a short time only.
    #[serde(skip)]
    pub(super) renewal: Option<Renewal>,
}

#[derive(Debug, Serialize)]
struct Widen {
    base: GrantId,
    extension: Extension,
    #[serde(skip)]
    seed: Seed,
}

/// The id under which a grant is revoked that names itself in its own way.
#[must_use]
pub fn grant_named(name: &str) -> GrantId {
    name.parse().unwrap_or_else(|_| {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&Blake3::of(name).as_bytes()[..16]);
        GrantId::from_bytes(bytes)
    })
}

impl Engine {
    /// Gives an agent a grant and a token for it. Nobody gives more than they hold.
    pub async fn issue_grant(&self, call: &Call, request: GrantRequest) -> Result<Issued> {
        let seed = self.seed(call, "grant")?;
        let need = Need::one("grant.issue", Verb::Grant);
        let input = Issue { request, seed: seed.clone(), renewal: None };
        let (grant, vault): (Grant, VaultId) = self
            .change(call, need, input, |engine, session, snapshot, input| {
                Box::pin(issue(engine, session, snapshot, input))
            })
            .await?;
        let token = token::seeded(vault, &seed);
        Ok(Issued { grant, token: token.expose().to_owned() })
    }

    /// Gives an agent a grant as a capability token that the vault's own key signs; `claims`
    /// says what the token says. Only the owner may, and the grant is kept like any other, so
    /// that it is listed and revoked.
    pub async fn issue_capability(
        &self,
        call: &Call,
        request: GrantRequest,
        claims: impl FnOnce(&Grant) -> Object,
    ) -> Result<Issued> {
        let need = Need::one("grant.capability", Verb::Grant);
        let (grant, vault): (Grant, VaultId) = self
            .change(call, need, request, |engine, session, snapshot, request| {
                Box::pin(async move {
                    if !session.is_owner() {
                        return Err(Error::forbidden("only the owner signs capability tokens"));
                    }
                    let grant = granted(engine, session, request).await?;
                    let guarded = guardianship(snapshot).await?;
                    may_disclose(&session.permit, grant.agent.as_str(), &grant.read, &guarded)?;
                    let trace = traced(&grant);
                    let writes = vec![Write::Grant(Box::new(grant.clone()))];
                    let mut planned =
                        Planned::done((grant, session.permit.vault()), writes).traced(trace);
                    planned.preconditions = epochs(snapshot.epochs().await?);
                    Ok(planned)
                })
            })
            .await?;
        let unsigned = Unsigned::new(&claims(&grant));
        let permit = self.system(vault, "sign a capability token")?;
        let signature = self.keeper().sign(&permit, unsigned.digest().as_bytes()).await?;
        Ok(Issued { grant, token: unsigned.signed(&signature) })
    }

    /// Lists the grants of the vault.
    pub async fn grants(&self, call: &Call) -> Result<Vec<Grant>> {
        self.look(call, Need::one("grant.list", Verb::Grant), (), |_, _, snapshot, ()| {
            Box::pin(async move {
                let grants = snapshot.grants().await?;
                let trace = Trace::count(grants.len());
                Ok((grants, trace))
            })
        })
        .await
    }

    /// Returns one grant.
    pub async fn grant(&self, call: &Call, grant: GrantId) -> Result<Grant> {
        self.look(call, Need::one("grant.show", Verb::Grant), grant, |_, _, snapshot, grant| {
            Box::pin(async move {
                let found = snapshot.grant(*grant).await?.ok_or(Error::NotFound)?;
                Ok((found, Trace::default().with("grant", grant.to_string())))
            })
        })
        .await
    }

    /// Lets a grant hold for a span from now on. Only the owner may: an agent would otherwise
    /// outlive its own.
    pub async fn extend_grant(&self, call: &Call, grant: GrantId, span: Span) -> Result<Grant> {
        let need = Need::one("grant.extend", Verb::Grant);
        self.change(call, need, (grant, span), |_, session, snapshot, (grant, span)| {
            Box::pin(async move {
                if !session.is_owner() {
                    return Err(Error::forbidden("only the owner extends a grant"));
                }
                let mut found = snapshot.grant(*grant).await?.ok_or(Error::NotFound)?;
                if found.revoked.is_some() {
                    return Err(Error::conflict("the grant was revoked"));
                }
                found.expires = Some(until(session.now, *span)?);
                let writes = vec![Write::Grant(Box::new(found.clone()))];
                let trace = Trace::default().with("grant", grant.to_string());
                Ok(Planned::done(found, writes).traced(trace))
            })
        })
        .await
    }

    /// Gives the agent of a grant more for a while, as a grant of its own that falls with the
    /// first. Only the owner may.
    pub async fn widen_grant(
        &self,
        call: &Call,
        grant: GrantId,
        extension: Extension,
    ) -> Result<Issued> {
        let seed = self.seed(call, "grant")?;
        let need = Need::one("grant.issue", Verb::Grant);
        let input = Widen { base: grant, extension, seed: seed.clone() };
        let (grant, vault): (Grant, VaultId) = self
            .change(call, need, input, |engine, session, snapshot, input| {
                Box::pin(widen(engine, session, snapshot, input))
            })
            .await?;
        let token = token::seeded(vault, &seed);
        Ok(Issued { grant, token: token.expose().to_owned() })
    }

    /// Signs a grant with the vault's own key, so that it can be shown elsewhere. `write` says
    /// in which form: it makes the text to be signed, and the signature is joined to it by a
    /// dot. Only the owner may.
    pub async fn sign_grant<F>(&self, call: &Call, grant: GrantId, write: F) -> Result<String>
    where
        F: FnOnce(&Grant, &VaultInfo) -> Result<String>,
    {
        self.keep(call, Need::one("grant.sign", Verb::Grant), async |engine, permit| {
            if !permit.principal().is_owner() {
                return Err(Error::forbidden("only the owner signs a grant"));
            }
            let info = engine.keeper().info(permit).await?.ok_or(Error::NotFound)?;
            let snapshot = engine.store().snapshot(permit).await?;
            let found = snapshot.grant(grant).await?.ok_or(Error::NotFound)?;
            drop(snapshot);
            let text = write(&found, &info)?;
            let signature = engine.keeper().sign(permit, text.as_bytes()).await?;
            let trace = Trace::default().with("grant", grant.to_string());
            Ok((format!("{text}.{}", base64url(&signature)), trace))
        })
        .await
    }

    /// Takes a grant back, wherever it was made, and every grant that was given under it. They
    /// are refused from the next call on.
    pub async fn revoke_grant(&self, call: &Call, grant: GrantId) -> Result<()> {
        let need = Need::one("grant.revoke", Verb::Grant);
        self.change(call, need, grant, |_, session, snapshot, grant| {
            Box::pin(async move {
                if !session.is_owner() {
                    return Err(Error::NotFound);
                }
                if snapshot.grant(*grant).await?.is_some_and(|found| found.revoked.is_some()) {
                    return Ok(Planned::done((), Vec::new()));
                }
                let mut writes = Vec::new();
                let fallen = with_descendants(snapshot, *grant).await?;
                for grant in &fallen {
                    if snapshot.grant(*grant).await?.is_some() {
                        writes.push(Write::RevokeGrant(*grant, session.now));
                    }
                    // Claims signed elsewhere have no row here; this setting speaks for both.
                    let at = session.now.to_string().into();
                    writes.push(Write::Setting(revocation(*grant), at));
                }
                let trace = Trace::default()
                    .with("grant", grant.to_string())
                    .with("below", fallen.len() - 1);
                let mut planned = Planned::done((), writes).traced(trace);
                // A grant given meanwhile under one of these must fall with them.
                planned.preconditions = epochs(snapshot.epochs().await?);
                Ok(planned)
            })
        })
        .await
    }
}

pub(super) async fn issue(
    engine: &Engine,
    session: &Session,
    snapshot: &dyn Snapshot,
    input: &Issue,
) -> Result<Planned<(Grant, VaultId)>> {
    let vault = session.permit.vault();
    let mut grant = granted(engine, session, &input.request).await?;
    let guarded = guardianship(snapshot).await?;
    may_disclose(&session.permit, grant.agent.as_str(), &grant.read, &guarded)?;
    let held = session.permit.principal().grants();
    for held in held {
        if snapshot.setting(&revocation(held.id)).await?.is_some() {
            return Err(Error::unauthenticated("the grant is expired or revoked"));
        }
        grant.expires = earlier(grant.expires, held.expires);
        within(&grant, held)?;
    }
    let trace = traced(&grant);
    let mut writes = vec![Write::Grant(Box::new(grant.clone()))];
    match &input.renewal {
        Some(renewal) => writes.extend(renewal.tokens(vault, &grant, &input.seed, session.now)),
        None => writes.push(Write::Token(Box::new(Token {
            id: TokenId::random(),
            hash: token::digest(&token::seeded(vault, &input.seed)),
            bearer: Bearer::Grant(grant.id),
            issued: session.now,
            expires: None,
            revoked: None,
            note: None,
        }))),
    }
    if !held.is_empty() {
        let above: Vec<String> = held.iter().map(|held| held.id.to_string()).collect();
        writes.push(Write::Setting(lineage(grant.id), above.into()));
    }
    let mut planned = Planned::done((grant, vault), writes).traced(trace);
    planned.preconditions = epochs(snapshot.epochs().await?);
    Ok(planned)
}

async fn widen(
    engine: &Engine,
    session: &Session,
    snapshot: &dyn Snapshot,
    input: &Widen,
) -> Result<Planned<(Grant, VaultId)>> {
    let Widen { base, extension, seed } = input;
    if !session.is_owner() {
        return Err(Error::forbidden("only the owner extends a grant"));
    }
    let held = snapshot.grant(*base).await?.ok_or(Error::NotFound)?;
    if held.revoked.is_some() {
        return Err(Error::conflict("the grant was revoked"));
    }
    let more = |had: &Labels, more: &[Label]| match had {
        Labels::Any | Labels::AnyWith(_) if more.iter().all(|label| had.reach(label)) => {
            had.clone()
        }
        Labels::Any => Labels::AnyWith(more.to_vec()),
        Labels::AnyWith(had) => Labels::AnyWith(had.iter().chain(more).cloned().collect()),
        Labels::Under(had) => Labels::Under(had.iter().chain(more).cloned().collect()),
    };
    let mut verbs: Vec<Verb> = held.verbs.iter().collect();
    verbs.extend((!extension.read.is_empty()).then_some(Verb::Read));
    verbs.extend((!extension.write.is_empty()).then_some(Verb::Write));
    let request = GrantRequest {
        agent: held.agent,
        verbs: Verbs::of(&verbs),
        read: more(&held.read, &extension.read),
        write: more(&held.write, &extension.write),
        ceiling: extension.ceiling.map_or(held.ceiling, |ceiling| ceiling.max(held.ceiling)),
        scope: held.scope,
        ttl: Some(extension.ttl),
        note: extension.note.clone(),
    };
    let input = Issue { request, seed: seed.clone(), renewal: None };
    let mut planned = issue(engine, session, snapshot, &input).await?;
    let above = vec![base.to_string()];
    planned.writes.push(Write::Setting(lineage(planned.output.0.id), above.into()));
    planned.trace = planned.trace.with("extends", base.to_string());
    Ok(planned)
}

/// The grant that a request asks for, given now.
pub(super) async fn granted(
    engine: &Engine,
    session: &Session,
    request: &GrantRequest,
) -> Result<Grant> {
    if request.verbs == Verbs::NONE {
        return Err(Error::invalid("verbs", "must not be empty"));
    }
    let info = engine.keeper().info(&session.permit).await?.ok_or(Error::NotFound)?;
    Ok(Grant {
        id: GrantId::random(),
        agent: request.agent.clone(),
        issuer: info.did,
        verbs: request.verbs,
        read: request.read.clone(),
        write: request.write.clone(),
        ceiling: request.ceiling,
        scope: request.scope.clone(),
        not_before: None,
        expires: request.ttl.map(|span| until(session.now, span)).transpose()?,
        issued: session.now,
        revoked: None,
        note: request.note.clone(),
    })
}

fn traced(grant: &Grant) -> Trace {
    Trace::default()
        .with("grant", grant.id.to_string())
        .with("agent", grant.agent.as_str())
        .with("read", grant.read.to_string())
        .with("write", grant.write.to_string())
        .with("max", grant.ceiling.as_str())
        .with("until", grant.expires.map(|at| at.to_string()))
}

/// The setting that names the grants under which an agent gave this one.
fn lineage(grant: GrantId) -> String {
    format!("given-under:{grant}")
}

/// The grants under which an agent gave this one; none when the owner gave it.
async fn issuers(snapshot: &dyn Snapshot, grant: GrantId) -> Result<Vec<GrantId>> {
    match snapshot.setting(&lineage(grant)).await? {
        Some(above) => serde_json::from_value(above).map_err(Error::internal),
        None => Ok(Vec::new()),
    }
}

/// A grant and all that were given under it, at any remove.
pub(super) async fn with_descendants(
    snapshot: &dyn Snapshot,
    grant: GrantId,
) -> Result<Vec<GrantId>> {
    let mut others = Vec::new();
    for other in snapshot.grants().await? {
        let above = issuers(snapshot, other.id).await?;
        if !above.is_empty() {
            others.push((other.id, above));
        }
    }
    let mut fallen = vec![grant];
    let mut next = 0;
    while let Some(grant) = fallen.get(next).copied() {
        next += 1;
        for (other, above) in &others {
            if above.contains(&grant) && !fallen.contains(other) {
                fallen.push(*other);
            }
        }
    }
    Ok(fallen)
}

pub(crate) fn until(now: Timestamp, span: Span) -> Result<Timestamp> {
    if span == Span::ZERO {
        return Err(Error::invalid("ttl", "must be longer than nothing"));
    }
    Ok(now.plus(span))
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Whether a new grant allows nothing that the issuer's own does not.
fn within(new: &Grant, held: &Grant) -> Result<()> {
    let more =
        |what: &str| Err(Error::forbidden(format!("{what} goes beyond the issuer's own grant")));
    if new.verbs.and(held.verbs) != new.verbs {
        return more("verbs");
    }
    if !new.read.is_within(&held.read) {
        return more("read");
    }
    if !new.write.is_within(&held.write) {
        return more("write");
    }
    if new.ceiling > held.ceiling {
        return more("ceiling");
    }
    let ScopeRule { user, project, agent, visibility } = &held.scope;
    let kept = |held: &Option<String>, new: &Option<String>| held.is_none() || held == new;
    if !(kept(user, &new.scope.user)
        && kept(project, &new.scope.project)
        && kept(agent, &new.scope.agent)
        && (visibility.is_none() || *visibility == new.scope.visibility))
    {
        return more("scope");
    }
    Ok(())
}

//! Giving agents authority over a vault, and taking it back.

use serde::{Deserialize, Serialize};
use yore_domain::class::Sensitivity;
use yore_domain::grant::{Bearer, Grant, Labels, Token, Verb, Verbs};
use yore_domain::scope::ScopeRule;
use yore_domain::{AgentId, Error, GrantId, Result, Span, Timestamp, TokenId, VaultId};
use yore_policy::Need;
use yore_store::Write;

use crate::call::Call;
use crate::engine::Engine;
use crate::evidence::revocation;
use crate::run::{Planned, Session, Trace};
use crate::token::{self, Seed};

/// What a new grant shall allow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

/// A grant with the token that stands for it, told once.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
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
struct Issue {
    request: GrantRequest,
    #[serde(skip)]
    seed: Seed,
}

impl Engine {
    /// Gives an agent a grant and a token for it. Nobody gives more than they hold.
    pub async fn issue_grant(&self, call: &Call, request: GrantRequest) -> Result<Issued> {
        let seed = self.seed(call, "grant")?;
        let need = Need::one("grant.issue", Verb::Grant);
        let input = Issue { request, seed: seed.clone() };
        let (grant, vault): (Grant, VaultId) = self
            .change(call, need, input, |engine, session, _, input| {
                Box::pin(issue(engine, session, input))
            })
            .await?;
        let token = token::seeded(vault, &seed);
        Ok(Issued { grant, token: token.expose().to_owned() })
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

    /// Lets a grant hold for a span from now on.
    pub async fn extend_grant(&self, call: &Call, grant: GrantId, span: Span) -> Result<Grant> {
        let need = Need::one("grant.extend", Verb::Grant);
        self.change(call, need, (grant, span), |_, session, snapshot, (grant, span)| {
            Box::pin(async move {
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

    /// Takes a grant back, wherever it was made. It is refused from the next call on.
    pub async fn revoke_grant(&self, call: &Call, grant: GrantId) -> Result<()> {
        let need = Need::one("grant.revoke", Verb::Grant);
        self.change(call, need, grant, |_, session, snapshot, grant| {
            Box::pin(async move {
                if !session.is_owner() {
                    return Err(Error::NotFound);
                }
                let mut writes = Vec::new();
                if let Some(found) = snapshot.grant(*grant).await? {
                    if found.revoked.is_some() {
                        return Ok(Planned::done((), writes));
                    }
                    writes.push(Write::RevokeGrant(*grant, session.now));
                }
                // Claims signed elsewhere have no row here; this setting speaks for both.
                let at = session.now.to_string().into();
                writes.push(Write::Setting(revocation(*grant), at));
                let trace = Trace::default().with("grant", grant.to_string());
                Ok(Planned::done((), writes).traced(trace))
            })
        })
        .await
    }
}

async fn issue(
    engine: &Engine,
    session: &Session,
    input: &Issue,
) -> Result<Planned<(Grant, VaultId)>> {
    let request = &input.request;
    let vault = session.permit.vault();
    let info = engine.keeper().info(&session.permit).await?.ok_or(Error::NotFound)?;
    let mut grant = Grant {
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
    };
    if grant.verbs == Verbs::NONE {
        return Err(Error::invalid("verbs", "must not be empty"));
    }
    for held in session.permit.principal().grants() {
        grant.expires = earlier(grant.expires, held.expires);
        within(&grant, held)?;
    }
    let token = Token {
        id: TokenId::random(),
        hash: token::digest(&token::seeded(vault, &input.seed)),
        bearer: Bearer::Grant(grant.id),
        issued: session.now,
        expires: None,
        revoked: None,
        note: None,
    };
    let trace =
        Trace::default().with("grant", grant.id.to_string()).with("agent", grant.agent.as_str());
    let writes = vec![Write::Grant(Box::new(grant.clone())), Write::Token(Box::new(token))];
    Ok(Planned::done((grant, vault), writes).traced(trace))
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
    if !inside(&new.read, &held.read) {
        return more("read");
    }
    if !inside(&new.write, &held.write) {
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

fn inside(new: &Labels, held: &Labels) -> bool {
    match (new, held) {
        (_, Labels::Any) => true,
        (Labels::Any, Labels::Under(_)) => false,
        (Labels::Under(labels), Labels::Under(_)) => labels.iter().all(|label| held.reach(label)),
    }
}

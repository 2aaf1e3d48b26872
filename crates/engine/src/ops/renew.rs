//! Tokens of a grant that live for a short time and are renewed, for agents that were let in by
//! clicking.
//!
//! What renews a token counts once: it comes with its successor. One that comes again was stolen
//! from somebody, and nobody can tell from whom, so the grant is taken back.

use yore_domain::audit::{Actor, Outcome};
use yore_domain::grant::{Bearer, Grant, Token, Verb};
use yore_domain::{Error, Result, Span, Timestamp, TokenId, VaultId};
use yore_policy::Need;
use yore_store::{CommitError, Durability, Plan, Snapshot, Write};

use super::grants::{GrantRequest, Issue, issue, with_descendants};
use crate::call::{Call, Secret};
use crate::engine::Engine;
use crate::evidence::revocation;
use crate::mutate::epochs;
use crate::run::Trace;
use crate::token::{self, Seed, Shape};

/// How long a token lives before it is renewed.
const LIFE: Span = Span::seconds(8 * 3600);
/// How often a renewal is tried when the vault moved underneath.
const ATTEMPTS: usize = 3;

/// A grant with a token that lives for a while, and what renews it.
#[derive(Clone)]
pub struct Renewable {
    /// The grant.
    pub grant: Grant,
    /// The token.
    pub token: Secret,
    /// How long the token lives.
    pub life: Span,
    /// What is exchanged for the next one.
    pub renewal: Secret,
}

impl std::fmt::Debug for Renewable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Renewable").field("grant", &self.grant).finish_non_exhaustive()
    }
}

/// What renews the token of a grant.
#[derive(Clone, Debug)]
pub(super) struct Renewal {
    seed: Seed,
    /// Which client may present it.
    client: String,
}

impl Renewal {
    /// The tokens of a grant: one that opens the vault for a while, one that renews it.
    pub(super) fn tokens(
        &self,
        vault: VaultId,
        grant: &Grant,
        seed: &Seed,
        now: Timestamp,
    ) -> [Write; 2] {
        let made = |seed: &Seed, bearer, expires, note| {
            Write::Token(Box::new(Token {
                id: TokenId::random(),
                hash: token::digest(&token::seeded(vault, seed)),
                bearer,
                issued: now,
                expires,
                revoked: None,
                note,
            }))
        };
        let opens = made(seed, Bearer::Grant(grant.id), Some(now.plus(LIFE)), None);
        let renews = Bearer::Renewal(grant.id);
        [opens, made(&self.seed, renews, grant.expires, Some(self.client.clone()))]
    }
}

impl Engine {
    /// Gives an agent a grant whose token is renewed again and again, by the same client only.
    pub async fn connect(
        &self,
        call: &Call,
        request: GrantRequest,
        client: String,
    ) -> Result<Renewable> {
        let (seed, next) = (Seed::random()?, Seed::random()?);
        let renewal = Some(Renewal { seed: next.clone(), client });
        let input = Issue { request, seed: seed.clone(), renewal };
        let need = Need::one("grant.issue", Verb::Grant);
        let (grant, vault): (Grant, VaultId) = self
            .change(call, need, input, |engine, session, snapshot, input| {
                Box::pin(issue(engine, session, snapshot, input))
            })
            .await?;
        let (token, renewal) = (token::seeded(vault, &seed), token::seeded(vault, &next));
        Ok(Renewable { grant, token, life: LIFE, renewal })
    }

    /// Exchanges what renews a token. The call needs no other credential.
    pub async fn renew(&self, call: &Call, renewal: &Secret, client: &str) -> Result<Renewable> {
        let unknown = || Error::unauthenticated("the token for renewal is unknown or too old");
        let Ok(Shape::Vault(vault)) = token::shape(renewal) else { return Err(unknown()) };
        let permit = self.system(vault, "renew a token")?;
        if self.keeper().info(&permit).await?.is_none() {
            return Err(unknown());
        }
        for _ in 0..ATTEMPTS {
            let now = self.now();
            let snapshot = self.store().snapshot(&permit).await?;
            let known = snapshot.token(&token::digest(renewal)).await?;
            let Some(Token { bearer: Bearer::Renewal(grant), id, expires, revoked, note, .. }) =
                known
            else {
                return Err(unknown());
            };
            let grant = snapshot.grant(grant).await?.ok_or_else(unknown)?;
            if note.as_deref() != Some(client) {
                return Err(unknown());
            }
            let again = revoked.is_some();
            if !again && (!grant.holds_at(now) || expires.is_some_and(|at| at <= now)) {
                return Err(unknown());
            }
            let (seed, next) = (Seed::random()?, Seed::random()?);
            let (writes, outcome) = if again {
                let code = unknown().code().to_owned();
                (taking_back(&*snapshot, &grant, now).await?, Outcome::Refused { code })
            } else {
                let renewal = Renewal { seed: next.clone(), client: client.to_owned() };
                let mut writes = vec![Write::RevokeToken(id, now)];
                writes.extend(renewal.tokens(vault, &grant, &seed, now));
                (writes, Outcome::Done)
            };
            let preconditions = epochs(snapshot.epochs().await?);
            drop(snapshot);
            let actor = Actor::Agent { agent: grant.agent.to_string(), grant: grant.id };
            let trace = Trace::default().with("grant", grant.id.to_string());
            let audit = self.draft(call, actor, "grant.renew", now, outcome, trace);
            let durability = Durability::Strict;
            let plan = Plan { writes, preconditions, durability, ..Plan::of(audit) };
            match self.store().commit(&permit, plan).await {
                Ok(_) if again => {
                    let reason = "the token for renewal was used before; the grant is taken back";
                    return Err(Error::unauthenticated(reason));
                }
                Ok(_) => {
                    let (token, renewal) =
                        (token::seeded(vault, &seed), token::seeded(vault, &next));
                    return Ok(Renewable { grant, token, life: LIFE, renewal });
                }
                Err(CommitError::Stale(_)) => {}
                Err(CommitError::Failed(error)) => return Err(error),
            }
        }
        Err(Error::conflict("others renewed at the same time"))
    }
}

/// What takes a grant back, and every grant that was given under it.
async fn taking_back(snapshot: &dyn Snapshot, grant: &Grant, now: Timestamp) -> Result<Vec<Write>> {
    let mut writes = Vec::new();
    for fallen in with_descendants(snapshot, grant.id).await? {
        writes.push(Write::RevokeGrant(fallen, now));
        writes.push(Write::Setting(revocation(fallen), now.to_string().into()));
    }
    Ok(writes)
}

//! Signing in: a token of its own for a while, for the owner, a guardian or an administrator.
//!
//! A sign-in never allows more, and never lasts longer, than what it was made with. It is one
//! more token where tokens are kept, so it is listed and taken back like any other.

use serde::{Deserialize, Serialize};
use yore_domain::grant::{Bearer, Token, Verb};
use yore_domain::{Error, Result, Span, TenantId, Timestamp, TokenId, VaultId};
use yore_policy::Need;
use yore_policy::regulated::may_guard;
use yore_store::Write;

use super::guardian::guardianship;
use super::passkeys::{counted, trace};
use crate::call::{Assertion, Call, Secret};
use crate::engine::Engine;
use crate::run::{Planned, Trace};
use crate::token::{self, Seed, Shape};

/// Who signed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SignedIn {
    /// The owner of a vault.
    Owner,
    /// Who decides for the child whose vault it is.
    Guardian,
    /// Who looks after a tenant.
    Admin(TenantId),
}

/// A sign-in.
#[derive(Clone, Debug)]
pub struct Session {
    /// Its token.
    pub token: Secret,
    /// Whose it is.
    pub who: SignedIn,
}

#[derive(Debug, Serialize)]
struct SigningIn {
    life: Span,
    note: String,
    #[serde(skip)]
    seed: Seed,
    #[serde(skip)]
    presented: Option<String>,
    #[serde(skip)]
    passkey: Option<Box<Assertion>>,
}

impl Engine {
    /// Makes the token of a sign-in. It is always a new one, so nobody can choose it beforehand.
    pub async fn sign_in(&self, call: &Call, life: Span, note: &str) -> Result<Session> {
        let bearer = call.credentials.bearer.as_ref();
        if let Some(Ok(Shape::Service(tenant))) = bearer.map(token::shape) {
            let until = self.now().plus(life);
            let token = self.sign_in_governor(call, tenant, until, note).await?;
            return Ok(Session { token, who: SignedIn::Admin(tenant) });
        }
        let seed = Seed::random()?;
        let input = SigningIn {
            life,
            note: note.to_owned(),
            seed: seed.clone(),
            presented: bearer.map(token::digest),
            passkey: call.credentials.passkey.clone(),
        };
        let need = Need::one("sign-in", Verb::Read);
        let (vault, who): (VaultId, SignedIn) = self
            .change(call, need, input, |_, session, snapshot, input| {
                Box::pin(async move {
                    let SigningIn { life, note, seed, presented, passkey } = input;
                    let (vault, now) = (session.permit.vault(), session.now);
                    let (bearer, who) = match session.permit.principal().grants() {
                        [] if session.is_owner() => (Bearer::Owner, SignedIn::Owner),
                        [grant] => {
                            may_guard(&session.permit, &guardianship(snapshot).await?)?;
                            (Bearer::Grant(grant.id), SignedIn::Guardian)
                        }
                        _ => return Err(Error::forbidden("only the owner or a guardian signs in")),
                    };
                    let before = match presented {
                        Some(hash) => snapshot.token(hash).await?.and_then(|token| token.expires),
                        None => None,
                    };
                    // A link lives for minutes; what it was made from lasts.
                    let bound = before.filter(|_| who == SignedIn::Guardian);
                    let until = now.plus(*life);
                    let token = Token {
                        id: TokenId::random(),
                        hash: token::digest(&token::seeded(vault, seed)),
                        bearer,
                        issued: now,
                        expires: Some(bound.map_or(until, |bound| bound.min(until))),
                        revoked: None,
                        note: Some(note.clone()),
                    };
                    let id = token.id.to_string();
                    let (mut planned, said) = match passkey {
                        Some(assertion) => {
                            let (planned, id) = counted(snapshot, assertion, now).await?;
                            (planned.map((vault, who)), trace(&id))
                        }
                        None => (Planned::done((vault, who), Vec::new()), Trace::default()),
                    };
                    planned.writes.push(Write::Token(Box::new(token)));
                    Ok(planned.traced(said.with("token", id)))
                })
            })
            .await?;
        Ok(Session { token: token::seeded(vault, &seed), who })
    }

    /// Ends a sign-in: the token that is presented is taken back. Whoever holds one may.
    pub async fn sign_out(&self, call: &Call) -> Result<()> {
        let Some(bearer) = &call.credentials.bearer else {
            return Err(Error::unauthenticated("no credential was presented"));
        };
        if let Ok(Shape::Service(_)) = token::shape(bearer) {
            return self.sign_out_governor(call).await;
        }
        let (need, hash) = (Need::one("sign-out", Verb::Read), token::digest(bearer));
        self.change(call, need, hash, |_, session, snapshot, hash| {
            Box::pin(async move {
                let token = snapshot.token(hash).await?.ok_or(Error::NotFound)?;
                let trace = Trace::default().with("token", token.id.to_string());
                let write = Write::RevokeToken(token.id, session.now);
                Ok(Planned::done((), vec![write]).traced(trace))
            })
        })
        .await
    }
}

/// The token of an administrator's sign-in.
pub(super) fn governors(
    tenant: TenantId,
    seed: &Seed,
    now: Timestamp,
    until: Timestamp,
    note: &str,
) -> Token {
    Token {
        id: TokenId::random(),
        hash: token::digest(&token::seeded_service(tenant, seed)),
        bearer: Bearer::Admin(tenant),
        issued: now,
        expires: Some(until),
        revoked: None,
        note: Some(note.to_owned()),
    }
}

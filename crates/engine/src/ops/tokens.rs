//! Bearer tokens of owners and services. Only their hashes are kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use yore_domain::grant::{Bearer, Token, Verb};
use yore_domain::{Error, Result, Span, TenantId, TokenId, VaultId};
use yore_policy::Need;
use yore_store::Write;

use super::grants::until;
use crate::call::{Call, VaultRef};
use crate::engine::Engine;
use crate::run::{Planned, Session, Trace};
use crate::token::{self, Seed};

/// Whom a token stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TokenKind {
    /// The owner of the vault.
    Owner,
    /// A service that acts for every owner of a tenant.
    Service(TenantId),
    /// Somebody who looks after the owners of a tenant, and reads without writing.
    Admin(TenantId),
}

#[derive(Debug, Serialize)]
struct Issue {
    kind: TokenKind,
    ttl: Option<Span>,
    note: Option<String>,
    #[serde(skip)]
    seed: Seed,
}

impl Engine {
    /// Makes a token and tells it, this once. Only the owner may.
    pub async fn issue_token(
        &self,
        call: &Call,
        kind: TokenKind,
        ttl: Option<Span>,
        note: Option<String>,
    ) -> Result<String> {
        let seed = self.seed(call, "token")?;
        let need = Need::one("token.issue", Verb::Admin);
        let input = Issue { kind, ttl, note, seed: seed.clone() };
        let call = &at_home(call, kind);
        let vault: VaultId = self
            .change(call, need, input, |_, session, _, input| {
                Box::pin(async move { issue(session, input) })
            })
            .await?;
        let token = match kind {
            TokenKind::Owner => token::seeded(vault, &seed),
            TokenKind::Service(tenant) | TokenKind::Admin(tenant) => {
                token::seeded_service(tenant, &seed)
            }
        };
        Ok(token.expose().to_owned())
    }

    /// Lists the tokens of the vault.
    pub async fn tokens(&self, call: &Call) -> Result<Vec<Token>> {
        self.look(call, Need::one("token.list", Verb::Admin), (), |_, _, snapshot, ()| {
            Box::pin(async move {
                let tokens = snapshot.tokens().await?;
                let trace = Trace::count(tokens.len());
                Ok((tokens, trace))
            })
        })
        .await
    }

    /// Takes a token back.
    pub async fn revoke_token(&self, call: &Call, token: TokenId) -> Result<()> {
        let need = Need::one("token.revoke", Verb::Admin);
        self.change(call, need, token, |_, session, snapshot, token| {
            Box::pin(async move {
                let known = snapshot.tokens().await?.into_iter().any(|known| known.id == *token);
                if !known {
                    return Err(Error::NotFound);
                }
                let trace = Trace::default().with("token", token.to_string());
                Ok(Planned::done((), vec![Write::RevokeToken(*token, session.now)]).traced(trace))
            })
        })
        .await
    }

    /// The secret part of a token to be made. A retry of an operation makes the same token,
    /// so that no answer that holds one has to be kept.
    pub(crate) fn seed(&self, call: &Call, what: &str) -> Result<Seed> {
        let (Some(id), Some(bearer)) = (&call.operation, &call.credentials.bearer) else {
            return Seed::random();
        };
        let caller = match token::shape(bearer) {
            // A proof of the master key differs each time it is made.
            Ok(token::Shape::Proof(_)) => "master key".to_owned(),
            Ok(token::Shape::Vault(_) | token::Shape::Service(_)) | Err(_) => token::digest(bearer),
        };
        let said = serde_json::json!(["token", what, caller, id]).to_string();
        Ok(Seed::derived(&self.0.parts.local_key, said.as_bytes()))
    }
}

/// Tokens of services lie in the catalog, where only the master key opens the door.
fn at_home(call: &Call, kind: TokenKind) -> Call {
    match kind {
        TokenKind::Owner => call.clone(),
        TokenKind::Service(_) | TokenKind::Admin(_) => {
            Call { vault: VaultRef::Id(VaultId::CATALOG), ..call.clone() }
        }
    }
}

fn issue(session: &Session, input: &Issue) -> Result<Planned<VaultId>> {
    let vault = session.permit.vault();
    if !session.is_owner() {
        return Err(Error::forbidden("only the owner makes tokens"));
    }
    let (bearer, secret) = match input.kind {
        TokenKind::Owner => (Bearer::Owner, token::seeded(vault, &input.seed)),
        TokenKind::Service(tenant) => {
            (Bearer::Service(tenant), token::seeded_service(tenant, &input.seed))
        }
        TokenKind::Admin(tenant) => {
            (Bearer::Admin(tenant), token::seeded_service(tenant, &input.seed))
        }
    };
    let record = Token {
        id: TokenId::random(),
        hash: token::digest(&secret),
        bearer,
        issued: session.now,
        expires: input.ttl.map(|span| until(session.now, span)).transpose()?,
        revoked: None,
        note: input.note.clone(),
    };
    let trace = Trace::default().with("token", record.id.to_string());
    Ok(Planned::done(vault, vec![Write::Token(Box::new(record))]).traced(trace))
}

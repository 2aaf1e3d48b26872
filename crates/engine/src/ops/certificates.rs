//! Client certificates that stand for a grant, as a token does: the secret is the key that never
//! leaves its holder.

use serde::Serialize;
use yore_domain::grant::{Bearer, Token, Verb};
use yore_domain::{Error, GrantId, Result, TokenId};
use yore_policy::Need;
use yore_store::Write;

use crate::call::{Call, Thumbprint};
use crate::engine::Engine;
use crate::run::{Planned, Trace};

#[derive(Debug, Serialize)]
struct Bind {
    grant: GrantId,
    hash: String,
}

impl Engine {
    /// Lets whoever holds the key of a certificate act under a grant. Only the owner may.
    pub async fn bind_certificate(
        &self,
        call: &Call,
        grant: GrantId,
        certificate: Thumbprint,
    ) -> Result<TokenId> {
        let need = Need::one("grant.certificate", Verb::Grant);
        let input = Bind { grant, hash: certificate.kept() };
        self.change(call, need, input, |_, session, snapshot, input| {
            Box::pin(async move {
                if !session.is_owner() {
                    return Err(Error::NotFound);
                }
                let grant = snapshot.grant(input.grant).await?.ok_or(Error::NotFound)?;
                if !grant.holds_at(session.now) {
                    return Err(Error::invalid("grant", "is expired or revoked"));
                }
                // One that was taken back stays taken back.
                if snapshot.token(&input.hash).await?.is_some() {
                    return Err(Error::invalid("certificate", "was registered before"));
                }
                let token = Token {
                    id: TokenId::random(),
                    hash: input.hash.clone(),
                    bearer: Bearer::Grant(grant.id),
                    issued: session.now,
                    expires: None,
                    revoked: None,
                    note: Some("client certificate".into()),
                };
                let trace = Trace::default()
                    .with("grant", grant.id.to_string())
                    .with("token", token.id.to_string());
                let id = token.id;
                Ok(Planned::done(id, vec![Write::Token(Box::new(token))]).traced(trace))
            })
        })
        .await
    }
}

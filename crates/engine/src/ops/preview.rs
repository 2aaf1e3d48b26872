//! What a grant would show, looked at before it is given.

use yore_domain::conversation::Conversation;
use yore_domain::grant::{Bearer, Grant, Token, Verb};
use yore_domain::memory::Memory;
use yore_domain::query::{Filter, PageRequest};
use yore_domain::{Error, Result, TokenId};
use yore_policy::{Evidence, Need, Presented, authorise, verify};

use super::grants::{GrantRequest, granted};
use super::list::bounded;
use super::shown::{Standing, shown_memory};
use crate::call::Call;
use crate::engine::Engine;
use crate::kept::Kept;
use crate::run::{Session, Trace};

/// What an agent would see with a grant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Preview {
    /// How many memories.
    pub memories: u64,
    /// The first of them, as the agent would be shown them.
    pub first: Vec<Memory>,
    /// The first conversations, each with how many messages it has.
    pub conversations: Vec<(Conversation, u64)>,
}

impl Engine {
    /// Shows what an agent would see with a grant that is not given yet. The vault is looked at
    /// with the very permit the agent would have. Only the owner may.
    pub async fn preview_grant(
        &self,
        call: &Call,
        request: GrantRequest,
        page: PageRequest,
    ) -> Result<Preview> {
        let need = Need::one("grant.preview", Verb::Grant);
        self.look(call, need, (request, page), |engine, session, _, (request, page)| {
            Box::pin(async move {
                if !session.is_owner() {
                    return Err(Error::forbidden("only the owner looks with the eyes of others"));
                }
                let grant = granted(engine, session, request).await?;
                let preview = engine.seen_with(session, grant, &bounded(page)?).await?;
                let trace = Trace::default()
                    .with("agent", request.agent.as_str())
                    .with("count", preview.memories);
                Ok((preview, trace))
            })
        })
        .await
    }

    async fn seen_with(
        &self,
        session: &Session,
        grant: Grant,
        page: &PageRequest,
    ) -> Result<Preview> {
        if !grant.verbs.has(Verb::Read) {
            return Ok(Preview::default());
        }
        let mut as_agent = Self::stand_in(session, grant)?;
        let snapshot = self.store().snapshot(&as_agent.permit).await?;
        as_agent.kept = Kept::of(&as_agent, &*snapshot).await?;
        let filter = Filter::default();
        let memories = snapshot.count(&filter).await?;
        let mut first = Vec::new();
        for memory in snapshot.memories(&filter, page).await?.items {
            let standing = Standing::of(&as_agent, &memory.head);
            first.extend(shown_memory(&as_agent, memory, &standing));
        }
        let conversations = snapshot.conversations(&filter, page).await?.items;
        Ok(Preview { memories, first, conversations })
    }

    /// The session that an agent with this grant would have.
    pub(super) fn stand_in(session: &Session, grant: Grant) -> Result<Session> {
        let token = Token {
            id: TokenId::random(),
            hash: String::new(),
            bearer: Bearer::Grant(grant.id),
            issued: session.now,
            expires: None,
            revoked: None,
            note: None,
        };
        let (token, grant) = (Some(Box::new(token)), Some(Box::new(grant)));
        let evidence = Evidence {
            vault: session.permit.vault(),
            presented: vec![Presented::Token { token, grant }],
            public_reads: false,
        };
        let principal = verify(&evidence, session.now)?;
        let permit = authorise(&principal, Need::one("list", Verb::Read), session.now)?;
        Ok(Session { permit, now: session.now, kept: Kept::default() })
    }
}

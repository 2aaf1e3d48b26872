//! Whether a vault is a child's, and who decides for the child.

use serde_json::json;
use yore_domain::conversation::Conversation;
use yore_domain::grant::Verb;
use yore_domain::regulated::Guardianship;
use yore_domain::{ConversationId, Error, Result};
use yore_policy::Need;
use yore_policy::regulated::{may_derive, may_guard};
use yore_store::{Snapshot, Write};

use super::get::conversation_named;
use crate::call::Call;
use crate::engine::Engine;
use crate::run::{Planned, Trace};

/// The setting that holds it.
const SETTING: &str = "guardianship";

impl Engine {
    /// Says whether the vault is a child's. A guardian may know, and who looks after the vault.
    pub async fn guardianship(&self, call: &Call) -> Result<Guardianship> {
        let need = Need::one("guardian.look", Verb::Read);
        self.look(call, need, (), |_, session, snapshot, ()| {
            Box::pin(async move {
                let guarded = guardianship(snapshot).await?;
                may_guard(&session.permit, &guarded)?;
                Ok((guarded, Trace::default()))
            })
        })
        .await
    }

    /// Says whether the vault is a child's, and who decides for the child.
    pub async fn set_guardianship(&self, call: &Call, guarded: Guardianship) -> Result<()> {
        let need = Need::one("guardian.set", Verb::Admin);
        self.change(call, need, guarded, |_, session, _, guarded| {
            Box::pin(async move {
                if !session.permit.principal().keeps() {
                    return Err(Error::forbidden("only who looks after the whole vault may"));
                }
                let trace = Trace::default()
                    .with("child", guarded.child)
                    .with("consent", guarded.consent.is_some())
                    .with("agent", guarded.guardian.clone())
                    .with("stopped", guarded.stopped);
                let write = Write::Setting(SETTING.to_owned(), json!(guarded));
                Ok(Planned::done((), vec![write]).traced(trace))
            })
        })
        .await
    }

    /// Stops that anything more is stored, or lets it go on.
    pub async fn stop_collection(&self, call: &Call, stopped: bool) -> Result<()> {
        let need = Need::one("guardian.stop", Verb::Erase);
        self.change(call, need, stopped, |_, session, snapshot, stopped| {
            Box::pin(async move {
                let guarded = guardianship(snapshot).await?;
                may_guard(&session.permit, &guarded)?;
                let guarded = Guardianship { stopped: *stopped, ..guarded };
                let write = Write::Setting(SETTING.to_owned(), json!(guarded));
                let trace = Trace::default().with("stopped", *stopped);
                Ok(Planned::done((), vec![write]).traced(trace))
            })
        })
        .await
    }
}

impl Engine {
    /// Returns the conversations that something is to be drawn from, as far as the caller sees
    /// them; none where nothing may be.
    pub async fn drawn_from(
        &self,
        call: &Call,
        sources: Vec<ConversationId>,
    ) -> Result<Vec<Conversation>> {
        let need = Need::one("drawn-from", Verb::Write);
        self.look(call, need, sources, |_, session, snapshot, sources| {
            Box::pin(async move {
                let mut heads = Vec::new();
                for source in sources {
                    let id = conversation_named(session, snapshot, *source).await?;
                    heads.extend(snapshot.conversation(id).await?.map(|(head, _)| head));
                }
                may_derive(heads.iter().flat_map(|head| &head.governance.labels))?;
                let trace = Trace::count(heads.len());
                Ok((heads, trace))
            })
        })
        .await
    }
}

/// What is known about a child whose vault it is.
pub(crate) async fn guardianship(snapshot: &dyn Snapshot) -> Result<Guardianship> {
    match snapshot.setting(SETTING).await? {
        None => Ok(Guardianship::default()),
        Some(value) => serde_json::from_value(value).map_err(Error::internal),
    }
}

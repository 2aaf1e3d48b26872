//! Legal holds on conversations: what they protect stays until they are lifted.

use yore_domain::grant::Verb;
use yore_domain::{ConversationId, Error, Result};
use yore_policy::{Need, Protection, may_erase};
use yore_store::{Precondition, Snapshot, Write};

use super::converse::proposed;
use super::get::conversation_named;
use crate::call::Call;
use crate::engine::Engine;
use crate::run::{Planned, Trace};

impl Engine {
    /// Protects a conversation and all its messages from erasure, or releases them.
    pub async fn hold_conversation(
        &self,
        call: &Call,
        conversation: ConversationId,
        held: bool,
    ) -> Result<()> {
        let need = Need::one("hold-conversation", Verb::Admin);
        self.change(call, need, (conversation, held), |_, _, snapshot, (id, held)| {
            Box::pin(async move {
                snapshot.conversation(*id).await?.ok_or(Error::NotFound)?;
                let mut writes = vec![Write::Setting(name(*id), (*held).into())];
                // A deletion that waited for this happens with it.
                let waiting = awaited(*id);
                let erased = !held && is_set(snapshot, &waiting).await?;
                if erased {
                    writes.extend(proposed(snapshot, *id, None).await?);
                    writes.push(Write::EraseConversation(*id));
                    writes.push(Write::Setting(waiting, false.into()));
                }
                let trace = Trace::default()
                    .with("conversation", id.to_string())
                    .with("held", *held)
                    .with("erased", erased);
                let mut planned = Planned::done((), writes).traced(trace);
                planned.preconditions.push(Precondition::Conversation(*id, true));
                Ok(planned)
            })
        })
        .await
    }

    /// Erases a conversation that a hold protects once the hold is lifted.
    pub async fn erase_when_released(
        &self,
        call: &Call,
        conversation: ConversationId,
    ) -> Result<()> {
        let need = Need::one("erase-when-released", Verb::Erase);
        self.change(call, need, conversation, |_, session, snapshot, id| {
            Box::pin(async move {
                let id = conversation_named(session, snapshot, *id).await?;
                let (head, _) = snapshot.conversation(id).await?.ok_or(Error::NotFound)?;
                may_erase(&session.permit, &head.class(), Protection::None)?;
                let trace = Trace::default().with("conversation", id.to_string());
                let write = Write::Setting(awaited(id), true.into());
                let mut planned = Planned::done((), vec![write]).traced(trace);
                planned.preconditions.push(Precondition::Setting(name(id), Some(true.into())));
                Ok(planned)
            })
        })
        .await
    }
}

/// Whether a hold protects a conversation.
pub(crate) async fn protection(
    snapshot: &dyn Snapshot,
    conversation: ConversationId,
) -> Result<Protection> {
    let held = snapshot.setting(&name(conversation)).await?;
    Ok(match held.and_then(|held| held.as_bool()) {
        Some(true) => Protection::LegalHold,
        Some(false) | None => Protection::None,
    })
}

async fn is_set(snapshot: &dyn Snapshot, setting: &str) -> Result<bool> {
    Ok(snapshot.setting(setting).await?.and_then(|value| value.as_bool()).unwrap_or(false))
}

/// The setting that says that a deletion waits for the end of the hold.
fn awaited(conversation: ConversationId) -> String {
    format!("erase:conversation:{conversation}")
}

fn name(conversation: ConversationId) -> String {
    format!("hold:conversation:{conversation}")
}

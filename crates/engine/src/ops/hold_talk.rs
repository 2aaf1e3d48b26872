//! Legal holds on conversations: what they protect stays until they are lifted.

use yore_domain::grant::Verb;
use yore_domain::{ConversationId, Error, Result};
use yore_policy::{Need, Protection};
use yore_store::{Precondition, Snapshot, Write};

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
                let write = Write::Setting(name(*id), (*held).into());
                let trace =
                    Trace::default().with("conversation", id.to_string()).with("held", *held);
                let mut planned = Planned::done((), vec![write]).traced(trace);
                planned.preconditions.push(Precondition::Conversation(*id, true));
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

fn name(conversation: ConversationId) -> String {
    format!("hold:conversation:{conversation}")
}

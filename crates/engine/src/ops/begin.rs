//! Beginning a conversation that is not there yet.

use yore_domain::conversation::{Conversation, Message};
use yore_domain::grant::Verb;
use yore_domain::{ConversationId, Error, Result};
use yore_policy::Need;

use super::converse::{append, shared};
use super::get::conversation_named;
use crate::call::Call;
use crate::engine::Engine;
use crate::run::Trace;

impl Engine {
    /// Begins a conversation with its first messages; one that is there already is a conflict.
    /// Returns its id, which is not the given one when an agent chose that.
    pub async fn begin(
        &self,
        call: &Call,
        conversation: Conversation,
        messages: Vec<Message>,
    ) -> Result<ConversationId> {
        let need = Need::one("converse", Verb::Write);
        let input = (conversation, messages);
        self.change(call, need, input, |engine, session, snapshot, (head, messages)| {
            Box::pin(async move {
                let known = conversation_named(session, snapshot, head.id).await?;
                if snapshot.conversation(known).await?.is_some() {
                    let winner = Some(head.id.to_string());
                    return Err(Error::Conflict { reason: "the id is taken".to_owned(), winner });
                }
                let planned = append(engine, session, snapshot, head, &shared(messages)).await?;
                let said = planned.output;
                let trace = Trace::count(said.appended)
                    .with("conversation", said.conversation.to_string())
                    .with("begun", true);
                Ok(planned.map(said.conversation).traced(trace))
            })
        })
        .await
    }
}

//! Adding messages to a conversation that is there, and leaving the rest of it alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use yore_domain::conversation::Message;
use yore_domain::grant::Verb;
use yore_domain::{ConversationId, Error, Result};
use yore_policy::Need;

use super::converse::{append, shared};
use super::get::conversation_named;
use crate::call::Call;
use crate::engine::Engine;
use crate::run::Trace;

/// What adding messages did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Said {
    /// Messages that are new.
    pub appended: usize,
    /// Messages that were there already and say the same.
    pub duplicates: usize,
    /// Messages that say something else than the one with their id, which stays as it is.
    pub conflicts: usize,
}

impl Engine {
    /// Adds messages to a conversation. Its title, tags and summary stay as they are, and so does
    /// every message that is there.
    pub async fn say(
        &self,
        call: &Call,
        conversation: ConversationId,
        messages: Vec<Message>,
    ) -> Result<Said> {
        let need = Need::one("converse", Verb::Write);
        self.change(call, need, (conversation, messages), |engine, session, snapshot, input| {
            Box::pin(async move {
                let (id, messages) = input;
                let id = conversation_named(session, snapshot, *id).await?;
                let (head, _) = snapshot.conversation(id).await?.ok_or(Error::NotFound)?;
                let mut conflicts = 0;
                for message in messages {
                    let known = snapshot.message(id, message.id).await?;
                    conflicts += usize::from(known.is_some_and(|(_, known)| known != *message));
                }
                let planned = append(engine, session, snapshot, &head, &shared(messages)).await?;
                let appended = planned.output.appended;
                let duplicates = planned.output.duplicates.saturating_sub(conflicts);
                let trace = Trace::count(appended)
                    .with("conversation", id.to_string())
                    .with("duplicates", duplicates)
                    .with("conflicts", conflicts);
                Ok(planned.map(Said { appended, duplicates, conflicts }).traced(trace))
            })
        })
        .await
    }
}

//! Whole conversations: read at once, told apart by a tag, and listed with what they hold.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use yore_canon::hash::Sha256;
use yore_domain::conversation::{Conversation, Message};
use yore_domain::grant::Verb;
use yore_domain::query::{Filter, Page, PageRequest};
use yore_domain::{ConversationId, Error, MessageId, Result, limits};
use yore_policy::{Need, Protection};
use yore_store::{Precondition, Snapshot};

use super::get::conversation_named;
use super::hold_talk::protection;
use super::list::bounded;
use crate::call::Call;
use crate::engine::Engine;
use crate::run::Trace;

/// A conversation with everything that was said in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Talk {
    /// The conversation.
    pub head: Conversation,
    /// Its messages, in the order in which they came in.
    pub messages: Vec<Message>,
    /// Whether a hold protects it from erasure.
    #[serde(default)]
    pub held: bool,
}

impl Talk {
    /// A text that changes whenever anything of the conversation does. It follows from what the
    /// caller sees alone.
    #[must_use]
    pub fn tag(&self) -> String {
        let said = serde_json::to_vec(&(&self.head, &self.messages))
            .expect("invariant: the model can be written as JSON");
        Sha256::of(said).to_hex()[..32].to_owned()
    }
}

/// A conversation in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Listed {
    /// The conversation.
    pub head: Conversation,
    /// Messages on the active path.
    pub messages: u64,
    /// Messages on branches that were left.
    pub branches: u64,
}

impl Engine {
    /// Returns a conversation with all its messages.
    pub async fn talk(&self, call: &Call, conversation: ConversationId) -> Result<Talk> {
        let need = Need::one("conversation", Verb::Read);
        self.look(call, need, conversation, |_, session, snapshot, id| {
            Box::pin(async move {
                let id = conversation_named(session, snapshot, *id).await?;
                let talk = whole(snapshot, id).await?;
                let trace = Trace::count(talk.messages.len()).with("conversation", id.to_string());
                Ok((talk, trace))
            })
        })
        .await
    }

    /// Returns one message.
    pub async fn message(
        &self,
        call: &Call,
        conversation: ConversationId,
        message: MessageId,
    ) -> Result<Message> {
        let need = Need::one("messages", Verb::Read);
        self.look(call, need, (conversation, message), |_, session, snapshot, input| {
            Box::pin(async move {
                let id = conversation_named(session, snapshot, input.0).await?;
                let found = snapshot.message(id, input.1).await?;
                let (_, message) = found.ok_or(Error::NotFound)?;
                Ok((message, Trace::count(1).with("conversation", id.to_string())))
            })
        })
        .await
    }

    /// Lists conversations with the number of their messages, by when they were last added to.
    pub async fn talks(
        &self,
        call: &Call,
        filter: Filter,
        page: PageRequest,
    ) -> Result<Page<Listed>> {
        let need = Need::one("conversations", Verb::Read);
        self.look(call, need, (filter, page), |_, _, snapshot, (filter, page)| {
            Box::pin(async move {
                let found = snapshot.conversations(filter, &bounded(page)?).await?;
                let mut items = Vec::with_capacity(found.items.len());
                for (head, _) in found.items {
                    let extent = snapshot.extent(head.id).await?.ok_or(Error::NotFound)?;
                    let messages = extent.messages - extent.off_path;
                    items.push(Listed { head, messages, branches: extent.off_path });
                }
                let trace = Trace::count(items.len());
                Ok((Page { items, next: found.next }, trace))
            })
        })
        .await
    }
}

/// Reads a conversation with all its messages.
pub(crate) async fn whole(snapshot: &dyn Snapshot, id: ConversationId) -> Result<Talk> {
    let (head, count) = snapshot.conversation(id).await?.ok_or(Error::NotFound)?;
    let mut messages = Vec::new();
    let mut from = 0;
    while (messages.len() as u64) < count {
        let some = snapshot.messages(id, from, limits::PAGE).await?;
        let Some(last) = some.last() else { break };
        // Positions have gaps where messages were erased, so the next page begins after the last.
        let place = snapshot.message(id, last.id).await?.ok_or(Error::NotFound)?;
        from = place.0 + 1;
        messages.extend(some);
    }
    let held = protection(snapshot, id).await? == Protection::LegalHold;
    Ok(Talk { head, messages, held })
}

/// What must still be true of a conversation that is to be changed: that it is there, and where
/// the caller names tags of what it saw, that it has one of them.
pub(crate) async fn unmoved(
    snapshot: &dyn Snapshot,
    id: ConversationId,
    expected: &[String],
) -> Result<Vec<Precondition>> {
    if expected.is_empty() {
        return Ok(vec![Precondition::Conversation(id, true)]);
    }
    let talk = whole(snapshot, id).await?;
    if !expected.contains(&talk.tag()) {
        return Err(Error::conflict("the conversation was changed meanwhile"));
    }
    let extent = snapshot.extent(id).await?.ok_or(Error::NotFound)?;
    Ok(vec![Precondition::Talk(Box::new(talk.head), extent)])
}

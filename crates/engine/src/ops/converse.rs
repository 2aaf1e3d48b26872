//! Conversations: appended to, read, and erased; never edited.

use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use yore_domain::conversation::{Conversation, Message};
use yore_domain::grant::Verb;
use yore_domain::hold::HoldState;
use yore_domain::mutation::Mutation;
use yore_domain::query::{Filter, Page, PageRequest};
use yore_domain::regulated::{Regulated, erased_at, parental_consent};
use yore_domain::{ConversationId, Error, MessageId, Result, limits};
use yore_policy::regulated::{keep_protection, may_collect, protect};
use yore_policy::{Need, careful_talk, may_erase};
use yore_store::plan::AliasTarget;
use yore_store::{Precondition, Snapshot, Write};

use super::attach::brought;
use super::get::conversation_named;
use super::guardian::guardianship;
use super::hold_talk::protection;
use super::list::bounded;
use super::profile::HOLDS;
use super::remember::text_indexing;
use super::retention::some_end;
use super::talk::unmoved;
use crate::call::Call;
use crate::engine::Engine;
use crate::run::{Planned, Session, Trace};

/// Messages one call may append.
const MESSAGES: usize = 10_000;

/// What appending did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conversed {
    /// The conversation; not the id the caller gave when an agent chose one.
    pub conversation: ConversationId,
    /// Messages that are new.
    pub appended: usize,
    /// Messages that were there already and stay as they are.
    pub duplicates: usize,
}

impl Engine {
    /// Appends messages to a conversation, beginning it when it is not there.
    pub async fn converse(
        &self,
        call: &Call,
        conversation: Conversation,
        messages: Vec<Message>,
    ) -> Result<Conversed> {
        let need = Need::one("converse", Verb::Write);
        let input = (conversation, messages);
        self.change(call, need, input, |engine, session, snapshot, (conversation, messages)| {
            Box::pin(async move {
                let messages = &shared(messages);
                let mut planned = append(engine, session, snapshot, conversation, messages).await?;
                let said = &planned.output;
                planned.trace = Trace::count(said.appended)
                    .with("conversation", said.conversation.to_string())
                    .with("duplicates", said.duplicates);
                Ok(planned)
            })
        })
        .await
    }

    /// Returns a conversation without its messages, and how many there are.
    pub async fn conversation(
        &self,
        call: &Call,
        conversation: ConversationId,
    ) -> Result<(Conversation, u64)> {
        let need = Need::one("conversation", Verb::Read);
        self.look(call, need, conversation, |_, session, snapshot, id| {
            Box::pin(async move {
                let id = conversation_named(session, snapshot, *id).await?;
                let found = snapshot.conversation(id).await?.ok_or(Error::NotFound)?;
                Ok((found, Trace::default().with("conversation", id.to_string())))
            })
        })
        .await
    }

    /// Lists conversations, by when they were last added to.
    pub async fn conversations(
        &self,
        call: &Call,
        filter: Filter,
        page: PageRequest,
    ) -> Result<Page<(Conversation, u64)>> {
        let need = Need::one("conversations", Verb::Read);
        self.look(call, need, (filter, page), |_, _, snapshot, (filter, page)| {
            Box::pin(async move {
                let found = snapshot.conversations(filter, &bounded(page)?).await?;
                let trace = Trace::count(found.items.len());
                Ok((found, trace))
            })
        })
        .await
    }

    /// Returns messages of a conversation from a position on.
    pub async fn messages(
        &self,
        call: &Call,
        conversation: ConversationId,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Message>> {
        let need = Need::one("messages", Verb::Read);
        self.look(call, need, (conversation, from, limit), |_, session, snapshot, input| {
            Box::pin(async move {
                let (id, from, limit) = input;
                if *limit == 0 {
                    return Err(Error::invalid("limit", "must be at least 1"));
                }
                let id = conversation_named(session, snapshot, *id).await?;
                snapshot.conversation(id).await?.ok_or(Error::NotFound)?;
                let found = snapshot.messages(id, *from, (*limit).min(limits::PAGE)).await?;
                let trace = Trace::count(found.len()).with("conversation", id.to_string());
                Ok((found, trace))
            })
        })
        .await
    }

    /// Removes a conversation and all its messages for good, if it still has one of these tags;
    /// without tags, as it is. Returns how many messages there were.
    pub async fn erase_conversation(
        &self,
        call: &Call,
        conversation: ConversationId,
        expected: Vec<String>,
    ) -> Result<u64> {
        let need = erasing("erase-conversation");
        self.change(call, need, (conversation, expected), |_, session, snapshot, input| {
            Box::pin(async move {
                let (id, expected) = input;
                let id = conversation_named(session, snapshot, *id).await?;
                let messages = erasable(session, snapshot, id).await?;
                let trace = Trace::default()
                    .with("conversation", id.to_string())
                    .with("messages", messages);
                let mut writes = proposed(snapshot, id, None).await?;
                writes.push(Write::EraseConversation(id));
                let mut planned = Planned::done(messages, writes);
                planned.preconditions = unmoved(snapshot, id, expected).await?;
                Ok(planned.traced(trace))
            })
        })
        .await
    }

    /// Removes one message for good.
    pub async fn erase_message(
        &self,
        call: &Call,
        conversation: ConversationId,
        message: MessageId,
    ) -> Result<()> {
        let need = erasing("erase-message");
        self.change(call, need, (conversation, message), |_, session, snapshot, input| {
            Box::pin(async move {
                let id = conversation_named(session, snapshot, input.0).await?;
                erasable(session, snapshot, id).await?;
                snapshot.message(id, input.1).await?.ok_or(Error::NotFound)?;
                let trace = Trace::default().with("conversation", id.to_string());
                let mut writes = proposed(snapshot, id, Some(input.1)).await?;
                writes.push(Write::EraseMessage(id, input.1));
                let mut planned = Planned::done((), writes);
                planned.preconditions.push(Precondition::Conversation(id, true));
                Ok(planned.traced(trace))
            })
        })
        .await
    }
}

/// Takes back what was proposed because of messages that go, unless it became a memory.
pub(crate) async fn proposed(
    snapshot: &dyn Snapshot,
    conversation: ConversationId,
    message: Option<MessageId>,
) -> Result<Vec<Write>> {
    let mut writes = Vec::new();
    for state in [HoldState::Pending, HoldState::Rejected, HoldState::Expired] {
        for hold in snapshot.holds(state, HOLDS).await? {
            let Mutation::Remember { draft, .. } = &hold.mutation else { continue };
            let named = draft.content.provenance.messages.iter().any(|named| {
                named.conversation == conversation
                    && message.is_none_or(|message| named.message == message)
            });
            if named {
                writes.push(Write::EraseHold(hold.id));
            }
        }
    }
    Ok(writes)
}

fn erasing(operation: &'static str) -> Need {
    Need::one(operation, Verb::Erase)
}

async fn erasable(session: &Session, snapshot: &dyn Snapshot, id: ConversationId) -> Result<u64> {
    let (conversation, messages) = snapshot.conversation(id).await?.ok_or(Error::NotFound)?;
    let protection = protection(snapshot, id).await?;
    may_erase(&session.permit, &conversation.class(), protection)?;
    Ok(messages)
}

/// Naming an attachment makes it seen, so an agent names only what it sees or brought itself.
/// What it does not see and what is not there are refused alike.
async fn attachments_are_its_own(
    session: &Session,
    snapshot: &dyn Snapshot,
    messages: &[Arc<Message>],
) -> Result<()> {
    if session.is_owner() {
        return Ok(());
    }
    let named = messages.iter().flat_map(|message| &message.attachments);
    for blob in named.filter_map(|attachment| attachment.blob) {
        let brought = snapshot.setting(&brought(session.namespace(), blob)).await?.is_some();
        if !brought && snapshot.blob(blob).await?.is_none() {
            return Err(Error::invalid("attachments", "no such attachment"));
        }
    }
    Ok(())
}

/// Messages as a plan holds them.
pub(crate) fn shared(messages: &[Message]) -> Vec<Arc<Message>> {
    messages.iter().cloned().map(Arc::new).collect()
}

/// Plans appending. What is there already stays as it is, so that a retry changes nothing.
pub(crate) async fn append(
    engine: &Engine,
    session: &Session,
    snapshot: &dyn Snapshot,
    asked: &Conversation,
    messages: &[Arc<Message>],
) -> Result<Planned<Conversed>> {
    asked.validate()?;
    if messages.len() > MESSAGES {
        return Err(Error::too_large("messages", MESSAGES));
    }
    messages.iter().try_for_each(|message| message.validate())?;
    session.permit.may_write(&asked.class())?;
    attachments_are_its_own(session, snapshot, messages).await?;
    let mut id = conversation_named(session, snapshot, asked.id).await?;
    let known = snapshot.conversation(id).await?.map(|(known, _)| known);
    let mut writes = Vec::new();
    match &known {
        Some(known) => session.permit.may_write(&known.class())?,
        // An id that an agent chose is a name of its own: it cannot ask whether one is taken.
        None if !session.namespace().is_empty() => {
            id = ConversationId::random();
            let namespace = session.namespace().to_owned();
            let name = asked.id.to_string();
            let vault = session.permit.vault();
            let instead_of = engine.behind(vault, snapshot, &namespace, &name).await?;
            let target = AliasTarget::Conversation(id);
            writes.push(Write::Alias { namespace, name, target, instead_of });
        }
        None => {}
    }
    let mut said = BTreeSet::new();
    let mut fresh = Vec::new();
    for message in messages {
        let there = known.is_some() && snapshot.message(id, message.id).await?.is_some();
        if !there && said.insert(message.id) {
            fresh.push(message);
        }
    }
    let governance = careful_talk(
        engine.settings().care,
        &session.permit,
        &asked.governance,
        known.as_ref().map(|known| &known.governance),
        fresh.iter().map(|message| message.text.as_str()),
    );
    let mut head = Conversation { id, governance, ..asked.clone() };
    if let Some(known) = &known {
        keep_protection(&known.governance, &mut head.governance);
    }
    let guarded = guardianship(snapshot).await?;
    if guarded.child == Some(true) {
        protect(&mut head.governance, [&Regulated::Child.label()]);
    }
    let named = |message: &&&Arc<Message>| parental_consent(&message.foreign).is_some();
    let consent = parental_consent(&head.foreign)
        .or_else(|| fresh.iter().find(|message| named(message)).map(|_| "said by a message"))
        .or_else(|| known.as_ref().and_then(|known| parental_consent(&known.foreign)));
    may_collect(&head.class(), consent, &guarded, engine.settings().gate)?;
    let last = fresh.iter().map(|message| message.at).max();
    head.updated = [last, known.as_ref().map(|known| known.updated)]
        .into_iter()
        .flatten()
        .fold(head.updated, Ord::max);
    if let Some(known) = &known {
        head.created = known.created.min(head.created);
    }
    if known.as_ref() != Some(&head) {
        // The head comes first, for messages take their class from it; its name comes after.
        writes.insert(0, Write::Conversation(Box::new(head)));
    }
    if erased_at(&asked.foreign).is_some() {
        writes.extend(some_end(snapshot).await?);
    }
    let output = Conversed {
        conversation: id,
        appended: fresh.len(),
        duplicates: messages.len() - fresh.len(),
    };
    writes.extend(fresh.into_iter().map(|message| Write::Message {
        conversation: id,
        indexing: text_indexing(engine, &message.text),
        message: Arc::clone(message),
    }));
    let mut planned = Planned::done(output, writes);
    planned.preconditions.push(Precondition::Conversation(id, known.is_some()));
    Ok(planned)
}

//! Taking everything out: memories with their history, then conversations, then the profile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use yore_domain::class::Surface;
use yore_domain::conversation::{Conversation, Message};
use yore_domain::grant::{Verb, Verbs};
use yore_domain::memory::{Memory, Status, Version};
use yore_domain::profile::Profile;
use yore_domain::query::{Filter, Order, Page, PageRequest, Position};
use yore_domain::{ConversationId, MemoryId, Result, Timestamp};
use yore_policy::Need;
use yore_policy::redact::Viewer;
use yore_store::Snapshot;

use super::get::shown_chain;
use super::list::bounded;
use super::shown::{Standing, shown_memory, standing_of};
use super::talk::{Talk, whole as whole_talk};
use crate::call::Call;
use crate::engine::Engine;
use crate::run::{Session, Trace};

/// Where the memories end and the conversations begin.
pub const CONVERSATIONS: Position = Position { at: Timestamp::MAX, id: [0xff; 16] };

/// One thing of a vault, whole: a line of the native form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "item", rename_all = "lowercase")]
pub enum Item {
    /// A memory with its versions, oldest first.
    Memory {
        /// The versions.
        versions: Vec<Version>,
    },
    /// A conversation with its messages.
    Conversation {
        /// Its head.
        conversation: Box<Conversation>,
        /// Its messages, in order.
        messages: Vec<Message>,
    },
    /// A profile.
    Profile(Profile),
}

/// Whose hands a file is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Hands {
    /// The caller's own.
    #[default]
    Own,
    /// Anybody's: what consent keeps inside stays inside.
    Anybody,
}

impl Hands {
    fn viewer(self, session: &Session) -> Viewer {
        match self {
            Self::Own => session.viewer(),
            Self::Anybody => Viewer::Other,
        }
    }
}

impl Engine {
    /// Takes out a page of what the caller may export, oldest first.
    pub async fn export(
        &self,
        call: &Call,
        filter: Filter,
        page: PageRequest,
    ) -> Result<Page<Item>> {
        self.export_for(call, Hands::Own, filter, page).await
    }

    /// Takes out a page of what may be given to whoever the file is for, oldest first.
    pub async fn export_for(
        &self,
        call: &Call,
        hands: Hands,
        filter: Filter,
        page: PageRequest,
    ) -> Result<Page<Item>> {
        let verbs = Verbs::of(&[Verb::Export]);
        let need = Need::of("export", verbs, Surface::Export);
        self.look(call, need, (hands, filter, page), |_, session, snapshot, input| {
            Box::pin(async move {
                let (hands, filter, page) = input;
                let page = PageRequest { order: Order::OldestFirst, ..bounded(page)? };
                let viewer = hands.viewer(session);
                let items = match in_conversations(snapshot, &page).await? {
                    Some(page) => conversations(session, snapshot, filter, &page).await?,
                    None => memories(session, viewer, snapshot, filter, &page).await?,
                };
                let ids: Vec<MemoryId> = items.items.iter().filter_map(memory_of).collect();
                let trace = Trace::count(items.items.len()).touching(ids);
                Ok((items, trace))
            })
        })
        .await
    }

    /// Takes out a page of memories as they stand, without their history, oldest first.
    pub async fn export_heads(
        &self,
        call: &Call,
        filter: Filter,
        page: PageRequest,
    ) -> Result<Page<Memory>> {
        let verbs = Verbs::of(&[Verb::Export]);
        let need = Need::of("export", verbs, Surface::Export);
        self.look(call, need, (filter, page), |_, session, snapshot, (filter, page)| {
            Box::pin(async move {
                let page = PageRequest { order: Order::OldestFirst, ..bounded(page)? };
                let found = heads(session, snapshot, filter, &page).await?;
                let trace = Trace::count(found.items.len());
                Ok((found, trace))
            })
        })
        .await
    }
}

/// A page of memories to be taken out as they stand.
async fn heads(
    session: &Session,
    snapshot: &dyn Snapshot,
    filter: &Filter,
    page: &PageRequest,
) -> Result<Page<Memory>> {
    let found = snapshot.memories(filter, page).await?;
    let viewer = session.viewer();
    let mut items = Vec::with_capacity(found.items.len());
    for memory in found.items {
        let standing = standing_of(session, snapshot, filter, &memory).await?;
        if viewer.may_take(&standing.consent) && viewer.may_take(&memory.head.content.consent) {
            items.extend(shown_memory(session, memory, &standing));
        }
    }
    Ok(Page { items, next: found.next })
}

fn memory_of(item: &Item) -> Option<MemoryId> {
    match item {
        Item::Memory { versions } => versions.first().map(|version| version.memory),
        Item::Conversation { .. } | Item::Profile(_) => None,
    }
}

/// Says whether a page lies among the conversations, and where.
async fn in_conversations(
    snapshot: &dyn Snapshot,
    page: &PageRequest,
) -> Result<Option<PageRequest>> {
    let Some(after) = page.after else { return Ok(None) };
    if after == CONVERSATIONS {
        return Ok(Some(PageRequest { after: None, ..page.clone() }));
    }
    let there = snapshot.conversation(ConversationId::from_bytes(after.id)).await?.is_some();
    Ok(there.then(|| page.clone()))
}

async fn memories(
    session: &Session,
    viewer: Viewer,
    snapshot: &dyn Snapshot,
    filter: &Filter,
    page: &PageRequest,
) -> Result<Page<Item>> {
    let found = snapshot.memories(filter, page).await?;
    let mut items = Vec::with_capacity(found.items.len());
    for memory in found.items {
        let standing = if viewer == session.viewer() {
            standing_of(session, snapshot, filter, &memory).await?
        } else {
            let newest = snapshot.memory(memory.head.memory).await?;
            newest.map(|newest| Standing::of(session, &newest.head)).unwrap_or_default()
        };
        if viewer.may_take(&standing.consent) {
            items.extend(whole(session, viewer, snapshot, memory).await?);
        }
    }
    Ok(Page { items, next: found.next.or(Some(CONVERSATIONS)) })
}

/// A memory with every version that may leave.
pub(super) async fn whole(
    session: &Session,
    viewer: Viewer,
    snapshot: &dyn Snapshot,
    memory: Memory,
) -> Result<Option<Item>> {
    let history = snapshot.history(memory.head.memory).await?;
    let mut versions = shown_chain(session, viewer, history);
    versions.retain(|version: &Version| {
        version.status != Status::Erased && viewer.may_take(&version.content.consent)
    });
    Ok((!versions.is_empty()).then_some(Item::Memory { versions }))
}

async fn conversations(
    session: &Session,
    snapshot: &dyn Snapshot,
    filter: &Filter,
    page: &PageRequest,
) -> Result<Page<Item>> {
    let found = snapshot.conversations(filter, page).await?;
    let mut items = Vec::with_capacity(found.items.len());
    for (conversation, _) in found.items {
        let Talk { head, messages, held: _ } = whole_talk(snapshot, conversation.id).await?;
        items.push(Item::Conversation { conversation: Box::new(head), messages });
    }
    if found.next.is_none()
        && session.is_owner()
        && *filter == Filter::default()
        && let Some(profile) = snapshot.profile(None, None).await?
    {
        items.push(Item::Profile(profile));
    }
    Ok(Page { items, next: found.next })
}

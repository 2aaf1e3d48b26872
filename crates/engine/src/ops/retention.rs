//! How long a vault keeps what nobody asked it to keep longer.
//!
//! A conversation that was last added to, or a memory that was last changed, before so many days
//! is erased by the background work; so is what says itself when it ends. What a legal hold
//! protects stays until the hold is lifted.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use yore_domain::conversation::Conversation;
use yore_domain::grant::Verb;
use yore_domain::memory::{Foreign, Memory, Status};
use yore_domain::query::{Filter, Order, PageRequest};
use yore_domain::regulated::{Regulated, erased_at};
use yore_domain::{Error, Result, Span, Timestamp, VaultId, limits};
use yore_policy::{Need, Protection};
use yore_store::{Precondition, Snapshot, Write};

use super::converse::proposed;
use super::hold_talk::protection;
use crate::background::Left;
use crate::call::Call;
use crate::engine::Engine;
use crate::run::{Planned, Trace};

/// The setting that holds it.
const SETTING: &str = "retention";
/// The setting that says whether something says itself when it ends.
const ENDS: &str = "retention:ends";
/// What one commit erases at most.
const AT_ONCE: usize = 50;
/// What is kept of memories.
const KEPT: [Status; 4] =
    [Status::Active, Status::Candidate, Status::Quarantined, Status::Tombstoned];

/// How many days things are kept; absent means for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retention {
    /// Conversations, after their last message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversations_days: Option<u32>,
    /// Memories, after their last change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memories_days: Option<u32>,
    /// Conversations of children, after their last message; the shorter time counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children_days: Option<u32>,
}

impl Engine {
    /// Says how long the vault keeps what is in it.
    pub async fn retention(&self, call: &Call) -> Result<Retention> {
        self.look(call, Need::one("retention.look", Verb::Admin), (), |_, _, snapshot, ()| {
            Box::pin(async move { Ok((stored(snapshot).await?, Trace::default())) })
        })
        .await
    }

    /// Decides how long the vault keeps what is in it. Only who sees all of it may.
    pub async fn set_retention(&self, call: &Call, retention: Retention) -> Result<()> {
        let need = Need::one("retention.set", Verb::Admin);
        let set = self.change(call, need, retention, |_, session, _, retention| {
            Box::pin(async move {
                if !session.permit.principal().keeps() {
                    return Err(Error::forbidden("only who looks after the whole vault may"));
                }
                let Retention { conversations_days, memories_days, children_days } = retention;
                let days = [*conversations_days, *memories_days, *children_days];
                if days.contains(&Some(0)) {
                    return Err(Error::invalid("days", "must be at least 1"));
                }
                let trace = Trace::default()
                    .with("conversations_days", retention.conversations_days)
                    .with("memories_days", retention.memories_days)
                    .with("children_days", retention.children_days);
                let write = Write::Setting(SETTING.to_owned(), json!(retention));
                Ok(Planned::done((), vec![write]).traced(trace))
            })
        });
        set.await
    }

    /// Erases some of what was kept long enough.
    pub(crate) async fn end_kept(&self, vault: VaultId) -> Result<Left> {
        let permit = self.system(vault, "retention")?;
        let snapshot = self.store().snapshot(&permit).await?;
        let terms = Terms::of(&*snapshot, self.now()).await?;
        let mut ending = Ending::default();
        if terms.ends || terms.conversations.is_some() || terms.children.is_some() {
            ending.talks(&*snapshot, &terms).await?;
        }
        if terms.ends || terms.memories.is_some() {
            ending.memories(&*snapshot, &terms).await?;
        }
        drop(snapshot);
        let Ending { count, writes, preconditions } = ending;
        if count == 0 {
            return Ok(Left::Nothing);
        }
        self.commit_own(&permit, writes, preconditions, Trace::count(count)).await
    }
}

async fn stored(snapshot: &dyn Snapshot) -> Result<Retention> {
    match snapshot.setting(SETTING).await? {
        None | Some(Value::Null) => Ok(Retention::default()),
        Some(value) => serde_json::from_value(value).map_err(Error::internal),
    }
}

/// Notes that something in the vault says itself when it ends: from then on it is looked for.
pub(crate) async fn some_end(snapshot: &dyn Snapshot) -> Result<Option<Write>> {
    let known = snapshot.setting(ENDS).await?.is_some();
    Ok((!known).then(|| Write::Setting(ENDS.to_owned(), true.into())))
}

/// Before when things were last touched that go now.
struct Terms {
    now: Timestamp,
    conversations: Option<Timestamp>,
    children: Option<Timestamp>,
    memories: Option<Timestamp>,
    /// Whether anything says itself when it ends.
    ends: bool,
}

impl Terms {
    async fn of(snapshot: &dyn Snapshot, now: Timestamp) -> Result<Self> {
        let Retention { conversations_days, memories_days, children_days } =
            stored(snapshot).await?;
        let before = |days: Option<u32>| days.map(|days| now.minus(Span::days(u64::from(days))));
        Ok(Self {
            now,
            conversations: before(conversations_days),
            children: before(children_days),
            memories: before(memories_days),
            ends: snapshot.setting(ENDS).await?.is_some(),
        })
    }

    fn talk_is_due(&self, head: &Conversation) -> bool {
        let child = head.governance.labels.contains(&Regulated::Child.label());
        let old = |before: Option<Timestamp>| before.is_some_and(|before| head.updated < before);
        old(self.conversations) || (child && old(self.children)) || self.has_ended(&head.foreign)
    }

    fn memory_is_due(&self, memory: &Memory) -> bool {
        let head = &memory.head;
        self.memories.is_some_and(|before| head.recorded < before)
            || self.has_ended(&head.content.foreign)
    }

    fn has_ended(&self, foreign: &Foreign) -> bool {
        self.ends && erased_at(foreign).is_some_and(|at| at <= self.now)
    }
}

/// What goes.
#[derive(Default)]
struct Ending {
    count: usize,
    writes: Vec<Write>,
    preconditions: Vec<Precondition>,
}

impl Ending {
    async fn talks(&mut self, snapshot: &dyn Snapshot, terms: &Terms) -> Result<()> {
        let latest = terms.conversations.max(terms.children);
        let (filter, order) = (Filter::default(), Order::OldestFirst);
        let mut page = PageRequest { limit: limits::PAGE, order, ..PageRequest::default() };
        loop {
            let some = snapshot.conversations(&filter, &page).await?;
            for (head, _) in some.items {
                let younger = latest.is_none_or(|latest| head.updated >= latest);
                if (younger && !terms.ends) || self.count == AT_ONCE {
                    return Ok(());
                }
                if !terms.talk_is_due(&head)
                    || protection(snapshot, head.id).await? == Protection::LegalHold
                {
                    continue;
                }
                let Some(extent) = snapshot.extent(head.id).await? else { continue };
                self.writes.extend(proposed(snapshot, head.id, None).await?);
                self.writes.push(Write::EraseConversation(head.id));
                // Whoever adds to it meanwhile keeps it.
                self.preconditions.push(Precondition::Talk(Box::new(head), extent));
                self.count += 1;
            }
            match some.next {
                Some(next) => page.after = Some(next),
                None => return Ok(()),
            }
        }
    }

    async fn memories(&mut self, snapshot: &dyn Snapshot, terms: &Terms) -> Result<()> {
        let until = terms.memories.filter(|_| !terms.ends);
        let filter = Filter { statuses: KEPT.to_vec(), until, ..Filter::default() };
        let order = Order::OldestFirst;
        let mut page = PageRequest { limit: limits::PAGE, order, ..PageRequest::default() };
        loop {
            let some = snapshot.memories(&filter, &page).await?;
            for memory in some.items {
                if self.count == AT_ONCE {
                    return Ok(());
                }
                if memory.legal_hold || !terms.memory_is_due(&memory) {
                    continue;
                }
                let unmoved = Precondition::Head(memory.head.memory, Some(memory.head.number));
                self.preconditions.push(unmoved);
                self.writes.push(Write::Erase { memory: memory.head.memory });
                self.count += 1;
            }
            match some.next {
                Some(next) => page.after = Some(next),
                None => return Ok(()),
            }
        }
    }
}

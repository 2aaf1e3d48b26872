//! How long a vault keeps what nobody asked it to keep longer.
//!
//! A conversation that was last added to, or a memory that was last changed, before so many days
//! is erased by the background work. What a legal hold protects stays until the hold is lifted.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use yore_domain::grant::Verb;
use yore_domain::memory::Status;
use yore_domain::query::{Filter, Order, PageRequest};
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
                let days = [retention.conversations_days, retention.memories_days];
                if days.contains(&Some(0)) {
                    return Err(Error::invalid("days", "must be at least 1"));
                }
                let trace = Trace::default()
                    .with("conversations_days", retention.conversations_days)
                    .with("memories_days", retention.memories_days);
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
        let Retention { conversations_days, memories_days } = stored(&*snapshot).await?;
        let cutoff = |days: u32| self.now().minus(Span::days(u64::from(days)));
        let (mut writes, mut preconditions) = (Vec::new(), Vec::new());
        let mut count = 0;
        if let Some(days) = conversations_days {
            count += old_talks(&*snapshot, cutoff(days), &mut writes, &mut preconditions).await?;
        }
        if let Some(days) = memories_days {
            count +=
                old_memories(&*snapshot, cutoff(days), &mut writes, &mut preconditions).await?;
        }
        drop(snapshot);
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

async fn old_talks(
    snapshot: &dyn Snapshot,
    cutoff: Timestamp,
    writes: &mut Vec<Write>,
    preconditions: &mut Vec<Precondition>,
) -> Result<usize> {
    let (filter, order) = (Filter::default(), Order::OldestFirst);
    let mut page = PageRequest { limit: limits::PAGE, order, ..PageRequest::default() };
    let mut count = 0;
    loop {
        let some = snapshot.conversations(&filter, &page).await?;
        for (head, _) in some.items {
            if head.updated >= cutoff || count == AT_ONCE {
                return Ok(count);
            }
            if protection(snapshot, head.id).await? == Protection::LegalHold {
                continue;
            }
            let Some(extent) = snapshot.extent(head.id).await? else { continue };
            writes.extend(proposed(snapshot, head.id, None).await?);
            writes.push(Write::EraseConversation(head.id));
            // Whoever adds to it meanwhile keeps it.
            preconditions.push(Precondition::Talk(Box::new(head), extent));
            count += 1;
        }
        match some.next {
            Some(next) => page.after = Some(next),
            None => return Ok(count),
        }
    }
}

async fn old_memories(
    snapshot: &dyn Snapshot,
    cutoff: Timestamp,
    writes: &mut Vec<Write>,
    preconditions: &mut Vec<Precondition>,
) -> Result<usize> {
    let filter = Filter { statuses: KEPT.to_vec(), until: Some(cutoff), ..Filter::default() };
    let order = Order::OldestFirst;
    let mut page = PageRequest { limit: limits::PAGE, order, ..PageRequest::default() };
    let mut count = 0;
    loop {
        let some = snapshot.memories(&filter, &page).await?;
        for memory in some.items {
            if count == AT_ONCE {
                return Ok(count);
            }
            if memory.legal_hold || memory.head.recorded >= cutoff {
                continue;
            }
            preconditions.push(Precondition::Head(memory.head.memory, Some(memory.head.number)));
            writes.push(Write::Erase { memory: memory.head.memory });
            count += 1;
        }
        match some.next {
            Some(next) => page.after = Some(next),
            None => return Ok(count),
        }
    }
}

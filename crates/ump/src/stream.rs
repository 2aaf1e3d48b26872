//! Changes as they happen: the one feed, in the words of the protocol.

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::{Value, json};
use yore_domain::change::What;
use yore_domain::grant::Verb;
use yore_domain::memory::Cause;
use yore_domain::{Error, MemoryId, Result};
use yore_engine::{Call, Event, Identity, Purpose, Reference};

use crate::map::{self, Place, id_of};
use crate::operations::{addressed, wire_of};
use crate::wire::{Object, Wire, object, text};
use crate::{Ump, id};

/// One change as a subscriber is told of it.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    /// Where to go on after it.
    pub(crate) cursor: String,
    /// What sort of change.
    pub(crate) kind: &'static str,
    /// The event.
    pub(crate) value: Value,
}

/// Whose changes are followed; all members that are set must be equal.
#[derive(Clone, Debug, Default)]
struct Wanted {
    members: Vec<(&'static str, String)>,
}

struct Following {
    ump: Ump,
    call: Call,
    identity: Identity,
    wanted: Wanted,
    wire: Wire,
}

/// Follows changes; each value carries its cursor.
pub(crate) async fn values(
    ump: &Ump,
    call: Call,
    input: Object,
) -> Result<BoxStream<'static, Value>> {
    let wire = wire_of(&input)?;
    let told = follow(ump, call, input, wire).await?;
    Ok(told
        .map(|told| {
            let mut value = told.value;
            value["cursor"] = told.cursor.into();
            value
        })
        .boxed())
}

/// Follows changes inside a scope, after a cursor or from now on.
pub(crate) async fn follow(
    ump: &Ump,
    call: Call,
    input: Object,
    wire: Wire,
) -> Result<BoxStream<'static, Told>> {
    let scope = object(&input, "scope", "scope")?.cloned().unwrap_or_default();
    let call = addressed(&call, text(&scope, "owner", "scope.owner")?.as_deref());
    let after = text(&input, "after", "after")?;
    let after = after.map(|cursor| ump.engine.seq_at(&cursor)).transpose()?;
    let identity = ump.engine.identify(&call, Verb::Read).await?;
    let wanted = Wanted::of(&scope, &identity)?;
    let events = ump.engine.subscribe(&call, after).await?;
    let following = Following { ump: ump.clone(), call, identity, wanted, wire };
    Ok(stream::unfold((events, following), |(mut events, following)| async move {
        loop {
            // The engine ends the stream when the grant behind it ends.
            let event = events.next().await?.ok()?;
            match following.told(event).await {
                Ok(Some(told)) => return Some((told, (events, following))),
                Ok(None) => {}
                Err(_) => return None,
            }
        }
    })
    .boxed())
}

impl Following {
    async fn told(&self, event: Event) -> Result<Option<Told>> {
        let Event { cursor, change, .. } = event;
        let told = match change {
            What::Memory { memory, head, cause, .. } => self.change(memory, head, cause).await?,
            What::Erased { memory, .. } if self.wanted.members.is_empty() => Some(gone(memory)),
            What::Erased { .. }
            | What::Conversation { .. }
            | What::Message { .. }
            | What::ConversationErased { .. }
            | What::Profile { .. }
            | What::Hold { .. }
            | What::Grant { .. }
            | What::Job { .. } => None,
        };
        Ok(told.map(|(kind, value)| Told { cursor, kind, value }))
    }

    async fn change(
        &self,
        memory: MemoryId,
        head: u32,
        cause: Cause,
    ) -> Result<Option<(&'static str, Value)>> {
        let kind = match cause {
            Cause::Created => "created",
            Cause::Reinforced | Cause::Merged => "merged",
            Cause::Revised | Cause::Restored | Cause::Relabelled => "revised",
            Cause::Tombstoned | Cause::Expired | Cause::Absorbed | Cause::Quarantined => {
                "tombstoned"
            }
        };
        let wanted = vec![Reference::Memory(memory)];
        let chain = match self.ump.engine.chain(&self.call, wanted, Purpose::Reading).await {
            Ok(chain) => chain,
            // It left the subscriber's sight, or is gone since.
            Err(Error::NotFound) if self.wanted.members.is_empty() => {
                return Ok(Some(gone(memory)));
            }
            Err(Error::NotFound) => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(version) = chain.versions.iter().find(|one| one.number == head) else {
            return Ok(None);
        };
        let place = Place::of(version, &chain.versions, self.ump.engine.now());
        let record = self.ump.emit(&self.identity, version, &place, self.wire).await?;
        // What consent leaves out still decides what belongs to a scope.
        let whole =
            map::record(version, &place, self.identity.did(), self.wire, self.ump.engine.now());
        if !self.wanted.fits(&whole) {
            return Ok(None);
        }
        Ok(Some((kind, json!({"type": kind, "id": id_of(version), "record": record}))))
    }
}

fn gone(memory: MemoryId) -> (&'static str, Value) {
    ("tombstoned", json!({"type": "tombstoned", "id": id::of_memory(memory)}))
}

impl Wanted {
    fn of(scope: &Object, identity: &Identity) -> Result<Self> {
        let mut members = Vec::new();
        for name in ["owner", "user", "project", "agent", "session", "visibility"] {
            if let Some(mut value) = text(scope, name, &format!("scope.{name}"))? {
                if name == "owner" && value == identity.owner() {
                    value = identity.did().to_owned();
                }
                members.push((name, value));
            }
        }
        Ok(Self { members })
    }

    fn fits(&self, record: &Object) -> bool {
        self.members.iter().all(|(name, wanted)| {
            record["scope"].get(name).and_then(Value::as_str) == Some(wanted.as_str())
        })
    }
}

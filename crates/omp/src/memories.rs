//! Memory records: made, read, listed, adjusted and removed.

use serde_json::{Value, json};
use yore_archive::omp::memory_from;
use yore_domain::grant::Verb;
use yore_domain::kind::Facet;
use yore_domain::memory::{Body, Draft, Memory, Status};
use yore_domain::mutation::{Depth, MergeStrategy, Mutation, Patch};
use yore_domain::query::{Order, PageRequest};
use yore_domain::{ConversationId, Error, MemoryId, Timestamp};
use yore_engine::{Call, Reference, Wish};

use crate::condition::Expected;
use crate::conversations::{lowering, seen, texts};
use crate::error::{Refusal, Result};
use crate::flags::{self, Flags, Wanted};
use crate::map::{self, Object};
use crate::routes::{Asking, Sheet};
use crate::scope::Scope;
use crate::{NAME, Omp};

/// What is kept and shown, whether it holds or not.
const KEPT: [Status; 4] =
    [Status::Active, Status::Candidate, Status::Quarantined, Status::Tombstoned];
/// What is kept and no longer holds.
const INACTIVE: [Status; 2] = [Status::Quarantined, Status::Tombstoned];

impl Omp {
    /// Stores a record under its own id. One that supersedes another takes its place, unless a
    /// third took it before.
    pub(crate) async fn create_memory(
        &self,
        asking: &Asking,
        mut object: Object,
    ) -> Result<(MemoryId, String, Object)> {
        let call = &asking.call;
        flags::check(&object)?;
        let held = self.holds_at_once(call, &mut object).await?;
        let sources = self.inherited(call, &object).await?;
        sources.inherit(&mut object);
        let superseded = self.superseded(call, &object).await?;
        let mut note = memory_from(object)?;
        keep_made(&mut note.draft);
        let remember = Mutation::Remember { draft: Box::new(note.draft), id: Some(note.id) };
        let done = self.engine.mutate_as(NAME, call, remember, Wish::default()).await?;
        let id = done.memories.first().map_or(note.id, |head| head.memory);
        // What follows is another change than the one a client's operation id names.
        let call = &Call { operation: None, ..call.clone() };
        if held {
            self.engine.legal_hold(call, id, true).await?;
        }
        if let Some(before) = superseded {
            self.supersede(call, id, before).await?;
        }
        if !note.active {
            self.set_active(call, id, false).await?;
        }
        Ok(match seen(self.engine.get(call, Reference::Memory(id)).await)? {
            Some(memory) => (id, tag(&memory), map::memory_out(&memory, self.engine.now())),
            None => (id, String::new(), map::only_id(id)),
        })
    }

    /// The record that a new one supersedes, if it is here. Who comes second is told who won.
    async fn superseded(&self, call: &Call, object: &Object) -> Result<Option<MemoryId>> {
        let named = object.get("supersedes").and_then(Value::as_str);
        let Some(id) = named.and_then(|id| id.parse::<MemoryId>().ok()) else { return Ok(None) };
        match self.engine.get(call, Reference::Memory(id)).await {
            Ok(memory) => match memory.head.absorbed_by {
                Some(winner) => Err(superseded_by(winner)),
                None => Ok(memory.head.status.is_live().then_some(id)),
            },
            Err(Error::NotFound) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn supersede(&self, call: &Call, id: MemoryId, before: MemoryId) -> Result<()> {
        let merge = Mutation::Merge {
            canonical: id,
            duplicates: vec![before],
            strategy: MergeStrategy::KeepCanonical,
        };
        let Err(error) = self.engine.mutate_as(NAME, call, merge, Wish::default()).await else {
            return Ok(());
        };
        // Somebody else was first: what was stored a moment ago is not to stay.
        self.forget(call, id, Depth::Erase).await?;
        let memory = self.engine.get(call, Reference::Memory(before)).await?;
        Err(memory.head.absorbed_by.map_or_else(|| error.into(), superseded_by))
    }

    pub(crate) async fn memory(&self, asking: &Asking, id: &str) -> Result<(String, Object)> {
        let memory = self.found(&asking.call, id).await?;
        Ok((tag(&memory), map::memory_out(&memory, self.engine.now())))
    }

    async fn found(&self, call: &Call, id: &str) -> Result<Memory> {
        let id: MemoryId = id.parse().map_err(|_| Error::NotFound)?;
        Ok(self.engine.get(call, Reference::Memory(id)).await?)
    }

    pub(crate) async fn memories(&self, asking: &Asking) -> Result<Sheet> {
        let Asking { call, params, .. } = asking;
        let mut filter = params.filter()?;
        filter.statuses = match params.flag("active")? {
            None => KEPT.to_vec(),
            Some(true) => Vec::new(),
            Some(false) => INACTIVE.to_vec(),
        };
        if let Some(word) = params.one("record_type").or_else(|| params.one("type")) {
            let facet = serde_json::from_value::<Facet>(word.into());
            let facet = facet.ok().filter(|facet| TYPES.contains(facet));
            filter.facets =
                vec![facet.ok_or_else(|| Refusal::invalid("record_type", "is not known"))?];
        }
        let identity = self.engine.identify(call, Verb::Read).await?;
        let wanted = Wanted::of(params)?;
        let roll = self.roll(&identity, format!("memories {wanted:?} {}", json!(filter)));
        let page = PageRequest {
            limit: params.limit()?,
            after: params.one("cursor").map(|cursor| roll.position(cursor)).transpose()?,
            offset: 0,
            order: Order::NewestFirst,
        };
        let found = self.engine.list(call, filter, page).await?;
        let now = self.engine.now();
        let due = params.flag("expired")?;
        let data = found.items.iter().filter(|memory| {
            let content = &memory.head.content;
            wanted.met_by(Flags::stored(&content.governance, &content.foreign))
                && due.is_none_or(|due| due == map::has_expired(memory, now))
        });
        let data = data.map(|memory| map::memory_out(memory, now)).collect();
        Ok(Sheet { data, next: found.next.map(|position| roll.at(position)) })
    }

    /// Changes content, tags, expiry, whether it holds, and members of others.
    pub(crate) async fn patch_memory(
        &self,
        asking: &Asking,
        id: &str,
        change: Object,
        expected: &Expected,
    ) -> Result<(String, Object)> {
        let call = &asking.call;
        let mut memory = self.found(call, id).await?;
        expected.check(&tag(&memory))?;
        let mut change = change;
        flags::check(&change)?;
        let hold = change.shift_remove("x_regulatory_hold");
        let content = &memory.head.content;
        let had = Flags::stored(&content.governance, &content.foreign).labels();
        let (protect, release) = flags::relabelled(&mut change);
        let lowers = had.iter().any(|label| release.contains(label));
        let (mut patch, active) = patch(&memory, change)?;
        if let Some(patch) = patch.as_mut().filter(|_| !protect.is_empty() || lowers) {
            let mut governance = content.governance.clone();
            governance.labels.retain(|label| !release.contains(label));
            let fresh = protect.into_iter().filter(|label| !had.contains(label));
            governance.labels.extend(fresh.collect::<Vec<_>>());
            patch.governance = Some(governance);
        }
        let (id, single) = (memory.head.memory, Call { operation: None, ..call.clone() });
        if active == Some(true) && !memory.head.status.is_live() {
            self.set_active(&single, id, true).await?;
            memory = self.engine.get(call, Reference::Memory(id)).await?;
        }
        if let Some(patch) = patch {
            let expected_head = expected.stated().then_some(memory.head.number);
            let revise =
                Mutation::Revise { memory: id, patch: Box::new(patch), expected: expected_head };
            let done = self.engine.mutate_as(NAME, call, revise, Wish::default()).await;
            done.map_err(|error| lowering(lowers, error).unless_matched(expected.stated()))?;
        }
        if let Some(hold) = hold {
            let held = self.engine.legal_hold(&single, id, hold == Value::Bool(true)).await;
            held.map_err(|error| Refusal::from(error).at(Scope::Admin))?;
        }
        if active == Some(false) {
            self.set_active(&single, id, false).await?;
        }
        Ok(match seen(self.engine.get(call, Reference::Memory(id)).await)? {
            Some(memory) => (tag(&memory), map::memory_out(&memory, self.engine.now())),
            None => (String::new(), map::only_id(id)),
        })
    }

    pub(crate) async fn delete_memory(
        &self,
        asking: &Asking,
        id: &str,
        expected: &Expected,
    ) -> Result<Value> {
        let call = &asking.call;
        let dry_run = asking.dry_run()?;
        if dry_run || expected.stated() {
            expected.check(&tag(&self.found(call, id).await?))?;
        }
        if dry_run {
            return Ok(json!({"deleted": false, "scope": {"memories": 1}}));
        }
        let id: MemoryId = id.parse().map_err(|_| Error::NotFound)?;
        let forget = Mutation::Forget { memories: vec![id], depth: Depth::Erase, reason: None };
        self.engine.mutate_as(NAME, call, forget, wish(asking)?).await?;
        Ok(json!({"deleted": true, "scope": {"memories": 1}}))
    }

    /// What the conversations that a record is drawn from say of it, as far as the caller sees
    /// them.
    async fn inherited(&self, call: &Call, object: &Object) -> Result<Flags> {
        let mut flags = Flags::default();
        let named = object.get("source_conversations").and_then(Value::as_array);
        let named = named.into_iter().flatten().filter_map(Value::as_str);
        let sources: Vec<ConversationId> = named.filter_map(|id| id.parse().ok()).collect();
        if sources.is_empty() {
            return Ok(flags);
        }
        for head in self.engine.drawn_from(call, sources).await? {
            flags = flags.or(Flags::stored(&head.governance, &head.foreign));
        }
        Ok(flags)
    }

    async fn forget(&self, call: &Call, id: MemoryId, depth: Depth) -> Result<()> {
        let forget = Mutation::Forget { memories: vec![id], depth, reason: None };
        self.engine.mutate_as(NAME, call, forget, Wish::default()).await?;
        Ok(())
    }

    /// Says that a record holds, or no longer does. It is kept either way.
    pub(crate) async fn set_active(&self, call: &Call, id: MemoryId, active: bool) -> Result<()> {
        if !active {
            return self.forget(call, id, Depth::Tombstone).await;
        }
        let history = self.engine.history(call, id).await?;
        let live = history.iter().rev().find(|version| version.status.is_live());
        let number = live.or(history.last()).map_or(1, |version| version.number);
        let restore = Mutation::Restore { memory: id, number };
        self.engine.mutate_as(NAME, call, restore, Wish::default()).await?;
        Ok(())
    }
}

/// The types of the protocol; a record of another facet is `custom`.
const TYPES: [Facet; 7] = [
    Facet::Preference,
    Facet::Fact,
    Facet::Decision,
    Facet::Summary,
    Facet::Entity,
    Facet::Instruction,
    Facet::Custom,
];

/// Whether a person shall decide first, because another host says something else.
pub(crate) fn wish(asking: &Asking) -> Result<Wish> {
    let propose = asking.params.flag("propose")?.unwrap_or(false);
    Ok(Wish { approval: propose, conflict: propose, ..Wish::default() })
}

fn superseded_by(winner: MemoryId) -> Refusal {
    Refusal::new(409, "conflict", "another record superseded it before")
        .with("winning_id", winner.to_string())
}

/// Keeps when the record was made beside it: a revision by another protocol states a time of its
/// own, and the chain begins when the record came in.
fn keep_made(draft: &mut Draft) {
    let Some(made) = draft.time.created else { return };
    let own = draft.content.foreign.entry(NAME.to_owned()).or_insert_with(|| json!({}));
    if let Some(own) = own.as_object_mut() {
        own.entry("created_at").or_insert_with(|| made.to_string().into());
    }
}

/// What tells one state of a record from another.
pub(crate) fn tag(memory: &Memory) -> String {
    format!("{}-{}", memory.head.number, memory.head.id)
}

/// Reads a merge patch: what it revises, if anything, and whether the record is to hold.
fn patch(memory: &Memory, change: Object) -> Result<(Option<Patch>, Option<bool>)> {
    let content = &memory.head.content;
    let kept = content.foreign.get(NAME).and_then(Value::as_object);
    let mut own = kept.cloned().unwrap_or_default();
    let (mut patch, mut active, mut revised) = (Patch::default(), None, false);
    for (name, value) in change {
        revised |= name != "active";
        match (name.as_str(), value) {
            ("content", Value::String(text)) => {
                patch.body = Some(Body { text, ..content.body.clone() });
            }
            ("tags", Value::Null) => patch.tags = Some(Vec::new()),
            ("tags", value) => patch.tags = Some(texts(&name, value)?),
            ("active", Value::Bool(value)) => active = Some(value),
            ("expires_at", value) => {
                let mut lifecycle = content.lifecycle.clone();
                lifecycle.expires = (!value.is_null()).then(|| moment(&value)).transpose()?;
                patch.lifecycle = Some(lifecycle);
            }
            (_, Value::Null) if name.starts_with("x_") => {
                own.shift_remove(&name);
            }
            (_, value) if name.starts_with("x_") && name != "x_yore" => {
                own.insert(name, value);
            }
            (_, _) => {
                let reason = "cannot be changed so; content, tags, active and expires_at can";
                return Err(Refusal::invalid(&name, reason));
            }
        }
    }
    // A revision is made now; when the record was made stays known.
    let made = memory.since.min(memory.head.time.created).to_string();
    own.entry("created_at").or_insert_with(|| made.into());
    patch.foreign.insert(NAME.to_owned(), Value::Object(own));
    Ok((revised.then_some(patch), active))
}

fn moment(value: &Value) -> Result<Timestamp> {
    let text = value.as_str().and_then(|text| text.parse().ok());
    text.ok_or_else(|| Refusal::invalid("expires_at", "must be a time with an offset"))
}

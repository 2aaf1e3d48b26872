//! A record as another host has it: made here, or put in the place of what is here.
//!
//! `PATCH` changes what a person changes; this is for hosts that keep records in step.

use serde_json::{Value, json};
use yore_archive::omp::memory_from;
use yore_domain::memory::{Body, Lifecycle, Memory};
use yore_domain::mutation::{Depth, Mutation, Patch, Relabel};
use yore_domain::{Error, MemoryId};
use yore_engine::{Call, Reference, Wish};

use crate::condition::Expected;
use crate::conversations::{deleted_here, seen, there};
use crate::error::{Refusal, Result};
use crate::map::{self, Object};
use crate::memories::{tag, wish};
use crate::routes::Asking;
use crate::scope::Scope;
use crate::{NAME, Omp, flags};

/// A record that was put, as it stands now.
pub(crate) struct Put {
    pub(crate) id: MemoryId,
    /// Whether it is new.
    pub(crate) made: bool,
    pub(crate) tag: String,
    pub(crate) body: Object,
}

impl Omp {
    /// Stores a record under the id of its path, or replaces the one that is there. One that was
    /// deleted here does not come back.
    pub(crate) async fn put_memory(
        &self,
        asking: &Asking,
        named: &str,
        mut object: Object,
        expected: &Expected,
    ) -> Result<Put> {
        let call = &asking.call;
        let id: MemoryId = named.parse().map_err(|_| Error::NotFound)?;
        if object.get("id").is_some_and(|said| said != named) {
            return Err(Refusal::invalid("id", "is not the one of the path"));
        }
        let whole = object.contains_key("x_yore");
        object.insert("id".into(), named.into());
        let own = object.entry("x_yore").or_insert_with(|| json!({}));
        if let Some(own) = own.as_object_mut() {
            own.insert("id".into(), named.into());
        }
        let Some(memory) = there(self.engine.get(call, Reference::Memory(id)).await)? else {
            if expected.stated() {
                return Err(Refusal::new(412, "precondition_failed", "it is not here"));
            }
            if self.engine.was_erased(call, id).await? {
                return Err(deleted_here());
            }
            let (id, tag, body) = self.create_memory(asking, object).await?;
            return Ok(Put { id, made: true, tag, body });
        };
        expected.check(&tag(&memory))?;
        flags::check(&object)?;
        self.replace(call, &memory, (object, whole), expected.stated(), wish(asking)?).await?;
        Ok(match seen(self.engine.get(call, Reference::Memory(id)).await)? {
            Some(memory) => {
                let body = map::memory_out(&memory, self.engine.now());
                Put { id, made: false, tag: tag(&memory), body }
            }
            None => Put { id, made: false, tag: String::new(), body: map::only_id(id) },
        })
    }

    /// `whole` tells that the document says everything there is to say of a record; otherwise it
    /// is silent about labels, scope and whatever else the protocol has no place for.
    async fn replace(
        &self,
        call: &Call,
        memory: &Memory,
        (mut object, whole): (Object, bool),
        stated: bool,
        wish: Wish,
    ) -> Result<()> {
        let id = memory.head.memory;
        let single = Call { operation: None, ..call.clone() };
        let hold = object.shift_remove("x_regulatory_hold") == Some(Value::Bool(true));
        let note = memory_from(object)?;
        let content = note.draft.content;
        let live = memory.head.status.is_live();
        if wish.approval && live != note.active {
            let change = match live {
                true => {
                    Mutation::Forget { memories: vec![id], depth: Depth::Tombstone, reason: None }
                }
                false => Mutation::Restore { memory: id, number: memory.head.number },
            };
            self.engine.mutate_as(NAME, call, change, wish).await?;
            return Ok(());
        }
        let before = &memory.head.content;
        let relabel = Relabel {
            scope: (whole && content.scope != before.scope).then(|| content.scope.clone()),
            consent: (whole && content.consent != before.consent).then(|| content.consent.clone()),
            governance: None,
        };
        if !live && note.active {
            self.set_active(&single, id, true).await?;
        }
        let mut foreign = content.foreign;
        let own = foreign.entry(NAME.to_owned()).or_insert_with(|| json!({}));
        if let Some(own) = own.as_object_mut() {
            let made = memory.since.min(memory.head.time.created).to_string();
            own.entry("created_at").or_insert_with(|| made.into());
        }
        let mut patch = Patch {
            kind: Some(content.kind),
            facet: Some(content.facet),
            tags: Some(content.tags),
            foreign,
            ..Patch::default()
        };
        if whole {
            patch.body = Some(content.body);
            patch.lifecycle = Some(content.lifecycle);
            patch.relations = Some(content.relations);
            patch.governance = Some(content.governance);
            patch.provenance = Some(content.provenance);
            patch.valid_to = note.draft.time.valid_to;
        } else {
            patch.body = Some(Body { text: content.body.text, ..before.body.clone() });
            patch.lifecycle = Some(Lifecycle {
                confidence: content.lifecycle.confidence,
                expires: content.lifecycle.expires,
                ..before.lifecycle.clone()
            });
        }
        let head = (stated && live).then_some(memory.head.number);
        let revise = Mutation::Revise { memory: id, patch: Box::new(patch), expected: head };
        let done = self.engine.mutate_as(NAME, call, revise, wish).await;
        done.map_err(|error| Refusal::from(error).unless_matched(stated))?;
        if relabel != Relabel::default() {
            let relabel = Mutation::Relabel { memory: id, change: Box::new(relabel) };
            self.engine.mutate_as(NAME, &single, relabel, Wish::default()).await?;
        }
        if hold != memory.legal_hold {
            let held = self.engine.legal_hold(&single, id, hold).await;
            held.map_err(|error| Refusal::from(error).at(Scope::Admin))?;
        }
        if live && !note.active {
            self.set_active(&single, id, false).await?;
        }
        Ok(())
    }
}

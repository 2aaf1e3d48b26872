//! What changes, as the protocol's events, through the subscriber's own lens.

use std::collections::BTreeMap;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::{Value, json};
use yore_domain::change::What;
use yore_domain::class::{Label, Sensitivity, Surface};
use yore_domain::grant::Verb;
use yore_domain::kind::Facet;
use yore_domain::memory::{Cause, Content, Status};
use yore_domain::query::{Filter, PageRequest};
use yore_domain::{Error, MemoryId};
use yore_engine::{Call, Event, Reference};

use crate::Oamp;
use crate::error::{Refusal, Result};
use crate::map;
use crate::operations::{facets, needed, sensitivity};
use crate::person::Person;
use crate::wire::{self, Object};

/// The subprotocol of the WebSocket.
pub(crate) const SUBPROTOCOL: &str = "oamp.v1";
/// The events there are.
pub(crate) const EVENTS: [&str; 4] =
    ["knowledge_created", "knowledge_updated", "knowledge_deleted", "user_model_updated"];
/// What may narrow a subscription.
pub(crate) const FILTERS: [&str; 5] =
    ["category", "tags", "min_confidence", "sensitivity_class", "governance_label"];

/// Entries read at once for a snapshot.
const PAGE: usize = 500;

/// What a client wants to be told.
#[derive(Clone, Debug)]
pub(crate) struct Subscription {
    pub(crate) id: String,
    user: String,
    events: Option<Vec<String>>,
    narrow: Narrow,
    snapshot: bool,
}

/// The filters of a subscription.
#[derive(Clone, Debug, Default)]
struct Narrow {
    facets: Vec<Facet>,
    tags: Vec<String>,
    least: Option<f64>,
    classes: Vec<Sensitivity>,
    labels: Vec<Label>,
}

/// One event: its type and what it says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Told {
    pub(crate) kind: &'static str,
    pub(crate) payload: Value,
}

impl Subscription {
    /// Reads the payload of a subscribe frame.
    pub(crate) fn of(payload: &Object) -> Result<Self> {
        let events = wire::texts(payload, "", "event_types")?;
        let filters = wire::object(payload, "", "filters")?.unwrap_or_default();
        let snapshot = wire::flag(payload, "", "include_initial_snapshot")?.unwrap_or_default();
        let id = needed(payload, "subscription_id")?;
        let user = needed(payload, "user_id")?;
        Ok(Self { id, user, events, narrow: Narrow::of(&filters)?, snapshot })
    }

    fn wants(&self, event: &str) -> bool {
        self.events.as_ref().is_none_or(|events| events.iter().any(|wanted| wanted == event))
    }
}

impl Narrow {
    fn of(filters: &Object) -> Result<Self> {
        let list = |name| -> Result<Vec<String>> {
            Ok(wire::texts(filters, "filters", name)?.unwrap_or_default())
        };
        let mut narrow = Self {
            tags: list("tags")?,
            least: wire::share(filters, "filters", "min_confidence")?.and_then(|n| n.as_f64()),
            ..Self::default()
        };
        for word in list("category")? {
            narrow.facets.extend(facets(&word)?);
        }
        for word in list("sensitivity_class")? {
            narrow.classes.push(sensitivity(&word)?);
        }
        for word in list("governance_label")? {
            narrow.labels.push(Label::new(word)?);
        }
        Ok(narrow)
    }

    fn passes(&self, content: &Content) -> bool {
        let any = |wanted: bool, empty: bool| empty || wanted;
        let declared = &content.governance;
        any(self.facets.contains(&content.facet), self.facets.is_empty())
            && any(self.tags.iter().any(|tag| content.tags.contains(tag)), self.tags.is_empty())
            && self.least.is_none_or(|least| content.lifecycle.confidence.unwrap_or(1.0) >= least)
            && any(
                declared.sensitivity.is_some_and(|class| self.classes.contains(&class)),
                self.classes.is_empty(),
            )
            && any(
                self.labels.iter().any(|label| declared.labels.contains(label)),
                self.labels.is_empty(),
            )
    }
}

/// A subscription under way.
struct Following {
    oamp: Oamp,
    person: Person,
    subscription: Subscription,
    /// Ids that this subscriber knows under a spelling of its own.
    spelt: BTreeMap<MemoryId, Value>,
}

impl Oamp {
    /// Follows changes. The first event is the snapshot, when one is wanted; an error ends it.
    pub(crate) async fn follow(
        &self,
        call: &Call,
        subscription: Subscription,
    ) -> Result<BoxStream<'static, Result<Told>>> {
        let person = self.person(call, Some(&subscription.user), Verb::Read).await?;
        let events = self.engine.subscribe(&person.call, None).await?;
        let snapshot = subscription.snapshot;
        let mut following =
            Following { oamp: self.clone(), person, subscription, spelt: BTreeMap::new() };
        let first = match snapshot {
            true => Some(Ok(following.snapshot().await?)),
            false => None,
        };
        let live =
            stream::unfold((events, following, false), |(mut events, mut following, ended)| {
                async move {
                    if ended {
                        return None;
                    }
                    loop {
                        // The engine ends the stream when the grant behind it ends.
                        let told = match events.next().await? {
                            Ok(event) => following.told(event).await,
                            Err(error) => Err(error.into()),
                        };
                        match told {
                            Ok(None) => {}
                            Ok(Some(told)) => return Some((Ok(told), (events, following, false))),
                            Err(refusal) => return Some((Err(refusal), (events, following, true))),
                        }
                    }
                }
            });
        Ok(stream::iter(first).chain(live).boxed())
    }
}

impl Following {
    async fn snapshot(&mut self) -> Result<Told> {
        let mut entries = Vec::new();
        let mut page = PageRequest { limit: PAGE, ..PageRequest::default() };
        loop {
            let (call, surface) = (&self.person.call, Surface::Stream);
            let engine = &self.oamp.engine;
            let found = engine.list_on(call, Filter::default(), page.clone(), surface).await?;
            for memory in found.items {
                if self.subscription.narrow.passes(&memory.head.content) {
                    entries.extend(
                        self.written(memory.head.memory, map::entry(&memory, &self.person)),
                    );
                }
            }
            match found.next {
                Some(next) => page.after = Some(next),
                None => break,
            }
        }
        let payload = json!({"subscription_id": self.subscription.id, "entries": entries});
        Ok(Told { kind: "knowledge_snapshot", payload })
    }

    /// Notes under which id the subscriber knows an entry.
    fn written(&mut self, memory: MemoryId, entry: Option<Object>) -> Option<Value> {
        let entry = entry?;
        let id = entry.get("id").cloned().unwrap_or_default();
        if id != memory.to_string() {
            self.spelt.insert(memory, id);
        }
        Some(entry.into())
    }

    async fn told(&mut self, event: Event) -> Result<Option<Told>> {
        let told = match event.change {
            What::Memory { memory, status, cause, .. } => {
                self.change(memory, status, cause).await?
            }
            What::Erased { memory, .. } => Some(self.gone(memory)),
            What::Profile { user: None } => self.model().await?,
            What::Profile { user: Some(_) }
            | What::Conversation { .. }
            | What::Message { .. }
            | What::ConversationErased { .. }
            | What::Hold { .. }
            | What::Grant { .. }
            | What::Job { .. } => None,
        };
        Ok(told.filter(|told| self.subscription.wants(told.kind)))
    }

    async fn change(
        &mut self,
        memory: MemoryId,
        status: Status,
        cause: Cause,
    ) -> Result<Option<Told>> {
        if !status.is_live() {
            return Ok(Some(self.gone(memory)));
        }
        let kind = match cause {
            Cause::Created => "knowledge_created",
            Cause::Revised
            | Cause::Relabelled
            | Cause::Reinforced
            | Cause::Merged
            | Cause::Absorbed
            | Cause::Tombstoned
            | Cause::Expired
            | Cause::Quarantined
            | Cause::Restored => "knowledge_updated",
        };
        let (call, wanted) = (&self.person.call, Reference::Memory(memory));
        let found = match self.oamp.engine.get_on(call, wanted, Surface::Stream).await {
            Ok(found) => found,
            // It left the subscriber's sight or is gone since; another event says so.
            Err(Error::NotFound) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if !found.head.status.is_live() || !self.subscription.narrow.passes(&found.head.content) {
            return Ok(None);
        }
        let entry = map::entry(&found, &self.person);
        let Some(entry) = self.written(memory, entry) else { return Ok(None) };
        let payload = json!({"subscription_id": self.subscription.id, "entry": entry});
        Ok(Some(Told { kind, payload }))
    }

    fn gone(&self, memory: MemoryId) -> Told {
        let id = self.spelt.get(&memory).cloned();
        let payload = json!({
            "subscription_id": self.subscription.id,
            "id": id.unwrap_or_else(|| memory.to_string().into()),
            "user_id": self.person.identity.owner(),
        });
        Told { kind: "knowledge_deleted", payload }
    }

    async fn model(&self) -> Result<Option<Told>> {
        match self.oamp.engine.profile(&self.person.call, None).await {
            Ok(profile) => {
                let payload = json!({
                    "subscription_id": self.subscription.id,
                    "user_model": profile.document,
                });
                Ok(Some(Told { kind: "user_model_updated", payload }))
            }
            Err(Error::NotFound) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// The code of an error frame.
pub(crate) fn code(refusal: &Refusal) -> &'static str {
    match refusal.status {
        401 | 403 | 404 => "forbidden",
        429 | 503 => "rate_limited",
        400..=499 => "invalid",
        _ => "internal",
    }
}

//! Deleting by filter, or everything: first what would go is shown, then it goes.
//!
//! The token of a preview proves that this caller saw exactly this scope a short while ago. When
//! anything was added to it or taken from it meanwhile, it is shown again instead.

use serde_json::{Value, json};
use yore_canon::encode::{base64url, from_base64url};
use yore_canon::hash::Sha256;
use yore_domain::grant::Verb;
use yore_domain::memory::Status;
use yore_domain::mutation::{Depth, Mutation};
use yore_domain::query::{Filter, Order, PageRequest};
use yore_domain::{ConversationId, Error, MemoryId, Span, Timestamp, limits};
use yore_engine::{Call, Identity, Wish};

use crate::error::{Refusal, Result};
use crate::map::Object;
use crate::params::Params;
use crate::routes::Asking;
use crate::{NAME, Omp};

/// How long a preview holds.
const HOLDS: Span = Span::seconds(600);
/// What is kept and can be deleted.
const KEPT: [Status; 4] =
    [Status::Active, Status::Candidate, Status::Quarantined, Status::Tombstoned];

/// What is to be deleted.
struct Wanted {
    filter: Filter,
    conversations: bool,
    memories: bool,
}

impl Wanted {
    /// Reads a request. Everything goes only where that is said in so many words.
    fn of(asked: &Object) -> Result<Self> {
        let filter = Params::members(asked.get("filter"))?.filter()?;
        let vault = match asked.get("vault") {
            None | Some(Value::Null) => false,
            Some(Value::Bool(vault)) => *vault,
            Some(_) => return Err(Refusal::invalid("vault", "must be true or false")),
        };
        if vault == (filter != Filter::default()) {
            let reason = "name a filter, or say \"vault\": true for everything";
            return Err(Refusal::invalid("filter", reason));
        }
        let (conversations, memories) = match asked.get("type").map(Value::as_str) {
            None | Some(Some("all")) => (true, true),
            Some(Some("conversation")) => (true, false),
            Some(Some("memory")) => (false, true),
            Some(_) => return Err(Refusal::invalid("type", "must be conversation or memory")),
        };
        Ok(Self { filter, conversations, memories })
    }

    /// What a token is bound to.
    fn said(&self) -> String {
        format!("deletion {}", json!([self.filter, self.conversations, self.memories]))
    }
}

/// What would go.
#[derive(Default)]
struct Extent {
    conversations: Vec<ConversationId>,
    messages: u64,
    memories: Vec<MemoryId>,
}

impl Extent {
    fn scope(&self) -> Value {
        json!({
            "conversations": self.conversations.len(),
            "messages": self.messages,
            "memories": self.memories.len(),
        })
    }

    /// Tells one scope from another.
    fn digest(&self) -> [u8; 32] {
        let mut hasher = Sha256::hasher();
        for id in &self.conversations {
            hasher.update(id.bytes());
        }
        hasher.update(self.messages.to_be_bytes());
        for id in &self.memories {
            hasher.update(id.bytes());
        }
        *hasher.finish().as_bytes()
    }
}

impl Omp {
    /// Shows what a deletion would take, and gives the token for it.
    pub(crate) async fn preview(&self, asking: &Asking, asked: &Object) -> Result<Value> {
        let call = &asking.call;
        let wanted = Wanted::of(asked)?;
        self.engine.demand(call, "deletion.preview", Verb::Erase).await?;
        let extent = self.extent(call, &wanted).await?;
        let identity = self.engine.identify(call, Verb::Read).await?;
        let until = self.engine.now().plus(HOLDS);
        Ok(json!({
            "scope": extent.scope(),
            "token": self.token(&identity, &wanted, &extent, until),
            "expires_at": until.to_string(),
        }))
    }

    /// Deletes what a preview showed. What a hold protects stays, and is reported; so does what a
    /// person decides about first.
    pub(crate) async fn delete(&self, asking: &Asking, asked: &Object) -> Result<Value> {
        let call = &asking.call;
        let wanted = Wanted::of(asked)?;
        let token = asked.get("token").and_then(Value::as_str);
        let token = token.ok_or_else(|| Refusal::invalid("token", "is missing; preview first"))?;
        let extent = self.extent(call, &wanted).await?;
        let identity = self.engine.identify(call, Verb::Read).await?;
        self.confirmed(token, &identity, &wanted, &extent)?;
        let call = Call { operation: None, ..call.clone() };
        let mut gone = Extent::default();
        let (mut held, mut pending) = (Vec::new(), Vec::new());
        for id in extent.conversations {
            match self.engine.erase_conversation(&call, id, Vec::new()).await {
                Ok(messages) => {
                    gone.conversations.push(id);
                    gone.messages += messages;
                }
                Err(Error::Consent { .. }) => {
                    self.engine.erase_when_released(&call, id).await?;
                    held.push(json!({"type": "conversation", "id": id}));
                }
                // Somebody else was quicker.
                Err(Error::NotFound) => {}
                Err(error) => return Err(error.into()),
            }
        }
        for id in extent.memories {
            let forget = Mutation::Forget { memories: vec![id], depth: Depth::Erase, reason: None };
            match self.engine.mutate_as(NAME, &call, forget, Wish::default()).await {
                Ok(_) => gone.memories.push(id),
                Err(Error::Consent { .. }) => {
                    self.engine.erase_memory_when_released(&call, id).await?;
                    held.push(json!({"type": "memory", "id": id}));
                }
                Err(Error::Held { hold }) => {
                    pending.push(json!({"type": "memory", "id": id, "hold": hold}));
                }
                Err(Error::NotFound) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut answer = json!({"deleted": true, "scope": gone.scope(), "held": held});
        if !pending.is_empty() {
            answer["pending"] = pending.into();
        }
        Ok(answer)
    }

    /// Everything that passes.
    async fn extent(&self, call: &Call, wanted: &Wanted) -> Result<Extent> {
        let mut extent = Extent::default();
        if wanted.conversations {
            self.conversations_of(call, wanted, &mut extent).await?;
        }
        if wanted.memories {
            self.memories_of(call, wanted, &mut extent).await?;
        }
        Ok(extent)
    }

    async fn conversations_of(
        &self,
        call: &Call,
        wanted: &Wanted,
        extent: &mut Extent,
    ) -> Result<()> {
        let mut page = from_the_oldest();
        loop {
            let filter = wanted.filter.clone();
            let found = self.engine.conversations(call, filter, page.clone()).await?;
            for (head, messages) in &found.items {
                extent.conversations.push(head.id);
                extent.messages += messages;
            }
            page.after = found.next;
            if page.after.is_none() {
                return Ok(());
            }
        }
    }

    async fn memories_of(&self, call: &Call, wanted: &Wanted, extent: &mut Extent) -> Result<()> {
        let filter = Filter { statuses: KEPT.to_vec(), ..wanted.filter.clone() };
        let mut page = from_the_oldest();
        loop {
            let found = self.engine.list(call, filter.clone(), page.clone()).await?;
            extent.memories.extend(found.items.iter().map(|memory| memory.head.memory));
            page.after = found.next;
            if page.after.is_none() {
                return Ok(());
            }
        }
    }

    fn token(
        &self,
        identity: &Identity,
        wanted: &Wanted,
        extent: &Extent,
        until: Timestamp,
    ) -> String {
        let until = until.micros().to_be_bytes();
        let proof = self.proof(identity, wanted, extent, until);
        base64url(&[&until[..], &proof].concat())
    }

    fn proof(
        &self,
        identity: &Identity,
        wanted: &Wanted,
        extent: &Extent,
        until: [u8; 8],
    ) -> [u8; 32] {
        let said = [&until[..], &extent.digest()].concat();
        self.engine.stamp(identity, &wanted.said(), &said)
    }

    fn confirmed(
        &self,
        token: &str,
        identity: &Identity,
        wanted: &Wanted,
        extent: &Extent,
    ) -> Result<()> {
        let again = || {
            Refusal::new(409, "conflict", "what would go has changed, or the preview is too old")
                .with("scope", extent.scope())
        };
        let bytes = from_base64url(token).map_err(|_| again())?;
        let (until, proof) = bytes.split_at_checked(8).ok_or_else(again)?;
        let until: [u8; 8] = until.try_into().map_err(|_| again())?;
        let fresh = self.engine.now() <= Timestamp::from_micros(i64::from_be_bytes(until));
        if !fresh || proof != self.proof(identity, wanted, extent, until) {
            return Err(again());
        }
        Ok(())
    }
}

fn from_the_oldest() -> PageRequest {
    PageRequest { limit: limits::PAGE, order: Order::OldestFirst, ..PageRequest::default() }
}

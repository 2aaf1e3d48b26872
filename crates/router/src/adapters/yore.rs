//! Another Yore, by its memorywire routes.
//!
//! A record travels whole, as one member beside those the protocol has, and comes back with the
//! hits. Its place is the id it has over there. What another Yore was given by a router is not
//! passed on: two that hold each other would send it back and forth for ever.

use futures::future::{BoxFuture, FutureExt};
use serde_json::{Value, json};

use super::rest::{BEARER, RECORD, record_in};
use super::{must, object, rows, text};
use crate::envelope::Envelope;
use crate::error::{Error, Result};
use crate::http::{Client, Server};
use crate::record::{Found, Object, Question, Record, Type, Whose};
use crate::slot::Depth;
use crate::store::{Capabilities, Capability, Health, Keeps, MemoryStore, Neighbour, Page};

const BACKEND: &str = "yore";
/// Where the protocol's routes are.
const PREFIX: &str = "/memorywire/v0";
/// What a hit has that is no member of a record.
const OWN: [&str; 14] = [
    "id",
    "agent_id",
    "type",
    "content",
    "score",
    "metadata",
    "created_at",
    "updated_at",
    "supporting",
    "source_store",
    "confidence",
    "user_id",
    "source",
    "expires_at",
];
/// What is said of a hit besides.
const ABOUT: [&str; 2] = ["envelope", "last_recalled_at"];

/// Another Yore.
#[derive(Debug)]
pub struct Yore {
    client: Client,
    /// The name that its signatures are for, where it shall sign.
    sign_as: Option<String>,
}

impl Yore {
    /// Prepares to speak to a server; nothing is sent yet. With a name, its answers shall be
    /// signed for a store of that name.
    pub fn new(server: impl Into<Server>, sign_as: Option<String>) -> Result<Self> {
        let mut server: Server = server.into();
        server.base_url = format!("{}{PREFIX}", server.base_url.trim_end_matches('/'));
        Ok(Self { client: Client::new(&server, BEARER.0, BEARER.1)?, sign_as })
    }

    async fn page(&self, whose: &Whose, filter: Object, after: Option<&str>) -> Result<Page> {
        let mut body = about(whose);
        body["filter"] = filter.into();
        body["after"] = after.into();
        let listed = self.client.post("/list", &body).await?;
        let next = text(&listed, "next").map(str::to_owned);
        let items = rows(listed)?.iter().map(read_hit).collect::<Result<_>>()?;
        Ok(Page { items, next })
    }
}

/// A request that says whose memories it is about.
fn about(whose: &Whose) -> Value {
    json!({"agent_id": whose.agent, "user_id": whose.user, "agent_only": whose.user.is_none()})
}

impl MemoryStore for Yore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::from(Capability::ALL)
    }

    fn keeps(&self) -> Keeps {
        Keeps::Everything
    }

    fn health(&self) -> BoxFuture<'_, Result<Health>> {
        async move {
            let told = self.client.get("/health").await?.json()?;
            Ok(Health { status: must(&told, "status")?.to_owned(), ..Health::ok(BACKEND) })
        }
        .boxed()
    }

    fn remember<'a>(&'a self, record: &'a Record) -> BoxFuture<'a, Result<String>> {
        async move {
            if record.extra.contains_key(RECORD) {
                return Err(Error::Unsupported("it came from another Yore".into()));
            }
            let mut body = Value::Object(record.extra.clone());
            body["agent_id"] = record.agent_id.as_str().into();
            body["user_id"] = record.user_id.as_deref().into();
            body["agent_only"] = record.user_id.is_none().into();
            body["type"] = record.kind.as_str().into();
            body["content"] = record.content.as_str().into();
            body["metadata"] = record.metadata.clone().into();
            body["confidence"] = record.confidence.into();
            body["source"] = record.source.as_deref().into();
            body["expires_at"] = record.expires_at.into();
            body[RECORD] = record.without_content();
            let made = self.client.post("/remember", &body).await?;
            Ok(must(&made, "id")?.to_owned())
        }
        .boxed()
    }

    fn locate<'a>(
        &'a self,
        whose: &'a Whose,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>>> {
        async move {
            let filter = Object::from_iter([(format!("{RECORD}.id"), id.into())]);
            let found = self.page(whose, filter, None).await?.items;
            Ok(found.into_iter().find(|found| found.record.id == id).map(|found| found.place))
        }
        .boxed()
    }

    fn recall<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<Vec<Found>>> {
        async move {
            let mut body = about(&question.whose);
            body["query"] = question.query.as_str().into();
            body["k"] = question.k.into();
            body["types"] = question.types.iter().map(|kind| kind.as_str()).collect();
            body["filter"] = question.filter.clone().into();
            // Whole days, the last of them begun: what is too old is left out by whoever asked.
            body["fresher_than_days"] = question.days().into();
            body["sign_as"] = self.sign_as.as_deref().into();
            let recalled = self.client.post("/recall", &body).await?;
            rows(recalled)?.iter().map(read_hit).collect()
        }
        .boxed()
    }

    fn list<'a>(&'a self, whose: &'a Whose, after: Option<&'a str>) -> BoxFuture<'a, Result<Page>> {
        self.page(whose, Object::new(), after).boxed()
    }

    fn forget<'a>(
        &'a self,
        whose: &'a Whose,
        place: &'a str,
        depth: Depth,
    ) -> BoxFuture<'a, Result<bool>> {
        async move {
            let mut body = about(whose);
            body["ids"] = json!([place]);
            body["hard_delete"] = (depth == Depth::Erase).into();
            let forgotten = self.client.post("/forget", &body).await?;
            if forgotten.get("pending_approval") == Some(&Value::Bool(true)) {
                return Err(Error::Unsupported("a person over there decides first".into()));
            }
            let ids = forgotten.get("forgotten_ids").and_then(Value::as_array);
            let ids = ids.ok_or_else(|| Error::Garbage("forgotten_ids is missing".into()))?;
            Ok(ids.iter().any(|id| id.as_str() == Some(place)))
        }
        .boxed()
    }

    fn neighbours<'a>(
        &'a self,
        whose: &'a Whose,
        place: &'a str,
        hops: u8,
    ) -> BoxFuture<'a, Result<Vec<Neighbour>>> {
        async move {
            let mut body = about(whose);
            body["id"] = place.into();
            body["hops"] = hops.into();
            let near = rows(self.client.post("/neighbours", &body).await?)?;
            let one = |row: &Value| {
                let distance = row.get("distance").and_then(Value::as_u64).unwrap_or(1);
                Ok(Neighbour {
                    place: must(row, "id")?.to_owned(),
                    distance: u8::try_from(distance).unwrap_or(u8::MAX).max(1),
                })
            };
            near.iter().map(one).collect()
        }
        .boxed()
    }
}

/// Reads a hit as this protocol writes it. One that no router wrote has no id of a router's.
/// Whoever signs a hit reads it like this before, so that both sides see the same.
pub fn read_hit(hit: &Value) -> Result<Found> {
    let place = must(hit, "id")?.to_owned();
    let content = must(hit, "content")?;
    let number = |name: &str| hit.get(name).and_then(Value::as_f64);
    let time = |name: &str| hit.get(name).and_then(Value::as_i64);
    let record = match record_in(&object(Some(hit)), content) {
        Some(record) => record,
        None => Record {
            id: String::new(),
            agent_id: must(hit, "agent_id")?.to_owned(),
            user_id: text(hit, "user_id").map(str::to_owned),
            kind: text(hit, "type").and_then(Type::parse).unwrap_or(Type::Semantic),
            content: content.to_owned(),
            metadata: object(hit.get("metadata")),
            confidence: number("confidence").unwrap_or(1.0),
            source: text(hit, "source").map(str::to_owned),
            created_at: time("created_at").unwrap_or(0),
            updated_at: time("updated_at").unwrap_or(0),
            expires_at: time("expires_at"),
            extra: extra(hit),
        },
    };
    let envelope = hit.get("envelope").cloned();
    let envelope = envelope.and_then(|said| serde_json::from_value::<Envelope>(said).ok());
    let score = number("score").unwrap_or(0.0);
    Ok(Found { place, record, score, recalled_at: time("last_recalled_at"), envelope })
}

fn extra(hit: &Value) -> Object {
    let mut extra = object(Some(hit));
    extra.retain(|name, _| !OWN.contains(&name.as_str()) && !ABOUT.contains(&name.as_str()));
    extra
}

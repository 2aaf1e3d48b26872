//! mem0, as its open server or as the platform.
//!
//! Texts are stored as they are (`infer: false`): nobody rewrites, splits or drops them. Agent and
//! person are both always named. What a record has besides its text travels as one member of the
//! metadata, in writing, so that nothing of it is lost; the user's own members stand beside it.

use futures::future::{BoxFuture, FutureExt};
use serde_json::{Value, json};

use super::rest::{API_KEY, RECORD, deleted, record_in};
use super::{millis, must, object, rows, text};
use crate::error::{Error, Result};
use crate::http::{Client, Server, escaped};
use crate::record::{Found, Question, Record, Type, Whose};
use crate::slot::Depth;
use crate::store::{Capabilities, Capability, Health, Keeps, MemoryStore, Page};

const BACKEND: &str = "mem0";
/// The member that holds the canonical id, so that it can be searched for.
const ID: &str = "yore_id";
/// The member in which memorywire keeps the type.
const TYPE: &str = "amp_type";
/// Rows the open server lists at most.
const MOST: usize = 1000;
/// Rows of a page of the platform.
const PAGE: usize = 100;
/// What stands for the person where there is none: mem0 wants one where it searches.
const NOBODY: &str = "yore-nobody";

/// Which mem0 it is: they have other paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edition {
    /// The server that one runs oneself.
    Server,
    /// The hosted platform.
    Platform,
}

/// A mem0.
#[derive(Debug)]
pub struct Mem0 {
    client: Client,
    edition: Edition,
}

impl Mem0 {
    /// Prepares to speak to one; nothing is sent yet.
    pub fn new(server: impl Into<Server>, edition: Edition) -> Result<Self> {
        let (header, word) = match edition {
            Edition::Server => API_KEY,
            Edition::Platform => ("authorization", "Token "),
        };
        Ok(Self { client: Client::new(&server.into(), header, word)?, edition })
    }

    /// The row at a place, if it is there and theirs.
    async fn row(&self, whose: &Whose, place: &str) -> Result<Option<Found>> {
        let place = escaped(place);
        let path = match self.edition {
            Edition::Server => format!("/memories/{place}"),
            Edition::Platform => format!("/v1/memories/{place}/"),
        };
        let answer = self.client.get(&path).await?;
        if answer.status == 404 {
            return Ok(None);
        }
        let row = answer.json()?;
        // An id that is not known is answered with null.
        if row.is_null() {
            return Ok(None);
        }
        let found = found(&row)?;
        let Record { agent_id, user_id, .. } = &found.record;
        let theirs = *agent_id == whose.agent
            && whose.user.as_ref().is_none_or(|user| user_id.as_ref() == Some(user));
        Ok(theirs.then_some(found))
    }

    fn metadata(record: &Record) -> Value {
        let mut metadata = record.metadata.clone();
        metadata.insert(ID.into(), record.id.clone().into());
        metadata.insert(TYPE.into(), record.kind.as_str().into());
        metadata.insert(RECORD.into(), record.without_content().to_string().into());
        Value::Object(metadata)
    }
}

/// What mem0 is told to look among. Without a person, all of the agent's.
fn among(whose: &Whose) -> Value {
    match &whose.user {
        Some(user) => json!({"agent_id": whose.agent, "user_id": user}),
        None => json!({"agent_id": whose.agent}),
    }
}

impl MemoryStore for Mem0 {
    fn capabilities(&self) -> Capabilities {
        Capabilities::from([
            Capability::Semantic,
            Capability::Episodic,
            Capability::Procedural,
            Capability::Emotional,
            Capability::Vector,
        ])
    }

    fn keeps(&self) -> Keeps {
        Keeps::Everything
    }

    fn health(&self) -> BoxFuture<'_, Result<Health>> {
        async move {
            match self.edition {
                // The server has no route for it; to list what nobody has is the least work.
                Edition::Server => {
                    let path = format!("/memories?agent_id={NOBODY}&top_k=1");
                    rows(self.client.get(&path).await?.json()?)?;
                }
                Edition::Platform => {
                    self.client.get("/v1/ping/").await?.json()?;
                }
            }
            Ok(Health::ok(BACKEND))
        }
        .boxed()
    }

    fn remember<'a>(&'a self, record: &'a Record) -> BoxFuture<'a, Result<String>> {
        async move {
            let body = json!({
                "messages": [{"role": "user", "content": record.content}],
                "agent_id": record.agent_id,
                "user_id": record.user_id.as_deref().unwrap_or(NOBODY),
                "metadata": Self::metadata(record),
                "infer": false,
            });
            let path = match self.edition {
                Edition::Server => "/memories",
                Edition::Platform => "/v3/memories/add/",
            };
            let made = rows(self.client.post(path, &body).await?)?;
            let first = made.first().ok_or_else(|| Error::Garbage("nothing was stored".into()))?;
            Ok(must(first, "id")?.to_owned())
        }
        .boxed()
    }

    fn replace<'a>(&'a self, place: &'a str, record: &'a Record) -> BoxFuture<'a, Result<String>> {
        async move {
            // Members that are gone would stay: metadata is merged. So it is written anew.
            if self.row(&record.whose(), place).await?.is_some() {
                self.forget(&record.whose(), place, Depth::Erase).await?;
            }
            self.remember(record).await
        }
        .boxed()
    }

    fn locate<'a>(
        &'a self,
        whose: &'a Whose,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>>> {
        async move {
            let mut filters = among(whose);
            filters[ID] = id.into();
            let path = match self.edition {
                Edition::Server => "/search",
                Edition::Platform => "/v3/memories/search/",
            };
            let body = json!({"query": id, "filters": filters, "top_k": 5, "threshold": 0.0});
            for row in rows(self.client.post(path, &body).await?)? {
                let found = found(&row)?;
                if found.record.id == id {
                    return Ok(Some(found.place));
                }
            }
            Ok(None)
        }
        .boxed()
    }

    fn recall<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<Vec<Found>>> {
        async move {
            let mut filters = among(&question.whose);
            if let [kind] = question.types[..] {
                filters[TYPE] = kind.as_str().into();
            }
            let path = match self.edition {
                Edition::Server => "/search",
                Edition::Platform => "/v3/memories/search/",
            };
            // Its own threshold would drop answers, and expiry is ours.
            let body = json!({
                "query": question.query,
                "filters": filters,
                "top_k": question.k,
                "threshold": 0.0,
                "show_expired": true,
            });
            rows(self.client.post(path, &body).await?)?.iter().map(found).collect()
        }
        .boxed()
    }

    fn list<'a>(&'a self, whose: &'a Whose, after: Option<&'a str>) -> BoxFuture<'a, Result<Page>> {
        async move {
            match self.edition {
                Edition::Server => {
                    let user = whose.user.as_ref();
                    let user = user.map(|user| format!("&user_id={}", escaped(user)));
                    let path = format!(
                        "/memories?agent_id={}{}&top_k={MOST}&show_expired=true",
                        escaped(&whose.agent),
                        user.unwrap_or_default(),
                    );
                    let rows = rows(self.client.get(&path).await?.json()?)?;
                    if rows.len() >= MOST {
                        let what = format!("{MOST} or more memories of one agent in a list");
                        return Err(Error::Unsupported(what));
                    }
                    let items = rows.iter().map(found).collect::<Result<_>>()?;
                    Ok(Page { items, next: None })
                }
                Edition::Platform => {
                    let page: usize = after.and_then(|page| page.parse().ok()).unwrap_or(1);
                    let path = format!("/v3/memories/?page={page}&page_size={PAGE}");
                    let body = json!({"filters": among(whose)});
                    let rows = rows(self.client.post(&path, &body).await?)?;
                    let next = (rows.len() == PAGE).then(|| (page + 1).to_string());
                    let items = rows.iter().map(found).collect::<Result<_>>()?;
                    Ok(Page { items, next })
                }
            }
        }
        .boxed()
    }

    fn forget<'a>(
        &'a self,
        whose: &'a Whose,
        place: &'a str,
        _depth: Depth,
    ) -> BoxFuture<'a, Result<bool>> {
        async move {
            // It would delete for anyone who knows the id.
            if self.row(whose, place).await?.is_none() {
                return Ok(false);
            }
            let path = match self.edition {
                Edition::Server => format!("/memories/{}", escaped(place)),
                Edition::Platform => format!("/v1/memories/{}/", escaped(place)),
            };
            deleted(&self.client.delete(&path).await?)
        }
        .boxed()
    }
}

/// Reads a row. One that others wrote has no record of ours in it; its parts are taken as they are.
fn found(row: &Value) -> Result<Found> {
    let place = must(row, "id")?.to_owned();
    let content = text(row, "memory").or_else(|| text(row, "data")).unwrap_or_default();
    let score = row.get("score").and_then(Value::as_f64).unwrap_or(0.0);
    let mut metadata = object(row.get("metadata"));
    let record = match record_in(&metadata, content) {
        Some(record) => record,
        None => {
            let kind = metadata.remove(TYPE);
            let kind = kind.as_ref().and_then(Value::as_str).and_then(Type::parse);
            let user = text(row, "user_id").filter(|user| *user != NOBODY);
            Record {
                id: String::new(),
                agent_id: text(row, "agent_id").unwrap_or_default().to_owned(),
                user_id: user.map(str::to_owned),
                kind: kind.unwrap_or(Type::Semantic),
                content: content.to_owned(),
                confidence: metadata
                    .remove("amp_confidence")
                    .and_then(|number| number.as_f64())
                    .unwrap_or(1.0),
                source: metadata
                    .remove("amp_source")
                    .and_then(|source| source.as_str().map(str::to_owned)),
                expires_at: metadata.remove("amp_expires_at").and_then(|end| end.as_i64()),
                created_at: millis(text(row, "created_at")),
                updated_at: millis(text(row, "updated_at").or_else(|| text(row, "created_at"))),
                metadata,
                extra: crate::record::Object::new(),
            }
        }
    };
    Ok(Found::new(place, record, score))
}

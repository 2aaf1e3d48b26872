//! Letta, by its archives.
//!
//! There is one archive for each agent and person, for the server filters by tags only after it
//! has chosen the best. A passage's metadata holds the record. Passages cannot be changed, so a new
//! state of a record is a new passage. The server gives no scores with its own index: a hit's
//! place stands for one. A search returns at most 100 hits of an archive.

use std::collections::BTreeSet;

use futures::future::{BoxFuture, FutureExt};
use serde_json::{Value, json};

use super::rest::{BEARER, Homes, RECORD, deleted, named, place, record_in, unexplained};
use super::{millis, must, object, rows, text, written};
use crate::error::{Error, Result};
use crate::http::{Client, Server, escaped};
use crate::record::{Found, Question, Record, Whose};
use crate::slot::Depth;
use crate::store::{Capabilities, Capability, Health, Keeps, MemoryStore, Page};

const BACKEND: &str = "letta";
/// Hits that one search returns at most.
const HITS: usize = 100;
/// Archives that are listed at once.
const PAGE: usize = 50;

/// A Letta server.
#[derive(Debug)]
pub struct Letta {
    client: Client,
    homes: Homes,
    /// What the server embeds with; an archive cannot be made without.
    embedding: Value,
}

impl Letta {
    /// Prepares to speak to a server; nothing is sent yet. The embedding is a model's handle, or a
    /// whole `embedding_config`.
    pub fn new(server: impl Into<Server>, prefix: &str, embedding: Value) -> Result<Self> {
        let client = Client::new(&server.into(), BEARER.0, BEARER.1)?;
        Ok(Self { client, homes: Homes::new(prefix), embedding })
    }

    /// The archives that hold what a request is about: one person's, or all of the agent's.
    async fn archives(&self, whose: &Whose) -> Result<Vec<String>> {
        let homes = self.homes.of(whose, self.listed()).await?;
        Ok(homes.into_iter().map(|(_, id)| id).collect())
    }

    /// All archives of the server.
    async fn listed(&self) -> Result<Vec<(String, String)>> {
        let (mut all, mut after) = (Vec::new(), String::new());
        loop {
            let path = format!("/v1/archives/?limit={PAGE}{after}");
            let some = rows(self.client.get(&path).await?.json()?)?;
            all.extend(named(&some)?);
            match some.last() {
                Some(last) if some.len() == PAGE => {
                    after = format!("&after={}", escaped(must(last, "id")?));
                }
                Some(_) | None => return Ok(all),
            }
        }
    }

    /// The archive a record belongs in, made where there is none.
    async fn own_archive(&self, whose: &Whose) -> Result<String> {
        self.archives(whose).await?;
        let made = async {
            let name = self.homes.name(whose);
            let mut body = json!({"name": name, "description": "kept by Yore"});
            let member = if self.embedding.is_object() { "embedding_config" } else { "embedding" };
            body[member] = self.embedding.clone();
            Ok(must(&self.client.post("/v1/archives/", &body).await?, "id")?.to_owned())
        };
        self.homes.own(whose, made).await
    }

    async fn search(&self, body: &Value) -> Result<Vec<Value>> {
        rows(self.client.post("/v1/passages/search", body).await?)
    }

    /// Everything in an archive, the oldest first.
    async fn all(&self, whose: &Whose, archive: &str) -> Result<Vec<Found>> {
        let mut seen = BTreeSet::new();
        let mut all = Vec::new();
        let mut body = json!({"archive_id": archive, "limit": HITS});
        loop {
            let some = self.search(&body).await?;
            let mut fresh = 0;
            let mut last = None;
            for row in &some {
                let passage = row.get("passage").unwrap_or(row);
                last = text(passage, "created_at").map(str::to_owned);
                let found = found(whose, archive, passage, 0.0)?;
                if seen.insert(found.place.clone()) {
                    fresh += 1;
                    all.push(found);
                }
            }
            if some.len() < HITS {
                return Ok(all);
            }
            // The next part begins at the last one's time, which others may share.
            let Some(last) = last.filter(|_| fresh > 0) else {
                let what = format!("{HITS} passages of one moment in a list");
                return Err(Error::Unsupported(what));
            };
            body["start_date"] = last.into();
        }
    }
}

impl MemoryStore for Letta {
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
            let told = self.client.get("/v1/health/").await?.json()?;
            let status = text(&told, "status").unwrap_or("unknown").to_owned();
            let version = text(&told, "version").unwrap_or_default();
            Ok(Health { status, ..Health::ok(BACKEND) }.with("version", version))
        }
        .boxed()
    }

    fn remember<'a>(&'a self, record: &'a Record) -> BoxFuture<'a, Result<String>> {
        async move {
            let archive = self.own_archive(&record.whose()).await?;
            let body = json!({
                "text": record.content,
                "metadata": {RECORD: record.without_content()},
                "tags": [format!("type:{}", record.kind.as_str())],
                "created_at": written(record.created_at),
            });
            let path = format!("/v1/archives/{}/passages", escaped(&archive));
            let made = self.client.post(&path, &body).await?;
            Ok(place(&archive, must(&made, "id")?))
        }
        .boxed()
    }

    fn locate<'a>(
        &'a self,
        whose: &'a Whose,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>>> {
        async move {
            for archive in self.archives(whose).await? {
                let all = self.all(whose, &archive).await?;
                if let Some(found) = all.into_iter().find(|found| found.record.id == id) {
                    return Ok(Some(found.place));
                }
            }
            Ok(None)
        }
        .boxed()
    }

    fn recall<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<Vec<Found>>> {
        async move {
            let whose = &question.whose;
            let mut all = Vec::new();
            for archive in self.archives(whose).await? {
                let mut body = json!({
                    "query": question.query,
                    "archive_id": archive,
                    // Conditions cost places, and asking for all of them costs little.
                    "limit": HITS,
                });
                if let Some(from) = question.created_from {
                    body["start_date"] = written(from).into();
                }
                for (rank, row) in self.search(&body).await?.iter().enumerate() {
                    let passage = row.get("passage").unwrap_or(row);
                    all.push(found(whose, &archive, passage, 1.0 / (1.0 + rank as f64))?);
                }
            }
            all.sort_by(|a, b| b.score.total_cmp(&a.score));
            Ok(all)
        }
        .boxed()
    }

    fn list<'a>(
        &'a self,
        whose: &'a Whose,
        _after: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Page>> {
        async move {
            let mut items = Vec::new();
            for archive in self.archives(whose).await? {
                items.extend(self.all(whose, &archive).await?);
            }
            Ok(Page { items, next: None })
        }
        .boxed()
    }

    fn forget<'a>(
        &'a self,
        whose: &'a Whose,
        at: &'a str,
        _depth: Depth,
    ) -> BoxFuture<'a, Result<bool>> {
        async move {
            let Some((archive, passage)) = at.split_once('/') else { return Ok(false) };
            if !self.archives(whose).await?.iter().any(|id| id == archive) {
                return Ok(false);
            }
            let (archive, passage) = (escaped(archive), escaped(passage));
            let path = format!("/v1/archives/{archive}/passages/{passage}");
            deleted(&self.client.delete(&path).await?)
        }
        .boxed()
    }
}

/// Reads a passage. One that others wrote has no record of ours in it.
fn found(whose: &Whose, archive: &str, passage: &Value, score: f64) -> Result<Found> {
    let at = place(archive, must(passage, "id")?);
    let content = text(passage, "text").or_else(|| text(passage, "content")).unwrap_or_default();
    let metadata = object(passage.get("metadata"));
    let created = text(passage, "created_at").or_else(|| text(passage, "timestamp"));
    let record = record_in(&metadata, content)
        .unwrap_or_else(|| Record { metadata, ..unexplained(whose, content, millis(created)) });
    Ok(Found::new(at, record, score))
}

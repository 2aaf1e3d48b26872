//! Cognee, by its REST interface.
//!
//! There is one dataset for each agent and person, for Cognee keeps a text once in a dataset and
//! with it only what was first said about it. Search is by chunks, which needs no language model;
//! Cognee measures by distance, which is turned round. What is said about a text is kept in the
//! mapping; Cognee gets a copy, so that a write that got no answer can be found.

mod graph;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, FutureExt};
use futures::{StreamExt, TryStreamExt, stream};
use http::Method;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use self::graph::Graph;
use super::rest::{API_KEY, Homes, RECORD, deleted, named, place, record_in, unexplained};
use super::{millis, must, object, rows, text};
use crate::error::{Error, Result};
use crate::http::{Client, Server, escaped};
use crate::record::{Found, Question, Record, Whose};
use crate::slot::Depth;
use crate::store::{Capabilities, Capability, Health, Keeps, MemoryStore, Neighbour, Page};

const BACKEND: &str = "cognee";
/// How many texts are asked for at once.
const AT_ONCE: usize = 8;
/// For how long a graph stands for what is there.
const FRESH: Duration = Duration::from_secs(2);

/// A Cognee server.
#[derive(Debug)]
pub struct Cognee {
    client: Client,
    homes: Homes,
    /// The graph that was last asked for: neighbours are asked for many at once.
    graph: Mutex<Option<LastGraph>>,
}

/// A graph, whose it is, and when it was asked for.
#[derive(Debug)]
struct LastGraph {
    dataset: String,
    at: Instant,
    graph: Arc<Graph>,
}

impl Cognee {
    /// Prepares to speak to a server; nothing is sent yet.
    pub fn new(server: impl Into<Server>, prefix: &str) -> Result<Self> {
        Ok(Self {
            client: Client::new(&server.into(), API_KEY.0, API_KEY.1)?,
            homes: Homes::new(prefix),
            graph: Mutex::default(),
        })
    }

    /// The datasets that hold what a request is about, with their ids: one person's, or all of
    /// the agent's.
    async fn datasets(&self, whose: &Whose) -> Result<Vec<(String, String)>> {
        let listed = async { named(&rows(self.client.get("/datasets").await?.json()?)?) };
        self.homes.of(whose, listed).await
    }

    /// The graph of a dataset, or the one of a moment ago.
    async fn graph(&self, dataset: &str) -> Result<Arc<Graph>> {
        let mut last = self.graph.lock().await;
        if let Some(last) = last.as_ref().filter(|last| last.dataset == dataset)
            && last.at.elapsed() < FRESH
        {
            return Ok(last.graph.clone());
        }
        let path = format!("/datasets/{}/graph", escaped(dataset));
        let graph = Arc::new(Graph::read(&self.client.get(&path).await?.json()?)?);
        let (dataset, at) = (dataset.to_owned(), Instant::now());
        *last = Some(LastGraph { dataset, at, graph: graph.clone() });
        Ok(graph)
    }

    /// What is said of everything that a request is about, each with its dataset: no words yet.
    async fn data(&self, whose: &Whose) -> Result<Vec<(String, Value)>> {
        let mut all = Vec::new();
        for (_, id) in self.datasets(whose).await? {
            all.extend(self.listed(&id).await?.into_iter().map(|row| (id.clone(), row)));
        }
        Ok(all)
    }

    /// What is said of everything in a dataset.
    async fn listed(&self, dataset: &str) -> Result<Vec<Value>> {
        let answer = self.client.get(&format!("/datasets/{}/data", escaped(dataset))).await?;
        if answer.status == 404 { Ok(Vec::new()) } else { rows(answer.json()?) }
    }

    /// Leaves of some chunks those that are of a dataset. A server without access control answers
    /// from all of them; what has a record says itself whose it is.
    async fn own(&self, dataset: &str, mut chunks: Vec<Value>) -> Result<Vec<Value>> {
        if chunks.iter().any(|chunk| said_of(chunk, "").is_none()) {
            let listed = self.listed(dataset).await?;
            let its: BTreeSet<&str> = listed.iter().filter_map(|row| text(row, "id")).collect();
            chunks.retain(|chunk| {
                let named = text(chunk, "document_id");
                said_of(chunk, "").is_some() || named.is_some_and(|data| its.contains(data))
            });
        }
        Ok(chunks)
    }

    /// One of these with its words, which are a request of their own.
    async fn whole(&self, whose: &Whose, dataset: &str, row: &Value) -> Result<Found> {
        let data = must(row, "id")?;
        let raw = format!("/datasets/{}/data/{}/raw", escaped(dataset), escaped(data));
        let content = self.client.get(&raw).await?.text()?;
        let record = said_of(row, &content)
            .unwrap_or_else(|| unexplained(whose, &content, millis(text(row, "createdAt"))));
        Ok(Found::new(place(dataset, data), record, 0.0))
    }

    async fn rows(&self, whose: &Whose) -> Result<Vec<Found>> {
        let data = self.data(whose).await?;
        stream::iter(data)
            .map(|(dataset, row)| async move { self.whole(whose, &dataset, &row).await })
            .buffered(AT_ONCE)
            .try_collect()
            .await
    }
}

impl MemoryStore for Cognee {
    fn capabilities(&self) -> Capabilities {
        Capabilities::from([
            Capability::Semantic,
            Capability::Episodic,
            Capability::Procedural,
            Capability::Emotional,
            Capability::Vector,
            Capability::Graph,
        ])
    }

    fn keeps(&self) -> Keeps {
        Keeps::Words
    }

    fn health(&self) -> BoxFuture<'_, Result<Health>> {
        async move {
            // It lies beside the versioned routes on some servers and among them on others.
            let told = self.client.get_from_root("/health").await?.json()?;
            let well =
                text(&told, "status") == Some("ready") || text(&told, "health") == Some("healthy");
            let status = if well { "ok" } else { "error" };
            let version = text(&told, "version").unwrap_or_default();
            Ok(Health { status: status.into(), ..Health::ok(BACKEND) }.with("version", version))
        }
        .boxed()
    }

    fn remember<'a>(&'a self, record: &'a Record) -> BoxFuture<'a, Result<String>> {
        async move {
            let name = self.homes.name(&record.whose());
            let said = json!([{RECORD: record.without_content()}]).to_string();
            let parts = [
                ("raw_data", record.content.as_str()),
                ("datasetName", &name),
                ("external_metadata", &said),
                ("node_set", record.kind.as_str()),
            ];
            let made = self.client.form("/add", &parts).await?.json()?;
            let dataset = must(&made, "dataset_id")?.to_owned();
            let info = made.get("data_ingestion_info").and_then(Value::as_array);
            let first = info.and_then(|info| info.first());
            let first = first.ok_or_else(|| Error::Garbage("nothing was stored".into()))?;
            let at = place(&dataset, must(first, "data_id")?);
            self.homes.note(name.clone(), dataset).await;
            // Only what is indexed is found.
            let body = json!({"datasets": [name]});
            self.client.post("/cognify", &body).await?;
            Ok(at)
        }
        .boxed()
    }

    fn locate<'a>(
        &'a self,
        whose: &'a Whose,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>>> {
        async move {
            for (dataset, row) in self.data(whose).await? {
                if said_of(&row, "").is_some_and(|record| record.id == id) {
                    return Ok(Some(place(&dataset, must(&row, "id")?)));
                }
            }
            Ok(None)
        }
        .boxed()
    }

    fn recall<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<Vec<Found>>> {
        async move {
            let datasets = self.datasets(&question.whose).await?;
            let mut all = Vec::new();
            // One by one, for a chunk does not say which dataset it is from.
            for (name, id) in datasets {
                let body = json!({
                    "searchType": "CHUNKS",
                    "query": question.query,
                    "datasets": [name],
                    "topK": question.k,
                });
                let answer = self.client.json(Method::POST, "/search", &body).await?;
                if answer.status == 404 {
                    continue;
                }
                for chunk in self.own(&id, rows(answer.json()?)?).await? {
                    all.extend(chunk_of(&question.whose, &id, &chunk)?);
                }
            }
            all.sort_by(|a: &Found, b| b.score.total_cmp(&a.score));
            all.truncate(question.k.max(1));
            Ok(all)
        }
        .boxed()
    }

    fn list<'a>(
        &'a self,
        whose: &'a Whose,
        _after: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Page>> {
        async move { Ok(Page { items: self.rows(whose).await?, next: None }) }.boxed()
    }

    fn forget<'a>(
        &'a self,
        whose: &'a Whose,
        at: &'a str,
        _depth: Depth,
    ) -> BoxFuture<'a, Result<bool>> {
        async move {
            let Some((dataset, data)) = at.split_once('/') else { return Ok(false) };
            let theirs = self.datasets(whose).await?;
            if !theirs.iter().any(|(_, id)| id == dataset) {
                return Ok(false);
            }
            let path = format!("/datasets/{}/data/{}", escaped(dataset), escaped(data));
            deleted(&self.client.delete(&path).await?)
        }
        .boxed()
    }

    fn neighbours<'a>(
        &'a self,
        whose: &'a Whose,
        at: &'a str,
        hops: u8,
    ) -> BoxFuture<'a, Result<Vec<Neighbour>>> {
        async move {
            let Some((dataset, data)) = at.split_once('/') else { return Ok(Vec::new()) };
            if !self.datasets(whose).await?.iter().any(|(_, id)| id == dataset) {
                return Ok(Vec::new());
            }
            let graph = self.graph(dataset).await?;
            let near = graph.near(data, hops).into_iter();
            let one = |(data, distance)| Neighbour { place: place(dataset, data), distance };
            Ok(near.map(one).collect())
        }
        .boxed()
    }
}

/// Reads a chunk; `None` for one that names no datum.
fn chunk_of(whose: &Whose, dataset: &str, chunk: &Value) -> Result<Option<Found>> {
    let Some(data) = text(chunk, "document_id") else { return Ok(None) };
    let content = must(chunk, "text")?;
    let distance = chunk.get("score").and_then(Value::as_f64).unwrap_or(1.0);
    let created = chunk.get("created_at").and_then(Value::as_i64).unwrap_or(0);
    let record = said_of(chunk, content).unwrap_or_else(|| unexplained(whose, content, created));
    Ok(Some(Found::new(place(dataset, data), record, 1.0 - distance)))
}

/// The record of a row in a list, or of a chunk, which spell it differently.
fn said_of(row: &Value, content: &str) -> Option<Record> {
    let metadata = row.get("externalMetadata").or_else(|| row.get("external_metadata"));
    record_in(&object(metadata), content)
}

//! Cognee, by its REST interface.
//!
//! There is one dataset for each agent and person, for Cognee keeps a text once in a dataset and
//! with it only what was first said about it. Search is by chunks, which needs no language model;
//! Cognee measures by distance, which is turned round. What is said about a text is kept in the
//! mapping; Cognee gets a copy, so that a write that got no answer can be found.

mod graph;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, FutureExt};
use http::Method;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use yore_engine::Secret;

use self::graph::Graph;
use super::rest::{Homes, deleted, unexplained};
use super::{millis, must, object, rows, text};
use crate::error::{Error, Result};
use crate::http::{Client, escaped};
use crate::record::{Found, Question, Record, Whose};
use crate::slot::Depth;
use crate::store::{Capabilities, Capability, Health, Keeps, MemoryStore, Neighbour, Page};

const BACKEND: &str = "cognee";
/// The member of the metadata that holds the record.
const RECORD: &str = "yore_record";
/// For how long a graph stands for what is there.
const FRESH: Duration = Duration::from_secs(2);

/// A Cognee server.
#[derive(Debug)]
pub struct Cognee {
    client: Client,
    names: Homes,
    /// The ids of datasets, by name.
    datasets: Mutex<BTreeMap<String, String>>,
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
    pub fn new(base_url: &str, prefix: &str, token: Option<Secret>) -> Result<Self> {
        let auth = token.map(|token| ("x-api-key", token));
        Ok(Self {
            client: Client::new(base_url, auth)?,
            names: Homes::new(prefix),
            datasets: Mutex::default(),
            graph: Mutex::default(),
        })
    }

    /// The datasets that hold what a request is about, with their ids: one person's, or all of
    /// the agent's.
    async fn datasets(&self, whose: &Whose) -> Result<Vec<(String, String)>> {
        let wanted = self.names.name(whose);
        let mut known = self.datasets.lock().await;
        if whose.user.is_none() || !known.contains_key(&wanted) {
            for row in rows(self.client.get("/datasets").await?.json()?)? {
                known.insert(must(&row, "name")?.to_owned(), must(&row, "id")?.to_owned());
            }
        }
        let fitting = known.iter().filter(|(name, _)| self.names.holds(name, whose));
        Ok(fitting.map(|(name, id)| (name.clone(), id.clone())).collect())
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

    /// A place is a dataset and a datum in it.
    fn place(dataset: &str, data: &str) -> String {
        format!("{dataset}/{data}")
    }

    async fn rows(&self, whose: &Whose) -> Result<Vec<Found>> {
        let mut all = Vec::new();
        for (_, id) in self.datasets(whose).await? {
            let path = format!("/datasets/{}/data", escaped(&id));
            let answer = self.client.get(&path).await?;
            if answer.status == 404 {
                continue;
            }
            for row in rows(answer.json()?)? {
                let data = must(&row, "id")?;
                let record =
                    ours(row.get("externalMetadata").or_else(|| row.get("external_metadata")));
                let raw = format!("/datasets/{}/data/{}/raw", escaped(&id), escaped(data));
                let content = self.client.get(&raw).await?.text()?;
                let created = millis(text(&row, "createdAt"));
                let record = match record {
                    Some(record) => Record { content, ..record },
                    None => unexplained(whose, &content, created),
                };
                all.push(Found::new(Self::place(&id, data), record, 0.0));
            }
        }
        Ok(all)
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
            let name = self.names.name(&record.whose());
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
            let place = Self::place(&dataset, must(first, "data_id")?);
            self.datasets.lock().await.insert(name.clone(), dataset);
            // Only what is indexed is found.
            let body = json!({"datasets": [name]});
            self.client.json(Method::POST, "/cognify", &body).await?.json()?;
            Ok(place)
        }
        .boxed()
    }

    fn locate<'a>(
        &'a self,
        whose: &'a Whose,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>>> {
        async move {
            let all = self.rows(whose).await?;
            Ok(all.into_iter().find(|found| found.record.id == id).map(|found| found.place))
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
                for chunk in rows(answer.json()?)? {
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
        place: &'a str,
        _depth: Depth,
    ) -> BoxFuture<'a, Result<bool>> {
        async move {
            let Some((dataset, data)) = place.split_once('/') else { return Ok(false) };
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
        place: &'a str,
        hops: u8,
    ) -> BoxFuture<'a, Result<Vec<Neighbour>>> {
        async move {
            let Some((dataset, data)) = place.split_once('/') else { return Ok(Vec::new()) };
            if !self.datasets(whose).await?.iter().any(|(_, id)| id == dataset) {
                return Ok(Vec::new());
            }
            let graph = self.graph(dataset).await?;
            let near = graph.near(data, hops).into_iter();
            let one = |(data, distance)| Neighbour { place: Self::place(dataset, data), distance };
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
    let record = match ours(chunk.get("external_metadata")) {
        Some(record) => Record { content: content.to_owned(), ..record },
        None => unexplained(whose, content, created),
    };
    Ok(Some(Found::new(Cognee::place(dataset, data), record, 1.0 - distance)))
}

fn ours(metadata: Option<&Value>) -> Option<Record> {
    let record = object(metadata).remove(RECORD)?;
    serde_json::from_value(record).ok()
}

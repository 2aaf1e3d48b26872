//! Cognee, by its REST interface.
//!
//! There is one dataset for each agent and person, for Cognee keeps a text once in a dataset and
//! with it only what was first said about it. Search is by chunks, which needs no language model;
//! Cognee measures by distance, which is turned round. What is said about a text is kept in the
//! mapping; Cognee gets a copy, so that a write that got no answer can be found.

use std::collections::BTreeMap;

use futures::future::{BoxFuture, FutureExt};
use http::Method;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use yore_canon::hash::Sha256;
use yore_engine::Secret;

use super::{millis, must, object, rows, text};
use crate::error::{Error, Result};
use crate::http::{Client, escaped};
use crate::record::{Found, Object, Question, Record, Type, Whose};
use crate::slot::Depth;
use crate::store::{Capabilities, Capability, Health, Keeps, MemoryStore, Page};

const BACKEND: &str = "cognee";
/// The member of the metadata that holds the record.
const RECORD: &str = "yore_record";

/// A Cognee server.
#[derive(Debug)]
pub struct Cognee {
    client: Client,
    /// What the names of datasets begin with.
    prefix: String,
    /// The ids of datasets, by name.
    datasets: Mutex<BTreeMap<String, String>>,
}

impl Cognee {
    /// Prepares to speak to a server; nothing is sent yet.
    pub fn new(base_url: &str, prefix: &str, token: Option<Secret>) -> Result<Self> {
        let auth = token.map(|token| ("x-api-key", token));
        Ok(Self {
            client: Client::new(base_url, auth)?,
            prefix: prefix.to_owned(),
            datasets: Mutex::default(),
        })
    }

    /// What the datasets of an agent begin with. Names come from anywhere; hashes are safe ones.
    fn agent(&self, agent: &str) -> String {
        format!("{}-{}-", self.prefix, &Sha256::of(agent).to_hex()[..16])
    }

    fn dataset(&self, whose: &Whose) -> String {
        let user = match &whose.user {
            Some(user) => Sha256::of(format!("user {user}")).to_hex()[..16].to_owned(),
            None => "all".into(),
        };
        format!("{}{user}", self.agent(&whose.agent))
    }

    /// The datasets that hold what a request is about, with their ids: one person's, or all of
    /// the agent's.
    async fn datasets(&self, whose: &Whose) -> Result<Vec<(String, String)>> {
        let wanted = self.dataset(whose);
        let prefix = self.agent(&whose.agent);
        let fits = |name: &str| match whose.user {
            Some(_) => name == wanted,
            None => name.starts_with(&prefix),
        };
        let mut known = self.datasets.lock().await;
        if whose.user.is_none() || !known.contains_key(&wanted) {
            for row in rows(self.client.get("/datasets").await?.json()?)? {
                known.insert(must(&row, "name")?.to_owned(), must(&row, "id")?.to_owned());
            }
        }
        let fitting = known.iter().filter(|(name, _)| fits(name));
        Ok(fitting.map(|(name, id)| (name.clone(), id.clone())).collect())
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
                let record =
                    record.unwrap_or_else(|| strange(whose, millis(text(&row, "createdAt"))));
                let record = Record { content, ..record };
                all.push(Found::new(Self::place(&id, data), record, 0.0));
            }
        }
        Ok(all)
    }
}

impl MemoryStore for Cognee {
    /// It has a graph, but no route that tells what is next to a datum; so none is claimed.
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
            let name = self.dataset(&record.whose());
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
            let answer = self.client.delete(&path).await?;
            match answer.status {
                404 => Ok(false),
                200..=299 => Ok(true),
                status => Err(Error::Status(status)),
            }
        }
        .boxed()
    }
}

/// Reads a chunk; `None` for one that names no datum.
fn chunk_of(whose: &Whose, dataset: &str, chunk: &Value) -> Result<Option<Found>> {
    let Some(data) = text(chunk, "document_id") else { return Ok(None) };
    let content = must(chunk, "text")?.to_owned();
    let distance = chunk.get("score").and_then(Value::as_f64).unwrap_or(1.0);
    let created = chunk.get("created_at").and_then(Value::as_i64).unwrap_or(0);
    let record = ours(chunk.get("external_metadata"));
    let record = record.unwrap_or_else(|| strange(whose, created));
    let place = Cognee::place(dataset, data);
    Ok(Some(Found::new(place, Record { content, ..record }, 1.0 - distance)))
}

fn ours(metadata: Option<&Value>) -> Option<Record> {
    let record = object(metadata).remove(RECORD)?;
    serde_json::from_value(record).ok()
}

/// What others wrote, without a word about it.
fn strange(whose: &Whose, created: i64) -> Record {
    Record {
        id: String::new(),
        agent_id: whose.agent.clone(),
        user_id: whose.user.clone(),
        kind: Type::Semantic,
        content: String::new(),
        metadata: Object::new(),
        confidence: 1.0,
        source: None,
        created_at: created,
        updated_at: created,
        expires_at: None,
        extra: Object::new(),
    }
}

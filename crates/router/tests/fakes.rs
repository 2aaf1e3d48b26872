//! Servers that speak the routes of mem0, Letta and Cognee and keep everything in a list.
//!
//! They prove that the adapters say and understand what the routes are documented to take and
//! give. They prove nothing about the real servers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};
use yore_router::adapters::Embedder;
use yore_router::suite::WordHash;

use crate::http::{Asked, Reply, serve};

#[derive(Clone, Debug)]
struct Row {
    id: String,
    /// The archive or the dataset.
    home: String,
    text: String,
    created: String,
    body: Value,
}

/// What a fake server holds, and how it misbehaves.
#[derive(Debug, Default)]
pub(crate) struct State {
    rows: Mutex<Vec<Row>>,
    homes: Mutex<Vec<(String, String)>>,
    next: AtomicUsize,
    /// What the next answers are replaced by, after the work was done.
    pub(crate) trouble: Mutex<Option<Reply>>,
    /// Whether only answers to writes are.
    pub(crate) writes_only: AtomicBool,
    /// Whether it lets nothing go.
    pub(crate) keeps_all: AtomicBool,
}

impl State {
    /// Puts something into a dataset of somebody else's, who says nothing about it.
    pub(crate) fn somebody_elses(&self, text: &str) {
        let (id, home) = (self.id("data"), "another".to_owned());
        let (text, created) = (text.to_owned(), String::new());
        self.rows.lock().push(Row { id, home, text, created, body: Value::Null });
    }

    fn id(&self, prefix: &str) -> String {
        format!("{prefix}-{}", self.next.fetch_add(1, Ordering::SeqCst))
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.lock().len()
    }

    /// The rows that pass, the nearest first, with how near they are.
    fn near(&self, query: &str, passes: impl Fn(&Row) -> bool) -> Vec<(Row, f64)> {
        let point = WordHash.embed(query);
        let cosine = |row: &Row| -> f64 {
            let stored = WordHash.embed(&row.text);
            point.iter().zip(stored).map(|(a, b)| f64::from(a * b)).sum()
        };
        let rows = self.rows.lock();
        let mut near: Vec<(Row, f64)> =
            rows.iter().filter(|row| passes(row)).map(|row| (row.clone(), cosine(row))).collect();
        near.sort_by(|a, b| b.1.total_cmp(&a.1));
        near
    }

    fn remove(&self, id: &str) -> bool {
        let mut rows = self.rows.lock();
        let before = rows.len();
        rows.retain(|row| row.id != id);
        rows.len() < before
    }

    /// The id of an archive or a dataset, made where there is none.
    fn home(&self, name: &str) -> String {
        let mut homes = self.homes.lock();
        if let Some((_, id)) = homes.iter().find(|(known, _)| known == name) {
            return id.clone();
        }
        let id = self.id("home");
        homes.push((name.to_owned(), id.clone()));
        id
    }
}

/// Starts a fake; its routes do the work first, and its trouble comes after.
async fn start(routes: fn(&State, &Asked) -> Reply) -> (SocketAddr, Arc<State>) {
    let state = Arc::new(State::default());
    let shared = state.clone();
    let address = serve(move |asked| {
        if asked.method == "DELETE" && shared.keeps_all.load(Ordering::SeqCst) {
            return Reply::Json(409, json!({"detail": "it is needed here"}));
        }
        let before = shared.len();
        let reply = routes(&shared, &asked);
        let spared = shared.writes_only.load(Ordering::SeqCst) && shared.len() == before;
        let trouble = shared.trouble.lock().clone().filter(|_| !spared);
        trouble.unwrap_or(reply)
    })
    .await;
    (address, state)
}

pub(crate) async fn mem0() -> (SocketAddr, Arc<State>) {
    start(|state, asked| {
        let parts: Vec<&str> = asked.path.trim_matches('/').split('/').collect();
        let whole = |row: &Row, score: Option<f64>| {
            let mut body = row.body.clone();
            body["id"] = row.id.clone().into();
            body["memory"] = row.text.clone().into();
            body["created_at"] = row.created.clone().into();
            body["score"] = json!(score);
            body
        };
        match (asked.method.as_str(), &parts[..]) {
            ("POST", ["memories"]) => {
                let body = asked.json();
                assert_eq!(body["infer"], json!(false), "texts are stored as they are");
                let id = state.id("m");
                let text = body["messages"][0]["content"].as_str().unwrap().to_owned();
                let said = json!({
                    "agent_id": body["agent_id"],
                    "user_id": body["user_id"],
                    "metadata": body["metadata"],
                });
                let created = "2026-01-01T00:00:00+00:00".into();
                let home = String::new();
                state.rows.lock().push(Row { id: id.clone(), home, text, created, body: said });
                Reply::Json(200, json!({"results": [{"id": id, "event": "ADD"}]}))
            }
            ("POST", ["search"]) => {
                let body = asked.json();
                let filters = body["filters"].as_object().unwrap().clone();
                if !filters.contains_key("agent_id") && !filters.contains_key("user_id") {
                    return Reply::Json(400, json!({"detail": "an id is needed"}));
                }
                let passes = |row: &Row| {
                    filters.iter().all(|(name, wanted)| match name.as_str() {
                        "agent_id" | "user_id" => row.body[name] == *wanted,
                        other => row.body["metadata"][other] == *wanted,
                    })
                };
                let most = usize::try_from(body["top_k"].as_u64().unwrap()).unwrap();
                let near = state.near(body["query"].as_str().unwrap(), passes);
                let near = near.iter().take(most).map(|(row, score)| whole(row, Some(*score)));
                Reply::Json(200, json!({"results": near.collect::<Vec<_>>()}))
            }
            ("GET", ["memories"]) => {
                let (agent, user) = (asked.param("agent_id"), asked.param("user_id"));
                let rows = state.rows.lock();
                let theirs = rows.iter().filter(|row| {
                    row.body["agent_id"].as_str() == agent.as_deref()
                        && user.as_deref().is_none_or(|user| row.body["user_id"] == user)
                });
                Reply::Json(
                    200,
                    json!({"results": theirs.map(|row| whole(row, None)).collect::<Vec<_>>()}),
                )
            }
            ("GET", ["memories", id]) => {
                let rows = state.rows.lock();
                let row = rows.iter().find(|row| row.id == *id);
                Reply::Json(200, row.map_or(Value::Null, |row| whole(row, None)))
            }
            ("DELETE", ["memories", id]) => match state.remove(id) {
                true => Reply::Json(200, json!({"message": "deleted"})),
                false => Reply::Json(404, json!({"detail": "unknown"})),
            },
            _ => Reply::Json(404, json!({"detail": asked.path})),
        }
    })
    .await
}

pub(crate) async fn letta() -> (SocketAddr, Arc<State>) {
    start(|state, asked| {
        let parts: Vec<&str> = asked.path.trim_matches('/').split('/').collect();
        match (asked.method.as_str(), &parts[..]) {
            ("GET", ["v1", "health"]) => {
                Reply::Json(200, json!({"version": "0.16.8", "status": "ok"}))
            }
            ("GET", ["v1", "archives"]) => {
                let homes = state.homes.lock();
                let after = asked.param("after");
                let from = after
                    .map_or(0, |after| homes.iter().position(|(_, id)| *id == after).unwrap() + 1);
                let most: usize = asked.param("limit").unwrap().parse().unwrap();
                let some = homes.iter().skip(from).take(most);
                let some = some.map(|(name, id)| json!({"name": name, "id": id}));
                Reply::Json(200, some.collect())
            }
            ("POST", ["v1", "archives"]) => {
                let body = asked.json();
                assert!(body.get("embedding").is_some(), "an archive needs a model");
                Reply::Json(200, json!({"id": state.home(body["name"].as_str().unwrap())}))
            }
            ("POST", ["v1", "archives", home, "passages"]) => {
                let body = asked.json();
                let id = state.id("passage");
                state.rows.lock().push(Row {
                    id: id.clone(),
                    home: (*home).to_owned(),
                    text: body["text"].as_str().unwrap().to_owned(),
                    created: body["created_at"].as_str().unwrap().to_owned(),
                    body: body["metadata"].clone(),
                });
                Reply::Json(200, json!({"id": id}))
            }
            ("POST", ["v1", "passages", "search"]) => {
                let body = asked.json();
                let from = body["start_date"].as_str().unwrap_or_default().to_owned();
                let passes = |row: &Row| body["archive_id"] == row.home && row.created >= from;
                let mut found: Vec<Row> = match body["query"].as_str() {
                    Some(query) => {
                        state.near(query, passes).into_iter().map(|(row, _)| row).collect()
                    }
                    None => {
                        let mut rows: Vec<Row> =
                            state.rows.lock().iter().filter(|row| passes(row)).cloned().collect();
                        rows.sort_by(|a, b| a.created.cmp(&b.created).then(a.id.cmp(&b.id)));
                        rows
                    }
                };
                let limit = body["limit"].as_u64().unwrap();
                assert!(limit <= 100, "the server refuses more");
                found.truncate(usize::try_from(limit).unwrap());
                let shown = found.iter().map(|row| {
                    json!({"score": 0.0, "metadata": {}, "passage": {
                        "id": row.id, "text": row.text, "created_at": row.created,
                        "metadata": row.body,
                    }})
                });
                Reply::Json(200, shown.collect())
            }
            ("DELETE", ["v1", "archives", _, "passages", id]) => match state.remove(id) {
                true => Reply::Json(204, Value::Null),
                false => Reply::Json(404, json!({"detail": "unknown"})),
            },
            _ => Reply::Json(404, json!({"detail": asked.path})),
        }
    })
    .await
}

pub(crate) async fn cognee() -> (SocketAddr, Arc<State>) {
    start(|state, asked| {
        let path = asked.path.trim_matches('/');
        let parts: Vec<&str> = path.strip_prefix("api/v1/").unwrap_or(path).split('/').collect();
        match (asked.method.as_str(), &parts[..]) {
            ("GET", ["health"]) => {
                Reply::Json(200, json!({"status": "ready", "health": "healthy", "version": "1"}))
            }
            ("GET", ["datasets"]) => {
                let homes = state.homes.lock();
                let all = homes.iter().map(|(name, id)| json!({"name": name, "id": id}));
                Reply::Json(200, all.collect())
            }
            ("POST", ["add"]) => {
                let part = |name: &str| {
                    let begin = format!("name=\"{name}\"\r\n\r\n");
                    let rest = &asked.body[asked.body.find(&begin).unwrap() + begin.len()..];
                    rest[..rest.find("\r\n--yore-part").unwrap()].to_owned()
                };
                let home = state.home(&part("datasetName"));
                let text = part("raw_data");
                let said: Value = serde_json::from_str(&part("external_metadata")).unwrap();
                let mut rows = state.rows.lock();
                // The same text in one dataset is one datum, with what was first said about it.
                let known = rows.iter().find(|row| row.home == home && row.text == text);
                let id = known.map_or_else(|| state.id("data"), |row| row.id.clone());
                if known.is_none() {
                    let (id, home, created) = (id.clone(), home.clone(), String::new());
                    rows.push(Row { id, home, text, created, body: said[0].clone() });
                }
                let info = json!([{"data_id": id}]);
                Reply::Json(200, json!({"dataset_id": home, "data_ingestion_info": info}))
            }
            ("POST", ["cognify"]) => Reply::Json(200, json!({})),
            ("POST", ["search"]) => {
                let body = asked.json();
                assert_eq!(body["searchType"], "CHUNKS");
                // Without access control it answers from all datasets, whichever is named.
                let near = state.near(body["query"].as_str().unwrap(), |_| true);
                let most = usize::try_from(body["topK"].as_u64().unwrap()).unwrap();
                let chunks = near.iter().take(most).map(|(row, cosine)| {
                    json!({
                        "id": "chunk", "text": row.text, "document_id": row.id,
                        "external_metadata": row.body.to_string(), "score": 1.0 - cosine,
                    })
                });
                Reply::Json(200, chunks.collect())
            }
            ("GET", ["datasets", home, "data"]) => {
                let rows = state.rows.lock();
                let its = rows.iter().filter(|row| row.home == *home);
                let its = its.map(|row| json!({"id": row.id, "externalMetadata": row.body}));
                Reply::Json(200, its.collect())
            }
            ("GET", ["datasets", home, "graph"]) => {
                let (mut nodes, mut edges) = (Vec::new(), Vec::new());
                for row in state.rows.lock().iter().filter(|row| row.home == *home) {
                    let chunk = format!("chunk of {}", row.id);
                    nodes.push(json!({"id": row.id, "type": "TextDocument"}));
                    nodes.push(json!({"id": chunk, "type": "DocumentChunk"}));
                    edges.push(json!({"source": chunk, "target": row.id}));
                    let words = row.text.split(|c: char| !c.is_alphanumeric());
                    for name in words.filter(|word| word.starts_with(char::is_uppercase)) {
                        nodes.push(json!({"id": name, "type": "Entity"}));
                        edges.push(json!({"source": chunk, "target": name}));
                    }
                }
                Reply::Json(200, json!({"nodes": nodes, "edges": edges}))
            }
            ("GET", ["datasets", _, "data", id, "raw"]) => {
                let rows = state.rows.lock();
                let row = rows.iter().find(|row| row.id == *id).unwrap();
                Reply::Text(row.text.clone())
            }
            ("DELETE", ["datasets", _, "data", id]) => {
                state.remove(id);
                Reply::Json(200, Value::Null)
            }
            _ => Reply::Json(404, json!({"detail": asked.path})),
        }
    })
    .await
}

//! Clients of the older lifecycle: what their session holds is held here.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::model::{ClientRequest, ElicitRequestParams, ErrorCode, ErrorData, ServerResult};
use rmcp::service::{Peer, RequestContext};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::exchange::{self, Ask, Link};
use super::{handed, listen};
use crate::confirm;
use crate::failure::ERROR_META;

/// How often a server may ask back before it is answered with a failure.
const ROUNDS: usize = 10;
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// What a session holds.
#[derive(Debug, Default)]
pub(crate) struct Legacy {
    level: Mutex<Option<Value>>,
    watched: Mutex<BTreeSet<String>>,
    follower: Mutex<Option<DropGuard>>,
}

impl Legacy {
    /// Answers what concerns the session alone.
    pub(crate) fn answer(
        self: &Arc<Self>,
        request: &ClientRequest,
        link: &Link,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<ServerResult, ErrorData>> {
        let frame = serde_json::to_value(request).ok()?;
        let uri = frame["params"]["uri"].as_str();
        match request.method() {
            "ping" => {}
            "logging/setLevel" => *self.level.lock() = Some(frame["params"]["level"].clone()),
            "resources/subscribe" => {
                self.watched.lock().insert(uri?.to_owned());
                self.follow(link, &context.peer);
            }
            "resources/unsubscribe" => {
                self.watched.lock().remove(uri?);
                self.follow(link, &context.peer);
            }
            "resources/list" => {
                if self.follower.lock().is_none() {
                    self.follow(link, &context.peer);
                }
                return None;
            }
            _ => return None,
        }
        Some(Ok(ServerResult::empty(())))
    }

    /// Listens for what the session watches by now, instead of what it watched before.
    fn follow(&self, link: &Link, peer: &Peer<RoleServer>) {
        let watched: Vec<String> = self.watched.lock().iter().cloned().collect();
        let wanted = json!({ "notifications": {
            "resourcesListChanged": true,
            "resourceSubscriptions": watched,
        } });
        let ask =
            Ask::new(json!("session"), "subscriptions/listen", wanted, exchange::meta(None, None));
        let (link, peer, stop) = (link.clone(), peer.clone(), CancellationToken::new());
        *self.follower.lock() = Some(stop.clone().drop_guard());
        tokio::spawn(async move {
            let mut hand = handed(&peer);
            let followed = listen::follow(&link, &ask, |mut message: Value| {
                if message["method"] == listen::ACKNOWLEDGED {
                    return Box::pin(async {});
                }
                if let Some(params) = message.get_mut("params").and_then(Value::as_object_mut) {
                    params.remove("_meta");
                }
                hand(message)
            });
            tokio::select! {
                error = followed => tracing::warn!(%error, "changes are no longer told"),
                () = stop.cancelled() => {}
            }
        });
    }

    /// Whether the session set nothing that a request would have to say.
    pub(crate) fn is_plain(&self) -> bool {
        self.level.lock().is_none()
    }

    /// Adds what the session set to a request.
    pub(crate) fn mark(&self, meta: &mut Value) {
        if let Some(level) = &*self.level.lock() {
            meta[LOG_LEVEL] = level.clone();
        }
    }

    /// Asks, and answers what the server asks back by asking the client.
    pub(crate) async fn ask(
        &self,
        link: &Link,
        mut ask: Ask,
        context: &RequestContext<RoleServer>,
    ) -> Result<Value, ErrorData> {
        for _ in 0..ROUNDS {
            let answer = link.ask(&ask, handed(&context.peer)).await;
            let mut answer = answer.map_err(|error| older(error, ask.method()))?;
            if answer["resultType"] != "input_required" {
                age(&mut answer);
                return Ok(answer);
            }
            let mut responses = json!({});
            for (key, question) in answer["inputRequests"].as_object().into_iter().flatten() {
                responses[key] = put(question, &context.peer).await?;
            }
            ask = ask.answering(responses, answer.get("requestState").cloned());
        }
        Err(ErrorData::internal_error("the memory server asked back too often", None))
    }
}

/// Takes out of a result what older clients do not know, and what they misunderstand.
fn age(answer: &mut Value) {
    let Some(members) = answer.as_object_mut() else { return };
    for name in ["resultType", "ttlMs", "cacheScope"] {
        members.remove(name);
    }
    if members.get("isError") == Some(&Value::Bool(true))
        && let Some(error) = members.remove("structuredContent")
    {
        let meta = members.entry("_meta").or_insert_with(|| json!({}));
        meta[ERROR_META] = error;
    }
}

/// Puts a question of the server's before the client.
async fn put(question: &Value, peer: &Peer<RoleServer>) -> Result<Value, ErrorData> {
    let wrong = |reason: String| ErrorData::internal_error(reason, None);
    if question["method"] != "elicitation/create" {
        return Err(wrong("the memory server asked for what older clients cannot give".into()));
    }
    let form: ElicitRequestParams = serde_json::from_value(question["params"].clone())
        .map_err(|error| wrong(error.to_string()))?;
    let result = confirm::elicit(peer, form).await?;
    serde_json::to_value(result).map_err(|error| wrong(error.to_string()))
}

/// An error as the older revisions number it.
fn older(mut error: ErrorData, method: &str) -> ErrorData {
    let of_resource = error.data.as_ref().is_some_and(|data| data.get("uri").is_some());
    if method == "resources/read" && error.code == ErrorCode::INVALID_PARAMS && of_resource {
        error.code = ErrorCode::RESOURCE_NOT_FOUND;
    }
    error
}

//! Subscriptions that outlive the server they were made at.

use std::time::Duration;

use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::ErrorData;
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use super::exchange::{Ask, Link, Lost};

pub(crate) const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
/// How long to wait before a stream that ended is opened again.
const PAUSE: Duration = Duration::from_millis(250);

/// Relays a client's own subscription until the client ends it.
pub(crate) async fn relay(
    link: &Link,
    ask: &Ask,
    context: &RequestContext<RoleServer>,
) -> Result<Value, ErrorData> {
    Err(follow(link, ask, super::handed(&context.peer)).await)
}

/// Listens, again and again. It ends only with a refusal.
///
/// What changed while nobody listened is not known, so everything that was asked for is said
/// to have changed: a client that looks once too often loses nothing.
pub(crate) async fn follow(
    link: &Link,
    ask: &Ask,
    mut told: impl FnMut(Value) -> BoxFuture<'static, ()> + Send,
) -> ErrorData {
    let mut greeted = false;
    loop {
        let mut hear = |message: Value| -> BoxFuture<'static, ()> {
            if message["method"] != ACKNOWLEDGED || !std::mem::replace(&mut greeted, true) {
                return told(message);
            }
            let missed: Vec<_> = missed(ask).into_iter().map(&mut told).collect();
            Box::pin(async move {
                for telling in missed {
                    telling.await;
                }
            })
        };
        let heard = link.attempt(ask, &mut hear).await;
        match heard {
            Ok(Err(error)) => return error,
            // The server ended, or the credential it was opened with.
            Ok(Ok(_)) => {}
            Err(Lost(reason)) => tracing::debug!(%reason, "listening again"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Everything that was asked for, as if it had changed.
fn missed(ask: &Ask) -> Vec<Value> {
    let wanted = &ask.params()["notifications"];
    let uris = wanted["resourceSubscriptions"].as_array().cloned().unwrap_or_default();
    let mut missed: Vec<Value> = uris
        .into_iter()
        .map(|uri| said("notifications/resources/updated", json!({ "uri": uri }), ask))
        .collect();
    if wanted["resourcesListChanged"] == true {
        missed.push(said("notifications/resources/list_changed", json!({}), ask));
    }
    missed
}

fn said(method: &str, mut params: Value, ask: &Ask) -> Value {
    params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": ask.id() });
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

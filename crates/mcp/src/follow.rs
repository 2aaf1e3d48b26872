//! Tells clients what changed: `subscriptions/listen`, and what a legacy session asked for.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{self, BoxStream};
use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use rmcp::RoleServer;
use rmcp::model::{ErrorData, ResourceUpdatedNotificationParam};
use rmcp::service::{RequestContext, SubscriptionContext};
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};
use yore_engine::Call;

use crate::failure;
use crate::log::Level;
use crate::server::Mcp;

/// How many resources one session may watch.
const WATCHED: usize = 1000;
/// How long changes are gathered, so that a burst is told once.
const GATHER: Duration = Duration::from_millis(100);
/// How many changes are told at once.
const BURST: usize = 256;

/// What a legacy session asked for. Requests that stand alone leave it empty.
#[derive(Debug, Default)]
pub(crate) struct Session {
    watched: Mutex<BTreeSet<String>>,
    level: Mutex<Option<Level>>,
    /// Ends the follower with the session.
    follower: Mutex<Option<DropGuard>>,
}

impl Session {
    pub(crate) fn leave(&self, uri: &str) {
        self.watched.lock().remove(uri);
    }

    pub(crate) fn level(&self) -> Option<Level> {
        *self.level.lock()
    }

    pub(crate) fn set_level(&self, level: Level) {
        *self.level.lock() = Some(level);
    }

    fn join(&self, uri: String) -> Result<(), ErrorData> {
        let mut watched = self.watched.lock();
        if watched.len() >= WATCHED && !watched.contains(&uri) {
            let reason = format!("a session watches at most {WATCHED} resources");
            return Err(ErrorData::invalid_request(reason, None));
        }
        watched.insert(uri);
        Ok(())
    }
}

impl Mcp {
    /// Watches a resource for a legacy session. Whether it exists is not told: a missing one
    /// is merely never heard of.
    pub(crate) async fn watch(
        &self,
        uri: String,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let call = self.call(context)?;
        self.session.join(uri)?;
        self.follow(&call, context).await
    }

    /// Begins to tell a legacy session of changes once it has seen the list.
    pub(crate) async fn notice(&self, call: &Call, context: &RequestContext<RoleServer>) {
        // A failure comes to light in what was asked for.
        if !crate::caller::is_modern(context) {
            let _ = self.follow(call, context).await;
        }
    }

    async fn follow(
        &self,
        call: &Call,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let stop = CancellationToken::new();
        {
            let mut follower = self.session.follower.lock();
            if follower.as_ref().is_some_and(|guard| !guard.token().is_cancelled()) {
                return Ok(());
            }
            *follower = Some(stop.clone().drop_guard());
        }
        let changes = match self.changes(call).await {
            Ok(changes) => changes,
            Err(error) => {
                *self.session.follower.lock() = None;
                return Err(error);
            }
        };
        let (session, peer) = (std::sync::Arc::downgrade(&self.session), context.peer.clone());
        tokio::spawn(async move {
            let mut bursts = bursts(changes).take_until(stop.clone().cancelled_owned()).boxed();
            while let Some(burst) = bursts.next().await {
                let Some(session) = session.upgrade() else { break };
                let watched: Vec<String> = session.watched.lock().iter().cloned().collect();
                drop(session);
                for uri in watched.into_iter().filter(|uri| concerns(&burst, uri)) {
                    let told = ResourceUpdatedNotificationParam::new(uri);
                    if peer.notify_resource_updated(told).await.is_err() {
                        return;
                    }
                }
                if peer.notify_resource_list_changed().await.is_err() {
                    return;
                }
            }
            // The next request of the session begins anew.
            stop.cancel();
        });
        Ok(())
    }

    /// Tells a `subscriptions/listen` stream until it, the grant behind it or the server ends.
    pub(crate) async fn tell(&self, context: &SubscriptionContext) -> Result<(), ErrorData> {
        let accepted = context.accepted();
        let uris = accepted.resource_subscriptions.clone().unwrap_or_default();
        let lists = accepted.resources_list_changed == Some(true);
        if uris.is_empty() && !lists {
            self.idle(context).await;
            return Ok(());
        }
        let call = self.call(context.request_context())?;
        let mut bursts = bursts(self.changes(&call).await?);
        loop {
            let burst = tokio::select! {
                burst = bursts.next() => burst,
                () = self.idle(context) => None,
            };
            let Some(burst) = burst else { return Ok(()) };
            for uri in uris.iter().filter(|uri| concerns(&burst, uri)) {
                if context.sink().notify_resource_updated(uri.clone()).await.is_err() {
                    return Ok(());
                }
            }
            if lists && context.sink().notify_resource_list_changed().await.is_err() {
                return Ok(());
            }
        }
    }

    /// Waits until the client or the server ends a subscription.
    pub(crate) async fn idle(&self, context: &SubscriptionContext) {
        tokio::select! {
            () = context.cancelled() => {}
            () = self.surface().stop.cancelled() => {}
        }
    }

    /// Changes in the words of the dialects that have resources.
    async fn changes(&self, call: &Call) -> Result<BoxStream<'static, Value>, ErrorData> {
        let mut streams = Vec::new();
        for dialect in
            self.surface().registry.iter().filter(|dialect| !dialect.templates().is_empty())
        {
            let stream = dialect.subscribe(call.clone(), json!({})).await;
            streams.push(stream.map_err(failure::of_request)?);
        }
        if streams.is_empty() {
            return Ok(stream::pending().boxed());
        }
        Ok(stream::select_all(streams)
            .take_until(self.surface().stop.clone().cancelled_owned())
            .boxed())
    }
}

/// Gathers changes that come close together.
fn bursts(changes: BoxStream<'static, Value>) -> BoxStream<'static, Vec<Value>> {
    let bursts = stream::unfold(changes, |mut changes| async move {
        let mut burst = vec![changes.next().await?];
        let end = tokio::time::sleep(GATHER);
        tokio::pin!(end);
        while burst.len() < BURST {
            tokio::select! {
                change = changes.next() => match change {
                    Some(change) => burst.push(change),
                    None => break,
                },
                () = &mut end => break,
            }
        }
        Some((burst, changes))
    });
    bursts.boxed()
}

/// Whether a change speaks of the resource: its address ends with an id that dialects name in
/// their events, whatever else they say.
fn concerns(burst: &[Value], uri: &str) -> bool {
    let id = uri.rsplit('/').next().unwrap_or(uri);
    let id = percent_decode_str(id).decode_utf8_lossy();
    !id.is_empty() && burst.iter().any(|change| names(change, &id) || names(change, uri))
}

fn names(value: &Value, id: &str) -> bool {
    match value {
        Value::String(text) => text == id,
        Value::Array(items) => items.iter().any(|item| names(item, id)),
        Value::Object(members) => members.values().any(|member| names(member, id)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_concerns_the_resources_it_names() {
        let change = |value| [value];
        let urn = change(
            json!({ "type": "revised", "id": "urn:ump:b", "record": { "relations": { "supersedes": ["urn:ump:a"] } } }),
        );
        for uri in ["ump://p/urn:ump:b", "ump://p%2Fq/urn:ump:a", "ump://p/urn%3Aump%3Aa"] {
            assert!(concerns(&urn, uri), "{uri}");
        }
        for uri in ["ump://p/urn:ump:c", "ump://p/", "", "ump://p/ump:a"] {
            assert!(!concerns(&urn, uri), "{uri}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn bursts_are_told_once_and_nothing_is_lost() {
        let slow = stream::unfold(0, |n| async move {
            if n % 4 == 0 {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            (n < 12).then(|| (json!(n), n + 1))
        });
        let told: Vec<usize> = bursts(slow.boxed()).map(|burst| burst.len()).collect().await;
        assert_eq!(told, [4, 4, 4]);
    }
}

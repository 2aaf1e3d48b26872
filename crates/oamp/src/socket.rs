//! The WebSocket: frames in both directions, one JSON object each.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use yore_canon::json::{self as strict, Limits};
use yore_domain::{MessageId, Timestamp};
use yore_engine::Call;

use crate::Oamp;
use crate::error::Refusal;
use crate::stream::{Subscription, Told, code};
use crate::wire::Object;

/// The version every frame states.
const FRAME_VERSION: &str = "1.1.0";
/// A client that says nothing for so long is gone.
pub(crate) const SILENCE: Duration = Duration::from_secs(60);
/// How long a last word may take.
const CLOSING: Duration = Duration::from_secs(2);
/// Subscriptions of one connection.
const MOST: usize = 64;
/// Events that wait for a slow client before the subscriptions wait for it too.
const QUEUE: usize = 256;
/// Bytes and nesting of a client's frame.
const FRAME: Limits = Limits { bytes: 64 * 1024, depth: 16, nodes: 4096 };

/// One connection.
struct Connection {
    oamp: Oamp,
    call: Call,
    socket: WebSocket,
    queue: mpsc::Sender<(String, Result<Told, Refusal>)>,
    subscriptions: BTreeMap<String, JoinHandle<()>>,
    last: Timestamp,
}

/// Serves a connection until either side ends it, the client falls silent or the server stops.
pub(crate) async fn serve(oamp: Oamp, call: Call, socket: WebSocket, stop: CancellationToken) {
    let (queue, mut told) = mpsc::channel(QUEUE);
    let mut connection = Connection {
        oamp,
        call,
        socket,
        queue,
        subscriptions: BTreeMap::new(),
        last: Timestamp::MIN,
    };
    let mut heard = Instant::now();
    let (code, reason) = loop {
        tokio::select! {
            message = connection.socket.recv() => {
                heard = Instant::now();
                match message {
                    Some(Ok(Message::Text(text))) => {
                        if connection.hear(text.as_bytes()).await.is_err() {
                            break (close_code::AWAY, "gone");
                        }
                    }
                    Some(Ok(Message::Binary(_))) => break (close_code::UNSUPPORTED, "text only"),
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    Some(Ok(Message::Close(_)) | Err(_)) | None => break (close_code::NORMAL, ""),
                }
            }
            Some((id, told)) = told.recv() => {
                if connection.tell(&id, told).await.is_err() {
                    break (close_code::AWAY, "gone");
                }
            }
            () = tokio::time::sleep_until(heard + SILENCE) => {
                break (close_code::NORMAL, "no frame for 60 s");
            }
            () = stop.cancelled() => break (close_code::AWAY, "the server is ending"),
        }
    };
    for task in connection.subscriptions.into_values() {
        task.abort();
    }
    let close = CloseFrame { code, reason: reason.into() };
    // The other side may have closed first, or read nothing any more.
    let closing = connection.socket.send(Message::Close(Some(close)));
    let _ = tokio::time::timeout(CLOSING, closing).await;
}

impl Connection {
    async fn hear(&mut self, text: &[u8]) -> Result<(), axum::Error> {
        let frame = strict::parse_object(text, FRAME);
        let Ok(frame) = frame else {
            return self.refuse(None, &Refusal::invalid("frame", "must be one JSON object")).await;
        };
        let empty = Object::new();
        let payload = match frame.get("payload") {
            None => &empty,
            Some(Value::Object(payload)) => payload,
            Some(_) => {
                let refusal = Refusal::invalid("payload", "must be an object");
                return self.refuse(None, &refusal).await;
            }
        };
        match frame.get("type").and_then(Value::as_str) {
            Some("ping") => self.send("pong", json!({})).await,
            Some("subscribe") => self.subscribe(payload).await,
            Some("unsubscribe") => self.unsubscribe(payload).await,
            _ => {
                let known = "must be subscribe, unsubscribe or ping";
                self.refuse(None, &Refusal::invalid("type", known)).await
            }
        }
    }

    async fn subscribe(&mut self, payload: &Object) -> Result<(), axum::Error> {
        let named = payload.get("subscription_id").and_then(Value::as_str).map(str::to_owned);
        let named = named.as_deref();
        self.subscriptions.retain(|_, task| !task.is_finished());
        let subscription = match Subscription::of(payload) {
            Ok(subscription) => subscription,
            Err(refusal) => return self.refuse(named, &refusal).await,
        };
        if self.subscriptions.contains_key(&subscription.id) {
            let refusal = Refusal::invalid("subscription_id", "is in use on this connection");
            return self.refuse(named, &refusal).await;
        }
        if self.subscriptions.len() == MOST {
            let refusal = Refusal::new(429, "RATE_LIMITED", "too many subscriptions");
            return self.refuse(named, &refusal).await;
        }
        let id = subscription.id.clone();
        let events = match self.oamp.follow(&self.call, subscription).await {
            Ok(events) => events,
            Err(refusal) => return self.refuse(Some(&id), &refusal).await,
        };
        let (queue, name) = (self.queue.clone(), id.clone());
        let task = tokio::spawn(async move {
            let mut events = events;
            while let Some(told) = events.next().await {
                if queue.send((name.clone(), told)).await.is_err() {
                    return;
                }
            }
        });
        self.send("subscribed", json!({"subscription_id": id})).await?;
        self.subscriptions.insert(id, task);
        Ok(())
    }

    async fn unsubscribe(&mut self, payload: &Object) -> Result<(), axum::Error> {
        let id = payload.get("subscription_id").and_then(Value::as_str).unwrap_or_default();
        match self.subscriptions.remove(id) {
            Some(task) => {
                task.abort();
                self.send("unsubscribed", json!({"subscription_id": id})).await
            }
            None => {
                let refusal = Refusal::invalid("subscription_id", "is not in use");
                self.refuse(Some(id), &refusal).await
            }
        }
    }

    async fn tell(&mut self, id: &str, told: Result<Told, Refusal>) -> Result<(), axum::Error> {
        // What was on its way when the client unsubscribed is no longer wanted.
        if !self.subscriptions.contains_key(id) {
            return Ok(());
        }
        match told {
            Ok(Told { kind, payload }) => self.send(kind, payload).await,
            Err(refusal) => {
                self.subscriptions.remove(id);
                self.refuse(Some(id), &refusal).await
            }
        }
    }

    async fn refuse(&mut self, id: Option<&str>, refusal: &Refusal) -> Result<(), axum::Error> {
        let code = code(refusal);
        let payload = json!({
            "subscription_id": id,
            "code": code,
            "message": refusal.message,
            "retryable": code == "rate_limited",
        });
        self.send("error", payload).await
    }

    async fn send(&mut self, kind: &str, payload: Value) -> Result<(), axum::Error> {
        self.last = self.last.max(self.oamp.engine.now());
        let frame = json!({
            "oamp_version": FRAME_VERSION,
            "type": kind,
            "id": MessageId::random().to_string(),
            "ts": self.last.to_string(),
            "payload": payload,
        });
        let frame = Message::Text(frame.to_string().into());
        // Whoever takes nothing for so long is as gone as whoever says nothing.
        match tokio::time::timeout(SILENCE, self.socket.send(frame)).await {
            Ok(sent) => sent,
            Err(late) => Err(axum::Error::new(late)),
        }
    }
}

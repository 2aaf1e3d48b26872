//! A connection that speaks both ways: which streams are followed on it, whatever carries it.

use std::collections::HashMap;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use yore_canon::json::Object;
use yore_domain::stream::Frame;
use yore_engine::Call;

use crate::Uamp;
use crate::envelope::{Envelope, Rejected};
use crate::intent::Intent;
use crate::receive::{Receipt, acknowledged_below};
use crate::refusal::{Code, Refusal, Result};

/// Streams that one connection follows.
const MOST: usize = 256;
/// Frames that wait for a slow reader before their streams wait for it too.
const QUEUE: usize = 64;

/// What a stream has to tell: its name, and a frame or why there is none.
pub(crate) type Told = (String, Result<Frame>);

/// A stream that is followed here.
struct Followed {
    sender: String,
    task: JoinHandle<()>,
}

pub(crate) struct Session {
    uamp: Uamp,
    call: Call,
    queue: Option<mpsc::Sender<Told>>,
    streams: HashMap<String, Followed>,
}

impl Drop for Session {
    fn drop(&mut self) {
        for followed in self.streams.values() {
            followed.task.abort();
        }
    }
}

impl Session {
    /// Begins a connection; what its streams have to tell comes out at the other end.
    pub(crate) fn new(uamp: Uamp, call: Call) -> (Self, mpsc::Receiver<Told>) {
        let (queue, told) = mpsc::channel(QUEUE);
        (Self { uamp, call, queue: Some(queue), streams: HashMap::new() }, told)
    }

    pub(crate) const fn uamp(&self) -> &Uamp {
        &self.uamp
    }

    /// Takes an envelope in and follows the stream it opens or goes on with. An acknowledgement
    /// has no receipt.
    pub(crate) async fn envelope(
        &mut self,
        object: Object,
        bytes: &[u8],
    ) -> Result<Option<Receipt>, Rejected> {
        let envelope = Envelope::of(object, self.uamp.0.options.ids)?;
        let (intent, named) = (envelope.intent, envelope.stream.clone());
        let below = envelope.has_below()?;
        let (uamp, call) = (self.uamp.clone(), self.call.clone());
        let receipt = Box::pin(uamp.take(&call, envelope, bytes)).await?;
        if let Some(below) = below
            && let Some(stream) = &named
        {
            // A stream that is not followed here was begun elsewhere, and goes on here.
            if intent == Intent::Error || !self.follows(stream) {
                self.follow(stream, below.checked_sub(1)).await?;
            }
            return Ok(None);
        }
        if let Some(stream) = &receipt.stream
            && !self.follows(stream)
        {
            self.follow(stream, None).await?;
        }
        Ok(Some(receipt))
    }

    /// Takes an acknowledgement, or a complaint about a missing frame, as a bare delta.
    pub(crate) async fn delta(&mut self, delta: &Object) -> Result<()> {
        let stream = delta.get("stream_id").and_then(Value::as_str).unwrap_or_default();
        let empty = Object::new();
        let payload = delta.get("payload").and_then(Value::as_object).unwrap_or(&empty);
        let below = acknowledged_below(payload)?;
        let below = below.ok_or_else(|| Refusal::malformed("payload", "says nothing"))?;
        self.acknowledge(stream, below).await?;
        if payload.contains_key("expected") {
            self.follow(stream, below.checked_sub(1)).await?;
        }
        Ok(())
    }

    /// Notes that the other side has every frame below a number.
    pub(crate) async fn acknowledge(&self, stream: &str, below: u64) -> Result<()> {
        let Some(followed) = self.streams.get(stream) else {
            return Err(Refusal::new(Code::Forbidden, "the stream is not followed here"));
        };
        self.uamp.acknowledge(&self.call, &followed.sender, stream, below).await
    }

    fn follows(&self, stream: &str) -> bool {
        self.streams.get(stream).is_some_and(|followed| !followed.task.is_finished())
    }

    /// Sends a stream's frames from here on, instead of from where it was.
    pub(crate) async fn follow(&mut self, stream: &str, after: Option<u64>) -> Result<()> {
        // A stream whose frames were all sent stays known: its last ones are acknowledged yet.
        if let Some(followed) = self.streams.remove(stream) {
            followed.task.abort();
        }
        if self.streams.len() >= MOST {
            self.streams.retain(|_, followed| !followed.task.is_finished());
        }
        let Some(queue) = self.queue.clone().filter(|_| self.streams.len() < MOST) else {
            return Err(Refusal::new(Code::Busy, "too many streams on one connection"));
        };
        let mut delivery = self.uamp.follow(&self.call, stream, after, None).await?;
        let (name, sender) = (stream.to_owned(), delivery.sender().to_owned());
        let task = tokio::spawn(async move {
            while let Some(frame) = delivery.next().await {
                if queue.send((name.clone(), frame)).await.is_err() {
                    return;
                }
            }
        });
        self.streams.insert(stream.to_owned(), Followed { sender, task });
        Ok(())
    }

    /// No stream is followed any more besides those that are.
    pub(crate) fn close(&mut self) {
        self.queue = None;
    }
}

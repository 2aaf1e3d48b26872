//! Writes the frames of one stream: numbered without a gap, kept before they are sent.

use std::sync::Arc;

use serde_json::{Value, json};
use yore_canon::hash::{Sha256, Sha256Hasher};
use yore_domain::stream::{Frame, Pending};
use yore_domain::{Error, MessageId, Result};
use yore_engine::{Appending, Engine, Spoken, Ticket};

use crate::delta::{self, Kind};
use crate::hub::Hub;

/// Bytes that the transcript keeps of an answer.
const FOLDED: usize = 64 << 10;
/// How often a batch is written again when an acknowledgement came in between.
const TRIES: usize = 8;

/// The place where the next frame goes.
#[derive(Debug)]
pub(crate) struct Writer {
    engine: Engine,
    hub: Arc<Hub>,
    ticket: Ticket,
    stream: String,
    next: u64,
    /// Over every frame so far, newline-joined.
    transcript: Sha256Hasher,
    folded: String,
}

impl Writer {
    /// Begins a stream, or goes on with this frame after those it has.
    pub(crate) fn after(
        engine: Engine,
        hub: Arc<Hub>,
        ticket: Ticket,
        stream: String,
        next: u64,
        frames: &[Frame],
    ) -> Self {
        let transcript = Sha256::hasher();
        let mut writer =
            Self { engine, hub, ticket, stream, next: 0, transcript, folded: String::new() };
        for frame in frames {
            writer.count(frame.number, &frame.bytes);
        }
        writer.next = next;
        writer
    }

    /// The number of the next frame.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    fn count(&mut self, number: u64, bytes: &[u8]) {
        if number > 0 {
            self.transcript.update(b"\n");
        }
        self.transcript.update(bytes);
        self.next = number + 1;
    }

    /// Appends frames; says whether they were taken. What ends a stream stands last, and `done`
    /// says what everything before it hashes to.
    pub(crate) async fn write(
        &mut self,
        deltas: Vec<(Kind, Value)>,
        pending: Option<Pending>,
    ) -> Result<bool> {
        let (first, now) = (self.next, self.engine.now());
        let mut frames = Vec::with_capacity(deltas.len());
        let mut ends = None;
        for (kind, mut payload) in deltas {
            if kind == Kind::Done {
                payload["transcript_sha256"] = self.transcript.finish().to_hex().into();
            }
            ends = kind.ends();
            if kind == Kind::Chunk || ends.is_some() {
                self.fold(&payload);
            }
            let frame = delta::written(self.next, &self.stream, now, kind, payload);
            self.count(self.next, frame.as_bytes());
            frames.push(frame.into_bytes());
        }
        let said = ends.map(|state| Spoken {
            id: MessageId::random(),
            text: std::mem::take(&mut self.folded),
            at: now,
            about: json!({ "uamp_reply_to": self.ticket.message(), "uamp_outcome": state }),
        });
        let appending = Appending { first, frames, ends, pending, said };
        let taken = self.append(appending).await;
        self.hub.moved(&(self.ticket.sender().to_owned(), self.stream.clone()));
        taken
    }

    /// Waits until fewer frames than this are unacknowledged.
    pub(crate) async fn room(&self, ahead: u64) -> Result<()> {
        let key = (self.ticket.sender().to_owned(), self.stream.clone());
        let mut moved = self.hub.wait(&key);
        loop {
            moved.borrow_and_update();
            let stream = self.engine.stream_at(&self.ticket, &self.stream).await?;
            if stream.state.is_final() || stream.next < stream.acknowledged + ahead {
                return Ok(());
            }
            // Somebody always waits here, so the other end is kept.
            let _ = moved.changed().await;
        }
    }

    async fn append(&self, appending: Appending) -> Result<bool> {
        for _ in 1..TRIES {
            let tried =
                self.engine.append_frames(&self.ticket, &self.stream, appending.clone()).await;
            match tried {
                Err(Error::Conflict { .. }) => tokio::task::yield_now().await,
                done => return done,
            }
        }
        self.engine.append_frames(&self.ticket, &self.stream, appending).await
    }

    /// Keeps the beginning of what is said, for the transcript.
    fn fold(&mut self, payload: &Value) {
        if self.folded.len() >= FOLDED || payload.get("chunk_b64").is_some() {
            return;
        }
        let text = match payload.get("text").and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => payload.to_string(),
        };
        if !self.folded.is_empty() {
            self.folded.push('\n');
        }
        let room = FOLDED.saturating_sub(self.folded.len());
        self.folded.push_str(&text[..text.floor_char_boundary(room)]);
    }
}

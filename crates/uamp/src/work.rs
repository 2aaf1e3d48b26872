//! What is done for a message: questions are answered, proposals put before a person, changes
//! told.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use serde_json::{Value, json};
use yore_canon::encode;
use yore_domain::hold::HoldState;
use yore_domain::memory::Draft;
use yore_domain::mutation::Mutation;
use yore_domain::query::{Corpus, Cutoff, Filter, Recall};
use yore_domain::scope::Scope;
use yore_domain::stream::{Pending, Stream};
use yore_domain::{BlobHash, Error, HoldId};
use yore_engine::dialect::Dialect;
use yore_engine::{Call, Event, Reader, Ticket, Wish};

use crate::delta::Kind;
use crate::envelope::Envelope;
use crate::hub::{Key, Running};
use crate::intent::Intent;
use crate::refusal::{Code, Refusal, Result};
use crate::reply::Reply;
use crate::writer::Writer;
use crate::{Core, Uamp};

/// Results of a question in plain words, and the tokens they may take together.
const RESULTS: usize = 20;
const TOKENS: usize = 4000;
/// Bytes of one frame of a long answer; of a file a quarter less, for it grows in base64.
const PIECE: usize = 32 << 10;
const FILE_PIECE: usize = 24 << 10;
/// Frames that are written at once.
const BATCH: usize = 32;
/// Frames that wait unacknowledged before no more are made.
const AHEAD: u64 = 2048;
/// Frames that a stream may have when its work is taken up again.
const FRAMES: usize = 1 << 20;
/// How often an end is tried when others write at the same time.
const TRIES: usize = 8;
/// How often a decision is looked for, should no change tell of it.
const LOOK: Duration = Duration::from_secs(30);

type Events = BoxStream<'static, yore_domain::Result<Event>>;

/// A message that opened a stream.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) call: Call,
    pub(crate) envelope: Envelope,
    pub(crate) ticket: Ticket,
    pub(crate) stream: String,
    /// Whether it came before.
    pub(crate) duplicate: bool,
}

impl Core {
    /// Whether the vault itself can do something with a message's body.
    pub(crate) fn understood(&self, envelope: &Envelope) -> Result<()> {
        let kind = envelope.body.kind.as_str();
        let understood = match envelope.intent {
            Intent::Ask => is_text(kind) || kind == "application/json" || self.speaks(kind),
            Intent::Inform => is_text(kind) || self.speaks(kind),
            Intent::Propose => is_text(kind),
            Intent::Subscribe
            | Intent::Confirm
            | Intent::Deny
            | Intent::Progress
            | Intent::Cancel
            | Intent::Notify
            | Intent::Error => true,
        };
        if understood {
            return Ok(());
        }
        Err(Refusal::new(Code::Unsupported, "the body is of a type that is not understood here"))
    }

    fn speaks(&self, kind: &str) -> bool {
        self.dialect(kind).is_some()
    }

    /// The dialect whose operations a body of this type names.
    fn dialect(&self, kind: &str) -> Option<&dyn Dialect> {
        let name = kind.strip_prefix("application/vnd.")?.strip_suffix("+json")?;
        self.registry.get(name)
    }
}

fn is_text(kind: &str) -> bool {
    matches!(kind, "text/plain" | "text/markdown")
}

impl Uamp {
    /// Begins to work on a message that opened a stream.
    pub(crate) async fn begin(&self, request: Request) -> Result<()> {
        if request.duplicate {
            let (reader, stream) = self.0.engine.resume(&request.call, &request.stream).await?;
            return self.revive(&reader, &stream).await;
        }
        let Core { engine, hub, .. } = &*self.0;
        let (ticket, stream) = (request.ticket.clone(), request.stream.clone());
        let writer = Writer::after(engine.clone(), Arc::clone(hub), ticket, stream, 0, &[]);
        let key = (request.ticket.sender().to_owned(), request.stream.clone());
        let Some(running) = hub.begin(&key, writer) else { return Ok(()) };
        // Changes are told from here on, not from whenever the work begins.
        let events = match request.envelope.intent {
            Intent::Subscribe => Some(engine.subscribe(&request.call, None).await),
            Intent::Ask
            | Intent::Inform
            | Intent::Propose
            | Intent::Confirm
            | Intent::Deny
            | Intent::Progress
            | Intent::Cancel
            | Intent::Notify
            | Intent::Error => None,
        };
        let (this, within) = (self.clone(), self.0.options.answer_within);
        self.spawn(key, running, move |running| async move {
            match events {
                Some(events) => this.tell(events?, &running).await,
                None if request.envelope.intent == Intent::Propose => {
                    this.propose(&request, &running).await
                }
                None => {
                    let answered = this.answer(&request, &running);
                    tokio::time::timeout(within, answered).await.unwrap_or_else(|_| Err(late()))
                }
            }
        });
        Ok(())
    }

    /// Runs work on a stream until it is done or the stream is taken back; a failure ends it.
    fn spawn<F, W>(&self, key: Key, running: Arc<Running>, work: F)
    where
        F: FnOnce(Arc<Running>) -> W,
        W: Future<Output = Result<()>> + Send + 'static,
    {
        let (this, work) = (self.clone(), work(Arc::clone(&running)));
        let hub = Arc::clone(&self.0.hub);
        hub.working().send_modify(|working| *working += 1);
        tokio::spawn(async move {
            let worked = tokio::select! {
                () = running.stop.cancelled() => Ok(()),
                () = hub.closing().cancelled() => Ok(()),
                worked = work => worked,
            };
            if let Err(refusal) = worked {
                let failed = vec![(Kind::Error, refusal.content())];
                let written = running.writer.lock().await.write(failed, None).await;
                if let Err(error) = written {
                    tracing::error!(%error, "the end of a stream could not be written");
                }
            }
            hub.end(&key);
            // Last, so that whoever sees nobody at work knows that nothing is held any more.
            drop((this, running));
            hub.working().send_modify(|working| *working -= 1);
        });
    }

    /// Ends all work; what is unfinished is taken up by the next process.
    pub async fn stop(&self) {
        let hub = &self.0.hub;
        hub.closing().cancel();
        let mut working = hub.working().subscribe();
        // The sender lives as long as the hub, so waiting cannot fail.
        let _ = working.wait_for(|working| *working == 0).await;
    }

    /// Takes up again what an earlier process left undone, or ends it.
    pub(crate) async fn revive(&self, reader: &Reader, stream: &Stream) -> Result<()> {
        let Core { engine, hub, started, .. } = &*self.0;
        let key = (stream.sender.clone(), stream.id.clone());
        let late = matches!(stream.pending, Pending::Answer { until } if until <= engine.now());
        let abandoned = stream.opened < *started || late;
        if stream.state.is_final() || !abandoned || hub.at_work(&key).is_some() {
            return Ok(());
        }
        let (_, frames) = reader.read(0, FRAMES).await?;
        let (ticket, id) = (reader.ticket().clone(), stream.id.clone());
        let writer =
            Writer::after(engine.clone(), Arc::clone(hub), ticket, id, stream.next, &frames);
        let Some(running) = hub.begin(&key, writer) else { return Ok(()) };
        let (this, call) = (self.clone(), reader.call().clone());
        match stream.pending.clone() {
            Pending::Answer { .. } | Pending::Decision { hold: None } => {
                let reason = "the server was interrupted before it could answer";
                let refusal = Refusal { retry_after: Some(1), ..Refusal::new(Code::Busy, reason) };
                let failed = vec![(Kind::Error, refusal.content())];
                let written = running.writer.lock().await.write(failed, None).await;
                hub.end(&key);
                written?;
            }
            Pending::Decision { hold: Some(hold) } => {
                let (sender, request) = (stream.sender.clone(), stream.request.clone());
                self.spawn(key, running, move |running| async move {
                    this.decided(&call, hold, &sender, &request, &running).await
                });
            }
            Pending::Changes { cursor } => {
                let after = cursor.map(|cursor| engine.seq_at(&cursor)).transpose();
                self.spawn(key, running, move |running| async move {
                    let events = this.0.engine.subscribe(&call, after?).await;
                    this.tell(events?, &running).await
                });
            }
        }
        Ok(())
    }

    /// Takes a request back. What has ended stays as it is.
    pub(crate) async fn cancel(&self, call: &Call, envelope: &Envelope) -> Result<()> {
        let Core { engine, hub, .. } = &*self.0;
        let sender = envelope.from.as_str();
        let id = match (&envelope.stream, &envelope.reply_to) {
            (Some(stream), _) => stream.clone(),
            (None, Some(message)) => {
                engine.stream_of(call, sender, message).await.map_err(hidden)?
            }
            (None, None) => return Ok(()),
        };
        let (reader, stream) = engine.resume(call, &id).await.map_err(hidden)?;
        if stream.sender != sender {
            return Err(hidden(Error::NotFound));
        }
        let key = (stream.sender, stream.id);
        if let Some(running) = hub.at_work(&key) {
            running.stop.cancel();
        }
        for _ in 0..TRIES {
            let (stream, frames) = reader.read(0, FRAMES).await?;
            if stream.state.is_final() {
                return Ok(());
            }
            let (ticket, id) = (reader.ticket().clone(), stream.id.clone());
            let mut writer =
                Writer::after(engine.clone(), Arc::clone(hub), ticket, id, stream.next, &frames);
            match writer.write(vec![(Kind::Cancel, json!({}))], None).await {
                // What was on its way when the work stopped has arrived meanwhile.
                Err(Error::Conflict { .. }) => {}
                written => return written.map(drop).map_err(Refusal::from),
            }
        }
        Err(Refusal::new(Code::Busy, "the stream moves too fast"))
    }

    async fn answer(&self, request: &Request, running: &Running) -> Result<()> {
        let Request { call, envelope, .. } = request;
        let body = &envelope.body;
        if is_text(&body.kind) {
            return self.recall(call, &body.text()?, running).await;
        }
        if body.kind == "application/json" {
            return self.send_file(call, envelope, running).await;
        }
        let answered = self.perform(call, envelope).await?;
        let mut deltas = pieces(&answered);
        let count = deltas.len();
        deltas.push((Kind::Done, json!({ "count": count })));
        for batch in deltas.chunks(BATCH) {
            running.writer.lock().await.write(batch.to_vec(), None).await?;
        }
        Ok(())
    }

    /// Answers a question in plain words by what the sender may know, framed as data.
    async fn recall(&self, call: &Call, question: &str, running: &Running) -> Result<()> {
        let recall = Recall {
            query: question.to_owned(),
            corpus: Corpus::Memories,
            filter: Filter::default(),
            near: Scope::default(),
            limit: RESULTS,
            effort: self.0.engine.settings().effort,
            prefer: Vec::new(),
            cutoff: Cutoff::default(),
        };
        let found = self.0.engine.context(call, recall, TOKENS).await?;
        let mut deltas = Vec::new();
        if !found.frame.is_empty() {
            let payload = json!({"index": 0, "text": found.frame, "memories": found.used});
            deltas.push((Kind::Chunk, payload));
        }
        deltas.push((Kind::Done, json!({ "count": found.used.len() })));
        running.writer.lock().await.write(deltas, None).await?;
        Ok(())
    }

    /// Runs the operation that a typed body names.
    async fn perform(&self, call: &Call, envelope: &Envelope) -> Result<Value> {
        let mut said = envelope.body.object()?;
        let operation = match said.remove("op") {
            Some(Value::String(operation)) => operation,
            Some(_) | None => {
                return Err(Refusal::malformed("body.content", "op names what to do"));
            }
        };
        let input = said.remove("input").unwrap_or_else(|| json!({}));
        let dialect = self.0.dialect(&envelope.body.kind);
        let dialect = dialect
            .ok_or_else(|| Refusal::new(Code::Unsupported, "no such dialect is spoken here"))?;
        if !dialect.operations().iter().any(|known| known.name == operation) {
            return Err(Refusal::malformed("body.content", "op is not one of the dialect's"));
        }
        let call = Call { operation: Some(operation_id(envelope)), ..call.clone() };
        // A refusal in the dialect's own form is an answer like any other.
        match dialect.call(call, &operation, input).await {
            Ok(answer) => Ok(json!({ "ok": answer })),
            Err(refused) => Ok(json!({ "refused": refused })),
        }
    }

    /// Does what a message tells, which wants no answer.
    pub(crate) async fn learn(&self, call: &Call, envelope: &Envelope) -> Result<()> {
        if !is_text(&envelope.body.kind) {
            return self.perform(call, envelope).await.map(drop);
        }
        match self.remember(call, envelope, Wish::default()).await {
            // The owner has it to decide, and nobody waits for it.
            Ok(()) | Err(Error::Held { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn remember(&self, call: &Call, envelope: &Envelope, wish: Wish) -> Result<(), Error> {
        let text = envelope.body.text().map_err(|refusal| Error::invalid("body", refusal.message));
        let draft = Box::new(Draft::text(text?));
        let call = Call { operation: Some(operation_id(envelope)), ..call.clone() };
        self.0.engine.mutate(&call, Mutation::Remember { draft, id: None }, wish).await.map(drop)
    }

    /// Puts a proposal before a person and waits for the decision.
    async fn propose(&self, request: &Request, running: &Running) -> Result<()> {
        let Request { call, envelope, ticket, .. } = request;
        let wish = Wish { approval: true, ..Wish::default() };
        let hold = match self.remember(call, envelope, wish).await {
            Err(Error::Held { hold }) => hold,
            Err(error) => return Err(error.into()),
            Ok(()) => {
                let done = json!({ "outcome": "confirmed" });
                running.writer.lock().await.write(vec![(Kind::Done, done)], None).await?;
                return Ok(());
            }
        };
        let url = self.0.options.url.as_deref().unwrap_or_default().trim_end_matches('/');
        let waiting = json!({
            "state": "pending_approval",
            "hold": hold,
            "approval_url": format!("{url}/app/review/{hold}"),
        });
        let pending = Some(Pending::Decision { hold: Some(hold) });
        running.writer.lock().await.write(vec![(Kind::Progress, waiting)], pending).await?;
        self.decided(call, hold, ticket.sender(), ticket.message(), running).await
    }

    /// Waits for a person's decision and tells it, in a signed envelope, too.
    async fn decided(
        &self,
        call: &Call,
        hold: HoldId,
        sender: &str,
        request: &str,
        running: &Running,
    ) -> Result<()> {
        let Core { engine, .. } = &*self.0;
        let mut events = engine.subscribe(call, None).await?;
        let (intent, outcome, memory) = loop {
            let found = engine.hold(call, hold).await?;
            match found.state {
                HoldState::Pending => {}
                HoldState::Approved => break (Intent::Confirm, "confirmed", found.outcome),
                HoldState::Rejected => break (Intent::Deny, "denied", None),
                HoldState::Expired => break (Intent::Deny, "expired", None),
            }
            // Any change may be the decision; most are somebody else's.
            match tokio::time::timeout(LOOK, events.next()).await {
                Ok(Some(Ok(_))) | Err(_) => {}
                Ok(Some(Err(error))) => return Err(error.into()),
                Ok(None) => return Err(Refusal::new(Code::Busy, "the server is ending")),
            }
        };
        let content = json!({ "outcome": outcome, "hold": hold, "memory": memory });
        let reply_to = format!("urn:uuid:{request}");
        let reply = Reply {
            to: sender,
            intent,
            reply_to: Some(&reply_to),
            stream: None,
            content: &content,
        };
        let signed = self.0.envelope(reply).await?;
        let envelope: Value = serde_json::from_str(&signed).map_err(Error::internal)?;
        let mut done = content;
        done["envelope"] = envelope;
        running.writer.lock().await.write(vec![(Kind::Done, done)], None).await?;
        Ok(())
    }

    /// Tells changes, until the sender has enough or may no longer know.
    async fn tell(&self, mut events: Events, running: &Running) -> Result<()> {
        while let Some(event) = events.next().await {
            let Event { cursor, change, at } = event?;
            let mut writer = running.writer.lock().await;
            let record = json!({ "change": change, "at": at.to_string() });
            let payload = json!({ "index": writer.next(), "record": record });
            let pending = Some(Pending::Changes { cursor: Some(cursor) });
            if !writer.write(vec![(Kind::Chunk, payload)], pending).await? {
                return Ok(());
            }
            writer.room(AHEAD).await?;
        }
        Ok(())
    }

    /// Sends an attachment in pieces, no further ahead than it is acknowledged.
    async fn send_file(&self, call: &Call, envelope: &Envelope, running: &Running) -> Result<()> {
        let wanted = envelope.body.object()?;
        let hash = wanted.get("attachment").and_then(Value::as_str);
        let hash = hash.and_then(|hex| encode::from_hex(hex).ok());
        let hash = hash.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        let hash = hash.ok_or_else(|| {
            Refusal::malformed("body.content", "attachment is the hash of one, in hex")
        })?;
        let Core { engine, .. } = &*self.0;
        let mut file = engine.download(call, BlobHash(hash)).await?;
        let mut index = 0_u64;
        while let Some(piece) = file.pieces.next().await {
            let mut deltas = Vec::new();
            for part in piece?.chunks(FILE_PIECE) {
                let payload = json!({ "index": index, "chunk_b64": encode::base64(part) });
                deltas.push((Kind::Chunk, payload));
                index += 1;
            }
            let mut writer = running.writer.lock().await;
            if !writer.write(deltas, None).await? {
                return Ok(());
            }
            writer.room(AHEAD).await?;
        }
        let done = json!({ "count": index, "bytes": file.size });
        running.writer.lock().await.write(vec![(Kind::Done, done)], None).await?;
        Ok(())
    }
}

/// Whether somebody else has such a request is nobody's business.
fn hidden(error: Error) -> Refusal {
    if matches!(error, Error::NotFound) {
        return Refusal::new(Code::Forbidden, "the request is not the sender's");
    }
    error.into()
}

/// The id under which the engine knows what a message makes it do, so that it happens once.
fn operation_id(envelope: &Envelope) -> String {
    format!("uamp:{}:{}", envelope.from, envelope.id)
}

fn late() -> Refusal {
    Refusal { retry_after: Some(1), ..Refusal::new(Code::Busy, "the answer took too long") }
}

/// An answer as frames: one, or the text of it in pieces.
fn pieces(answer: &Value) -> Vec<(Kind, Value)> {
    let text = answer.to_string();
    if text.len() <= PIECE {
        return vec![(Kind::Chunk, json!({ "index": 0, "record": answer }))];
    }
    let (mut rest, mut frames) = (text.as_str(), Vec::new());
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE));
        let payload =
            json!({ "index": frames.len(), "text": piece, "part_of": "application/json" });
        frames.push((Kind::Chunk, payload));
        rest = after;
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uamp_058_a_long_answer_comes_in_pieces_that_join_again() {
        assert_eq!(pieces(&json!({"a": 1})).len(), 1);
        let long = json!({ "text": "é".repeat(100_000) });
        let frames = pieces(&long);
        assert!(frames.len() > 1 && frames.len() < 64);
        let joined: String =
            frames.iter().map(|(_, payload)| payload["text"].as_str().unwrap()).collect();
        assert_eq!(serde_json::from_str::<Value>(&joined).unwrap(), long);
    }
}

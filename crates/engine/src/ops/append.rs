//! Writing frames to a stream.

use futures::future::BoxFuture;
use serde::Serialize;
use yore_domain::class::Surface;
use yore_domain::grant::Verbs;
use yore_domain::stream::{Frame, LetterState, Pending, Stream, StreamState};
use yore_domain::{Error, Result};
use yore_policy::Need;
use yore_store::{Precondition, Snapshot, Write};

use super::accept::Ticket;
use super::peers::peers;
use super::transcript::{Speaker, Spoken, record};
use crate::call::Call;
use crate::engine::Engine;
use crate::run::{Act, Attempt, Planned, Session, Trace};

/// Frames to append.
#[derive(Clone, Debug, Default)]
pub struct Appending {
    /// The number of the first of them, which must be the next of the stream.
    pub first: u64,
    /// Their exact bytes.
    pub frames: Vec<Vec<u8>>,
    /// How the stream ends with them.
    pub ends: Option<StreamState>,
    /// What its end waits for from now on.
    pub pending: Option<Pending>,
    /// What the transcript keeps of the whole stream.
    pub said: Option<Spoken>,
}

struct Append<'a> {
    ticket: &'a Ticket,
    stream: &'a str,
    appending: Appending,
}

impl Engine {
    /// Appends frames to a stream; says whether they were taken. A stream that has ended takes
    /// nothing more.
    pub async fn append_frames(
        &self,
        ticket: &Ticket,
        stream: &str,
        appending: Appending,
    ) -> Result<bool> {
        let op = Append { ticket, stream, appending };
        self.act_alone(ticket.vault, ticket.protocol, &op).await
    }
}

impl Engine {
    /// Returns a stream that is being written.
    pub async fn stream_at(&self, ticket: &Ticket, stream: &str) -> Result<Stream> {
        let permit = self.system(ticket.vault, "look at a stream")?;
        let snapshot = self.store().snapshot(&permit).await?;
        snapshot.stream(&ticket.sender, stream).await?.ok_or(Error::NotFound)
    }
}

impl Serialize for Append<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (&self.ticket.sender, self.stream, self.appending.first).serialize(serializer)
    }
}

impl Act for Append<'_> {
    type Output = bool;

    fn need(&self) -> Need {
        Need::of("append frames", Verbs::NONE, Surface::Stream)
    }

    fn plan<'a>(
        &'a self,
        engine: &'a Engine,
        call: &'a Call,
        session: &'a Session,
        snapshot: &'a dyn Snapshot,
        _attempt: Attempt,
    ) -> BoxFuture<'a, Result<Planned<bool>>> {
        Box::pin(async move {
            let Self { ticket, stream: id, appending } = self;
            let sender = &ticket.sender;
            let found = snapshot.stream(sender, id).await?;
            let mut stream = found.ok_or(Error::NotFound)?;
            if stream.state.is_final() {
                return Ok(Planned::done(false, Vec::new()));
            }
            if stream.next != appending.first {
                return Err(Error::conflict("the stream has moved on"));
            }
            let known = Precondition::Stream(sender.clone(), (*id).into(), Some(stream.revision));
            let mut writes: Vec<Write> = (stream.next..)
                .zip(&appending.frames)
                .map(|(number, bytes)| Write::Frame {
                    sender: sender.clone(),
                    stream: (*id).to_owned(),
                    frame: Frame { number, bytes: bytes.clone() },
                })
                .collect();
            stream.next += appending.frames.len() as u64;
            stream.revision += 1;
            stream.updated = session.now;
            stream.state = appending.ends.unwrap_or(stream.state);
            if let Some(pending) = &appending.pending {
                stream.pending = pending.clone();
            }
            let mut planned = Planned::done(true, Vec::new()).traced(
                Trace::count(appending.frames.len()).with("message", stream.request.clone()),
            );
            planned.preconditions.push(known);
            if let Some(mut letter) = snapshot.letter(sender, &stream.request).await? {
                let recorded = peers(snapshot).await?;
                let recorded = recorded.iter().find(|peer| peer.did == *sender);
                let recorded = recorded.is_none_or(|peer| peer.recorded);
                if let Some(said) = appending.said.as_ref().filter(|_| recorded) {
                    let (vault, thread) = (ticket.vault, &letter.thread);
                    let speaker = Speaker::Vault;
                    let kept =
                        record(engine, snapshot, vault, call.protocol, thread, speaker, said);
                    let kept = kept.await?;
                    writes.extend(kept.0);
                    planned.preconditions.push(kept.1);
                }
                if stream.state.is_final() {
                    letter.state = LetterState::Acknowledged;
                    writes.push(Write::Letter(Box::new(letter)));
                }
            }
            writes.push(Write::Stream(Box::new(stream)));
            planned.writes = writes;
            Ok(planned)
        })
    }
}

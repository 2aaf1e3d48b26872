//! Reading a stream from any frame that is kept.

use yore_domain::class::Surface;
use yore_domain::grant::Verbs;
use yore_domain::stream::{Frame, Stream};
use yore_domain::{Error, Result};
use yore_policy::Need;

use super::accept::Ticket;
use super::acknowledge::first_kept;
use super::peers::own_names;
use crate::call::Call;
use crate::engine::Engine;
use crate::run::Trace;

/// A place from which a stream is read. The caller is looked up again for every read, so that a
/// revoked grant ends it.
#[derive(Clone, Debug)]
pub struct Reader {
    engine: Engine,
    call: Call,
    ticket: Ticket,
    stream: String,
}

impl Engine {
    /// Finds a stream that the caller opened. Another's and none at all are told apart by nobody.
    pub async fn resume(&self, call: &Call, stream: &str) -> Result<(Reader, Stream)> {
        let session = self.enter(call, need()).await?;
        let found = async {
            let snapshot = self.store().snapshot(&session.permit).await?;
            for sender in own_names(&session, &*snapshot).await? {
                if let Some(found) = snapshot.stream(&sender, stream).await? {
                    let trace = Trace::default().with("message", found.request.clone());
                    return Ok((found, trace));
                }
            }
            Err(Error::NotFound)
        };
        let found = found.await;
        let found = self.leave(call, &session, found).await?;
        let ticket = Ticket {
            vault: session.permit.vault(),
            protocol: call.protocol,
            sender: found.sender.clone(),
            message: found.request.clone(),
        };
        let (engine, call) = (self.clone(), call.clone());
        Ok((Reader { engine, call, ticket, stream: stream.to_owned() }, found))
    }
}

impl Engine {
    /// Returns the stream that a message of the sender's opened.
    pub async fn stream_of(&self, call: &Call, sender: &str, message: &str) -> Result<String> {
        let input = (sender.to_owned(), message.to_owned());
        self.look(call, need(), input, |_, session, snapshot, (sender, message)| {
            Box::pin(async move {
                if !own_names(session, snapshot).await?.contains(sender) {
                    return Err(Error::NotFound);
                }
                let letter = snapshot.letter(sender, message).await?;
                let stream = letter.and_then(|letter| letter.stream).ok_or(Error::NotFound)?;
                Ok((stream, Trace::default().with("message", message.clone())))
            })
        })
        .await
    }
}

impl Reader {
    /// Returns the stream as it stands and its frames from a number on.
    pub async fn read(&self, from: u64, limit: usize) -> Result<(Stream, Vec<Frame>)> {
        let call = self.engine.renewed(&self.call);
        let session = self.engine.enter_again(&call, need()).await?;
        let snapshot = self.engine.store().snapshot(&session.permit).await?;
        let sender = &self.ticket.sender;
        if !own_names(&session, &*snapshot).await?.contains(sender) {
            return Err(Error::NotFound);
        }
        let stream = snapshot.stream(sender, &self.stream).await?.ok_or(Error::NotFound)?;
        let frames = match limit {
            0 => Vec::new(),
            limit => snapshot.frames(sender, &self.stream, from, limit).await?,
        };
        Ok((stream, frames))
    }

    /// Returns leave to go on answering.
    #[must_use]
    pub const fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// Returns the call under which it reads.
    #[must_use]
    pub const fn call(&self) -> &Call {
        &self.call
    }

    /// Returns the stream's id.
    #[must_use]
    pub fn stream(&self) -> &str {
        &self.stream
    }

    /// Returns the first frame of a stream that is kept.
    #[must_use]
    pub fn first_kept(stream: &Stream) -> u64 {
        first_kept(stream)
    }
}

fn need() -> Need {
    Need::of("resume", Verbs::NONE, Surface::Stream)
}

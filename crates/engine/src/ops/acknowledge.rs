//! Acknowledging frames: what a receiver has need not be sent again.

use serde::{Deserialize, Serialize};
use yore_domain::class::Surface;
use yore_domain::grant::Verbs;
use yore_domain::stream::{Pending, Stream};
use yore_domain::{Error, Result};
use yore_policy::Need;
use yore_store::{Precondition, Write};

use super::peers::speaking;
use crate::call::Call;
use crate::engine::Engine;
use crate::run::{Planned, Trace};

/// What became of an acknowledgement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Acknowledged {
    /// It counts; this is the stream now.
    Done(Box<Stream>),
    /// It names a frame that was never sent, or that is no longer kept.
    Beyond {
        /// The first frame that is kept.
        first: u64,
        /// The number after the last frame there is.
        next: u64,
    },
}

impl Engine {
    /// Says that the sender of a stream's request has every frame below a number. A lower number
    /// than before changes nothing.
    pub async fn acknowledge(
        &self,
        call: &Call,
        sender: &str,
        stream: &str,
        below: u64,
    ) -> Result<Acknowledged> {
        let need = Need::of("acknowledge", Verbs::NONE, Surface::Stream);
        let call = Call { operation: None, ..call.clone() };
        let input = (sender.to_owned(), stream.to_owned(), below);
        self.change(&call, need, input, |_, session, snapshot, (sender, id, below)| {
            Box::pin(async move {
                // Another's stream and none at all are told apart by nobody.
                let hidden = |_| Error::NotFound;
                speaking(session, snapshot, sender).await.map_err(hidden)?;
                let mut stream = snapshot.stream(sender, id).await?.ok_or(Error::NotFound)?;
                let sent = stream.next.min(stream.acknowledged + u64::from(stream.window));
                if *below > sent {
                    let (first, next) = (first_kept(&stream), stream.next);
                    return Ok(Planned::done(Acknowledged::Beyond { first, next }, Vec::new()));
                }
                if *below <= stream.acknowledged {
                    let done = Acknowledged::Done(Box::new(stream));
                    return Ok(Planned::done(done, Vec::new()));
                }
                let revision = Some(stream.revision);
                stream.acknowledged = *below;
                stream.revision += 1;
                let mut writes = vec![Write::Stream(Box::new(stream.clone()))];
                if first_kept(&stream) > 0 {
                    writes.push(Write::DropFrames {
                        sender: sender.clone(),
                        stream: id.clone(),
                        below: *below,
                    });
                }
                let trace = Trace::default().with("message", stream.request.clone());
                let done = Acknowledged::Done(Box::new(stream));
                let mut planned = Planned::done(done, writes).traced(trace);
                planned.preconditions.push(Precondition::Stream(
                    sender.clone(),
                    id.clone(),
                    revision,
                ));
                Ok(planned)
            })
        })
        .await
    }
}

/// The first frame that is kept: all of what ends, and of what goes on what is not acknowledged.
pub(crate) fn first_kept(stream: &Stream) -> u64 {
    match stream.pending {
        Pending::Changes { .. } => stream.acknowledged,
        Pending::Answer { .. } | Pending::Decision { .. } => 0,
    }
}

//! Sends the frames of a stream, whatever the transport: no further than the window allows, from
//! any frame that is kept, and again after a lost connection.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::watch;
use yore_domain::stream::Frame;
use yore_engine::{Call, Reader};

use crate::Uamp;
use crate::refusal::{Refusal, Result};

/// Frames that are read at once.
const BATCH: usize = 64;

/// A stream on its way to whoever opened it.
#[derive(Debug)]
pub struct Delivery {
    reader: Reader,
    moved: watch::Receiver<u64>,
    ready: VecDeque<Frame>,
    next: u64,
    patience: Option<Duration>,
    ended: bool,
}

impl Uamp {
    /// Follows a stream after the frame that the receiver has last, which acknowledges it. With
    /// patience, a window that stays full ends the delivery; without, it is waited for.
    pub async fn follow(
        &self,
        call: &Call,
        stream: &str,
        after: Option<u64>,
        patience: Option<Duration>,
    ) -> Result<Delivery> {
        let core = &self.0;
        let (reader, found) = core.engine.resume(call, stream).await?;
        let key = (found.sender.clone(), found.id.clone());
        let first = Reader::first_kept(&found);
        let next = match after {
            None => first,
            Some(last) => {
                let next =
                    last.checked_add(1).ok_or_else(|| Refusal::missing(first, found.next))?;
                if next < first || next > found.next {
                    return Err(Refusal::missing(first, found.next));
                }
                if next > found.acknowledged {
                    self.acknowledge(call, &found.sender, stream, next).await?;
                }
                next
            }
        };
        let moved = core.hub.wait(&key);
        self.revive(&reader, &found).await?;
        Ok(Delivery { reader, moved, ready: VecDeque::new(), next, patience, ended: false })
    }
}

impl Delivery {
    /// Whether the stream has ended and the receiver has all of it.
    pub async fn is_complete(&self) -> Result<bool> {
        let (stream, _) = self.reader.read(self.next, 0).await?;
        Ok(stream.state.is_final() && self.next >= stream.next)
    }

    /// Returns the next frame, when there is one and it may be sent; nothing when the stream has
    /// ended or the window stayed full.
    pub async fn next(&mut self) -> Option<Result<Frame>> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                self.next = frame.number + 1;
                return Some(Ok(frame));
            }
            if self.ended {
                return None;
            }
            self.moved.borrow_and_update();
            let (stream, frames) = match self.reader.read(self.next, BATCH).await {
                Ok(read) => read,
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error.into()));
                }
            };
            let limit = stream.acknowledged + u64::from(stream.window);
            self.ready.extend(frames.into_iter().filter(|frame| frame.number < limit));
            if !self.ready.is_empty() {
                continue;
            }
            if stream.state.is_final() && self.next >= stream.next {
                self.ended = true;
                continue;
            }
            let moved = self.moved.changed();
            let moved = match self.patience.filter(|_| self.next >= limit) {
                None => moved.await.is_ok(),
                Some(patience) => {
                    tokio::time::timeout(patience, moved).await.is_ok_and(|moved| moved.is_ok())
                }
            };
            self.ended = !moved;
        }
    }

    /// Returns who opened the stream.
    #[must_use]
    pub fn sender(&self) -> &str {
        self.reader.ticket().sender()
    }
}

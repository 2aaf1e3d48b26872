//! What changed, told live: the outbox through each subscriber's own lens.
//!
//! A cursor is opaque on purpose. Numbers of changes are dense, so a gap between two of them
//! would tell a subscriber how much happens that it may not see.

use std::collections::VecDeque;

use futures::stream::{self, BoxStream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use yore_canon::encode::{base64url, from_base64url};
use yore_canon::hash::hmac_sha256;
use yore_domain::change::{Change, What};
use yore_domain::class::Surface;
use yore_domain::grant::{Verb, Verbs};
use yore_domain::memory::{Cause, Status};
use yore_domain::profile::Profile;
use yore_domain::{Error, Result, Seq, Timestamp};
use yore_policy::Need;
use yore_store::Snapshot;

use crate::call::Call;
use crate::engine::Engine;
use crate::run::{Session, Trace};
use crate::token::{self, Shape};

/// How many changes are read at once.
const BATCH: usize = 256;
/// Bytes of a cursor that prove it is ours.
const PROOF: usize = 12;

/// A change as a subscriber is told of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Where to go on after it.
    pub cursor: String,
    /// What changed.
    pub change: What,
    /// When.
    pub at: Timestamp,
}

/// A live subscription.
struct Feed {
    engine: Engine,
    call: Call,
    after: Seq,
    last: watch::Receiver<Seq>,
    ready: VecDeque<Event>,
    ended: bool,
}

impl Engine {
    /// Tells every change the caller may know of, after a place or from now on. The caller is
    /// looked up again for every change, so a revoked grant ends the stream.
    pub async fn subscribe(
        &self,
        call: &Call,
        after: Option<Seq>,
    ) -> Result<BoxStream<'static, Result<Event>>> {
        let session = self.enter(call, need()).await?;
        let watched = self.store().watch(&session.permit).await;
        let resumed = after.is_some();
        let watched = watched.map(|last| (last, Trace::default().with("resumed", resumed)));
        let last = self.leave(call, &session, watched).await?;
        let after = after.unwrap_or_else(|| *last.borrow());
        let feed = Feed {
            engine: self.clone(),
            call: call.clone(),
            after,
            last,
            ready: VecDeque::new(),
            ended: false,
        };
        Ok(Box::pin(stream::unfold(feed, |mut feed| async move {
            feed.next().await.map(|event| (event, feed))
        })))
    }

    /// Returns the number of the newest change, to the owner: it tells how much happens.
    pub async fn last_change(&self, call: &Call) -> Result<Seq> {
        let session = self.enter_again(call, need()).await?;
        if !session.is_owner() {
            return Err(Error::forbidden("only the owner learns how much happens"));
        }
        let last = self.store().watch(&session.permit).await?;
        let newest = *last.borrow();
        Ok(newest)
    }

    /// Returns a call that was believed once, to be made again. A proof of the master key lives
    /// a minute and cannot be revoked, so it is made anew; everything else is looked up again.
    pub(crate) fn renewed(&self, call: &Call) -> Call {
        let mut call = call.clone();
        let bearer = call.credentials.bearer.as_ref().map(token::shape);
        if let Some(Ok(Shape::Proof(_))) = bearer {
            let fresh = token::proof(&self.0.parts.local_key, self.now());
            call.credentials.bearer = Some(fresh);
        }
        call
    }

    /// Returns the place a cursor stands for.
    pub fn seq_at(&self, cursor: &str) -> Result<Seq> {
        let wrong = || Error::invalid("cursor", "is not one of ours");
        let bytes = from_base64url(cursor).map_err(|_| wrong())?;
        let (hidden, proof) = bytes.split_at_checked(8).ok_or_else(wrong)?;
        let hidden: [u8; 8] = hidden.try_into().map_err(|_| wrong())?;
        if proof != self.proof(&hidden) {
            return Err(wrong());
        }
        Ok(Seq(self.turned(u64::from_be_bytes(hidden), [3, 2, 1, 0])))
    }

    pub(crate) fn cursor(&self, seq: Seq) -> String {
        let hidden = self.turned(seq.0, [0, 1, 2, 3]).to_be_bytes();
        base64url(&[&hidden[..], &self.proof(&hidden)].concat())
    }

    fn proof(&self, hidden: &[u8; 8]) -> Vec<u8> {
        let said = [&b"cursor proof"[..], hidden].concat();
        hmac_sha256(&*self.0.parts.local_key, &said)[..PROOF].to_vec()
    }

    /// A keyed permutation of numbers (a Feistel network): rounds in reverse order undo it.
    fn turned(&self, number: u64, rounds: [u8; 4]) -> u64 {
        let round = |number: u8, half: u32| {
            let said = [&b"cursor"[..], &[number], &half.to_be_bytes()].concat();
            let mac = hmac_sha256(&*self.0.parts.local_key, &said);
            u32::from_be_bytes([mac[0], mac[1], mac[2], mac[3]])
        };
        let (mut left, mut right) = ((number >> 32) as u32, number as u32);
        for number in rounds {
            (left, right) = (right, left ^ round(number, right));
        }
        // The halves are swapped once more, so that both directions run the same way.
        u64::from(right) << 32 | u64::from(left)
    }
}

fn need() -> Need {
    Need::of("subscribe", Verbs::of(&[Verb::Read]), Surface::Stream)
}

impl Feed {
    async fn next(&mut self) -> Option<Result<Event>> {
        loop {
            if self.ended {
                return None;
            }
            if let Some(event) = self.ready.pop_front() {
                // What waited here was allowed when it was read; it may no longer be.
                return Some(match self.enter().await {
                    Ok(_) => Ok(event),
                    Err(error) => self.end(error),
                });
            }
            let current = *self.last.borrow_and_update();
            if current <= self.after {
                if self.last.changed().await.is_err() {
                    return None;
                }
                continue;
            }
            if let Err(error) = self.fill().await {
                return Some(self.end(error));
            }
        }
    }

    /// Looks the caller up again, at no cost: what happens unseen must not be told by a budget.
    async fn enter(&self) -> Result<Session> {
        self.engine.enter_again(&self.engine.renewed(&self.call), need()).await
    }

    fn end(&mut self, error: Error) -> Result<Event> {
        self.ended = true;
        Err(error)
    }

    async fn fill(&mut self) -> Result<()> {
        let session = self.enter().await?;
        let snapshot = self.engine.store().snapshot(&session.permit).await?;
        let changes = snapshot.changes(self.after, BATCH).await?;
        if changes.is_empty() {
            self.after = *self.last.borrow();
        }
        for change in changes {
            self.after = change.seq;
            let cursor = self.engine.cursor(change.seq);
            let at = change.at;
            if let Some(change) = told(&session, &*snapshot, change).await? {
                self.ready.push_back(Event { cursor, change, at });
            }
        }
        Ok(())
    }
}

/// What a subscriber is told of a change, if anything.
pub(crate) async fn told(
    session: &Session,
    snapshot: &dyn Snapshot,
    change: Change,
) -> Result<Option<What>> {
    let lens = session.permit.lens();
    let what = change.what;
    if let What::Hold { hold } = &what {
        // An agent is told of what it asked for itself.
        return Ok(snapshot.hold(*hold).await?.map(|_| what));
    }
    if let What::Profile { .. } = &what {
        return Ok(lens.sees(&Profile::class()).then_some(what));
    }
    let Some(class) = what.class() else {
        return Ok(session.is_owner().then_some(what));
    };
    let sees = lens.sees(class);
    Ok(match what {
        What::Memory { memory, head, status, cause, class, was } if sees => {
            let was = was.filter(|was| lens.sees(was));
            Some(What::Memory { memory, head, status, cause, class, was })
        }
        // It left the subscriber's sight: to them it is gone, and where it went is not told.
        What::Memory { memory, head, was: Some(was), .. } if lens.sees(&was) => {
            Some(What::Memory {
                memory,
                head,
                status: Status::Tombstoned,
                cause: Cause::Relabelled,
                class: was,
                was: None,
            })
        }
        what @ (What::Memory { .. }
        | What::Erased { .. }
        | What::Conversation { .. }
        | What::Message { .. }
        | What::ConversationErased { .. }
        | What::Profile { .. }
        | What::Hold { .. }
        | What::Grant { .. }
        | What::Job { .. }) => sees.then_some(what),
    })
}

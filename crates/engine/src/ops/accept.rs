//! Taking in a message of another agent, once and durably.
//!
//! The protocol checks the form and the signature; here it is decided whether the credential
//! speaks for the sender, whether the message came before, and whom it reaches. Everything that
//! follows from taking it in is one commit.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use yore_domain::audit::Outcome;
use yore_domain::class::Surface;
use yore_domain::grant::Verbs;
use yore_domain::stream::{Letter, LetterState, Pending, Stream, StreamState};
use yore_domain::{Error, Result, Span, Timestamp, VaultId};
use yore_policy::Need;
use yore_store::{Precondition, Snapshot, Write};

use super::inbox::{LOOKED_AT, put_aside};
use super::peers::{Peer, peers, speaking};
use super::transcript::{Speaker, Spoken, added, record};
use crate::call::Call;
use crate::engine::Engine;
use crate::run::{Act, Attempt, Planned, Session, Trace};

/// How long it is remembered that a message came.
const REMEMBERED: Span = Span::days(7);
/// How long the frames of a stream are kept after its end.
const KEPT: Span = Span::days(1);
/// How often what has had its time is cleared away, when messages come.
const SWEEP: Span = Span::seconds(600);
/// Letters that wait in one inbox, and those of one sender among them.
const INBOX: u64 = 1000;
const SENDER: u64 = 100;

/// A message whose form and signature hold.
#[derive(Clone, Debug, Serialize)]
pub struct Incoming {
    /// The DID that signed it.
    pub sender: String,
    /// Its id, in one spelling.
    pub id: String,
    /// The digest of what was signed.
    pub digest: String,
    /// When it says it was written.
    pub sent: Timestamp,
    /// How far that may lie from now.
    pub tolerance: Span,
    /// Whom it is for.
    pub to: Vec<String>,
    /// The message it answers.
    pub reply_to: Option<String>,
    /// Messages it rests on, with their digests.
    pub context: Vec<(String, String)>,
    /// The stream it opens.
    pub opens: Option<Opening>,
    /// Whether something is still to be done once it is taken in.
    pub unsettled: bool,
    /// When it lapses in an inbox.
    pub expires: Timestamp,
    /// Its exact bytes, for inboxes.
    pub bytes: Vec<u8>,
    /// What the transcript keeps of it, when it is worth keeping.
    pub said: Option<Spoken>,
}

/// A stream that a message opens.
#[derive(Clone, Debug, Serialize)]
pub struct Opening {
    /// Its id.
    pub id: String,
    /// Frames that may be unacknowledged at once.
    pub window: u32,
    /// What its end waits for.
    pub pending: Pending,
}

/// Whether a message is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Acceptance {
    /// It is.
    New,
    /// It came before, and something was left to be done.
    Unsettled,
    /// It came before, and all is done.
    Repeated,
    /// Another message has its id.
    Reused,
    /// It is new, but was written too long ago, or is yet to be written.
    Stale,
}

/// A message that was taken in.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// Whether it is new.
    pub acceptance: Acceptance,
    /// The stream it opened.
    pub stream: Option<String>,
    /// Whether it is for the vault itself, besides the inboxes it was put into.
    pub own: bool,
    /// Leave to work for its sender.
    pub ticket: Ticket,
}

/// Leave to answer a message: only taking one in, or resuming its stream, makes it.
#[derive(Clone, Debug)]
pub struct Ticket {
    pub(crate) vault: VaultId,
    pub(crate) protocol: &'static str,
    pub(crate) sender: String,
    pub(crate) message: String,
}

impl Ticket {
    /// Returns the sender's DID.
    #[must_use]
    pub fn sender(&self) -> &str {
        &self.sender
    }

    /// Returns the message's id.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// When the post of each vault was last cleared away by this process.
#[derive(Debug, Default)]
pub(crate) struct Swept(Mutex<HashMap<VaultId, Timestamp>>);

impl Swept {
    /// Whether it is time again, in which case it counts as done.
    fn is_due(&self, vault: VaultId, now: Timestamp) -> bool {
        let mut swept = self.0.lock();
        let due = swept.get(&vault).is_none_or(|last| last.plus(SWEEP) <= now || now < *last);
        if due {
            swept.insert(vault, now);
        }
        due
    }
}

/// What the plan answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Taken {
    acceptance: Acceptance,
    stream: Option<String>,
    own: bool,
    vault: VaultId,
}

impl Engine {
    /// Takes a message in. It is on disk when this returns, and the same message never counts
    /// twice.
    pub async fn accept(&self, call: &Call, message: Incoming) -> Result<Accepted> {
        let call = Call { operation: None, ..call.clone() };
        let taken = self.act(&call, &message).await?;
        let Taken { acceptance, stream, own, vault } = taken;
        if acceptance == Acceptance::New && message.said.is_some() {
            self.0.budgets.sent(self.settings(), vault, &message.sender, self.now());
        }
        let ticket =
            Ticket { vault, protocol: call.protocol, sender: message.sender, message: message.id };
        Ok(Accepted { acceptance, stream, own, ticket })
    }

    /// Says that all that was to be done for a message is done.
    pub async fn settle_message(&self, ticket: &Ticket) -> Result<()> {
        self.act_alone(ticket.vault, ticket.protocol, &Settle(ticket)).await
    }
}

impl Act for Incoming {
    type Output = Taken;

    fn need(&self) -> Need {
        // Whoever has a credential may write; what the message asks for is judged by itself.
        Need::of("accept", Verbs::NONE, Surface::Retrieval)
    }

    fn plan<'a>(
        &'a self,
        engine: &'a Engine,
        call: &'a Call,
        session: &'a Session,
        snapshot: &'a dyn Snapshot,
        attempt: Attempt,
    ) -> BoxFuture<'a, Result<Planned<Taken>>> {
        Box::pin(async move {
            let peer = speaking(session, snapshot, &self.sender).await?;
            // Letters, streams and transcripts are the vault's own books, hidden from no message.
            let permit = engine.system(session.permit.vault(), "look for a message")?;
            let view = engine.store().snapshot(&permit).await?;
            let fresh = self.is_fresh(session.now);
            // Most messages are new, and the commit finds out: it wants them unsent. So nothing
            // is looked up for them, unless they would be refused: what came before is not.
            if attempt == Attempt::First
                && fresh
                && let Ok(planned) = self.take(engine, call, session, &*view, &peer, attempt).await
            {
                return Ok(planned);
            }
            match view.letter(&self.sender, &self.id).await? {
                Some(known) => Ok(self.known(session, &known)),
                None if fresh => {
                    self.take(engine, call, session, &*view, &peer, Attempt::Again).await
                }
                None => Ok(self.stale(session)),
            }
        })
    }
}

impl Incoming {
    fn known(&self, session: &Session, known: &Letter) -> Planned<Taken> {
        let settled = match known.state {
            LetterState::Queued => Acceptance::Unsettled,
            LetterState::Delivered
            | LetterState::Acknowledged
            | LetterState::Expired
            | LetterState::Bounced => Acceptance::Repeated,
        };
        let same = known.digest == self.digest;
        let acceptance = if same { settled } else { Acceptance::Reused };
        let taken = Taken {
            acceptance,
            stream: known.stream.clone(),
            own: true,
            vault: session.permit.vault(),
        };
        let mut planned = Planned::done(taken, Vec::new()).traced(self.trace());
        if acceptance == Acceptance::Reused {
            planned.outcome = Outcome::Refused { code: "conflict".into() };
            planned.trace = self.trace().with("id_reuse", true);
        }
        planned
    }

    /// Whether it says to have been written about now.
    fn is_fresh(&self, now: Timestamp) -> bool {
        self.sent >= now.minus(self.tolerance) && self.sent <= now.plus(self.tolerance)
    }

    fn stale(&self, session: &Session) -> Planned<Taken> {
        let vault = session.permit.vault();
        let taken = Taken { acceptance: Acceptance::Stale, stream: None, own: false, vault };
        let mut planned = Planned::done(taken, Vec::new()).traced(self.trace());
        planned.outcome = Outcome::Refused { code: "unauthenticated".into() };
        planned
    }

    async fn take(
        &self,
        engine: &Engine,
        call: &Call,
        session: &Session,
        snapshot: &dyn Snapshot,
        peer: &Peer,
        attempt: Attempt,
    ) -> Result<Planned<Taken>> {
        let (now, vault) = (session.now, session.permit.vault());
        // What only moves a stream is not counted.
        if self.said.is_some() {
            engine.0.budgets.may_send(engine.settings(), vault, &self.sender, now)?;
        }
        self.check_context(snapshot).await?;
        let (own, inboxes) = self.recipients(engine, snapshot, vault).await?;
        let thread = self.thread(snapshot).await?;
        let mut writes = self.deliveries(snapshot, &inboxes, &thread, now).await?;
        let mut preconditions = vec![Precondition::Unsent(self.sender.clone(), self.id.clone())];
        let opens = self.opens.as_ref().filter(|_| own);
        if let Some(opening) = opens {
            let Opening { id, window, pending } = opening;
            if snapshot.stream(&self.sender, id).await?.is_some() {
                return Err(Error::invalid("stream_id", "is in use"));
            }
            preconditions.push(Precondition::Stream(self.sender.clone(), id.clone(), None));
            writes.push(Write::Stream(Box::new(Stream {
                sender: self.sender.clone(),
                id: id.clone(),
                state: StreamState::InProgress,
                window: *window,
                next: 0,
                acknowledged: 0,
                request: self.id.clone(),
                pending: pending.clone(),
                revision: 0,
                opened: now,
                updated: now,
            })));
        }
        if let Some(said) = self.said.as_ref().filter(|_| peer.recorded) {
            let speaker = if peer.agent.is_none() { Speaker::Own } else { Speaker::Other };
            // A thread that begins here is new; should it not be, the commit says so.
            let begins = attempt == Attempt::First && thread == self.id;
            let protocol = call.protocol;
            let kept = if begins {
                added(engine, None, vault, protocol, &thread, speaker, said)
            } else {
                record(engine, snapshot, vault, protocol, &thread, speaker, said).await?
            };
            writes.extend(kept.0);
            preconditions.push(kept.1);
        }
        let mut receipt = self.receipt(thread, now);
        if own && self.unsettled {
            receipt.state = LetterState::Queued;
        }
        receipt.stream = opens.map(|opening| opening.id.clone());
        let stream = receipt.stream.clone();
        writes.push(Write::Letter(Box::new(receipt)));
        if engine.0.swept.is_due(vault, now) {
            writes.push(Write::DropStreams(now.minus(KEPT)));
            writes.push(Write::DropLetters(now.minus(REMEMBERED)));
        }
        let taken = Taken { acceptance: Acceptance::New, stream, own, vault };
        let trace = self.trace().with("inboxes", inboxes.len());
        let mut planned = Planned::done(taken, writes).traced(trace);
        planned.preconditions = preconditions;
        Ok(planned)
    }

    fn trace(&self) -> Trace {
        Trace::default().with("message", self.id.clone()).with("sender", self.sender.clone())
    }

    /// What shows that the message came. Its text is not kept here.
    fn receipt(&self, thread: String, now: Timestamp) -> Letter {
        Letter {
            inbox: String::new(),
            sender: self.sender.clone(),
            id: self.id.clone(),
            digest: self.digest.clone(),
            thread,
            stream: None,
            bytes: Vec::new(),
            state: LetterState::Acknowledged,
            received: now,
            expires: now.plus(REMEMBERED),
            delivered: None,
        }
    }

    /// A message that we hold must be the one that is meant.
    async fn check_context(&self, snapshot: &dyn Snapshot) -> Result<()> {
        for (id, digest) in &self.context {
            if let Some(known) = self.earlier(snapshot, id).await?
                && known.digest != *digest
            {
                return Err(Error::invalid("context", "the hash is not that of the message"));
            }
        }
        Ok(())
    }

    /// Finds an earlier message of the sender, or one that was sent to it. What others wrote to
    /// each other is looked for nowhere.
    async fn earlier(&self, snapshot: &dyn Snapshot, id: &str) -> Result<Option<Letter>> {
        let own = snapshot.letter(&self.sender, id).await?;
        if own.is_some() {
            return Ok(own);
        }
        let copy = copy_for(&self.sender, id);
        for other in &self.to {
            let received = snapshot.letter(other, &copy).await?;
            if received.is_some() {
                return Ok(received);
            }
        }
        Ok(None)
    }

    /// The thread of the message it answers, or one of its own.
    async fn thread(&self, snapshot: &dyn Snapshot) -> Result<String> {
        if let Some(id) = &self.reply_to {
            let known = self.earlier(snapshot, id).await?;
            return Ok(known.map_or_else(|| id.clone(), |known| known.thread));
        }
        Ok(self.id.clone())
    }

    /// Whether the vault itself is meant, and whose inboxes are. One stranger refuses all.
    async fn recipients(
        &self,
        engine: &Engine,
        snapshot: &dyn Snapshot,
        vault: VaultId,
    ) -> Result<(bool, Vec<String>)> {
        let server = engine.server_did().await?;
        let permit = engine.system(vault, "name the owner")?;
        let info = engine.keeper().info(&permit).await?.ok_or(Error::NotFound)?;
        let known = peers(snapshot).await?;
        let (mut own, mut inboxes) = (false, Vec::new());
        for did in &self.to {
            if *did == server || *did == info.did {
                own = true;
            } else if known.iter().any(|peer| peer.did == *did) {
                inboxes.push(did.clone());
            } else {
                return Err(Error::NotFound);
            }
        }
        Ok((own, inboxes))
    }

    /// Puts the message into inboxes, unless one of them is full.
    async fn deliveries(
        &self,
        snapshot: &dyn Snapshot,
        inboxes: &[String],
        thread: &str,
        now: Timestamp,
    ) -> Result<Vec<Write>> {
        let mut writes = Vec::new();
        for inbox in inboxes {
            let waiting = snapshot.waiting(inbox).await?;
            let mut all: u64 = waiting.iter().map(|(_, count)| count).sum();
            let mine = waiting.iter().find(|(sender, _)| *sender == self.sender);
            let mut mine = mine.map_or(0, |(_, count)| *count);
            if all >= INBOX || mine >= SENDER {
                // What lapsed counts for nothing; it goes when its place is needed.
                let mut lapsed = snapshot.letters(inbox, LOOKED_AT).await?;
                lapsed.retain(|letter| letter.expires <= now);
                all = all.saturating_sub(lapsed.len() as u64);
                let gone = lapsed.iter().filter(|letter| letter.sender == self.sender).count();
                mine = mine.saturating_sub(gone as u64);
                writes.extend(put_aside(snapshot, lapsed).await?);
            }
            if all >= INBOX || mine >= SENDER {
                return Err(Error::RateLimited { retry_after: Duration::from_secs(60) });
            }
            writes.push(Write::Letter(Box::new(Letter {
                inbox: inbox.clone(),
                id: copy_for(inbox, &self.id),
                bytes: self.bytes.clone(),
                state: LetterState::Queued,
                expires: self.expires.min(now.plus(REMEMBERED)),
                ..self.receipt(thread.to_owned(), now)
            })));
        }
        Ok(writes)
    }
}

/// The id of the copy of a message that lies in an inbox.
pub(crate) fn copy_for(inbox: &str, id: &str) -> String {
    format!("{id} {inbox}")
}

struct Settle<'a>(&'a Ticket);

impl Serialize for Settle<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.message)
    }
}

impl Act for Settle<'_> {
    type Output = ();

    fn need(&self) -> Need {
        Need::of("settle a message", Verbs::NONE, Surface::Retrieval)
    }

    fn plan<'a>(
        &'a self,
        _engine: &'a Engine,
        _call: &'a Call,
        _session: &'a Session,
        snapshot: &'a dyn Snapshot,
        _attempt: Attempt,
    ) -> BoxFuture<'a, Result<Planned<()>>> {
        Box::pin(async move {
            let Ticket { sender, message, .. } = self.0;
            let mut letter = snapshot.letter(sender, message).await?.ok_or(Error::NotFound)?;
            letter.state = LetterState::Acknowledged;
            let trace = Trace::default().with("message", message.clone());
            Ok(Planned::done((), vec![Write::Letter(Box::new(letter))]).traced(trace))
        })
    }
}

//! Inboxes of registered agents: letters wait, are handed out until they are acknowledged, and
//! lapse.

use std::collections::BTreeMap;

use serde::Serialize;
use yore_domain::class::Surface;
use yore_domain::grant::{Verb, Verbs};
use yore_domain::stream::{Letter, LetterState};
use yore_domain::{Error, Result, Span, Timestamp};
use yore_policy::Need;
use yore_store::{Snapshot, Write};

use super::accept::copy_for;
use super::peers::{peers, speaking};
use super::transcript::{Speaker, Spoken, record};
use crate::call::Call;
use crate::engine::Engine;
use crate::run::{Planned, Trace};

/// How long a letter that was handed out stays out before it is handed out again.
const AGAIN: Span = Span::seconds(30);
/// Letters that are looked through.
pub(super) const LOOKED_AT: usize = 1000;
/// Letters that lapsed and are kept aside until their sender is told.
const ASIDE: u64 = 100;
/// How long a letter of the server's own waits.
const LIFE: Span = Span::days(7);

/// A letter that the server itself wrote.
#[derive(Clone, Debug, Serialize)]
pub struct Putting {
    /// The protocol it is written in.
    pub protocol: &'static str,
    /// Whose inbox.
    pub inbox: String,
    /// The message's id.
    pub id: String,
    /// The digest of the message.
    pub digest: String,
    /// The message.
    pub bytes: Vec<u8>,
    /// What the transcript keeps of it.
    pub said: Spoken,
}

impl Putting {
    fn letter(&self, sender: String, now: Timestamp) -> Letter {
        Letter {
            inbox: self.inbox.clone(),
            sender,
            id: copy_for(&self.inbox, &self.id),
            digest: self.digest.clone(),
            thread: self.id.clone(),
            stream: None,
            bytes: self.bytes.clone(),
            state: LetterState::Queued,
            received: now,
            expires: now.plus(LIFE),
            delivered: None,
        }
    }
}

impl Engine {
    /// Hands out the letters of an inbox, each sender's in order: those that are new, and those
    /// that were not acknowledged in time.
    pub async fn take_letters(
        &self,
        call: &Call,
        inbox: &str,
        limit: usize,
    ) -> Result<Vec<Letter>> {
        let call = Call { operation: None, ..call.clone() };
        let input = (inbox.to_owned(), limit);
        self.change(&call, need("inbox.take"), input, |_, session, snapshot, (inbox, limit)| {
            Box::pin(async move {
                speaking(session, snapshot, inbox).await?;
                let (mut taken, mut writes, mut lapsed) = (Vec::new(), Vec::new(), Vec::new());
                for mut letter in snapshot.letters(inbox, LOOKED_AT).await? {
                    if letter.expires <= session.now {
                        lapsed.push(letter);
                        continue;
                    }
                    let out = letter.delivered.is_some_and(|at| session.now < at.plus(AGAIN));
                    if out || taken.len() == *limit {
                        continue;
                    }
                    letter.state = LetterState::Delivered;
                    letter.delivered = Some(session.now);
                    writes.push(Write::Letter(Box::new(letter.clone())));
                    taken.push(letter);
                }
                writes.extend(put_aside(snapshot, lapsed).await?);
                let trace = Trace::count(taken.len());
                Ok(Planned::done(taken, writes).traced(trace))
            })
        })
        .await
    }

    /// The letters of a sender that lapsed before they were fetched, and of which it was not told.
    pub async fn lapsed_letters(&self, call: &Call, sender: &str) -> Result<Vec<Letter>> {
        let input = sender.to_owned();
        self.look(call, need("inbox.lapsed"), input, |_, session, snapshot, sender| {
            Box::pin(async move {
                speaking(session, snapshot, sender).await?;
                let mut lapsed = snapshot.letters(&aside(sender), LOOKED_AT).await?;
                for peer in peers(snapshot).await? {
                    let waiting = snapshot.letters(&peer.did, LOOKED_AT).await?;
                    lapsed.extend(waiting.into_iter().filter(|letter| {
                        letter.sender == *sender && letter.expires <= session.now
                    }));
                }
                let trace = Trace::count(lapsed.len());
                Ok((lapsed, trace))
            })
        })
        .await
    }

    /// Takes a letter that lapsed out of its inbox, and puts what its sender is told of it into
    /// the sender's.
    pub async fn return_letter(&self, call: &Call, lapsed: &Letter, told: Putting) -> Result<()> {
        let call = Call { operation: None, ..call.clone() };
        let input = (lapsed.inbox.clone(), lapsed.id.clone(), told);
        self.change(&call, need("inbox.return"), input, |engine, session, snapshot, input| {
            Box::pin(async move {
                let (inbox, id, told) = input;
                speaking(session, snapshot, &told.inbox).await?;
                let waiting = snapshot.letters(inbox, LOOKED_AT).await?;
                let lapsed = waiting.into_iter().find(|letter| {
                    letter.id == *id && letter.sender == told.inbox && letter.expires <= session.now
                });
                // Somebody else told it meanwhile.
                let Some(mut lapsed) = lapsed else { return Ok(Planned::done((), Vec::new())) };
                lapsed.state = LetterState::Expired;
                lapsed.bytes.clear();
                let notice = told.letter(engine.server_did().await?, session.now);
                let writes = vec![Write::Letter(Box::new(lapsed)), Write::Letter(Box::new(notice))];
                Ok(Planned::done((), writes).traced(Trace::count(1)))
            })
        })
        .await
    }

    /// Puts a letter of the server's own into the inbox of a registered agent, for the owner.
    pub async fn put_letter(&self, call: &Call, put: Putting) -> Result<()> {
        let need = Need::one("inbox.put", Verb::Grant);
        self.change(call, need, put, |engine, session, snapshot, put| {
            Box::pin(async move {
                if !session.is_owner() {
                    return Err(Error::forbidden("only the owner writes in the server's name"));
                }
                if !peers(snapshot).await?.iter().any(|peer| peer.did == put.inbox) {
                    return Err(Error::NotFound);
                }
                let sender = engine.server_did().await?;
                let vault = session.permit.vault();
                let (protocol, thread, speaker) = (put.protocol, &put.id, Speaker::Own);
                let kept = record(engine, snapshot, vault, protocol, thread, speaker, &put.said);
                let (mut writes, precondition) = kept.await?;
                let letter = put.letter(sender, session.now);
                writes.push(Write::Letter(Box::new(letter)));
                let trace = Trace::count(1).with("message", put.id.clone());
                let mut planned = Planned::done((), writes).traced(trace);
                planned.preconditions.push(precondition);
                Ok(planned)
            })
        })
        .await
    }

    /// Lists the letters that wait in an inbox, without handing them out.
    pub async fn letters(&self, call: &Call, inbox: &str, limit: usize) -> Result<Vec<Letter>> {
        let input = (inbox.to_owned(), limit);
        self.look(call, need("inbox.list"), input, |_, session, snapshot, (inbox, limit)| {
            Box::pin(async move {
                // The owner looks into every inbox of the vault, an agent into its own.
                if !session.is_owner() {
                    speaking(session, snapshot, inbox).await?;
                }
                let mut letters = snapshot.letters(inbox, (*limit).min(LOOKED_AT)).await?;
                letters.retain(|letter| letter.expires > session.now);
                let trace = Trace::count(letters.len());
                Ok((letters, trace))
            })
        })
        .await
    }

    /// Acknowledges a letter by the id of its message; says whether one was waiting.
    pub async fn acknowledge_letter(&self, call: &Call, inbox: &str, id: &str) -> Result<bool> {
        let call = Call { operation: None, ..call.clone() };
        let input = (inbox.to_owned(), copy_for(inbox, id));
        self.change(&call, need("inbox.acknowledge"), input, |_, session, snapshot, input| {
            Box::pin(async move {
                let (inbox, id) = input;
                speaking(session, snapshot, inbox).await?;
                let waiting = snapshot.letters(inbox, LOOKED_AT).await?;
                let Some(mut letter) = waiting.into_iter().find(|letter| letter.id == *id) else {
                    return Ok(Planned::done(false, Vec::new()));
                };
                letter.state = LetterState::Acknowledged;
                letter.bytes.clear();
                let trace = Trace::count(1);
                Ok(Planned::done(true, vec![Write::Letter(Box::new(letter))]).traced(trace))
            })
        })
        .await
    }
}

/// Takes letters that lapsed out of their inboxes, where they would stand in the way of others.
/// A sender with an inbox of its own is still to be told, so they are kept aside for it.
pub(super) async fn put_aside(snapshot: &dyn Snapshot, lapsed: Vec<Letter>) -> Result<Vec<Write>> {
    if lapsed.is_empty() {
        return Ok(Vec::new());
    }
    let known = peers(snapshot).await?;
    let (mut counts, mut writes) = (BTreeMap::new(), Vec::new());
    for mut letter in lapsed {
        letter.bytes.clear();
        letter.state = LetterState::Expired;
        if known.iter().any(|peer| peer.did == letter.sender) {
            let place = aside(&letter.sender);
            let count: u64 = match counts.get(&place) {
                Some(count) => *count,
                None => snapshot.waiting(&place).await?.iter().map(|(_, count)| count).sum(),
            };
            // Who never looks is told of so many and no more.
            if count < ASIDE {
                letter.state = LetterState::Queued;
                letter.inbox.clone_from(&place);
                counts.insert(place, count + 1);
            }
        }
        writes.push(Write::Letter(Box::new(letter)));
    }
    Ok(writes)
}

/// Where letters of a sender lie that lapsed and of which it was not told. No DID is spelt so.
fn aside(sender: &str) -> String {
    format!("lapsed {sender}")
}

fn need(operation: &'static str) -> Need {
    Need::of(operation, Verbs::NONE, Surface::Retrieval)
}

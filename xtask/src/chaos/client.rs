//! The clients: they say one fact after the other, each as often as it takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::json;

use super::journal::{Fact, Journal};
use super::random::Random;
use super::tongue::{Answer, Speaker, Tongue, shortened, tool};
use super::wire::{Address, Request};

/// How many messages a conversation gets before the next one is begun.
const TALK: usize = 20;

/// What the clients share with who starts and stops them.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) journal: Journal,
    pub(super) address: Address,
    /// No new fact is begun for now.
    resting: AtomicBool,
    /// No new fact is begun any more.
    closing: AtomicBool,
    /// What is under way is given up.
    closed: AtomicBool,
}

impl Shared {
    /// Lets clients begin nothing while something is looked at, or go on.
    pub(super) fn rest(&self, rests: bool) {
        self.resting.store(rests, Ordering::SeqCst);
    }
}

/// Clients at work; they end with their value.
#[derive(Debug)]
pub(super) struct Clients {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Clients {
    /// Starts a client for each speaker, with the token of each.
    pub(super) fn start(
        shared: &Arc<Shared>,
        speakers: &[(Speaker, String)],
        pace: Duration,
        random: &mut Random,
    ) -> Self {
        shared.closing.store(false, Ordering::SeqCst);
        shared.closed.store(false, Ordering::SeqCst);
        let clients = speakers.iter().map(|(speaker, token)| {
            let (speaker, token) = (speaker.clone(), token.clone());
            let (shared, random) = (Arc::clone(shared), random.fork());
            let mut client =
                Client { speaker, token, shared, random, pace, talk: None, said: 0, looked: 0 };
            std::thread::spawn(move || client.run())
        });
        Self { shared: Arc::clone(shared), threads: clients.collect() }
    }

    /// Lets each client bring to its end what it began, for so long, and waits for all.
    pub(super) fn stop(self, patience: Duration) {
        self.shared.closing.store(true, Ordering::SeqCst);
        let end = Instant::now() + patience;
        while Instant::now() < end && !self.threads.iter().all(JoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        self.shared.closed.store(true, Ordering::SeqCst);
        for client in self.threads.drain(..) {
            if client.join().is_err() {
                self.shared.journal.fault("a client panicked".to_owned());
            }
        }
    }
}

struct Client {
    speaker: Speaker,
    token: String,
    shared: Arc<Shared>,
    random: Random,
    pace: Duration,
    /// The conversation that is open, and how many messages it has.
    talk: Option<(String, usize)>,
    said: usize,
    looked: usize,
}

impl Client {
    fn run(&mut self) {
        while !self.shared.closing.load(Ordering::SeqCst) {
            if !self.shared.resting.load(Ordering::SeqCst) {
                self.say();
                if self.speaker.confined.is_some() {
                    self.look();
                }
            }
            let most = u64::try_from(self.pace.as_millis()).unwrap_or_default();
            std::thread::sleep(self.random.millis(0, 2 * most));
        }
    }

    /// Says something new until it is acknowledged or refused.
    fn say(&mut self) {
        let Speaker { client, confined, .. } = self.speaker;
        let mut fact = Fact::new(client, self.said, confined.is_some(), &mut self.random);
        self.said += 1;
        if self.speaker.tongue == Tongue::Talks {
            fact.talk = Some(self.place());
        }
        let journal = &self.shared.journal;
        let at = journal.begin(fact.clone());
        let mut tries = 0;
        while !self.shared.closed.load(Ordering::SeqCst) {
            tries += 1;
            let sent = self.speaker.write(&fact).send(&self.shared.address.get(), &self.token);
            let answer = sent.map_or(Answer::Again, |reply| {
                let answer = self.speaker.answer(&fact, &reply);
                if answer == Answer::Again {
                    journal.again();
                }
                answer
            });
            match answer {
                Answer::Kept(id) => return journal.acknowledge(at, id),
                // The first try was kept, or this is somebody else's: it is read to know which.
                Answer::Taken if tries > 1 => {
                    let read = self.speaker.read(&fact, &fact.id);
                    if let Ok(reply) = read.send(&self.shared.address.get(), &self.token) {
                        if reply.text.contains(&fact.mark) {
                            return journal.acknowledge(at, fact.id.clone());
                        }
                        if reply.status < 500 {
                            let agent = self.speaker.agent;
                            let text = shortened(&reply.text);
                            journal.fault(format!("{agent}: taken by another: {text}"));
                            return;
                        }
                    }
                }
                Answer::Taken => {
                    journal.fault(format!("{}: a new id is taken", self.speaker.agent));
                    return;
                }
                Answer::Refused(why) => {
                    journal.fault(format!("{}: refused: {why}", self.speaker.agent));
                    return;
                }
                Answer::Again => {}
            }
            std::thread::sleep(self.random.millis(10, 80));
        }
    }

    /// The conversation that the next message belongs to, and whether it is to be begun.
    fn place(&mut self) -> (String, bool) {
        match &mut self.talk {
            Some((talk, count)) if *count < TALK => {
                *count += 1;
                (talk.clone(), false)
            }
            other => {
                let talk = self.random.uuid();
                *other = Some((talk.clone(), 1));
                (talk, true)
            }
        }
    }

    /// Looks through one of the doors for what another client just said.
    fn look(&mut self) {
        let Some(theirs) = self.shared.journal.last_of_others(self.speaker.client) else { return };
        let id = theirs.acknowledged.clone().unwrap_or_default();
        let (name, request) = door(self.looked, self.speaker.agent, &theirs, &id);
        self.looked += 1;
        if let Ok(reply) = request.send(&self.shared.address.get(), &self.token) {
            self.shared.journal.look(name, &format!("{}\n{}", reply.head, reply.text));
        }
    }
}

/// One of the ways to read, by turns. None of them is told the mark that is looked for.
fn door(turn: usize, agent: &str, theirs: &Fact, id: &str) -> (&'static str, Request) {
    let query = &theirs.words;
    let escaped = query.replace(' ', "%20");
    match turn % 9 {
        0 => ("the native list", Request::post("/api/v1/list", &json!({"page": {"limit": 50}}))),
        1 => {
            let recall = json!({"query": query, "limit": 20, "cutoff": "off"});
            ("the native recall", Request::post("/api/v1/recall", &recall))
        }
        2 => {
            let recall = json!({"query": query, "limit": 20});
            ("UMP's recall", Request::post("/ump/recall", &recall))
        }
        3 => {
            let path = format!("/v1/knowledge?user_id=owner&query={escaped}");
            ("OAMP's search", Request::get(path))
        }
        4 => {
            let recall = json!({"agent_id": agent, "query": query, "k": 50});
            ("memorywire's recall", Request::post("/memorywire/v0/recall", &recall))
        }
        5 => ("OMP's search", Request::get(format!("/search?limit=50&q={escaped}"))),
        6 => {
            let talk = theirs.talk.as_ref().map_or(id, |(talk, _)| talk);
            ("OMP's conversations", Request::get(format!("/conversations/{talk}")))
        }
        7 => ("MCP's search", tool("search", &json!({"query": query}), None)),
        _ => {
            let get = json!({"reference": {"memory": id}});
            ("the native get", Request::post("/api/v1/get", &get))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_door_is_told_what_must_not_be_seen() {
        let fact = Fact::new(0, 1, false, &mut Random::new(1));
        let doors: Vec<_> = (0..9).map(|turn| door(turn, "confined", &fact, "id")).collect();
        for (name, request) in &doors {
            assert!(!format!("{request:?}").contains(&fact.mark), "{name}");
        }
        let mut names: Vec<_> = doors.iter().map(|(name, _)| name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 9);
    }
}

//! One vault, its server, eight clients and the checker.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::client::{Clients, Shared};
use super::faults::{Faults, Library};
use super::judge::{Judge, Scene, native};
use super::place::{Manner, Place, Server};
use super::proxy::Proxy;
use super::random::Random;
use super::tongue::{SPEAKERS, Speaker};
use super::{Ground, Outcome};

/// How long a client waits between two facts, on average.
const PACE: Duration = Duration::from_millis(30);
/// How long clients may take to bring to an end what they began.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct World {
    pub(super) place: Place,
    pub(super) manner: Manner,
    pub(super) server: Server,
    pub(super) random: Random,
    /// How many faults there were.
    pub(super) faults: usize,
    pub(super) judge: Judge,
    shared: Arc<Shared>,
    clients: Option<Clients>,
    speakers: Vec<(Speaker, String)>,
    owner: String,
    proxy: Option<Proxy>,
    restarts: Vec<Duration>,
    keep: bool,
}

impl World {
    /// Makes a vault for a scenario, and starts its server.
    pub(super) fn new(ground: &Ground, name: &str) -> Result<Self> {
        let place = Place::new(&ground.yore, ground.dir.join(name))?;
        Self::at(ground, place, Manner::default())
    }

    /// The same with a disk and a clock that can be made bad; or why they cannot.
    pub(super) fn with_faults(
        ground: &Ground,
        name: &str,
    ) -> Result<Result<(Self, Faults), String>> {
        let library = match Library::make(&ground.dir) {
            Ok(library) => library,
            Err(error) => return Ok(Err(format!("{error:#}"))),
        };
        let mut place = Place::new(&ground.yore, ground.dir.join(name))?;
        let faults = Faults::new(&library, &mut place)?;
        let world = Self::at(ground, place, faults.manner())?;
        Ok(Ok((world, faults)))
    }

    /// The same in a place, with a server that is started in a manner.
    pub(super) fn at(ground: &Ground, place: Place, manner: Manner) -> Result<Self> {
        let random = ground.random(&place.name());
        let server = place.serve(&manner)?;
        let owner = server.owner.clone().context("a first start tells the owner's token")?;
        let mut speakers = Vec::new();
        for speaker in SPEAKERS {
            let (labels, most) = match speaker.confined {
                Some(label) => (label, "internal"),
                None => ("any", "restricted"),
            };
            let issue = ["grant", "issue", "--agent", speaker.agent, "--max", most];
            let token = place.ok(&[&issue[..], &["--read", labels, "--write", labels]].concat())?;
            speakers.push((speaker, token));
        }
        let shared = Arc::new(Shared::default());
        shared.address.set(&server.address);
        Ok(Self {
            place,
            manner,
            server,
            random,
            faults: 0,
            judge: Judge::default(),
            shared,
            clients: None,
            speakers,
            owner,
            proxy: None,
            restarts: Vec::new(),
            keep: ground.keep,
        })
    }

    /// Puts a bad network between the clients and the server.
    pub(super) fn behind_proxy(mut self) -> Result<Self> {
        self.proxy = Some(Proxy::start(&mut self.random)?);
        self.lead();
        Ok(self)
    }

    /// How many connections the network broke.
    pub(super) fn broken(&self) -> usize {
        self.proxy.as_ref().map_or(0, Proxy::broken)
    }

    /// Tells the clients where the server is, or where the network begins.
    fn lead(&self) {
        match &self.proxy {
            Some(proxy) => {
                proxy.lead_to(&self.server.address);
                self.shared.address.set(&proxy.address);
            }
            None => self.shared.address.set(&self.server.address),
        }
    }

    /// Lets the clients begin.
    pub(super) fn begin(&mut self) {
        let clients = Clients::start(&self.shared, &self.speakers, PACE, &mut self.random);
        self.clients = Some(clients);
    }

    /// Lets the clients bring to an end what they began.
    pub(super) fn pause(&mut self) {
        if let Some(clients) = self.clients.take() {
            clients.stop(PATIENCE);
        }
    }

    /// Lets it all go on for some milliseconds.
    pub(super) fn live(&mut self, from: u64, to: u64) {
        std::thread::sleep(self.random.millis(from, to));
    }

    pub(super) fn kill(&mut self) -> Result<()> {
        self.faults += 1;
        self.server.kill()
    }

    /// Starts the server again and notes how long that took.
    pub(super) fn start(&mut self) -> Result<()> {
        self.server = self.place.serve(&self.manner)?;
        self.restarts.push(self.server.took);
        self.lead();
        Ok(())
    }

    pub(super) fn kill_and_start(&mut self) -> Result<()> {
        self.kill()?;
        self.start()
    }

    /// Starts the server again and kills it before it can be ready.
    pub(super) fn kill_while_starting(&mut self) -> Result<()> {
        self.faults += 1;
        let life = self.random.millis(1, 250);
        self.place.kill_while_starting(&self.manner, life)
    }

    /// Verifies the chain, and what was acknowledged since the last look.
    pub(super) fn glance(&mut self) -> Result<()> {
        self.look(Judge::glance)
    }

    /// Looks at everything.
    pub(super) fn check(&mut self) -> Result<()> {
        self.look(Judge::whole)
    }

    fn look(&mut self, how: impl FnOnce(&mut Judge, &Scene<'_>) -> Result<()>) -> Result<()> {
        let Self { place, server, owner, speakers, shared, judge, .. } = self;
        let journal = &shared.journal;
        // Nobody waits for the checker but the clients, which would say ever more meanwhile.
        shared.rest(true);
        let done = how(judge, &Scene { place, address: &server.address, owner, speakers, journal });
        shared.rest(false);
        done
    }

    /// Whether the owner is answered.
    pub(super) fn reads(&mut self, when: &str) -> Result<()> {
        let recall = json!({"query": "what lies in the harbour", "limit": 3});
        self.look(|judge, scene| {
            if let Err(error) = native(scene, "recall", &recall) {
                judge.wrong.insert(format!("{when}: {error:#}"));
            }
            Ok(())
        })
    }

    /// Whether writes are acknowledged again.
    pub(super) fn goes_on(&mut self, after: &str) {
        let (before, begun) = (self.acknowledged(), Instant::now());
        while begun.elapsed() < PATIENCE {
            if self.acknowledged() > before {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.judge.wrong.insert(format!("nothing is acknowledged any more after {after}"));
    }

    pub(super) fn acknowledged(&self) -> usize {
        self.shared.journal.acknowledged()
    }

    /// The texts of everything that was ever said.
    pub(super) fn texts(&self) -> Vec<String> {
        self.shared.journal.facts().iter().map(|fact| fact.text()).collect()
    }

    /// The owner's token.
    pub(super) fn owner(&self) -> &str {
        &self.owner
    }

    /// Ends the clients, looks at everything a last time, ends the server, and tells what was found.
    pub(super) fn end(mut self) -> Result<Outcome> {
        self.pause();
        if !self.server.is_running() {
            self.start()?;
        }
        self.check()?;
        self.look(Judge::traces)?;
        let stopped = self.server.stop();
        let Self { judge, shared, faults, mut restarts, .. } = self;
        let journal = &shared.journal;
        let Judge { lost, doubled, mut leaked, mut wrong, .. } = judge;
        leaked.extend(journal.leaks());
        wrong.extend(journal.faults());
        wrong.extend(stopped.err().map(|error| format!("{error:#}")));
        let (facts, (looks, own)) = (journal.facts(), journal.looks());
        // A client that is shown nothing at all proves nothing.
        if own == 0 {
            wrong.insert(format!("the confined client looked {looks} times and saw nothing"));
        }
        restarts.sort();
        let acknowledged = facts.iter().filter(|fact| fact.acknowledged.is_some()).count();
        ensure!(acknowledged > 0, "nothing was ever acknowledged");
        let outcome = Outcome {
            faults,
            acknowledged,
            unanswered: facts.len() - acknowledged,
            asked_again: journal.retries(),
            looks,
            lost: lost.into_iter().collect(),
            doubled: doubled.into_iter().collect(),
            leaked: leaked.into_iter().collect(),
            wrong: wrong.into_iter().collect(),
            restarts,
        };
        if !self.keep && outcome.is_good() {
            self.place.remove()?;
        }
        Ok(outcome)
    }
}

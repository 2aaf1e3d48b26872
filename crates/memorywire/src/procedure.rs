//! Moving the state machines that procedural memories carry.
//!
//! A move is a new version of the memory, whose text is the machine where it stands now. So
//! where it stands is durable, audited, governed by the same rules and seen by the same callers
//! as anything else that is remembered, and what moved it before is its history.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use yore_domain::grant::Verb;
use yore_domain::kind::Kind;
use yore_domain::memory::{Body, Foreign, Memory, Version};
use yore_domain::mutation::{Mutation, Patch};
use yore_domain::procedure::Machine;
use yore_domain::{Error, MemoryId, Result, limits};
use yore_engine::{Call, Chain, Purpose, Wish};

use crate::filter::Narrowed;
use crate::operations::{Outcome, answer, outcome};
use crate::rows::Whose;
use crate::wire::{Object, Type, names, read};
use crate::{Memorywire, NAME, map};

/// The member under which a version keeps the move that made it.
pub(crate) const MOVE: &str = "yore_move";
/// How often a move is tried on a machine that moved meanwhile.
const ATTEMPTS: usize = 3;
/// The most triggers of one replay.
const TRIGGERS: usize = 1000;

/// Booleans that the caller vouches for; those it does not name are false.
type Guards = BTreeMap<String, bool>;

/// What is asked of a machine.
#[derive(Debug, Deserialize)]
struct Asked {
    agent_id: String,
    #[serde(default)]
    user_id: Option<String>,
    /// The memory's id or the machine's name.
    #[serde(default)]
    procedure: String,
    #[serde(default)]
    trigger: Option<String>,
    #[serde(default)]
    guards: Guards,
    #[serde(default)]
    triggers: Option<Vec<String>>,
}

/// Where a machine stands.
#[derive(Debug, Serialize)]
struct Stands {
    id: String,
    name: String,
    current: String,
    available: Vec<String>,
}

/// A machine as a whole.
#[derive(Debug, Serialize)]
struct Shown {
    #[serde(flatten)]
    stands: Stands,
    machine: Machine,
}

/// The machines of an agent.
#[derive(Debug, Serialize)]
struct Listed {
    procedures: Vec<Stands>,
}

/// What became of a trigger.
#[derive(Debug, Serialize)]
struct Moved {
    #[serde(flatten)]
    stands: Stands,
    from: String,
    pending_approval: bool,
    approval_url: Option<String>,
}

/// Where a machine stands after a replay, which moves nothing.
#[derive(Debug, Serialize)]
struct Replayed {
    #[serde(flatten)]
    stands: Stands,
    triggers: Vec<String>,
}

/// What moved a machine.
#[derive(Debug, Serialize)]
struct Told {
    id: String,
    name: String,
    steps: Vec<Step>,
}

/// One move.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Step {
    /// The version it made: others carry it on.
    number: u32,
    trigger: String,
    from: String,
    to: String,
    /// Milliseconds since 1970.
    at: i64,
    agent_id: String,
    #[serde(default)]
    guards: Guards,
}

impl Stands {
    fn of(memory: MemoryId, machine: &Machine) -> Self {
        Self {
            id: map::id(memory),
            name: machine.name.clone(),
            current: machine.state().to_owned(),
            available: machine.available().into_iter().map(str::to_owned).collect(),
        }
    }
}

impl Memorywire {
    /// Answers a question about a machine, or moves it.
    pub(crate) async fn procedure(&self, call: &Call, name: &str, input: Object) -> Result<Value> {
        let asked: Asked = read(input)?;
        names(&asked.agent_id, asked.user_id.as_deref())?;
        self.speaker(call, &asked.agent_id, Verb::Read).await?;
        match name {
            "list" => answer(Listed { procedures: self.machines(call, &asked).await? }),
            "show" => {
                let (chain, machine) = self.machine(call, &asked, Purpose::Reading).await?;
                answer(Shown { stands: Stands::of(chain.asked.memory, &machine), machine })
            }
            "available" => {
                let (chain, machine) = self.machine(call, &asked, Purpose::Reading).await?;
                answer(Stands::of(chain.asked.memory, &machine))
            }
            "history" => {
                let (chain, machine) = self.machine(call, &asked, Purpose::Reading).await?;
                let id = map::id(chain.asked.memory);
                answer(Told { id, name: machine.name, steps: steps(&chain) })
            }
            "replay" => {
                let (chain, machine) = self.machine(call, &asked, Purpose::Reading).await?;
                answer(replayed(&chain, &machine, asked.triggers)?)
            }
            "trigger" => answer(self.trigger(call, &asked).await?),
            _ => Err(Error::NotFound),
        }
    }

    async fn trigger(&self, call: &Call, asked: &Asked) -> Result<Moved> {
        let trigger = asked.trigger.as_deref();
        let trigger = trigger.ok_or_else(|| Error::invalid("trigger", "is required"))?;
        if let Some(before) = self.before(call, "revise").await? {
            let (chain, machine) = self.machine(call, asked, Purpose::Change("revise")).await?;
            return Ok(self.moved(&chain.asked, &machine, None, &before));
        }
        let mut attempt = 0;
        loop {
            let (chain, machine) = self.machine(call, asked, Purpose::Change("revise")).await?;
            let head = &chain.asked;
            let next = machine.trigger(trigger, &asked.guards)?;
            let step = Step {
                number: head.number + 1,
                trigger: trigger.to_owned(),
                from: machine.state().to_owned(),
                to: next.state().to_owned(),
                at: self.engine.now().millis(),
                agent_id: asked.agent_id.clone(),
                guards: asked.guards.clone(),
            };
            let revise = Mutation::Revise {
                memory: head.memory,
                patch: Box::new(patch(head, &next, &step)?),
                expected: Some(head.number),
            };
            attempt += 1;
            match outcome(self.engine.mutate(call, revise, Wish::default()).await) {
                Ok(done @ Outcome::Done(_)) => {
                    return Ok(self.moved(head, &next, Some(step.from), &done));
                }
                Ok(waits @ Outcome::Waits(_)) => {
                    return Ok(self.moved(head, &machine, Some(step.from), &waits));
                }
                Err(Error::Conflict { .. }) if attempt < ATTEMPTS => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn moved(
        &self,
        head: &Version,
        machine: &Machine,
        from: Option<String>,
        done: &Outcome,
    ) -> Moved {
        let hold = match done {
            Outcome::Done(_) => None,
            Outcome::Waits(hold) => Some(*hold),
        };
        let from = from.or_else(|| last(head).map(|step| step.from));
        Moved {
            from: from.unwrap_or_else(|| machine.initial.clone()),
            stands: Stands::of(head.memory, machine),
            pending_approval: hold.is_some(),
            approval_url: hold.map(|hold| self.approval_url(hold)),
        }
    }

    /// Finds a machine by the id of its memory or by its own name.
    async fn machine(
        &self,
        call: &Call,
        asked: &Asked,
        purpose: Purpose,
    ) -> Result<(Chain, Machine)> {
        let whose = Whose { agent: &asked.agent_id, user: asked.user_id.as_deref(), purpose };
        let found = match self.found(call, whose, &asked.procedure).await? {
            Some(found) => found,
            None => {
                let id = self.machine_named(call, whose, &asked.procedure).await?;
                self.found(call, whose, &map::id(id)).await?.ok_or(Error::NotFound)?
            }
        };
        let content = &found.asked.content;
        if content.kind != Kind::Procedural {
            return Err(Error::NotFound);
        }
        let machine = machine(&content.body.text).map_err(|_| Error::NotFound)?;
        Ok((found, machine))
    }

    async fn machines(&self, call: &Call, asked: &Asked) -> Result<Vec<Stands>> {
        let user = asked.user_id.as_deref();
        let whose = Whose { agent: &asked.agent_id, user, purpose: Purpose::Reading };
        let narrowed = Narrowed::of(whose.agent, whose.user).types(&[Type::Procedural]);
        let stands = |memory: &Memory| {
            let machine = machine(&memory.head.content.body.text).ok()?;
            Some(Stands::of(memory.head.memory, &machine))
        };
        let mut machines = self.each(call, whose, &narrowed, stands).await?;
        machines.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(machines)
    }

    async fn machine_named(&self, call: &Call, whose: Whose<'_>, name: &str) -> Result<MemoryId> {
        let narrowed = Narrowed::of(whose.agent, whose.user).types(&[Type::Procedural]);
        let called = |memory: &Memory| {
            let machine = machine(&memory.head.content.body.text).ok()?;
            (machine.name == name).then_some(memory.head.memory)
        };
        match self.each(call, whose, &narrowed, called).await?.as_slice() {
            [] => Err(Error::NotFound),
            [one] => Ok(*one),
            [_, _, ..] => Err(Error::conflict("several procedures have this name: use an id")),
        }
    }
}

/// Reads a machine. One that does not say where it starts starts where it stands, or in its first
/// state; one without transitions does not move.
pub(crate) fn machine(text: &str) -> Result<Machine> {
    let Ok(Value::Object(mut members)) = serde_json::from_str(text) else {
        return Machine::parse(text);
    };
    let first = members.get("current").filter(|current| current.is_string());
    let first = first.or_else(|| members.get("states").and_then(|states| states.get(0))).cloned();
    if let (Some(first), None) = (first, members.get("initial")) {
        members.insert("initial".to_owned(), first);
    }
    members.entry("transitions").or_insert_with(|| Value::Array(Vec::new()));
    Machine::parse(&Value::Object(members).to_string())
}

/// The change of a memory whose machine moved; it was made when it was made.
fn patch(head: &Version, machine: &Machine, step: &Step) -> Result<Patch> {
    let text = serde_json::to_string(machine).map_err(Error::internal)?;
    if text.len() > limits::TEXT_BYTES {
        return Err(Error::too_large("procedure", "1 MiB"));
    }
    let kept = head.content.foreign.get(NAME).and_then(Value::as_object);
    let mut kept = kept.cloned().unwrap_or_default();
    kept.insert(MOVE.to_owned(), serde_json::to_value(step).map_err(Error::internal)?);
    Ok(Patch {
        body: Some(Body { text, structured: head.content.body.structured.clone() }),
        created: Some(head.time.created),
        valid_from: Some(head.time.valid_from),
        valid_to: head.time.valid_to,
        foreign: Foreign::from([(NAME.to_owned(), kept.into())]),
        ..Patch::default()
    })
}

/// The move that a version keeps, whichever made it.
fn last(version: &Version) -> Option<Step> {
    let kept = version.content.foreign.get(NAME)?.get(MOVE)?;
    serde_json::from_value(kept.clone()).ok()
}

fn steps(chain: &Chain) -> Vec<Step> {
    let versions = chain.versions.iter();
    versions.filter_map(|one| last(one).filter(|step| step.number == one.number)).collect()
}

/// Starts over and applies triggers, all guards holding, or the moves so far as they were.
fn replayed(chain: &Chain, machine: &Machine, triggers: Option<Vec<String>>) -> Result<Replayed> {
    let (end, triggers) = match triggers {
        Some(triggers) if triggers.len() > TRIGGERS => {
            return Err(Error::too_large("triggers", TRIGGERS));
        }
        Some(triggers) => (machine.replay(&triggers)?, triggers),
        None => {
            let steps = steps(chain);
            let first = steps.first().map(|step| step.from.clone());
            let start = Machine { current: first, ..machine.clone() };
            let moved = |at: Machine, step: &Step| at.trigger(&step.trigger, &step.guards);
            let end = steps.iter().try_fold(start, moved)?;
            (end, steps.into_iter().map(|step| step.trigger).collect())
        }
    };
    Ok(Replayed { stands: Stands::of(chain.asked.memory, &end), triggers })
}

//! Deciding what waits. Approval judges the held operation again and commits it by the same
//! path as any other write; a rejection writes nothing but the decision.

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use yore_domain::audit::Target;
use yore_domain::grant::Verb;
use yore_domain::hold::{Hold, HoldState};
use yore_domain::learned::Word;
use yore_domain::memory::{Draft, Memory};
use yore_domain::mutation::{Depth, Mutation};
use yore_domain::{Error, HoldId, Result};
use yore_policy::Need;
use yore_store::plan::AliasTarget;
use yore_store::{Precondition, Snapshot, Write};

use super::learn::lesson;
use super::many::hold_of;
use super::remember::{said_before, statement};
use super::shown::shown_hold;
use crate::call::Call;
use crate::engine::Engine;
use crate::mutate::{Ground, Mutated, Weighed, Wish, done, epochs, targets};
use crate::run::{Act, Attempt, Planned, Read, Session, Trace};
use crate::stated::stated;

/// A person's decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// Carry it out.
    Approve,
    /// Carry it out with this text instead.
    Edit(Box<Draft>),
    /// Carry this out in its place: a change to, a merge or a forgetting of what is known. Only
    /// the owner may.
    Instead(Box<Mutation>),
    /// Turn it down.
    Reject,
}

/// What a decision led to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reviewed {
    /// The hold as decided.
    pub hold: Hold,
    /// What carrying it out did.
    pub done: Option<Mutated>,
}

#[derive(Debug, Serialize)]
struct Review {
    hold: HoldId,
    decision: Decision,
    note: Option<String>,
}

impl Engine {
    /// Decides a hold. Only its owner may.
    pub async fn review(
        &self,
        call: &Call,
        hold: HoldId,
        decision: Decision,
        note: Option<String>,
    ) -> Result<Reviewed> {
        self.act(call, &Review { hold, decision, note }).await
    }

    /// Lists holds in a state, oldest first.
    pub async fn holds(&self, call: &Call, state: HoldState, limit: usize) -> Result<Vec<Hold>> {
        self.read(call, &Holds { state, limit }).await
    }

    /// Returns one hold.
    pub async fn hold(&self, call: &Call, hold: HoldId) -> Result<Hold> {
        self.read(call, &OneHold(hold)).await
    }
}

impl Act for Review {
    type Output = Reviewed;

    fn need(&self) -> Need {
        Need::one(
            match self.decision {
                Decision::Approve | Decision::Edit(_) | Decision::Instead(_) => "approve",
                Decision::Reject => "reject",
            },
            Verb::Review,
        )
    }

    fn validate(&self) -> Result<()> {
        match &self.decision {
            Decision::Edit(draft) => draft.validate(),
            Decision::Instead(other) => may_replace(other),
            Decision::Approve | Decision::Reject => Ok(()),
        }
    }

    fn plan<'a>(
        &'a self,
        engine: &'a Engine,
        _call: &'a Call,
        session: &'a Session,
        snapshot: &'a dyn Snapshot,
        _attempt: Attempt,
    ) -> BoxFuture<'a, Result<Planned<Reviewed>>> {
        Box::pin(async move {
            let mut hold = snapshot.hold(self.hold).await?.ok_or(Error::NotFound)?;
            let waits = hold.state == HoldState::Pending;
            // What a learned rule decided, a person may decide otherwise.
            if !waits && hold.learned.is_none() {
                return Err(Error::conflict("it has been decided already"));
            }
            let lesson = lesson(session, snapshot, &hold, self.word()).await?;
            hold.decided = Some(session.now);
            hold.decided_by = Some(reviewer(session));
            hold.note.clone_from(&self.note);
            let before = hold.learned.take();
            let mutation = self.mutation(session, &hold)?;
            hold.state = match &self.decision {
                Decision::Reject => HoldState::Rejected,
                Decision::Approve | Decision::Edit(_) | Decision::Instead(_) => HoldState::Approved,
            };
            let mut planned = match mutation {
                None => Planned::done(Reviewed { hold: hold.clone(), done: None }, Vec::new()),
                Some(mutation) => {
                    let whose = match &self.decision {
                        Decision::Instead(_) => Whose::Reviewer,
                        Decision::Reject => Whose::Undone,
                        Decision::Approve | Decision::Edit(_) => Whose::Asker,
                    };
                    carried_out(engine, session, snapshot, &mut hold, &mutation, whose).await?
                }
            };
            if let Some(rule) = before {
                planned.trace = planned.trace.with("instead_of", rule);
            }
            planned.trace = lesson.told(planned.trace);
            planned.writes.push(Write::Hold(Box::new(hold)));
            planned.writes.extend(lesson.writes);
            planned.preconditions.extend(lesson.preconditions);
            if waits {
                planned.preconditions.push(Precondition::Pending(self.hold));
            }
            Ok(planned)
        })
    }
}

impl Review {
    fn word(&self) -> Word {
        match self.decision {
            Decision::Approve => Word::Approve,
            Decision::Edit(_) | Decision::Instead(_) => Word::Edit,
            Decision::Reject => Word::Reject,
        }
    }

    /// What the decision makes happen. Turning down what a learned rule let through takes it
    /// back; what it turned down is carried out like anything else.
    fn mutation(&self, session: &Session, hold: &Hold) -> Result<Option<Mutation>> {
        match (&self.decision, hold.state) {
            (Decision::Reject, HoldState::Approved) => taking_back(hold).map(Some),
            (Decision::Reject, HoldState::Pending | HoldState::Rejected | HoldState::Expired) => {
                Ok(None)
            }
            (Decision::Approve | Decision::Edit(_) | Decision::Instead(_), HoldState::Approved) => {
                Err(Error::conflict("it has been carried out already"))
            }
            (Decision::Approve, HoldState::Pending | HoldState::Rejected | HoldState::Expired) => {
                Ok(Some(hold.mutation.clone()))
            }
            (
                Decision::Instead(other),
                HoldState::Pending | HoldState::Rejected | HoldState::Expired,
            ) => match session.is_owner() {
                true => Ok(Some((**other).clone())),
                false => Err(Error::forbidden("only the owner does something else instead")),
            },
            (
                Decision::Edit(draft),
                HoldState::Pending | HoldState::Rejected | HoldState::Expired,
            ) => Ok(Some(stated(session, None, &edited(hold, draft)?).into_owned())),
        }
    }
}

/// What takes back an operation that a learned rule let through.
fn taking_back(hold: &Hold) -> Result<Mutation> {
    let restored = hold.judged.first().map(|(memory, number)| (*memory, *number));
    match (&hold.mutation, hold.outcome, restored) {
        (Mutation::Remember { .. }, Some(memory), _) => {
            Ok(Mutation::Forget { memories: vec![memory], depth: Depth::Tombstone, reason: None })
        }
        (Mutation::Revise { .. } | Mutation::Forget { .. }, _, Some((memory, number))) => {
            Ok(Mutation::Restore { memory, number })
        }
        (
            Mutation::Remember { .. }
            | Mutation::Revise { .. }
            | Mutation::Forget { .. }
            | Mutation::Relabel { .. }
            | Mutation::Merge { .. }
            | Mutation::Restore { .. }
            | Mutation::Disclose { .. },
            ..,
        ) => Err(Error::conflict("it cannot be taken back")),
    }
}

/// Whether nothing happened to a memory since a learned rule let something happen to it.
fn untouched(hold: &Hold, targets: &[Memory]) -> Result<()> {
    let made = hold.judged.first().map_or(1, |(_, number)| number + 1);
    if targets.iter().all(|target| target.head.number == made) {
        return Ok(());
    }
    Err(Error::conflict("the memory has changed since: forget or undo it, and switch the rule off"))
}

/// Whose operation a decision carries out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// What was asked, in the name of who asked.
    Asker,
    /// What takes back that it was carried out.
    Undone,
    /// What the reviewer does in its place.
    Reviewer,
}

/// Whether a mutation can stand in the place of what waits.
fn may_replace(other: &Mutation) -> Result<()> {
    match other {
        Mutation::Revise { .. }
        | Mutation::Merge { .. }
        | Mutation::Forget { depth: Depth::Tombstone | Depth::Quarantine, .. } => Ok(()),
        Mutation::Remember { .. }
        | Mutation::Relabel { .. }
        | Mutation::Forget { depth: Depth::Erase, .. }
        | Mutation::Restore { .. }
        | Mutation::Disclose { .. } => {
            Err(Error::invalid("decision", "instead, a memory is changed, merged or forgotten"))
        }
    }
}

/// Judges what was decided once more, and plans it.
async fn carried_out(
    engine: &Engine,
    session: &Session,
    snapshot: &dyn Snapshot,
    hold: &mut Hold,
    mutation: &Mutation,
    whose: Whose,
) -> Result<Planned<Reviewed>> {
    let asked = whose == Whose::Asker;
    if asked {
        still_granted(hold, session, snapshot).await?;
    }
    let namespace = hold.agent.as_deref().filter(|_| asked).unwrap_or_default();
    let targets = targets(snapshot, namespace, mutation).await?;
    match whose {
        Whose::Undone => untouched(hold, &targets)?,
        Whose::Asker => unmoved(hold, &targets)?,
        // The person saw what is there now.
        Whose::Reviewer => {}
    }
    let wish = Wish { keep_duplicate: false, ..Wish::default() };
    let ground = Ground {
        engine,
        permit: &session.permit,
        snapshot,
        now: session.now,
        writer: hold.agent.clone().filter(|_| asked),
        targets,
        wish: &wish,
        attempt: Attempt::Again,
    };
    let once = Once::of(&ground, hold, mutation).await?;
    let mutation = once.mutation.as_ref().unwrap_or(mutation);
    let by = reviewer(session);
    let steps = match ground.weigh(mutation, &[], Some(&by)).await? {
        Weighed::Commit(steps) => steps,
        Weighed::Hold(..) => {
            return Err(Error::conflict("an approved operation was held again"));
        }
    };
    let Planned { output, mut writes, mut preconditions, outcome, trace } = done(steps);
    hold.outcome = output.memories.first().map(|head| head.memory);
    preconditions.extend(once.precondition);
    writes.extend(once.name);
    let trace = trace.with("operation", mutation.name()).with("hold", hold.id.to_string());
    preconditions.extend(epochs(snapshot.epochs().await?));
    let output = Reviewed { hold: hold.clone(), done: Some(output) };
    Ok(Planned { output, writes, preconditions, outcome, trace })
}

/// What makes an approved proposal say once what several proposals say.
#[derive(Default)]
struct Once {
    /// What is carried out instead, when a memory says it already.
    mutation: Option<Mutation>,
    /// The proposal's id as a name of that memory.
    name: Option<Write>,
    /// What must still hold otherwise.
    precondition: Option<Precondition>,
}

impl Once {
    async fn of(ground: &Ground<'_>, hold: &Hold, mutation: &Mutation) -> Result<Self> {
        let Mutation::Remember { draft, id: Some(id) } = mutation else {
            return Ok(Self::default());
        };
        let namespace = hold.agent.as_deref().unwrap_or_default();
        if hold.id != hold_of(namespace, *id) {
            return Ok(Self::default());
        }
        let statement = statement(ground, &draft.content);
        let Some(known) = said_before(ground, &draft.content, &statement).await? else {
            return Ok(Self {
                precondition: Some(Precondition::Unsaid(statement)),
                ..Self::default()
            });
        };
        let name = Write::Alias {
            namespace: namespace.to_owned(),
            name: id.to_string(),
            target: AliasTarget::Memory(known.head.memory),
            instead_of: None,
        };
        let mutation = Mutation::Remember { draft: draft.clone(), id: None };
        Ok(Self { mutation: Some(mutation), name: Some(name), precondition: None })
    }
}

fn reviewer(session: &Session) -> String {
    session.permit.principal().agent().unwrap_or("owner").to_owned()
}

fn edited(hold: &Hold, draft: &Draft) -> Result<Mutation> {
    match &hold.mutation {
        Mutation::Remember { id, .. } => {
            Ok(Mutation::Remember { draft: Box::new(draft.clone()), id: *id })
        }
        Mutation::Revise { .. }
        | Mutation::Relabel { .. }
        | Mutation::Forget { .. }
        | Mutation::Merge { .. }
        | Mutation::Restore { .. }
        | Mutation::Disclose { .. } => {
            Err(Error::invalid("decision", "only a held remember can be edited"))
        }
    }
}

/// A grant that was taken back meanwhile no longer carries what it asked for.
async fn still_granted(hold: &Hold, session: &Session, snapshot: &dyn Snapshot) -> Result<()> {
    let Some(id) = hold.grant else { return Ok(()) };
    let revoked = snapshot.setting(&crate::evidence::revocation(id)).await?.is_some();
    let row = snapshot.grant(id).await?;
    if revoked || row.is_some_and(|grant| !grant.holds_at(session.now)) {
        return Err(Error::conflict("the grant it was asked under has ended"));
    }
    Ok(())
}

fn unmoved(hold: &Hold, targets: &[Memory]) -> Result<()> {
    let same = hold.judged.iter().all(|(memory, number)| {
        targets.iter().any(|t| t.head.memory == *memory && t.head.number == *number)
    });
    if same { Ok(()) } else { Err(Error::conflict("what it would change has changed since")) }
}

struct Holds {
    state: HoldState,
    limit: usize,
}

impl Read for Holds {
    type Output = Vec<Hold>;

    fn need(&self) -> Need {
        Need::one("holds", Verb::Read)
    }

    fn read<'a>(
        &'a self,
        _engine: &'a Engine,
        session: &'a Session,
        snapshot: &'a dyn Snapshot,
    ) -> BoxFuture<'a, Result<(Vec<Hold>, Trace)>> {
        Box::pin(async move {
            let mut holds = Vec::new();
            for hold in snapshot.holds(self.state, self.limit.min(1000)).await? {
                holds.push(shown_hold(session, snapshot, hold).await?);
            }
            let mut trace = Trace::default();
            trace.detail.insert("count".into(), holds.len().into());
            Ok((holds, trace))
        })
    }
}

struct OneHold(HoldId);

impl Read for OneHold {
    type Output = Hold;

    fn need(&self) -> Need {
        Need::one("hold", Verb::Read)
    }

    fn read<'a>(
        &'a self,
        _engine: &'a Engine,
        session: &'a Session,
        snapshot: &'a dyn Snapshot,
    ) -> BoxFuture<'a, Result<(Hold, Trace)>> {
        Box::pin(async move {
            let hold = snapshot.hold(self.0).await?.ok_or(Error::NotFound)?;
            let hold = shown_hold(session, snapshot, hold).await?;
            let targets = hold.outcome.map(|memory| Target { memory, number: None, digest: None });
            Ok((hold, Trace { targets: targets.into_iter().collect(), ..Trace::default() }))
        })
    }
}

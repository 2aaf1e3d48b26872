//! Putting before a person what might be worth remembering. Each is asked once, whatever was
//! decided: the hold's id follows from the id the memory would have.

use std::collections::BTreeSet;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use yore_domain::grant::Verb;
use yore_domain::hold::{Hold, Rule};
use yore_domain::memory::{Draft, Status};
use yore_domain::mutation::Mutation;
use yore_domain::{Error, HoldId, MemoryId, Result};
use yore_policy::Need;
use yore_store::{Precondition, Snapshot, Write};

use super::get::memory_named;
use super::many::{Planner, each, hold_of};
use super::remember::{said_before, statement};
use crate::call::Call;
use crate::engine::Engine;
use crate::mutate::{Ground, Weighed, Wish, cites, epochs};
use crate::run::{Act, Attempt, Planned, Session, Trace};
use crate::stated::stated;

/// Proposals of one call.
const PROPOSALS: usize = 500;

/// Something a person may want remembered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Proposal {
    /// The id the memory would have: the same proposal made again has the same one.
    pub id: MemoryId,
    /// What it would say.
    pub draft: Draft,
}

/// What became of proposals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proposed {
    /// Those that wait for a decision now.
    pub held: usize,
    /// Those that were made before, or that the vault says already.
    pub known: usize,
    /// Those that were turned down: id and reason.
    pub rejected: Vec<(String, String)>,
}

#[derive(Debug, Serialize)]
struct Propose {
    proposals: Vec<Proposal>,
}

impl Engine {
    /// Puts proposals before a person, those that were not put before.
    pub async fn propose(&self, call: &Call, proposals: Vec<Proposal>) -> Result<Proposed> {
        self.act(call, &Propose { proposals }).await
    }

    /// Says what would become of proposals. Nothing is written but the audit entry.
    pub async fn weigh_proposals(&self, call: &Call, proposals: Vec<Proposal>) -> Result<Proposed> {
        self.rehearse(call, &Propose { proposals }).await
    }
}

impl Act for Propose {
    type Output = Proposed;

    fn need(&self) -> Need {
        Need::one("propose", Verb::Write)
    }

    fn validate(&self) -> Result<()> {
        if self.proposals.len() > PROPOSALS {
            return Err(Error::too_large("proposals", PROPOSALS));
        }
        Ok(())
    }

    fn plan<'a>(
        &'a self,
        engine: &'a Engine,
        call: &'a Call,
        session: &'a Session,
        snapshot: &'a dyn Snapshot,
        attempt: Attempt,
    ) -> BoxFuture<'a, Result<Planned<Proposed>>> {
        Box::pin(async move {
            let rules = snapshot.rules().await?;
            let wish = Wish { approval: true, ..Wish::default() };
            let mut asking = Asking {
                ground: Ground {
                    engine,
                    permit: &session.permit,
                    snapshot,
                    now: session.now,
                    writer: session.permit.principal().agent().map(str::to_owned),
                    targets: Vec::new(),
                    wish: &wish,
                    attempt,
                },
                call,
                session,
                rules: &rules,
                asked: BTreeSet::new(),
                planned: Planned::done(Proposed::default(), Vec::new()),
            };
            let refused = each(&self.proposals, &mut asking).await?;
            let mut planned = asking.planned;
            planned.output.rejected = refused
                .into_iter()
                .map(|(place, error)| (self.proposals[place].id.to_string(), error.to_string()))
                .collect();
            planned.preconditions.extend(epochs(snapshot.epochs().await?));
            let Proposed { held, known, rejected } = &planned.output;
            planned.trace =
                Trace::count(*held).with("known", *known).with("rejected", rejected.len());
            Ok(planned)
        })
    }
}

/// Proposals being planned.
struct Asking<'a> {
    ground: Ground<'a>,
    call: &'a Call,
    session: &'a Session,
    rules: &'a [Rule],
    asked: BTreeSet<HoldId>,
    planned: Planned<Proposed>,
}

impl Planner<Proposal> for Asking<'_> {
    fn one<'a>(&'a mut self, proposal: &'a Proposal) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.ask(proposal))
    }
}

impl Asking<'_> {
    async fn ask(&mut self, proposal: &Proposal) -> Result<()> {
        // A person who approves it settles it.
        let draft = Box::new(Draft { status: Status::Active, ..proposal.draft.clone() });
        draft.validate()?;
        if !self.session.permit.allows(Verb::Derive) && cites(&draft.content) {
            return Err(Error::forbidden("the grant does not allow 'derive'"));
        }
        let hold = hold_of(self.session.namespace(), proposal.id);
        let mutation = Mutation::Remember { draft, id: Some(proposal.id) };
        let mutation = stated(self.session, None, &mutation);
        if !self.asked.insert(hold) || self.is_known(hold, proposal).await? {
            self.planned.output.known += 1;
            return Ok(());
        }
        match self.ground.weigh(&mutation, self.rules, None).await? {
            Weighed::Commit(_) => Err(Error::internal("a proposal that nobody is asked about")),
            Weighed::Hold(waiting) => {
                let waits = self.ground.hold(self.call, &mutation, *waiting);
                // Whoever proposes wants a person to decide, each time.
                let waits = Hold { id: hold, cluster: None, ..waits };
                self.planned.writes.push(Write::Hold(Box::new(waits)));
                self.planned.preconditions.push(Precondition::Unasked(hold));
                self.planned.output.held += 1;
                Ok(())
            }
        }
    }

    /// Whether it was put before a person, is remembered under its id, or is said by another.
    async fn is_known(&self, hold: HoldId, proposal: &Proposal) -> Result<bool> {
        let snapshot = self.ground.snapshot;
        if snapshot.hold(hold).await?.is_some() {
            return Ok(true);
        }
        let memory = memory_named(self.session, snapshot, proposal.id).await?;
        let buried = snapshot.buried(self.session.namespace(), &proposal.id.to_string()).await?;
        if buried.whole || snapshot.memory(memory).await?.is_some() {
            return Ok(true);
        }
        let content = &proposal.draft.content;
        let said = said_before(&self.ground, content, &statement(&self.ground, content)).await?;
        Ok(said.is_some())
    }
}

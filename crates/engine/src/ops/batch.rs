//! Many changes at once: each is judged by itself, all that may happen are committed together.

use std::collections::BTreeSet;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use yore_domain::class::Surface;
use yore_domain::grant::{Verb, Verbs};
use yore_domain::mutation::Mutation;
use yore_domain::{Error, HoldId, MemoryId, Result};
use yore_policy::Need;
use yore_store::Snapshot;

use super::many::{Planner, each};
use crate::call::Call;
use crate::engine::Engine;
use crate::mutate::{
    Ground, Mutate, Mutated, Weighed, Wish, done, epochs, note_short_term, targets,
};
use crate::run::{Act, Attempt, Planned, Session, Trace};
use crate::stated::stated;

/// Changes of one batch.
pub const BATCH: usize = 500;

/// What became of one change of a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Each {
    /// It happened.
    Done(Mutated),
    /// It waits for a person.
    Held(HoldId),
    /// It was turned down.
    Refused {
        /// The stable code.
        code: String,
        /// What was wrong.
        reason: String,
    },
}

#[derive(Debug, Serialize)]
struct Batch {
    changes: Vec<(Mutation, Wish)>,
    #[serde(skip)]
    dialect: &'static str,
}

impl Engine {
    /// Carries out a batch of changes on behalf of a dialect as an import, and says of each what
    /// became of it. No two may touch the same memory.
    pub async fn mutate_all(
        &self,
        dialect: &'static str,
        call: &Call,
        changes: Vec<(Mutation, Wish)>,
    ) -> Result<Vec<Each>> {
        self.act(call, &Batch { changes, dialect }).await
    }
}

impl Act for Batch {
    type Output = Vec<Each>;

    fn need(&self) -> Need {
        let verbs = Verbs::of(&[Verb::Write]);
        Need::of("import", verbs, Surface::Retrieval)
    }

    fn validate(&self) -> Result<()> {
        if self.changes.len() > BATCH {
            return Err(Error::too_large("changes", BATCH));
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
    ) -> BoxFuture<'a, Result<Planned<Vec<Each>>>> {
        Box::pin(async move {
            let mut planning = Planning {
                engine,
                call,
                session,
                snapshot,
                attempt,
                dialect: self.dialect,
                touched: BTreeSet::new(),
                planned: Planned::done(Vec::new(), Vec::new()),
            };
            let refused = each(&self.changes, &mut planning).await?;
            let mut planned = planning.planned;
            for (place, error) in refused {
                let (code, reason) = (error.code().to_owned(), error.to_string());
                planned.output.insert(place, Each::Refused { code, reason });
            }
            let taken = self.changes.iter().zip(&planned.output);
            let chosen = taken.filter_map(|((mutation, _), each)| match each {
                Each::Done(_) | Each::Held(_) => chosen(mutation),
                Each::Refused { .. } => None,
            });
            engine.note_place(session, chosen.collect()).await?;
            planned.preconditions.extend(epochs(snapshot.epochs().await?));
            let count = |wanted: fn(&Each) -> bool| {
                planned.output.iter().filter(|each| wanted(each)).count()
            };
            let counted = Trace::count(count(|each| matches!(each, Each::Done(_))))
                .with("held", count(|each| matches!(each, Each::Held(_))))
                .with("rejected", count(|each| matches!(each, Each::Refused { .. })));
            planned.trace.detail = counted.detail;
            Ok(planned)
        })
    }

    fn committed(&self, engine: &Engine, session: &Session) {
        for (mutation, _) in &self.changes {
            note_short_term(engine, session, mutation);
        }
    }
}

/// A batch being planned.
struct Planning<'a> {
    engine: &'a Engine,
    call: &'a Call,
    session: &'a Session,
    snapshot: &'a dyn Snapshot,
    attempt: Attempt,
    dialect: &'static str,
    touched: BTreeSet<MemoryId>,
    planned: Planned<Vec<Each>>,
}

impl Planner<(Mutation, Wish)> for Planning<'_> {
    fn one<'a>(&'a mut self, change: &'a (Mutation, Wish)) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let done = self.change(&change.0, &change.1).await?;
            self.planned.output.push(done);
            Ok(())
        })
    }
}

impl Planning<'_> {
    async fn change(&mut self, mutation: &Mutation, wish: &Wish) -> Result<Each> {
        let mutation = &*stated(self.session, Some(self.dialect), mutation);
        let dialect = Some(self.dialect);
        let alone = Mutate { mutation: mutation.clone(), wish: wish.clone(), dialect };
        alone.validate()?;
        let permit = &self.session.permit;
        if let Some(verb) = alone.need().verbs.iter().find(|verb| !permit.allows(*verb)) {
            let reason = format!("the grant does not allow '{}'", verb.as_str());
            return Err(Error::forbidden(reason));
        }
        let mut named = mutation.targets();
        named.extend(chosen(mutation));
        if named.iter().any(|id| !self.touched.insert(*id)) {
            return Err(Error::conflict("the batch touches the memory twice"));
        }
        let ground = Ground {
            engine: self.engine,
            permit,
            snapshot: self.snapshot,
            now: self.session.now,
            writer: permit.principal().agent().map(str::to_owned),
            targets: targets(self.snapshot, self.session.namespace(), mutation).await?,
            wish,
            attempt: self.attempt,
        };
        let rules = self.snapshot.rules().await?;
        match ground.weigh(mutation, &rules, None).await? {
            // What came in bulk always waits for a person: one audit line could not name all the
            // rules that decided.
            Weighed::Hold(waiting) => {
                let hold = ground.hold(self.call, mutation, *waiting);
                let id = hold.id;
                self.planned.writes.extend(ground.held(hold).writes);
                Ok(Each::Held(id))
            }
            Weighed::Commit(steps) => {
                let Planned { output, writes, preconditions, trace, .. } = done(steps);
                self.planned.writes.extend(writes);
                self.planned.preconditions.extend(preconditions);
                self.planned.trace.targets.extend(trace.targets);
                Ok(Each::Done(output))
            }
        }
    }
}

/// The id that the caller chose for a new memory.
pub(crate) fn chosen(mutation: &Mutation) -> Option<MemoryId> {
    match mutation {
        Mutation::Remember { id, .. } => *id,
        Mutation::Revise { .. }
        | Mutation::Relabel { .. }
        | Mutation::Forget { .. }
        | Mutation::Merge { .. }
        | Mutation::Restore { .. }
        | Mutation::Disclose { .. } => None,
    }
}

//! Letting an agent read for a while what a rule keeps from it, and asking for that.

use yore_domain::audit::Outcome;
use yore_domain::hold::{Hold, HoldReason, HoldState};
use yore_domain::mutation::Mutation;
use yore_domain::{Error, HoldId, MemoryId, Result, Span};
use yore_policy::Need;
use yore_store::{CommitError, Plan, Precondition, Write};

use crate::call::Call;
use crate::engine::Engine;
use crate::kept::{Pass, Withheld, passes, passes_of};
use crate::mutate::{Effect, Ground, Mutated, Steps, new_hold};
use crate::run::Trace;

/// For how long an approval lets an agent read.
const READABLE: Span = Span::seconds(3600);
/// Holds of an agent among which an earlier asking is looked for.
const HOLDS: usize = 1000;

/// Notes what the agent may read, and forgets what it no longer may.
pub(crate) async fn steps(ground: &Ground<'_>, rule: &str, agent: &str) -> Result<Steps> {
    let (before, mut passes) = passes(ground.snapshot, agent).await?;
    passes.retain(|pass| ground.now < pass.until);
    passes.push(Pass {
        rule: rule.to_owned(),
        memories: ground.targets.iter().map(|target| target.head.memory).collect(),
        until: ground.now.plus(READABLE),
    });
    let after = serde_json::to_value(passes).map_err(Error::internal)?;
    let name = passes_of(agent);
    Ok(Steps {
        output: Mutated { effect: Effect::Unchanged, memories: Vec::new() },
        writes: vec![Write::Setting(name.clone(), after)],
        preconditions: vec![Precondition::Setting(name, before)],
    })
}

impl Engine {
    /// Asks the owner to let the caller read what rules withheld, and returns the holds in which
    /// that waits. What was asked before and is not decided is not asked again.
    pub(crate) async fn ask_to_read(
        &self,
        call: &Call,
        need: Need,
        withheld: Withheld,
    ) -> Result<Vec<HoldId>> {
        if withheld.is_empty() {
            return Ok(Vec::new());
        }
        let session = self.enter_again(call, need).await?;
        let Some(agent) = session.permit.principal().agent() else { return Ok(Vec::new()) };
        let pending = {
            let snapshot = self.store().snapshot(&session.permit).await?;
            snapshot.holds(HoldState::Pending, HOLDS).await?
        };
        let mut waits = Vec::new();
        for (rule, rows) in withheld {
            if let Some(hold) = pending.iter().find(|hold| asks_for(hold, &rule, &rows)) {
                waits.push(hold.id);
                continue;
            }
            let memories: Vec<MemoryId> = rows.iter().map(|(memory, _)| *memory).collect();
            let disclose = Mutation::Disclose {
                memories: memories.clone(),
                rule: rule.clone(),
                agent: agent.to_owned(),
            };
            let hold = Hold {
                judged: rows,
                agent: Some(agent.to_owned()),
                grant: session.permit.principal().grants().first().map(|grant| grant.id),
                ..new_hold(call, disclose, HoldReason::Rule(rule), session.now)
            };
            let outcome = Outcome::Held { hold: hold.id };
            let trace = Trace::count(memories.len()).touching(memories);
            let actor = session.permit.actor();
            let audit = self.draft(call, actor, need.operation, session.now, outcome, trace);
            waits.push(hold.id);
            let plan = Plan { writes: vec![Write::Hold(Box::new(hold))], ..Plan::of(audit) };
            match self.store().commit(&session.permit, plan).await {
                Ok(_) => {}
                Err(CommitError::Failed(error)) => return Err(error),
                Err(CommitError::Stale(what)) => return Err(Error::internal(what)),
            }
        }
        Ok(waits)
    }
}

/// Whether a hold asks to read all of some rows.
fn asks_for(hold: &Hold, rule: &str, rows: &[(MemoryId, u32)]) -> bool {
    match &hold.mutation {
        Mutation::Disclose { rule: asked, .. } => {
            asked == rule && rows.iter().all(|row| hold.judged.contains(row))
        }
        Mutation::Remember { .. }
        | Mutation::Revise { .. }
        | Mutation::Relabel { .. }
        | Mutation::Forget { .. }
        | Mutation::Merge { .. }
        | Mutation::Restore { .. } => false,
    }
}

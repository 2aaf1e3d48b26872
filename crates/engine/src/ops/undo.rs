//! Taking back what an agent did, as new versions: nothing is lost by it.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use yore_domain::change::What;
use yore_domain::grant::Verb;
use yore_domain::memory::{Status, Version};
use yore_domain::mutation::{Depth, Mutation};
use yore_domain::{Error, MemoryId, Result, Seq, Timestamp};
use yore_policy::Need;
use yore_store::Snapshot;

use super::DryRun;
use crate::call::Call;
use crate::engine::Engine;
use crate::mutate::{Ground, Weighed, Wish, epochs, targets};
use crate::run::{Attempt, Planned, Session, Trace};

/// How many changes are read at once.
const BATCH: usize = 1000;

/// What to take back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Undo {
    /// Whose writes; absent for the owner's wish means everyone's, for an agent's its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// From this time on.
    pub since: Timestamp,
    /// Whether to only say what would happen.
    #[serde(default)]
    pub dry_run: DryRun,
}

/// What was taken back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Undone {
    /// Memories that are as they were before.
    pub reverted: Vec<MemoryId>,
    /// Memories that were left alone, and why.
    pub skipped: Vec<(MemoryId, String)>,
}

/// What bringing a memory back to its earlier state takes.
enum Way {
    Do(Mutation),
    Leave(&'static str),
    Nothing,
}

impl Engine {
    /// Takes back what was written since a time, one new version for each memory.
    pub async fn undo(&self, call: &Call, undo: Undo) -> Result<Undone> {
        let need = Need::one("undo", Verb::Write);
        self.change(call, need, undo, |engine, session, snapshot, undo| {
            Box::pin(plan(engine, session, snapshot, undo))
        })
        .await
    }
}

async fn plan(
    engine: &Engine,
    session: &Session,
    snapshot: &dyn Snapshot,
    undo: &Undo,
) -> Result<Planned<Undone>> {
    let own = session.permit.principal().agent();
    if own.is_some() && undo.agent.as_deref().is_some_and(|agent| Some(agent) != own) {
        return Err(Error::forbidden("an agent takes back only what it did itself"));
    }
    let whose = undo.agent.as_deref().or(own);
    let wish = Wish::default();
    let rules = snapshot.rules().await?;
    let mut planned = Planned::done(Undone::default(), Vec::new());
    for memory in touched(snapshot, undo.since).await? {
        let history = snapshot.history(memory).await?;
        let mutation = match way(&history, whose, undo.since) {
            Way::Nothing => continue,
            Way::Leave(reason) => {
                planned.output.skipped.push((memory, reason.to_owned()));
                continue;
            }
            Way::Do(mutation) => mutation,
        };
        let ground = Ground {
            engine,
            permit: &session.permit,
            snapshot,
            now: session.now,
            writer: own.map(str::to_owned),
            targets: targets(snapshot, "", &mutation).await?,
            wish: &wish,
            attempt: Attempt::Again,
        };
        match ground.weigh(&mutation, &rules, None).await {
            Ok(Weighed::Commit(steps)) => {
                planned.output.reverted.push(memory);
                planned.writes.extend(steps.writes);
                planned.preconditions.extend(steps.preconditions);
            }
            Ok(Weighed::Hold(..)) => {
                planned.output.skipped.push((memory, "a rule asks for approval".to_owned()));
            }
            Err(error @ Error::Internal(_)) => return Err(error),
            Err(error) => planned.output.skipped.push((memory, error.to_string())),
        }
    }
    planned.preconditions.extend(epochs(snapshot.epochs().await?));
    let reverted = planned.output.reverted.clone();
    planned.trace = Trace::count(reverted.len())
        .touching(reverted)
        .with("skipped", planned.output.skipped.len())
        .with("dry_run", undo.dry_run == DryRun::Yes);
    if undo.dry_run == DryRun::Yes {
        planned.writes.clear();
        planned.preconditions.clear();
    }
    Ok(planned)
}

/// Memories that changed since a time, in the order of their first change.
async fn touched(snapshot: &dyn Snapshot, since: Timestamp) -> Result<Vec<MemoryId>> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    let mut after = Seq(0);
    loop {
        let changes = snapshot.changes(after, BATCH).await?;
        let Some(last) = changes.last() else { return Ok(found) };
        after = last.seq;
        for change in changes.iter().filter(|change| change.at >= since) {
            let (What::Memory { memory, .. } | What::Erased { memory, .. }) = &change.what else {
                continue;
            };
            if seen.insert(*memory) {
                found.push(*memory);
            }
        }
    }
}

fn way(history: &[Version], whose: Option<&str>, since: Timestamp) -> Way {
    let theirs = |version: &Version| {
        version.recorded >= since
            && whose.is_none_or(|agent| version.writer.as_deref() == Some(agent))
    };
    let Some(head) = history.last() else { return Way::Nothing };
    if !history.iter().any(theirs) {
        return Way::Nothing;
    }
    if head.status == Status::Erased {
        return Way::Leave("its text is gone for good");
    }
    if !theirs(head) {
        return Way::Leave("it was changed by someone else since");
    }
    let before = history.iter().rev().find(|version| !theirs(version));
    match before {
        Some(before) if before.status.is_live() => {
            Way::Do(Mutation::Restore { memory: head.memory, number: before.number })
        }
        Some(_) | None if head.status.is_live() => Way::Do(Mutation::Forget {
            memories: vec![head.memory],
            depth: Depth::Tombstone,
            reason: Some("undo".to_owned()),
        }),
        Some(_) | None => Way::Nothing,
    }
}

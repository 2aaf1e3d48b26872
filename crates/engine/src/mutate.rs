//! Changing memories: facts, judgement, and the plan that follows from the verdict.

use std::collections::BTreeSet;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use yore_domain::audit::{Outcome, Target};
use yore_domain::class::Surface;
use yore_domain::grant::{Verb, Verbs};
use yore_domain::hold::{Hold, HoldReason, HoldState, Rule};
use yore_domain::memory::{Content, Memory, Relation, Version};
use yore_domain::mutation::{Depth, Mutation};
use yore_domain::provenance::Provenance;
use yore_domain::{Error, HoldId, MemoryId, Result, Span, Timestamp, VersionId};
use yore_policy::{Facts, Need, Permit, Verdict, judge};
use yore_store::snapshot::Epochs;
use yore_store::{Precondition, Snapshot, Write};

use crate::call::Call;
use crate::engine::Engine;
use crate::ops::batch::chosen;
use crate::ops::{self, diff};
use crate::run::{Act, Attempt, Planned, Session, Trace};
use crate::stated::stated;

/// How long a hold waits for a decision.
const HOLD_LIFE: Span = Span::days(30);

/// What the caller wishes besides the change itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Wish {
    /// A person shall approve it first.
    #[serde(default)]
    pub approval: bool,
    /// Names under which the caller will ask for the memory later.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Store it even if exactly this was said before.
    #[serde(default)]
    pub keep_duplicate: bool,
}

/// What a mutation did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// A new memory.
    Created,
    /// The same was known; it was reinforced.
    Merged,
    /// A new version.
    Revised,
    /// Out of recall.
    Tombstoned,
    /// Gone for good.
    Erased,
    /// Nothing had to change.
    Unchanged,
}

/// The answer to a mutation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mutated {
    /// What happened.
    pub effect: Effect,
    /// The memories it happened to, the surviving one first.
    pub memories: Vec<Head>,
}

/// A memory and its head after the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Head {
    /// The memory.
    pub memory: MemoryId,
    /// The head's number.
    pub number: u32,
    /// The head's own id.
    pub version: VersionId,
}

impl Head {
    pub(crate) const fn of(version: &Version) -> Self {
        Self { memory: version.memory, number: version.number, version: version.id }
    }
}

impl Mutated {
    pub(crate) fn one(effect: Effect, version: &Version) -> Self {
        Self { effect, memories: vec![Head::of(version)] }
    }
}

/// A mutation on its way through the pipeline.
#[derive(Debug, Serialize)]
pub(crate) struct Mutate {
    pub(crate) mutation: Mutation,
    pub(crate) wish: Wish,
    /// The dialect that read the request, when one did.
    #[serde(skip)]
    pub(crate) dialect: Option<&'static str>,
}

/// What planning a mutation needs to know.
pub(crate) struct Ground<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) permit: &'a Permit,
    pub(crate) snapshot: &'a dyn Snapshot,
    pub(crate) now: Timestamp,
    /// The agent the change is written down under; absent for the owner.
    pub(crate) writer: Option<String>,
    pub(crate) targets: Vec<Memory>,
    pub(crate) wish: &'a Wish,
    pub(crate) attempt: Attempt,
}

/// The row changes of a mutation.
pub(crate) struct Steps {
    pub(crate) output: Mutated,
    pub(crate) writes: Vec<Write>,
    pub(crate) preconditions: Vec<Precondition>,
}

impl Engine {
    /// Changes memories, or holds the change for a person ([`Error::Held`]). What only a
    /// protocol may state (seals, its own members, ids that follow from what is said) is taken
    /// from nobody but the owner.
    pub async fn mutate(&self, call: &Call, mutation: Mutation, wish: Wish) -> Result<Mutated> {
        self.act(call, &Mutate { mutation, wish, dialect: None }).await
    }

    /// The same on behalf of a dialect, which vouches for what stands under its own name.
    pub async fn mutate_as(
        &self,
        dialect: &'static str,
        call: &Call,
        mutation: Mutation,
        wish: Wish,
    ) -> Result<Mutated> {
        self.act(call, &Mutate { mutation, wish, dialect: Some(dialect) }).await
    }
}

impl Act for Mutate {
    type Output = Mutated;

    fn need(&self) -> Need {
        let mut verbs = vec![Verb::Write];
        match &self.mutation {
            Mutation::Remember { draft, .. } => {
                if cites(&draft.content) {
                    verbs.push(Verb::Derive);
                }
            }
            // Removing for good is a verb of its own: who may only remove may not write.
            Mutation::Forget { depth: Depth::Erase, .. } => verbs = vec![Verb::Erase],
            Mutation::Revise { patch, .. } => {
                let relations = patch.relations.as_deref().unwrap_or_default();
                if rests(relations, patch.provenance.as_ref()) {
                    verbs.push(Verb::Derive);
                }
            }
            Mutation::Merge { .. } => verbs.push(Verb::Derive),
            Mutation::Relabel { .. }
            | Mutation::Forget { depth: Depth::Tombstone | Depth::Quarantine, .. }
            | Mutation::Restore { .. } => {}
        }
        let operation = self.mutation.name();
        Need { operation, verbs: Verbs::of(&verbs), surface: Surface::Retrieval }
    }

    fn validate(&self) -> Result<()> {
        match &self.mutation {
            Mutation::Remember { draft, .. } => draft.validate(),
            Mutation::Forget { memories, .. } if memories.is_empty() => {
                Err(Error::invalid("memories", "must not be empty"))
            }
            Mutation::Merge { canonical, duplicates, .. }
                if duplicates.is_empty() || duplicates.contains(canonical) =>
            {
                Err(Error::invalid(
                    "duplicates",
                    "must name at least one memory other than the canonical one",
                ))
            }
            Mutation::Revise { .. }
            | Mutation::Relabel { .. }
            | Mutation::Forget { .. }
            | Mutation::Merge { .. }
            | Mutation::Restore { .. } => Ok(()),
        }
    }

    fn plan<'a>(
        &'a self,
        engine: &'a Engine,
        call: &'a Call,
        session: &'a Session,
        snapshot: &'a dyn Snapshot,
        attempt: Attempt,
    ) -> BoxFuture<'a, Result<Planned<Mutated>>> {
        Box::pin(async move {
            let mutation = &*stated(session, self.dialect, &self.mutation);
            let ground = Ground {
                engine,
                permit: &session.permit,
                snapshot,
                now: session.now,
                writer: session.permit.principal().agent().map(str::to_owned),
                targets: targets(snapshot, session.namespace(), mutation).await?,
                wish: &self.wish,
                attempt,
            };
            let rules = snapshot.rules().await?;
            let epochs = snapshot.epochs().await?;
            let mut planned = match ground.weigh(mutation, &rules, None).await? {
                Weighed::Commit(steps) => done(steps),
                Weighed::Hold(reason, after) => {
                    let lines = diff::lines(&ground.targets, mutation, after.as_deref());
                    held(&ground, call, mutation, reason, lines)
                }
            };
            engine.note_place(session, chosen(mutation).into_iter().collect()).await?;
            planned.preconditions.push(Precondition::RuleEpoch(epochs.rules));
            if !session.permit.principal().grants().is_empty() {
                planned.preconditions.push(Precondition::GrantEpoch(epochs.grants));
            }
            Ok(planned)
        })
    }
}

/// A judged mutation.
pub(crate) enum Weighed {
    Commit(Steps),
    Hold(HoldReason, Option<Box<Content>>),
}

impl Ground<'_> {
    /// Judges a mutation and, when it may happen, works out its row changes.
    pub(crate) async fn weigh(
        &self,
        mutation: &Mutation,
        rules: &[Rule],
        approved_by: Option<&str>,
    ) -> Result<Weighed> {
        let after = ops::after(self, mutation).await?;
        if let Some(content) = &after {
            content.validate()?;
        }
        let facts = Facts {
            targets: self.targets.iter().collect(),
            after: after.as_ref(),
            rules,
            wants_approval: self.wish.approval,
            approved_by,
        };
        match judge(self.permit, mutation, &facts, self.now) {
            Verdict::Refuse(error) => Err(error),
            Verdict::Hold(reason) => Ok(Weighed::Hold(reason, after.map(Box::new))),
            Verdict::Commit => Ok(Weighed::Commit(ops::steps(self, mutation, after).await?)),
        }
    }

    /// The one target of a mutation that has one.
    pub(crate) fn target(&self) -> Result<&Memory> {
        self.targets.first().ok_or(Error::NotFound)
    }

    /// What must be said of a target so that nobody else moved it meanwhile.
    pub(crate) fn unmoved(&self) -> Vec<Precondition> {
        self.targets
            .iter()
            .map(|target| Precondition::Head(target.head.memory, Some(target.head.number)))
            .collect()
    }
}

/// Loads what a mutation names, once each. What the lens hides is missing; the ids an agent
/// chose are names of its own.
pub(crate) async fn targets(
    snapshot: &dyn Snapshot,
    namespace: &str,
    mutation: &Mutation,
) -> Result<Vec<Memory>> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for id in mutation.targets() {
        let id = ops::get::chosen_memory(namespace, snapshot, id).await?;
        if !seen.insert(id) {
            return Err(Error::invalid("memories", "the same memory is named twice"));
        }
        found.push(snapshot.memory(id).await?.ok_or(Error::NotFound)?);
    }
    Ok(found)
}

pub(crate) fn done(steps: Steps) -> Planned<Mutated> {
    let targets = steps
        .output
        .memories
        .iter()
        .map(|head| Target { memory: head.memory, number: Some(head.number), digest: None })
        .collect();
    let mut planned = Planned::done(steps.output, steps.writes);
    planned.preconditions = steps.preconditions;
    planned.trace = Trace { targets, ..Trace::default() };
    planned
}

/// The plan of an operation that waits.
pub(crate) fn held(
    ground: &Ground<'_>,
    call: &Call,
    mutation: &Mutation,
    reason: HoldReason,
    lines: Vec<yore_domain::hold::DiffLine>,
) -> Planned<Mutated> {
    let principal = ground.permit.principal();
    let hold = Hold {
        id: HoldId::random(),
        mutation: mutation.clone(),
        reason,
        diff: lines,
        judged: ground.targets.iter().map(|t| (t.head.memory, t.head.number)).collect(),
        agent: ground.writer.clone(),
        grant: principal.grants().first().map(|grant| grant.id),
        protocol: call.protocol.to_owned(),
        asked: ground.now,
        expires: Some(ground.now.plus(HOLD_LIFE)),
        state: HoldState::Pending,
        decided_by: None,
        decided: None,
        note: None,
        outcome: None,
    };
    let mut planned = Planned::done(
        Mutated { effect: Effect::Unchanged, memories: Vec::new() },
        vec![Write::Hold(Box::new(hold.clone()))],
    );
    planned.outcome = Outcome::Held { hold: hold.id };
    planned.trace.targets = ground
        .targets
        .iter()
        .map(|t| Target { memory: t.head.memory, number: Some(t.head.number), digest: None })
        .collect();
    planned
}

/// Whether content rests on other memories, which needs its own verb.
pub(crate) fn cites(content: &Content) -> bool {
    rests(&content.relations, Some(&content.provenance))
}

fn rests(relations: &[Relation], provenance: Option<&Provenance>) -> bool {
    relations.iter().any(|relation| relation.kind == "derived_from")
        || provenance.is_some_and(|provenance| {
            provenance.evidence.iter().any(|evidence| is_memory(&evidence.reference))
                || !provenance.messages.is_empty()
        })
}

/// Whether a reference leads into a vault: by an id, or by the address of a resource.
fn is_memory(reference: &str) -> bool {
    let scheme = reference.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("urn" | "yore" | "ump"))
        || reference.parse::<MemoryId>().is_ok()
}

/// Numbers that must not have moved between judging and committing.
pub(crate) fn epochs(found: Epochs) -> Vec<Precondition> {
    vec![Precondition::RuleEpoch(found.rules), Precondition::GrantEpoch(found.grants)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ump_070_every_way_to_name_a_memory_is_a_citation() {
        let uuid = MemoryId::random();
        for cited in [
            "urn:ump:aaaa".to_owned(),
            "URN:ump:aaaa".to_owned(),
            uuid.to_string(),
            format!("yore://memory/{uuid}"),
            "yore://message/x#1".to_owned(),
            "ump://-/urn%3Aump%3Aaaaa".to_owned(),
            "UMP://p/urn:ump:aaaa".to_owned(),
        ] {
            assert!(is_memory(&cited), "{cited}");
        }
        for other in ["", "diary", "https://a.example/urn:ump:a", "file:///a", "note: urn"] {
            assert!(!is_memory(other), "{other}");
        }
    }
}

//! Changing memories: facts, judgement, and the plan that follows from the verdict.

use std::borrow::Cow;
use std::collections::BTreeSet;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use yore_domain::audit::{Outcome, Target};
use yore_domain::class::{Label, Surface};
use yore_domain::grant::{Verb, Verbs};
use yore_domain::hold::{Hold, HoldReason, HoldState, Rule, RuleAction};
use yore_domain::kind::Kind;
use yore_domain::learned::Cluster;
use yore_domain::memory::{Content, Draft, Memory, Relation, Version};
use yore_domain::mutation::{Depth, Mutation};
use yore_domain::provenance::Provenance;
use yore_domain::regulated::{Guardianship, Regulated, erased_at};
use yore_domain::{Error, HoldId, MemoryId, Result, Span, Timestamp, VersionId};
use yore_policy::regulated::protect;
use yore_policy::{Facts, Need, Permit, Unasked, Verdict, careful_labels, judge, learning};
use yore_store::snapshot::Epochs;
use yore_store::{Precondition, Snapshot, Write};

use crate::call::Call;
use crate::engine::Engine;
use crate::ops::batch::chosen;
use crate::ops::consolidate::Window;
use crate::ops::guardian::guardianship;
use crate::ops::{self, diff, learn, retention};
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
    /// It waits because another host says something else, where it waits for approval.
    #[serde(default)]
    pub conflict: bool,
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
            Mutation::Disclose { .. } => verbs.push(Verb::Review),
            Mutation::Relabel { .. }
            | Mutation::Forget { depth: Depth::Tombstone | Depth::Quarantine, .. }
            | Mutation::Restore { .. } => {}
        }
        let operation = self.mutation.name();
        Need::of(operation, Verbs::of(&verbs), Surface::Retrieval)
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
            | Mutation::Restore { .. }
            | Mutation::Disclose { .. } => Ok(()),
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
                Weighed::Hold(waiting) => ground.wait(call, mutation, *waiting).await?,
            };
            engine.note_place(session, chosen(mutation).into_iter().collect()).await?;
            planned.preconditions.push(Precondition::RuleEpoch(epochs.rules));
            if !session.permit.principal().grants().is_empty() {
                planned.preconditions.push(Precondition::GrantEpoch(epochs.grants));
            }
            Ok(planned)
        })
    }

    fn committed(&self, engine: &Engine, session: &Session) {
        note_short_term(engine, session, &self.mutation);
    }
}

/// Counts what came into short-term memory: a window that is full is looked at soon.
pub(crate) fn note_short_term(engine: &Engine, session: &Session, mutation: &Mutation) {
    let settings = &engine.settings().consolidation;
    if let Mutation::Remember { draft, .. } = mutation
        && draft.content.kind == Kind::Working
        && settings.every > Span::ZERO
    {
        let window = Window::of(&draft.content.scope);
        engine.0.work.pushed(session.permit.vault(), window, settings.window);
    }
}

/// A judged mutation.
pub(crate) enum Weighed {
    Commit(Steps),
    Hold(Box<Waiting>),
}

/// A mutation that must wait.
pub(crate) struct Waiting {
    /// Why.
    reason: HoldReason,
    /// What its target would say afterwards.
    after: Option<Box<Content>>,
    /// What it has in common with others.
    cluster: Option<Cluster>,
    /// The learned rule that would decide it.
    learned: Option<Rule>,
}

impl Waiting {
    /// Why it waits.
    pub(crate) const fn reason(&self) -> &HoldReason {
        &self.reason
    }

    /// Something that waits for no more than one reason.
    pub(crate) const fn because(reason: HoldReason) -> Self {
        Self { reason, after: None, cluster: None, learned: None }
    }
}

impl Ground<'_> {
    /// Judges a mutation and, when it may happen, works out its row changes.
    pub(crate) async fn weigh(
        &self,
        mutation: &Mutation,
        rules: &[Rule],
        approved_by: Option<&str>,
    ) -> Result<Weighed> {
        let facts = Facts { rules, approved_by, ..Facts::default() };
        self.weigh_by(mutation, facts).await
    }

    /// The same for what the server does by itself.
    pub(crate) async fn weigh_unasked(
        &self,
        mutation: &Mutation,
        rules: &[Rule],
        unasked: Unasked<'_>,
    ) -> Result<Weighed> {
        let facts = Facts { rules, unasked: Some(unasked), ..Facts::default() };
        self.weigh_by(mutation, facts).await
    }

    /// Judges by what is known about the asking; what is known about the memories is added.
    async fn weigh_by(&self, mutation: &Mutation, asking: Facts<'_>) -> Result<Weighed> {
        let guarded = guardianship(self.snapshot).await?;
        let sources = self.sources(mutation).await?;
        let mutation = &*inheriting(mutation, &sources, &guarded);
        let after = ops::after(self, mutation).await?;
        if let Some(content) = &after {
            content.validate()?;
        }
        let facts = Facts {
            targets: self.targets.iter().collect(),
            after: after.as_ref(),
            wants_approval: self.wish.approval,
            care: self.engine.settings().care,
            guarded,
            gate: self.engine.settings().gate,
            sources: &sources,
            ..asking
        };
        match judge(self.permit, mutation, &facts, self.now) {
            Verdict::Refuse(error) => Err(error),
            Verdict::Hold(reason) => {
                let reason = match (reason, self.targets.first()) {
                    (HoldReason::Requested, Some(target)) if self.wish.conflict => {
                        HoldReason::SyncConflict(target.head.memory)
                    }
                    (reason, _) => reason,
                };
                let cluster = learning::cluster(self.permit, mutation, &facts);
                let name = cluster.as_ref().map(learn::rule_name);
                let learned =
                    name.and_then(|name| learning::decides(facts.rules, &name, mutation, &facts));
                let learned = learned.cloned();
                let after = after.map(Box::new);
                let waiting = Waiting { reason, after, cluster, learned };
                Ok(Weighed::Hold(Box::new(waiting)))
            }
            Verdict::Commit => {
                // Judged is what the caller wrote; the labels are the server's own.
                let after = after.map(|content| self.labelled(&content).into_owned());
                let mutation = match mutation {
                    Mutation::Remember { draft, id } => match self.labelled(&draft.content) {
                        Cow::Borrowed(_) => Cow::Borrowed(mutation),
                        Cow::Owned(content) => {
                            let draft = Box::new(Draft { content, ..(**draft).clone() });
                            Cow::Owned(Mutation::Remember { draft, id: *id })
                        }
                    },
                    Mutation::Revise { .. }
                    | Mutation::Relabel { .. }
                    | Mutation::Forget { .. }
                    | Mutation::Merge { .. }
                    | Mutation::Restore { .. }
                    | Mutation::Disclose { .. } => Cow::Borrowed(mutation),
                };
                let ends = [after.as_ref(), drafted(&mutation)].into_iter().flatten();
                let ends = ends.filter_map(|content| erased_at(&content.foreign)).count() > 0;
                let mut steps = ops::steps(self, &mutation, after).await?;
                if ends {
                    steps.writes.extend(retention::some_end(self.snapshot).await?);
                }
                Ok(Weighed::Commit(steps))
            }
        }
    }

    /// The labels of what a law protects in the conversations that a draft was drawn from.
    async fn sources(&self, mutation: &Mutation) -> Result<Vec<Label>> {
        let mut labels = BTreeSet::new();
        let messages = drafted(mutation).map_or(&[][..], |content| &content.provenance.messages);
        let talks: BTreeSet<_> = messages.iter().map(|message| message.conversation).collect();
        for talk in talks {
            if let Some((head, _)) = self.snapshot.conversation(talk).await? {
                labels.extend(head.class().regulated().cloned());
            }
        }
        Ok(labels.into_iter().collect())
    }

    /// The plan of a mutation that waits, unless a learned rule decides it.
    async fn wait(
        &self,
        call: &Call,
        mutation: &Mutation,
        mut waiting: Waiting,
    ) -> Result<Planned<Mutated>> {
        let learned = waiting.learned.take();
        let hold = self.hold(call, mutation, waiting);
        match learned {
            Some(rule) if learn::threshold(self.snapshot).await?.is_some() => {
                self.settle(mutation, hold, &rule).await
            }
            Some(_) | None => Ok(self.held(hold)),
        }
    }

    /// The plan of a mutation that a learned rule decides. It is carried out as its caller's own,
    /// so that nothing happens that the caller's grant does not allow.
    async fn settle(
        &self,
        mutation: &Mutation,
        mut hold: Hold,
        rule: &Rule,
    ) -> Result<Planned<Mutated>> {
        hold.decided = Some(self.now);
        hold.learned = Some(rule.name.clone());
        let mut planned = match rule.action {
            RuleAction::Allow => {
                let by = format!("rule {}", rule.name);
                let Weighed::Commit(steps) = self.weigh(mutation, &[], Some(&by)).await? else {
                    return Err(Error::conflict("an approved operation was held again"));
                };
                let mut planned = done(steps);
                hold.state = HoldState::Approved;
                hold.outcome = planned.output.memories.first().map(|head| head.memory);
                let id = hold.id.to_string();
                planned.writes.push(Write::Hold(Box::new(hold)));
                planned.trace = planned.trace.with("hold", id);
                planned
            }
            RuleAction::Refuse | RuleAction::Hold => {
                hold.state = HoldState::Rejected;
                self.held(hold)
            }
        };
        planned.trace = planned.trace.with("rule", rule.name.clone());
        Ok(planned)
    }

    /// The hold in which a mutation waits.
    pub(crate) fn hold(&self, call: &Call, mutation: &Mutation, waiting: Waiting) -> Hold {
        let Waiting { reason, after, cluster, learned: _ } = waiting;
        Hold {
            diff: diff::lines(&self.targets, mutation, after.as_deref()),
            judged: self.targets.iter().map(|t| (t.head.memory, t.head.number)).collect(),
            agent: self.writer.clone(),
            grant: self.permit.principal().grants().first().map(|grant| grant.id),
            cluster,
            ..new_hold(call, mutation.clone(), reason, self.now)
        }
    }

    /// The plan of an operation that waits.
    pub(crate) fn held(&self, hold: Hold) -> Planned<Mutated> {
        let id = hold.id;
        let mut planned = Planned::done(
            Mutated { effect: Effect::Unchanged, memories: Vec::new() },
            vec![Write::Hold(Box::new(hold))],
        );
        planned.outcome = Outcome::Held { hold: id };
        planned.trace.targets = self
            .targets
            .iter()
            .map(|t| Target { memory: t.head.memory, number: Some(t.head.number), digest: None })
            .collect();
        planned
    }

    /// Content with the labels of what is found in it.
    pub(crate) fn labelled<'b>(&self, content: &'b Content) -> Cow<'b, Content> {
        let labels = careful_labels(self.engine.settings().care, content);
        if labels.is_empty() {
            return Cow::Borrowed(content);
        }
        let mut content = content.clone();
        content.governance.labels.extend(labels);
        Cow::Owned(content)
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

/// A hold that nobody has decided, of nobody in particular.
pub(crate) fn new_hold(
    call: &Call,
    mutation: Mutation,
    reason: HoldReason,
    now: Timestamp,
) -> Hold {
    Hold {
        id: HoldId::random(),
        mutation,
        reason,
        reasoning: None,
        diff: Vec::new(),
        judged: Vec::new(),
        agent: None,
        grant: None,
        protocol: call.protocol.to_owned(),
        asked: now,
        expires: Some(now.plus(HOLD_LIFE)),
        state: HoldState::Pending,
        decided_by: None,
        decided: None,
        note: None,
        outcome: None,
        cluster: None,
        learned: None,
    }
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

/// What a mutation would say anew.
fn drafted(mutation: &Mutation) -> Option<&Content> {
    match mutation {
        Mutation::Remember { draft, .. } => Some(&draft.content),
        Mutation::Revise { .. }
        | Mutation::Relabel { .. }
        | Mutation::Forget { .. }
        | Mutation::Merge { .. }
        | Mutation::Restore { .. }
        | Mutation::Disclose { .. } => None,
    }
}

/// What is drawn from something that a law protects is protected by it, and so is everything in
/// the vault of a child.
fn inheriting<'a>(
    mutation: &'a Mutation,
    sources: &[Label],
    guarded: &Guardianship,
) -> Cow<'a, Mutation> {
    let child = (guarded.child == Some(true)).then(|| Regulated::Child.label());
    let Mutation::Remember { draft, id } = mutation else { return Cow::Borrowed(mutation) };
    let missing = |label: &&Label| !draft.content.governance.labels.contains(label);
    if sources.iter().chain(&child).filter(missing).count() == 0 {
        return Cow::Borrowed(mutation);
    }
    let mut draft = draft.clone();
    protect(&mut draft.content.governance, sources.iter().chain(&child));
    Cow::Owned(Mutation::Remember { draft, id: *id })
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

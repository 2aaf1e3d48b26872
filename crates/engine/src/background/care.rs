//! Proposals to tidy up: what nobody needs, what speaks against something newer, what is said
//! twice. Each is asked once and waits in the one review queue; nothing happens by itself.

use std::collections::{BTreeMap, BTreeSet};

use yore_domain::class::Class;
use yore_domain::hold::{HoldReason, HoldState};
use yore_domain::kind::Kind;
use yore_domain::memory::Memory;
use yore_domain::mutation::{Depth, MergeStrategy, Mutation};
use yore_domain::query::{Filter, Order, PageRequest};
use yore_domain::{HoldId, MemoryId, Result, Span, Timestamp, VaultId, limits};
use yore_policy::Permit;
use yore_rank::overlap::{Effort, Pair, Stance, pairs, stance, words};
use yore_store::{Precondition, Snapshot, Write};

use super::Left;
use super::duplicates::pair;
use crate::call::Call;
use crate::engine::{Engine, blocking};
use crate::mutate::{Ground, Waiting, Wish};
use crate::ops::many::hold_named;
use crate::ops::vitals::DRIFT;
use crate::run::{Attempt, Trace};

/// What the audit chain and the review queue call it.
const NAME: &str = "co-memorize";
/// The setting that says when the last look found nothing more.
const LOOKED: &str = "co-memorize:looked";
/// How far two looks are apart.
const EVERY: Span = Span::days(1);
/// Proposals that wait at once.
const OPEN: usize = 50;
/// Operations that wait beyond which nothing is added.
const QUEUE: usize = 1000;
/// Memories that one look reads: the newest for what is said twice, the oldest for what is stale.
const LOOK: usize = 20_000;
/// How old something must be before it counts as stale.
const STALE: Span = Span::days(90);
/// How sure it must be not to.
const SURE: f64 = 0.5;
/// How often a use must have gone badly.
const BADLY: u32 = 2;

/// Something to propose.
struct Proposal {
    /// The hold it waits in, which follows from what it is about.
    hold: HoldId,
    mutation: Mutation,
    reason: HoldReason,
    reasoning: String,
    /// The setting by which the search for near-duplicates knows the pair.
    pair: Option<String>,
}

/// A memory as far as words are compared.
struct Said {
    memory: MemoryId,
    created: Timestamp,
    words: BTreeSet<String>,
}

impl Engine {
    /// Looks for what to tidy up, if it is time, and proposes it.
    pub(super) async fn propose_care(&self, vault: VaultId) -> Result<Left> {
        let permit = self.system(vault, NAME)?;
        let snapshot = self.store().snapshot(&permit).await?;
        let looked = snapshot.setting(LOOKED).await?.and_then(|at| at.as_i64());
        let next = looked.map(|at| Timestamp::from_micros(at).plus(EVERY));
        let now = self.now();
        if next.is_some_and(|next| now < next) {
            return Ok(Left::Nothing);
        }
        let (mut writes, preconditions, proposed) = self.cares(&permit, &*snapshot).await?;
        drop(snapshot);
        if proposed == 0 {
            writes.push(Write::Setting(LOOKED.to_owned(), now.micros().into()));
        }
        self.commit_own(&permit, writes, preconditions, Trace::count(proposed)).await
    }

    async fn cares(
        &self,
        permit: &Permit,
        snapshot: &dyn Snapshot,
    ) -> Result<(Vec<Write>, Vec<Precondition>, usize)> {
        let waiting = snapshot.holds(HoldState::Pending, QUEUE).await?;
        let open = waiting.iter().filter(|hold| hold.protocol == NAME).count();
        let room = if waiting.len() < QUEUE { OPEN.saturating_sub(open) } else { 0 };
        let (mut writes, mut preconditions, mut touched) =
            (Vec::new(), Vec::new(), BTreeSet::new());
        let mut proposed = 0;
        if room == 0 {
            return Ok((writes, preconditions, proposed));
        }
        let now = self.now();
        let mut found = unhelpful(snapshot, now).await?;
        found.extend(said_twice(snapshot).await?);
        for proposal in found {
            if proposed == room {
                break;
            }
            let targets = proposal.mutation.targets();
            if targets.iter().any(|memory| touched.contains(memory))
                || was_asked(snapshot, &proposal).await?
            {
                continue;
            }
            let (hold, unmoved) = self.put(permit, snapshot, &proposal).await?;
            if hold.is_empty() {
                continue;
            }
            touched.extend(targets);
            writes.extend(hold);
            preconditions.extend(unmoved);
            proposed += 1;
        }
        Ok((writes, preconditions, proposed))
    }

    /// The rows of a proposal; none when what it is about is gone.
    async fn put(
        &self,
        permit: &Permit,
        snapshot: &dyn Snapshot,
        proposal: &Proposal,
    ) -> Result<(Vec<Write>, Vec<Precondition>)> {
        let mut targets = Vec::new();
        for id in proposal.mutation.targets() {
            let Some(memory) = snapshot.memory(id).await? else { return Ok(Default::default()) };
            targets.push(memory);
        }
        let wish = Wish::default();
        let ground = Ground {
            engine: self,
            permit,
            snapshot,
            now: self.now(),
            writer: None,
            targets,
            wish: &wish,
            attempt: Attempt::Again,
        };
        let waiting = Waiting::because(proposal.reason.clone());
        let mut hold = ground.hold(&Call::anonymous(NAME), &proposal.mutation, waiting);
        hold.id = proposal.hold;
        hold.reasoning = Some(proposal.reasoning.clone());
        let mut writes = ground.held(hold).writes;
        writes.extend(proposal.pair.clone().map(|pair| Write::Setting(pair, true.into())));
        let mut preconditions = ground.unmoved();
        preconditions.push(Precondition::Unasked(proposal.hold));
        Ok((writes, preconditions))
    }
}

/// Whether it was proposed before, here or as a near-duplicate, whatever was decided.
async fn was_asked(snapshot: &dyn Snapshot, proposal: &Proposal) -> Result<bool> {
    if let Some(pair) = &proposal.pair
        && snapshot.setting(pair).await?.is_some()
    {
        return Ok(true);
    }
    Ok(snapshot.hold(proposal.hold).await?.is_some())
}

/// What may be proposed at all: short-term memory has its own way, and a legal hold protects.
fn is_open(memory: &Memory) -> bool {
    !memory.legal_hold && memory.head.content.kind != Kind::Working
}

/// Proposals to forget what was never needed, and what proved wrong.
async fn unhelpful(snapshot: &dyn Snapshot, now: Timestamp) -> Result<Vec<Proposal>> {
    let mut found = Vec::new();
    look(snapshot, Order::OldestFirst, |memory| {
        if let Some(reasoning) = why_unhelpful(memory, now).filter(|_| is_open(memory)) {
            let memory = memory.head.memory;
            found.push(forget(memory, HoldReason::Unhelpful, reasoning));
        }
    })
    .await?;
    Ok(found)
}

fn why_unhelpful(memory: &Memory, now: Timestamp) -> Option<String> {
    let Memory { head, usage, .. } = memory;
    let feedback = usage.feedback;
    if feedback.contradicted >= BADLY && feedback.contradicted > feedback.followed {
        let (wrong, right) = (feedback.contradicted, feedback.followed);
        return Some(format!("{wrong} uses found it wrong, {right} followed it"));
    }
    let sure = head.content.lifecycle.confidence?;
    let made = head.time.created;
    (usage.recalled.is_none() && made < now.minus(STALE) && sure < SURE).then(|| {
        let days = made.days_until(now).floor();
        format!("never recalled since it was made {days} days ago, and only {sure:.2} sure")
    })
}

fn forget(memory: MemoryId, reason: HoldReason, reasoning: String) -> Proposal {
    let mutation = Mutation::Forget {
        memories: vec![memory],
        depth: Depth::Tombstone,
        reason: Some(NAME.to_owned()),
    };
    let hold = hold_named(&format!("{NAME}:forget:{memory}"));
    Proposal { hold, mutation, reason, reasoning, pair: None }
}

/// Proposals about pairs of one class and kind that share most of their words.
async fn said_twice(snapshot: &dyn Snapshot) -> Result<Vec<Proposal>> {
    let mut groups: BTreeMap<(Class, Kind), Vec<Said>> = BTreeMap::new();
    look(snapshot, Order::NewestFirst, |memory| {
        let head = &memory.head;
        // Machines share most of their words, whatever they do.
        if is_open(memory) && head.content.kind != Kind::Procedural {
            groups.entry((head.class(), head.content.kind)).or_default().push(Said {
                memory: head.memory,
                created: head.time.created,
                words: words(&head.content.body.text),
            });
        }
    })
    .await?;
    blocking(move || {
        let mut effort = Effort::USUAL;
        groups.into_values().flat_map(|group| alike(&group, &mut effort)).collect()
    })
    .await
}

fn alike(group: &[Said], effort: &mut Effort) -> Vec<Proposal> {
    let texts: Vec<BTreeSet<String>> = group.iter().map(|said| said.words.clone()).collect();
    let found = pairs(&texts, DRIFT, effort);
    let stances: Vec<Stance> =
        found.iter().map(|pair| stance(&texts[pair.one], &texts[pair.other])).collect();
    // One number against another is a contradiction; many numbers are a series.
    let mut numbered: BTreeMap<usize, usize> = BTreeMap::new();
    let by_number = found.iter().zip(&stances).filter(|(_, stance)| **stance == Stance::Number);
    for (pair, _) in by_number {
        *numbered.entry(pair.one).or_default() += 1;
        *numbered.entry(pair.other).or_default() += 1;
    }
    let alone =
        |pair: &Pair| numbered.get(&pair.one) == Some(&1) && numbered.get(&pair.other) == Some(&1);
    let proposals = found.iter().zip(stances).filter_map(|(pair, stance)| {
        let (one, other) = (&group[pair.one], &group[pair.other]);
        let older_first = (one.created, one.memory) <= (other.created, other.memory);
        let (older, newer) = if older_first { (one, other) } else { (other, one) };
        match stance {
            Stance::Agree => Some(merge(older, newer, pair.share)),
            Stance::Deny => Some(against(older, newer, pair.share, "which denies it")),
            Stance::Number if alone(pair) => {
                Some(against(older, newer, pair.share, "which gives another number"))
            }
            Stance::Number => None,
        }
    });
    proposals.collect()
}

/// Proposes to make two memories one, the older.
fn merge(older: &Said, newer: &Said, share: f64) -> Proposal {
    let pair = pair(older.memory, newer.memory);
    Proposal {
        hold: hold_named(&format!("{NAME}:{pair}")),
        mutation: Mutation::Merge {
            canonical: older.memory,
            duplicates: vec![newer.memory],
            strategy: MergeStrategy::KeepCanonical,
        },
        reason: HoldReason::NearDuplicate(older.memory),
        reasoning: format!("{:.0} % of their words are the same", share * 100.0),
        pair: Some(pair),
    }
}

/// Proposes to forget what a newer memory speaks against.
fn against(older: &Said, newer: &Said, share: f64, how: &str) -> Proposal {
    let pair = pair(older.memory, newer.memory);
    let reasoning =
        format!("{:.0} % of its words are those of a newer memory, {how}", share * 100.0);
    let hold = hold_named(&format!("{NAME}:{pair}"));
    let reason = HoldReason::Contradiction(newer.memory);
    Proposal { hold, pair: Some(pair), ..forget(older.memory, reason, reasoning) }
}

/// Goes through live memories, at most so many.
async fn look(
    snapshot: &dyn Snapshot,
    order: Order,
    mut visit: impl FnMut(&Memory) + Send,
) -> Result<()> {
    let filter = Filter::default();
    let mut page = PageRequest { limit: limits::PAGE, order, ..PageRequest::default() };
    for _ in 0..LOOK.div_ceil(limits::PAGE) {
        let some = snapshot.memories(&filter, &page).await?;
        some.items.iter().for_each(&mut visit);
        match some.next {
            Some(next) => page.after = Some(next),
            None => break,
        }
    }
    Ok(())
}

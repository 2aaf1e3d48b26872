//! Making several memories one. The others are absorbed, not lost.

use yore_domain::memory::{Cause, Content, Memory, Status};
use yore_domain::mutation::MergeStrategy;
use yore_domain::{Result, Timestamp};
use yore_store::Write;
use yore_store::plan::Indexing;

use super::remember::{indexing, statement};
use crate::mutate::{Effect, Ground, Head, Mutated, Steps};

/// What the survivor would say, where that differs from what it says.
pub(crate) fn after(ground: &Ground<'_>, strategy: MergeStrategy) -> Result<Option<Content>> {
    if strategy != MergeStrategy::MergeContent {
        return Ok(None);
    }
    let canonical = ground.target()?;
    let others: Vec<&Memory> =
        ground.targets.iter().filter(|t| t.head.memory != canonical.head.memory).collect();
    let mut content = canonical.head.content.clone();
    unite(&mut content, canonical.head.time.created, &others);
    content.seal = None;
    Ok(Some(content))
}

pub(crate) fn steps(
    ground: &Ground<'_>,
    strategy: MergeStrategy,
    after: Option<Content>,
) -> Result<Steps> {
    let survivor = survivor(ground.target()?, &ground.targets, strategy);
    let others: Vec<&Memory> =
        ground.targets.iter().filter(|t| t.head.memory != survivor.head.memory).collect();
    let mut next = survivor.head.next(Cause::Merged, ground.now, ground.writer.clone());
    next.absorbs = others.iter().map(|other| other.head.memory).collect();
    next.content = after.unwrap_or(next.content);
    let mut memories = vec![Head::of(&next)];
    let statement = statement(ground, &next.content);
    let indexed = Indexing { statement, ..indexing(ground.engine, &next.content) };
    let mut writes = vec![Write::Version { version: Box::new(next), indexing: indexed }];
    for other in others {
        let mut gone = other.head.next(Cause::Absorbed, ground.now, ground.writer.clone());
        gone.status = Status::Tombstoned;
        gone.absorbed_by = Some(survivor.head.memory);
        gone.time.valid_to = gone.time.valid_to.or(Some(ground.now));
        memories.push(Head::of(&gone));
        let indexing = indexing(ground.engine, &gone.content);
        writes.push(Write::Version { version: Box::new(gone), indexing });
    }
    Ok(Steps {
        output: Mutated { effect: Effect::Merged, memories },
        writes,
        preconditions: ground.unmoved(),
    })
}

/// Who stays. The surest does where the strategy says so; on a tie the older.
fn survivor<'a>(
    canonical: &'a Memory,
    targets: &'a [Memory],
    strategy: MergeStrategy,
) -> &'a Memory {
    match strategy {
        MergeStrategy::KeepCanonical | MergeStrategy::MergeContent => canonical,
        MergeStrategy::KeepHighestConfidence => targets
            .iter()
            .max_by(|a, b| {
                let sure = |m: &Memory| m.head.content.lifecycle.confidence.unwrap_or(1.0);
                sure(a).total_cmp(&sure(b)).then(b.since.cmp(&a.since))
            })
            .unwrap_or(canonical),
    }
}

/// Joins texts, the survivor's first, and unites everything else. Where two have the same
/// member, the one made later says what it is; what lasts longest says how long all of it does.
fn unite(content: &mut Content, made: Timestamp, others: &[&Memory]) {
    let mut ordered = others.to_vec();
    ordered.sort_by_key(|other| other.head.time.created);
    let own = content.body.structured.take();
    let mut members: Vec<_> = own.map(|own| (made, own)).into_iter().collect();
    for other in ordered {
        let theirs = &other.head.content;
        content.body.text.push('\n');
        content.body.text.push_str(&theirs.body.text);
        members.extend(theirs.body.structured.clone().map(|own| (other.head.time.created, own)));
        for tag in &theirs.tags {
            if !content.tags.contains(tag) {
                content.tags.push(tag.clone());
            }
        }
        content.provenance.evidence.extend(theirs.provenance.evidence.iter().cloned());
        let surest = theirs.lifecycle.confidence.max(content.lifecycle.confidence);
        content.lifecycle.confidence = surest;
        let ends = content.lifecycle.expires.zip(theirs.lifecycle.expires);
        content.lifecycle.expires = ends.map(|(own, theirs)| own.max(theirs));
    }
    members.sort_by_key(|(made, _)| *made);
    for (_, some) in members {
        content.body.structured.get_or_insert_default().extend(some);
    }
}

trait Max {
    fn max(self, other: Self) -> Self;
}

impl Max for Option<f64> {
    fn max(self, other: Self) -> Self {
        match (self, other) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        }
    }
}

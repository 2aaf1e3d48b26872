//! Appending a changed version.

use yore_domain::memory::{Cause, Content, Memory};
use yore_domain::mutation::Patch;
use yore_domain::{Error, Result};
use yore_store::Write;
use yore_store::plan::Indexing;

use super::remember::{indexing, statement};
use crate::mutate::{Effect, Ground, Mutated, Steps};

/// What a patch makes of a memory. A change on one axis of what it is leaves the other alone.
pub(crate) fn after(memory: &Memory, patch: &Patch) -> Content {
    let Patch {
        body,
        kind,
        facet,
        lifecycle,
        relations,
        tags,
        provenance,
        governance,
        valid_from: _,
        valid_to: _,
        foreign,
        status: _,
        created: _,
        version: _,
    } = patch.clone();
    let mut content = memory.head.content.clone();
    if body.as_ref().is_some_and(|body| *body != content.body) {
        content.seal = None;
    }
    content.body = body.unwrap_or(content.body);
    content.kind = kind.unwrap_or(content.kind);
    content.facet = facet.unwrap_or(content.facet);
    content.lifecycle = lifecycle.unwrap_or(content.lifecycle);
    content.relations = relations.unwrap_or(content.relations);
    content.tags = tags.unwrap_or(content.tags);
    content.provenance = provenance.unwrap_or(content.provenance);
    content.governance = governance.unwrap_or(content.governance);
    content.foreign.extend(foreign);
    content
}

pub(crate) fn steps(ground: &Ground<'_>, patch: &Patch, after: Option<Content>) -> Result<Steps> {
    let target = ground.target()?;
    let content = after.ok_or(Error::NotFound)?;
    let mut next = target.head.next(Cause::Revised, ground.now, ground.writer.clone());
    next.id = patch.version.unwrap_or(next.id);
    next.content = content;
    if let Some(status) = patch.status {
        if !status.is_live() {
            return Err(Error::invalid("status", "a revised memory is active or candidate"));
        }
        next.status = status;
    }
    let made = patch.created.unwrap_or(ground.now);
    next.time.created = made;
    next.time.observed = Some(made);
    next.time.valid_from = patch.valid_from.unwrap_or(made);
    next.time.valid_to = patch.valid_to;
    if next.time.valid_to.is_some_and(|end| end < next.time.valid_from) {
        return Err(Error::invalid("time.valid_to", "lies before valid_from"));
    }
    let output = Mutated::one(Effect::Revised, &next);
    let statement = statement(ground, &next.content);
    let indexing = Indexing { statement, ..indexing(ground.engine, &next.content) };
    let writes = vec![Write::Version { version: Box::new(next), indexing }];
    Ok(Steps { output, writes, preconditions: ground.unmoved() })
}

//! Appending a version with other labels, scope or consent.

use yore_domain::memory::{Cause, Content, Memory};
use yore_domain::mutation::Relabel;
use yore_domain::{Error, Result};
use yore_store::Write;
use yore_store::plan::Indexing;

use super::remember::{indexing, statement};
use crate::mutate::{Effect, Ground, Mutated, Steps};

pub(crate) fn after(memory: &Memory, change: &Relabel) -> Content {
    let Relabel { governance, scope, consent } = change.clone();
    let mut content = memory.head.content.clone();
    content.governance = governance.unwrap_or(content.governance);
    content.scope = scope.unwrap_or(content.scope);
    content.consent = consent.unwrap_or(content.consent);
    content
}

pub(crate) fn steps(ground: &Ground<'_>, after: Option<Content>) -> Result<Steps> {
    let target = ground.target()?;
    let mut next = target.head.next(Cause::Relabelled, ground.now, ground.writer.clone());
    next.content = after.ok_or(Error::NotFound)?;
    let output = Mutated::one(Effect::Revised, &next);
    let statement = statement(ground, &next.content);
    let indexing = Indexing { statement, ..indexing(ground.engine, &next.content) };
    let writes = vec![Write::Version { version: Box::new(next), indexing }];
    Ok(Steps { output, writes, preconditions: ground.unmoved() })
}

//! Bringing an earlier version back, as a new head.

use yore_domain::memory::{Cause, Content, Status, Version};
use yore_domain::{Error, Result};
use yore_store::Write;
use yore_store::plan::Indexing;

use super::remember::{indexing, statement};
use crate::mutate::{Effect, Ground, Mutated, Steps};

pub(crate) async fn after(ground: &Ground<'_>, number: u32) -> Result<Content> {
    Ok(earlier(ground, number).await?.content)
}

pub(crate) async fn steps(
    ground: &Ground<'_>,
    number: u32,
    after: Option<Content>,
) -> Result<Steps> {
    let target = ground.target()?;
    let earlier = earlier(ground, number).await?;
    let mut next = target.head.next(Cause::Restored, ground.now, ground.writer.clone());
    next.content = after.ok_or(Error::NotFound)?;
    next.status = if earlier.status.is_live() { earlier.status } else { Status::Active };
    next.time = earlier.time;
    next.time.valid_to = None;
    let output = Mutated::one(Effect::Revised, &next);
    let statement = statement(ground, &next.content);
    let indexing = Indexing { statement, ..indexing(ground.engine, &next.content) };
    let writes = vec![Write::Version { version: Box::new(next), indexing }];
    Ok(Steps { output, writes, preconditions: ground.unmoved() })
}

async fn earlier(ground: &Ground<'_>, number: u32) -> Result<Version> {
    let memory = ground.target()?.head.memory;
    let history = ground.snapshot.history(memory).await?;
    history.into_iter().find(|version| version.number == number).ok_or(Error::NotFound)
}

//! Forgetting, in two depths.

use yore_domain::Result;
use yore_domain::memory::{Cause, Status};
use yore_domain::mutation::Depth;
use yore_store::Write;
use yore_store::plan::Indexing;

use super::remember::indexing;
use crate::mutate::{Effect, Ground, Head, Mutated, Steps};

pub(crate) fn steps(ground: &Ground<'_>, depth: Depth) -> Result<Steps> {
    let mut memories = Vec::new();
    let mut writes = Vec::new();
    for target in &ground.targets {
        match depth {
            Depth::Erase => {
                memories.push(Head::of(&target.head));
                writes.push(Write::Erase { memory: target.head.memory });
            }
            Depth::Tombstone if target.head.status == Status::Tombstoned => {
                memories.push(Head::of(&target.head));
            }
            Depth::Tombstone => {
                let mut next =
                    target.head.next(Cause::Tombstoned, ground.now, ground.writer.clone());
                next.status = Status::Tombstoned;
                next.time.valid_to = next.time.valid_to.or(Some(ground.now));
                memories.push(Head::of(&next));
                let indexing: Indexing = indexing(ground.engine, &next.content);
                writes.push(Write::Version { version: Box::new(next), indexing });
            }
        }
    }
    let effect = match depth {
        Depth::Erase => Effect::Erased,
        Depth::Tombstone => Effect::Tombstoned,
    };
    Ok(Steps { output: Mutated { effect, memories }, writes, preconditions: ground.unmoved() })
}

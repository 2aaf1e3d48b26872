//! Forgetting, in three depths.

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
        let (cause, status) = match depth {
            Depth::Erase => {
                memories.push(Head::of(&target.head));
                writes.push(Write::Erase { memory: target.head.memory });
                continue;
            }
            Depth::Tombstone => (Cause::Tombstoned, Status::Tombstoned),
            Depth::Quarantine => (Cause::Quarantined, Status::Quarantined),
        };
        // What is out of recall is not put aside once more, but may be forgotten.
        if target.head.status == Status::Tombstoned || target.head.status == status {
            memories.push(Head::of(&target.head));
            continue;
        }
        let mut next = target.head.next(cause, ground.now, ground.writer.clone());
        next.status = status;
        if depth == Depth::Tombstone {
            next.time.valid_to = next.time.valid_to.or(Some(ground.now));
        }
        memories.push(Head::of(&next));
        let indexing: Indexing = indexing(ground.engine, &next.content);
        writes.push(Write::Version { version: Box::new(next), indexing });
    }
    let effect = match depth {
        Depth::Erase => Effect::Erased,
        Depth::Tombstone | Depth::Quarantine => Effect::Tombstoned,
    };
    Ok(Steps { output: Mutated { effect, memories }, writes, preconditions: ground.unmoved() })
}

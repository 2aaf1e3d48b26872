//! Many things at once: each is judged by itself, all that may happen are committed together.

use futures::future::BoxFuture;
use yore_canon::hash::Sha256;
use yore_domain::{Error, HoldId, MemoryId, Result};

/// Plans one of many things at a time.
pub(crate) trait Planner<T>: Send {
    /// Adds one to the plan.
    fn one<'a>(&'a mut self, item: &'a T) -> BoxFuture<'a, Result<()>>;
}

/// Plans each by itself. One that is turned down comes back with its place and the reason; a
/// fault of the server's own ends all of it.
pub(crate) async fn each<T: Sync>(
    items: &[T],
    planner: &mut impl Planner<T>,
) -> Result<Vec<(usize, Error)>> {
    let mut refused = Vec::new();
    for (place, item) in items.iter().enumerate() {
        match planner.one(item).await {
            Ok(()) => {}
            Err(error @ Error::Internal(_)) => return Err(error),
            Err(error) => refused.push((place, error)),
        }
    }
    Ok(refused)
}

/// The hold in which something waits that would be this memory; every caller has its own. The
/// same thing brought again finds it, whatever was decided.
pub(crate) fn hold_of(namespace: &str, memory: MemoryId) -> HoldId {
    hold_named(&format!("proposal:{memory}:{namespace}"))
}

/// The hold of something that is asked once: its id follows from what it is about.
pub(crate) fn hold_named(what: &str) -> HoldId {
    let digest = Sha256::of(what);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest.as_bytes()[..16]);
    // The bits that mark a random id of the same length.
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    HoldId::from_bytes(bytes)
}

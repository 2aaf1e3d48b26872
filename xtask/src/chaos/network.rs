//! Connections that are dropped and reset at any byte.

use anyhow::Result;

use super::world::World;
use super::{End, Ground};

const ROUNDS: [usize; 2] = [60, 4];

/// Puts a bad network between the clients and a server that nothing else happens to.
pub(super) fn connections(ground: &Ground) -> Result<End> {
    let mut world = World::new(ground, "bad-network")?.behind_proxy()?;
    world.begin();
    for _ in 0..ground.of(ROUNDS) {
        world.live(1000, 2000);
        world.glance()?;
    }
    world.goes_on("connections broke");
    world.faults += world.broken();
    world.end().map(End::Ran)
}

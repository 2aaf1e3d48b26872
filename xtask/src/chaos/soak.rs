//! Everything at once, for a while.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::faults::{EIO, EROFS};
use super::world::World;
use super::{End, Ground, power};

const SECONDS: [usize; 2] = [1800, 15];

/// Lets eight clients write over a bad network while the server is killed, its power is cut, its
/// disk fails or is slow and its clock jumps, in no order.
pub(super) fn mixed(ground: &Ground) -> Result<End> {
    let (world, faults) = match World::with_faults(ground, "soak")? {
        Ok(both) => both,
        Err(reason) => return Ok(End::NotRun(reason)),
    };
    let mut world = world.behind_proxy()?;
    world.begin();
    let end = Instant::now() + Duration::from_secs(ground.of(SECONDS) as u64);
    let mut turn = 0;
    while Instant::now() < end {
        turn += 1;
        world.live(100, 700);
        match world.random.below(6) {
            0 => world.kill_and_start()?,
            1 => {
                world.kill()?;
                power::cut(&world.place.data(), &faults.record, &mut world.random)?;
                world.start()?;
            }
            2 => faults.clock(*world.random.pick(&[-3600, 0, 3600]))?,
            3 => faults.slow(world.random.millis(0, 60))?,
            4 => {
                faults.error(*world.random.pick(&[EIO, EROFS]))?;
                world.live(100, 500);
                faults.error(0)?;
            }
            _ => {
                world.kill()?;
                world.kill_while_starting()?;
                world.start()?;
            }
        }
        world.faults += 1;
        if turn % 4 == 0 {
            world.glance()?;
        }
    }
    faults.clock(0)?;
    faults.slow(Duration::ZERO)?;
    world.goes_on("everything");
    world.faults += world.broken();
    world.end().map(End::Ran)
}

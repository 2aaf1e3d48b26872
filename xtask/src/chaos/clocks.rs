//! A clock that jumps while the server runs, and between two starts.

use anyhow::Result;

use super::world::World;
use super::{End, Ground};

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
/// How far the clock is from the true time: a little, a summer time, and a dead battery.
const AHEAD: [i64; 7] = [-40 * DAY, -11 * HOUR, -HOUR, -2, 2, 11 * HOUR, 40 * DAY];
const JUMPS: [usize; 2] = [200, 10];

/// Lets the clock jump, and kills the server after every third jump.
pub(super) fn jumps(ground: &Ground) -> Result<End> {
    let (mut world, faults) = match World::with_faults(ground, "clock-jumps")? {
        Ok(both) => both,
        Err(reason) => return Ok(End::NotRun(reason)),
    };
    world.begin();
    for jump in 0..ground.of(JUMPS) {
        world.live(200, 600);
        faults.clock(*world.random.pick(&AHEAD))?;
        world.faults += 1;
        if jump % 3 == 2 {
            world.kill_and_start()?;
        }
        world.goes_on("a jump of the clock");
        world.glance()?;
    }
    world.check()?;
    faults.clock(0)?;
    world.end().map(End::Ran)
}

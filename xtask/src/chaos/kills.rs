//! Kill -9 and power cuts, at any moment.

use std::time::Duration;

use anyhow::Result;

use super::world::World;
use super::{End, Ground, power};

/// Kills in the long run, as many as the requirement states, and in the short one.
const KILLS: [usize; 2] = [1000, 10];
/// How long clients wait in the long run, so that the vault stays of a size.
const PACE: Duration = Duration::from_millis(80);
/// How many looks at everything there are in a run, besides one after each kill at what is new.
const CHECKS: usize = 25;
const CUTS: [usize; 2] = [200, 8];

/// Kills a server that eight clients write to, and some that are only starting.
pub(super) fn kills(ground: &Ground) -> Result<End> {
    let world = World::new(ground, "kill")?;
    let world = if ground.full { world.paced(PACE) } else { world };
    killed(world, ground.of(KILLS))
}

/// The same for the tests.
pub(super) fn few(ground: &Ground) -> Result<End> {
    killed(World::new(ground, "few-kills")?, 5)
}

fn killed(mut world: World, kills: usize) -> Result<End> {
    world.begin();
    let stride = kills.div_ceil(CHECKS);
    for kill in 1..=kills {
        world.live(50, 900);
        world.kill()?;
        if world.random.one_in(5) {
            world.kill_while_starting()?;
        }
        world.start()?;
        if kill % stride == 0 {
            world.check()?;
        } else {
            world.glance()?;
        }
        if kill % 100 == 0 {
            println!("  {kill} kills, {} acknowledged", world.acknowledged());
        }
    }
    world.end().map(End::Ran)
}

/// Takes back, after each kill, what was written and not synced.
pub(super) fn cuts(ground: &Ground) -> Result<End> {
    let (mut world, faults) = match World::with_faults(ground, "torn-writes")? {
        Ok(both) => both,
        Err(reason) => return Ok(End::NotRun(reason)),
    };
    world.begin();
    let mut torn = 0;
    for cut in 0..ground.of(CUTS) {
        world.live(50, 900);
        world.kill()?;
        torn += power::cut(&world.place.data(), &faults.record, &mut world.random)?;
        world.start()?;
        if cut % 4 == 0 {
            world.check()?;
        } else {
            world.glance()?;
        }
    }
    println!("  {torn} writes torn");
    if torn == 0 {
        world.judge.wrong.insert("no write was ever torn".to_owned());
    }
    world.end().map(End::Ran)
}

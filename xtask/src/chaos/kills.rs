//! Kill -9 and power cuts, at any moment.

use anyhow::Result;

use super::world::World;
use super::{End, Ground, Outcome, power};

/// Kills in the long run, as many as the requirement states, and in the short one.
const KILLS: [usize; 2] = [1000, 10];
/// After how many kills a new vault is begun, because a chain is verified after each from its
/// first entry on.
const VAULT: usize = 100;
/// How many looks at everything a vault gets, besides one after each kill at what is new.
const CHECKS: usize = 10;
const CUTS: [usize; 2] = [200, 8];
/// For how many milliseconds a server lives.
const LIFE: (u64, u64) = (20, 500);

/// Kills a server that eight clients write to, and some that are only starting.
pub(super) fn kills(ground: &Ground) -> Result<End> {
    let all = ground.of(KILLS);
    let mut total = Outcome::default();
    for begun in (0..all).step_by(VAULT) {
        let world = World::new(ground, &format!("kill-{begun}"))?;
        total.add(killed(world, VAULT.min(all - begun))?);
        if all > VAULT {
            let Outcome { faults, acknowledged, .. } = total;
            println!("  {faults} kills, {acknowledged} acknowledged");
        }
    }
    Ok(End::Ran(total))
}

/// The same for the tests.
pub(super) fn few(ground: &Ground) -> Result<End> {
    killed(World::new(ground, "few-kills")?, 5).map(End::Ran)
}

fn killed(mut world: World, kills: usize) -> Result<Outcome> {
    world.begin();
    let stride = kills.div_ceil(CHECKS);
    for kill in 1..=kills {
        world.live(LIFE.0, LIFE.1);
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
    }
    world.end()
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

//! Disks that are full, cannot be written, fail or are slow.

use std::time::Duration;

use anyhow::Result;

use super::faults::{EIO, EROFS};
use super::place::{Manner, Place};
use super::room::Room;
use super::world::World;
use super::{End, Ground};

const ROUNDS: [usize; 2] = [30, 3];

/// A vault on a small disk that is filled and emptied again.
pub(super) fn full(ground: &Ground) -> Result<End> {
    let script = |data: &str| format!("mount -t tmpfs -o size=32m,mode=700 chaos '{data}'");
    let mut world = match in_room(ground, "full-disk", script)? {
        Ok(world) => world,
        Err(reason) => return Ok(End::NotRun(reason)),
    };
    let filler = world.place.data().join("filler");
    world.begin();
    for round in 0..ground.of(ROUNDS) {
        world.live(400, 1000);
        if let Some(room) = &world.place.room {
            room.fill(&filler)?;
        }
        world.faults += 1;
        world.live(600, 1500);
        world.reads("while the disk is full")?;
        let killed = round % 2 == 1;
        if killed {
            world.kill()?;
        }
        std::fs::remove_file(world.place.seen(&filler))?;
        if killed {
            world.start()?;
        }
        world.goes_on("there was room again");
        world.glance()?;
    }
    world.end().map(End::Ran)
}

/// A vault whose disk is read-only when the server comes back.
pub(super) fn read_only(ground: &Ground) -> Result<End> {
    let script = |data: &str| format!("mount --bind '{data}' '{data}'");
    let mut world = match in_room(ground, "read-only-disk", script)? {
        Ok(world) => world,
        Err(reason) => return Ok(End::NotRun(reason)),
    };
    let data = world.place.data().display().to_string();
    let remount = |world: &World, how: &str| match &world.place.room {
        Some(room) => room.run(&format!("mount -o remount,{how},bind '{data}'")),
        None => Ok(()),
    };
    world.begin();
    for _ in 0..ground.of(ROUNDS) {
        world.live(300, 900);
        world.kill()?;
        remount(&world, "ro")?;
        match world.place.serve(&world.manner) {
            Ok(_) => drop(world.judge.wrong.insert("it starts on a read-only disk".to_owned())),
            Err(error) => {
                let told = format!("{error:#}");
                if !told.contains("exit status: 7") {
                    world.judge.wrong.insert(format!("on a read-only disk: {told}"));
                }
            }
        }
        remount(&world, "rw")?;
        world.start()?;
        world.goes_on("the disk could be written again");
        world.glance()?;
    }
    world.end().map(End::Ran)
}

fn in_room(
    ground: &Ground,
    name: &str,
    script: impl FnOnce(&str) -> String,
) -> Result<Result<World, String>> {
    let mut place = Place::new(&ground.yore, ground.dir.join(name))?;
    match Room::open(&script(&place.data().display().to_string())) {
        Ok(room) => place.room = Some(room),
        Err(error) => {
            place.remove()?;
            return Ok(Err(format!("{error:#}")));
        }
    }
    World::at(ground, place, Manner::default()).map(Ok)
}

/// A running server whose writes and syncs begin to fail, and do well again.
pub(super) fn failing(ground: &Ground) -> Result<End> {
    let (mut world, faults) = match World::with_faults(ground, "failing-disk")? {
        Ok(both) => both,
        Err(reason) => return Ok(End::NotRun(reason)),
    };
    world.begin();
    for round in 0..ground.of(ROUNDS) {
        world.live(400, 1000);
        faults.error(if round % 2 == 0 { EROFS } else { EIO })?;
        world.faults += 1;
        world.live(600, 1500);
        world.reads("while the disk fails")?;
        if round % 3 == 2 {
            world.kill()?;
            faults.error(0)?;
            world.start()?;
        } else {
            faults.error(0)?;
        }
        world.goes_on("the disk did well again");
        world.glance()?;
    }
    world.end().map(End::Ran)
}

/// A disk on which a sync takes its time, longer and shorter, and kills meanwhile.
pub(super) fn slow(ground: &Ground) -> Result<End> {
    let (mut world, faults) = match World::with_faults(ground, "slow-disk")? {
        Ok(both) => both,
        Err(reason) => return Ok(End::NotRun(reason)),
    };
    world.begin();
    for _ in 0..ground.of(ROUNDS) {
        let by = *world.random.pick(&[20, 80, 250]);
        faults.slow(Duration::from_millis(by))?;
        world.faults += 1;
        world.live(1000, 2000);
        world.kill()?;
        world.start()?;
        world.goes_on("a kill on a slow disk");
        faults.slow(Duration::ZERO)?;
        world.glance()?;
    }
    world.end().map(End::Ran)
}

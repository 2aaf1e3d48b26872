//! A server that may have only so much memory, and a client that wants more.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use super::place::{Manner, Place};
use super::wire::Request;
use super::world::World;
use super::{End, Ground};

const ROUNDS: [usize; 2] = [30, 3];
/// How much more address space than a server has had when it is ready it may have, in KiB.
const ROOM: [u64; 3] = [32 << 10, 16 << 10, 4 << 10];
/// The allocator takes address space in large pieces, which count although they are empty.
const PIECES: (&str, &str) = ("MIMALLOC_ARENA_RESERVE", "16384");
/// What the greedy client sends at once, in bytes: as much as a request may be.
const LARGE: usize = 1_900_000;
const GREEDY: usize = 6;

/// Starts the server with less and less room, and sends it more than fits. It may end by that, as
/// it may under a kernel that has no more to give, but lose nothing.
pub(super) fn limit(ground: &Ground) -> Result<End> {
    let place = Place::new(&ground.yore, ground.dir.join("memory-limit"))?;
    let usual = Manner { surroundings: vec![(PIECES.0, PIECES.1.to_owned())], before: Vec::new() };
    let mut world = World::at(ground, place, usual.clone())?;
    world.judge.may_panic = true;
    let Some(need) = needed(world.server.pid()) else {
        return Ok(End::NotRun(
            "this system does not tell how much memory a process has".to_owned(),
        ));
    };
    world.begin();
    let mut died = 0;
    for round in 0..ground.of(ROUNDS) {
        let most = need + ROOM[round % ROOM.len()];
        let limit = format!("ulimit -v {most}; exec \"$@\"");
        let before = ["sh", "-c", &limit, "sh"].map(str::to_owned).to_vec();
        world.manner = Manner { before, ..usual.clone() };
        world.kill()?;
        if let Err(error) = world.start() {
            // It was told so little that it cannot begin; that loses nothing.
            println!("  {most} KiB: {error:#}");
        } else {
            let greedy = Greedy::start(&world.server.address, world.owner());
            let end = Instant::now() + Duration::from_millis(2500);
            while Instant::now() < end && world.server.is_running() {
                std::thread::sleep(Duration::from_millis(20));
            }
            drop(greedy);
        }
        if !world.server.is_running() {
            died += 1;
            world.faults += 1;
        }
        world.kill()?;
        world.manner = usual.clone();
        world.start()?;
        world.goes_on("there was memory again");
        world.glance()?;
    }
    println!("  {died} servers ended for want of memory");
    world.end().map(End::Ran)
}

/// How much address space a process has had, in KiB.
fn needed(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}

/// Clients that ask for as much as they may, all at once.
struct Greedy {
    ended: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Greedy {
    fn start(address: &str, owner: &str) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        // Refused as far too long for a memory, but read and parsed first.
        let input = json!({"query": "x".repeat(LARGE), "limit": 1});
        let request = Request::post("/api/v1/recall", &input);
        let threads = (0..GREEDY).map(|_| {
            let (ended, request) = (Arc::clone(&ended), request.clone());
            let (address, owner) = (address.to_owned(), owner.to_owned());
            std::thread::spawn(move || {
                while !ended.load(Ordering::SeqCst) {
                    // The server may die of it, which is what it is for.
                    drop(request.send(&address, &owner));
                }
            })
        });
        Self { threads: threads.collect(), ended }
    }
}

impl Drop for Greedy {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
    }
}

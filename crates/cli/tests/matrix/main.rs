//! The protocol matrix: a memory written through each protocol is read, revised, refused, held
//! and erased through each, on one server that speaks all of them.
//!
//! Each of the 36 pairs is a test of its own, `matrix::<written by>::<done by>`; `cargo xtask
//! conformance` prints them as a table. The examples of the protocols' own texts and of this
//! repository follow, on a server as it comes out of the box. The harness is this file, because tests share a server.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../suite/common.rs"]
#[expect(dead_code, reason = "what the other suite needs of it is not needed here")]
mod common;
mod differential;
mod documents;
mod examples;
mod pair;
mod seeds;
mod tongues;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use crate::pair::Pair;
use crate::tongues::Tongue;
use crate::world::{Plain, World};

/// A test: what went wrong in it, line by line.
type Test = (String, Box<dyn Fn(&World) -> Vec<String>>);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    let chosen =
        |test: &Test| wanted.is_empty() || wanted.iter().any(|word| test.0.contains(word.as_str()));
    let pairs: Vec<Test> = pairs().into_iter().filter(chosen).collect();
    let seeds: Vec<Test> = seeds().into_iter().filter(chosen).collect();
    let others: Vec<Test> = others().into_iter().filter(chosen).collect();
    let count = pairs.len() + seeds.len() + others.len();
    if arguments.iter().any(|word| word == "--list") {
        for (name, _) in pairs.iter().chain(&seeds).chain(&others) {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {count} tests");
    let mut told = run(&pairs, World::start);
    told.extend(run(&seeds, World::untouched));
    told.extend(run(&others, World::untouched));
    let (idle, failures): (Vec<_>, Vec<_>) = told.into_iter().partition(|(_, told)| is_idle(told));
    if !idle.is_empty() {
        println!("\nsuccesses:\n");
        for (name, told) in &idle {
            println!("---- {name} stdout ----\n{}\n", told.join("\n"));
        }
    }
    if !failures.is_empty() {
        println!("\nfailures:\n");
        for (name, faults) in &failures {
            println!("---- {name} stdout ----\n{}\n", faults.join("\n"));
        }
    }
    let (failed, word) = (failures.len(), if failures.is_empty() { "ok" } else { "FAILED" });
    let passed = count - failed;
    println!("\ntest result: {word}. {passed} passed; {failed} failed; 0 ignored");
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn pairs() -> Vec<Test> {
    let mut tests: Vec<Test> = Vec::new();
    for writer in Tongue::ALL {
        for other in Tongue::ALL {
            let name = format!("matrix::{}::{}", writer.name(), other.name());
            let run = move |world: &World| Pair { world, writer, other, faults: Vec::new() }.run();
            tests.push((name, Box::new(run)));
        }
    }
    let random = differential::ALL;
    tests.extend(random.map(|(name, run)| -> Test { (name.to_owned(), Box::new(run)) }));
    tests
}

fn seeds() -> Vec<Test> {
    let test = |(name, story): Plain| -> Test {
        let run = move |world: &World| {
            story(world);
            Vec::new()
        };
        (name.to_owned(), Box::new(run))
    };
    seeds::ALL.into_iter().map(test).collect()
}

fn others() -> Vec<Test> {
    let others = examples::ALL.into_iter().chain(documents::ALL);
    others.map(|(name, run)| -> Test { (name.to_owned(), Box::new(run)) }).collect()
}

/// Whether a test only said why it cannot run here.
fn is_idle(told: &[String]) -> bool {
    !told.is_empty() && told.iter().all(|line| line.starts_with("NOT RUN: "))
}

/// Runs tests one after the other on one server, and returns those that had something to say.
fn run(tests: &[Test], start: fn() -> World) -> Vec<(String, Vec<String>)> {
    let mut failures = Vec::new();
    if tests.is_empty() {
        return failures;
    }
    let world = start();
    for (name, test) in tests {
        let faults = match catch_unwind(AssertUnwindSafe(|| test(&world))) {
            Ok(faults) => faults,
            Err(_) => vec!["it panicked; what it said stands above".to_owned()],
        };
        let fine = faults.is_empty() || is_idle(&faults);
        println!("test {name} ... {}", if fine { "ok" } else { "FAILED" });
        if !faults.is_empty() {
            failures.push((name.clone(), faults));
        }
    }
    world.stop();
    failures
}

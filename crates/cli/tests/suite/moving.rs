//! `yore migrate-store`: all vaults of a host from files into a database and back.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::common::{Ended, Home, check, ended};

const KEY: &str = "0707070707070707070707070707070707070707070707070707070707070707";

/// Makes a database on the server at `YORE_TEST_POSTGRES` and returns its address.
fn database(what: &str) -> Option<String> {
    let Ok(server) = std::env::var("YORE_TEST_POSTGRES") else {
        println!("NOT RUN: YORE_TEST_POSTGRES names no PostgreSQL with pgvector");
        return None;
    };
    let name = format!("yore_{what}_{}", std::process::id());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let (client, connection) =
            tokio_postgres::connect(&server, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    });
    let (place, _) = server.rsplit_once('/').unwrap();
    Some(format!("{place}/{name}"))
}

/// A vault with some of what one can do at a command line.
fn lived_in() -> Home {
    let home = Home::new();
    let boat = home.remember(&["the boat is moored at Porto", "--tag", "boat"]);
    home.ok(&["revise", &boat, "the boat is moored at Faro"]);
    let secret = home.remember(&["the safe opens with marzipan"]);
    home.ok(&["forget", "--erase", "--yes", &secret]);
    let held = home.remember(&["kept for the court"]);
    home.ok(&["legal-hold", "set", &held]);
    home.ok(&["grant", "issue", "--agent", "scheduler", "--read", "work"]);
    home.ok(&["token", "issue", "--verbs", "read", "--agent", "reader"]);
    let notes = home.path("notes.txt");
    std::fs::write(&notes, "the ferry to Hydra leaves at nine").unwrap();
    home.ok(&["attach", "add", notes.to_str().unwrap()]);
    for number in 0..40 {
        home.remember(&[&format!("note {number}: the bees were seen at hive {number}")]);
    }
    home
}

/// What answers some questions: the ids, best first.
fn found(command: impl Fn(&[&str]) -> Command) -> Vec<Vec<String>> {
    let ids = |question: &str| {
        let done = ended(command(&["recall", question, "--json"]).output().unwrap());
        let found: Value = serde_json::from_str(&done.out).unwrap_or_else(|_| panic!("{done:?}"));
        let hits = found["results"].as_array().unwrap().iter();
        hits.map(|hit| hit["id"].to_string()).collect::<Vec<_>>()
    };
    ["where is the boat?", "which hive had bees?", "what is kept for the court?"].map(ids).to_vec()
}

fn fates(done: &Value) -> Vec<&str> {
    done["vaults"].as_array().unwrap().iter().map(|one| one["fate"].as_str().unwrap()).collect()
}

fn verified(done: &Ended) {
    assert!(done.code == 0, "{done:?}");
    let report: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(report["faults"].as_array().map(Vec::len), Some(0), "{done:?}");
}

#[test]
fn vaults_go_into_a_database_and_come_back_the_same() {
    let Some(address) = database("there") else { return };
    let home = lived_in();
    let (data, back) = (home.data(), home.path("back"));
    let (data, back) = (data.to_str().unwrap(), back.to_str().unwrap());

    let planned = home.json(&["migrate-store", data, &address, "--dry-run"]);
    assert_eq!(fates(&planned), ["waits"]);
    assert_eq!(planned["vaults"][0]["rows"]["memories"], 43);
    let moved = home.json(&["migrate-store", data, &address]);
    assert_eq!(fates(&moved), ["moved", "moved"], "the vault and the catalog");
    assert!(moved["vaults"][0]["rows"]["vectors"].as_u64() > Some(0), "{moved}");
    let again = home.json(&["migrate-store", data, &address]);
    assert_eq!(fates(&again), ["there", "there"]);
    home.json(&["migrate-store", &address, back]);
    for (one, other) in [(data, address.as_str()), (address.as_str(), back), (data, back)] {
        let compared = home.json(&["migrate-store", one, other, "--check"]);
        assert_eq!(fates(&compared), ["same", "same"], "{one} {other}: {compared}");
    }

    let here = |args: &[&str]| home.command(args);
    let there = |args: &[&str]| {
        let mut command = home.command(args);
        command.env("YORE_DATABASE", &address);
        command
    };
    let returned = |args: &[&str]| {
        let mut command = home.command(args);
        command.env("YORE_DATA", back);
        command
    };
    let known = found(here);
    assert!(known.iter().all(|ids| !ids.is_empty()), "{known:?}");
    assert_eq!(found(there), known);
    assert_eq!(found(returned), known);
    let verify = ["audit", "verify", "--json"];
    for command in [here(&verify), there(&verify), returned(&verify)] {
        let mut command = command;
        verified(&ended(command.output().unwrap()));
    }
    // What was erased stays erased, and what goes on there is seen as a difference.
    let done = ended(there(&["traces", "marzipan"]).output().unwrap());
    assert!(!done.out.contains("a row of version"), "{done:?}");
    let kept = ended(there(&["remember", "said in the database"]).output().unwrap());
    assert_eq!(kept.code, 0, "{kept:?}");
    home.fails(&["migrate-store", data, &address, "--check"], 8, &["not the same"]);
}

#[test]
fn a_move_that_is_killed_goes_on_and_nothing_is_doubled() {
    let home = lived_in();
    let data = home.data();
    for pause in [0, 20, 60, 150, 400] {
        let to = home.path(&format!("to-{pause}"));
        let args = ["migrate-store", data.to_str().unwrap(), to.to_str().unwrap()];
        let mut child = home.command(&args).spawn().unwrap();
        let begun = || to.join("moving").exists() || to.join("catalog.db").exists();
        while !begun() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(pause));
        child.kill().unwrap();
        child.wait().unwrap();
        if to.join("moving").exists() {
            let mut half = home.command(&["list"]);
            half.env("YORE_DATA", &to);
            check(&ended(half.output().unwrap()), 6, &["begun and not finished"]);
        }
        home.ok(&args);
        let compared = home.json(&[args.as_slice(), &["--check"]].concat());
        assert_eq!(fates(&compared), ["same", "same"], "{compared}");
    }
}

#[test]
fn moves_say_what_is_in_the_way() {
    let home = lived_in();
    let (data, to) = (home.data(), home.path("to"));
    let (data, to) = (data.to_str().unwrap(), to.to_str().unwrap());
    let args = ["migrate-store", data, to];
    let mut server = home.serve();
    home.fails(&args, 7, &["another process uses", "stop yore serve"]);
    assert_eq!(server.stop(), 0);
    home.fails(&["migrate-store", data, data], 2, &["the same"]);
    home.fails(&["migrate-store", to, data], 8, &["not a vault"]);

    let mut stranger = home.command(&args);
    stranger.env("YORE_MASTER_KEY", KEY);
    let wrong = ended(stranger.output().unwrap());
    check(&wrong, 8, &["wrong key"]);
    assert!(!home.path("to").exists(), "nothing was made");

    let nowhere = "postgres://yore:sesame@127.0.0.1:1/yore";
    let gone = home.fails(&["migrate-store", data, nowhere], 7, &["postgres"]);
    assert!(!gone.err.contains("sesame"), "{gone:?}");

    let other = lived_in();
    let used = other.data();
    let mut both = home.command(&["migrate-store", data, used.to_str().unwrap()]);
    both.env("YORE_MASTER_KEY", KEY);
    check(&ended(both.output().unwrap()), 8, &["wrong key"]);
    let held = home.path("held");
    let mut made = home.command(&["remember", "something"]);
    made.env("YORE_DATA", &held);
    assert_eq!(ended(made.output().unwrap()).code, 0);
    home.fails(&["migrate-store", data, held.to_str().unwrap()], 6, &["not empty"]);
}

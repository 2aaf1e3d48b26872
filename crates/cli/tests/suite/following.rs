//! Watching changes, jobs, legal holds.

use std::io::{BufRead, BufReader};

use serde_json::Value;

use crate::common::Home;

/// What has nothing to do with each other, so that nothing is proposed about any two of them.
const THINGS: [&str; 24] = [
    "passport",
    "violin",
    "Lisbon",
    "rye bread",
    "dentist",
    "chess",
    "invoice",
    "snow tyres",
    "orchid",
    "password manager",
    "marathon",
    "garlic",
    "telescope",
    "mortgage",
    "kayak",
    "cat",
    "Esperanto",
    "asthma",
    "solar panels",
    "poetry",
    "visa",
    "thermostat",
    "bees",
    "origami",
];

#[test]
fn a_watcher_sees_what_others_do_and_goes_on_after_a_cursor() {
    let home = Home::new();
    let _server = home.serve();
    let first = home.remember(&["tea, no sugar"]);
    let mut watcher = home.command(&["watch", "--json", "--count", "2"]).spawn().unwrap();
    let mut lines = BufReader::new(watcher.stdout.take().unwrap()).lines();
    // The watcher says nothing when it is ready, so changes are made until it sees one.
    let (seen, told) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut events = Vec::new();
        while let Some(Ok(line)) = lines.next() {
            events.push(serde_json::from_str::<Value>(&line).unwrap());
            seen.send(()).unwrap();
        }
        events
    });
    let mut made = vec![first];
    for thing in THINGS {
        made.push(home.remember(&[thing]));
        if told.recv_timeout(std::time::Duration::from_millis(500)).is_ok() {
            break;
        }
    }
    made.push(home.remember(&["the last train leaves at midnight"]));
    made.push(home.remember(&["my sister plays the cello"]));
    let events = reader.join().unwrap();
    assert!(watcher.wait().unwrap().success());
    assert_eq!(events.len(), 2, "{events:?}");
    let memory = |event: &Value| event["change"]["memory"].as_str().unwrap().to_owned();
    let at = made.iter().position(|id| *id == memory(&events[0])).unwrap();
    assert_eq!(made[at + 1], memory(&events[1]), "in order");
    let told = events[0].to_string();
    assert!(THINGS.iter().all(|thing| !told.contains(thing)), "no text");
    let cursor = events[0]["cursor"].as_str().unwrap();
    let next = home.ok(&["watch", "--json", "--count", "1", "--after", cursor]);
    let next: Value = serde_json::from_str(&next).unwrap();
    assert_eq!(memory(&next), memory(&events[1]), "nothing is missed");
    let shown = home.ok(&["watch", "--count", "1", "--after", cursor]);
    assert!(shown.contains("created") && shown.contains(&memory(&events[1])[..8]), "{shown}");
    home.fails(&["watch", "--after", "nonsense"], 2, &["cursor"]);
}

#[test]
fn a_legal_hold_stands_in_the_way_of_erasure() {
    let home = Home::new();
    let id = home.remember(&["the contract of 2019"]);
    let held = home.json(&["legal-hold", "set", &id[..8]]);
    assert_eq!((held["held"].as_bool(), held["memories"][0].as_str()), (Some(true), Some(&*id)));
    let erase = ["forget", "--erase", "--yes", &id];
    home.fails(&erase, 6, &["legal hold"]);
    assert!(home.ok(&["legal-hold", "lift", &id]).contains("released"));
    home.ok(&erase);
    home.fails(&["legal-hold", "set", &id], 3, &["not found"]);
    home.fails(&["legal-hold", "set"], 2, &["ID"]);
}

#[test]
fn jobs_are_listed_and_named_by_what_a_list_shows() {
    let home = Home::new();
    home.remember(&["tea, no sugar"]);
    assert_eq!(home.json(&["job", "list"]), serde_json::json!([]));
    home.fails(&["job", "show", "ffffffff"], 3, &["yore job list"]);
    home.fails(&["job", "cancel", "00000000-0000-4000-8000-000000000000"], 3, &["not found"]);
}

#[test]
fn a_file_is_kept_found_and_written_out_again() {
    let home = Home::new();
    let (file, copy) = (home.path("harbour.jpg"), home.path("copy.jpg"));
    let bytes: Vec<u8> = (0..700_000u32).map(|n| (n % 251) as u8).collect();
    std::fs::write(&file, &bytes).unwrap();
    let (path, out) = (file.to_str().unwrap(), copy.to_str().unwrap());
    let added = home.json(&["attach", "add", path, "--text", "the harbour on the first evening"]);
    let blob = added["blob"].as_str().unwrap();
    assert_eq!(added["size"], 700_000);
    home.ok(&["attach", "get", blob, "--out", out]);
    assert!(std::fs::read(&copy).unwrap() == bytes);
    assert!(home.ok(&["search", "harbour evening"]).contains("first evening"));
    let conversation = added["conversation"].as_str().unwrap();
    let again = home.json(&["attach", "add", path, "--conversation", conversation]);
    assert_eq!((&again["blob"], &again["conversation"]), (&added["blob"], &added["conversation"]));
    let other = "0".repeat(64);
    home.fails(&["attach", "get", &other], 3, &["yore search"]);
    home.fails(&["attach", "get", "nonsense"], 2, &["64 hexadecimal digits"]);
    home.fails(&["attach", "add", "missing.jpg"], 3, &["missing.jpg"]);
    let stored = crate::common::files(&home.data());
    for path in stored {
        let held = std::fs::read(&path).unwrap();
        assert!(!held.windows(64).any(|part| part == &bytes[..64]), "{}", path.display());
    }
}

//! A directory of files that is kept in step with the vault.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::{Home, check};

fn records(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_str().unwrap().ends_with(".ump.md"))
        .collect();
    found.sort();
    found
}

fn holding(directory: &Path, text: &str) -> PathBuf {
    let all = records(directory);
    let found = all.iter().find(|path| std::fs::read_to_string(path).unwrap().contains(text));
    found.unwrap_or_else(|| panic!("no file holds {text:?}: {all:?}")).clone()
}

fn edit(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{text}");
    std::fs::write(path, text.replace(from, to)).unwrap();
}

#[test]
fn changes_go_both_ways_and_then_nothing_is_left_to_do() {
    let home = Home::new();
    let tea = home.remember(&["tea, no sugar"]);
    home.remember(&["  two\n\nlines \n"]);
    let place = home.path("memory");
    let dir = place.to_str().unwrap();
    let first = home.json(&["sync", dir]);
    assert_eq!(first["written"], 2, "{first}");
    let quiet = home.json(&["sync", dir]);
    assert_eq!((&quiet["written"], &quiet["unchanged"]), (&json!(0), &json!(2)), "{quiet}");

    edit(&holding(&place, "tea, no sugar"), "tea, no sugar", "tea, with milk");
    let revised = home.json(&["sync", dir]);
    assert_eq!(revised["revised"], 1, "{revised}");
    assert_eq!(home.json(&["history", &tea]).as_array().unwrap().len(), 2);
    assert!(home.all().contains(&"tea, with milk".to_owned()));
    assert_eq!(home.json(&["sync", dir])["unchanged"], 2);

    home.ok(&["revise", &tea, "coffee, black"]);
    assert_eq!(home.json(&["sync", dir])["written"], 1);
    holding(&place, "coffee, black");
    assert!(home.all().contains(&"  two\n\nlines \n".to_owned()), "blanks survive");

    let new = "---\nkind: identity\nscope: {project: home}\n---\n\nI live in Oslo.\n";
    std::fs::write(place.join("me.ump.md"), new).unwrap();
    let taken = home.json(&["sync", dir]);
    assert_eq!(taken["taken_in"], 1, "{taken}");
    assert!(home.all().contains(&"I live in Oslo.".to_owned()));
    assert_eq!(home.json(&["sync", dir])["unchanged"], 3);

    home.ok(&["forget", &tea]);
    assert_eq!(home.json(&["sync", dir])["removed"], 1);
    assert_eq!(records(&place).len(), 2);
    let other = Home::new();
    other.fails(&["sync", dir], 6, &["another vault"]);
}

#[test]
fn where_both_sides_changed_a_person_decides_and_nothing_is_overwritten() {
    let home = Home::new();
    let id = home.remember(&["the code is 1"]);
    let place = home.path("memory");
    let dir = place.to_str().unwrap();
    home.ok(&["sync", dir]);
    let file = holding(&place, "the code is 1");
    edit(&file, "the code is 1", "the code is 2");
    home.ok(&["revise", &id, "the code is 3"]);
    let sum = home.json(&["sync", dir]);
    assert_eq!((&sum["proposed"], &sum["written"]), (&json!(1), &json!(0)), "{sum}");
    assert!(std::fs::read_to_string(&file).unwrap().contains("the code is 2"));
    assert_eq!(home.all(), ["the code is 3"]);
    let again = home.json(&["sync", dir]);
    assert_eq!((&again["proposed"], &again["waiting"]), (&json!(0), &json!(1)), "{again}");
    let waiting = home.json(&["review", "list"]);
    assert_eq!(waiting.as_array().unwrap().len(), 1, "proposed once: {waiting}");
    home.ok(&["review", "approve", waiting[0]["id"].as_str().unwrap()]);
    assert_eq!(home.all(), ["the code is 2"]);
    home.ok(&["sync", dir]);
    let settled = home.json(&["sync", dir]);
    assert_eq!((&settled["unchanged"], &settled["waiting"]), (&json!(1), &json!(0)), "{settled}");

    // A file that is gone is a question, not an order.
    std::fs::remove_file(&file).unwrap();
    assert_eq!(home.json(&["sync", dir])["proposed"], 1);
    assert_eq!(home.all(), ["the code is 2"]);
    let waiting = home.json(&["review", "list"]);
    home.ok(&["review", "reject", waiting[0]["id"].as_str().unwrap()]);
    assert_eq!(home.json(&["sync", dir])["written"], 1, "it stays, so its file comes back");
    std::fs::remove_file(holding(&place, "the code is 2")).unwrap();
    home.ok(&["sync", dir]);
    let waiting = home.json(&["review", "list"]);
    home.ok(&["review", "approve", waiting[0]["id"].as_str().unwrap()]);
    home.ok(&["sync", dir]);
    assert!(home.all().is_empty() && records(&place).is_empty());
}

#[test]
fn what_cannot_be_read_or_changed_is_named_and_left_alone() {
    let home = Home::new();
    home.remember(&["tea, no sugar"]);
    let place = home.path("memory");
    let dir = place.to_str().unwrap();
    home.ok(&["sync", dir]);
    let file = holding(&place, "tea");
    edit(&file, "\"kind\": \"semantic\"", "\"kind\": \"identity\"");
    std::fs::write(place.join("broken.ump.md"), "---\nkind: semantic\n").unwrap();
    std::fs::write(place.join("notes.txt"), "not a record").unwrap();
    let ended = home.run(&["sync", dir, "--json"]);
    check(&ended, 1, &["2 files have problems"]);
    let sum: Value = serde_json::from_str(&ended.out).unwrap();
    assert!(sum["problems"].to_string().contains("kind cannot be changed in a file"), "{sum}");
    assert!(sum["problems"].to_string().contains("broken.ump.md"), "{sum}");
    assert!(std::fs::read_to_string(&file).unwrap().contains("identity"), "left alone");
    assert_eq!(std::fs::read_to_string(place.join("notes.txt")).unwrap(), "not a record");
    std::fs::write(place.join(".yore-sync.json"), "{").unwrap();
    home.fails(&["sync", dir], 2, &["damaged", "remove it"]);
    std::fs::remove_file(place.join(".yore-sync.json")).unwrap();
    std::fs::remove_file(place.join("broken.ump.md")).unwrap();
    edit(&file, "\"kind\": \"identity\"", "\"kind\": \"semantic\"");
    let found = home.json(&["sync", dir]);
    assert_eq!(found["written"], 0, "files are matched by their ids: {found}");
    assert_eq!(home.json(&["sync", dir])["unchanged"], 1);
    let reader = home.ok(&["token", "issue", "--verbs", "read,write"]);
    home.fails(&["sync", dir, "--token", reader.trim()], 4, &["export"]);
}

#[test]
fn notes_that_name_files_elsewhere_are_refused() {
    let home = Home::new();
    home.remember(&["tea, no sugar"]);
    let place = home.path("memory");
    let dir = place.to_str().unwrap();
    home.ok(&["sync", dir]);
    let outside = home.path("outside.ump.md");
    let file = records(&place).remove(0);
    std::fs::copy(&file, &outside).unwrap();
    let notes = place.join(".yore-sync.json");
    let text = std::fs::read_to_string(&notes).unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    for elsewhere in ["../outside.ump.md", outside.to_str().unwrap(), "a/b.ump.md", "x.txt"] {
        std::fs::write(&notes, text.replace(name, elsewhere)).unwrap();
        home.fails(&["sync", dir], 2, &["no record beside it", "remove it"]);
    }
    assert!(outside.exists());
}

#[test]
fn what_a_file_cannot_say_is_named_and_the_file_stays() {
    let home = Home::new();
    let id = home.remember(&["tea, no sugar"]);
    let place = home.path("memory");
    let dir = place.to_str().unwrap();
    home.ok(&["sync", dir]);
    let file = holding(&place, "tea, no sugar");
    let before = std::fs::read_to_string(&file).unwrap();
    let named = |member: &str| {
        let ended = home.run(&["sync", dir, "--json"]);
        check(&ended, 1, &["1 file has problems"]);
        let sum: Value = serde_json::from_str(&ended.out).unwrap();
        assert!(sum["problems"].to_string().contains(member), "{member}: {sum}");
        assert_eq!((&sum["written"], &sum["revised"]), (&json!(0), &json!(0)), "{sum}");
    };
    let record: Value = serde_json::from_str(before.split("---").nth(1).unwrap()).unwrap();
    let created = record["time"]["created"].as_str().unwrap();
    for member in ["created", "valid_from", "observed"] {
        let line = format!("\"{member}\": \"{created}\"");
        edit(&file, &line, &format!("\"{member}\": \"2020-01-01T00:00:00Z\""));
        let edited = std::fs::read_to_string(&file).unwrap();
        named(&format!("time.{member} cannot be changed in a file"));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), edited, "left alone");
        std::fs::write(&file, &before).unwrap();
    }
    edit(&file, "\"actor_kind\": \"user\"", "\"actor_kind\": \"model\"");
    named("provenance cannot be changed in a file");
    // Also when the vault moved on meanwhile and says the same.
    home.ok(&["remember", "tea, no sugar"]);
    let edited = std::fs::read_to_string(&file).unwrap();
    named("cannot be changed in a file");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), edited, "left alone");
    std::fs::write(&file, &before).unwrap();
    home.ok(&["sync", dir]);

    let new = place.join("new.ump.md");
    let text = "---\nkind: semantic\ntags: [a, b]\ntitle: Tea\n---\n\nGreen tea.\n";
    std::fs::write(&new, text).unwrap();
    named("tags is no member of a record");
    assert_eq!(std::fs::read_to_string(&new).unwrap(), text, "kept as it is");
    assert_eq!(home.all(), ["tea, no sugar"]);
    std::fs::write(&new, "---\nkind: semantic\n---\n\nGreen tea.\n").unwrap();
    assert_eq!(home.json(&["sync", dir])["taken_in"], 1);
    assert_eq!(home.json(&["history", &id])[0]["body"]["text"], "tea, no sugar");
}

#[test]
fn an_edited_text_stays_true_for_as_long_as_it_was() {
    let home = Home::new();
    let place = home.path("memory");
    let dir = place.to_str().unwrap();
    std::fs::create_dir(&place).unwrap();
    let times = "time: {created: '2021-01-01T00:00:00Z', valid_from: '2020-01-01T00:00:00Z', valid_to: '2021-01-01T00:00:00Z'}";
    let text = format!("---\nkind: semantic\n{times}\n---\n\nI lived in Bern.\n");
    std::fs::write(place.join("bern.ump.md"), text).unwrap();
    assert_eq!(home.json(&["sync", dir])["taken_in"], 1);
    let file = holding(&place, "Bern");
    edit(&file, "I lived in Bern.", "I lived in Basel.");
    let sum = home.json(&["sync", dir]);
    assert_eq!(sum["revised"], 1, "{sum}");
    let listed = home.json(&["list", "--all"]);
    let head = &listed["head"];
    assert_eq!(head["body"]["text"], "I lived in Basel.", "{listed}");
    assert_eq!(head["time"]["valid_to"], 1_609_459_200_000_000_u64, "{listed}");
    assert_eq!(head["time"]["valid_from"], 1_577_836_800_000_000_u64, "{listed}");
    edit(&holding(&place, "Basel"), "\"valid_to\": \"2021-01-01T00:00:00Z\"", "\"valid_to\": null");
    assert_eq!(home.json(&["sync", dir])["revised"], 1);
    assert!(home.json(&["list", "--all"])["head"]["time"].get("valid_to").is_none());
}

#[test]
fn a_file_that_changes_while_a_person_decides_is_proposed_again() {
    let home = Home::new();
    let id = home.remember(&["the code is 1"]);
    let place = home.path("memory");
    let dir = place.to_str().unwrap();
    home.ok(&["sync", dir]);
    let file = holding(&place, "the code is 1");
    edit(&file, "the code is 1", "the code is 2");
    home.ok(&["revise", &id, "the code is 3"]);
    assert_eq!(home.json(&["sync", dir])["proposed"], 1);
    edit(&file, "the code is 2", "the code is 4");
    let again = home.json(&["sync", dir]);
    assert_eq!((&again["proposed"], &again["revised"]), (&json!(1), &json!(0)), "{again}");
    assert_eq!(home.all(), ["the code is 3"], "nobody decided yet");
    assert_eq!(home.json(&["review", "list"]).as_array().unwrap().len(), 2);
}

#[test]
fn an_agent_that_keeps_a_directory_in_step_loses_no_file() {
    let (home, other) = (Home::new(), Home::new());
    other.remember(&["tea, no sugar"]);
    let place = home.path("memory");
    let dir = place.to_str().unwrap();
    other.ok(&["export", "--format", "ump.md", "--out", dir]);
    let urn = {
        let text = std::fs::read_to_string(holding(&place, "tea")).unwrap();
        let record: Value = serde_json::from_str(text.split("---").nth(1).unwrap()).unwrap();
        record["id"].as_str().unwrap().to_owned()
    };
    let server = home.serve();
    let token = home.ok(&["token", "issue", "--verbs", "read,write,export,derive"]);
    let token = token.trim();
    let first = home.json(&["sync", dir, "--token", token]);
    assert_eq!((&first["taken_in"], &first["removed"]), (&json!(1), &json!(0)), "{first}");
    for _ in 0..2 {
        let next = home.json(&["sync", dir, "--token", token]);
        assert_eq!((&next["unchanged"], &next["removed"]), (&json!(1), &json!(0)), "{next}");
        holding(&place, "tea, no sugar");
        assert_eq!(records(&place).len(), 1);
    }
    let path = format!("GET /ump/memory/{}", urn.replace(':', "%3A"));
    let (status, body) = crate::common::ask(&server.url(), token, &path, "");
    assert!(status == 200 && body.contains("tea, no sugar"), "{status} {body}");
}

#[test]
fn a_watched_directory_follows_both_sides() {
    let home = Home::new();
    let _server = home.serve();
    home.remember(&["tea, no sugar"]);
    let place = home.path("memory");
    let mut watcher = home.command(&["sync", place.to_str().unwrap(), "--watch"]).spawn().unwrap();
    let within = |what: &dyn Fn() -> bool| {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while !what() {
            assert!(std::time::Instant::now() < deadline, "it did not follow");
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    };
    let holds = |text: &str| {
        place.is_dir()
            && records(&place)
                .iter()
                .any(|path| std::fs::read_to_string(path).is_ok_and(|file| file.contains(text)))
    };
    within(&|| holds("tea, no sugar"));
    home.remember(&["the car is on the third floor"]);
    within(&|| holds("third floor"));
    edit(&holding(&place, "tea, no sugar"), "tea, no sugar", "tea, with milk");
    within(&|| home.all().contains(&"tea, with milk".to_owned()));
    watcher.kill().unwrap();
    watcher.wait().unwrap();
}

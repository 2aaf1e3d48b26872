//! `.omp.zip` archives: out, in, and out again.

use std::path::{Path, PathBuf};

use serde_json::Value;
use yore_archive::{Limits, omp};

use crate::common::{Home, check, files};

fn sample(path: &str) -> PathBuf {
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors");
    PathBuf::from(vectors).join(path)
}

fn arg(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn archived(home: &Home, name: &str) -> (PathBuf, Value) {
    let out = home.path(name);
    let done = home.json(&["export", "--format", "omp.zip", "--out", arg(&out)]);
    (out, done)
}

#[test]
fn omp_088_a_vault_goes_out_and_in_and_out_with_the_same_bytes() {
    let (home, other) = (Home::new(), Home::new());
    let revised = home.remember(&["--tag", "drinks", "tea, no sugar"]);
    home.ok(&["revise", &revised, "coffee, black"]);
    home.remember(&["--label", "health", "allergic to peanuts"]);
    let samples = sample("connectors");
    home.json(&["import", arg(&samples)]);
    let (first, done) = archived(&home, "first.omp.zip");
    let (again, _) = archived(&home, "again.omp.zip");
    let bytes = std::fs::read(&first).unwrap();
    assert_eq!(bytes, std::fs::read(&again).unwrap(), "the same vault, the same bytes");

    let reader = omp::Reader::open(&first, Limits::default()).unwrap();
    let counts = &reader.manifest().counts;
    assert_eq!(done["conversations"], counts.conversations);
    assert!(counts.conversations > 20 && counts.attachments > Some(5), "{counts:?}");
    assert_eq!(done["missing_attachments"], 0, "{done}");

    let restored = other.json(&["import", arg(&first)]);
    assert_eq!(restored["skipped"], serde_json::json!([]), "{restored}");
    assert_eq!(restored["imported"], restored["found"], "{restored}");
    assert_eq!(restored["proposed"], 0, "what was asked before is not asked again: {restored}");
    let (second, _) = archived(&other, "second.omp.zip");
    assert!(bytes == std::fs::read(&second).unwrap(), "a restored vault, the same bytes");
    let twice = other.json(&["import", arg(&first)]);
    assert_eq!((&twice["imported"], &twice["duplicates"]), (&0.into(), &restored["found"]));
    let kept = other.json(&["get", &revised]);
    assert!(kept.to_string().contains("coffee, black"), "{kept}");
    assert_eq!(files(&home.path("")).iter().filter(|path| path.ends_with(".tmp")).count(), 0);
}

/// The first of January 2026, in microseconds.
const START: i64 = 1_767_225_600_000_000;

/// As many messages as the requirement states, or a few.
#[test]
fn omp_090_a_backup_of_many_messages_restored_and_backed_up_again_has_the_same_bytes() {
    let full = std::env::var_os("YORE_FULL").is_some();
    let (talks, each) = if full { (1000, 100) } else { (20, 50) };
    let (home, other) = (Home::new(), Home::new());
    let mut lines = String::new();
    for talk in 0..talks {
        let said = (0..each).map(|number| {
            let text = format!("message {number} of talk {talk} is about hive {}", number % 7);
            serde_json::json!({
                "id": format!("{number:08x}-0000-4000-8000-{talk:012x}"), "text": text,
                "role": if number % 2 == 0 { "user" } else { "assistant" }, "content": text,
                "at": START + number * 60_000_000,
            })
        });
        let item = serde_json::json!({
            "item": "conversation",
            "conversation": {
                "id": format!("{talk:08x}-1111-4111-8111-111111111111"),
                "title": format!("Talk {talk}"), "platform": "claude", "tags": [],
                "created": START, "updated": START + each * 60_000_000,
            },
            "messages": said.collect::<Vec<Value>>(),
        });
        lines.push_str(&format!("{item}\n"));
    }
    let taken = home.piped(&["import", "--json", "-"], lines.as_bytes());
    assert_eq!(taken.code, 0, "{taken:?}");
    home.remember(&["tea, no sugar"]);
    let out = |home: &Home, name: &str| {
        let path = home.path(name);
        let done = home.json(&["backup", arg(&path)]);
        assert_eq!(done["messages"], talks * each, "{done}");
        path
    };
    let first = out(&home, "first.omp.zip");
    other.json(&["restore", arg(&first)]);
    let second = out(&other, "second.omp.zip");
    let (first, second) = (std::fs::read(first).unwrap(), std::fs::read(second).unwrap());
    assert!(first == second, "{} and {} bytes", first.len(), second.len());
}

#[test]
fn an_empty_vault_is_an_archive_too() {
    let home = Home::new();
    let (out, done) = archived(&home, "empty.omp.zip");
    assert_eq!((&done["conversations"], &done["memories"]), (&0.into(), &0.into()));
    omp::Reader::open(&out, Limits::default()).unwrap();
    home.fails(&["export", "--format", "omp.zip"], 2, &["--out"]);
    home.fails(&["export", "--format", "tar"], 2, &["omp.zip"]);
}

#[test]
fn omp_087_what_is_not_whole_or_not_safe_brings_nothing_in() {
    let home = Home::new();
    let verdicts: Value =
        serde_json::from_slice(&std::fs::read(sample("omp/vectors.json")).unwrap()).unwrap();
    let rejected = verdicts["reject"].as_object().unwrap();
    assert!(rejected.len() > 5);
    for name in rejected.keys() {
        let ended = home.run(&["import", arg(&sample("omp").join(name))]);
        check(&ended, 2, &["nothing in it could be read", name]);
    }
    let out = home.ok(&["export"]);
    assert_eq!(out, "", "nothing came in");
}

#[test]
fn omp_085_every_given_archive_is_taken_in_or_turned_down_as_it_should_be() {
    let verdicts: Value =
        serde_json::from_slice(&std::fs::read(sample("omp/vectors.json")).unwrap()).unwrap();
    let password = verdicts["password"].as_str().unwrap();
    for name in verdicts["accept"].as_array().unwrap() {
        let home = Home::new();
        let path = sample("omp").join(name.as_str().unwrap());
        let mut command = home.command(&["import", arg(&path), "--json"]);
        let ended = command.env("YORE_ARCHIVE_PASSWORD", password).output().unwrap();
        let ended = crate::common::ended(ended);
        let empty = name == "empty.omp.zip";
        // What holds nothing is read, and there is nothing to take in.
        assert_eq!(ended.code, if empty { 2 } else { 0 }, "{name}: {ended:?}");
        let done: Value = serde_json::from_str(&ended.out).unwrap();
        assert_eq!(done["skipped"], serde_json::json!([]), "{name}: {done}");
        assert_eq!(done["imported"], done["found"], "{name}: {done}");
        assert_eq!(done["found"] == 0, empty, "{name}: {done}");
    }
    for (name, why) in verdicts["reject"].as_object().unwrap() {
        let home = Home::new();
        let ended = home.run(&["import", arg(&sample("omp").join(name)), "--json"]);
        assert_eq!(ended.code, 2, "{name}: {ended:?}");
        let done: Value = serde_json::from_str(&ended.out).unwrap();
        let why = why.as_str().unwrap();
        if why == "manifest" {
            // Without a manifest it is no archive, and nothing in it has a known form.
            assert!(done["exports"]["unread"].as_u64() > Some(0), "{name}: {done}");
        } else {
            let said = done["skipped"][0]["reason"].as_str().unwrap();
            assert!(said.starts_with(&format!("{why}: ")), "{name}: {why}: {said}");
        }
        assert_eq!(home.ok(&["export"]), "", "{name}");
    }
}

#[test]
fn omp_090_a_backup_restored_into_an_empty_vault_is_backed_up_to_the_same_bytes() {
    let (home, other) = (Home::new(), Home::new());
    let revised = home.remember(&["--tag", "drinks", "tea, no sugar"]);
    home.ok(&["revise", &revised, "coffee, black"]);
    let forgotten = home.remember(&["lives in Bern"]);
    home.ok(&["forget", &forgotten]);
    home.remember(&["lives in Bern"]);
    home.remember(&["--no-export", "--id", "01900000-0000-7000-8000-000000000001", "for me alone"]);
    home.json(&["import", arg(&sample("connectors"))]);
    let (first, second) = (home.path("a.omp.zip"), other.path("b.omp.zip"));
    let done = home.json(&["backup", arg(&first)]);
    assert_eq!(done["kept_inside"], 0, "a backup holds everything: {done}");
    home.fails(&["backup", arg(&first)], 6, &["--force"]);

    let would = other.json(&["restore", "--dry-run", arg(&first)]);
    assert_eq!(would["imported"], would["found"], "{would}");
    let restored = other.json(&["restore", arg(&first)]);
    assert_eq!(restored["skipped"], serde_json::json!([]), "{restored}");
    assert_eq!(restored["imported"], restored["found"], "{restored}");
    other.json(&["backup", arg(&second)]);
    assert!(std::fs::read(&first).unwrap() == std::fs::read(&second).unwrap(), "the same bytes");
    let history = |home: &Home, id: &str| home.json(&["history", id]);
    for id in [&revised, &forgotten] {
        assert_eq!(history(&home, id), history(&other, id));
    }
    assert_eq!(history(&other, &revised).as_array().unwrap().len(), 2);
    assert!(other.ok(&["get", "01900000-0000-7000-8000-000000000001"]).contains("for me alone"));
    let twice = other.json(&["restore", arg(&first)]);
    assert_eq!((&twice["imported"], &twice["duplicates"]), (&0.into(), &restored["found"]));
}

#[test]
fn omp_091_a_part_of_an_archive_is_restored() {
    let (home, other) = (Home::new(), Home::new());
    let paths = ["connectors/chatgpt/legacy-2024", "connectors/grok"].map(sample);
    home.json(&["import", arg(&paths[0]), arg(&paths[1])]);
    let out = home.path("all.omp.zip");
    home.json(&["backup", arg(&out)]);
    let done = other.json(&["restore", "--platform", "grok", arg(&out)]);
    assert_eq!((&done["imported"], &done["found"]), (&1.into(), &1.into()), "{done}");
    assert!(done["left_out"].as_u64() >= Some(3), "{done}");
    let none = other.json(&["restore", "--until", "2001-01-01", "--dry-run", arg(&out)]);
    assert_eq!(none["found"], 0, "{none}");
    other.fails(&["restore", "--platform", "grok", "copy.yore"], 2, &["whole"]);
    other.fails(&["restore", arg(&other.path("missing.omp.zip"))], 3, &["missing"]);
}

#[test]
fn what_consent_keeps_inside_is_in_no_archive_for_others() {
    let home = Home::new();
    home.remember(&["--no-export", "for me alone"]);
    home.remember(&["for everybody"]);
    let (out, done) = archived(&home, "given.omp.zip");
    assert_eq!((&done["memories"], &done["kept_inside"]), (&1.into(), &1.into()), "{done}");
    let other = Home::new();
    other.json(&["import", arg(&out)]);
    assert_eq!(other.all(), ["for everybody"]);
    let own = home.path("own.omp.zip");
    let args = ["export", "--format", "omp.zip", "--unredacted", "--out", arg(&own)];
    assert_eq!(home.json(&args)["memories"], 2);
}

#[test]
fn omp_089_a_backup_under_a_password_is_opened_by_openssl_and_restored() {
    let home = Home::new();
    home.remember(&["allergic to peanuts"]);
    let out = home.path("all.omp.zip.enc");
    let with = |home: &Home, password: &str, args: &[&str]| {
        let mut command = home.command(args);
        crate::common::ended(command.env("YORE_ARCHIVE_PASSWORD", password).output().unwrap())
    };
    check(&home.run(&["backup", arg(&out)]), 2, &["YORE_ARCHIVE_PASSWORD"]);
    let done = with(&home, "correct horse", &["backup", arg(&out), "--json"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(home.path("all.omp.zip.enc.hmac").exists());
    let other = Home::new();
    let wrong = with(&other, "wrong", &["restore", arg(&out), "--json"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
    let done = with(&other, "correct horse", &["restore", arg(&out), "--json"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(other.all(), ["allergic to peanuts"]);

    let clear = home.path("clear.omp.zip");
    let options = ["enc", "-d", "-aes-256-cbc", "-pbkdf2", "-iter", "600000", "-md", "sha256"];
    let files = ["-pass", "pass:correct horse", "-in", arg(&out), "-out", arg(&clear)];
    let opened = home.outside("openssl", &[&options[..], &files].concat()).output();
    match opened {
        Ok(opened) => assert!(opened.status.success(), "{opened:?}"),
        Err(_) => return println!("NOT RUN: openssl is not installed"),
    }
    assert_eq!(
        omp::Reader::open(&clear, Limits::default()).unwrap().manifest().counts.memories,
        Some(1)
    );
}

#[test]
fn omp_089_an_archive_under_a_password_comes_in() {
    let home = Home::new();
    let path = sample("omp/good.omp.zip.enc");
    let run = |password: &str| {
        let mut command = home.command(&["import", arg(&path), "--json"]);
        crate::common::ended(command.env("YORE_ARCHIVE_PASSWORD", password).output().unwrap())
    };
    let wrong = run("wrong");
    assert_eq!(wrong.code, 2, "{wrong:?}");
    assert!(wrong.out.contains("wrong password or damaged file"), "{wrong:?}");
    let verdicts: Value =
        serde_json::from_slice(&std::fs::read(sample("omp/vectors.json")).unwrap()).unwrap();
    let done = run(verdicts["password"].as_str().unwrap());
    let done: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(done["imported"], done["found"], "{done}");
    assert!(done["imported"].as_u64() >= Some(2), "{done}");
    check(&home.run(&["import", arg(&path)]), 2, &["YORE_ARCHIVE_PASSWORD"]);
}

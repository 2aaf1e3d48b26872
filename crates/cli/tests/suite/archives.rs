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

#[test]
fn an_empty_vault_is_an_archive_too() {
    let home = Home::new();
    let (out, done) = archived(&home, "empty.omp.zip");
    assert_eq!((&done["conversations"], &done["memories"]), (&0.into(), &0.into()));
    omp::Reader::open(&out, Limits::default()).unwrap();
    home.fails(&["export", "--format", "omp.zip"], 2, &["--out"]);
    let out = arg(&out);
    let args = ["export", "--format", "omp.zip", "--unredacted", "--out", out];
    home.fails(&args, 2, &["portable records"]);
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

//! `yore delete`, and that nothing brings back what went.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::{Home, check};

fn sample(path: &str) -> PathBuf {
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors");
    PathBuf::from(vectors).join(path)
}

fn arg(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The conversations of a vault: platform, id and the ids of their messages.
fn talks(home: &Home) -> Vec<(String, String, Vec<String>)> {
    let out = home.ok(&["export"]);
    let items = out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    items
        .filter(|item| item["item"] == "conversation")
        .map(|item| {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let messages = item["messages"].as_array().unwrap();
            let ids = messages.iter().map(|message| text(&message["id"])).collect();
            (text(&item["conversation"]["platform"]), text(&item["conversation"]["id"]), ids)
        })
        .collect()
}

#[test]
fn omp_094_what_is_deleted_is_said_first_goes_and_does_not_come_back() {
    let home = Home::new();
    let paths = ["connectors/chatgpt/legacy-2024", "connectors/grok"].map(sample);
    let import = ["import", "--no-proposals", arg(&paths[0]), arg(&paths[1])];
    let first = home.json(&import);
    let archive = home.path("before.omp.zip");
    home.json(&["backup", arg(&archive)]);
    let copy = home.path("before.yore");
    home.ok(&["backup", arg(&copy)]);
    let before = talks(&home);
    let (_, grok, _) = before.iter().find(|(platform, ..)| platform == "grok").unwrap();
    let (_, chat, messages) = before.iter().find(|(platform, ..)| platform == "chatgpt").unwrap();

    let would = home.json(&["delete", "--platform", "grok", "--dry-run"]);
    assert_eq!(
        would["scope"],
        json!({"conversations": 1, "messages": 5, "memories": 0}),
        "{would}"
    );
    assert_eq!(talks(&home), before, "it was only said");
    check(&home.run(&["delete", "--platform", "grok"]), 2, &["--yes", "1 conversation"]);
    let done = home.json(&["delete", "--platform", "grok", "--yes"]);
    assert_eq!(done["deleted"], would["scope"], "{done}");
    let one = format!("{chat}/{}", messages[1]);
    let done = home.json(&["delete", "--message", &one, "--yes"]);
    assert_eq!(done["deleted"]["messages"], 1, "{done}");

    let gone = |what: &str| {
        let after = talks(&home);
        assert!(!after.iter().any(|(_, id, _)| id == grok), "{what}");
        let (.., left) = after.iter().find(|(_, id, _)| id == chat).unwrap();
        assert_eq!(left.len(), messages.len() - 1, "{what}");
        assert!(!left.contains(&messages[1]), "{what}");
    };
    gone("a deletion");
    let again = home.json(&import);
    assert_eq!(again["erased"], 1, "{again}");
    assert_eq!(again["imported"], 0, "{again}");
    gone("an import");
    let again = home.json(&["restore", arg(&archive)]);
    assert_eq!((&again["erased"], &again["imported"]), (&1.into(), &0.into()), "{again}");
    gone("an archive");
    home.ok(&["restore", "--yes", arg(&copy)]);
    gone("a copy");
    assert_eq!(first["erased"], 0);
}

#[test]
fn a_vault_is_emptied_but_for_what_a_legal_hold_protects() {
    let home = Home::new();
    let kept = home.remember(&["evidence"]);
    home.remember(&["tea, no sugar"]);
    let forgotten = home.remember(&["lives in Bern"]);
    home.ok(&["forget", &forgotten]);
    home.json(&["import", arg(&sample("connectors/claude/data-2026-03"))]);
    home.ok(&["legal-hold", "set", &kept]);
    check(&home.run(&["delete"]), 2, &["nothing says what"]);
    check(&home.run(&["delete", "--everything", "--memory", &kept]), 2, &["exclude"]);
    let ended = home.run(&["delete", "--everything", "--yes", "--json"]);
    assert_eq!(ended.code, 6, "{ended:?}");
    let done: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(done["kept"][0]["item"], kept, "{done}");
    assert_eq!(home.all(), ["evidence"]);
    home.ok(&["legal-hold", "lift", &kept]);
    home.ok(&["delete", "--everything", "--yes"]);
    assert_eq!(home.ok(&["export"]), "");
    assert_eq!(home.json(&["review", "list"]), json!([]), "what was proposed is gone, too");
    for text in ["tea, no sugar", "lives in Bern", "evidence"] {
        assert!(home.recall(&[text]).is_empty(), "{text}");
    }
}

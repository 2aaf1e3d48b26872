//! Portable records: out of one vault, into another, and notes of other tools.

use std::path::Path;

use serde_json::{Value, json};

use crate::common::{Home, check, files};

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn arg(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A vault with everything that a portable record can say.
fn furnished() -> Home {
    let home = Home::new();
    let id = home.remember(&["--project", "yore", "the capital is Rome"]);
    home.ok(&["revise", &id, "the capital is Oslo"]);
    home.remember(&["--kind", "procedural", "  run the gate\n\nbefore handoff \n"]);
    let record = json!({
        "kind": "identity",
        "body": {"text": "tea, no sugar", "structured": {"n": 1.5, "ä": ["ö", null]}},
        "scope": {"owner": "owner", "project": "a/b", "visibility": "shared"},
        "time": {"created": "2026-06-04T12:00:00.50+02:00"},
        "lifecycle": {"confidence": 1, "decay": "linear", "status": "candidate"},
        "relations": [{"type": "about", "target": "entity:tea"}],
        "consent": {"retention": "P20Y", "redact": ["body.structured.secret"]},
    });
    remember(&home, &record);
    home
}

/// Remembers a record over the protocol itself.
fn remember(home: &Home, record: &Value) {
    let server = home.serve();
    let token = home.ok(&["token", "owner"]);
    let body = json!({"record": record}).to_string();
    let answer = crate::common::post(&server.url(), token.trim(), "/ump/remember", &body);
    assert_eq!(answer["result"], "created", "{answer}");
}

#[test]
fn ump_100_ump_101_a_vault_moves_through_every_form_and_comes_out_the_same() {
    let home = furnished();
    let single = |home: &Home, format: &str| home.ok(&["export", "--format", format]);
    let before = single(&home, "ump.json");
    let records: Value = serde_json::from_str(&before).unwrap();
    assert_eq!(records.as_array().unwrap().len(), 4, "{before}");
    assert!(before.contains("  run the gate\\n\\nbefore handoff \\n"), "{before}");
    assert!(records.as_array().unwrap().iter().all(|one| one["integrity"].is_object()));
    for format in ["ump.json", "ndjson", "ump.md"] {
        let out = home.path(&format!("out.{format}"));
        home.ok(&["export", "--format", format, "--out", arg(&out)]);
        let other = Home::new();
        let would = other.json(&["import", "--dry-run", arg(&out)]);
        assert_eq!(would["imported"], 3, "{format}: {would}");
        assert!(other.all().is_empty(), "a dry run changes nothing");
        let done = other.json(&["import", arg(&out)]);
        assert_eq!((&done["found"], &done["imported"]), (&json!(3), &json!(3)), "{format}: {done}");
        assert_eq!(single(&other, "ump.json"), before, "{format}");
        assert_eq!(single(&other, "ndjson"), single(&home, "ndjson"), "{format}");
        let again = other.json(&["import", arg(&out)]);
        assert_eq!((&again["imported"], &again["duplicates"]), (&json!(0), &json!(3)), "{again}");
    }
    let directory = home.path("out.ump.md");
    assert_eq!(files(&directory).len(), 4);
    home.fails(&["export", "--format", "ump.md"], 2, &["--out"]);
    let again = ["export", "--format", "ump.md", "--out", arg(&directory)];
    home.fails(&again, 6, &["is not empty", "yore sync"]);
    home.fails(&["export", "--format", "xml"], 2, &["ump.json, ndjson, ump.md or omp.zip"]);
}

#[test]
fn ump_104_an_export_keeps_inside_what_consent_says() {
    let home = Home::new();
    let record = |text: &str, consent: Value| {
        json!({"kind": "semantic", "scope": {"owner": "owner"}, "consent": consent,
            "body": {"text": text, "structured": {"code": "1234"}}})
    };
    remember(&home, &record("stays here", json!({"exportable": false})));
    remember(&home, &record("the door", json!({"redact": ["body.structured.code"]})));
    let out = home.run(&["export", "--format", "ndjson"]);
    assert!(!out.out.contains("stays here") && !out.out.contains("1234"), "{out:?}");
    assert!(out.out.contains("the door") && out.err.contains("1 stay inside"), "{out:?}");
    assert!(!out.out.contains("integrity"), "a redacted copy carries no proof");
    let whole = home.ok(&["export", "--format", "ndjson", "--unredacted"]);
    assert!(whole.contains("stays here") && whole.contains("1234"), "{whole}");
    let token = home.ok(&["token", "issue", "--verbs", "read,write"]);
    let reader = ["export", "--format", "ndjson", "--token", token.trim()];
    home.fails(&reader, 4, &["export"]);
    let token = home.ok(&["token", "issue", "--verbs", "read,export"]);
    let args = ["export", "--format", "ndjson", "--unredacted", "--token", token.trim()];
    let agent = home.ok(&args);
    assert!(agent.contains("the door"), "{agent}");
    assert!(!agent.contains("stays here") && !agent.contains("1234"), "{agent}");
}

#[test]
fn ump_132_notes_of_other_tools_come_in_as_candidates() {
    let home = Home::new();
    let notes = home.path("notes");
    let put = |name: &str, text: &str| {
        let path = notes.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put(".obsidian/app.json", "{}");
    put(
        "day.md",
        "---\ntags: [tea]\n---\n# Preferences\n\nTea with [[Anna]].\n\n# History\n\nRain.\n",
    );
    put("CLAUDE.md", "# Build\n\nRun the gate.\n");
    put("sub/AGENTS.md", "Be brief.\n");
    put("sub/big.md", &"x".repeat(600_000));
    put("picture.png", "\u{89}PNG");
    put("node_modules/readme.md", "nobody's memory");
    let would = home.json(&["import", "--dry-run", arg(&notes)]);
    assert_eq!((&would["found"], &would["imported"]), (&json!(4), &json!(4)), "{would}");
    let done = home.json(&["import", "--project", "home", arg(&notes)]);
    assert_eq!(done["imported"], 4, "{done}");
    let skipped: Vec<&str> = done["skipped"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["item"].as_str().unwrap())
        .collect();
    assert_eq!(skipped, ["picture.png", "sub/big.md"]);
    assert!(done["skipped"][1]["reason"].as_str().unwrap().contains("500 KiB"), "{done}");
    let list = home.ok(&["list", "--all", "--json"]);
    let rows: Vec<Value> = list.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(rows.iter().all(|row| row["head"]["status"] == "candidate"), "{list}");
    assert!(rows.iter().all(|row| row["head"]["scope"]["project"] == "home"), "{list}");
    let tea =
        rows.iter().find(|row| row["head"]["body"]["text"].as_str().unwrap().contains("Anna"));
    assert_eq!(tea.unwrap()["head"]["kind"], "identity");
    let again = home.json(&["import", "--project", "home", arg(&notes)]);
    assert_eq!((&again["imported"], &again["duplicates"]), (&json!(0), &json!(4)), "{again}");
    let shown = home.ok(&["import", arg(&notes)]);
    assert!(shown.contains("known already") && shown.contains("PASSED OVER"), "{shown}");
}

#[test]
fn ump_105_what_cannot_be_taken_in_is_named_with_its_reason() {
    let home = Home::new();
    let good = json!({"ump": "1.0", "id": "urn:ump:good", "kind": "semantic",
        "body": {"text": "tea"}, "scope": {"owner": "me", "visibility": "private"},
        "time": {"created": "2026-06-04T10:00:00Z"}});
    let mut major = good.clone();
    major["ump"] = json!("2.0");
    major["id"] = json!("urn:ump:major");
    let mut forged = good.clone();
    forged["id"] = json!("urn:ump:forged");
    forged["integrity"] = json!({"content_hash": "blake3:aaaa", "signature": "ed25519:AAAA",
        "signer": "did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp"});
    let lines = format!("{good}\n{major}\n{forged}\n{{\"ump\": \n");
    let file = home.path("records.ndjson");
    std::fs::write(&file, lines).unwrap();
    let ended = home.run(&["import", "--json", arg(&file)]);
    check(&ended, 1, &["3 of 4 items"]);
    let sum: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!((&sum["found"], &sum["imported"]), (&json!(4), &json!(1)), "{sum}");
    let named: Vec<&str> = sum["rejected"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["item"].as_str().unwrap())
        .collect();
    assert_eq!(named, ["line 4", "urn:ump:major", "urn:ump:forged"], "{sum}");
    assert!(sum["rejected"][1]["reason"].as_str().unwrap().contains("1.0 or 0.1"), "{sum}");
    assert!(sum["rejected"][2]["reason"].as_str().unwrap().contains("content_hash"), "{sum}");
    assert_eq!(home.all(), ["tea"]);
    for (name, bytes, words) in [
        ("a.json", &b"{\"name\": \"package\"}"[..], "neither records"),
        ("b.zip", b"PK\x03\x04....", "not a readable zip"),
        ("c.txt", b"tea", "--lines"),
        ("d.ump.json", b"[{\"ump\": \"1.0\"", "d.ump.json"),
        ("e.ump.md", b"---\nkind: semantic\n", "e.ump.md"),
    ] {
        let path = home.path(name);
        std::fs::write(&path, bytes).unwrap();
        let ended = home.run(&["import", arg(&path)]);
        check(&ended, 2, &[]);
        let said = format!("{}{}", ended.out, ended.err);
        assert!(said.contains(words), "{name}: {said}");
    }
    let deep = format!("[{}{}]", "[".repeat(200), "]".repeat(200));
    let path = home.path("deep.ump.json");
    std::fs::write(&path, deep).unwrap();
    check(&home.run(&["import", arg(&path)]), 2, &["nothing in it"]);
    assert_eq!(text(&file).lines().count(), 4);
}

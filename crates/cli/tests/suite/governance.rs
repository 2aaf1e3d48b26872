//! Grants, tokens, approval, undo, expiry, audit.

use crate::common::{Home, check};

#[test]
fn a_grant_reaches_its_labels_and_ends_when_it_is_revoked() {
    let home = Home::new();
    home.remember(&["--label", "work.calendar", "stand-up at nine"]);
    home.remember(&["--label", "health", "blood pressure 120/80"]);
    let issue = [
        "grant",
        "issue",
        "--agent",
        "scheduler",
        "--read",
        "work.calendar,preferences",
        "--write",
        "work.calendar",
        "--max",
        "internal",
        "--ttl",
        "1h",
    ];
    let token = home.ok(&issue);
    let token = token.trim();
    assert!(token.starts_with("yore_v_") && !token.contains(char::is_whitespace), "{token:?}");
    let as_agent = |args: &[&str]| home.run(&[args, &["--token", token]].concat());
    let seen = as_agent(&["list"]);
    assert!(seen.out.contains("stand-up") && !seen.out.contains("blood"), "{seen:?}");
    check(&as_agent(&["remember", "--label", "health", "fine"]), 4, &["forbidden"]);
    assert_eq!(as_agent(&["remember", "--label", "work.calendar", "lunch at one"]).code, 0);
    let grants = home.json(&["grant", "list"]);
    let id = grants[0]["id"].as_str().unwrap().to_owned();
    let longer = home.json(&["grant", "extend", &id[..8], "--by", "1h"]);
    assert!(longer["expires"].as_i64() > grants[0]["expires"].as_i64());
    home.ok(&["grant", "revoke", &id[..8]]);
    check(&as_agent(&["list"]), 4, &["not authenticated"]);
    assert_eq!(home.json(&["grant", "list"]).as_array().unwrap().len(), 0);
    home.fails(&["grant", "issue", "--agent", "x"], 2, &["allow nothing"]);
    home.fails(&["grant", "show", "ffffffff"], 3, &["nothing is called"]);
}

#[test]
fn tokens_are_written_alone_and_revoked_by_a_short_id() {
    let home = Home::new();
    for args in [&["token", "owner"][..], &["token", "service"][..]] {
        let token = home.ok(args);
        assert_eq!(token.lines().count(), 1, "{token}");
        assert!(token.starts_with("yore_"), "{token}");
    }
    let owner = home.ok(&["token", "owner", "--note", "mine"]);
    let list = home.json(&["token", "list"]);
    let mine = list.as_array().unwrap().iter().find(|token| token["note"] == "mine").unwrap();
    assert_eq!(home.run(&["list", "--token", owner.trim()]).code, 0);
    home.ok(&["token", "revoke", &mine["id"].as_str().unwrap()[..8]]);
    check(&home.run(&["list", "--token", owner.trim()]), 4, &["revoked"]);
    let bad = ["token", "issue", "--verbs", "read,fly"];
    home.fails(&bad, 2, &["must be one of read, write"]);
    home.fails(&["token", "issue", "--verbs", "read", "--scope", "x"], 2, &["project=NAME"]);
}

#[test]
fn what_waits_is_shown_edited_approved_and_rejected() {
    let home = Home::new();
    let held = home.run(&["remember", "--ask", "the door code is 1234", "--json"]);
    assert_eq!(held.code, 5, "{held:?}");
    let hold: serde_json::Value = serde_json::from_str(&held.out).unwrap();
    let hold = hold["held"].as_str().unwrap();
    assert!(home.all().is_empty(), "nothing is written before it is approved");
    let shown = home.ok(&["review", "show", &hold[..8]]);
    assert!(shown.contains("the door code is 1234"), "{shown}");
    home.ok(&["review", "approve", &hold[..8], "--edit", "the door code is 4321"]);
    assert_eq!(home.all(), ["the door code is 4321"]);
    home.fails(&["review", "approve", hold], 6, &["decided already"]);
    home.ok(&["review", "rule", "add", "no-health", "--label", "health"]);
    let token = home.ok(&["token", "issue", "--verbs", "read,write", "--agent", "nurse"]);
    let write = ["remember", "--label", "health", "fine", "--token", token.trim()];
    let held = home.fails(&write, 5, &["pending approval", "yore review approve"]);
    assert!(held.out.is_empty(), "a rule of the owner's holds it: {held:?}");
    let waiting = home.json(&["review", "list"]);
    assert_eq!(waiting[0]["reason"]["rule"], "no-health");
    home.ok(&["review", "reject", waiting[0]["id"].as_str().unwrap()]);
    assert_eq!(home.all(), ["the door code is 4321"]);
    home.ok(&["review", "rule", "remove", "no-health"]);
    home.ok(&write);
    assert_eq!(home.all().len(), 2);
}

#[test]
fn what_an_agent_did_is_undone() {
    let home = Home::new();
    let id = home.remember(&["tea, no sugar"]);
    let token = home.ok(&["token", "issue", "--verbs", "read,write", "--agent", "clumsy"]);
    let token = token.trim();
    home.ok(&["remember", "nonsense", "--token", token]);
    home.ok(&["revise", &id, "tea with salt", "--token", token]);
    let plan = home.json(&["undo", "--agent", "clumsy", "--since", "1h", "--dry-run"]);
    assert_eq!(plan["reverted"].as_array().unwrap().len(), 2);
    assert_eq!(home.all().len(), 2, "a dry run changes nothing");
    home.ok(&["undo", "--agent", "clumsy", "--since", "1h"]);
    assert_eq!(home.all(), ["tea, no sugar"]);
}

#[test]
fn expiry_takes_what_its_policy_says_and_merging_makes_one() {
    let home = Home::new();
    home.remember(&["--kind", "working", "--at", "2020-01-01", "old scratch"]);
    let canonical = home.remember(&["tea without sugar"]);
    let duplicate = home.remember(&["he takes his tea without any sugar"]);
    home.fails(&["expire"], 2, &["--older-than"]);
    let args = ["expire", "--older-than", "90d", "--kind", "working"];
    let plan = home.json(&[&args[..], &["--dry-run"]].concat());
    assert_eq!(plan["matched"].as_array().unwrap().len(), 1);
    home.ok(&args);
    assert_eq!(home.all().len(), 2);
    home.ok(&["merge", &canonical, &duplicate, "--strategy", "keep_canonical"]);
    assert_eq!(home.all(), ["tea without sugar"]);
    home.ok(&["feedback", &canonical, "followed"]);
    let memory = home.json(&["get", &canonical]);
    assert_eq!(memory["usage"]["feedback"]["followed"], 1);
}

#[test]
fn the_audit_chain_is_listed_verified_and_exported() {
    let home = Home::new();
    let id = home.remember(&["tea, no sugar"]);
    home.fails(&["get", "00000000-0000-4000-8000-000000000000"], 3, &["not found"]);
    let entries = home.json(&["audit", "list", "--memory", &id[..8]]);
    assert!(entries.as_array().unwrap().iter().any(|entry| entry["operation"] == "remember"));
    let report = home.json(&["audit", "verify"]);
    assert_eq!(report["faults"].as_array().unwrap().len(), 0);
    let file = home.path("audit.ndjson");
    home.ok(&["audit", "export", "--out", file.to_str().unwrap()]);
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.lines().count() >= 2);
    assert!(!text.contains("tea"), "the chain holds no text");
}

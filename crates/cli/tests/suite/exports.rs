//! `yore import` of what other platforms exported.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use yore_archive::{Item, Limits, Note, Report, Source, Talk};

use crate::common::{Home, check};

fn sample(path: &str) -> PathBuf {
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors");
    PathBuf::from(vectors).join(path)
}

fn arg(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn number(done: &Value, name: &str) -> u64 {
    done[name].as_u64().unwrap_or_else(|| panic!("{name}: {done}"))
}

/// What the reader gives, without a vault.
fn read(path: &Path) -> (Vec<Talk>, Vec<Note>, Report) {
    let source = Source::open(&[path.to_owned()], Limits::default()).unwrap();
    let (mut talks, mut notes) = (Vec::new(), Vec::new());
    let report = yore_archive::read(&source, &mut |item| {
        match item {
            Item::Conversation(talk) => talks.push(*talk),
            Item::Memory(note) => notes.push(*note),
            Item::Skipped(_) => {}
        }
        Ok(())
    });
    (talks, notes, report.unwrap())
}

/// The conversations of a vault by id, each with its messages.
fn conversations(home: &Home) -> BTreeMap<String, Value> {
    let out = home.ok(&["export"]);
    let items = out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let talks = items.filter(|item| item["item"] == "conversation");
    talks.map(|talk| (talk["conversation"]["id"].as_str().unwrap().to_owned(), talk)).collect()
}

/// Every item that was found has become one thing or another.
fn adds_up(done: &Value) {
    let outcomes = ["imported", "merged", "duplicates", "held", "proposed"];
    let sum: u64 = outcomes.iter().map(|name| number(done, name)).sum();
    let rejected = done["rejected"].as_array().unwrap().len() as u64;
    assert_eq!(number(done, "found"), sum + rejected, "{done}");
    let exports = &done["exports"];
    let held = ["conversations", "memories", "drawn"].map(|name| number(exports, name));
    assert_eq!(number(done, "found"), held.iter().sum::<u64>(), "{done}");
}

#[test]
fn every_sample_comes_in_as_it_was_read_and_again_changes_nothing() {
    for place in [
        "chatgpt/legacy-2024",
        "chatgpt/chatgpt-sharded.zip",
        "claude/data-2026-03",
        "claude/claude-data-batch-0000.zip",
        "claude/api-style",
        "claude-code",
        "codex",
        "copilot",
        "cursor",
        "gemini",
        "grok",
        "letta",
        "lm-studio",
        "mem0",
        "ollama",
        "open-webui/chat-export-1773480413000.json",
        "open-webui/webui.db",
        "perplexity/gdpr-export",
        "perplexity/rest-thread",
        "perplexity/thread-exporter",
    ] {
        let path = sample("connectors").join(place);
        let (talks, notes, report) = read(&path);
        let home = Home::new();
        let done = home.json(&["import", arg(&path)]);
        adds_up(&done);
        let exports = &done["exports"];
        assert_eq!(number(exports, "conversations"), talks.len() as u64, "{place}");
        assert_eq!(number(exports, "memories"), notes.len() as u64, "{place}");
        assert_eq!(number(exports, "messages"), report.messages, "{place}");
        assert_eq!(number(exports, "branch_messages"), report.branch_messages, "{place}");
        assert_eq!(number(exports, "attachments"), report.attachments, "{place}: {done}");
        assert_eq!(number(exports, "missing_attachments"), report.missing_attachments, "{place}");
        assert_eq!(done["skipped"].as_array().unwrap().len(), report.skipped.len(), "{place}");

        let kept = conversations(&home);
        assert_eq!(kept.len(), talks.len(), "{place}");
        for talk in &talks {
            let there = &kept[&talk.head.id.to_string()];
            assert_eq!(there["messages"], json!(talk.messages), "{place}: {}", talk.head.id);
            assert_eq!(there["conversation"]["foreign"], json!(talk.head)["foreign"], "{place}");
            for blob in &talk.blobs {
                let mut bytes = Vec::new();
                blob.open().unwrap().read_to_end(&mut bytes).unwrap();
                let out = home.path("attachment");
                home.ok(&["attach", "get", &blob.hash.to_string(), "--out", arg(&out)]);
                assert_eq!(std::fs::read(&out).unwrap(), bytes, "{place}");
            }
        }
        let again = home.json(&["import", arg(&path)]);
        adds_up(&again);
        for name in ["imported", "merged", "held", "proposed"] {
            assert_eq!(number(&again, name), 0, "{place}: {name}: {again}");
        }
        assert_eq!(number(&again["exports"], "stored_attachments"), 0, "{place}: {again}");
        assert_eq!(conversations(&home), kept, "{place}");
    }
}

#[test]
fn the_counts_are_those_that_were_expected() {
    let expected: Value =
        serde_json::from_slice(&std::fs::read(sample("connectors/EXPECTED.json")).unwrap())
            .unwrap();
    let sum = |value: &Value| -> u64 {
        value.as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum()
    };
    let counted = |place: &str| {
        let done = Home::new().json(&["import", arg(&sample("connectors").join(place))]);
        done["exports"].clone()
    };
    for place in ["chatgpt/legacy-2024", "chatgpt/sharded-2026"] {
        let (counts, expected) = (counted(place), &expected[place]);
        assert_eq!(counts["conversations"], expected["conversations"], "{place}");
        assert_eq!(number(&counts, "messages"), sum(&expected["active_path_messages"]), "{place}");
        assert_eq!(number(&counts, "branch_messages"), sum(&expected["off_path_messages"]));
        assert_eq!(counts["attachments"], expected["assets_resolved"], "{place}");
        assert_eq!(counts["missing_attachments"], expected["assets_missing"], "{place}");
    }
    let (counts, claude) = (counted("claude/data-2026-03"), &expected["claude/data-2026-03"]);
    let held = ["conversations", "design_chats", "projects"].map(|name| number(claude, name));
    assert_eq!(number(&counts, "conversations"), held.iter().sum::<u64>());
    assert_eq!(counts["empty"], claude["empty_conversations"]);
    assert_eq!(number(&counts, "branch_messages"), sum(&claude["off_path_messages"]));
    for (place, conversations, messages, branches) in [
        ("grok", "conversations", Some("active_path_messages"), Some("off_path_messages")),
        ("letta", "agents", Some("messages"), None),
        ("gemini/ai-studio", "conversations", None, None),
    ] {
        let (counts, expected) = (counted(place), &expected[place]);
        assert_eq!(counts["conversations"], expected[conversations], "{place}: {counts}");
        if let Some(name) = messages {
            assert_eq!(counts["messages"], expected[name], "{place}: {counts}");
        }
        if let Some(name) = branches {
            assert_eq!(counts["branch_messages"], expected[name], "{place}: {counts}");
        }
    }
    // An export and a database hold the same conversation; the database has the memories.
    for place in ["open-webui/chat-export-1773480413000.json", "open-webui/webui.db"] {
        let (counts, expected) = (counted(place), &expected["open-webui"]);
        assert_eq!(counts["conversations"], expected["conversations"], "{place}: {counts}");
        assert_eq!(counts["messages"], expected["active_path_messages"], "{place}: {counts}");
        assert_eq!(counts["branch_messages"], expected["off_path_messages"], "{place}: {counts}");
    }
    let counts = counted("mem0");
    let mem0 = ["platform", "oss", "relations"].map(|name| number(&expected["mem0"], name));
    assert_eq!(number(&counts, "memories"), mem0.iter().sum::<u64>(), "{counts}");
}

#[test]
fn several_exports_come_in_at_once_over_a_server_and_are_found() {
    let (home, client) = (Home::new(), Home::new());
    let server = home.serve();
    let token = home.ok(&["token", "owner"]);
    let (url, token) = (server.url(), token.trim());
    let afar = |args: &[&str]| {
        let all = [args, &["--url", &url, "--token", token]].concat();
        client.json(&all)
    };
    let paths = ["connectors/chatgpt/chatgpt-legacy.zip", "connectors/grok"].map(sample);
    let notes = sample("connectors/memory-files/CLAUDE.md");
    let args = ["import", arg(&paths[0]), arg(&notes), arg(&paths[1])];
    let would = afar(&[&args[..], &["--dry-run"]].concat());
    assert_eq!(number(&would, "duplicates"), 0, "{would}");
    assert!(afar(&["search", "mouse guard"])["results"].as_array().unwrap().is_empty());
    let done = afar(&args);
    for name in ["found", "imported", "proposed", "held"] {
        assert_eq!(done[name], would[name], "{name}: {done} {would}");
    }
    assert_eq!(done["exports"]["platforms"], json!({"chatgpt": 3, "grok": 1}), "{done}");
    assert_eq!(number(&done["exports"], "stored_attachments"), 4, "{done}");
    let again = afar(&args);
    assert_eq!((number(&again, "imported"), number(&again, "proposed")), (0, 0), "{again}");
    assert_eq!(again["duplicates"], again["found"], "{again}");
    let found = afar(&["search", "--in", "conversations", "mouse guard"]);
    assert!(found.to_string().contains("mouse guard"), "{found}");
    // A grant that may not write brings nothing in.
    let reader = home.ok(&["token", "issue", "--verbs", "read", "--agent", "reader"]);
    let url = ["--url", &url, "--token", reader.trim()];
    check(&client.run(&[&args[..], &url].concat()), 4, &[]);
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_comes_in() {
    let home = Home::new();
    let shown = home.ok(&["import", arg(&sample("connectors/cursor"))]);
    for words in ["cursor 4", "imported", "PASSED OVER", "the store lacks it", "an empty row"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let good =
        r#"{"uuid":"7be4d1bd-b180-4bd8-b9d4-5a0b17b9a726","name":"good","chat_messages":[]}"#;
    let cut = home.path("conversations.json");
    std::fs::write(&cut, format!("[{good},{{\"uuid\":1,\"chat_messages\":{{}}}},{{\"uuid\":\"x"))
        .unwrap();
    let done = home.json(&["import", arg(&cut)]);
    assert_eq!((number(&done, "imported"), number(&done, "found")), (1, 1), "{done}");
    let skipped = done["skipped"].to_string();
    assert!(skipped.contains("part 2") && skipped.contains("the file ends inside it"), "{done}");
    let other = home.path("strange.zip");
    std::fs::write(&other, b"PK\x03\x04 and no more").unwrap();
    check(&home.run(&["import", arg(&other)]), 2, &["nothing in it could be read"]);
    home.fails(&["import", arg(&home.path("missing.zip"))], 3, &["missing.zip"]);
}

/// A conversation of a Claude export in which a person says these things.
fn talk(number: u32, said: &[&str]) -> Value {
    let id = |part: u32| format!("{number:08x}-{part:04x}-4000-8000-000000000000");
    let messages: Vec<Value> = (1..)
        .zip(said)
        .map(|(part, text)| {
            json!({"uuid": id(part), "sender": "human", "text": text, "content": [],
                "created_at": "2026-03-14T09:26:53Z"})
        })
        .collect();
    json!({"uuid": id(0), "name": format!("talk {number}"), "chat_messages": messages,
        "created_at": "2026-03-14T09:26:53Z", "updated_at": "2026-03-14T09:26:53Z"})
}

#[test]
fn what_was_asked_to_remember_is_proposed_once_and_kept_with_its_message() {
    let home = Home::new();
    let path = home.path("conversations.json");
    let asked = "Remember that the hive key hangs behind the shed. What else?";
    std::fs::write(&path, json!([talk(1, &[asked]), talk(2, &[asked, "Thanks."])]).to_string())
        .unwrap();
    let silent = home.json(&["import", "--no-proposals", "--dry-run", arg(&path)]);
    assert_eq!((number(&silent, "imported"), number(&silent, "proposed")), (2, 0), "{silent}");
    let done = home.json(&["import", arg(&path)]);
    assert_eq!((number(&done, "imported"), number(&done, "proposed")), (2, 1), "{done}");
    adds_up(&done);
    assert!(home.all().is_empty(), "nothing is remembered before a person says so");
    let waiting = home.json(&["review", "list"]);
    let hold = &waiting[0];
    let draft = &hold["mutation"];
    assert!(draft.to_string().contains("00000001-0001-4000-8000-000000000000"), "{hold}");
    let id = hold["id"].as_str().unwrap();
    home.ok(&["review", "approve", id]);
    assert_eq!(home.all(), ["the hive key hangs behind the shed"]);
    let again = home.json(&["import", arg(&path)]);
    assert_eq!((number(&again, "proposed"), number(&again, "duplicates")), (0, 3), "{again}");

    let claude = sample("connectors/claude/data-2026-03");
    let done = home.json(&["import", arg(&claude)]);
    assert_eq!(number(&done, "proposed"), number(&done["exports"], "memories"), "{done}");
    let mem0 = home.json(&["import", arg(&sample("connectors/mem0"))]);
    assert_eq!(number(&mem0, "proposed"), 0, "a store of memories gives memories: {mem0}");
    assert!(number(&mem0, "imported") > 0, "{mem0}");
}

#[test]
fn a_newer_export_adds_what_is_new() {
    let home = Home::new();
    let path = home.path("conversations.json");
    std::fs::write(&path, json!([talk(1, &["one"]), talk(2, &["two"])]).to_string()).unwrap();
    home.json(&["import", arg(&path)]);
    let newer = json!([talk(1, &["one", "more"]), talk(2, &["two"]), talk(3, &["three"])]);
    std::fs::write(&path, newer.to_string()).unwrap();
    let done = home.json(&["import", arg(&path)]);
    let counts = ["imported", "merged", "duplicates"].map(|name| number(&done, name));
    assert_eq!(counts, [1, 1, 1], "{done}");
    let kept = conversations(&home);
    let messages = kept.values().map(|talk| talk["messages"].as_array().unwrap().len());
    assert_eq!(messages.collect::<Vec<_>>(), [2, 1, 1]);
}

#[test]
fn a_conversation_that_no_request_holds_comes_in_whole() {
    let home = Home::new();
    let path = home.path("conversations.json");
    let long = "bees ".repeat(400_000);
    let said: Vec<&str> = vec![long.as_str(); 9];
    std::fs::write(&path, json!([talk(1, &said), talk(2, &["two"])]).to_string()).unwrap();
    let done = home.json(&["import", arg(&path)]);
    assert_eq!((number(&done, "imported"), number(&done, "found")), (2, 2), "{done}");
    let kept = conversations(&home);
    assert_eq!(kept.values().next().unwrap()["messages"].as_array().unwrap().len(), 9);
    let again = home.json(&["import", arg(&path)]);
    assert_eq!((number(&again, "imported"), number(&again, "duplicates")), (0, 2), "{again}");
}

#[test]
fn an_import_that_is_killed_and_run_again_loses_and_doubles_nothing() {
    let (home, other) = (Home::new(), Home::new());
    let path = home.path("conversations.json");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
    let most = 2200;
    for number in 1..=most {
        let text = format!("conversation {number} is about hive {}", number % 7);
        let said = ["Hello.", text.as_str(), "And then?"];
        write!(file, "{}{}", if number == 1 { "[" } else { "," }, talk(number, &said)).unwrap();
    }
    file.write_all(b"]").unwrap();
    drop(file);
    other.json(&["import", arg(&path)]);
    let (mut killed, mut went_on) = (0, 0);
    for moment in 1..60 {
        let mut child = home.command(&["import", arg(&path), "--json"]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(150 + 60 * moment));
        if child.try_wait().unwrap().is_some() {
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        killed += 1;
        let there = conversations(&home).len();
        went_on += usize::from(there > 0 && there < most as usize);
    }
    let done = home.json(&["import", arg(&path)]);
    assert_eq!(number(&done, "imported") + number(&done, "duplicates"), u64::from(most), "{done}");
    assert!(killed > 0 && went_on > 0, "no kill came in the middle: {killed} {went_on}");
    assert!(conversations(&home) == conversations(&other), "as if it had not been killed");
}

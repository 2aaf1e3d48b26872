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
    let outcomes = ["imported", "merged", "duplicates", "erased", "held", "proposed"];
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
    assert_eq!(number(&done["exports"], "known"), 1, "what was the same was not read: {done}");

    // What came in without proposals is read again when they are asked for, and then no more.
    let plain = home.json(&["import", "--no-proposals", arg(&path)]);
    assert!(plain["exports"].get("known").is_none(), "{plain}");
    let again = home.json(&["import", arg(&path)]);
    assert_eq!((number(&again, "duplicates"), number(&again["exports"], "known")), (3, 3));
    adds_up(&again);

    // What was erased is known no more, and does not come back.
    let gone = kept.keys().next().unwrap();
    home.ok(&["delete", "--conversation", gone, "--yes"]);
    let after = home.json(&["import", arg(&path)]);
    assert_eq!((number(&after, "erased"), number(&after["exports"], "known")), (1, 2), "{after}");
    adds_up(&after);
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
    let full = std::env::var_os("YORE_FULL").is_some();
    let (most, least) = if full { (20_000, 20) } else { (2200, 1) };
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
    assert!(killed >= least, "only {killed} kills came in time");
    assert!(went_on > 0, "no kill came in the middle: {killed}");
    assert!(conversations(&home) == conversations(&other), "as if it had not been killed");
}

/// Takes in a sample; returns what was counted and the conversations that are there.
fn taken(place: &str) -> (Value, Vec<Value>) {
    let home = Home::new();
    let done = home.json(&["import", arg(&sample("connectors").join(place))]);
    (done, conversations(&home).into_values().collect())
}

fn lengths(talks: &[Value], off_path: bool) -> Vec<u64> {
    let count = |talk: &Value| {
        let messages = talk["messages"].as_array().unwrap().iter();
        messages.filter(|message| message["off_path"] == off_path).count() as u64
    };
    let mut lengths: Vec<u64> = talks.iter().map(count).collect();
    lengths.sort_unstable();
    lengths
}

/// The numbers below a member, in order.
fn listed(expected: &Value, name: &str) -> Vec<u64> {
    let counts = expected[name].as_object().unwrap().values();
    let mut counts: Vec<u64> = counts.map(|count| count.as_u64().unwrap()).collect();
    counts.sort_unstable();
    counts
}

/// Messages and blocks that are of a sort.
fn blocks(talks: &[Value], kind: &str) -> u64 {
    let messages = talks.iter().flat_map(|talk| talk["messages"].as_array().unwrap());
    let blocks = messages.filter_map(|message| message["content"].as_array()).flatten();
    blocks.filter(|block| block["type"] == kind).count() as u64
}

#[test]
fn every_number_that_was_expected_is_there() {
    let expected: Value =
        serde_json::from_slice(&std::fs::read(sample("connectors/EXPECTED.json")).unwrap())
            .unwrap();
    let of = |place: &str, name: &str| number(&expected[place], name);
    for place in ["chatgpt/legacy-2024", "chatgpt/sharded-2026"] {
        let (_, talks) = taken(place);
        let wanted = &expected[place];
        assert_eq!(lengths(&talks, false), listed(wanted, "active_path_messages"), "{place}");
        assert_eq!(lengths(&talks, true), listed(wanted, "off_path_messages"), "{place}");
    }
    let place = "claude/data-2026-03";
    let (done, talks) = taken(place);
    let mut active = listed(&expected[place], "active_path_messages");
    // A project is a conversation of one message: its instructions, with its documents.
    active.extend(vec![1; usize::try_from(of(place, "projects")).unwrap()]);
    active.sort_unstable();
    assert_eq!(lengths(&talks, false), active);
    let exports = &done["exports"];
    // Each project has a memory and instructions besides.
    assert_eq!(number(exports, "memories"), of(place, "memories") + 2 * of(place, "projects"));
    assert_eq!(number(exports, "missing_attachments"), of(place, "files_without_bytes"));
    let said = talks.iter().filter(|talk| talk["conversation"]["tags"].is_null());
    let pasted = said.flat_map(|talk| talk["messages"].as_array().unwrap());
    let pasted = pasted.filter(|message| message["role"] == "user");
    let pasted = pasted.flat_map(|message| message["attachments"].as_array().cloned());
    let texts = pasted.flatten().filter(|one| one["blob"].is_string()).count() as u64;
    assert_eq!(texts, of(place, "attachments_text"));

    let place = "gemini/takeout-json";
    let (done, _) = taken(place);
    assert_eq!(number(&done["exports"], "conversations"), of(place, "exchanges"));
    assert_eq!(done["skipped"].as_array().unwrap().len() as u64, of(place, "non_chat_activities"));
    let others = number(&done["exports"], "branch_messages");
    assert_eq!(others, of(place, "regenerated_alternatives"));
    let (done, _) = taken("gemini/ai-studio");
    // The instruction of the system is a message of its own.
    assert_eq!(number(&done["exports"], "messages"), of("gemini/ai-studio", "chunks") + 1);

    let (done, _) = taken("cursor");
    let all = ["composers", "legacy_chat_tabs", "cli_sessions"].map(|name| of("cursor", name));
    assert_eq!(number(&done["exports"], "conversations"), all.iter().sum::<u64>());
    let not = ["skipped_empty", "null_rows", "missing_bubbles"].map(|name| of("cursor", name));
    assert_eq!(done["skipped"].as_array().unwrap().len() as u64, not.iter().sum::<u64>());

    for (place, name) in [("perplexity/gdpr-export", "gdpr"), ("perplexity/rest-thread", "rest")] {
        let ((done, talks), wanted) = (taken(place), &expected["perplexity"][name]);
        for count in ["conversations", "messages"] {
            assert_eq!(done["exports"][count], wanted[count], "{place}");
        }
        let sources = &talks[0]["messages"][1]["foreign"]["perplexity"]["sources"];
        let sources = sources.as_array().map_or(0, Vec::len) as u64;
        assert_eq!(sources, wanted["citations"].as_u64().unwrap_or(0), "{place}");
    }
    let (done, _) = taken("grok");
    assert_eq!(number(&done["exports"], "attachments"), of("grok", "attachments"));

    let (done, _) = taken("copilot/microsoft-privacy-dashboard");
    let tables = ["csv_a_messages", "csv_b_messages", "csv_c_messages"];
    let tables = tables.map(|name| of("copilot", name));
    assert_eq!(number(&done["exports"], "messages"), tables.iter().sum::<u64>());
    let (done, talks) = taken("copilot/vscode");
    assert_eq!(number(&done["exports"], "conversations"), of("copilot", "vscode_sessions"));
    let said = serde_json::to_string(&talks).unwrap();
    assert!(said.contains("\"It counts bees.\""), "{said}");

    let (done, _) = taken("open-webui/webui.db");
    assert_eq!(number(&done["exports"], "memories"), of("open-webui", "memories"));
    let (done, _) = taken("lm-studio");
    assert_eq!(number(&done["exports"], "conversations"), of("lm-studio", "conversations"));
    // The prompt of the system is a message of its own.
    let active = of("lm-studio", "active_path_messages");
    assert_eq!(number(&done["exports"], "messages"), active + 1);
    assert_eq!(number(&done["exports"], "branch_messages"), of("lm-studio", "alternatives"));

    let (done, talks) = taken("ollama");
    // The prompts of the command line are one conversation more.
    assert_eq!(number(&done["exports"], "conversations"), of("ollama", "conversations") + 1);
    let lines = of("ollama", "prompt_history_lines");
    assert_eq!(number(&done["exports"], "messages"), of("ollama", "messages") + lines);
    assert_eq!(number(&done["exports"], "attachments"), of("ollama", "attachments"));
    assert_eq!(blocks(&talks, "tool_use"), of("ollama", "tool_calls"));

    let place = "claude-code";
    let (done, talks) = taken(place);
    let sessions = of(place, "sessions") + of(place, "sidechains");
    assert_eq!(number(&done["exports"], "conversations"), sessions);
    let longest = talks.iter().map(|talk| talk["messages"].as_array().unwrap().len()).max();
    assert_eq!(longest.unwrap() as u64, of(place, "conversational_messages"));
    assert_eq!(number(&done["exports"], "memories"), of(place, "memory_files"));
    let cut = done["skipped"].to_string().contains("not a whole line");
    assert_eq!(expected[place]["truncated_last_line"], cut);

    let place = "codex";
    let (done, talks) = taken(place);
    assert_eq!(number(&done["exports"], "conversations"), of(place, "sessions"));
    assert_eq!(blocks(&talks, "tool_use"), of(place, "tool_calls"));
    let said = |role: &str| {
        let messages = talks[0]["messages"].as_array().unwrap().iter();
        messages.filter(|message| message["role"] == role).count() as u64
    };
    assert_eq!(said("user"), of(place, "user_messages"));
    assert_eq!(said("system"), of(place, "injected_context_messages"));
    let spoken =
        ["assistant_messages", "tool_calls", "reasoning_items"].map(|name| of(place, name));
    assert_eq!(said("assistant"), spoken.iter().sum::<u64>());
    assert_eq!(said("tool"), of(place, "tool_calls"));
    let (done, _) = taken("letta");
    assert_eq!(number(&done["exports"], "memories"), of("letta", "memory_blocks"));
}

#[test]
fn importing_again_is_at_least_three_times_as_fast() {
    if std::env::var_os("YORE_FULL").is_none() {
        return println!("NOT RUN: YORE_FULL is not set");
    }
    let home = Home::new();
    let path = home.path("conversations.json");
    let long = "the hives by the river had a good year, and the lime trees a better one ".repeat(8);
    let said: Vec<String> = (0..40).map(|number| format!("{long} {number}")).collect();
    let said: Vec<&str> = said.iter().map(String::as_str).collect();
    let talks: Vec<Value> = (1..=400).map(|number| talk(number, &said)).collect();
    std::fs::write(&path, Value::from(talks).to_string()).unwrap();
    let timed = || {
        let begin = std::time::Instant::now();
        let done = home.json(&["import", "--no-proposals", arg(&path)]);
        (begin.elapsed(), done)
    };
    let ((first, one), (second, two)) = (timed(), timed());
    assert_eq!((number(&one, "imported"), number(&two, "duplicates")), (400, 400), "{two}");
    assert!(second * 3 <= first, "{first:?} and then {second:?}");
}

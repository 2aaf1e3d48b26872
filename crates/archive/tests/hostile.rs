//! Files that are damaged, or made to do harm: never a panic, never a hang, nothing written.

use std::io::Write;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::json;
use yore_archive::{Error, Limits, Report, Source, read};

use crate::given::{read_all, sample};

fn count(paths: &[PathBuf], limits: Limits) -> Report {
    let source = Source::open(paths, limits).unwrap();
    read(&source, &mut |_| Ok(())).unwrap()
}

fn written(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn zipped(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in files {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn chat(id: u8, said: &str) -> String {
    format!(
        r#"{{"uuid":"00000000-0000-4000-8000-0000000000{id:02x}","name":"n","chat_messages":[{{"uuid":"10000000-0000-4000-8000-000000000000","sender":"human","text":{said},"content":[]}}]}}"#
    )
}

#[test]
fn one_bad_conversation_is_named_and_the_others_are_read() {
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let export = format!(
        "[{},{{\"uuid\":1,\"chat_messages\":[]}},{},{{bad json}},{},7,{}]",
        chat(1, "\"one\""),
        chat(2, &deep),
        chat(3, "\"lone \\ud83d surrogate\""),
        chat(4, "\"four\"")
    );
    let (_folder, path) = written("conversations.json", export.as_bytes());
    let read = read_all(&[path]);
    assert_eq!(read.talks.len(), 3);
    assert_eq!(read.talks[1].messages[0].text, "lone \u{fffd} surrogate");
    assert_eq!(read.talks[1].head.foreign["claude"]["mended_surrogates"], true);
    let parts: Vec<&str> =
        read.report.skipped.iter().map(|skip| skip.what.as_deref().unwrap()).collect();
    assert_eq!(parts, ["part 2", "part 3", "part 4", "part 6"]);
}

#[test]
fn a_file_that_breaks_off_gives_what_is_whole() {
    let export = format!("[{},{}", chat(1, "\"one\""), &chat(2, "\"two\"")[..60]);
    let (_folder, path) = written("conversations.json", export.as_bytes());
    let read = read_all(&[path]);
    assert_eq!(read.talks.len(), 1);
    assert_eq!(read.report.skipped[0].reason, "the file ends inside it");
}

#[test]
fn a_conversation_over_the_limit_is_passed_over_without_being_held() {
    let long = format!("\"{}\"", "x".repeat(5 << 20));
    let export = format!("[{},{}]", chat(1, &long), chat(2, "\"two\""));
    let (_folder, path) = written("conversations.json", export.as_bytes());
    let report = count(&[path], Limits { piece: 1 << 20, ..Limits::default() });
    assert_eq!((report.conversations, report.skipped.len()), (1, 1));
    assert!(report.skipped[0].reason.contains("larger than"));
}

#[test]
fn omp_087_zips_that_escape_or_explode_are_named_and_not_opened() {
    for name in ["../conversations.json", "/conversations.json", "a\\conversations.json"] {
        let (_folder, path) = written("x.zip", &zipped(&[(name, b"[]")]));
        let report = count(&[path], Limits::default());
        assert_eq!((report.conversations, report.skipped.len()), (0, 1), "{name}");
    }
    let zeros = vec![b' '; 64 << 20];
    let (_folder, path) = written("bomb.zip", &zipped(&[("conversations.json", &zeros)]));
    let report = count(std::slice::from_ref(&path), Limits { ratio: 100, ..Limits::default() });
    assert!(report.skipped[0].reason.contains("100 times"), "{:?}", report.skipped);
    // Zips inside zips are opened to a small depth and a small size.
    let mut inner = zipped(&[("conversations.json", chat(1, "\"x\"").as_bytes())]);
    for _ in 0..6 {
        inner = zipped(&[("inner.zip", &inner)]);
    }
    let (_folder, path) = written("russian.zip", &inner);
    assert_eq!(count(&[path], Limits::default()).conversations, 0);
    let nested = zipped(&[(
        "part.zip",
        &zipped(&[("conversations.json", format!("[{}]", chat(1, "\"x\"")).as_bytes())]),
    )]);
    let (_folder, path) = written("outer.zip", &nested);
    assert_eq!(count(std::slice::from_ref(&path), Limits::default()).conversations, 1);
    let small = Limits { nested: 10, ..Limits::default() };
    assert_eq!(count(&[path], small).conversations, 0);
}

#[test]
fn a_zip_whose_entry_lies_about_its_size_is_caught_while_reading() {
    let plain = format!("[{}]", chat(1, &format!("\"{}\"", "y".repeat(4000))));
    let mut bytes = zipped(&[("conversations.json", plain.as_bytes())]);
    // The size in the central directory becomes 100; the deflated bytes say more.
    let entry = bytes.windows(4).rposition(|four| four == b"PK\x01\x02").unwrap();
    bytes[entry + 24..entry + 28].copy_from_slice(&100_u32.to_le_bytes());
    let (_folder, path) = written("liar.zip", &bytes);
    let report = count(&[path], Limits::default());
    assert_eq!(report.conversations, 0);
    assert_eq!(report.skipped.len(), 1, "{:?}", report.skipped);
}

#[cfg(unix)]
#[test]
fn links_in_a_folder_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(sample("claude"), folder.path().join("link")).unwrap();
    std::os::unix::fs::symlink("/", folder.path().join("root")).unwrap();
    assert_eq!(count(&[folder.path().to_owned()], Limits::default()), Report::default());
}

#[test]
fn trees_of_a_million_silent_turns_are_read_in_linear_time() {
    let mut nodes = String::new();
    let last = 200_000;
    for n in 0..last {
        let parent = if n == 0 { last - 1 } else { n - 1 };
        nodes.push_str(&format!("\"n{n}\":{{\"parent\":\"n{parent}\",\"message\":null}},"));
    }
    for n in 0..1000 {
        nodes.push_str(&format!(
            "\"s{n}\":{{\"parent\":\"n{}\",\"message\":{{\"content\":{{}}}}}},",
            last - 1
        ));
    }
    nodes.pop();
    let export = format!("[{{\"id\":\"c\",\"title\":\"t\",\"mapping\":{{{nodes}}}}}]");
    let (_folder, path) = written("conversations.json", export.as_bytes());
    let begun = std::time::Instant::now();
    let report = count(&[path], Limits::default());
    assert_eq!(report.messages + report.branch_messages, 1000);
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

#[test]
fn whoever_takes_the_items_may_stop() {
    let source = Source::open(&[sample("claude")], Limits::default()).unwrap();
    let mut taken = 0;
    let stopped = read(&source, &mut |_| {
        taken += 1;
        if taken == 2 { Err(Error::Stopped("enough".into())) } else { Ok(()) }
    });
    assert!(stopped.unwrap_err().stops());
    assert_eq!(taken, 2);
}

#[test]
fn what_nobody_knows_is_named_when_it_was_asked_for() {
    let (_folder, path) = written("strange.bin", b"\0\x01\x02");
    let report = count(&[path], Limits::default());
    assert_eq!((report.unread, report.skipped[0].reason.as_str()), (1, "no known export"));
    assert!(Source::open(&[PathBuf::from("does-not-exist")], Limits::default()).is_err());
}

/// Every file of the samples, small enough to be changed many times.
#[test]
fn a_database_whose_columns_have_no_readable_names_is_named_and_passed_over() {
    let (_folder, path) = written("webui.db", b"");
    let database = rusqlite::Connection::open(&path).unwrap();
    database
        .execute_batch(
            "CREATE TABLE chat (id TEXT, user_id TEXT, title TEXT, chat JSON, zzzz TEXT);
             INSERT INTO chat VALUES ('1', 'u', 't', '{}', NULL);",
        )
        .unwrap();
    drop(database);
    let mut bytes = std::fs::read(&path).unwrap();
    let place = bytes.windows(4).position(|four| four == b"zzzz").unwrap();
    bytes[place] = 0xff;
    std::fs::write(&path, bytes).unwrap();
    let report = count(&[path], Limits::default());
    assert_eq!((report.conversations, report.skipped.len()), (0, 1), "{report:?}");
}

fn all_samples() -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { walk(&path, found) } else { found.push(path) }
        }
    }
    let mut found = Vec::new();
    walk(&sample(""), &mut found);
    found.sort();
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_change_of_a_sample_makes_reading_panic(
        which: prop::sample::Index,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let samples = all_samples();
        let path = which.get(&samples);
        let mut bytes = std::fs::read(path).unwrap();
        if bytes.is_empty() {
            return Ok(());
        }
        for (place, with) in changes {
            let place = place.index(bytes.len());
            bytes[place] = with;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let (folder, path) = written(&name, &bytes);
        let source = Source::open(&[path], Limits::default()).unwrap();
        let report = read(&source, &mut |item| {
            if let yore_archive::Item::Conversation(talk) = item {
                let mut ids = std::collections::HashSet::new();
                assert!(talk.messages.iter().all(|message| ids.insert(message.id)));
            }
            Ok(())
        });
        prop_assert!(report.is_ok());
        prop_assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn no_tree_of_json_makes_reading_panic(
        keys in prop::collection::vec(prop::sample::select(vec![
            "mapping", "chat_messages", "conversations", "conversation", "responses", "chat",
            "history", "messages", "entries", "query", "versions", "steps", "content", "parts",
            "requests", "sessionId", "header", "title", "time", "chunkedPrompt", "chunks",
            "agents", "llm_config", "results", "memory", "hash", "type", "payload", "timestamp",
            "parentUuid", "uuid", "id", "k", "v", "kind", "query_str", "currentlySelected",
        ]), 1..6),
        shape in 0_u8..4,
    ) {
        let mut value = json!("x");
        for (place, key) in keys.iter().enumerate() {
            value = if (place as u8 + shape).is_multiple_of(3) { json!([{*key: value}, 1, null]) }
                else { json!({*key: value, "id": "a", "title": "t", "uuid": "u"}) };
        }
        if shape == 3 {
            value = json!([value]);
        }
        let (_folder, path) = written("export.json", value.to_string().as_bytes());
        count(&[path], Limits::default());
    }
}

//! What came in before is told by its bytes and not read again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use yore_archive::{Item, Known, Limits, Report, Source, Talk, read_unknown};

use crate::given::sample;

/// Reads what is not among these prints.
fn unknown(path: &Path, salt: &str, known: &BTreeSet<String>) -> (Vec<Talk>, Report) {
    let source = Source::open(&[path.to_owned()], Limits::default()).unwrap();
    let mut talks = Vec::new();
    let mut ask =
        |prints: &[String]| Ok(prints.iter().map(|print| known.contains(print)).collect());
    let mut take = |item| {
        if let Item::Conversation(talk) = item {
            talks.push(*talk);
        }
        Ok(())
    };
    let report = read_unknown(&source, Known { salt, ask: &mut ask }, &mut take).unwrap();
    (talks, report)
}

fn prints(talks: &[Talk]) -> BTreeSet<String> {
    talks.iter().filter_map(|talk| talk.print.clone()).collect()
}

#[test]
fn of_what_is_known_only_what_leans_on_more_than_its_own_bytes_is_read_again() {
    for place in ["chatgpt/legacy-2024", "chatgpt/sharded-2026", "claude/data-2026-03"] {
        let path = sample(place);
        let (talks, first) = unknown(&path, "a", &BTreeSet::new());
        let known = prints(&talks);
        assert!(!known.is_empty() && first.known == 0, "{place}");
        for talk in &talks {
            let attached = talk.messages.iter().any(|message| !message.attachments.is_empty());
            assert!(!(attached && talk.print.is_some()), "{place}: {}", talk.head.id);
        }
        let (again, second) = unknown(&path, "a", &known);
        assert_eq!(again.len() + known.len(), talks.len(), "{place}");
        assert_eq!(second.known, known.len() as u64, "{place}");
        assert_eq!(second.conversations, first.conversations, "{place}");
        assert_eq!(second.platforms, first.platforms, "{place}");
        assert!(again.iter().all(|talk| talk.print.is_none()), "{place}");
        // Who asks for something else knows nothing of it.
        assert_eq!(unknown(&path, "b", &known).1.known, 0, "{place}");
    }
}

#[test]
fn a_changed_part_and_a_changed_neighbour_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, value: &Value| {
        std::fs::write(folder.path().join(name), value.to_string()).unwrap();
    };
    let said = |number: u8, text: &str| {
        let id = format!("00000000-0000-4000-8000-0000000000{number:02x}");
        let message = json!({"id": "m", "author": {"role": "user"},
            "content": {"content_type": "text", "parts": [text]}});
        let mapping = json!({"m": {"id": "m", "message": message, "parent": null}});
        json!({"conversation_id": id, "title": "t", "mapping": mapping, "current_node": "m"})
    };
    write("conversations.json", &json!([said(1, "one"), said(2, "two"), said(3, "three")]));
    let path: PathBuf = folder.path().to_owned();
    let (talks, _) = unknown(&path, "", &BTreeSet::new());
    let known = prints(&talks);
    let by_id: BTreeMap<_, _> = talks.iter().map(|talk| (talk.head.id, &talk.print)).collect();
    assert_eq!((known.len(), by_id.len()), (3, 3));
    write("conversations.json", &json!([said(1, "one"), said(2, "more"), said(3, "three")]));
    let (changed, report) = unknown(&path, "", &known);
    assert_eq!((changed.len(), report.known, report.conversations), (1, 2, 3));
    assert_eq!(changed[0].messages[0].text, "more");
    // A rating of any message may be one of this conversation's.
    write("message_feedback.json", &json!([{"id": "m", "rating": "thumbs_up"}]));
    let (rated, report) = unknown(&path, "", &known);
    assert_eq!((rated.len(), report.known), (3, 0));
}

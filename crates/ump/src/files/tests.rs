use proptest::prelude::*;
use serde_json::json;
use yore_canon::seal;
use yore_domain::Timestamp;
use yore_domain::kind::Kind;
use yore_domain::memory::Status;
use yore_engine::Item;

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

fn vectors() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/ump/vectors.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn records() -> Vec<Object> {
    let vectors = vectors();
    let cases = vectors["records"].as_array().unwrap();
    cases.iter().map(|case| case["record"].as_object().unwrap().clone()).collect()
}

fn with_text(text: &str) -> Object {
    let mut record = records().remove(0);
    record["body"]["text"] = json!(text);
    record
}

#[test]
fn ump_100_lists_and_lines_give_records_back() {
    let records = records();
    for format in [Format::Json, Format::Ndjson] {
        let text = print(&records, format).unwrap();
        assert_eq!(parse(&text, format).unwrap(), records, "{format:?}");
        let read = parse(&format!("\u{feff}{text}"), format).unwrap();
        assert!(read.iter().all(|record| seal::verify(record).is_ok()));
    }
    let single = Value::Object(records[0].clone()).to_string();
    assert_eq!(parse(&single, Format::Json).unwrap(), records[..1]);
    assert!(print(&records, Format::Json).unwrap().starts_with("[\n  {\n    \"ump\""));
    for (text, format) in [("[1]", Format::Json), ("{}\nx\n", Format::Ndjson), ("7", Format::Json)]
    {
        assert!(parse(text, format).is_err(), "{text}");
    }
}

#[test]
fn ump_100_what_is_written_piece_by_piece_is_the_same() {
    let records = records();
    for format in [Format::Json, Format::Ndjson] {
        for count in [0, 1, records.len()] {
            let mut writer = Writer::new(format).unwrap();
            let mut text: String =
                records[..count].iter().map(|one| writer.next(one).unwrap()).collect();
            text.push_str(writer.end());
            assert_eq!(text, print(&records[..count], format).unwrap(), "{format:?}");
        }
    }
    assert!(Writer::new(Format::Markdown).is_err());
}

#[test]
fn ump_101_markdown_is_the_reference_form() {
    let vectors = vectors();
    let reference = vectors["markdown"]["reference_text"].as_str().unwrap();
    let name = vectors["markdown"]["record"].as_str().unwrap();
    let cases = vectors["records"].as_array().unwrap();
    let case = cases.iter().find(|case| case["name"] == name).unwrap();
    let record = case["record"].as_object().unwrap().clone();
    assert_eq!(parse(reference, Format::Markdown).unwrap(), std::slice::from_ref(&record));
    let printed = print(std::slice::from_ref(&record), Format::Markdown).unwrap();
    assert_eq!(parse(&printed, Format::Markdown).unwrap(), [record]);
    assert!(
        printed.starts_with("---\n{\n")
            && printed.ends_with("\n---\n\nAlways run `pnpm gate` before handoff.\n")
    );
}

#[test]
fn ump_101_markdown_reads_yaml_and_linked_data() {
    let yaml = "---\nump: \"0.1\"\nid: urn:ump:abc\nkind: procedural\n\
        scope: { owner: did:key:z6MkA, project: a/b, visibility: private }\n\
        time: { created: 2026-06-04T09:58:00Z, valid_from: 2026-06-04T00:00:00Z }\n\
        provenance: { actor: me, actor_kind: user, method: user_correction }\n---\n\nRun the gate.\n";
    let [record] = <[Object; 1]>::try_from(parse(yaml, Format::Markdown).unwrap()).unwrap();
    assert_eq!(record["time"]["created"], "2026-06-04T09:58:00Z");
    assert_eq!(record["scope"]["project"], "a/b");
    assert_eq!(record["body"], json!({"text": "Run the gate."}));
    assert!(crate::wire::read(&record).is_ok());
    let bare = "---\nump: 0.1\nkind: semantic\n---\nx";
    assert_eq!(parse(bare, Format::Markdown).unwrap()[0]["ump"], "0.1");

    let linked = "---\n{\"@context\": \"https://ump.example\", \"@type\": \"ump:Record\", \
        \"@id\": \"urn:ump:abc\", \"ump:kind\": \"semantic\", \
        \"ump:scope\": {\"ump:owner\": {\"@id\": \"did:key:z6MkA\"}}, \
        \"body\": {\"structured\": {\"@id\": \"kept\"}}}\n---\n\ntext\n";
    let record = &parse(linked, Format::Markdown).unwrap()[0];
    assert_eq!(record["id"], "urn:ump:abc");
    assert_eq!(record["kind"], "semantic");
    assert_eq!(record["scope"]["owner"], "did:key:z6MkA");
    assert_eq!(record["body"]["structured"], json!({"@id": "kept"}));
    for bad in
        ["no front matter", "---\nkind: x\n", "---\n- 1\n---\nx", "---\n{\"a\":1,\"a\":2}\n---\n"]
    {
        assert!(parse(bad, Format::Markdown).is_err(), "{bad}");
    }
}

#[test]
fn ump_102_an_edited_text_wins_over_the_kept_one() {
    let printed = print(&[with_text("  two\n\nlines \n")], Format::Markdown).unwrap();
    assert_eq!(parse(&printed, Format::Markdown).unwrap(), [with_text("  two\n\nlines \n")]);
    let edited = printed.replace("\n---\n\n  two", "\n---\n\n  three");
    assert_eq!(parse(&edited, Format::Markdown).unwrap()[0]["body"]["text"], "  three\n\nlines");
}

#[test]
fn ump_103_files_are_named_by_their_record() {
    assert_eq!(file_name(&with_text("x")).len(), 52 + ".ump.md".len());
    let hostile = json!({"id": "urn:ump:../../etc/passwd"}).as_object().unwrap().clone();
    assert_eq!(file_name(&hostile), "------etc-passwd.ump.md");
}

proptest! {
    #[test]
    fn ump_102_no_blank_of_a_text_is_lost(text in "[ \\t\\r\\na-c#\\-{}\u{85}\u{a0}\u{2028}]{1,40}") {
        let record = with_text(&text);
        for format in Format::ALL {
            let printed = print(std::slice::from_ref(&record), format).unwrap();
            prop_assert_eq!(&parse(&printed, format).unwrap()[0], &record);
        }
    }
}

#[test]
fn ump_105_records_become_memories_and_the_rest_is_named() {
    let mut all = records();
    let mut tampered = all[1].clone();
    tampered["body"]["text"] = json!("other");
    tampered["id"] = json!("urn:ump:tampered");
    let mut strange = all[1].clone();
    strange.insert("ump".into(), json!("2.0"));
    strange.shift_remove("integrity");
    let mut nameless = all[1].clone();
    nameless.shift_remove("id");
    nameless.shift_remove("integrity");
    all.extend([tampered, strange, nameless]);
    let (items, refused) = items(&all, "did:key:zVault", NOW);
    assert_eq!(items.len(), records().len());
    let reasons: Vec<&str> = refused.iter().map(|(_, error)| error.code()).collect();
    assert_eq!(reasons, ["signature", "invalid", "invalid"]);
}

#[test]
fn ump_051_what_supersedes_each_other_becomes_one_chain() {
    let made = |id: &str, supersedes: &[&str], text: &str| {
        let record = json!({
            "ump": "1.0", "id": id, "kind": "semantic", "body": {"text": text},
            "scope": {"owner": "o", "visibility": "private"},
            "time": {"created": "2026-06-04T10:00:00Z"}, "supersedes": supersedes,
        });
        record.as_object().unwrap().clone()
    };
    let records = [
        made("urn:ump:c", &["urn:ump:b", "urn:ump:a"], "3"),
        made("urn:ump:a", &[], "1"),
        made("urn:ump:b", &["urn:ump:a"], "2"),
        made("urn:ump:x", &["urn:ump:y"], "circle"),
        made("urn:ump:y", &["urn:ump:x"], "circle 2"),
    ];
    let (items, refused) = items(&records, "o", NOW);
    assert!(refused.is_empty());
    assert_eq!(items.len(), 3);
    let Item::Memory { versions } = &items[0] else { panic!("a memory") };
    let texts: Vec<&str> = versions.iter().map(|one| one.content.body.text.as_str()).collect();
    assert_eq!(texts, ["1", "2", "3"]);
    assert_eq!(versions[2].replaces, Some(versions[1].id));
}

#[test]
fn ump_132_notes_become_candidates() {
    let text = "---\ntags: [home, '#tea']\n---\nBefore.\n\n# Preferences ##\n\nTea with [[Anna|her]].\n\
        ```\n# not a heading\n```\n\n## History\n#### deeper stays\nIt happened.\n\n# Empty\n";
    let found = drafts("notes/day.md", text, Source::Obsidian).unwrap();
    let said: Vec<(&str, Kind)> =
        found.iter().map(|one| (one.content.body.text.as_str(), one.content.kind)).collect();
    assert_eq!(said[0], ("Before.", Kind::Semantic));
    assert!(said[1].0.contains("# not a heading") && said[1].1 == Kind::Identity, "{said:?}");
    assert!(said[2].0.contains("#### deeper stays") && said[2].1 == Kind::Episodic);
    assert_eq!(found.len(), 3);
    let preferences = &found[1];
    assert_eq!(preferences.status, Status::Candidate);
    assert_eq!(preferences.content.tags, ["home", "tea"]);
    assert_eq!(preferences.content.provenance.source.as_deref(), Some("notes/day.md#preferences"));
    assert_eq!(preferences.content.provenance.method, "filesystem:obsidian");
    assert_eq!(preferences.content.relations[0].target, "entity:Anna");
    let agents = drafts("AGENTS.md", "# Build\n\nRun the gate.", Source::Agents).unwrap();
    assert_eq!(agents[0].content.kind, Kind::Procedural);
    assert_eq!(agents[0].content.lifecycle.confidence, Some(0.75));
    assert!(drafts("big.md", &"x".repeat(NOTE_BYTES + 1), Source::Markdown).is_err());
    for (path, source) in [
        ("a/CLAUDE.md", Some(Source::Claude)),
        ("AGENTS.md", Some(Source::Agents)),
        ("x.markdown", Some(Source::Markdown)),
        ("x.txt", None),
    ] {
        assert_eq!(Source::of(path, false), source, "{path}");
    }
    assert_eq!(Source::of("x.md", true), Some(Source::Obsidian));
    assert!(is_skipped("node_modules") && !is_skipped("src"));
}

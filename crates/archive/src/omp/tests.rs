use std::io::{Read as _, Write as _};
use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::{Value, json};
use yore_domain::conversation::{Conversation, Message};
use yore_domain::memory::{Draft, Version};
use yore_domain::{BlobHash, ConversationId, MemoryId, MessageId, Timestamp};

use super::*;
use crate::{Error, Item, Limits, Note, Result, Sink, Skip, Talk};

fn vector(name: &str) -> PathBuf {
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/omp");
    PathBuf::from(vectors).join(name)
}

fn verdicts() -> Value {
    serde_json::from_slice(&std::fs::read(vector("vectors.json")).unwrap()).unwrap()
}

fn all(reader: &Reader) -> (Vec<Talk>, Vec<Note>, Vec<Skip>) {
    let (mut talks, mut notes, mut skips) = (Vec::new(), Vec::new(), Vec::new());
    let mut take = |item| {
        match item {
            Item::Conversation(talk) => talks.push(*talk),
            Item::Memory(note) => notes.push(*note),
            Item::Skipped(skip) => skips.push(skip),
        }
        Ok(())
    };
    reader.read(&mut Sink::new(&mut take)).unwrap();
    (talks, notes, skips)
}

fn open(name: &str) -> Result<Reader> {
    Reader::open(&vector(name), Limits::default())
}

fn why(result: Result<Reader>) -> &'static str {
    match result.unwrap_err() {
        Error::Archive { what, .. } => what,
        Error::Zip { .. } => "zip",
        Error::Io { .. } | Error::TooLarge { .. } | Error::Form(_) | Error::Stopped(_) => "other",
    }
}

#[test]
fn omp_085_every_given_archive_gets_its_verdict() {
    let verdicts = verdicts();
    for (name, reason) in verdicts["reject"].as_object().unwrap() {
        assert_eq!(why(open(name)), reason.as_str().unwrap(), "{name}");
    }
    for name in verdicts["accept"].as_array().unwrap() {
        let name = name.as_str().unwrap();
        let reader = if name.ends_with(".enc") {
            let tag = std::fs::read_to_string(vector(&format!("{name}.hmac"))).unwrap();
            let password = verdicts["password"].as_str().unwrap();
            Reader::open_sealed(&vector(name), password, Some(&tag), Limits::default())
        } else {
            open(name)
        };
        let reader = reader.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(reader.method(), Method::Sums);
        let (talks, notes, skips) = all(&reader);
        let counts = &reader.manifest().counts;
        assert_eq!(talks.len() as u64, counts.conversations, "{name}");
        assert_eq!(Some(notes.len() as u64), counts.memories, "{name}");
        assert_eq!(skips, [], "{name}");
        if name.starts_with("good") {
            assert_eq!(reader.manifest().checksum, verdicts["checksum"].as_str().unwrap());
        }
    }
}

#[test]
fn omp_081_a_conversation_is_read_with_its_attachment_and_its_unknown_members() {
    let (talks, notes, _) = all(&open("good.omp.zip").unwrap());
    let talk = &talks[0];
    assert_eq!(talk.head.id.to_string(), "550e8400-e29b-41d4-a716-446655440000");
    assert_eq!(talk.messages[0].attachments[0].filename, "yard.png");
    let mut bytes = Vec::new();
    talk.blobs[0].open().unwrap().read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, b"\x89PNG\r\n\x1a\n");
    assert_eq!(talk.messages[1].foreign["omp"]["x_sentiment_score"], json!(0.9));
    assert_eq!(talk.messages[1].foreign["chatgpt"]["node_id"], json!("n1"));
    assert_eq!(notes[0].draft.content.lifecycle.confidence, Some(0.95));
    // Members that are null may be left out; everything else is written as it was read.
    let mut original: Value = {
        let archive = std::fs::File::open(vector("good.omp.zip")).unwrap();
        let mut zip = zip::ZipArchive::new(archive).unwrap();
        let name = "conversations/550e8400-e29b-41d4-a716-446655440000.json";
        serde_json::from_reader(zip.by_name(name).unwrap()).unwrap()
    };
    let path = |blob: BlobHash| Some(attachment_path(blob, "image/png"));
    let written = conversation_json(&talk.head, &talk.messages, &path);
    original["messages"][0]["attachments"][0]["source"] = json!("user_upload");
    assert_eq!(written, original);
}

#[test]
fn omp_005_members_that_are_not_understood_come_back_at_every_level() {
    let message = json!({"id": "7a1b2c3d-4e5f-4061-9b8c-0d1e2f3a4b5c", "role": "user",
        "content": [{"type": "text", "text": "x", "x_block": {"a": [1.5]}}],
        "timestamp": "2026-03-15T09:30:00Z", "model": null, "platform": "chatgpt",
        "x_message": 18_446_744_073_709_551_615_u64, "new_in_2_1": "kept",
        "tool_calls": [{"tool_name": "t", "tool_input": {}}],
        "annotations": [{"type": "note", "text": "n", "x_note": true}],
        "attachments": [{"filename": "f", "media_type": "a/b", "data": "https://x.example/f",
            "x_attachment": "y", "source": "user_upload"}],
        "extensions": {"chatgpt_node_id": "n", "omp_flag": 1, "bare": null}});
    let conversation = json!({"id": "550e8400-e29b-41d4-a716-446655440000",
        "created_at": "2026-03-15T09:30:00Z", "updated_at": "2026-03-15T09:30:00Z",
        "platform": "chatgpt", "message_count": 1, "messages": [message], "x_conversation": [0.1],
        "context": [{"type": "project", "id": "p"}], "extensions": {"claude_x": {"y": 1}}});
    let Value::Object(object) = conversation.clone() else { panic!() };
    let mut wrong = Vec::new();
    let (head, messages) = conversation_from(object, &mut wrong).unwrap();
    assert_eq!(wrong, []);
    let mut written = conversation_json(&head, &messages, &|_| None);
    // An address elsewhere is no attachment of the archive: it comes back as it was.
    let attachment = &mut written["messages"][0]["attachments"][0];
    assert_eq!(attachment["data"], "https://x.example/f");
    assert_eq!(written, conversation);
}

#[test]
fn omp_042_an_attachment_without_bytes_is_named_and_marked() {
    let value = json!({"id": "m", "role": "user", "content": "x", "timestamp": "2026-03-15T09:30:00Z",
        "attachments": [{"filename": "gone.png", "media_type": "image/png", "data": "",
            "x_missing": true, "size_bytes": 3}]});
    let message = message_from(value, "p", "c").unwrap();
    assert_eq!((message.attachments[0].blob, message.attachments[0].size), (None, Some(3)));
    let written = message_json(&message, &|_| None);
    assert_eq!(
        written["attachments"][0],
        json!({"filename": "gone.png",
        "media_type": "image/png", "data": "", "x_missing": true, "size_bytes": 3})
    );
}

#[test]
fn omp_056_the_count_of_messages_is_counted_not_believed() {
    let object = json!({"id": "c", "platform": "p", "created_at": "2026-03-15T09:30:00Z",
        "updated_at": "2026-03-15T09:30:00Z", "message_count": 4, "messages": [
            {"id": "m", "role": "user", "content": "x", "timestamp": "2026-03-15T09:30:00Z"}]});
    let Value::Object(object) = object else { panic!() };
    let (head, messages) = conversation_from(object, &mut Vec::new()).unwrap();
    assert_eq!(conversation_json(&head, &messages, &|_| None)["message_count"], json!(1));
}

#[test]
fn omp_083_the_manifest_counts_what_was_written() {
    let (talks, notes, _) = all(&open("good.omp.zip").unwrap());
    let at: Timestamp = "2026-04-07T12:00:00Z".parse().unwrap();
    let mut writer = Writer::new(Vec::new(), at, Some("robin".into()));
    let blob = BlobHash::of(b"\x89PNG\r\n\x1a\n");
    writer.attachment(blob, "image/png", &mut &b"\x89PNG\r\n\x1a\n"[..]).unwrap();
    writer.conversation(&talks[0].head, &talks[0].messages).unwrap();
    let created = notes[0].draft.time.created.unwrap();
    let version = Version::first(notes[0].id, notes[0].draft.clone(), created, None);
    writer.memory(&version, created).unwrap();
    let (_, manifest) = writer.finish().unwrap();
    let counts = json!({"conversations": 1, "messages": 2, "memories": 1, "attachments": 1});
    assert_eq!(json!(manifest.counts), counts);
    assert_eq!(manifest.source_platform, "multi-platform");
    assert_eq!(manifest.platforms_included.unwrap(), ["chatgpt", "claude"]);
    let range = manifest.date_range.unwrap();
    assert_eq!(range.earliest, "2026-03-15T09:30:00Z");
    assert_eq!(range.latest, "2026-03-15T09:50:00Z");
    // Bytes under a name that is not theirs, and names out of order, are refused.
    let mut writer = Writer::new(Vec::new(), at, None);
    assert!(writer.attachment(blob, "image/png", &mut &b"other"[..]).is_err());
    let mut writer = Writer::new(Vec::new(), at, None);
    writer.memory(&version, created).unwrap();
    assert!(writer.conversation(&talks[0].head, &talks[0].messages).is_err());
}

#[test]
fn omp_152_a_model_nobody_knows_is_called_unknown_and_never_invented() {
    let said = |role: &str| {
        let value = json!({"id": "m", "role": role, "content": "x",
            "timestamp": "2026-03-15T09:30:00Z", "model": null});
        message_json(&message_from(value, "claude", "c").unwrap(), &|_| None)
    };
    assert_eq!(
        (&said("assistant")["model"], &said("tool")["model"]),
        (&json!("unknown"), &json!("unknown"))
    );
    assert_eq!(said("assistant")["x_model_source"], json!("unknown"));
    assert_eq!(said("user")["model"], Value::Null);
    let again = message_from(said("assistant"), "claude", "c").unwrap();
    assert_eq!(again.model, None);
}

#[test]
fn omp_180_a_newer_minor_version_is_read_and_another_major_is_not() {
    let talk = br#"{"id":"c","platform":"x","created_at":"2026-04-07T12:00:00Z","updated_at":"2026-04-07T12:00:00Z","messages":[]}"#;
    let mut sums = Sums::default();
    sums.add("conversations/c.json", yore_canon::hash::Sha256::of(talk));
    let bytes = zipped(&[("conversations/c.json", talk)], &sums.total().to_string());
    let reader = Reader::of_bytes(bytes, Limits::default()).unwrap();
    assert_eq!(reader.manifest().omp_version, "2.1");
    assert_eq!(why(open("bad-version-3.omp.zip")), "version");
}

#[test]
fn omp_003_a_name_that_is_no_uuid_is_mapped_and_kept() {
    let (talks, ..) = all(&open("lenient-non-uuid-id.omp.zip").unwrap());
    let message = &talks[0].messages[0];
    assert_eq!(message.id.bytes()[6] >> 4, 4);
    assert_eq!(message.foreign["chatgpt"]["message_id"], json!("msg-001"));
}

#[test]
fn omp_002_a_time_without_a_zone_is_utc_and_marked() {
    let value =
        json!({"id": "m", "role": "user", "content": "x", "timestamp": "2026-03-15T09:30:00"});
    let message = message_from(value, "p", "c").unwrap();
    assert_eq!(message.at.to_string(), "2026-03-15T09:30:00Z");
    assert_eq!(message.foreign["omp"]["extensions"]["omp_assumed_utc"], json!(true));
    let shifted = json!({"id": "m", "role": "user", "content": "x",
        "timestamp": "2026-03-15T10:30:00+01:00"});
    assert_eq!(message_from(shifted, "p", "c").unwrap().at, message.at);
}

#[test]
fn omp_036_a_block_without_what_its_type_needs_is_refused_and_unknown_types_are_kept() {
    let message = |content: Value| {
        let value = json!({"id": "m", "role": "user", "content": content,
            "timestamp": "2026-03-15T09:30:00Z"});
        message_from(value, "p", "c")
    };
    for content in [
        json!([{"text": "no type"}]),
        json!([{"type": "text"}]),
        json!([{"type": "image", "media_type": "image/png"}]),
        json!([{"type": "document", "media_type": "a/b", "data": ""}]),
        json!([{"type": "code", "text": "x"}]),
        json!([{"type": "tool_use", "tool_name": "t", "tool_input": "text"}]),
        json!([{"type": "tool_result", "tool_name": "t", "output": {}}]),
        json!({"type": "text", "text": "not in a list"}),
        Value::Null,
    ] {
        assert!(message(content.clone()).is_err(), "{content}");
    }
    for content in [json!(""), json!([]), json!([{"type": "hologram", "x": 1}])] {
        assert_eq!(message(content.clone()).unwrap().content, content);
    }
}

fn written(talks: &[(Conversation, Vec<Message>)], blobs: &[(&str, &[u8])]) -> Vec<u8> {
    let at: Timestamp = "2026-04-07T12:00:00Z".parse().unwrap();
    let mut writer = Writer::new(Vec::new(), at, None);
    let mut sorted: Vec<_> =
        blobs.iter().map(|(kind, bytes)| (BlobHash::of(bytes), kind, bytes)).collect();
    sorted.sort_by_key(|(hash, ..)| hash.to_string());
    for (hash, kind, bytes) in sorted {
        writer.attachment(hash, kind, &mut &bytes[..]).unwrap();
    }
    let mut talks: Vec<_> = talks.iter().collect();
    talks.sort_by_key(|(head, _)| head.id.to_string());
    for (head, messages) in talks {
        writer.conversation(head, messages).unwrap();
    }
    writer.finish().unwrap().0
}

#[test]
fn omp_088_the_same_content_gives_the_same_bytes_and_reading_gives_it_back() {
    let (talks, notes, _) = all(&open("good.omp.zip").unwrap());
    let talks: Vec<_> = talks.into_iter().map(|talk| (talk.head, talk.messages)).collect();
    let blob: (&str, &[u8]) = ("image/png", b"\x89PNG\r\n\x1a\n");
    let first = written(&talks, &[blob]);
    assert_eq!(first, written(&talks, &[blob]));
    let reader = Reader::of_bytes(first.clone(), Limits::default()).unwrap();
    let (again, ..) = all(&reader);
    let again: Vec<_> = again.into_iter().map(|talk| (talk.head, talk.messages)).collect();
    assert_eq!(again, talks);
    assert_eq!(written(&again, &[blob]), first, "a backup of what was restored is the same");
    let note = &notes[0];
    let at = note.draft.time.created.unwrap();
    let version = Version::first(note.id, note.draft.clone(), at, None);
    let Value::Object(json) = memory_json(&version, at) else { panic!() };
    let mut restored = note.draft.clone();
    (restored.time.observed, restored.time.valid_from) = (Some(at), Some(at));
    assert_eq!(memory_from(json).unwrap().draft, restored);
}

#[test]
fn omp_084_sha256sum_agrees() {
    let (talks, ..) = all(&open("good.omp.zip").unwrap());
    let talks: Vec<_> = talks.into_iter().map(|talk| (talk.head, talk.messages)).collect();
    let bytes = written(&talks, &[("image/png", b"\x89PNG\r\n\x1a\n")]);
    let folder = tempfile::tempdir().unwrap();
    let mut zip = zip::ZipArchive::new(std::io::Cursor::new(bytes.clone())).unwrap();
    zip.extract(folder.path()).unwrap();
    let script = "find . -type f ! -path ./manifest.json | sed 's|^\\./||' | LC_ALL=C sort \
        | xargs -d '\\n' sha256sum -- | sha256sum";
    let mut shell = std::process::Command::new("sh");
    let Ok(out) = shell.arg("-c").arg(script).current_dir(folder.path()).output() else {
        println!("NOT RUN: there is no shell");
        return;
    };
    let sum = String::from_utf8(out.stdout).unwrap();
    let manifest = Reader::of_bytes(bytes, Limits::default()).unwrap().manifest().clone();
    assert_eq!(format!("sha256:{}", sum.split_whitespace().next().unwrap()), manifest.checksum);
}

#[test]
fn omp_088_a_memory_that_was_revised_is_written_again_as_it_was() {
    let time = |text: &str| text.parse::<Timestamp>().unwrap();
    let (first, then) = (time("2026-03-01T08:00:00Z"), time("2026-04-07T12:00:00Z"));
    let mut draft = Draft::text("coffee, black");
    draft.status = yore_domain::memory::Status::Candidate;
    draft.time.created = Some(then);
    draft.time.valid_to = Some(time("2027-01-01T00:00:00Z"));
    let version = Version::first(MemoryId::random(), draft, then, None);
    let written = memory_json(&version, first);
    assert_eq!(written["created_at"], json!(first.to_string()));
    let Value::Object(object) = written.clone() else { panic!() };
    let note = memory_from(object).unwrap();
    let restored = Version::first(note.id, note.draft, time("2030-01-01T00:00:00Z"), None);
    assert_eq!((restored.memory, restored.status), (version.memory, version.status));
    assert_eq!(restored.time, version.time);
    assert_eq!(memory_json(&restored, restored.time.created), written);
}

#[test]
fn omp_080_more_files_than_a_plain_zip_can_count() {
    let at: Timestamp = "2026-04-07T12:00:00Z".parse().unwrap();
    let mut writer = Writer::new(Vec::new(), at, None);
    let version = |n: u32| {
        let mut id = [0; 16];
        id[..4].copy_from_slice(&n.to_be_bytes());
        (id[6], id[8]) = (0x40, 0x80);
        Version::first(MemoryId::from_bytes(id), Draft::text("x"), at, None)
    };
    for n in 0..66_000 {
        writer.memory(&version(n), at).unwrap();
    }
    let (bytes, manifest) = writer.finish().unwrap();
    assert_eq!(manifest.counts.memories, Some(66_000));
    assert!(bytes.windows(4).rev().take(200).any(|four| four == b"PK\x06\x06"), "ZIP64 is used");
    let reader = Reader::of_bytes(bytes, Limits::default()).unwrap();
    assert_eq!(reader.manifest(), &manifest);
}

#[test]
fn omp_089_openssl_opens_what_is_written_and_what_it_writes_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let plain = std::fs::read(vector("good.omp.zip")).unwrap();
    let sealed = folder.path().join("a.omp.zip.enc");
    let mut sealer = seal(std::fs::File::create(&sealed).unwrap(), "corre\u{301}ct").unwrap();
    sealer.write_all(&plain).unwrap();
    let (_, tag) = sealer.finish().unwrap();
    let openssl = |arguments: &[&str]| {
        std::process::Command::new("openssl")
            .args(["enc", "-aes-256-cbc", "-pbkdf2", "-md", "sha256"])
            .args(arguments)
            .current_dir(folder.path())
            .output()
    };
    let opened =
        openssl(&["-d", "-iter", "600000", "-in", "a.omp.zip.enc", "-pass", "pass:corr\u{e9}ct"]);
    let Ok(opened) = opened else {
        println!("NOT RUN: there is no openssl");
        return;
    };
    assert_eq!(opened.stdout, plain, "{}", String::from_utf8_lossy(&opened.stderr));
    let reader = |password: &str, tag: Option<&str>| {
        Reader::open_sealed(&sealed, password, tag, Limits::default())
    };
    assert!(reader("corr\u{e9}ct", Some(&tag)).is_ok());
    assert_eq!(why(reader("wrong", Some(&tag))), "password");
    assert_eq!(why(reader("wrong", None)), "password");
    // What openssl writes by default has fewer rounds.
    std::fs::write(folder.path().join("b.zip"), &plain).unwrap();
    openssl(&["-e", "-in", "b.zip", "-out", "b.enc", "-pass", "pass:horse"]).unwrap();
    let b = folder.path().join("b.enc");
    assert!(Reader::open_sealed(&b, "horse", None, Limits::default()).is_ok());
}

#[test]
fn omp_089_a_changed_byte_is_noticed_before_anything_is_decrypted() {
    let folder = tempfile::tempdir().unwrap();
    let tag = std::fs::read_to_string(vector("good.omp.zip.enc.hmac")).unwrap();
    let mut bytes = std::fs::read(vector("good.omp.zip.enc")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let path = folder.path().join("x.enc");
    std::fs::write(&path, &bytes).unwrap();
    let opened = Reader::open_sealed(&path, "correct horse", Some(&tag), Limits::default());
    assert!(opened.unwrap_err().to_string().contains("wrong password or damaged file"));
    // Without the tag the checksum inside tells.
    let opened = Reader::open_sealed(&path, "correct horse", None, Limits::default());
    assert!(matches!(why(opened), "checksum" | "zip" | "manifest" | "path"));
}

/// A zip of files, with a manifest that says the right counts and this checksum.
fn zipped(files: &[(&str, &[u8])], checksum: &str) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, bytes) in files {
        zip.start_file(*name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    let manifest = json!({"omp_version": "2.1", "export_timestamp": "2026-04-07T12:00:00Z",
        "source_platform": "x", "counts": {"conversations": 1, "messages": 0}, "checksum": checksum});
    zip.start_file("manifest.json", options).unwrap();
    zip.write_all(manifest.to_string().as_bytes()).unwrap();
    zip.finish().unwrap().into_inner()
}

#[test]
fn omp_086_checksums_of_other_writers_are_recognised() {
    let talk = br#"{"id":"c","platform":"x","created_at":"2026-04-07T12:00:00Z","updated_at":"2026-04-07T12:00:00Z","messages":[]}"#;
    let files: [(&str, &[u8]); 3] =
        [("notes.txt", b"extra"), ("conversations/c.json", talk), ("attachments/z.bin", b"zz")];
    let sum = |order: &[usize]| {
        let bytes: Vec<u8> = order.iter().flat_map(|place| files[*place].1.to_vec()).collect();
        yore_canon::hash::Sha256::of(bytes).to_string()
    };
    for (order, method) in [
        (&[2, 1, 0][..], Method::PathOrder),
        (&[0, 1, 2][..], Method::DirectoryOrder),
        (&[1][..], Method::ConversationsAndMemories),
    ] {
        let bytes = zipped(&files, &sum(order));
        assert_eq!(Reader::of_bytes(bytes, Limits::default()).unwrap().method(), method);
    }
    let none = zipped(&files, &sum(&[2, 0]));
    assert_eq!(why(Reader::of_bytes(none, Limits::default())), "checksum");
}

#[test]
fn omp_087_unsafe_zips_are_refused() {
    for name in ["../a", "a/../b", "/a", "a\\b", "C:a", "a//b", "./a"] {
        let bytes = zipped(&[(name, b"x")], &"0".repeat(64));
        assert_eq!(why(Reader::of_bytes(bytes, Limits::default())), "path", "{name}");
    }
    // The same name twice, by changing one of two names of equal length.
    let mut twice = zipped(&[("a/1", b"x"), ("a/2", b"y")], "sha256:00");
    for place in 0..twice.len() - 3 {
        if &twice[place..place + 3] == b"a/2" {
            twice[place + 2] = b'1';
        }
    }
    assert_eq!(why(Reader::of_bytes(twice, Limits::default())), "path");
    let mut link = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    link.add_symlink("a", "/etc/passwd", options).unwrap();
    let link = link.finish().unwrap().into_inner();
    assert_eq!(why(Reader::of_bytes(link, Limits::default())), "path");
    let zeros = vec![0; 64 << 20];
    let bomb = zipped(&[("a", &zeros)], "sha256:00");
    let tight = Limits { ratio: 100, ..Limits::default() };
    assert_eq!(why(Reader::of_bytes(bomb.clone(), tight)), "zip", "ratio");
    let small = Limits { inflated: 1 << 20, ..Limits::default() };
    assert_eq!(why(Reader::of_bytes(bomb, small)), "zip", "size");
    let few = Limits { entries: 1, ..Limits::default() };
    assert_eq!(why(Reader::of_bytes(zipped(&[("a", b"x")], "sha256:00"), few)), "zip", "entries");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn omp_085_no_changed_byte_of_an_archive_is_imported(place in 0_usize..1779, with in 1_u8..) {
        let mut bytes = std::fs::read(vector("good.omp.zip")).unwrap();
        bytes[place] ^= with;
        if let Ok(reader) = Reader::of_bytes(bytes, Limits::default()) {
            // Only what has no meaning may change: times, attributes, the manifest's other words.
            let (talks, notes, _) = all(&reader);
            let (same, memories, _) = all(&open("good.omp.zip").unwrap());
            prop_assert_eq!(&talks[0].messages, &same[0].messages);
            prop_assert_eq!(&notes[0].draft, &memories[0].draft);
        }
    }
}

/// A message as another protocol may have stored it.
fn stored(content: Value, text: &str, id: [u8; 16]) -> Message {
    let said =
        json!({"id": "m", "role": "user", "content": "x", "timestamp": "2026-03-15T09:30:00Z"});
    let message = message_from(said, "p", "c").unwrap();
    let foreign = yore_domain::memory::Foreign::new();
    Message { id: MessageId::from_bytes(id), content, text: text.to_owned(), foreign, ..message }
}

#[test]
fn omp_059_content_of_any_form_and_ids_of_any_version_come_back() {
    let forms = [
        json!(null),
        json!(7),
        json!({"answer": "42", "deep": [{"a": null}]}),
        json!([{"no": "type"}, {"type": "text"}]),
        json!([{"type": "tool_use", "tool_name": "t", "tool_input": "not an object"}]),
        json!([{"type": "text", "text": "plain"}]),
        json!("plain"),
    ];
    let mut messages = Vec::new();
    for (number, form) in (1_u8..).zip(forms) {
        // Version 7, and one that is no UUID at all but for its length.
        let version = if number % 2 == 0 { 0x70 } else { 0x00 };
        let mut id = [number; 16];
        id[6] = version | (id[6] & 0x0f);
        let mut message = stored(form, " other words than the content's ", id);
        message.parent = messages.last().map(|before: &Message| before.id);
        message.off_path = number == 3;
        messages.push(message);
    }
    messages.sort_by_key(|message| message.off_path);
    let (talks, ..) = all(&open("good.omp.zip").unwrap());
    let mut head = talks[0].head.clone();
    head.id = ConversationId::from_bytes([9; 16]);
    let json = conversation_json(&head, &messages, &|_| None);
    let listed = json["messages"].as_array().unwrap().iter();
    for message in listed.chain(json["extensions"]["chatgpt_branches"].as_array().unwrap()) {
        let id: MessageId = message["id"].as_str().unwrap().parse().unwrap();
        assert_eq!((id.bytes()[6] >> 4, id.bytes()[8] >> 6), (4, 2), "others read UUIDs v4");
        assert!(message["content"].is_string() || message["content"].is_array(), "{message}");
    }
    let bytes = written(&[(head.clone(), messages.clone())], &[]);
    let (again, _, skips) = all(&Reader::of_bytes(bytes, Limits::default()).unwrap());
    assert_eq!(skips, []);
    assert_eq!((&again[0].head, &again[0].messages), (&head, &messages));
}

#[test]
fn omp_090_a_memory_comes_back_with_its_history() {
    let draft = Draft::text("tea");
    let first =
        Version::first(MemoryId::from_bytes([3; 16]), draft, Timestamp::from_micros(5), None);
    let mut second =
        first.next(yore_domain::memory::Cause::Revised, Timestamp::from_micros(9), None);
    second.content.body.text = "coffee".to_owned();
    // One in between is gone: the numbers close up.
    second.number = 7;
    let chain = [first.clone(), second.clone()];
    let mut writer = Writer::new(Vec::new(), Timestamp::from_micros(9), None);
    writer.history(&chain).unwrap();
    writer.history(&[]).unwrap();
    let (bytes, manifest) = writer.finish().unwrap();
    assert_eq!(manifest.counts.memories, Some(1));
    let (_, notes, skips) = all(&Reader::of_bytes(bytes, Limits::default()).unwrap());
    assert_eq!(skips, []);
    assert_eq!((notes[0].id, notes[0].active), (first.memory, true));
    assert_eq!(notes[0].versions, [first.clone(), Version { number: 2, ..second.clone() }]);
    // A chain whose end says something else than the memory is not believed.
    let mut json = history_json(&chain).unwrap();
    json["content"] = json!("water");
    let Value::Object(object) = json else { panic!() };
    let note = memory_from(object).unwrap();
    assert!(note.versions.is_empty());
    assert_eq!(note.draft.content.body.text, "water");
}

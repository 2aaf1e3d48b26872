//! Every sample export gives the counts it should.

use serde_json::{Value, json};
use yore_archive::residue::native;
use yore_domain::conversation::Role;

use crate::given::{Read, paths, read_all, sample};

const C1: &str = "9819d494-9291-484f-8ea1-d6f36fbcbb1e";
const C2: &str = "20a7c672-f0a0-45b7-a66d-f811f3f7713f";
const C3: &str = "2f030bd6-4d97-4813-b9c7-261d14bce331";

fn file(path: &str) -> Value {
    serde_json::from_slice(&std::fs::read(sample(path)).unwrap()).unwrap()
}

#[test]
fn chatgpt_of_every_layout_gives_the_expected_counts() {
    for layout in [
        "chatgpt/legacy-2024",
        "chatgpt/sharded-2026",
        "chatgpt/chatgpt-legacy.zip",
        "chatgpt/chatgpt-sharded.zip",
    ] {
        let read = Read::of(layout);
        assert_eq!(read.report.conversations, 3, "{layout}");
        assert_eq!(paths(read.with_id(C1)), (6, 3), "{layout}");
        assert_eq!(paths(read.with_id(C2)), (20, 0), "{layout}");
        assert_eq!(paths(read.with_id(C3)), (2, 1), "{layout}");
        assert_eq!(read.report.attachments, 3, "{layout}");
        assert_eq!(read.report.missing_attachments, 2, "{layout}");
        let stubs = read.report.skipped.len();
        assert_eq!(stubs, usize::from(layout.contains("sharded")), "{:?}", read.report.skipped);
        assert_eq!(read.report.unread, 0, "{layout}");
    }
}

#[test]
fn chatgpt_attachments_keep_their_names_types_and_bytes() {
    for layout in ["chatgpt/legacy-2024", "chatgpt/chatgpt-sharded.zip"] {
        let read = Read::of(layout);
        let talk = read.with_id(C2);
        let attached: Vec<_> = talk.messages.iter().flat_map(|m| &m.attachments).collect();
        let shown: Vec<_> = attached
            .iter()
            .map(|a| (a.filename.as_str(), a.media_type.as_str(), a.blob.is_some()))
            .collect();
        assert_eq!(shown[0], ("frame.png", "image/png", true), "{layout}");
        assert_eq!(shown[1], ("weights.csv", "text/csv", true), "{layout}");
        assert!(shown.contains(&("plot.png", "image/png", false)), "{shown:?}");
        assert_eq!(talk.blobs.len(), 3, "{layout}");
        for blob in &talk.blobs {
            let mut bytes = Vec::new();
            blob.open().unwrap().read_to_end(&mut bytes).unwrap();
            assert_eq!(yore_domain::BlobHash::of(&bytes), blob.hash);
            assert_eq!(bytes.len() as u64, blob.size);
        }
    }
}

#[test]
fn chatgpt_tools_thoughts_and_documents_have_their_blocks() {
    let read = Read::of("chatgpt/legacy-2024");
    let talk = read.with_id(C2);
    let blocks: Vec<&Value> =
        talk.messages.iter().flat_map(|m| m.content.as_array().into_iter().flatten()).collect();
    let of = |kind: &str| blocks.iter().filter(|block| block["type"] == kind).count();
    assert_eq!((of("tool_use"), of("document"), of("image")), (4, 1, 2));
    assert!(blocks.iter().any(|block| block["x_kind"] == "thinking"));
    assert!(blocks.iter().any(|block| block["output"] == "41.25\n"));
    let image = blocks.iter().find(|block| block["type"] == "image").unwrap();
    assert!(image["data"].as_str().unwrap().starts_with("attachments/"));
    let rated = talk
        .messages
        .iter()
        .find(|m| m.foreign.get("omp").is_some_and(|omp| omp.get("annotations").is_some()));
    assert_eq!(rated.unwrap().foreign["omp"]["annotations"][0]["text"], "thumbs_up");
    let first = read.with_id(C1);
    let hidden = first.messages.iter().filter(|m| m.foreign["chatgpt"]["hidden"] == true).count();
    assert_eq!(hidden, 2);
    assert_eq!(first.messages[1].role, Role::System, "custom instructions");
    assert!(!first.messages[3].text.contains('\u{e200}'), "marks are not searched");
    let facts: Vec<&str> = read.notes.iter().map(|n| n.draft.content.body.text.as_str()).collect();
    assert_eq!(
        facts,
        ["Preferred name: Robin\nRole: beekeeper", "Answer briefly. Use metric units.",]
    );
}

#[test]
fn claude_gives_the_expected_counts() {
    for layout in ["claude/data-2026-03", "claude/claude-data-batch-0000.zip"] {
        let read = Read::of(layout);
        assert_eq!(read.report.conversations, 3 + 1 + 1, "three, a design chat, a project");
        assert_eq!(read.report.empty, 1);
        assert_eq!(paths(read.titled("AGM minutes")), (4, 1));
        assert_eq!(paths(read.with_id("f400b6cc-cdf0-44bf-b63e-db24db459467")), (1, 0));
        assert_eq!(paths(read.titled("Empty")), (0, 0));
        assert_eq!(paths(read.titled("Poster")), (2, 0));
        let said = read.titled("AGM minutes");
        let attached: Vec<_> = said.messages.iter().flat_map(|m| &m.attachments).collect();
        assert_eq!(attached.iter().filter(|a| a.blob.is_some()).count(), 1);
        assert_eq!(attached.iter().filter(|a| a.blob.is_none()).count(), 1);
        // Two headings of the summary, one project's memory, one project's instructions.
        let notes: Vec<&str> =
            read.notes.iter().map(|n| n.draft.content.body.text.as_str()).collect();
        assert_eq!(notes.len(), 4, "{notes:?}");
        assert_eq!(notes[0], "Work context: Robin keeps bees in the Vosges.");
        assert_eq!((read.report.skipped.len(), read.report.unread), (0, 0));
    }
}

#[test]
fn claude_regenerated_answers_do_not_mix_and_artifacts_are_replayed() {
    let read = Read::of("claude/api-style");
    let talk = &read.talks[0];
    assert_eq!(paths(talk), (4, 1));
    assert_eq!(talk.head.model.as_deref(), Some("claude-sonnet-4-5-20250929"));
    let answer = &talk.messages[1];
    let kinds: Vec<&str> = answer
        .content
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        ["text", "tool_use", "tool_result", "text", "document", "tool_use", "tool_result",]
    );
    assert_eq!(answer.content[4]["x_text"], "# AGM\n\n- 21 May\n");
    assert!(talk.messages[0].text.starts_with("Summarise"), "text is empty in this form");
    let old = Read::of("claude/data-2025-old");
    assert_eq!(old.talks.iter().filter(|t| t.head.tags.is_empty()).count(), 1);
    assert_eq!(old.talks[0].messages[0].text, "Old export: text only");
}

#[test]
fn omp_059_native_exports_come_back_from_the_samples() {
    let read = Read::of("chatgpt/legacy-2024");
    for original in file("chatgpt/legacy-2024/conversations.json").as_array().unwrap() {
        let talk = read.with_id(original["id"].as_str().unwrap());
        assert_eq!(&native(&talk.head, &talk.messages).unwrap(), original);
    }
    let read = Read::of("claude/data-2026-03");
    for original in file("claude/data-2026-03/conversations.json").as_array().unwrap() {
        let talk = read.with_id(original["uuid"].as_str().unwrap());
        assert_eq!(&native(&talk.head, &talk.messages).unwrap(), original);
    }
}

#[test]
fn reading_again_yields_the_same_values() {
    let (a, b) = (Read::of("chatgpt/legacy-2024"), Read::of("chatgpt/chatgpt-legacy.zip"));
    assert_eq!(a.report.messages, b.report.messages);
    for talk in &a.talks {
        let twin = b.with_id(&talk.head.id.to_string());
        assert_eq!((&twin.head, &twin.messages), (&talk.head, &talk.messages));
    }
    let ids = |read: &Read| read.notes.iter().map(|note| note.id).collect::<Vec<_>>();
    assert_eq!(ids(&a), ids(&b));
}

#[test]
fn several_sources_at_once_are_one_import() {
    let read = read_all(&[sample("chatgpt/chatgpt-legacy.zip"), sample("claude")]);
    assert_eq!(read.report.platforms["chatgpt"], 3);
    // Three layouts of one account: the copies that are not newer are not read again.
    assert_eq!(read.report.platforms["claude"], 3 + 2 + 2 + 1, "{:?}", read.report);
    assert_eq!(json!(read.report.skipped), json!([]));
}

use std::io::Read as _;

//! The samples of every other platform.

use serde_json::Value;
use yore_archive::Talk;
use yore_archive::residue::native;
use yore_domain::conversation::Role;
use yore_domain::kind::Facet;

use crate::given::{Read, paths, read_all, sample};

fn roles(talk: &Talk, role: Role) -> usize {
    talk.messages.iter().filter(|message| message.role == role).count()
}

fn blocks<'a>(talk: &'a Talk, kind: &str) -> Vec<&'a Value> {
    let all = talk.messages.iter().flat_map(|m| m.content.as_array().into_iter().flatten());
    all.filter(|block| block["type"] == kind).collect()
}

fn texts(read: &Read) -> Vec<&str> {
    read.notes.iter().map(|note| note.draft.content.body.text.as_str()).collect()
}

fn parsed(path: &str) -> Value {
    serde_json::from_slice(&std::fs::read(sample(path)).unwrap()).unwrap()
}

#[test]
fn claude_code() {
    let read = Read::of("claude-code");
    assert_eq!(read.talks.len(), 2, "a session and a sidechain");
    let session = read.titled("Fix the hive sensor");
    assert_eq!(paths(session), (7, 1));
    assert_eq!(roles(session, Role::Tool), 1);
    assert_eq!(blocks(session, "tool_use").len(), 1);
    let side = read.talks.iter().find(|t| t.head.tags.contains(&"sidechain".into())).unwrap();
    assert_eq!(side.messages.len(), 1);
    assert_eq!(read.report.skipped.len(), 1, "the last line is cut off");
    assert!(read.report.skipped[0].what.as_deref().unwrap().starts_with("line 1"));
    assert_eq!(texts(&read), ["Use metric units."]);
    let usage = session.messages.iter().filter(|message| {
        message.foreign.get("omp").is_some_and(|omp| omp.get("token_usage").is_some())
    });
    assert_eq!(usage.count(), 2, "one for each answer of the model");
}

#[test]
fn codex_plain_and_packed() {
    let plain = Read::of("codex");
    let folder = tempfile::tempdir().unwrap();
    let name = "rollout-2026-03-14T09-26-53-019cebab-8995-77de-8cf4-0144bdf7d000.jsonl";
    let from = sample("codex/dot-codex/sessions/2026/03/14").join(name);
    let packed = folder.path().join(format!("{name}.zst"));
    let bytes = std::fs::read(from).unwrap();
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    std::fs::write(&packed, ruzstd::encoding::compress_to_vec(&bytes[..], level)).unwrap();
    let zipped = read_all(&[packed]);
    assert_eq!(plain.titled("Mite counter").messages, zipped.talks[0].messages);
    let talk = plain.titled("Mite counter");
    assert_eq!((roles(talk, Role::User), roles(talk, Role::System)), (1, 2));
    let injected = talk.messages.iter().filter(|m| m.foreign["codex"]["injected"] == true);
    assert_eq!(injected.count(), 2);
    let answers = talk.messages.iter().filter(|m| m.role == Role::Assistant && !m.text.is_empty());
    assert_eq!(answers.map(|m| m.text.as_str()).collect::<Vec<_>>(), ["Done."]);
    assert_eq!((blocks(talk, "tool_use").len(), blocks(talk, "tool_result").len()), (2, 2));
    assert_eq!(blocks(talk, "tool_result")[1]["tool_name"], "apply_patch");
    let thoughts = talk.messages.iter().filter(|m| m.foreign["codex"]["reasoning"] == true);
    assert_eq!(thoughts.count(), 1);
    assert_eq!((talk.blobs.len(), talk.blobs[0].media_type()), (1, "image/png"));
    assert_eq!(talk.head.model.as_deref(), Some("gpt-5.3-codex"));
}

#[test]
fn gemini_takeout() {
    let read = Read::of("gemini/takeout-json");
    assert_eq!(read.talks.len(), 4, "exchanges");
    assert_eq!(read.report.skipped.len(), 3, "activities that are no chat");
    assert_eq!(read.report.branch_messages, 1, "an answer made again");
    assert_eq!(read.report.attachments, 1);
    let comb = read.titled("How do I store drawn comb?");
    assert_eq!(
        comb.messages[1].text,
        "Keep it dry:\n\n- ventilate\n- no light\n\n```python\nprint('ok')\n```"
    );
    assert_eq!(comb.head.foreign["gemini"]["grouping"], "url");
    assert_eq!(read.titled("hello bard").messages[1].text, "Hello!");
    assert_eq!(read.report.unread, 0);
}

#[test]
fn gemini_takeout_as_a_page_in_two_languages() {
    let read = Read::of("gemini/takeout-html-en");
    let first = read.titled("How do I store drawn comb?");
    assert_eq!(first.messages[1].text, "Keep it dry.");
    assert_eq!(first.messages[0].at.to_string(), "2026-03-14T09:28:53Z");
    let second = read.titled("And for wax moths?");
    assert_eq!(second.messages[0].at.to_string(), "2026-03-14T08:31:53Z");
    let read = Read::of("gemini/takeout-html-de");
    let talk = read.titled("Wie lagere ich Waben?");
    assert_eq!(talk.messages[0].at.to_string(), "2026-03-14T09:28:53Z");
}

#[test]
fn gemini_ai_studio() {
    let read = Read::of("gemini/ai-studio");
    let talk = read.titled("Hive log");
    assert_eq!(talk.messages.iter().filter(|m| m.role != Role::System).count(), 8, "chunks");
    assert_eq!(talk.messages[0].text, "You are a bee inspector.");
    assert_eq!((read.report.attachments, read.report.missing_attachments), (1, 1));
    assert_eq!(talk.head.model.as_deref(), Some("gemini-2.5-pro"));
    let original = parsed("gemini/ai-studio/Google AI Studio/Hive log");
    assert_eq!(native(&talk.head, &talk.messages).unwrap(), original);
}

#[test]
fn gemini_cli() {
    let folder = tempfile::tempdir().unwrap();
    let session = serde_json::json!({"sessionId": "s-1", "projectHash": "abc",
        "startTime": "2026-03-14T09:26:53Z", "messages": [
            {"id": "1", "type": "user", "content": "hi", "timestamp": "2026-03-14T09:26:53Z"},
            {"id": "2", "type": "gemini", "content": "hello", "timestamp": "2026-03-14T09:26:54Z",
             "thoughts": [{"subject": "Greet", "description": "back"}],
             "toolCalls": [{"name": "ls", "args": {"p": "."}, "result": [{"x": 1}]}],
             "tokens": {"input": 3, "output": 1}}]});
    std::fs::write(folder.path().join("session-1.json"), session.to_string()).unwrap();
    let read = read_all(&[folder.path().to_owned()]);
    let talk = &read.talks[0];
    assert_eq!((talk.head.platform.as_str(), talk.messages.len()), ("gemini-cli", 2));
    assert_eq!(blocks(talk, "tool_result")[0]["x_output"], serde_json::json!([{"x": 1}]));
    assert_eq!(native(&talk.head, &talk.messages).unwrap(), session);
}

#[test]
fn cursor_all_three_stores() {
    let read = Read::of("cursor");
    let composer = read.titled("Fix hive sensor");
    assert_eq!(composer.messages.len(), 4);
    assert_eq!(composer.head.foreign["omp"]["context"][0]["id"].as_str().unwrap().len(), 23);
    assert_eq!(blocks(composer, "tool_use")[0]["tool_input"]["target_file"], "sensor.rs");
    let tagged =
        |tag: &str| read.talks.iter().filter(|t| t.head.tags.contains(&tag.into())).count();
    assert_eq!((tagged("chat-pane"), tagged("cli")), (1, 1));
    assert_eq!(read.talks.len(), 2 + 1 + 1, "two composers, one pane, one session");
    let why = |text: &str| read.report.skipped.iter().filter(|s| s.reason == text).count();
    assert_eq!(why("a conversation that never began"), 1);
    assert_eq!(why("an empty row"), 1);
    assert_eq!(why("the store lacks it"), 1);
    // A running clock is no time.
    let legacy =
        read.talks.iter().find(|t| t.messages[0].text == "inline legacy question").unwrap();
    assert_eq!(legacy.messages[1].at.to_string(), "2026-03-14T09:26:48.589Z");
    let session = read.titled("list files");
    assert_eq!(session.messages[0].text, "list files");
}

#[test]
fn cursor_stores_are_not_changed_by_reading() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("state.vscdb");
    std::fs::copy(sample("cursor/User/globalStorage/state.vscdb"), &copy).unwrap();
    let before = std::fs::read(&copy).unwrap();
    let read = read_all(&[folder.path().to_owned()]);
    assert_eq!(read.talks.len(), 2);
    assert_eq!(std::fs::read(&copy).unwrap(), before);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing lies beside it");
}

#[test]
fn cursor_transcript_alone() {
    let read = Read::of("cursor/dot-cursor/projects");
    assert_eq!(read.talks.len(), 1);
    assert_eq!(read.talks[0].messages[0].text, "list files");
}

#[test]
fn perplexity_in_three_forms() {
    let request = Read::of("perplexity/gdpr-export");
    assert_eq!((request.report.conversations, request.report.messages), (1, 3));
    let page = Read::of("perplexity/rest-thread");
    assert_eq!((page.report.conversations, page.report.messages), (1, 2));
    let cited = &page.talks[0].messages[1].foreign["perplexity"]["sources"];
    assert_eq!(cited.as_array().unwrap().len(), 1);
    let saved = Read::of("perplexity/thread-exporter");
    assert_eq!(saved.report.messages, 2);
    // The same thread, whoever exported it.
    assert_eq!(page.talks[0].head.id, saved.talks[0].head.id);
    assert_eq!(page.talks[0].messages[1].id, request.talks[0].messages[1].id);
    let original = parsed("perplexity/gdpr-export/conversations.json");
    let talk = &request.talks[0];
    assert_eq!(native(&talk.head, &talk.messages).unwrap(), original["conversations"][0]);
}

#[test]
fn grok() {
    let read = Read::of("grok");
    let talk = read.titled("Bees on X");
    assert_eq!(paths(talk), (3, 2));
    assert_eq!(read.report.attachments, 1);
    assert_eq!(talk.messages[0].attachments[0].media_type, "text/plain");
    assert_eq!(texts(&read), ["Terse."]);
    assert_eq!(read.report.unread, 0);
    let folder = "grok/ttl/30d/export_data/5719df8f-0260-42e9-95c6-60a1af0fd829";
    let original = parsed(&format!("{folder}/prod-grok-backend.json"));
    assert_eq!(native(&talk.head, &talk.messages).unwrap(), original["conversations"][0]);
}

#[test]
fn copilot_tables() {
    let read = Read::of("copilot/microsoft-privacy-dashboard");
    let counts = |title: &str| {
        let found = read.talks.iter().filter(|t| t.head.title.as_deref() == Some(title));
        found.map(|t| t.messages.len()).collect::<Vec<_>>()
    };
    assert_eq!(counts("Bee facts"), [2, 1], "a day of silence ends a conversation");
    assert_eq!(counts("Hello chat"), [2]);
    assert_eq!(counts("Notepad"), [1]);
    let fact = read.titled("Bee facts");
    assert_eq!(fact.messages[0].text, "Tell me a bee fact,\nplease");
    assert_eq!(fact.messages[1].text, "Bees have \"five\" eyes.");
    assert_eq!(fact.messages[1].role, Role::Assistant);
    assert_eq!(read.titled("Hello chat").messages[0].at.to_string(), "2026-03-14T09:26:53Z");
}

#[test]
fn copilot_in_vscode() {
    let read = Read::of("copilot/vscode");
    assert_eq!(read.talks.len(), 2);
    let log = read.titled("Explain hive.rs (log)");
    assert_eq!(log.messages[1].text, "It counts bees.", "the log was replayed");
    let whole = read.titled("Explain hive.rs");
    assert_eq!(whole.messages[1].text, "It counts bees.");
    assert_eq!(blocks(whole, "tool_use").len(), 1);
    assert!(whole.head.foreign["omp"]["context"][0]["id"].as_str().unwrap().starts_with("file://"));
}

#[test]
fn open_webui_export_and_database_agree() {
    let export = read_all(&[sample("open-webui/chat-export-1773480413000.json")]);
    let talk = export.titled("Bee names");
    assert_eq!(paths(talk), (3, 1));
    assert_eq!(talk.messages[1].text, "*Apis mellifera*.", "the thought is apart");
    assert_eq!(talk.messages[1].content[0]["x_kind"], "thinking");
    assert_eq!(talk.messages[1].content[0]["text"], "hmm");
    assert_eq!(export.report.attachments, 1);
    let original = parsed("open-webui/chat-export-1773480413000.json");
    assert_eq!(native(&talk.head, &talk.messages).unwrap(), original[0]);
    let database = read_all(&[sample("open-webui/webui.db")]);
    assert_eq!(database.titled("Bee names").messages, talk.messages);
    assert_eq!(texts(&database), ["User keeps bees."]);
}

#[test]
fn lm_studio() {
    let read = Read::of("lm-studio");
    let talk = read.titled("Bee chat");
    assert_eq!(paths(talk), (3, 1), "two, a system prompt, and an alternative");
    assert_eq!(talk.messages[0].role, Role::System);
    assert_eq!(talk.messages[2].text, "Propolis is plant resin.");
    assert_eq!(talk.messages[3].text, "A kind of wax.");
    assert_eq!(read.report.missing_attachments, 1);
    let original = parsed("lm-studio/conversations/Bees/1773480413000.conversation.json");
    assert_eq!(native(&talk.head, &talk.messages).unwrap(), original);
}

#[test]
fn ollama_database_and_prompts() {
    let read = Read::of("ollama");
    let talk = read.titled("Smoker fuel");
    assert_eq!(talk.messages.len(), 3);
    assert_eq!(blocks(talk, "tool_use").len(), 1);
    assert_eq!((talk.blobs.len(), talk.messages[0].attachments.len()), (1, 1));
    assert_eq!(talk.messages[0].at.to_string(), "2026-03-14T09:26:53.589793Z");
    let prompts = read.talks.iter().find(|t| t.head.foreign["ollama"]["prompts_only"] == true);
    assert_eq!(prompts.unwrap().messages.len(), 3);
}

#[test]
fn databases_inside_a_zip_are_read_from_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("backup.zip");
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
    let options = zip::write::SimpleFileOptions::default();
    zip.start_file("data/webui.db", options).unwrap();
    let bytes = std::fs::read(sample("open-webui/webui.db")).unwrap();
    std::io::Write::write_all(&mut zip, &bytes).unwrap();
    zip.finish().unwrap();
    assert_eq!(read_all(&[path]).titled("Bee names").messages.len(), 4);
}

#[test]
fn mem0_platform_and_open_source() {
    let read = Read::of("mem0/platform-get-all");
    assert_eq!(texts(&read), ["Keeps bees in the Vosges", "Prefers metric units"]);
    assert_eq!(read.notes[0].draft.content.tags, ["hobbies"]);
    let expires = read.notes[1].draft.content.lifecycle.expires.unwrap();
    assert_eq!(expires.to_string(), "2026-12-31T00:00:00Z");
    let read = Read::of("mem0/oss-get-all");
    assert_eq!(texts(&read), ["Name is Robin", "robin keeps bees"]);
    assert_eq!(read.notes[1].draft.content.facet, Facet::Entity);
}

#[test]
fn letta_agent_file() {
    let read = Read::of("letta");
    let talk = read.titled("BeeBot");
    assert_eq!(talk.messages.len(), 5);
    assert_eq!((blocks(talk, "tool_use").len(), blocks(talk, "tool_result").len()), (1, 1));
    assert_eq!(texts(&read), ["Name: Robin\nKeeps bees.", "I am BeeBot."]);
    // A file that was encoded twice is the same agent.
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(sample("letta/beebot.af")).unwrap();
    let path = folder.path().join("twice.af");
    std::fs::write(&path, serde_json::to_string(&text).unwrap()).unwrap();
    assert_eq!(read_all(&[path]).report.messages, 5);
}

#[test]
fn memory_files() {
    let read = Read::of("memory-files");
    let texts = texts(&read);
    for text in [
        "This repo tracks hives.",
        "Prefer `rg` to `grep`.",
        "Run `cargo test` before commits.",
        "Never edit `generated/`.",
        "Use metric units. See @docs/style.md",
        "User keeps bees in the Vosges.",
        "Prefers short answers.",
    ] {
        assert!(texts.contains(&text), "{text}: {texts:?}");
    }
    assert_eq!(texts.len(), 7);
    let short = read.notes.iter().find(|n| n.draft.content.body.text == "Prefers short answers.");
    assert_eq!(short.unwrap().draft.content.facet, Facet::Preference);
    let dated = read.notes.iter().find(|n| n.draft.content.body.text.starts_with("User keeps"));
    let created = dated.unwrap().draft.time.created.unwrap();
    assert_eq!(created.to_string(), "2025-11-02T00:00:00Z");
}

#[test]
fn graphs_and_notes_of_other_memory_servers() {
    let folder = tempfile::tempdir().unwrap();
    let lines = "{\"type\":\"entity\",\"name\":\"Robin\",\"entityType\":\"person\",\"observations\":[\"keeps bees\",\"speaks French\"]}\n{\"type\":\"relation\",\"from\":\"Robin\",\"to\":\"Hive\",\"relationType\":\"owns\"}\n{\"type\":\"ent";
    std::fs::write(folder.path().join("memory.jsonl"), lines).unwrap();
    let note = "---\ntitle: Hive\npermalink: bees/hive\n---\n\n# Hive\n\n- [fact] Has six frames #hive\n- kept_by [[Robin]]\n";
    std::fs::write(folder.path().join("Hive.md"), note).unwrap();
    let read = read_all(&[folder.path().to_owned()]);
    assert_eq!(
        texts(&read),
        ["Robin: keeps bees", "Robin: speaks French", "Hive: Has six frames #hive"]
    );
    assert_eq!(read.notes[0].draft.content.relations[0].target, "entity:Hive");
    assert_eq!(read.notes[2].draft.content.tags, ["fact", "hive"]);
    assert_eq!(read.notes[2].draft.content.relations[0].kind, "kept_by");
    assert_eq!(read.report.skipped.len(), 1);
}

#[test]
fn everything_at_once_is_told_apart() {
    let read = read_all(&[sample("")]);
    let counted: Vec<(&str, u64)> =
        read.report.platforms.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    let names: Vec<&str> = counted.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        [
            "chatgpt",
            "claude",
            "claude-code",
            "codex",
            "copilot",
            "cursor",
            "gemini",
            "grok",
            "letta",
            "lm-studio",
            "ollama",
            "open-webui",
            "perplexity",
            "vscode-copilot",
        ]
    );
}

#[test]
fn archives_among_other_exports_with_and_without_their_password() {
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/omp");
    let of = |name: &str| std::path::PathBuf::from(vectors).join(name);
    let plain = read_all(&[of("good.omp.zip")]);
    assert_eq!((plain.talks.len(), plain.notes.len()), (1, 1));
    let sealed = [of("good.omp.zip.enc"), of("good.omp.zip.enc.hmac")];
    let source = yore_archive::Source::open(&sealed, yore_archive::Limits::default()).unwrap();
    assert!(source.is_sealed());
    let mut talks = Vec::new();
    let mut take = |item| {
        if let yore_archive::Item::Conversation(talk) = item {
            talks.push(*talk);
        }
        Ok(())
    };
    let without = yore_archive::read(&source, &mut take).unwrap();
    assert!(without.skipped[0].reason.contains("under a password"));
    let source = source.with_password("correct horse".into());
    let report = yore_archive::read(&source, &mut take).unwrap();
    assert_eq!((report.skipped.len(), report.unread), (0, 0));
    assert_eq!(talks[0].messages, plain.talks[0].messages);
    // A damaged archive gives nothing at all.
    let damaged = read_all(&[of("bad-tampered-message.omp.zip")]);
    assert_eq!((damaged.talks.len(), damaged.notes.len()), (0, 0));
    assert!(damaged.report.skipped[0].reason.starts_with("checksum"));
}

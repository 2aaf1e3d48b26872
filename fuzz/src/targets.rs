//! What each target does with bytes, whoever made them: a fuzzer, or the short run of the tests.
//!
//! A target never panics on any bytes. Where something is read, it also checks that what was read
//! means the same when it is written and read again.

use yore_archive::omp::Reader;
use yore_archive::{Limits, Sink, Source, read};
use yore_canon::captoken::{self, Token};
use yore_canon::did::{Did, Document};
use yore_canon::jws::{self, Compact};
use yore_canon::key::{Algorithm, SigningKey};
use yore_canon::{encode, jcs, json};
use yore_domain::conversation::{Conversation, Message};
use yore_domain::memory::Draft;
use yore_domain::mutation::{Mutation, Patch};
use yore_domain::query::Recall;
use yore_domain::{Span, Timestamp};

/// One target: its name, what it does, and where samples of its input lie beside its own corpus.
pub type Target = (&'static str, fn(&[u8]), Option<&'static str>);

/// Those that need nothing but the parsers themselves.
pub const TARGETS: &[Target] = &[
    ("json", strict_json, None),
    ("captoken", capability, None),
    ("jws", signed, None),
    ("did", identifier, None),
    ("time", times, None),
    ("input", model, None),
    ("omp", archive, Some("tests/vectors/omp")),
    ("records", records, None),
    ("export", |data| read_as(&EXPORTS, data), None),
    ("chatgpt", |data| read_as(&CHATGPT, data), Some("tests/vectors/connectors/chatgpt")),
    ("claude", |data| read_as(&CLAUDE, data), Some("tests/vectors/connectors/claude")),
    (
        "claude_code",
        |data| read_as(&["session.jsonl"], data),
        Some("tests/vectors/connectors/claude-code"),
    ),
    ("codex", |data| read_as(&CODEX, data), Some("tests/vectors/connectors/codex")),
    ("copilot", |data| read_as(&COPILOT, data), Some("tests/vectors/connectors/copilot")),
    ("cursor", |data| read_as(&CURSOR, data), Some("tests/vectors/connectors/cursor")),
    ("gemini", |data| read_as(&GEMINI, data), Some("tests/vectors/connectors/gemini")),
    (
        "grok",
        |data| read_as(&["prod-grok-backend.json"], data),
        Some("tests/vectors/connectors/grok"),
    ),
    ("letta", |data| read_as(&["agent.af"], data), Some("tests/vectors/connectors/letta")),
    (
        "lm_studio",
        |data| read_as(&["1.conversation.json"], data),
        Some("tests/vectors/connectors/lm-studio"),
    ),
    ("mem0", |data| read_as(&["memories.json"], data), Some("tests/vectors/connectors/mem0")),
    (
        "notes",
        |data| read_as(&["CLAUDE.md", "note.md"], data),
        Some("tests/vectors/connectors/memory-files"),
    ),
    (
        "ollama",
        |data| read_as(&["db.sqlite", "history"], data),
        Some("tests/vectors/connectors/ollama"),
    ),
    (
        "open_webui",
        |data| read_as(&["chats.json", "webui.db"], data),
        Some("tests/vectors/connectors/open-webui"),
    ),
    (
        "perplexity",
        |data| read_as(&["threads.json", "thread.md"], data),
        Some("tests/vectors/connectors/perplexity"),
    ),
    ("server_memory", |data| read_as(&["memory.jsonl"], data), None),
];

const EXPORTS: [&str; 8] = [
    "conversations.json",
    "export.zip",
    "session.jsonl",
    "rollout-1.jsonl.zst",
    "state.vscdb",
    "MyActivity.html",
    "activity.csv",
    "CLAUDE.md",
];
const CHATGPT: [&str; 3] = ["conversations.json", "conversations-000.json", "export.zip"];
const CLAUDE: [&str; 4] = ["conversations.json", "memories.json", "projects.json", "batch.zip"];
const CODEX: [&str; 3] = ["rollout-1.jsonl", "rollout-1.jsonl.zst", "history.jsonl"];
const COPILOT: [&str; 3] = ["activity.csv", "session.json", "session.jsonl"];
const CURSOR: [&str; 3] = ["state.vscdb", "store.db", "agent.jsonl"];
const GEMINI: [&str; 4] = ["MyActivity.json", "MyActivity.html", "prompt.json", "session.json"];

/// What a request of any protocol may hold.
const BODY: json::Limits = json::Limits { bytes: 2 << 20, depth: 32, nodes: 2_000_000 };

/// What an archive may grow to here.
fn small() -> Limits {
    Limits { inflated: 64 << 20, piece: 1 << 20, ..Limits::default() }
}

/// Reads the bytes as a file with one of these names, as an import would: what is refused is
/// refused, and nothing is written beside the file.
pub fn read_as(names: &[&str], data: &[u8]) {
    // The length chooses, so that a sample of an export is a seed as it is.
    let name = names[data.len() % names.len()];
    let thread = std::thread::current().id();
    let folder = std::env::temp_dir().join(format!("yore-fuzz-{}-{thread:?}", std::process::id()));
    let path = folder.join(name);
    if std::fs::create_dir_all(&folder).is_err() || std::fs::write(&path, data).is_err() {
        return;
    }
    if let Ok(source) = Source::open(std::slice::from_ref(&path), small()) {
        let _ = read(&source, &mut |_| Ok(())); // what is refused is refused
    }
    let beside = std::fs::read_dir(&folder).map_or(0, Iterator::count);
    assert!(beside <= 1, "something was written beside the file");
    let _ = std::fs::remove_dir_all(&folder); // the next round makes it again
}

/// Strict JSON and its canonical form: what is read is written the same way twice.
pub fn strict_json(bytes: &[u8]) {
    let Ok(value) = json::parse(bytes) else { return };
    let canonical = jcs::canonical(&value);
    let again = json::parse(canonical.as_bytes()).expect("canonical JSON is strict JSON");
    assert_eq!(jcs::canonical(&again), canonical);
}

/// Capability tokens: none that was not signed is believed.
pub fn capability(bytes: &[u8]) {
    let key = SigningKey::from_seed(Algorithm::Ed25519, &[7; 32]).expect("a fixed seed");
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(token) = Token::decode(text)
    {
        assert!(token.verify(&key.verifying_key()).is_err(), "nobody signed this");
        let _ = token.verify_by_issuer(); // whoever signed it
    }
    // Whatever claims there are, signing and reading them gives them back.
    if let Ok(claims) = json::parse_object(bytes, json::Limits::default())
        && let Ok(text) = captoken::encode(&claims, &key)
    {
        let token = Token::decode(&text).expect("our own token is one");
        assert_eq!(token.verify(&key.verifying_key()).expect("our own signature"), &claims);
    }
}

/// Signed tokens of the web: none that was not signed is believed.
pub fn signed(bytes: &[u8]) {
    for algorithm in [Algorithm::Ed25519, Algorithm::P256] {
        let key = SigningKey::from_seed(algorithm, &[7; 32]).expect("a fixed seed");
        if let Ok(text) = std::str::from_utf8(bytes) {
            if let Ok(token) = Compact::parse(text) {
                assert!(token.verify(&key.verifying_key()).is_err(), "nobody signed this");
            }
            assert!(jws::verify_hs256(text, b"a secret nobody knows").is_err());
            let _ = jws::flattened(text); // any text is an answer or none
        }
        let signed = jws::sign(&key, "k", None, bytes);
        let token = Compact::parse(&signed).expect("our own token is one");
        // A token about nothing looks like one whose payload is elsewhere.
        if !bytes.is_empty() {
            assert_eq!(token.verify(&key.verifying_key()).expect("our own signature"), bytes);
        }
    }
    let _ = jws::claims(bytes); // any bytes are claims or none
}

/// Identifiers and their documents: what is read prints as it was.
pub fn identifier(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        if let Ok(did) = text.parse::<Did>() {
            assert_eq!(did.as_str(), text);
            let _ = (did.web_url(), did.web_host()); // some have none
            if let Ok(key) = did.key() {
                assert_eq!(Did::of_key(&key).as_str(), text, "a key has one name");
            }
        }
        if let Ok((base, decoded)) = encode::from_multibase(text) {
            let again = encode::multibase(base, &decoded);
            let (_, twice) = encode::from_multibase(&again).expect("our own spelling");
            assert_eq!(twice, decoded);
        }
    }
    let did: Did = "did:web:example.org".parse().expect("a fixed name");
    let _ = Document::parse(bytes, &did); // any bytes are a document or none
}

/// Times and lengths of time: what is read prints as something that reads the same.
pub fn times(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(time) = text.parse::<Timestamp>() {
        assert_eq!(time.to_string().parse::<Timestamp>().expect("our own spelling"), time);
        assert!((Timestamp::MIN..=Timestamp::MAX).contains(&time));
    }
    for span in [Span::parse_iso(text), Span::parse_human(text)].into_iter().flatten() {
        assert!(span.micros() >= 0);
        let (early, late) = (Timestamp::MIN.plus(span), Timestamp::MAX.minus(span));
        assert!(early >= Timestamp::MIN && late <= Timestamp::MAX);
    }
    if let Ok(time) = serde_json::from_str::<Timestamp>(text) {
        assert_eq!(time.to_string().parse::<Timestamp>().expect("our own spelling"), time);
    }
}

/// Bodies of requests, as the HTTP surface reads them: within limits, then into the model.
pub fn model(bytes: &[u8]) {
    if let Ok(draft) = json::parse_as::<Draft>(bytes, BODY) {
        let _ = draft.validate(); // it is valid or it is not
        let text = serde_json::to_vec(&draft).expect("a draft is JSON");
        let again: Draft = json::parse_as(&text, BODY).expect("our own spelling");
        assert_eq!(again, draft);
    }
    if let Ok(message) = json::parse_as::<Message>(bytes, BODY) {
        let _ = message.validate(); // it is valid or it is not
    }
    if let Ok(mutation) = json::parse_as::<Mutation>(bytes, BODY) {
        let text = serde_json::to_vec(&mutation).expect("a mutation is JSON");
        let again: Mutation = json::parse_as(&text, BODY).expect("our own spelling");
        assert_eq!(again, mutation);
    }
    let _ = json::parse_as::<Recall>(bytes, BODY); // any bytes are one or none
    let _ = json::parse_as::<Patch>(bytes, BODY); // the same
    let _ = json::parse_as::<Conversation>(bytes, BODY); // the same
}

/// Archives: what was verified can be read.
pub fn archive(bytes: &[u8]) {
    let Ok(reader) = Reader::of_bytes(bytes.to_vec(), small()) else { return };
    reader.read(&mut Sink::new(&mut |_| Ok(()))).expect("invariant: the archive was verified");
}

/// Documents of OMP: what is read is valid, or refused with a reason.
pub fn records(bytes: &[u8]) {
    let Ok(object) = json::parse_object(bytes, BODY) else { return };
    let _ = yore_archive::omp::memory_from(object.clone()); // it is one or it is none
    let mut wrong = Vec::new();
    let read = yore_archive::omp::conversation_from(object.clone(), &mut wrong);
    if let Ok((head, messages)) = read {
        let out = yore_archive::omp::conversation_json(&head, &messages, &|_| None);
        let out = out.as_object().expect("a conversation is an object").clone();
        let mut again = Vec::new();
        let twice = yore_archive::omp::conversation_from(out, &mut again);
        let (_, kept) = twice.expect("our own conversation is one");
        assert_eq!((kept.len(), again.len()), (messages.len(), 0), "nothing is lost on the way");
    }
    let value = serde_json::Value::Object(object);
    let _ = yore_archive::omp::message_from(value, "chatgpt", "c"); // it is one or it is none
}

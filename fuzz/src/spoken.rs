//! The targets whose parsers stand in a protocol's crate, which brings the engine with it.

use serde_json::Value;
use yore_canon::json::{self, Limits};
use yore_domain::Timestamp;
use yore_memorywire::wire as words;
use yore_uamp::framing::{self, Order};
use yore_uamp::{Envelope, Ids};
use yore_ump::files::{self, Format, Source};
use yore_ump::{rehydrate, wire};

use super::targets::Target;

/// Those that need a protocol's crate.
pub const TARGETS: &[Target] = &[
    ("front", front, None),
    ("record", record, None),
    ("envelope", envelope, None),
    ("frames", frames, None),
    ("memorywire", memorywire, None),
];

/// Markdown with front matter: a record that is read is written and read the same.
pub fn front(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = files::has_record(text); // it has one or it has none
    if let Ok(records) = files::parse(text, Format::Markdown) {
        let again = files::print(&records, Format::Markdown).expect("one record is one file");
        let twice = files::parse(&again, Format::Markdown).expect("our own spelling");
        assert_eq!(twice, records);
    }
    for source in [Source::Claude, Source::Agents, Source::Obsidian, Source::Markdown] {
        let _ = files::drafts("note.md", text, source); // any number
    }
}

/// Records of UMP, as lists and as lines: what is read is framed without a way out of the frame.
pub fn record(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for format in [Format::Json, Format::Ndjson] {
        let Ok(records) = files::parse(text, format) else { continue };
        for record in &records {
            let _ = wire::read(record); // it is valid or it is not
            let _ = yore_ump::verified(record); // somebody signed it or nobody did
            let mut redacted = record.clone();
            yore_ump::redact(&mut redacted);
        }
        let framed = rehydrate::rehydrate(&records, &rehydrate::Options::default(), str::len);
        assert!(framed.used.len() <= records.len());
    }
}

/// Envelopes of UAMP: what is read has one digest.
pub fn envelope(bytes: &[u8]) {
    for ids in [Ids::Uuids, Ids::Any] {
        let Ok(envelope) = Envelope::parse(bytes, 1 << 20, ids) else { continue };
        let text = Value::Object(envelope.object().clone()).to_string();
        let again = Envelope::parse(text.as_bytes(), 2 << 20, ids).expect("our own spelling");
        assert_eq!(again.digest(), envelope.digest());
    }
    let _ = json::parse_object(bytes, Limits::default()); // deltas are read the same way
}

/// Messages of a WebSocket: what is cut into frames is put together to the same bytes.
pub fn frames(bytes: &[u8]) {
    let Some((order, frames)) = framing::frames(bytes) else { return };
    assert!(order == Order::Big || frames.len() == 1);
    let again = frames.iter().map(|json| framing::framed(order, json).expect("it was that long"));
    assert_eq!(again.collect::<Vec<_>>().concat(), bytes);
}

/// Requests of memorywire, and filters above all: whatever one says, it lets in nothing of another
/// agent or another person.
pub fn memorywire(bytes: &[u8]) {
    let _ = serde_json::from_slice::<words::Remember>(bytes); // it is one or it is not
    let _ = serde_json::from_slice::<words::Merge>(bytes);
    let _ = serde_json::from_slice::<words::Expire>(bytes);
    let _ = serde_json::from_slice::<words::Forget>(bytes);
    let Ok(recall) = serde_json::from_slice::<words::Recall>(bytes) else { return };
    let Some(filter) = recall.among(Timestamp::from_micros(0)) else { return };
    assert_eq!(filter.scope.agent.as_deref(), Some(recall.agent_id.as_str()));
    if recall.user_id.is_some() {
        assert_eq!(filter.scope.user, recall.user_id);
    }
    if let [only] = recall.types.as_deref().unwrap_or_default() {
        let one = words::Recall { filter: None, types: Some(vec![*only]), ..recall.clone() };
        let all = one.among(Timestamp::from_micros(0)).expect("a type has kinds").kinds;
        assert!(filter.kinds.iter().all(|kind| all.contains(kind)));
    }
}

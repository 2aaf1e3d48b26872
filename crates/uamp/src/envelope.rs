//! The envelope: its form, and the digest that its signature covers.

use serde_json::Value;
use yore_canon::did::Did;
use yore_canon::hash::Sha256;
use yore_canon::json::{self, Limits, Object};
use yore_canon::{encode, jcs};
use yore_domain::{MessageId, Timestamp};

use crate::body::Body;
use crate::intent::Intent;
use crate::refusal::{Code, Refusal, Result};

/// The window of whoever does not ask for one, and the largest there is.
const WINDOW: u32 = 64;
const MAX_WINDOW: u32 = 1024;
/// Recipients, references and bytes of extensions.
const MOST: usize = 64;
const EXTENSIONS: usize = 16 << 10;
/// Characters of a stream's id, and of an odd message id.
const NAME: usize = 128;

const MEMBERS: [&str; 13] = [
    "id",
    "ts",
    "from",
    "to",
    "intent",
    "reply_to",
    "context",
    "stream_id",
    "delta_window",
    "body",
    "cap_token",
    "sig",
    "ext",
];

/// Which ids are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ids {
    /// UUIDs, with or without `urn:uuid:`.
    #[default]
    Uuids,
    /// Also other short words, as the specification's own example has them.
    Any,
}

/// A message whose form holds. Nothing of it is believed yet.
#[derive(Clone, Debug)]
pub struct Envelope {
    object: Object,
    /// Its id in one spelling.
    pub id: String,
    /// When it says it was written.
    pub ts: Timestamp,
    /// Who says to have written it.
    pub from: Did,
    /// Whom it is for, each once.
    pub to: Vec<String>,
    /// What it means to do.
    pub intent: Intent,
    /// The message it answers, in one spelling.
    pub reply_to: Option<String>,
    /// The messages it rests on, with their digests in hex.
    pub context: Vec<(String, String)>,
    /// The stream it names.
    pub stream: Option<String>,
    /// Frames that may be under way at once.
    pub window: u32,
    /// What it says.
    pub body: Body,
    /// A token that narrows what its sender may do.
    pub cap_token: Option<String>,
    /// The signature.
    pub sig: String,
    /// When it lapses in an inbox, when it says so.
    pub expires: Option<Timestamp>,
}

/// A refusal and the id of what is refused, as it was sent, where that could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The refusal.
    pub refusal: Box<Refusal>,
    /// The id of what is refused.
    pub id: Option<String>,
    /// The stream it names.
    pub stream: Option<String>,
    /// Who says to have sent it.
    pub from: Option<String>,
}

impl From<Refusal> for Rejected {
    fn from(refusal: Refusal) -> Self {
        Self { refusal: Box::new(refusal), id: None, stream: None, from: None }
    }
}

impl Envelope {
    /// Reads an envelope of at most so many bytes.
    pub fn parse(bytes: &[u8], most: usize, ids: Ids) -> Result<Self, Rejected> {
        let limits = Limits { bytes: most, ..Limits::default() };
        let object = json::parse_object(bytes, limits).map_err(|error| match error {
            json::Error::TooLarge { limit, .. } => {
                Refusal::new(Code::TooLarge, format!("the envelope is larger than {limit} bytes"))
            }
            json::Error::TooDeep { .. }
            | json::Error::TooMany { .. }
            | json::Error::NotUtf8 { .. }
            | json::Error::Duplicate { .. }
            | json::Error::Syntax { .. }
            | json::Error::Shape(_) => {
                Refusal::new(Code::Malformed, "the envelope is not one strict JSON object")
            }
        })?;
        Self::of(object, ids)
    }

    /// Reads an envelope that is an object already.
    pub fn of(object: Object, ids: Ids) -> Result<Self, Rejected> {
        let text = |name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
        let (id, stream, from) = (text("id"), text("stream_id"), text("from"));
        let refused = |refusal| Rejected { refusal: Box::new(refusal), id, stream, from };
        read(object, ids).map_err(refused)
    }

    /// Returns the digest of everything but the signature, as it was sent.
    #[must_use]
    pub fn digest(&self) -> Sha256 {
        Sha256::of(jcs::canonical_without(&self.object, &["sig"]))
    }

    /// Returns the id as it was sent.
    #[must_use]
    pub fn spelt(&self) -> &str {
        self.object.get("id").and_then(Value::as_str).unwrap_or(&self.id)
    }

    /// Returns the whole envelope.
    #[must_use]
    pub const fn object(&self) -> &Object {
        &self.object
    }
}

fn read(object: Object, ids: Ids) -> Result<Envelope> {
    if let Some(other) = object.keys().find(|name| !MEMBERS.contains(&name.as_str())) {
        // The name is a stranger's, so it is not repeated at any length.
        let shown: String = other.chars().take(32).collect();
        return Err(Refusal::malformed("member", &format!("{shown:?} is not known; use ext")));
    }
    let id = message_id(&needed(&object, "id")?, "id", ids)?;
    let ts = needed(&object, "ts")?;
    let ts = ts.parse().map_err(|_| Refusal::malformed("ts", "is not an RFC 3339 time"))?;
    let to = recipients(&object)?;
    let intent = Intent::parse(&needed(&object, "intent")?)
        .ok_or_else(|| Refusal::malformed("intent", "is not one of the ten"))?;
    let reply_to = optional(&object, "reply_to")?;
    let reply_to = reply_to.map(|id| message_id(&id, "reply_to", ids)).transpose()?;
    let context = references(&object, ids)?;
    let stream = optional(&object, "stream_id")?;
    if stream.as_ref().is_some_and(|id| !is_name(id)) {
        return Err(Refusal::malformed("stream_id", "must be 1 to 128 visible characters"));
    }
    let body = match object.get("body") {
        Some(Value::Object(body)) => Body::of(body)?,
        Some(_) | None => return Err(Refusal::malformed("body", "must be an object")),
    };
    let expires = extensions(&object)?;
    if intent.refers() && reply_to.is_none() && stream.is_none() {
        return Err(Refusal::malformed("reply_to", "or stream_id is needed with this intent"));
    }
    let (window, cap_token) = (window(&object)?, optional(&object, "cap_token")?);
    let from = sender(&needed(&object, "from")?)?;
    let sig = optional(&object, "sig")?
        .ok_or_else(|| Refusal::new(Code::Unauthenticated, "the envelope is not signed"))?;
    Ok(Envelope {
        object,
        id,
        ts,
        from,
        to,
        intent,
        reply_to,
        context,
        stream,
        window,
        body,
        cap_token,
        sig,
        expires,
    })
}

fn optional(object: &Object, name: &'static str) -> Result<Option<String>> {
    match object.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(Refusal::malformed(name, "must be a text")),
    }
}

fn needed(object: &Object, name: &'static str) -> Result<String> {
    optional(object, name)?.ok_or_else(|| Refusal::malformed(name, "is required"))
}

fn is_name(text: &str) -> bool {
    (1..=NAME).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Returns an id in one spelling.
pub(crate) fn message_id(text: &str, member: &'static str, ids: Ids) -> Result<String> {
    let bare = match text.get(..9) {
        Some(prefix) if prefix.eq_ignore_ascii_case("urn:uuid:") => &text[9..],
        Some(_) | None => text,
    };
    if bare.len() == 36
        && let Ok(id) = bare.parse::<MessageId>()
    {
        return Ok(id.to_string());
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    if ids == Ids::Any && (1..=NAME).contains(&text.len()) && text.bytes().all(plain) {
        return Ok(text.to_owned());
    }
    Err(Refusal::malformed(member, "is not a UUID"))
}

fn sender(text: &str) -> Result<Did> {
    let unknown = || Refusal::new(Code::Unauthenticated, "from is neither a did:key nor a did:web");
    let did: Did = text.parse().map_err(|_| unknown())?;
    if matches!(did.method(), "key" | "web") { Ok(did) } else { Err(unknown()) }
}

fn recipients(object: &Object) -> Result<Vec<String>> {
    let wrong = || Refusal::malformed("to", "must be a list of 1 to 64 URIs");
    let list = object.get("to").and_then(Value::as_array).ok_or_else(wrong)?;
    if list.is_empty() || list.len() > MOST {
        return Err(wrong());
    }
    let mut to: Vec<String> = Vec::new();
    for entry in list {
        let uri = entry.as_str().filter(|uri| uri.len() <= 512 && uri.contains(':'));
        let uri = uri.ok_or_else(wrong)?;
        if !to.iter().any(|known| known == uri) {
            to.push(uri.to_owned());
        }
    }
    Ok(to)
}

fn references(object: &Object, ids: Ids) -> Result<Vec<(String, String)>> {
    let wrong = || Refusal::malformed("context", "must be a list of at most 64 ids and hashes");
    let list = match object.get("context") {
        None => return Ok(Vec::new()),
        Some(Value::Array(list)) if list.len() <= MOST => list,
        Some(_) => return Err(wrong()),
    };
    let one = |entry: &Value| {
        let id = entry.get("id").and_then(Value::as_str).ok_or_else(wrong)?;
        let hash = entry.get("hash").and_then(Value::as_str).ok_or_else(wrong)?;
        let hex = hash.strip_prefix("sha256:").filter(|hex| is_digest(hex));
        let hex = hex.ok_or_else(|| {
            Refusal::malformed("context", "a hash is sha256: and 64 digits in lower case")
        })?;
        Ok((message_id(id, "context", ids)?, hex.to_owned()))
    };
    list.iter().map(one).collect()
}

fn is_digest(hex: &str) -> bool {
    hex.len() == 64 && encode::from_hex(hex).is_ok() && hex == hex.to_ascii_lowercase()
}

fn window(object: &Object) -> Result<u32> {
    let wrong = || Refusal::malformed("delta_window", "must be a whole number from 1 on");
    match object.get("delta_window") {
        None => Ok(WINDOW),
        Some(value) => {
            let number = value.as_u64().filter(|number| *number >= 1).ok_or_else(wrong)?;
            Ok(u32::try_from(number).unwrap_or(MAX_WINDOW).min(MAX_WINDOW))
        }
    }
}

fn extensions(object: &Object) -> Result<Option<Timestamp>> {
    let ext = match object.get("ext") {
        None => return Ok(None),
        Some(Value::Object(ext)) => ext,
        Some(_) => return Err(Refusal::malformed("ext", "must be an object")),
    };
    if jcs::canonical_object(ext).len() > EXTENSIONS {
        return Err(Refusal::new(Code::TooLarge, "ext is larger than 16 KiB"));
    }
    match ext.get("x-expires") {
        None => Ok(None),
        Some(value) => {
            let time = value.as_str().and_then(|text| text.parse().ok());
            Ok(Some(
                time.ok_or_else(|| Refusal::malformed("ext.x-expires", "is not an RFC 3339 time"))?,
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn envelope() -> Value {
        json!({
            "id": "urn:uuid:5F0F3F3E-6f1c-4f0e-9c1a-0d8a2f0c0001",
            "ts": "2026-01-02T03:04:05.5+01:00",
            "from": "did:web:client.example",
            "to": ["did:web:memory.example", "did:web:memory.example"],
            "intent": "ask",
            "body": {"type": "text/plain", "content": "2+2"},
            "sig": "x..y",
        })
    }

    fn parsed(change: impl FnOnce(&mut Value)) -> Result<Envelope, Rejected> {
        let mut value = envelope();
        change(&mut value);
        Envelope::parse(value.to_string().as_bytes(), 1 << 20, Ids::Uuids)
    }

    #[test]
    fn uamp_001_uamp_004_uamp_006_an_envelope_is_read() {
        let read = parsed(|_| {}).unwrap();
        assert_eq!(read.id, "5f0f3f3e-6f1c-4f0e-9c1a-0d8a2f0c0001");
        assert_eq!(read.spelt(), "urn:uuid:5F0F3F3E-6f1c-4f0e-9c1a-0d8a2f0c0001");
        assert_eq!(read.ts.to_string(), "2026-01-02T02:04:05.5Z");
        assert_eq!(read.to, ["did:web:memory.example"]);
        assert_eq!(read.window, 64);
    }

    #[test]
    fn uamp_003_ids_are_uuids_unless_odd_ones_are_allowed() {
        let odd = |ids| {
            let mut value = envelope();
            value["id"] = "urn:uuid:1111".into();
            Envelope::parse(value.to_string().as_bytes(), 1 << 20, ids)
        };
        assert_eq!(odd(Ids::Uuids).unwrap_err().refusal.code, Code::Malformed);
        assert_eq!(odd(Ids::Any).unwrap().id, "urn:uuid:1111");
        let bare = parsed(|value| value["id"] = "5f0f3f3e-6f1c-4f0e-9c1a-0d8a2f0c000b".into());
        assert_eq!(bare.unwrap().id, "5f0f3f3e-6f1c-4f0e-9c1a-0d8a2f0c000b");
        for id in ["{5f0f3f3e-6f1c-4f0e-9c1a-0d8a2f0c0001}", "5f0f3f3e6f1c4f0e9c1a0d8a2f0c0001"] {
            assert!(parsed(|value| value["id"] = id.into()).is_err(), "{id}");
        }
    }

    #[test]
    fn uamp_002_uamp_006_uamp_007_uamp_009_uamp_010_uamp_016_broken_forms_are_malformed() {
        type Change = fn(&mut Value);
        let broken: [(&str, Change); 14] = [
            ("no id", |value| drop(value.as_object_mut().unwrap().remove("id"))),
            ("id is no text", |value| value["id"] = 1.into()),
            ("ts", |value| value["ts"] = "yesterday".into()),
            ("nobody", |value| value["to"] = json!([])),
            ("too many", |value| value["to"] = json!(vec!["did:web:a.example"; 65])),
            ("no list", |value| value["to"] = "did:web:a.example".into()),
            ("intent", |value| value["intent"] = "shout".into()),
            ("member", |value| value["priority"] = "high".into()),
            ("stream", |value| value["stream_id"] = "a b".into()),
            ("long stream", |value| value["stream_id"] = "x".repeat(129).into()),
            ("window", |value| value["delta_window"] = 0.into()),
            ("hash", |value| {
                let id = value["id"].clone();
                value["context"] = json!([{"id": id, "hash": "md5:abc"}]);
            }),
            ("refers to nothing", |value| value["intent"] = "cancel".into()),
            ("body", |value| value["body"] = json!("2+2")),
        ];
        for (name, change) in broken {
            let rejected = parsed(change).unwrap_err();
            assert_eq!(rejected.refusal.code, Code::Malformed, "{name}");
        }
        let id = parsed(|value| value["intent"] = "shout".into()).unwrap_err().id;
        assert_eq!(id.as_deref(), Some("urn:uuid:5F0F3F3E-6f1c-4f0e-9c1a-0d8a2f0c0001"));
    }

    #[test]
    fn uamp_005_uamp_029_who_cannot_be_known_is_not_authenticated() {
        for from in ["https://client.example", "did:ion:x", "nobody"] {
            let refusal = parsed(|value| value["from"] = from.into()).unwrap_err().refusal;
            assert_eq!(refusal.code, Code::Unauthenticated, "{from}");
        }
        let unsigned = parsed(|value| drop(value.as_object_mut().unwrap().remove("sig")));
        assert_eq!(unsigned.unwrap_err().refusal.code, Code::Unauthenticated);
    }

    #[test]
    fn uamp_011_a_larger_window_is_clamped() {
        for (asked, given) in [(1, 1), (1024, 1024), (5000, 1024), (u64::MAX, 1024)] {
            let read = parsed(|value| value["delta_window"] = asked.into()).unwrap();
            assert_eq!(read.window, given);
        }
    }

    #[test]
    fn uamp_014_uamp_077_size_depth_and_ambiguity_come_first() {
        let large = parsed(|value| value["ext"] = json!({"x": "y".repeat(17 << 10)}));
        assert_eq!(large.unwrap_err().refusal.code, Code::TooLarge);
        let bytes = vec![b' '; 2 << 20];
        let huge = Envelope::parse(&bytes, 1 << 20, Ids::Uuids).unwrap_err();
        assert_eq!(huge.refusal.code, Code::TooLarge);
        let twice = br#"{"intent":"ask","intent":"cancel"}"#;
        let twice = Envelope::parse(twice, 1 << 20, Ids::Uuids).unwrap_err();
        assert_eq!(twice.refusal.code, Code::Malformed);
        let deep = format!("{}{}", "{\"ext\":".repeat(40), "}".repeat(40));
        let deep = Envelope::parse(deep.as_bytes(), 1 << 20, Ids::Uuids).unwrap_err();
        assert_eq!(deep.refusal.code, Code::Malformed);
    }
}

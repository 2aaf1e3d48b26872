//! ChatGPT data exports: one `conversations.json` or numbered shards, with or without `children`,
//! with assets under their own names or as `.dat`.

mod assets;
mod message;

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};
use yore_domain::kind::Facet;
use yore_domain::memory::Status;
use yore_domain::provenance::MessageRef;

use self::assets::Assets;
use super::memories::{Found, drawn_from};
use crate::connector::{Around, Connector, Sample, Sink, each_unknown_piece};
use crate::json::{self, Look, Object};
use crate::source::{File, Source};
use crate::thread::{Leaf, Thread, Turn};
use crate::{Error, Result, time};

/// Reads ChatGPT exports.
#[derive(Debug)]
pub(super) struct ChatGpt;

const PLATFORM: &str = "chatgpt";

/// Files that say something about the conversations beside them.
const BESIDE: [&str; 9] = [
    "export_manifest.json",
    "message_feedback.json",
    "model_comparisons.json",
    "shared_conversations.json",
    "conversation_asset_file_names.json",
    "library_files.json",
    "user.json",
    "user_settings.json",
    "chat.html",
];

impl Connector for ChatGpt {
    fn platform(&self) -> &'static str {
        PLATFORM
    }

    fn recognise(&self, sample: &Sample<'_>) -> u8 {
        let shape = &sample.shape;
        if !shape.json || shape.has(1, "chat_messages") {
            return 0;
        }
        if shape.has(1, "mapping") {
            return if canonical(sample.file.name()) { 95 } else { 90 };
        }
        // A shard that begins with stubs of projects.
        let stub = shape.array && shape.has(1, "conversation_id") && shape.has(1, "title");
        if stub && canonical(sample.file.name()) { 60 } else { 0 }
    }

    fn read(&self, source: &Source, files: &[&File], sink: &mut Sink<'_>) -> Result<()> {
        let beside = Beside::read(source, sink)?;
        let proper = files.iter().any(|file| canonical(file.name()));
        let mut reader = Reader { beside, seen: HashSet::new() };
        for file in files {
            // Beside proper shards, others repeat what those hold.
            if proper && !canonical(file.name()) && file.name().contains("conversations") {
                sink.used(file);
                continue;
            }
            reader.file(source, file, sink)?;
        }
        for missing in reader.beside.missing_shards(files) {
            sink.skip(&missing, None, "the manifest lists it and the export lacks it")?;
        }
        Ok(())
    }
}

/// `conversations.json`, or a numbered shard of it.
fn canonical(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("conversations") else { return false };
    let Some(rest) = rest.strip_suffix(".json") else { return false };
    let number = rest.strip_prefix('-').unwrap_or("0");
    (rest.is_empty() || rest.starts_with('-'))
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// What lies beside the conversations.
#[derive(Debug, Default)]
struct Beside {
    ratings: HashMap<String, Vec<Value>>,
    shares: HashMap<String, Vec<Value>>,
    shards: Vec<String>,
    assets: Assets,
    /// A digest of all of it.
    said: Vec<u8>,
}

impl Beside {
    fn read(source: &Source, sink: &mut Sink<'_>) -> Result<Self> {
        let mut beside = Self { assets: Assets::index(source), ..Self::default() };
        let mut said = yore_canon::hash::Blake3::hasher();
        for name in BESIDE {
            for file in source.named(name) {
                sink.used(file);
                if name.ends_with(".json") {
                    let read = source.document(file).and_then(|bytes| {
                        said.update(name).update(&bytes);
                        Ok(json::parse(&bytes)?.0)
                    });
                    match read {
                        Ok(value) => beside.take(name, &value),
                        Err(error) => sink.pass(file.path(), None, Err(error))?,
                    }
                }
            }
        }
        beside.said = said.finish().as_bytes().to_vec();
        Ok(beside)
    }

    fn take(&mut self, name: &str, value: &Value) {
        let listed = value.as_array().map_or(&[][..], Vec::as_slice);
        match name {
            "message_feedback.json" => {
                for rating in listed {
                    let Some(id) = rating.text("id") else { continue };
                    let mut note = json!({"type": "rating", "text": rating.text("rating")});
                    if let Some(at) = rating.get("create_time").and_then(time::any) {
                        note["created_at"] = Value::from(at.to_string());
                    }
                    note["x_chatgpt"] = rating.clone();
                    self.ratings.entry(id.to_owned()).or_default().push(note);
                }
            }
            "shared_conversations.json" => {
                for share in listed {
                    if let (Some(id), Some(of)) = (share.get("id"), share.text("conversation_id")) {
                        self.shares.entry(of.to_owned()).or_default().push(id.clone());
                    }
                }
            }
            "export_manifest.json" => {
                let files = value.pointer("/logical_files/conversations.json/files");
                let files = files.and_then(Value::as_array).into_iter().flatten();
                self.shards.extend(files.filter_map(Value::as_str).map(str::to_owned));
            }
            "conversation_asset_file_names.json" => self.assets.names(value),
            "library_files.json" => self.assets.library(listed),
            _ => {}
        }
    }

    fn missing_shards(&self, files: &[&File]) -> Vec<String> {
        let here: HashSet<&str> = files.iter().map(|file| file.name()).collect();
        let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        self.shards.iter().filter(|shard| !here.contains(name(shard).as_str())).cloned().collect()
    }
}

struct Reader {
    beside: Beside,
    /// Memories that every conversation repeats.
    seen: HashSet<String>,
}

impl Reader {
    fn file(&mut self, source: &Source, file: &File, sink: &mut Sink<'_>) -> Result<()> {
        let sample = file.sample().unwrap_or_default();
        if crate::shape::Shape::of(&sample).array {
            let said = self.beside.said.clone();
            let around = Around { platform: PLATFORM, beside: &said };
            return each_unknown_piece(
                source,
                file,
                Some(around),
                sink,
                |sink, _, value, mended| self.conversation(source, file, sink, &value, mended),
            );
        }
        // One conversation by itself.
        let one = source.document(file).and_then(|bytes| json::parse(&bytes));
        let done =
            one.and_then(|(value, mended)| self.conversation(source, file, sink, &value, mended));
        sink.pass(file.path(), None, done)
    }

    fn conversation(
        &mut self,
        source: &Source,
        file: &File,
        sink: &mut Sink<'_>,
        native: &Value,
        mended: bool,
    ) -> Result<()> {
        let Some(object) = native.as_object() else {
            return Err(Error::form("not a conversation"));
        };
        let id = object.filled("conversation_id").or(object.filled("id"));
        let Some(mapping) = object.inner("mapping") else {
            let what = id.map(str::to_owned);
            return sink.skip(file.path(), what, "a stub without messages");
        };
        let key = match id {
            Some(id) => id.to_owned(),
            None => crate::source::hash(native.to_string().as_bytes()).to_string(),
        };
        let mut thread = head(object, key);
        if let Some(shares) = self.beside.shares.get(&thread.key) {
            thread.extra.insert("share_ids".into(), Value::from(shares.clone()));
        }
        if mended {
            thread.extra.insert("mended_surrogates".into(), Value::from(true));
        }
        for (name, node) in mapping {
            self.node(source, sink, &mut thread, name, node);
        }
        let talk = thread.finish(Some(native));
        for (message, node) in talk.messages.iter().filter_map(|message| {
            let name = message.foreign.get(PLATFORM)?.text("message_id");
            let name = name.map_or_else(|| message.id.to_string(), str::to_owned);
            Some((message, mapping.get(&name)?.get("message")?))
        }) {
            let from = MessageRef { conversation: talk.head.id, message: message.id };
            self.memories(file, sink, node, message.at, from)?;
        }
        sink.talk(file.path(), talk)
    }

    fn node(
        &self,
        source: &Source,
        sink: &mut Sink<'_>,
        thread: &mut Thread,
        name: &str,
        node: &Value,
    ) {
        let native = node.get("message").filter(|message| message.is_object());
        let mut turn = Turn {
            key: name.to_owned(),
            parent: node.text("parent").map(str::to_owned),
            at: None,
            said: None,
        };
        if let Some(native) = native {
            turn.at = native.get("create_time").and_then(time::any);
            let mut said = message::said(native, |pointer| {
                self.beside.assets.find(source, thread, sink, native, pointer)
            });
            let id = native.text("id").unwrap_or(name);
            if let Some(ratings) = self.beside.ratings.get(id) {
                said.omp.insert("annotations".into(), Value::from(ratings.clone()));
            }
            turn.said = Some(said.from(native));
        }
        thread.turns.push(turn);
    }

    /// Instructions and saved facts show up inside conversations only.
    fn memories(
        &mut self,
        file: &File,
        sink: &mut Sink<'_>,
        message: &Value,
        at: yore_domain::Timestamp,
        from: MessageRef,
    ) -> Result<()> {
        let content = message.get("content").unwrap_or(&Value::Null);
        let mut found: Vec<(Facet, &str, Status)> = Vec::new();
        if content.text("content_type") == Some("user_editable_context") {
            let about = content.filled("user_profile");
            found.extend(about.map(|text| (Facet::Fact, text, Status::Active)));
            let how = content.filled("user_instructions");
            found.extend(how.map(|text| (Facet::Instruction, text, Status::Active)));
        }
        let saved = content.list("parts").first().and_then(Value::as_str).unwrap_or_default();
        if message.text("recipient") == Some("bio") && saved.split_whitespace().count() > 2 {
            found.push((Facet::Fact, saved, Status::Candidate));
        }
        for (facet, text, status) in found {
            if !self.seen.insert(format!("{facet}:{text}")) {
                continue;
            }
            let found = Found {
                platform: PLATFORM,
                key: &[facet.as_str(), text],
                facet,
                text,
                created: Some(at),
                source: file.path(),
                native: None,
            };
            let mut note = drawn_from(found.note(), from);
            note.draft.status = status;
            sink.note(file.path(), note)?;
        }
        Ok(())
    }
}

fn head(object: &Object, key: String) -> Thread {
    let mut thread = Thread::new(PLATFORM, key);
    thread.leaf = Leaf::Deepest;
    thread.title = object.filled("title").map(str::to_owned);
    thread.created = object.get("create_time").and_then(time::any);
    thread.updated = object.get("update_time").and_then(time::any);
    thread.current = object.filled("current_node").map(str::to_owned);
    if let Some(gizmo) = object.filled("gizmo_id") {
        let kind = if object.text("gizmo_type") == Some("snorlax") { "project" } else { "gpt" };
        thread.context.push(json!({"type": kind, "id": gizmo}));
    }
    thread
}

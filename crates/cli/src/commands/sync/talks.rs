//! Conversations of two hosts: what was said is united, what they are called follows the later.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use http::header::IF_MATCH;
use serde_json::{Map, Value, json};

use super::book::{Apart, Thing, digest};
use super::hosts::{Doc, Pair, Side};
use crate::failure::{Failure, Result};

/// What is sent at once.
const BYTES: usize = 6 << 20;
const MESSAGES: usize = 2000;

/// A conversation as a side has it.
struct Talk {
    tag: String,
    /// Everything but the messages.
    head: Map<String, Value>,
    /// All messages, those of branches too, in their order.
    messages: Vec<(String, Value)>,
}

impl Talk {
    fn of(doc: Doc) -> Self {
        let Doc { tag, body } = doc;
        let mut head = match body {
            Value::Object(head) => head,
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Map::new(),
        };
        let mut said: Vec<Value> = listed(head.shift_remove("messages"));
        head.shift_remove("message_count");
        if let Some(extensions) = head.get_mut("extensions").and_then(Value::as_object_mut) {
            // Branches are messages that name the one they follow; the tree is made of them.
            let names: Vec<String> =
                extensions.keys().filter(|name| name.ends_with("_branches")).cloned().collect();
            for name in names {
                said.extend(listed(extensions.shift_remove(&name)));
            }
        }
        let named = |message: Value| {
            let id = message["id"].as_str()?.to_owned();
            Some((id, message))
        };
        Self { tag, head, messages: said.into_iter().filter_map(named).collect() }
    }

    fn ids(&self) -> BTreeSet<&str> {
        self.messages.iter().map(|(id, _)| id.as_str()).collect()
    }

    /// What it is called and filed under: what may be changed of a conversation.
    fn called(&self) -> BTreeMap<&str, &Value> {
        let own = |name: &str| {
            matches!(name, "title" | "summary" | "tags")
                || (name.starts_with("x_") && name != "x_yore" && name != "x_regulatory_hold")
        };
        self.head.iter().filter(|(name, _)| own(name)).map(|(k, v)| (k.as_str(), v)).collect()
    }

    /// A digest of what it is called, and one of what was said.
    fn print(&self) -> String {
        format!("{}.{}", digest(&json!(self.called())), digest(&json!(self.ids())))
    }
}

fn listed(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(values)) => values,
        Some(
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_),
        )
        | None => Vec::new(),
    }
}

impl Pair<'_> {
    /// Brings a conversation into step.
    pub(super) async fn talk(&mut self, thing: &Thing) -> Result {
        let Some(found) = self.both(thing).await? else { return Ok(()) };
        match found {
            [None, None] => {
                self.book.gone(thing);
                Ok(())
            }
            [Some(here), None] => self.only_at(thing, Side::Here, here).await,
            [None, Some(there)] => self.only_at(thing, Side::There, there).await,
            [Some(here), Some(there)] => self.united(thing, here, there).await,
        }
    }

    /// One side has it: it is new there, or the other deleted it.
    async fn only_at(&mut self, thing: &Thing, side: Side, doc: Doc) -> Result {
        if self.book.apart.get(thing) == Some(&Apart::Deleted) || !self.only.takes(&doc.body) {
            return Ok(());
        }
        let talk = Talk::of(doc);
        let agreed = self.book.agreed(thing).cloned();
        let deleted = self.news(side.other(), thing).is_some_and(|news| news.deleted);
        if agreed.is_none() && !deleted {
            let gone = BTreeSet::new();
            self.say(thing, side.other(), &talk, &gone, true).await?;
            return self.noted(thing).await;
        }
        let unchanged = match &agreed {
            Some((here, there)) => talk.print() == *if side == Side::Here { here } else { there },
            None => self.later(thing, side),
        };
        if !unchanged {
            // Whoever deleted it did not know what was said since; whoever said it may delete it.
            self.book.apart.insert(thing.clone(), Apart::Deleted);
            self.sum.apart.push(thing.called());
            return Ok(());
        }
        let demand = [(IF_MATCH, talk.tag.clone())];
        let path = thing.path();
        let answer = self.peer(side).ask(Method::DELETE, &path, &demand, None).await?;
        answer.good(self.peer(side))?;
        self.sum.to(side).deleted += 1;
        self.book.gone(thing);
        Ok(())
    }

    async fn united(&mut self, thing: &Thing, here: Doc, there: Doc) -> Result {
        if !self.only.takes(&here.body) && !self.only.takes(&there.body) {
            return Ok(());
        }
        let (here, there) = (Talk::of(here), Talk::of(there));
        let agreed = self.book.agreed(thing).cloned();
        let (ours, theirs) = (here.print(), there.print());
        if ours == theirs {
            self.book.agree(thing, ours, theirs);
            return Ok(());
        }
        let mut gone = BTreeSet::new();
        for (side, talk) in [(Side::Here, &here), (Side::There, &there)] {
            for message in self.deleted_at(side.other(), thing) {
                if talk.ids().contains(message.as_str()) {
                    self.unsay(thing, side, &message).await?;
                }
                gone.insert(message);
            }
        }
        self.say(thing, Side::There, &here, &beside(&gone, &there), false).await?;
        self.say(thing, Side::Here, &there, &beside(&gone, &here), false).await?;
        if here.called() != there.called() {
            let before = agreed.as_ref().map(|(here, there)| (headed(here), headed(there)));
            let moved =
                before.map_or((true, true), |(a, b)| (headed(&ours) != a, headed(&theirs) != b));
            let to = match moved {
                (true, false) => Side::There,
                (false, true) => Side::Here,
                (false, false) => return self.noted(thing).await,
                (true, true) => self.later_named(thing),
            };
            match to {
                Side::There => self.rename(thing, Side::There, &here, &there).await?,
                Side::Here => self.rename(thing, Side::Here, &there, &here).await?,
            }
        }
        self.noted(thing).await
    }

    /// Where the older names are: of two changes the later counts.
    fn later_named(&self, thing: &Thing) -> Side {
        let at = |side| self.news(side, thing).and_then(|news| news.at);
        if at(Side::There) > at(Side::Here) { Side::Here } else { Side::There }
    }

    /// The messages that a side deleted since the last time.
    fn deleted_at(&self, side: Side, thing: &Thing) -> Vec<String> {
        self.news(side, thing).map(|news| news.messages.clone()).unwrap_or_default()
    }

    async fn unsay(&mut self, thing: &Thing, side: Side, message: &str) -> Result {
        let path = format!("{}/messages/{message}", thing.path());
        let answer = self.peer(side).ask(Method::DELETE, &path, &[], None).await?;
        if answer.status.as_u16() != 404 {
            answer.good(self.peer(side))?;
            self.sum.to(side).deleted += 1;
        }
        Ok(())
    }

    /// Sends what a side lacks of a conversation, in parts that a request can carry.
    async fn say(
        &mut self,
        thing: &Thing,
        to: Side,
        talk: &Talk,
        left_out: &BTreeSet<String>,
        new: bool,
    ) -> Result {
        let missing: Vec<&Value> = talk
            .messages
            .iter()
            .filter(|(id, _)| !left_out.contains(id))
            .map(|(_, message)| message)
            .collect();
        if missing.is_empty() && !new {
            return Ok(());
        }
        let mut head = talk.head.clone();
        own_id(&mut head);
        let mut at = 0;
        let mut waiting: Option<(Value, usize)> = None;
        loop {
            let mut part = Vec::new();
            let mut bytes = 0;
            loop {
                let (message, size) = match waiting.take() {
                    Some(next) => next,
                    None => {
                        let Some(message) = missing.get(at) else { break };
                        at += 1;
                        let mut message = (*message).clone();
                        if let Some(object) = message.as_object_mut() {
                            own_id(object);
                        }
                        self.bring(to, &mut message).await?;
                        let size = message.to_string().len();
                        (message, size)
                    }
                };
                if !part.is_empty() && (bytes + size > BYTES || part.len() == MESSAGES) {
                    waiting = Some((message, size));
                    break;
                }
                bytes += size;
                part.push(message);
            }
            let mut body = head.clone();
            body.insert("message_count".into(), part.len().into());
            body.insert("messages".into(), Value::Array(part));
            let body = Value::Object(body);
            let path = "/conversations?merge=true";
            let answer = self.peer(to).ask(Method::POST, path, &[], Some(&body)).await?;
            if answer.is_deleted() {
                self.book.apart.insert(thing.clone(), Apart::Deleted);
                self.sum.apart.push(thing.called());
                return Ok(());
            }
            let answer = answer.good(self.peer(to))?;
            if answer.body["id"] != thing.id() {
                let name = &self.peer(to).name;
                return Err(Failure::failed(format!("{name} gave it another id")));
            }
            if waiting.is_none() && at == missing.len() {
                break;
            }
        }
        let moved = self.sum.to(to);
        moved.conversations += u64::from(new);
        moved.messages += missing.len() as u64;
        Ok(())
    }

    /// Calls a conversation as the other side does.
    async fn rename(&mut self, thing: &Thing, to: Side, from: &Talk, old: &Talk) -> Result {
        let (new, before) = (from.called(), old.called());
        let mut change = Map::new();
        for name in new.keys().chain(before.keys()) {
            if new.get(name) != before.get(name) {
                let value = new.get(name).map_or(Value::Null, |value| (*value).clone());
                change.insert((*name).to_owned(), value);
            }
        }
        let path = thing.path();
        let body = Value::Object(change);
        let answer = self.peer(to).ask(Method::PATCH, &path, &[], Some(&body)).await?;
        answer.good(self.peer(to))?;
        self.sum.to(to).conversations += 1;
        Ok(())
    }

    /// Notes what both sides say now. Where that differs, somebody spoke meanwhile, or a host
    /// refused what was deleted there: what was said then counts as unknown to the other.
    async fn noted(&mut self, thing: &Thing) -> Result {
        if self.book.apart.contains_key(thing) {
            return Ok(());
        }
        let here = self.document(Side::Here, thing).await?.map(Talk::of);
        let there = self.document(Side::There, thing).await?.map(Talk::of);
        let (Some(here), Some(there)) = (here, there) else { return Ok(()) };
        let (ours, theirs) = (here.print(), there.print());
        if ours == theirs {
            self.leave(Side::Here, thing, Some(here.tag));
            self.leave(Side::There, thing, Some(there.tag));
            self.book.agree(thing, ours, theirs);
        } else {
            let open = |print: &str| format!("{}.-", headed(print));
            self.book.agree(thing, open(&ours), open(&theirs));
        }
        Ok(())
    }
}

/// What is not sent: what is gone, and what is there.
fn beside(gone: &BTreeSet<String>, there: &Talk) -> BTreeSet<String> {
    gone.iter().cloned().chain(there.ids().into_iter().map(str::to_owned)).collect()
}

/// The part of a digest that is about what it is called.
fn headed(print: &str) -> String {
    print.split('.').next().unwrap_or_default().to_owned()
}

/// Says beside an id that the protocol does not allow that it is meant.
fn own_id(object: &mut Map<String, Value>) {
    let Some(id) = object.get("id").and_then(Value::as_str).map(str::to_owned) else { return };
    let bytes = id.as_bytes();
    let v4 = bytes.len() == 36
        && bytes[14] == b'4'
        && matches!(bytes[19], b'8' | b'9' | b'a' | b'b')
        && !bytes.iter().any(u8::is_ascii_uppercase);
    if v4 {
        return;
    }
    let own = object.entry("x_yore").or_insert_with(|| json!({}));
    if let Some(own) = own.as_object_mut() {
        own.insert("id".into(), id.into());
    }
}

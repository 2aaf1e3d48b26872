//! What a sync of two hosts remembers, kept in the vault: how far it has read each of them, what
//! they agreed on, and what waits.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use yore_canon::encode::base64url;
use yore_canon::hash::Sha256;
use yore_canon::jcs;
use yore_client::{api, input};

use super::hosts::Side;
use crate::app::Session;
use crate::failure::{Failure, Result};

/// Into how many parts agreements are cut: a part is written whole when one of it moves.
const PARTS: usize = 16;

/// Something that is kept in step.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Thing {
    /// A conversation.
    Talk(String),
    /// A memory record.
    Record(String),
}

impl Thing {
    pub(super) fn id(&self) -> &str {
        match self {
            Self::Talk(id) | Self::Record(id) => id,
        }
    }

    /// Where it lies at a host.
    pub(super) fn path(&self) -> String {
        match self {
            Self::Talk(id) => format!("/conversations/{id}"),
            Self::Record(id) => format!("/memories/{id}"),
        }
    }

    /// What people call it.
    pub(super) fn called(&self) -> String {
        match self {
            Self::Talk(id) => format!("conversation {id}"),
            Self::Record(id) => format!("memory {id}"),
        }
    }

    fn key(&self) -> String {
        match self {
            Self::Talk(id) => format!("c{id}"),
            Self::Record(id) => format!("m{id}"),
        }
    }
}

/// How far each side was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cursors {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) here: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) there: Option<String>,
}

impl Cursors {
    pub(super) fn of(&mut self, side: Side) -> &mut Option<String> {
        match side {
            Side::Here => &mut self.here,
            Side::There => &mut self.there,
        }
    }
}

/// Why something is not in step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "lowercase")]
pub(super) enum Apart {
    /// Both sides changed it; what the other says waits here for a decision.
    Proposed {
        hold: String,
        /// Its states when it was proposed.
        here: String,
        there: String,
    },
    /// One side deleted it and the other changed it since.
    Deleted,
}

/// The small part of what is remembered.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Page {
    /// By what was chosen: each choice reads the changes for itself.
    cursors: BTreeMap<String, Cursors>,
    #[serde(default)]
    apart: Vec<(Thing, Apart)>,
    #[serde(default)]
    owed: BTreeSet<Thing>,
}

/// Everything that is remembered of one other host.
#[derive(Debug)]
pub(super) struct Book {
    peer: String,
    only: String,
    cursors: BTreeMap<String, Cursors>,
    /// What is not in step, and why.
    pub(super) apart: BTreeMap<Thing, Apart>,
    /// What could not be done and is tried again.
    pub(super) owed: BTreeSet<Thing>,
    /// What each side said when they were last in step.
    agreed: Vec<BTreeMap<String, (String, String)>>,
    dirty: BTreeSet<usize>,
}

impl Book {
    /// Reads what is remembered of a host. `anew` forgets how far its changes were read.
    pub(super) async fn open(
        session: &mut Session<'_>,
        peer: &str,
        only: &str,
        anew: bool,
    ) -> Result<Self> {
        let page: Page = match read(session, peer).await? {
            Some(value) => serde_json::from_value(value)
                .map_err(|error| Failure::failed(format!("what was kept of {peer}: {error}")))?,
            None => Page::default(),
        };
        let mut agreed = Vec::with_capacity(PARTS);
        for part in 0..PARTS {
            let text = read(session, &part_of(peer, part)).await?;
            agreed.push(text.as_ref().and_then(Value::as_str).map(parsed).unwrap_or_default());
        }
        let mut book = Self {
            peer: peer.to_owned(),
            only: only.to_owned(),
            cursors: page.cursors,
            apart: page.apart.into_iter().collect(),
            owed: page.owed,
            agreed,
            dirty: BTreeSet::new(),
        };
        if anew {
            book.cursors.remove(only);
        }
        Ok(book)
    }

    /// Writes down what changed since the last time; cursors come last, so that whatever ends
    /// the command in between is only done again.
    pub(super) async fn save(&mut self, session: &mut Session<'_>) -> Result {
        for part in std::mem::take(&mut self.dirty) {
            let text = printed(&self.agreed[part]);
            keep(session, part_of(&self.peer, part), text.into()).await?;
        }
        let page = Page {
            cursors: self.cursors.clone(),
            apart: self.apart.clone().into_iter().collect(),
            owed: self.owed.clone(),
        };
        let page =
            serde_json::to_value(page).map_err(|error| Failure::failed(error.to_string()))?;
        keep(session, self.peer.clone(), page).await
    }

    /// How far the sides were read.
    pub(super) fn cursors(&mut self) -> &mut Cursors {
        self.cursors.entry(self.only.clone()).or_default()
    }

    /// What both sides said when they were last in step.
    pub(super) fn agreed(&self, thing: &Thing) -> Option<&(String, String)> {
        let key = thing.key();
        self.agreed[part(&key)].get(&key)
    }

    /// Notes that the sides are in step.
    pub(super) fn agree(&mut self, thing: &Thing, here: String, there: String) {
        self.apart.remove(thing);
        self.owed.remove(thing);
        let key = thing.key();
        let part = part(&key);
        if self.agreed[part].get(&key) != Some(&(here.clone(), there.clone())) {
            self.agreed[part].insert(key, (here, there));
            self.dirty.insert(part);
        }
    }

    /// Notes that neither side has it any more.
    pub(super) fn gone(&mut self, thing: &Thing) {
        self.apart.remove(thing);
        self.owed.remove(thing);
        let key = thing.key();
        let part = part(&key);
        if self.agreed[part].remove(&key).is_some() {
            self.dirty.insert(part);
        }
    }
}

fn part(key: &str) -> usize {
    usize::from(Sha256::of(key).as_bytes()[0]) % PARTS
}

fn part_of(peer: &str, part: usize) -> String {
    format!("{peer}#{part:x}")
}

async fn read(session: &mut Session<'_>, peer: &str) -> Result<Option<Value>> {
    session.call::<api::SyncState>(input::SyncPeer { peer: peer.to_owned() }).await
}

async fn keep(session: &mut Session<'_>, peer: String, state: Value) -> Result {
    session.change::<api::KeepSyncState>(input::KeepSyncState { peer, state: Some(state) }).await
}

/// One line of text for each: a text is cheaper to keep at hand than a tree.
fn printed(agreed: &BTreeMap<String, (String, String)>) -> String {
    let lines = agreed.iter().map(|(key, (here, there))| match here == there {
        true => format!("{key} {here}\n"),
        false => format!("{key} {here} {there}\n"),
    });
    lines.collect()
}

fn parsed(text: &str) -> BTreeMap<String, (String, String)> {
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (key, here) = (words.next()?, words.next()?);
        let there = words.next().unwrap_or(here);
        Some((key.to_owned(), (here.to_owned(), there.to_owned())))
    });
    lines.collect()
}

/// A short digest of a value, whatever the order of its members.
pub(super) fn digest(value: &Value) -> String {
    base64url(&Sha256::of(jcs::canonical(value)).as_bytes()[..12])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreements_come_back_as_they_were_written() {
        let mut agreed = BTreeMap::new();
        agreed.insert("ca".to_owned(), ("x.y".to_owned(), "x.y".to_owned()));
        agreed.insert("mb".to_owned(), ("x".to_owned(), "z".to_owned()));
        assert_eq!(printed(&agreed), "ca x.y\nmb x z\n");
        assert_eq!(parsed(&printed(&agreed)), agreed);
    }

    #[test]
    fn the_order_of_members_changes_no_digest() {
        let one: Value = serde_json::from_str(r#"{"a":1,"b":2}"#).unwrap();
        let other: Value = serde_json::from_str(r#"{"b":2,"a":1}"#).unwrap();
        assert_eq!(digest(&one), digest(&other));
        assert_ne!(digest(&one), digest(&Value::Null));
    }
}

//! From records to what the engine imports, and from what it exports to records.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};
use yore_domain::grant::Verb;
use yore_domain::memory::{Cause, Status, Version};
use yore_domain::query::{Filter, PageRequest, Position};
use yore_domain::scope::Visibility;
use yore_domain::{Error, MemoryId, Result, Timestamp};
use yore_engine::{Call, Identity, Item, Viewer};

use crate::map::{self, Place};
use crate::wire::{self, Object, Wire};
use crate::{Ump, integrity};

/// The most memories of one page.
const PAGE: usize = 200;

/// A request for a page of an export.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    #[serde(default)]
    filter: Filter,
    #[serde(default)]
    limit: Option<usize>,
    #[serde(default)]
    after: Option<Position>,
    #[serde(default)]
    extent: Words,
    #[serde(default)]
    unredacted: bool,
    #[serde(default, rename = "client")]
    _client: Value,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Words {
    #[default]
    Whole,
    Standing,
    Public,
}

impl From<Words> for Extent {
    fn from(word: Words) -> Self {
        match word {
            Words::Whole => Self::Whole,
            Words::Standing => Self::Standing,
            Words::Public => Self::Public,
        }
    }
}

/// Whether consent is applied to what leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Redaction {
    /// Members that consent keeps inside are left out, and so is what may not be exported.
    #[default]
    Apply,
    /// Everything stays as it is: a copy for the owner's own hands.
    Keep,
}

impl Redaction {
    /// For whom a file is: anybody, unless it stays in the caller's hands.
    fn viewer(self, identity: &Identity) -> Viewer {
        match self {
            Self::Apply => Viewer::Other,
            Self::Keep => identity.viewer(),
        }
    }
}

/// Which statements of a memory leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// Every one, so that nothing of the past is lost.
    #[default]
    Whole,
    /// Only the one that stands now.
    Standing,
    /// The one that stands now, where anybody may read it.
    Public,
}

/// What is taken out, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Export {
    /// Which statements.
    pub extent: Extent,
    /// Whether consent is applied.
    pub redaction: Redaction,
    /// The version of the protocol.
    pub wire: Wire,
}

/// Some records and where the next ones are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exported {
    /// The records, oldest first.
    pub records: Vec<Object>,
    /// The memory and its newest version's number, for each record.
    pub places: Vec<(MemoryId, u32)>,
    /// How many were left out because consent keeps them inside.
    pub kept: usize,
    /// Where to go on, when there is more.
    pub next: Option<Position>,
}

impl Ump {
    /// Takes records out, a page at a time. It needs the verb to export.
    pub async fn export(
        &self,
        call: &Call,
        mut filter: Filter,
        page: PageRequest,
        wanted: Export,
    ) -> Result<Exported> {
        if wanted.extent == Extent::Public {
            filter.scope.visibility = Some(Visibility::Public);
        }
        let identity = self.engine.identify(call, Verb::Read).await?;
        let viewer = wanted.redaction.viewer(&identity);
        let page = self.engine.export(call, filter, page).await?;
        let mut exported = Exported { next: page.next, ..Exported::default() };
        for item in &page.items {
            let Item::Memory { versions } = item else {
                // Conversations come after all memories and have no form here.
                exported.next = None;
                continue;
            };
            let Some(head) = versions.last() else { continue };
            let mut stated = statements(versions);
            if wanted.extent != Extent::Whole {
                stated.retain(|version| version.origin() == head.origin());
            }
            for version in stated {
                if wanted.extent == Extent::Public && !version.class().is_public() {
                    continue;
                }
                if !viewer.may_take(&version.content.consent) {
                    exported.kept += 1;
                    continue;
                }
                let place = Place::of(version, versions, self.engine.now());
                let mut record = self.emit(&identity, version, &place, wanted.wire).await?;
                if wanted.redaction == Redaction::Apply {
                    integrity::redact(&mut record);
                }
                exported.records.push(record);
                exported.places.push((head.memory, head.number));
            }
        }
        Ok(exported)
    }

    /// Answers a request for a page of records.
    pub(crate) async fn export_page(
        &self,
        call: &Call,
        input: &Object,
        wire: Wire,
    ) -> Result<Value> {
        let asked: Asked = serde_json::from_value(input.clone().into())
            .map_err(|_| Error::invalid("input", "is not a request for an export"))?;
        let page = PageRequest {
            limit: asked.limit.unwrap_or(PAGE).min(PAGE),
            after: asked.after,
            ..PageRequest::default()
        };
        let redaction = if asked.unredacted { Redaction::Keep } else { Redaction::Apply };
        let wanted = Export { extent: asked.extent.into(), redaction, wire };
        let Exported { records, places, kept, next } =
            self.export(call, asked.filter, page, wanted).await?;
        let entries: Vec<Value> = records
            .into_iter()
            .zip(places)
            .map(|(record, (memory, number))| {
                json!({"record": record, "memory": memory, "number": number})
            })
            .collect();
        Ok(json!({"entries": entries, "kept": kept, "next": next}))
    }

    /// Returns what the engine imports of some records, and the refused ones with the reason.
    pub async fn import_items(
        &self,
        call: &Call,
        records: &[Object],
    ) -> Result<(Vec<Item>, Vec<(String, Error)>)> {
        let identity = self.engine.identify(call, Verb::Write).await?;
        Ok(items(records, identity.did(), self.engine.now()))
    }
}

/// The newest version of each statement, oldest statement first.
fn statements(versions: &[Version]) -> Vec<&Version> {
    let mut newest: Vec<&Version> = Vec::new();
    for version in versions {
        match newest.iter_mut().find(|one| one.origin() == version.origin()) {
            Some(one) => *one = version,
            None => newest.push(version),
        }
    }
    newest
}

/// Turns records into memories: those that supersede each other become one chain. `owner` is
/// the DID of the vault they are meant for. Refused ones are returned with their ids.
#[must_use]
pub fn items(records: &[Object], owner: &str, now: Timestamp) -> (Vec<Item>, Vec<(String, Error)>) {
    let mut refused = Vec::new();
    let mut taken: BTreeMap<String, Version> = BTreeMap::new();
    let mut order = Vec::new();
    for record in records {
        let named = record.get("id").and_then(Value::as_str).unwrap_or_default();
        match version(record, owner, now) {
            Ok((id, version)) => {
                if taken.insert(id.clone(), version).is_none() {
                    order.push(id);
                }
            }
            Err(error) => refused.push((named.to_owned(), error)),
        }
    }
    let replaced: BTreeSet<String> =
        taken.values().flat_map(|version| map::Kept::of(&version.content).supersedes).collect();
    let heads: Vec<String> = order.iter().filter(|id| !replaced.contains(*id)).cloned().collect();
    let mut chains = Vec::new();
    for head in heads {
        chains.extend(chain(&head, &mut taken));
    }
    // What is left supersedes itself in a circle: each stands alone.
    for id in order {
        chains.extend(taken.remove(&id).map(|version| chained(vec![version])));
    }
    (chains, refused)
}

fn chain(head: &str, taken: &mut BTreeMap<String, Version>) -> Option<Item> {
    let head = taken.remove(head)?;
    let mut versions: Vec<Version> =
        map::Kept::of(&head.content).supersedes.iter().filter_map(|id| taken.remove(id)).collect();
    versions.reverse();
    versions.push(head);
    Some(chained(versions))
}

fn chained(mut versions: Vec<Version>) -> Item {
    let memory = MemoryId::from_bytes(versions[0].id.bytes());
    let mut before: Option<Version> = None;
    for (number, version) in (1..).zip(&mut versions) {
        version.memory = memory;
        version.number = number;
        if let Some(before) = &before {
            version.cause = Cause::Revised;
            version.replaces = Some(before.id);
            version.recorded = version.recorded.max(before.recorded);
        }
        before = Some(version.clone());
    }
    Item::Memory { versions }
}

/// Reads one record as a version of a chain that is not known yet.
fn version(record: &Object, owner: &str, now: Timestamp) -> Result<(String, Version)> {
    let signer = integrity::verified(record)?;
    let said = wire::read(record)?;
    let known = "it lacks an id, so it is not a portable record";
    let id = said.id.clone().ok_or_else(|| Error::invalid("id", known))?;
    let mut draft = map::draft(record, &said, owner, Some(id.clone()), now);
    if signer.is_some() || Wire::of(record)? == Some(Wire::V0_1) {
        draft.content.seal = Some(map::sealed(record, signer.as_deref(), &said.owner));
    }
    draft.content.validate()?;
    let status = std::mem::take(&mut draft.status);
    let taken_in = draft.time.created.unwrap_or(now).min(now);
    let mut version = Version::first(MemoryId::from_bytes([0; 16]), draft, taken_in, None);
    version.status = status;
    if status == Status::Tombstoned {
        version.cause = Cause::Tombstoned;
    }
    Ok((id, version))
}

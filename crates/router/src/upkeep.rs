//! Merging and expiring, the same on every backend.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::mapping::Kept;
use crate::record::{Object, Record, Type, Whose};
use crate::slot::{Depth, Row, Slot};
use crate::store::Capability;

const DAY: i64 = 86_400_000;
/// The member of the metadata by which a memory is found as an entity.
const ENTITY: &str = "entity_name";

/// How several memories become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// What was named first stays as it is.
    #[default]
    KeepCanonical,
    /// The texts are joined.
    MergeContent,
    /// The surest stays as it is.
    KeepHighestConfidence,
}

/// Makes several memories one.
#[derive(Clone, Debug)]
pub struct Merge {
    /// Whose.
    pub whose: Whose,
    /// What stays: an id or an entity's name.
    pub canonical: String,
    /// What becomes part of it, named likewise.
    pub duplicates: Vec<String>,
    /// How.
    pub strategy: Strategy,
    /// Only among these ids, where some are named.
    pub only: Option<BTreeSet<String>>,
    /// The time it is asked at.
    pub now: i64,
}

/// What a merge did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// What is left; `None` when nothing was merged.
    pub survivor: Option<String>,
    /// What became part of it.
    pub absorbed: Vec<String>,
}

/// What an expiry does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Takes it out of recall.
    #[default]
    Forget,
    /// Marks it and takes it out of recall.
    Archive,
    /// Ranks it lower, and changes nothing else.
    Demote,
}

/// Which memories an expiry takes: all that is set must hold.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Policy {
    /// Made at least so many days ago.
    pub older_than_days: Option<u32>,
    /// Of this type.
    pub kind: Option<Type>,
    /// Less sure than this.
    pub confidence_below: Option<f64>,
    /// Not recalled for so many days, or never.
    pub no_recall_in_days: Option<u32>,
}

/// Forgets, archives or demotes what a policy describes.
#[derive(Clone, Debug)]
pub struct Expire {
    /// Whose.
    pub whose: Whose,
    /// Which.
    pub policy: Policy,
    /// What happens to them.
    pub action: Action,
    /// Only among these ids, where some are named.
    pub only: Option<BTreeSet<String>>,
    /// The time it is asked at.
    pub now: i64,
}

impl Expire {
    /// Checks that the policy demands something: else it would take everything (MW-052).
    pub(crate) fn check(&self) -> Result<()> {
        if self.policy == Policy::default() {
            return Err(Error::invalid("policy", "must demand something"));
        }
        Ok(())
    }

    fn takes(&self, row: &Row) -> bool {
        let before = |days: u32| self.now.saturating_sub(i64::from(days) * DAY);
        let Policy { older_than_days, kind, confidence_below, no_recall_in_days } = self.policy;
        admitted(self.only.as_ref(), row)
            && older_than_days.is_none_or(|days| row.record.created_at <= before(days))
            && kind.is_none_or(|kind| row.record.kind == kind)
            && confidence_below.is_none_or(|limit| row.record.confidence < limit)
            && no_recall_in_days
                .is_none_or(|days| row.recalled_at.is_none_or(|last| last <= before(days)))
    }
}

impl Slot {
    /// The ids of what a policy describes; nothing happens to it.
    pub async fn expiring(&self, expire: &Expire) -> Result<Vec<String>> {
        let rows = self.taken(expire).await?;
        Ok(rows.into_iter().map(|row| row.record.id).collect())
    }

    async fn taken(&self, expire: &Expire) -> Result<Vec<Row>> {
        expire.check()?;
        let tracks = self.store.capabilities().contains(&Capability::RecallTracking);
        if expire.policy.no_recall_in_days.is_some() && !tracks {
            let what = "the store does not know when a memory was last recalled";
            return Err(Error::Unsupported(what.into()));
        }
        let rows = self.rows(&expire.whose, expire.now).await?;
        Ok(rows.into_iter().filter(|row| expire.takes(row)).collect())
    }

    /// Takes what a policy describes, and returns the ids.
    pub async fn expire(&self, expire: &Expire) -> Result<Vec<String>> {
        let mut taken = Vec::new();
        for row in self.taken(expire).await? {
            let id = row.record.id.clone();
            match expire.action {
                Action::Forget => {
                    let whose = row.record.whose();
                    self.forget_at(&whose, &id, &row.place, Depth::Tombstone).await?;
                }
                Action::Archive => self.archive(row, expire.now).await?,
                Action::Demote => self.demote(row).await?,
            }
            taken.push(id);
        }
        Ok(taken)
    }

    async fn archive(&self, row: Row, now: i64) -> Result<()> {
        let whose = row.record.whose();
        let mut record = row.record;
        record.metadata.insert("archived".into(), Value::Bool(true));
        record.updated_at = now;
        let place = self.store.replace(&row.place, &record).await?;
        self.forget_at(&whose, &record.id, &place, Depth::Tombstone).await?;
        Ok(())
    }

    async fn demote(&self, row: Row) -> Result<()> {
        let kept = Kept { place: Some(row.place), demoted: true, ..row.kept };
        self.mapping.put(self.name(), &row.record.id, kept).await
    }

    /// Makes several memories one. Nothing happens where a side names nothing.
    pub async fn merge(&self, merge: &Merge) -> Result<Merged> {
        if merge.canonical.is_empty() || merge.duplicates.is_empty() {
            return Err(Error::invalid("duplicates", "both sides must be named"));
        }
        let mut rows = self.rows(&merge.whose, merge.now).await?;
        rows.retain(|row| admitted(merge.only.as_ref(), row));
        let canonical = named(&rows, &merge.canonical);
        let mut duplicates: BTreeSet<usize> =
            merge.duplicates.iter().flat_map(|key| named(&rows, key)).collect();
        duplicates.retain(|row| !canonical.contains(row));
        if duplicates.is_empty() {
            return Ok(Merged::default());
        }
        let everyone: BTreeSet<usize> = canonical.union(&duplicates).copied().collect();
        let surest = |among: &BTreeSet<usize>| {
            among.iter().copied().max_by(|a, b| sureness(&rows[*a].record, &rows[*b].record))
        };
        let survivor = match merge.strategy {
            Strategy::KeepCanonical | Strategy::MergeContent => {
                surest(&canonical).or_else(|| surest(&duplicates))
            }
            Strategy::KeepHighestConfidence => surest(&everyone),
        };
        let Some(survivor) = survivor else { return Ok(Merged::default()) };
        let goes: Vec<usize> = match merge.strategy {
            // All rows that carry the canonical name stay as they are.
            Strategy::KeepCanonical if !canonical.is_empty() => duplicates.into_iter().collect(),
            Strategy::KeepCanonical | Strategy::MergeContent | Strategy::KeepHighestConfidence => {
                everyone.iter().copied().filter(|row| *row != survivor).collect()
            }
        };
        if merge.strategy == Strategy::MergeContent {
            let parts = everyone.iter().map(|row| &rows[*row].record).collect();
            let whole = joined(&rows[survivor].record, parts, merge.now);
            self.rewrite(&rows[survivor], &whole).await?;
        }
        let mut absorbed = Vec::new();
        for row in goes {
            let Row { record, place, .. } = &rows[row];
            self.forget_at(&record.whose(), &record.id, place, Depth::Tombstone).await?;
            absorbed.push(record.id.clone());
        }
        Ok(Merged { survivor: Some(rows[survivor].record.id.clone()), absorbed })
    }

    /// Writes another state of a row. One that nobody delivered is not kept track of afterwards
    /// either: it stays what only this store has.
    async fn rewrite(&self, row: &Row, record: &Record) -> Result<()> {
        let stranger = row.kept.agent.is_none();
        if stranger {
            let kept = Kept { place: Some(row.place.clone()), ..row.kept.clone() };
            self.mapping.put(self.name(), &record.id, kept).await?;
        }
        self.put(record).await?;
        if stranger {
            self.mapping.remove(self.name(), &record.id).await?;
        }
        Ok(())
    }

    /// The ids that keys name, each an id or an entity's name.
    pub async fn named(&self, whose: &Whose, keys: &[String], now: i64) -> Result<Vec<String>> {
        let rows = self.rows(whose, now).await?;
        let found: BTreeSet<usize> = keys.iter().flat_map(|key| named(&rows, key)).collect();
        Ok(found.into_iter().map(|row| rows[row].record.id.clone()).collect())
    }

    /// The ids of what a filter finds.
    pub async fn matching(&self, whose: &Whose, filter: &Object, now: i64) -> Result<Vec<String>> {
        let rows = self.rows(whose, now).await?;
        let found = rows.into_iter().filter(|row| crate::filter::passes(filter, &row.record));
        Ok(found.map(|row| row.record.id).collect())
    }
}

fn admitted(only: Option<&BTreeSet<String>>, row: &Row) -> bool {
    only.is_none_or(|only| only.contains(&row.record.id))
}

/// The rows a key names: the one with that id, else those of that entity. Never a part of a name.
fn named(rows: &[Row], key: &str) -> BTreeSet<usize> {
    if let Some(row) = rows.iter().position(|row| row.record.id == key) {
        return BTreeSet::from([row]);
    }
    let entity = |row: &Row| row.record.metadata.get(ENTITY).and_then(Value::as_str) == Some(key);
    rows.iter().enumerate().filter(|(_, row)| entity(row)).map(|(index, _)| index).collect()
}

/// The surer is the greater; among equals, the older, then the one with the smaller id.
fn sureness(a: &Record, b: &Record) -> Ordering {
    a.confidence
        .total_cmp(&b.confidence)
        .then_with(|| b.created_at.cmp(&a.created_at))
        .then_with(|| b.id.cmp(&a.id))
}

/// One record of several: texts joined by lines, the oldest first, but the survivor's before all;
/// of members with one name, the newest; the highest confidence.
fn joined(survivor: &Record, mut parts: Vec<&Record>, now: i64) -> Record {
    parts.sort_by(|a, b| a.created_at.cmp(&b.created_at).then_with(|| a.id.cmp(&b.id)));
    let mut whole = survivor.clone();
    let mut said = BTreeSet::from([survivor.content.trim()]);
    for part in &parts {
        whole.metadata.extend(part.metadata.clone());
        whole.confidence = whole.confidence.max(part.confidence);
        if said.insert(part.content.trim()) {
            whole.content.push('\n');
            whole.content.push_str(part.content.trim());
        }
    }
    whole.updated_at = now;
    whole
}

//! Near-duplicates: found after the fact and proposed to the owner; nothing is overwritten.

use yore_domain::change::{Change, What};
use yore_domain::hold::HoldReason;
use yore_domain::memory::{Cause, Memory};
use yore_domain::mutation::{MergeStrategy, Mutation};
use yore_domain::query::{Corpus, Filter};
use yore_domain::{MemoryId, Result, Seq, VaultId};
use yore_policy::Permit;
use yore_rank::overlap::{Stance, stance, words};
use yore_store::snapshot::Loaded;
use yore_store::{RowKey, Search, Snapshot, Write};

use super::{Left, PROTOCOL};
use crate::call::Call;
use crate::engine::Engine;
use crate::mutate::{Ground, Waiting, Wish};
use crate::run::{Attempt, Trace};

/// The setting that says how far the outbox was looked through.
const CURSOR: &str = "duplicates:cursor";
/// Changes looked at between two commits.
const CHANGES: usize = 64;
/// How close two static vectors must be.
const STATIC: f32 = 0.92;
/// How close two of the transformer's must be.
const DENSE: f32 = 0.90;
/// Bytes of a text that are compared.
const TEXT: usize = 8 << 10;
/// How many of the closest are looked at.
const DEPTH: usize = 20;

impl Engine {
    /// Looks at what is new since the last time and proposes merges.
    pub(super) async fn propose_merges(&self, vault: VaultId) -> Result<Left> {
        let permit = self.system(vault, "find duplicates")?;
        let snapshot = self.store().snapshot(&permit).await?;
        let cursor = snapshot.setting(CURSOR).await?.and_then(|seq| seq.as_u64());
        let changes = snapshot.changes(Seq(cursor.unwrap_or(0)), CHANGES).await?;
        let Some(last) = changes.last().map(|change| change.seq) else { return Ok(Left::Nothing) };
        let (mut writes, mut preconditions, mut pairs) = (Vec::new(), Vec::new(), Vec::new());
        for change in &changes {
            let Some(new) = newly_said(&*snapshot, change).await? else { continue };
            let Some(known) = self.closest(&*snapshot, &new).await? else { continue };
            let (older, newer) = ordered(known, new);
            if !agree(&older, &newer) {
                continue;
            }
            let pair = pair(older.head.memory, newer.head.memory);
            if pairs.contains(&pair) || snapshot.setting(&pair).await?.is_some() {
                continue;
            }
            let (hold, unmoved) = self.proposal(&permit, &*snapshot, older, newer);
            writes.extend(hold);
            preconditions.extend(unmoved);
            writes.push(Write::Setting(pair.clone(), true.into()));
            pairs.push(pair);
        }
        drop(snapshot);
        let proposed = pairs.len();
        writes.push(Write::Setting(CURSOR.to_owned(), last.0.into()));
        let trace = Trace::default().with("looked_at", changes.len()).with("proposed", proposed);
        self.commit_own(&permit, writes, preconditions, trace).await
    }

    /// The closest other memory of the same class and kind, if it is close enough.
    async fn closest(&self, snapshot: &dyn Snapshot, new: &Memory) -> Result<Option<Memory>> {
        let content = &new.head.content;
        let text = &content.body.text[..content.body.text.floor_char_boundary(TEXT)];
        let asked = self.ask(text, self.settings().effort).await?;
        let filter = Filter { kinds: vec![content.kind], ..Filter::default() };
        let search = Search {
            text,
            tokens: &asked.tokens,
            statics: Some(&asked.statics),
            dense: asked.dense.as_deref(),
            corpus: Corpus::Memories,
            filter: &filter,
            depth: DEPTH,
            now: self.now(),
        };
        let class = new.head.class();
        let mut near: Vec<(f32, RowKey)> = snapshot
            .search(&search)
            .await?
            .into_iter()
            .filter(|candidate| *candidate.class == class)
            .filter_map(|candidate| {
                let (statics, dense) = (candidate.signals.statics, candidate.signals.dense);
                let close = statics >= STATIC || dense.is_some_and(|dense| dense >= DENSE);
                close.then(|| (dense.unwrap_or(statics), candidate.row))
            })
            .collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let rows: Vec<RowKey> = near.into_iter().map(|(_, row)| row).collect();
        for (_, loaded) in snapshot.load(&rows).await? {
            let Loaded::Memory { version, head: true } = loaded else { continue };
            if version.memory != new.head.memory && version.status.is_live() {
                return snapshot.memory(version.memory).await;
            }
        }
        Ok(None)
    }

    fn proposal(
        &self,
        permit: &Permit,
        snapshot: &dyn Snapshot,
        older: Memory,
        newer: Memory,
    ) -> (Vec<Write>, Vec<yore_store::Precondition>) {
        let canonical = older.head.memory;
        let merge = Mutation::Merge {
            canonical,
            duplicates: vec![newer.head.memory],
            strategy: MergeStrategy::KeepCanonical,
        };
        let wish = Wish::default();
        let ground = Ground {
            engine: self,
            permit,
            snapshot,
            now: self.now(),
            writer: None,
            targets: vec![older, newer],
            wish: &wish,
            attempt: Attempt::Again,
        };
        let call = Call::anonymous(PROTOCOL);
        let waiting = Waiting::because(HoldReason::NearDuplicate(canonical));
        let mut hold = ground.hold(&call, &merge, waiting);
        hold.reasoning = Some("they are close in meaning".to_owned());
        (ground.held(hold).writes, ground.unmoved())
    }
}

/// The memory a change is about, when it now says something it did not say before.
async fn newly_said(snapshot: &dyn Snapshot, change: &Change) -> Result<Option<Memory>> {
    let What::Memory { memory, head, status, cause, .. } = &change.what else { return Ok(None) };
    let said = match cause {
        Cause::Created | Cause::Revised | Cause::Relabelled | Cause::Restored => true,
        Cause::Reinforced
        | Cause::Merged
        | Cause::Absorbed
        | Cause::Tombstoned
        | Cause::Expired
        | Cause::Quarantined => false,
    };
    if !said || !status.is_live() {
        return Ok(None);
    }
    let found = snapshot.memory(*memory).await?;
    Ok(found.filter(|found| found.head.number == *head))
}

/// Whether two memories that are close in meaning can be one: what denies the other, or gives
/// another number, cannot.
fn agree(one: &Memory, other: &Memory) -> bool {
    let said = |memory: &Memory| words(&memory.head.content.body.text);
    stance(&said(one), &said(other)) == Stance::Agree
}

fn ordered(one: Memory, other: Memory) -> (Memory, Memory) {
    let key = |memory: &Memory| (memory.head.time.created, memory.since, memory.head.memory);
    if key(&one) <= key(&other) { (one, other) } else { (other, one) }
}

/// The setting that says a pair was proposed, whatever was decided about it.
pub(super) fn pair(one: MemoryId, other: MemoryId) -> String {
    format!("duplicates:pair:{}:{}", one.min(other), one.max(other))
}

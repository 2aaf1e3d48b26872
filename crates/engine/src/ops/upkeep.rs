//! How the whole vault is, for its owner: what needs care, and what was said where.

use yore_domain::grant::Verb;
use yore_domain::memory::Memory;
use yore_domain::query::Recall;
use yore_domain::{Result, Span};
use yore_policy::Need;
use yore_store::Snapshot;
use yore_store::snapshot::{Concern, Tally};

use super::recall::{Recalled, trace};
use crate::call::Call;
use crate::engine::Engine;
use crate::run::Trace;

/// After how long something that nobody asked for counts as unused.
const UNUSED: Span = Span::days(30);
/// After how long without a recall something counts as stale.
const STALE: Span = Span::days(90);
/// How far ahead an end is near.
const NEAR: Span = Span::days(30);
/// From how many versions on something changes again and again.
const VERSIONS: u32 = 4;

/// The memories that give cause for one concern.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Care {
    /// How many of the whole vault.
    pub count: u64,
    /// The first of them.
    pub first: Vec<Memory>,
}

/// What needs care in a vault.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Upkeep {
    /// Older than a month, and no recall ever returned it.
    pub unused: Care,
    /// Older than 90 days, and no recall returned it since.
    pub stale: Care,
    /// Ends within a month.
    pub ending: Care,
    /// Was changed again and again.
    pub changing: Care,
}

impl Engine {
    /// Tells what needs care in the whole vault, with the first few of each.
    pub async fn upkeep(&self, call: &Call, few: usize) -> Result<Upkeep> {
        let need = Need::one("upkeep", Verb::Admin);
        self.look(call, need, few, |_, session, snapshot, few| {
            Box::pin(async move {
                let now = session.now;
                let upkeep = Upkeep {
                    unused: care(snapshot, Concern::Unused(now.minus(UNUSED)), *few).await?,
                    stale: care(snapshot, Concern::Stale(now.minus(STALE)), *few).await?,
                    ending: care(snapshot, Concern::Ending(now, now.plus(NEAR)), *few).await?,
                    changing: care(snapshot, Concern::Changing(VERSIONS), *few).await?,
                };
                let trace = Trace::default()
                    .with("unused", upkeep.unused.count)
                    .with("stale", upkeep.stale.count);
                Ok((upkeep, trace))
            })
        })
        .await
    }

    /// Counts all conversations and messages by platform and month.
    pub async fn tally(&self, call: &Call) -> Result<Vec<Tally>> {
        self.look(call, Need::one("tally", Verb::Admin), (), |_, _, snapshot, ()| {
            Box::pin(async move { Ok((snapshot.tally().await?, Trace::default())) })
        })
        .await
    }

    /// Finds like a recall, but for somebody who leafs through: nothing that is found counts as
    /// used, so looking around does not change what needs care.
    pub async fn browse(&self, call: &Call, recall: Recall) -> Result<Recalled> {
        let need = Need::one("browse", Verb::Read);
        self.look(call, need, recall, |engine, session, snapshot, recall| {
            Box::pin(async move {
                let (recalled, _) = engine.find(session, snapshot, recall).await?;
                let trace = Trace { used: Vec::new(), ..trace(&recalled) };
                Ok((recalled, trace))
            })
        })
        .await
    }
}

async fn care(snapshot: &dyn Snapshot, concern: Concern, few: usize) -> Result<Care> {
    let (count, ids) = snapshot.concerning(concern, few).await?;
    let mut first = Vec::with_capacity(ids.len());
    for id in ids {
        first.extend(snapshot.memory(id).await?);
    }
    Ok(Care { count, first })
}

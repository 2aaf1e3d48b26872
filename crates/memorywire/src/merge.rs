//! Making several memories one.

use std::collections::BTreeSet;

use yore_domain::grant::Verb;
use yore_domain::mutation::{MergeStrategy, Mutation};
use yore_domain::{Error, MemoryId, Result};
use yore_engine::{Call, Purpose, Wish};

use crate::elsewhere::{Changed, Named, cannot_wait};
use crate::operations::{Outcome, outcome};
use crate::rows::{Row, Whose};
use crate::wire::{Merge, Merged, Strategy};
use crate::{Memorywire, map, stores};

/// Who stays and who goes.
#[derive(Debug, PartialEq, Eq)]
struct Union {
    survivor: MemoryId,
    others: Vec<MemoryId>,
}

impl Memorywire {
    /// Merges duplicates and says what is left. Where the keys find nothing to merge, nothing
    /// happens, and that is no failure.
    pub(crate) async fn merge(&self, call: &Call, request: Merge) -> Result<Merged> {
        request.check()?;
        let speaker = self.speaker(call, &request.agent_id, Verb::Read).await?;
        if let Some(before) = self.before(call, "merge").await? {
            return Ok(self.merged(&request, before));
        }
        let user = request.user_id.as_deref();
        let whose = Whose { agent: &speaker.agent, user, purpose: Purpose::Change("merge") };
        let key = std::slice::from_ref(&request.canonical);
        let canonical = self.keyed(call, whose, key).await?;
        let mut duplicates = self.keyed(call, whose, &request.duplicates).await?;
        // What both sides name is canonical.
        let kept: BTreeSet<MemoryId> = canonical.iter().map(|row| row.id).collect();
        duplicates.retain(|row| !kept.contains(&row.id));
        let whose = yore_router::Whose { agent: speaker.agent, user: request.user_id.clone() };
        let there = self.named_there(call, &whose, &request.canonical, &request.duplicates).await?;
        if !there.is_empty() && request.approval_required {
            return Err(cannot_wait());
        }
        if !there.is_empty() && canonical.is_empty() && duplicates.is_empty() {
            return self.merged_there(call, whose, &request, there).await;
        }
        if !there.is_empty()
            && (canonical.is_empty() || request.strategy != Strategy::KeepCanonical)
        {
            let reason = "must be keep_canonical, and the canonical memory the vault's, where \
                          what only another store has is merged with it";
            return Err(Error::invalid("strategy", reason));
        }
        let merged = self.merged_here(call, &request, &canonical, &duplicates).await?;
        if merged.pending_approval {
            return Ok(merged);
        }
        let absorbed = self.absorb_there(call, whose, there.duplicates).await?;
        Ok(with(merged, absorbed))
    }

    /// Merges what only other stores have.
    async fn merged_there(
        &self,
        call: &Call,
        whose: yore_router::Whose,
        request: &Merge,
        there: Named,
    ) -> Result<Merged> {
        let merge = yore_router::Merge {
            whose,
            canonical: request.canonical.clone(),
            duplicates: request.duplicates.clone(),
            strategy: match request.strategy {
                Strategy::KeepCanonical => yore_router::Strategy::KeepCanonical,
                Strategy::MergeContent => yore_router::Strategy::MergeContent,
                Strategy::KeepHighestConfidence => yore_router::Strategy::KeepHighestConfidence,
            },
            only: Some(there.canonical.into_iter().chain(there.duplicates).collect()),
            now: self.engine.now().millis(),
        };
        let done = self.merge_there(call, merge).await?;
        let mut merged = unmerged(request, None);
        merged.stores.clear();
        Ok(with(merged, done))
    }

    /// Merges what the vault has.
    async fn merged_here(
        &self,
        call: &Call,
        request: &Merge,
        canonical: &[Row],
        duplicates: &[Row],
    ) -> Result<Merged> {
        let Some(union) = union(canonical, duplicates, request.strategy)? else {
            return Ok(unmerged(request, canonical.first()));
        };
        let merge = Mutation::Merge {
            canonical: union.survivor,
            duplicates: union.others,
            strategy: match request.strategy {
                Strategy::KeepCanonical => MergeStrategy::KeepCanonical,
                Strategy::MergeContent => MergeStrategy::MergeContent,
                Strategy::KeepHighestConfidence => MergeStrategy::KeepHighestConfidence,
            },
        };
        let wish = Wish { approval: request.approval_required, ..Wish::default() };
        let done = outcome(self.engine.mutate(call, merge, wish).await)?;
        Ok(self.merged(request, done))
    }

    fn merged(&self, request: &Merge, done: Outcome) -> Merged {
        match done {
            Outcome::Done(done) => {
                let survivor = done.memories.first().map(|head| map::id(head.memory));
                Merged {
                    canonical: survivor.unwrap_or_else(|| request.canonical.clone()),
                    merged_count: done.memories.len().saturating_sub(1) as u64,
                    strategy_used: request.strategy,
                    stores: stores(),
                    pending_approval: false,
                    approval_url: None,
                }
            }
            Outcome::Waits(hold) => Merged {
                stores: Vec::new(),
                pending_approval: true,
                approval_url: Some(self.approval_url(hold)),
                ..unmerged(request, None)
            },
        }
    }
}

/// Adds what other stores did.
fn with(mut merged: Merged, there: Changed) -> Merged {
    merged.canonical = there.survivor.unwrap_or(merged.canonical);
    merged.merged_count += there.ids.len() as u64;
    merged.stores.extend(there.stores);
    merged
}

/// Works out who stays; `None` when there is nothing to merge.
fn union(canonical: &[Row], duplicates: &[Row], strategy: Strategy) -> Result<Option<Union>> {
    let all: Vec<&Row> = canonical.iter().chain(duplicates).collect();
    let (survivor, candidates) = match strategy {
        // Without a canonical memory there is nothing that duplicates could be part of; several
        // canonical ones stay side by side.
        Strategy::KeepCanonical => (surest(canonical), duplicates.iter().collect()),
        Strategy::MergeContent => (surest(canonical).or_else(|| surest(duplicates)), all),
        Strategy::KeepHighestConfidence => (surest(all.iter().copied()), all),
    };
    let Some(survivor) = survivor else { return Ok(None) };
    let others: Vec<&Row> = candidates.into_iter().filter(|row| row.id != survivor.id).collect();
    if others.is_empty() {
        return Ok(None);
    }
    if strategy == Strategy::MergeContent && others.iter().any(|row| row.user != survivor.user) {
        let reason = "belong to several users, and no content is carried from one to another";
        return Err(Error::invalid("duplicates", reason));
    }
    let others = others.iter().map(|row| row.id).collect();
    Ok(Some(Union { survivor: survivor.id, others }))
}

/// The surest row; on a tie the older.
fn surest<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Option<&'a Row> {
    rows.into_iter()
        .max_by(|a, b| a.confidence.total_cmp(&b.confidence).then(b.since.cmp(&a.since)))
}

fn unmerged(request: &Merge, canonical: Option<&Row>) -> Merged {
    let found = canonical.map(|row| map::id(row.id));
    Merged {
        canonical: found.unwrap_or_else(|| request.canonical.clone()),
        merged_count: 0,
        strategy_used: request.strategy,
        stores: stores(),
        pending_approval: false,
        approval_url: None,
    }
}

#[cfg(test)]
mod tests {
    use yore_domain::Timestamp;

    use super::*;

    fn row(confidence: f64, since: i64, user: Option<&str>) -> Row {
        let user = user.map(str::to_owned);
        Row { id: MemoryId::random(), user, confidence, since: Timestamp::from_millis(since) }
    }

    #[test]
    fn mw_044_the_surest_survives_and_on_a_tie_the_older() {
        let rows = [row(0.5, 1, None), row(0.9, 3, None), row(0.9, 2, None)];
        let strategy = Strategy::KeepHighestConfidence;
        let union = union(&rows[..1], &rows[1..], strategy).unwrap().unwrap();
        assert_eq!(union.survivor, rows[2].id);
        assert_eq!(union.others, [rows[0].id, rows[1].id]);
    }

    #[test]
    fn mw_042_nothing_is_merged_into_nothing() {
        let rows = [row(0.5, 1, None), row(0.9, 2, None)];
        assert_eq!(union(&[], &rows, Strategy::KeepCanonical).unwrap(), None);
        assert_eq!(union(&rows[..1], &[], Strategy::MergeContent).unwrap(), None);
        let union = union(&[], &rows, Strategy::MergeContent).unwrap().unwrap();
        assert_eq!((union.survivor, union.others), (rows[1].id, vec![rows[0].id]));
    }

    #[test]
    fn mw_045_no_content_is_carried_from_one_user_to_another() {
        let rows = [row(0.5, 1, Some("alice")), row(0.9, 2, Some("bob"))];
        assert!(union(&rows[..1], &rows[1..], Strategy::MergeContent).is_err());
        assert!(union(&rows[..1], &rows[1..], Strategy::KeepCanonical).is_ok());
    }
}

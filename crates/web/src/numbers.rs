//! What is counted over a whole vault, kept for a moment where counting takes long.
//!
//! In a vault of usual size everything is counted anew for each page. In a large one that takes
//! longer than a page may, so what was counted last is shown for a minute, and counted again beside.
//! A page waits a moment for a count at most; when there is none by then it comes without numbers
//! and asks for them again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use yore_domain::grant::Verb;
use yore_domain::hold::{HoldReason, HoldState};
use yore_domain::query::{Filter, PageRequest};
use yore_domain::{Error, Result, VaultId};
use yore_engine::{Call, Census, Engine, Tally, Upkeep};

/// Up to so many memories and messages, counting is not worth remembering.
const SMALL: u64 = 20_000;
/// How long what was counted is shown as it is.
const FRESH: Duration = Duration::from_secs(60);
/// After this it is counted anew before anything is shown.
const OLD: Duration = Duration::from_secs(900);
/// Up to so many memories and conversations a page waits for the count whatever it takes.
const FEW: usize = 200;
/// How many memories of each concern are named.
const NAMED: usize = 8;
/// How many waiting operations are looked at.
const HOLDS: usize = 1000;
/// How many vaults are remembered.
const VAULTS: usize = 1000;

/// Everything that was counted.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    pub(crate) census: Census,
    pub(crate) upkeep: Upkeep,
    pub(crate) tally: Vec<Tally>,
    /// How many of what waits speak against something known.
    pub(crate) contradicted: usize,
}

#[derive(Debug)]
struct Counted {
    numbers: Arc<Numbers>,
    at: Instant,
    again: bool,
}

/// The numbers of the vaults whose pages were looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Book(Arc<Shelves>);

#[derive(Debug, Default)]
struct Shelves {
    counted: Mutex<HashMap<VaultId, Counted>>,
    /// Who counts a vault: one at a time, so that whoever comes meanwhile finds it counted.
    turns: Mutex<HashMap<VaultId, Arc<tokio::sync::Mutex<()>>>>,
}

impl Book {
    /// Returns the numbers of the caller's vault, or nothing while they are still being counted.
    /// Only who may count gets what was counted.
    pub(crate) async fn numbers(
        &self,
        engine: &Engine,
        call: &Call,
        patience: Duration,
    ) -> Result<Option<Arc<Numbers>>> {
        engine.demand(call, "census", Verb::Admin).await?;
        let vault = engine.identify(call, Verb::Admin).await?.vault();
        if let Some((numbers, again)) = self.kept(vault) {
            if again {
                tokio::spawn(self.clone().count_on(engine.clone(), call.clone(), vault));
            }
            return Ok(Some(numbers));
        }
        // It is counted to the end even when nobody waits for it any more.
        let counting = tokio::spawn(self.clone().count_on(engine.clone(), call.clone(), vault));
        if let Ok(counted) = tokio::time::timeout(patience, counting).await {
            return counted.map_err(Error::internal)?.map(Some);
        }
        // On a busy machine it takes long to count little, and yet it is not worth a page in pieces.
        match is_small(engine, call).await? {
            true => self.count(engine, call, vault).await.map(Some),
            false => Ok(None),
        }
    }

    /// Counts, and says why when that failed.
    async fn count_on(self, engine: Engine, call: Call, vault: VaultId) -> Result<Arc<Numbers>> {
        let counted = self.count(&engine, &call, vault).await;
        if let Err(error) = &counted {
            tracing::warn!(code = error.code(), "a vault could not be counted");
            if let Some(counted) = self.0.counted.lock().get_mut(&vault) {
                counted.again = false;
            }
        }
        counted
    }

    fn turn(&self, vault: VaultId) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.0.turns.lock();
        if turns.len() >= VAULTS {
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        }
        Arc::clone(turns.entry(vault).or_default())
    }

    /// What was counted, and whether it is to be counted again.
    fn kept(&self, vault: VaultId) -> Option<(Arc<Numbers>, bool)> {
        let mut book = self.0.counted.lock();
        let counted = book.get_mut(&vault)?;
        let age = counted.at.elapsed();
        let Census { memories, messages, .. } = counted.numbers.census;
        if memories + messages <= SMALL || age > OLD {
            return None;
        }
        let again = age > FRESH && !counted.again;
        counted.again |= again;
        Some((Arc::clone(&counted.numbers), again))
    }

    /// Whether a vault was counted a moment ago.
    fn is_fresh(&self, vault: VaultId) -> bool {
        self.0.counted.lock().get(&vault).is_some_and(|counted| counted.at.elapsed() < FRESH)
    }

    async fn count(&self, engine: &Engine, call: &Call, vault: VaultId) -> Result<Arc<Numbers>> {
        let turn = self.turn(vault);
        let _turn = turn.lock().await;
        if self.is_fresh(vault)
            && let Some((numbers, _)) = self.kept(vault)
        {
            return Ok(numbers);
        }
        let census = engine.census(call).await?;
        let upkeep = engine.upkeep(call, NAMED).await?;
        let tally = engine.tally(call).await?;
        let holds = engine.holds(call, HoldState::Pending, HOLDS).await?;
        let against = |reason: &HoldReason| matches!(reason, HoldReason::Contradiction(_));
        let contradicted = holds.iter().filter(|hold| against(&hold.reason)).count();
        let numbers = Arc::new(Numbers { census, upkeep, tally, contradicted });
        let counted = Counted { numbers: Arc::clone(&numbers), at: Instant::now(), again: false };
        let mut book = self.0.counted.lock();
        if book.len() >= VAULTS {
            book.clear();
        }
        book.insert(vault, counted);
        Ok(numbers)
    }
}

/// Whether there are few memories and few conversations in a vault.
async fn is_small(engine: &Engine, call: &Call) -> Result<bool> {
    let beyond = || PageRequest { limit: 1, offset: FEW, ..PageRequest::default() };
    if !engine.list(call, Filter::default(), beyond()).await?.items.is_empty() {
        return Ok(false);
    }
    Ok(engine.conversations(call, Filter::default(), beyond()).await?.items.is_empty())
}

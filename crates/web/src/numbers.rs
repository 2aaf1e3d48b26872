//! What is counted over a whole vault, kept for a moment where counting takes long.
//!
//! In a vault of usual size everything is counted anew for each page. In a large one that takes
//! longer than a page may, so what was counted last is shown for a minute, and counted again beside.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use yore_domain::grant::Verb;
use yore_domain::hold::{HoldReason, HoldState};
use yore_domain::{Result, VaultId};
use yore_engine::{Call, Census, Engine, Tally, Upkeep};

/// Up to so many memories and messages, counting is not worth remembering.
const SMALL: u64 = 20_000;
/// How long what was counted is shown as it is.
const FRESH: Duration = Duration::from_secs(60);
/// After this it is counted anew before anything is shown.
const OLD: Duration = Duration::from_secs(900);
/// How many memories of each concern are named.
const NAMED: usize = 8;
/// How many waiting operations are looked at.
const HOLDS: usize = 1000;
/// How many vaults are remembered.
const VAULTS: usize = 1000;

/// Everything that was counted.
#[derive(Debug)]
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
pub(crate) struct Book(Arc<Mutex<HashMap<VaultId, Counted>>>);

impl Book {
    /// Returns the numbers of the caller's vault. Only who may count gets what was counted.
    pub(crate) async fn numbers(&self, engine: &Engine, call: &Call) -> Result<Arc<Numbers>> {
        engine.demand(call, "census", Verb::Admin).await?;
        let vault = engine.identify(call, Verb::Admin).await?.vault();
        if let Some((numbers, again)) = self.kept(vault) {
            if again {
                let (book, engine, call) = (self.clone(), engine.clone(), call.clone());
                tokio::spawn(async move {
                    if let Err(error) = book.count(&engine, &call, vault).await {
                        tracing::warn!(code = error.code(), "a vault could not be counted");
                        if let Some(counted) = book.0.lock().get_mut(&vault) {
                            counted.again = false;
                        }
                    }
                });
            }
            return Ok(numbers);
        }
        self.count(engine, call, vault).await
    }

    /// What was counted, and whether it is to be counted again.
    fn kept(&self, vault: VaultId) -> Option<(Arc<Numbers>, bool)> {
        let mut book = self.0.lock();
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

    async fn count(&self, engine: &Engine, call: &Call, vault: VaultId) -> Result<Arc<Numbers>> {
        let census = engine.census(call).await?;
        let upkeep = engine.upkeep(call, NAMED).await?;
        let tally = engine.tally(call).await?;
        let holds = engine.holds(call, HoldState::Pending, HOLDS).await?;
        let against = |reason: &HoldReason| matches!(reason, HoldReason::Contradiction(_));
        let contradicted = holds.iter().filter(|hold| against(&hold.reason)).count();
        let numbers = Arc::new(Numbers { census, upkeep, tally, contradicted });
        let counted = Counted { numbers: Arc::clone(&numbers), at: Instant::now(), again: false };
        let mut book = self.0.lock();
        if book.len() >= VAULTS {
            book.clear();
        }
        book.insert(vault, counted);
        Ok(numbers)
    }
}

//! The rhythm of short-term memory: every so often, at once when a window fills, and once more in
//! the end.
//!
//! Nothing of this must survive: what is left to do is read from the vault.

use std::collections::BTreeMap;
use std::time::Duration;

use yore_domain::{Result, Span, Timestamp, VaultId};

use super::{Left, Work};
use crate::engine::Engine;
use crate::ops::consolidate::{Fate, Window};

/// The shortest rest between two looks at the clock.
const LEAST_REST: Duration = Duration::from_millis(20);

/// What a pass is called among servers.
const PASS: &str = "pass";
/// The seconds of a day.
const DAY: f64 = 86_400.0;

/// Where a vault stands.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// When the last pass began.
    passed: Option<Timestamp>,
    /// Whether there may be short-term memory.
    waits: bool,
    /// Whether a window is full that was not.
    full: bool,
    /// What each window holds, as far as it is known.
    windows: BTreeMap<Window, usize>,
}

impl Pace {
    fn is_due(&self, now: Timestamp, every: Span) -> bool {
        self.full || self.passed.is_none_or(|passed| now >= passed.plus(every))
    }
}

impl Work {
    /// Says that something came into a window of short-term memory.
    pub(crate) fn pushed(&self, vault: VaultId, window: Window, bound: usize) {
        let mut paces = self.paces.lock();
        let pace = paces.entry(vault).or_default();
        let held = pace.windows.entry(window).or_default();
        *held += 1;
        pace.full |= *held == bound;
        pace.waits = true;
    }

    /// The vaults whose short-term memory is to be looked at now.
    pub(super) fn due(&self, now: Timestamp, every: Span) -> Vec<VaultId> {
        if every == Span::ZERO {
            return Vec::new();
        }
        let paces = self.paces.lock();
        let due = paces.iter().filter(|(_, pace)| pace.waits && pace.is_due(now, every));
        due.map(|(vault, _)| *vault).collect()
    }

    /// For how long none is.
    pub(super) fn rest(&self, now: Timestamp, every: Span) -> Option<Duration> {
        if every == Span::ZERO {
            return None;
        }
        let paces = self.paces.lock();
        let next = paces.values().filter(|pace| pace.waits).map(|pace| match pace.passed {
            Some(passed) if !pace.full => passed.plus(every).micros() - now.micros(),
            Some(_) | None => 0,
        });
        let micros = u64::try_from(next.min()?).unwrap_or(0);
        Some(Duration::from_micros(micros).max(LEAST_REST))
    }

    /// Whether a pass is to be made now; if so, it counts as begun.
    fn begins(&self, vault: VaultId, now: Timestamp, every: Span) -> bool {
        let mut paces = self.paces.lock();
        let pace = paces.entry(vault).or_default();
        let due = pace.is_due(now, every);
        if due {
            (pace.passed, pace.full) = (Some(now), false);
            pace.windows.clear();
        } else {
            // Whoever touched the vault may have left something there.
            pace.waits = true;
        }
        due
    }

    /// Notes what a pass left in the windows, besides what came meanwhile.
    fn left(&self, vault: VaultId, left: BTreeMap<Window, usize>) {
        let mut paces = self.paces.lock();
        let pace = paces.entry(vault).or_default();
        pace.waits = !left.is_empty() || !pace.windows.is_empty();
        for (window, held) in left {
            *pace.windows.entry(window).or_default() += held;
        }
    }

    fn waiting(&self) -> Vec<VaultId> {
        let paces = self.paces.lock();
        paces.iter().filter(|(_, pace)| pace.waits).map(|(vault, _)| *vault).collect()
    }
}

impl Engine {
    /// Makes a pass over short-term memory if it is time.
    pub(super) async fn consolidate_when_due(&self, vault: VaultId) -> Result<Left> {
        let every = self.settings().consolidation.every;
        if every == Span::ZERO || !self.0.work.begins(vault, self.now(), every) {
            return Ok(Left::Nothing);
        }
        // Of several servers one makes the pass, and the others let the time go by.
        if !self.takes(vault, PASS, Duration::from_secs_f64(every.as_days() * DAY)).await? {
            return Ok(Left::Nothing);
        }
        self.consolidate_now(vault).await
    }

    async fn consolidate_now(&self, vault: VaultId) -> Result<Left> {
        let done = self.consolidate_all(vault).await?;
        self.0.work.left(vault, done.left());
        let moved = [Fate::Promote, Fate::Merge, Fate::Evict].iter().any(|f| done.count(*f) > 0);
        Ok(if moved { Left::More } else { Left::Nothing })
    }

    /// Makes the last pass before the work stops.
    pub(super) async fn consolidate_at_last(&self) {
        if self.settings().consolidation.every == Span::ZERO {
            return;
        }
        for vault in self.0.work.waiting() {
            if let Err(error) = self.consolidate_now(vault).await {
                tracing::error!(%vault, %error, "the last look at short-term memory failed");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
    const EVERY: Span = Span::seconds(60);

    fn window(agent: &str) -> Window {
        Window { agent: Some(agent.to_owned()), user: None }
    }

    #[test]
    fn mw_102_a_push_that_fills_a_window_makes_it_due_once() {
        let (work, vault) = (Work::default(), VaultId::random());
        assert!(work.begins(vault, NOW, EVERY), "the first look is at once");
        for _ in 0..2 {
            work.pushed(vault, window("a"), 3);
            work.pushed(vault, window("b"), 3);
        }
        assert!(work.due(NOW, EVERY).is_empty(), "no window is full");
        work.pushed(vault, window("a"), 3);
        assert_eq!(work.due(NOW, EVERY), [vault]);
        assert!(work.begins(vault, NOW, EVERY));
        work.left(vault, BTreeMap::from([(window("a"), 3)]));
        work.pushed(vault, window("a"), 3);
        assert!(work.due(NOW, EVERY).is_empty(), "it was full already");
        assert_eq!(work.due(NOW.plus(EVERY), EVERY), [vault], "the usual time");
    }

    #[test]
    fn mw_102_the_rest_ends_when_the_next_pass_is_due() {
        let (work, vault) = (Work::default(), VaultId::random());
        assert_eq!(work.rest(NOW, EVERY), None, "nothing waits");
        work.pushed(vault, window("a"), 100);
        assert!(work.begins(vault, NOW, EVERY));
        work.left(vault, BTreeMap::from([(window("a"), 1)]));
        assert_eq!(work.rest(NOW, EVERY), Some(Duration::from_secs(60)));
        let later = NOW.plus(Span::seconds(59));
        assert_eq!(work.rest(later, EVERY), Some(Duration::from_secs(1)));
        assert_eq!(work.rest(NOW.plus(EVERY), EVERY), Some(LEAST_REST));
        assert_eq!(work.rest(NOW, Span::ZERO), None, "switched off");
        assert!(work.begins(vault, NOW.plus(EVERY), EVERY));
        work.left(vault, BTreeMap::new());
        assert_eq!(work.rest(NOW, EVERY), None, "nothing is left");
    }
}

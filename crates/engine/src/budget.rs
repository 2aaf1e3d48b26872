//! How much a caller may do in a minute, and how many messages it may send in an hour. Owners are not counted; agents and strangers are.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;
use yore_domain::audit::Actor;
use yore_domain::grant::Verb;
use yore_domain::{Error, Result, Timestamp, VaultId};
use yore_policy::{Need, Permit};
use yore_store::Store;

use crate::engine::Settings;

/// Callers whose buckets are kept; full ones are dropped first.
const CALLERS: usize = 10_000;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Meter {
    Reads,
    Writes,
    Recalls,
    Messages,
}

impl Meter {
    /// In how many seconds a bucket fills.
    const fn seconds(self) -> f64 {
        match self {
            Self::Reads | Self::Writes | Self::Recalls => 60.0,
            Self::Messages => 3600.0,
        }
    }
}

/// An agent has one bucket, however many grants it holds.
type Key = (VaultId, Option<String>, Meter);

/// The buckets of all callers.
#[derive(Default)]
pub(crate) struct Budgets(Mutex<HashMap<Key, Bucket>>);

#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: Timestamp,
}

impl Budgets {
    /// Takes one from each bucket the operation draws on, or says when to come back. What this
    /// process would allow is asked of the store, too, which counts for all servers together.
    pub(crate) async fn spend(
        &self,
        store: &dyn Store,
        settings: &Settings,
        permit: &Permit,
        need: Need,
        now: Timestamp,
    ) -> Result<()> {
        let agent = match permit.actor() {
            Actor::Agent { agent, .. } => Some(agent),
            Actor::Anonymous => None,
            Actor::Owner | Actor::Service { .. } | Actor::System { .. } | Actor::Unknown => {
                return Ok(());
            }
        };
        let reads = [Verb::Read, Verb::Export, Verb::Audit];
        let only_reads = need.verbs.iter().all(|verb| reads.contains(&verb));
        let (meter, most) = if only_reads {
            (Meter::Reads, settings.reads_per_minute)
        } else {
            (Meter::Writes, settings.writes_per_minute)
        };
        let mut drawn = vec![(meter, most)];
        if matches!(need.operation, "recall" | "context" | "search") {
            drawn.push((Meter::Recalls, settings.recalls_per_minute));
        }
        for (meter, most) in drawn {
            let Some(most) = most else { continue };
            self.take((permit.vault(), agent.clone(), meter), Some(most), now)?;
            let bucket = format!("{meter:?} {}", agent.as_deref().unwrap_or_default());
            if !store.draw(permit, &bucket, most, now).await? {
                let wait = meter.seconds() / f64::from(most.max(1));
                return Err(Error::RateLimited { retry_after: Duration::from_secs_f64(wait) });
            }
        }
        Ok(())
    }

    /// Whether a sender may send another message; says when to come back if not.
    pub(crate) fn may_send(
        &self,
        settings: &Settings,
        vault: VaultId,
        sender: &str,
        now: Timestamp,
    ) -> Result<()> {
        let key = (vault, Some(sender.to_owned()), Meter::Messages);
        self.draw(key, settings.messages_per_hour, now, 0.0)
    }

    /// Counts a message that was taken in.
    pub(crate) fn sent(&self, settings: &Settings, vault: VaultId, sender: &str, now: Timestamp) {
        let key = (vault, Some(sender.to_owned()), Meter::Messages);
        // It was asked before; of two that came at once both are taken.
        let _ = self.take(key, settings.messages_per_hour, now);
    }

    fn take(&self, key: Key, most: Option<u32>, now: Timestamp) -> Result<()> {
        self.draw(key, most, now, 1.0)
    }

    fn draw(&self, key: Key, most: Option<u32>, now: Timestamp, drawn: f64) -> Result<()> {
        let Some(most) = most.map(f64::from) else { return Ok(()) };
        let period = key.2.seconds();
        let mut buckets = self.0.lock();
        if buckets.len() >= CALLERS {
            buckets
                .retain(|(_, _, meter), bucket| bucket.refilled(most, meter.seconds(), now) < most);
        }
        let bucket = buckets.entry(key).or_insert(Bucket { left: most, at: now });
        let left = bucket.refilled(most, period, now);
        if left < 1.0 {
            let wait = if most > 0.0 { (1.0 - left) * period / most } else { period };
            return Err(Error::RateLimited { retry_after: Duration::from_secs_f64(wait) });
        }
        *bucket = Bucket { left: left - drawn, at: now };
        Ok(())
    }
}

impl Bucket {
    fn refilled(&self, most: f64, period: f64, now: Timestamp) -> f64 {
        let seconds = self.at.days_until(now) * 86_400.0;
        (self.left + seconds * most / period).min(most)
    }
}

impl fmt::Debug for Budgets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budgets").field("callers", &self.0.lock().len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use yore_domain::Span;

    use super::*;

    #[test]
    fn a_bucket_empties_and_fills_again() {
        let (budgets, now) = (Budgets::default(), Timestamp::from_millis(0));
        let key = (VaultId::CATALOG, None, Meter::Reads);
        let take = |now| budgets.take(key.clone(), Some(3), now);
        for _ in 0..3 {
            assert!(take(now).is_ok());
        }
        let Err(Error::RateLimited { retry_after }) = take(now) else { panic!("not limited") };
        assert_eq!(retry_after, Duration::from_secs(20));
        assert!(take(now.plus(Span::seconds(19))).is_err());
        assert!(take(now.plus(Span::seconds(20))).is_ok());
        assert!(take(now.plus(Span::seconds(20))).is_err());
        let other = (VaultId::CATALOG, None, Meter::Writes);
        assert!(budgets.take(other, Some(1), now).is_ok(), "another bucket");
        assert!(budgets.take(key.clone(), None, now).is_ok(), "no limit");
    }
}

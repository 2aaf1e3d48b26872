//! Leaves a store alone that keeps failing, and tries it again after a while.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How much a store may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Failures in a row after which it is left alone.
    pub failures: u32,
    /// For how long, the first time; each further time twice as long.
    pub rest: Duration,
    /// For how long at most.
    pub longest: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { failures: 5, rest: Duration::from_secs(1), longest: Duration::from_secs(60) }
    }
}

/// A circuit breaker. Closed lets everything through; open lets nothing through until its rest is
/// over; then one request is let through to try, and decides.
#[derive(Debug)]
pub struct Breaker {
    patience: Patience,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Closed { failures: u32 },
    Open { until: Instant, rest: Duration },
    Trying { since: Instant, rest: Duration },
}

impl Breaker {
    /// A closed one.
    #[must_use]
    pub fn new(patience: Patience) -> Self {
        Self { patience, state: Mutex::new(State::Closed { failures: 0 }) }
    }

    /// Whether a request may be made now. Whoever is let through must say how it went.
    pub fn admits(&self, now: Instant) -> bool {
        let mut state = self.state.lock();
        match *state {
            State::Closed { .. } => true,
            State::Open { until, rest } if now >= until => {
                *state = State::Trying { since: now, rest };
                true
            }
            // A trial that was dropped before it ended must not close the door for ever.
            State::Trying { since, rest } if now.duration_since(since) >= self.patience.longest => {
                *state = State::Trying { since: now, rest };
                true
            }
            State::Open { .. } | State::Trying { .. } => false,
        }
    }

    /// Whether the store is being left alone.
    #[must_use]
    pub fn is_open(&self) -> bool {
        match *self.state.lock() {
            State::Closed { .. } => false,
            State::Open { .. } | State::Trying { .. } => true,
        }
    }

    /// A request went well.
    pub fn succeeded(&self) {
        *self.state.lock() = State::Closed { failures: 0 };
    }

    /// A request failed.
    pub fn failed(&self, now: Instant) {
        let mut state = self.state.lock();
        *state = match *state {
            State::Closed { failures } if failures + 1 < self.patience.failures => {
                State::Closed { failures: failures + 1 }
            }
            State::Closed { .. } => {
                State::Open { until: now + self.patience.rest, rest: self.patience.rest }
            }
            State::Trying { rest, .. } => {
                let rest = (rest * 2).min(self.patience.longest);
                State::Open { until: now + rest, rest }
            }
            // Requests that were under way when it opened fail too; they tell nothing new.
            open @ State::Open { .. } => open,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_after_failures_in_a_row_tries_once_and_doubles_its_rest() {
        let patience =
            Patience { failures: 3, rest: Duration::from_secs(1), longest: Duration::from_secs(3) };
        let breaker = Breaker::new(patience);
        let start = Instant::now();
        let at = |millis: u64| start + Duration::from_millis(millis);
        breaker.failed(start);
        breaker.failed(start);
        breaker.succeeded();
        breaker.failed(start);
        breaker.failed(start);
        assert!(breaker.admits(start) && !breaker.is_open(), "not three in a row");
        breaker.failed(start);
        assert!(!breaker.admits(at(999)));
        assert!(breaker.admits(at(1000)), "one may try");
        assert!(!breaker.admits(at(1000)), "and only one");
        breaker.failed(at(1000));
        assert!(!breaker.admits(at(2999)), "twice as long");
        assert!(breaker.admits(at(3000)));
        breaker.failed(at(3000));
        assert!(!breaker.admits(at(5999)) && breaker.admits(at(6000)), "three seconds at most");
        breaker.succeeded();
        assert!(breaker.admits(at(6000)) && !breaker.is_open());
    }

    #[test]
    fn a_trial_that_was_dropped_is_made_again() {
        let breaker = Breaker::new(Patience { failures: 1, ..Patience::default() });
        let start = Instant::now();
        breaker.failed(start);
        let later = start + Duration::from_secs(2);
        assert!(breaker.admits(later));
        assert!(!breaker.admits(later + Duration::from_secs(59)));
        assert!(breaker.admits(later + Duration::from_secs(60)));
    }
}

//! The machine's clock, made to run forwards only.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use yore_domain::Timestamp;
use yore_engine::Clock;

/// A jump back of less than this is not worth a line in the log.
const NOTABLE: i64 = 1_000_000;

/// The time of day. When the machine's clock is set back, it runs at half speed until the
/// machine has caught up, so that no two versions are ever dated in the wrong order.
#[derive(Debug, Default)]
pub struct SystemClock(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// What was said last, and when by a clock that nobody sets.
    last: Option<(i64, Instant)>,
    behind: bool,
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let machine = self.machine().micros();
        Timestamp::from_micros(self.0.lock().step(machine, Instant::now()))
    }

    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    fn machine(&self) -> Timestamp {
        let micros = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, micros);
        Timestamp::from_micros(micros)
    }
}

impl State {
    fn step(&mut self, machine: i64, tick: Instant) -> i64 {
        let Some((said, at)) = self.last else {
            self.last = Some((machine, tick));
            return machine;
        };
        let now = if machine >= said {
            self.behind = false;
            machine
        } else {
            if !self.behind && said - machine > NOTABLE {
                tracing::warn!(micros = said - machine, "the machine's clock was set back");
                self.behind = true;
            }
            said.saturating_add(micros(tick.saturating_duration_since(at)) / 2)
        };
        self.last = Some((now, tick));
        now
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_runs_backwards_and_catches_up() {
        let start = Instant::now();
        let mut state = State::default();
        let second = |n: i64| n * 1_000_000;
        let mut last = 0;
        // The machine is set back by 60 s after 10 s; 200 s later it has long caught up.
        for elapsed in 0..210 {
            let machine = second(1000 + elapsed - if elapsed >= 10 { 60 } else { 0 });
            let now = state.step(machine, start + Duration::from_secs(elapsed.unsigned_abs()));
            assert!(now >= last, "after {elapsed} s");
            last = now;
        }
        assert_eq!(last, second(1000 + 209 - 60));
    }

    #[test]
    fn the_clock_is_the_machines() {
        let clock = SystemClock::default();
        let (a, b) = (clock.now(), clock.now());
        assert!(a <= b && a.micros() > 1_700_000_000_000_000);
    }
}

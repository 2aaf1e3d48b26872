//! Clocks and what is made of their readings.

use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// Keeps this process, and what it starts from now on, on one core.
pub(crate) fn pin() -> Result<usize> {
    let allowed = sched_getaffinity(None)?;
    // The last one: the first takes most interrupts.
    let core = (0..CpuSet::MAX_CPU).rev().find(|core| allowed.is_set(*core)).context("no core")?;
    let mut one = CpuSet::new();
    one.set(core);
    sched_setaffinity(None, &one)?;
    Ok(core)
}

/// CPU time of all threads of this process.
pub(crate) fn cpu() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// What something took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    pub(crate) cpu: Duration,
    pub(crate) wall: Duration,
}

/// Starts both clocks; the returned function reads them.
pub(crate) fn start() -> impl Fn() -> Took {
    let (wall, before) = (Instant::now(), cpu());
    move || Took { cpu: cpu().saturating_sub(before), wall: wall.elapsed() }
}

/// Repeated readings of one thing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    cpu: Vec<f64>,
    wall: Vec<f64>,
}

impl Series {
    pub(crate) fn push(&mut self, took: Took) {
        self.cpu.push(took.cpu.as_secs_f64() * 1e3);
        self.wall.push(took.wall.as_secs_f64() * 1e3);
    }

    /// Takes readings of work that does not wait.
    pub(crate) fn of<T>(inputs: &[T], mut work: impl FnMut(&T)) -> Self {
        let mut series = Self::default();
        for input in inputs {
            let took = start();
            work(input);
            series.push(took());
        }
        series
    }

    /// Takes readings of work done one piece after the other.
    pub(crate) async fn of_each<T, F>(
        inputs: impl IntoIterator<Item = T>,
        mut work: impl FnMut(T) -> F,
    ) -> Result<Self>
    where
        F: Future<Output = Result<()>>,
    {
        let mut series = Self::default();
        for input in inputs {
            let took = start();
            work(input).await?;
            series.push(took());
        }
        Ok(series)
    }

    /// CPU milliseconds below which this share of the readings lies.
    pub(crate) fn cpu(&self, share: f64) -> f64 {
        percentile(&self.cpu, share)
    }

    /// Wall milliseconds below which this share of the readings lies.
    pub(crate) fn wall(&self, share: f64) -> f64 {
        percentile(&self.wall, share)
    }

    /// Everything that is worth keeping of it, in milliseconds.
    pub(crate) fn to_json(&self) -> Value {
        let side = |values: &[f64]| {
            json!({
                "p50": round(percentile(values, 0.5)),
                "p95": round(percentile(values, 0.95)),
                "p99": round(percentile(values, 0.99)),
                "mean": round(values.iter().sum::<f64>() / values.len().max(1) as f64),
            })
        };
        json!({ "count": self.cpu.len(), "cpu_ms": side(&self.cpu), "wall_ms": side(&self.wall) })
    }
}

/// Rounds to the microsecond of a millisecond figure.
pub(crate) fn round(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// The nearest rank; not a number when there are no readings.
fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_take_the_nearest_rank() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        for (share, expected) in [(0.5, 50.0), (0.95, 95.0), (0.99, 99.0), (1.0, 100.0)] {
            assert_eq!(percentile(&values, share), expected);
        }
        assert_eq!(percentile(&[7.0], 0.5), 7.0);
        assert!(percentile(&[], 0.5).is_nan());
    }

    #[test]
    fn work_costs_cpu_and_waiting_does_not() {
        let spin = || {
            let begin = cpu();
            while cpu().saturating_sub(begin) < Duration::from_millis(5) {}
        };
        let busy = Series::of(&[()], |()| spin());
        assert!(busy.cpu(0.5) >= 5.0);
        let read = start();
        std::thread::sleep(Duration::from_millis(20));
        assert!(read().wall >= Duration::from_millis(20));
    }
}

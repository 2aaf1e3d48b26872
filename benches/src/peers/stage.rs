//! A piece of work that is measured, as the driver of the peers measures it.

use std::future::Future;
use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};

use crate::meter::round;

/// What is asked for of a system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stage<'a> {
    /// The row of the table, where it is not the system's own.
    pub(crate) row: Option<&'a str>,
    pub(crate) cell: &'a str,
    pub(crate) clients: usize,
    pub(crate) time: Duration,
}

impl Stage<'_> {
    /// Does it for each number, shared out among clients, and says what that took.
    pub(crate) async fn run<F>(
        &self,
        numbers: std::ops::Range<usize>,
        cpu: impl Fn() -> Result<f64>,
        work: impl Fn(usize, usize) -> F + Clone + Send + 'static,
    ) -> Result<Done>
    where
        F: Future<Output = Result<()>> + Send,
    {
        let (before, begun) = (cpu()?, Instant::now());
        let until = begun + self.time;
        let shares: Vec<_> = (0..self.clients)
            .map(|client| {
                let mine: Vec<usize> = numbers.clone().skip(client).step_by(self.clients).collect();
                let work = work.clone();
                tokio::spawn(async move {
                    let mut walls = Vec::with_capacity(mine.len());
                    for number in mine {
                        if Instant::now() > until {
                            break;
                        }
                        let begun = Instant::now();
                        work(client, number).await?;
                        walls.push(begun.elapsed().as_secs_f64() * 1e3);
                    }
                    anyhow::Ok(walls)
                })
            })
            .collect();
        let mut walls = Vec::new();
        for share in shares {
            walls.extend(share.await??);
        }
        let (wall, cpu) = (begun.elapsed(), cpu()? - before);
        let count = walls.len().max(1) as f64;
        let line = json!({
            "row": self.row,
            "cell": self.cell,
            "clients": self.clients,
            "n": walls.len(),
            "asked": numbers.len(),
            "cpu_ms": round(cpu * 1e3 / count),
            "wall_ms": percentiles(walls.clone()),
            "per_second": round(walls.len() as f64 / wall.as_secs_f64()),
        });
        Ok(Done { line, before, count: walls.len() })
    }
}

/// A stage that is done.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) line: Value,
    /// CPU seconds when it began.
    pub(crate) before: f64,
    pub(crate) count: usize,
}

/// Prints one line for whoever collects them.
pub(crate) fn tell(line: &Value) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

fn percentiles(mut values: Vec<f64>) -> Value {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let rank = (share * values.len() as f64).ceil() as usize;
        values.get(rank.saturating_sub(1)).copied().map(round)
    };
    json!({ "p50": at(0.5), "p95": at(0.95), "p99": at(0.99) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_number_is_done_once_whoever_does_it() {
        let done = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let stage = Stage { row: None, cell: "add", clients: 3, time: Duration::from_secs(60) };
        let seen = done.clone();
        let work = move |_, number| {
            let seen = seen.clone();
            async move {
                seen.lock().expect("nobody panics with it").push(number);
                Ok(())
            }
        };
        let told = stage.run(5..12, || Ok(1.0), work).await.unwrap();
        let mut seen = done.lock().unwrap().clone();
        seen.sort_unstable();
        assert_eq!(seen, [5, 6, 7, 8, 9, 10, 11]);
        assert_eq!(
            (told.count, &told.line["n"], &told.line["cpu_ms"]),
            (7, &json!(7), &json!(0.0))
        );
    }
}

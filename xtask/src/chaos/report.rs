//! What was counted, as a table and as a document.

use std::time::Duration;

use serde_json::{Value, json};

use crate::machine::commit;

/// How many findings of a sort are printed.
const SHOWN: usize = 8;

/// How a scenario ended.
#[derive(Debug)]
pub(super) enum End {
    Ran(Outcome),
    /// It cannot be done here, for this reason.
    NotRun(String),
    /// It broke off.
    Failed(String),
}

/// What the checker found in the end.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) faults: usize,
    pub(super) acknowledged: usize,
    /// Facts that were begun and never acknowledged.
    pub(super) unanswered: usize,
    /// Whole answers that said to come again.
    pub(super) asked_again: usize,
    /// How often the confined client looked.
    pub(super) looks: usize,
    pub(super) lost: Vec<String>,
    pub(super) doubled: Vec<String>,
    pub(super) leaked: Vec<String>,
    pub(super) wrong: Vec<String>,
    /// How long each restart took, the shortest first.
    pub(super) restarts: Vec<Duration>,
}

impl Outcome {
    /// Adds what was found in another vault.
    pub(super) fn add(&mut self, other: Self) {
        self.faults += other.faults;
        self.acknowledged += other.acknowledged;
        self.unanswered += other.unanswered;
        self.asked_again += other.asked_again;
        self.looks += other.looks;
        self.lost.extend(other.lost);
        self.doubled.extend(other.doubled);
        self.leaked.extend(other.leaked);
        self.wrong.extend(other.wrong);
        self.restarts.extend(other.restarts);
        self.restarts.sort();
    }

    pub(super) fn is_good(&self) -> bool {
        [&self.lost, &self.doubled, &self.leaked, &self.wrong].iter().all(|found| found.is_empty())
    }

    /// The restart that half of the others were quicker than, and the slowest, in milliseconds.
    fn restart(&self) -> Option<(u128, u128)> {
        let middle = self.restarts.get(self.restarts.len() / 2)?;
        Some((middle.as_millis(), self.restarts.last()?.as_millis()))
    }
}

/// A scenario that was asked for.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) end: End,
    pub(super) took: Duration,
}

impl Line {
    fn result(&self) -> String {
        match &self.end {
            End::Ran(outcome) if outcome.is_good() => "passed".to_owned(),
            End::Ran(outcome) if outcome.wrong.is_empty() => "FAILED".to_owned(),
            End::Ran(outcome) => format!("FAILED, {} more things are wrong", outcome.wrong.len()),
            End::NotRun(reason) => format!("NOT RUN: {reason}"),
            End::Failed(reason) => format!("FAILED: {reason}"),
        }
    }

    /// What is told when it has ended.
    pub(super) fn told(&self) -> String {
        let mut told = format!("  {} after {:.1} s", self.result(), self.took.as_secs_f64());
        if let End::Ran(outcome) = &self.end {
            for (what, found) in [
                ("lost", &outcome.lost),
                ("doubled", &outcome.doubled),
                ("leaked", &outcome.leaked),
                ("wrong", &outcome.wrong),
            ] {
                for one in found.iter().take(SHOWN) {
                    told.push_str(&format!("\n  {what}: {one}"));
                }
                if found.len() > SHOWN {
                    told.push_str(&format!("\n  {what}: and {} more", found.len() - SHOWN));
                }
            }
        }
        told
    }
}

/// The scenarios in lines.
pub(super) fn table(lines: &[Line]) -> String {
    let mut table = format!(
        "{:<15} {:>6} {:>12} {:>10} {:>5} {:>7} {:>6} {:>16}  result",
        "scenario",
        "faults",
        "acknowledged",
        "unanswered",
        "lost",
        "doubled",
        "leaked",
        "restart p50/max",
    );
    for line in lines {
        let name = line.name;
        let figures = match &line.end {
            End::Ran(outcome) => {
                let Outcome { faults, acknowledged, unanswered, lost, doubled, leaked, .. } =
                    outcome;
                let restart = outcome.restart();
                let restart =
                    restart.map_or_else(|| "-".to_owned(), |(p50, max)| format!("{p50}/{max} ms"));
                format!(
                    "{faults:>6} {acknowledged:>12} {unanswered:>10} {:>5} {:>7} {:>6} {restart:>16}",
                    lost.len(),
                    doubled.len(),
                    leaked.len(),
                )
            }
            End::NotRun(_) | End::Failed(_) => format!("{:>68}", "-"),
        };
        table.push_str(&format!("\n{name:<15} {figures}  {}", line.result()));
    }
    table
}

/// How many passed and how many failed. What was not run did neither.
pub(super) fn count(lines: &[Line]) -> (usize, usize) {
    let passed = |line: &&Line| matches!(&line.end, End::Ran(outcome) if outcome.is_good());
    let not_run = |line: &&Line| matches!(line.end, End::NotRun(_));
    let passed = lines.iter().filter(passed).count();
    (passed, lines.len() - passed - lines.iter().filter(not_run).count())
}

/// The same as a document.
pub(super) fn document(lines: &[Line], seed: u64, full: bool) -> Value {
    let scenarios: Vec<Value> = lines.iter().map(entry).collect();
    json!({"commit": commit(), "seed": seed, "full": full, "scenarios": scenarios})
}

fn entry(line: &Line) -> Value {
    let mut entry = json!({
        "scenario": line.name, "result": line.result(), "seconds": line.took.as_secs_f64(),
    });
    if let End::Ran(outcome) = &line.end {
        let restart = outcome.restart();
        let found = json!({
            "faults": outcome.faults, "acknowledged": outcome.acknowledged,
            "unanswered": outcome.unanswered, "asked_again": outcome.asked_again,
            "looks": outcome.looks, "lost": outcome.lost, "doubled": outcome.doubled,
            "leaked": outcome.leaked, "wrong": outcome.wrong,
            "restarts": outcome.restarts.len(),
            "restart_p50_ms": restart.map(|(p50, _)| p50 as u64),
            "restart_max_ms": restart.map(|(_, max)| max as u64),
        });
        entry["found"] = found;
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(end: End) -> Line {
        Line { name: "kill", end, took: Duration::ZERO }
    }

    #[test]
    fn what_was_not_run_counts_for_neither_side() {
        let lost = Outcome { lost: vec!["a".to_owned()], ..Outcome::default() };
        let lines = [
            line(End::Ran(Outcome::default())),
            line(End::Ran(lost)),
            line(End::NotRun("no mounts".to_owned())),
            line(End::Failed("it does not start".to_owned())),
        ];
        assert_eq!(count(&lines), (1, 2));
        let table = table(&lines);
        assert_eq!(table.lines().count(), 5);
        assert!(table.contains("NOT RUN: no mounts") && table.contains("FAILED: it does not"));
    }

    #[test]
    fn restarts_are_told_by_their_middle_and_their_slowest() {
        let restarts = [10, 20, 90].map(Duration::from_millis).to_vec();
        let outcome = Outcome { restarts, ..Outcome::default() };
        assert_eq!(outcome.restart(), Some((20, 90)));
        assert_eq!(Outcome::default().restart(), None);
        let document = document(&[line(End::Ran(outcome))], 7, false);
        assert_eq!(document["scenarios"][0]["found"]["restart_max_ms"], 90);
    }
}

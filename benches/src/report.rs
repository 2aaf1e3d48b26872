//! The bars, and whether they hold.

use std::process::Command;

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::meter::round;

/// A bar and what was measured against it.
#[derive(Debug)]
struct Bar {
    what: String,
    /// Whether the measured value must not lie above the bar, or not below it.
    at_most: bool,
    bar: f64,
    found: Option<f64>,
    unit: &'static str,
}

impl Bar {
    fn holds(&self) -> Option<bool> {
        self.found.map(|found| if self.at_most { found <= self.bar } else { found >= self.bar })
    }

    fn verdict(&self) -> &'static str {
        match self.holds() {
            Some(true) => "holds",
            Some(false) => "DOES NOT HOLD",
            None => "not measured",
        }
    }
}

/// Everything that was measured.
#[derive(Debug, Default)]
pub(crate) struct Report {
    bars: Vec<Bar>,
    figures: Map<String, Value>,
}

impl Report {
    /// Adds a bar that must not be passed.
    pub(crate) fn at_most(
        &mut self,
        what: impl Into<String>,
        unit: &'static str,
        bar: f64,
        found: Option<f64>,
    ) {
        self.bars.push(Bar { what: what.into(), at_most: true, bar, found, unit });
    }

    /// Adds a bar that must be reached.
    pub(crate) fn at_least(
        &mut self,
        what: impl Into<String>,
        unit: &'static str,
        bar: f64,
        found: Option<f64>,
    ) {
        self.bars.push(Bar { what: what.into(), at_most: false, bar, found, unit });
    }

    /// Adds figures under a name, and prints them.
    pub(crate) fn figure(&mut self, name: impl Into<String>, value: Value) {
        let name = name.into();
        println!("{name}: {value}");
        self.keep(name, value);
    }

    /// Adds figures under a name that were printed otherwise.
    pub(crate) fn keep(&mut self, name: impl Into<String>, value: Value) {
        self.figures.insert(name.into(), value);
    }

    /// Returns the table of bars.
    pub(crate) fn table(&self) -> String {
        let mut text = format!("\n{:<58} {:>12} {:>12}  verdict\n", "bar", "limit", "measured");
        for bar in &self.bars {
            let sign = if bar.at_most { "≤" } else { "≥" };
            let found = bar.found.map_or("–".to_owned(), |found| format!("{found:.3}"));
            let limit = format!("{sign} {:.3}", bar.bar);
            let what = format!("{} [{}]", bar.what, bar.unit);
            text.push_str(&format!("{what:<58} {limit:>12} {found:>12}  {}\n", bar.verdict()));
        }
        text
    }

    /// Returns everything as one document.
    pub(crate) fn to_json(&self, commit: &str) -> Value {
        let bars: Vec<Value> = self
            .bars
            .iter()
            .map(|bar| {
                json!({
                    "what": bar.what,
                    "unit": bar.unit,
                    "bar": round(bar.bar),
                    "rule": if bar.at_most { "at most" } else { "at least" },
                    "measured": bar.found.map(round),
                    "verdict": bar.verdict(),
                })
            })
            .collect();
        json!({
            "commit": commit,
            "machine": machine(),
            "bars": bars,
            "figures": self.figures,
        })
    }
}

fn machine() -> Value {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let rustc = Command::new("rustc").arg("-V").output().ok();
    let rustc = rustc.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned());
    json!({
        "cpu": field(&read("/proc/cpuinfo"), "model name"),
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "memory": field(&read("/proc/meminfo"), "MemTotal"),
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
        "load": read("/proc/loadavg").trim(),
        "rustc": rustc,
        "yore": env!("CARGO_PKG_VERSION"),
        "sqlite": rusqlite::version(),
    })
}

/// Writes a document for people to read.
pub(crate) fn write(path: &std::path::Path, document: &Value) -> Result<()> {
    Ok(std::fs::write(path, format!("{document:#}\n"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_does_not_hold() {
        let mut report = Report::default();
        report.at_most("write", "ms", 1.0, Some(0.9));
        report.at_most("recall", "ms", 0.6, Some(0.7));
        report.at_least("nearest", "share", 0.99, Some(0.99));
        report.at_most("million", "ms", 10.0, None);
        let verdicts: Vec<_> = report.bars.iter().map(Bar::verdict).collect();
        assert_eq!(verdicts, ["holds", "DOES NOT HOLD", "holds", "not measured"]);
        let json = report.to_json("abc");
        assert_eq!(json["bars"][3]["measured"], Value::Null);
        assert_eq!(report.table().lines().filter(|line| line.contains("holds")).count(), 2);
    }
}

//! One system in a process of its own, listened to until it is done or its time is over.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

/// The cells that every system has, by name and whether several clients ask.
pub(crate) const CELLS: [(&str, bool); 4] =
    [("add", false), ("add", true), ("search", false), ("search", true)];

/// Runs a program that prints a JSON object a line, for at most this long.
pub(crate) fn listen(
    command: &mut Command,
    time: Duration,
) -> Result<(Vec<Value>, Option<String>)> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = Guard(child.with_context(|| format!("cannot run {command:?}"))?);
    let output = child.0.stdout.take().context("the output was asked for")?;
    let mut errors = child.0.stderr.take().context("the errors were asked for")?;
    let complaints = std::thread::spawn(move || {
        let mut text = Vec::new();
        drop(errors.read_to_end(&mut text)); // what there was until it broke off
        String::from_utf8_lossy(&text).into_owned()
    });
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    let until = Instant::now() + time;
    let mut lines = Vec::new();
    loop {
        match receive.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(line) => lines.extend(serde_json::from_str::<Value>(&line)),
            Err(RecvTimeoutError::Timeout) => {
                let reason = format!("stopped after {} s", time.as_secs());
                return Ok((lines, Some(reason)));
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = child.0.wait()?;
    if status.success() {
        return Ok((lines, None));
    }
    let said = complaints.join().unwrap_or_default();
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no reason given");
    Ok((lines, Some(format!("ended with {status}: {}", shortened(last)))))
}

/// A process that is ended with its value.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The first part of what a program complains of, without the names of our folders.
fn shortened(text: &str) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let text = text.replace(&*here.to_string_lossy(), ".");
    text.chars().take(200).collect()
}

/// What one system of one size said, as a row: every cell is there, with a figure or a reason.
pub(crate) fn row(
    system: &str,
    size: usize,
    clients: usize,
    lines: &[Value],
    end: Option<&str>,
) -> Value {
    let mine = |line: &&Value| line["row"].as_str().unwrap_or(system) == system;
    let stopped = lines.iter().find_map(|line| match line.get("cell") {
        None => line["error"].as_str(),
        Some(_) => None,
    });
    let mut cells = Map::new();
    for (name, many) in CELLS {
        let asked = if many { clients } else { 1 };
        let said = lines.iter().filter(mine).find(|line| {
            line["cell"] == name && line["clients"].as_u64() == u64::try_from(asked).ok()
        });
        let reason = stopped.or(end).unwrap_or("not reached");
        let cell = said.cloned().unwrap_or_else(|| json!({ "n": 0, "error": reason }));
        let mut cell = cell.as_object().cloned().unwrap_or_default();
        for known in ["row", "cell", "clients"] {
            cell.remove(known);
        }
        let name = if many { format!("{name}_{clients}") } else { format!("{name}_1") };
        cells.insert(name, cell.into());
    }
    let last = |key: &str| lines.iter().rev().find_map(|line| line.get(key)).cloned();
    let most = |key: &str| lines.iter().filter_map(|line| line.get(key)?.as_u64()).max();
    let acknowledged = acknowledged(system, lines);
    json!({
        "system": system, "size": size, "cells": cells,
        "filled": last("filled"), "way": last("way"), "settled": last("settled"),
        "acknowledged": acknowledged, "kept": last("kept"),
        "own_embedding_cpu_ms": last("own_embedding_cpu_ms"),
        "wrong": last("wrong"), "empty": last("empty"),
        "notes": lines.iter().filter_map(|line| line.get("note")).collect::<Vec<_>>(),
        "peak_kib": most("peak_kib"), "disk_bytes": most("disk"),
        "versions": last("versions"), "end": end,
    })
}

/// How many memories were acknowledged, the first ones and those that were measured.
fn acknowledged(system: &str, lines: &[Value]) -> u64 {
    let own = |line: &&Value| line["row"].as_str().unwrap_or(system) == system;
    let filled = lines.iter().find_map(|line| line["filled"].as_u64()).unwrap_or(0);
    let adds = lines.iter().filter(own).filter(|line| line["cell"] == "add");
    filled + adds.filter_map(|line| line["n"].as_u64()).sum::<u64>()
}

/// How often a program asks the system to put something on the disk for each of so many adds, or
/// why that is not known.
pub(crate) fn syncs(command: &Command, log: &Path, time: Duration) -> Result<Value> {
    let mut traced = Command::new("strace");
    traced.args([
        "-f",
        "-qq",
        "-e",
        "trace=fsync,fdatasync,sync_file_range,write",
        "-s",
        "64",
        "-o",
    ]);
    traced.arg(log).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            traced.env(name, value);
        }
    }
    let (lines, end) = match listen(&mut traced, time) {
        Ok(said) => said,
        Err(_) => return Ok(json!({ "error": "not measured: strace is not installed" })),
    };
    let Some(count) = lines.iter().find_map(|line| line["done"].as_u64()) else {
        let reason = end.unwrap_or_else(|| "it did not add".to_owned());
        return Ok(json!({ "error": format!("not measured: {reason}") }));
    };
    let text = std::fs::read_to_string(log)?;
    // Between the two lines that the program prints around its adds.
    let between = text.lines().skip_while(|line| !says(line, "begun"));
    let between = between.take_while(|line| !says(line, "done"));
    let calls = between.filter(|line| line.contains("fsync(") || line.contains("fdatasync("));
    let each = calls.filter(|line| !line.contains("resumed")).count() as f64 / count as f64;
    Ok(json!({ "adds": count, "syncs_per_add": each }))
}

/// Whether a line of the trace is the program saying this.
fn says(line: &str, word: &str) -> bool {
    line.contains("write(1") && line.contains(&format!("\\\"{word}\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_dropped() {
        let lines = [
            json!({ "filled": 600 }),
            json!({ "cell": "add", "clients": 1, "n": 200, "cpu_ms": 2.0 }),
            json!({ "cell": "add", "clients": 8, "n": 150, "error": "50 of 200 failed: busy" }),
            json!({ "row": "other", "cell": "search", "clients": 1, "n": 9, "cpu_ms": 1.0 }),
            json!({ "kept": 940 }),
        ];
        let found = row("peer", 1000, 8, &lines, Some("stopped after 9 s"));
        assert_eq!(found["cells"]["add_1"]["cpu_ms"], 2.0);
        assert_eq!(found["cells"]["add_8"]["error"], "50 of 200 failed: busy");
        for cell in ["search_1", "search_8"] {
            assert_eq!(found["cells"][cell]["error"], "stopped after 9 s", "{cell}");
        }
        assert_eq!((&found["acknowledged"], &found["kept"]), (&json!(950), &json!(940)));
        let other = row("other", 1000, 8, &lines, None);
        assert_eq!(other["cells"]["search_1"]["cpu_ms"], 1.0);
        assert_eq!(other["cells"]["add_1"]["cpu_ms"], 2.0, "what names no row is of all of them");
        assert_eq!(other["cells"]["search_8"]["error"], "not reached");
    }

    #[test]
    fn a_program_that_hangs_is_ended_and_what_it_said_stays() {
        let mut command = Command::new("sh");
        command.args(["-c", r#"echo '{"filled": 3}'; exec sleep 60"#]);
        let begun = Instant::now();
        let (lines, end) = listen(&mut command, Duration::from_millis(300)).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(30));
        assert_eq!((lines, end.is_some()), (vec![json!({ "filled": 3 })], true));
        let mut command = Command::new("sh");
        command.args(["-c", "echo it broke >&2; exit 3"]);
        let (_, end) = listen(&mut command, Duration::from_secs(30)).unwrap();
        assert!(end.is_some_and(|end| end.ends_with("it broke")));
    }
}

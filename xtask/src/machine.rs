//! What something was measured on: the machine without its name, its load, and the commit.

use std::process::Command;

use serde_json::{Value, json};

use crate::workspace::{output, root};

/// Describes the machine as the measuring programs do.
pub(crate) fn machine() -> Value {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let rustc = output(Command::new("rustc").arg("-V")).ok().map(|text| text.trim().to_owned());
    json!({
        "cpu": field(&read("/proc/cpuinfo"), "model name"),
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "memory": field(&read("/proc/meminfo"), "MemTotal"),
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
        "load": read("/proc/loadavg").trim(),
        "rustc": rustc,
    })
}

/// The commit that is checked out, and whether something else than it lies there.
pub(crate) fn commit() -> String {
    let git = |arguments: &[&str]| {
        output(Command::new("git").current_dir(root()).args(arguments))
            .map(|text| text.trim().to_owned())
    };
    let mut commit = git(&["rev-parse", "HEAD"]).unwrap_or_else(|_| "none".to_owned());
    if !git(&["status", "--porcelain"]).unwrap_or_default().is_empty() {
        commit.push_str("-dirty");
    }
    commit
}

//! `cargo xtask fuzz`: the targets of `fuzz/` for as long as one wants, by cargo-fuzz.
//!
//! The tests run the same targets for a moment, without a fuzzer. Here coverage guides, and what
//! is found lies in `fuzz/artifacts`; it becomes a file of the corpus.

use std::fs;

use anyhow::{Result, bail, ensure};

use crate::workspace::{cargo, root, target_dir};

/// Arguments of `cargo xtask fuzz`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Seconds that each target runs.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Also the parsers of the protocols' crates; the engine is built with them.
    #[arg(long)]
    protocols: bool,
    /// Only these targets.
    target: Vec<String>,
}

/// Where samples of a target lie besides its own corpus.
const BESIDE: [(&str, &str); 16] = [
    ("omp", "omp"),
    ("chatgpt", "connectors/chatgpt"),
    ("claude", "connectors/claude"),
    ("claude_code", "connectors/claude-code"),
    ("codex", "connectors/codex"),
    ("copilot", "connectors/copilot"),
    ("cursor", "connectors/cursor"),
    ("gemini", "connectors/gemini"),
    ("grok", "connectors/grok"),
    ("letta", "connectors/letta"),
    ("lm_studio", "connectors/lm-studio"),
    ("mem0", "connectors/mem0"),
    ("notes", "connectors/memory-files"),
    ("ollama", "connectors/ollama"),
    ("open_webui", "connectors/open-webui"),
    ("perplexity", "connectors/perplexity"),
];

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let there =
        cargo().args(["fuzz", "--version"]).output().is_ok_and(|said| said.status.success());
    ensure!(there, "cargo-fuzz is not installed: cargo install cargo-fuzz");
    let all = targets(&fs::read_to_string(root().join("fuzz/Cargo.toml"))?);
    let wanted = |(name, protocols): &&(String, bool)| match arguments.target.is_empty() {
        true => !protocols || arguments.protocols,
        false => arguments.target.contains(name),
    };
    let chosen: Vec<&(String, bool)> = all.iter().filter(wanted).collect();
    ensure!(!chosen.is_empty(), "there is no such target; there are {all:?}");
    let grown = target_dir()?.join("fuzz-corpus");
    let mut broken = Vec::new();
    for (name, protocols) in chosen {
        let own = grown.join(name);
        fs::create_dir_all(&own)?;
        println!("== {name}, {} s", arguments.seconds);
        let mut command = cargo();
        // Without a nightly toolchain: coverage, and no sanitizer.
        command.env("RUSTC_BOOTSTRAP", "1");
        command.args(["fuzz", "run", "--sanitizer", "none"]);
        if *protocols {
            command.args(["--features", "protocols"]);
        }
        command.arg(name).arg(&own);
        let beside = BESIDE.iter().find(|(target, _)| target == name);
        let seeds = [
            Some(root().join("fuzz/corpus").join(name)),
            beside.map(|(_, place)| root().join("tests/vectors").join(place)),
        ];
        command.args(seeds.into_iter().flatten().filter(|place| place.exists()));
        command.arg("--").arg(format!("-max_total_time={}", arguments.seconds)).arg("-timeout=20");
        if !command.status()?.success() {
            broken.push(name.as_str());
        }
    }
    if !broken.is_empty() {
        bail!("targets that found something: {}; see fuzz/artifacts", broken.join(", "));
    }
    Ok(())
}

/// The binaries of the manifest, and whether they need the protocols.
fn targets(manifest: &str) -> Vec<(String, bool)> {
    manifest
        .split("[[bin]]")
        .skip(1)
        .filter_map(|one| {
            let name = one.lines().find_map(|line| line.strip_prefix("name = "))?;
            Some((name.trim_matches('"').to_owned(), one.contains("required-features")))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_found_and_every_folder_of_samples_is_there() {
        let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
        let all = targets(&manifest);
        assert!(all.len() > 20, "{all:?}");
        assert!(all.contains(&("json".to_owned(), false)));
        assert!(all.contains(&("envelope".to_owned(), true)));
        for (name, place) in BESIDE {
            assert!(all.iter().any(|(target, _)| target == name), "{name}");
            assert!(root().join("tests/vectors").join(place).is_dir(), "{place}");
        }
    }
}

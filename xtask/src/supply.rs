//! `cargo xtask supply`: what is linked into the binary, where it comes from and on which terms;
//! `cargo xtask sbom` writes it down.
//!
//! The rules stand in `deny.toml`, in the form of cargo-deny. This check reads the same file and
//! `cargo metadata`, so that it needs no other tool; what only a database of advisories knows, it
//! does not know, and says so.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::workspace::{cargo, output, root};

mod graph;
mod licence;
mod sbom;

use graph::{Graph, Part};

/// What sources of the registry begin with.
const REGISTRY: &str = "registry+https://github.com/rust-lang/";

/// Where cargo-deny keeps what is known about faulty crates.
const ADVISORIES: &str = "advisory-dbs";

/// Arguments of `cargo xtask sbom`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where to write it instead of standard output.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Checks licences, sources and unwanted crates.
pub(crate) fn check() -> Result<()> {
    let rules = Rules::parse(&fs::read_to_string(root().join("deny.toml"))?);
    let graph = Graph::of(&metadata()?, "yore")?;
    let faults = faults(&rules, &graph);
    for fault in &faults {
        println!("fault: {fault}");
    }
    println!(
        "supply: {} crates from the registry, {} of our own, {} licences, {} faults",
        graph.parts.iter().filter(|part| part.source.is_some()).count(),
        graph.parts.iter().filter(|part| part.source.is_none()).count(),
        graph.parts.iter().map(|part| part.licence.as_str()).collect::<BTreeSet<_>>().len(),
        faults.len(),
    );
    println!("{}", twice(&graph));
    println!("advisories: {}", advisories());
    if !faults.is_empty() {
        bail!("{} rules of deny.toml are broken", faults.len());
    }
    Ok(())
}

/// Writes a bill of materials.
pub(crate) fn sbom(arguments: &Arguments) -> Result<()> {
    match &arguments.out {
        None => print!("{}", bill()?),
        Some(path) => sbom_at(path)?,
    }
    Ok(())
}

/// Writes it into a file.
pub(crate) fn sbom_at(path: &Path) -> Result<()> {
    fs::write(path, bill()?).with_context(|| format!("cannot write {}", path.display()))
}

fn bill() -> Result<String> {
    let graph = Graph::of(&metadata()?, "yore")?;
    let lock = fs::read_to_string(root().join("Cargo.lock"))?;
    Ok(format!("{:#}\n", sbom::document(&graph, &graph::checksums(&lock))))
}

/// What cargo says of everything that is linked on this machine.
fn metadata() -> Result<Value> {
    let version = output(std::process::Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("rustc names no host")?;
    let text = output(cargo().args([
        "metadata",
        "--format-version",
        "1",
        "--locked",
        "--filter-platform",
        host,
    ]))?;
    Ok(serde_json::from_str(&text)?)
}

/// The rules of `deny.toml` that are checked here.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rules {
    licences: BTreeSet<String>,
    unwanted: BTreeSet<String>,
}

impl Rules {
    /// Reads the lists. The file is ours and plain: a list begins in its own line and holds texts.
    fn parse(text: &str) -> Self {
        let mut lists: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let (mut section, mut list) = (String::new(), None::<String>);
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'))
                && list.is_none()
            {
                section = name.to_owned();
            } else if let Some((name, _)) =
                line.split_once('=').filter(|(_, rest)| rest.trim().starts_with('['))
            {
                list = Some(format!("{section}.{}", name.trim()));
            }
            if let Some(name) = &list {
                let entries = lists.entry(name.clone()).or_default();
                entries.extend(line.split('"').skip(1).step_by(2).map(str::to_owned));
                if line.ends_with(']') {
                    list = None;
                }
            }
        }
        let mut take = |name: &str| lists.remove(name).unwrap_or_default();
        Self { licences: take("licenses.allow"), unwanted: take("bans.deny") }
    }
}

fn faults(rules: &Rules, graph: &Graph) -> Vec<String> {
    let mut faults = Vec::new();
    for Part { name, version, licence, source, .. } in &graph.parts {
        if rules.unwanted.contains(name) {
            faults.push(format!("{name} {version} is not wanted"));
        }
        if let Some(source) = source.as_ref().filter(|source| !source.starts_with(REGISTRY)) {
            faults.push(format!("{name} {version} comes from {source}"));
        }
        match licence::allowed(licence, &rules.licences) {
            Ok(true) => {}
            Ok(false) => faults.push(format!("{name} {version}: {licence:?} is not allowed")),
            Err(error) => faults.push(format!("{name} {version}: {licence:?}: {error}")),
        }
    }
    faults
}

/// Names what is linked in more than one version.
fn twice(graph: &Graph) -> String {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for part in &graph.parts {
        versions.entry(&part.name).or_default().push(&part.version);
    }
    versions.retain(|_, found| found.len() > 1);
    let names: Vec<&str> = versions.keys().copied().collect();
    format!("in more than one version: {} ({})", names.len(), names.join(", "))
}

/// How old the advisories are that cargo-deny has fetched, if it has.
fn advisories() -> String {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let fetched = home.and_then(|home| fs::metadata(home.join(ADVISORIES)).ok()?.modified().ok());
    match fetched.and_then(|at| at.elapsed().ok()) {
        None => "none on this machine; `cargo deny fetch` gets them".to_owned(),
        Some(age) => format!("fetched {} days ago", age.as_secs() / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "\
[licenses]
# a word
allow = [
    \"MIT\",
    \"Apache-2.0\",
]
[sources]
unknown-git = \"deny\"
[bans]
deny = [\"leftpad\"]
";

    fn part(name: &str, licence: &str, source: Option<&str>) -> Part {
        Part {
            id: name.to_owned(),
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            licence: licence.to_owned(),
            source: source.map(str::to_owned),
            uses: Vec::new(),
        }
    }

    #[test]
    fn what_breaks_a_rule_is_named() {
        let rules = Rules::parse(RULES);
        let index = Some("registry+https://github.com/rust-lang/index");
        let parts = vec![
            part("own", "MIT", None),
            part("fine", "GPL-3.0 OR MIT", index),
            part("leftpad", "MIT", index),
            part("grown", "GPL-3.0", index),
            part("forked", "MIT", Some("git+https://example.org/forked")),
            part("silent", "", index),
            part("else", "MIT", Some("registry+https://registry.example/index")),
        ];
        let found = faults(&rules, &Graph { parts });
        let names: Vec<&str> = found.iter().filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(names, ["leftpad", "grown", "forked", "silent", "else"], "{found:?}");
    }

    #[test]
    fn the_rules_of_this_project_are_read() {
        let rules = Rules::parse(&fs::read_to_string(root().join("deny.toml")).unwrap());
        assert!(rules.licences.contains("MIT") && !rules.licences.contains("GPL-3.0"));
        assert!(rules.unwanted.contains("native-tls"));
    }
}

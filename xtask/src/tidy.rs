//! `cargo xtask tidy`: the house rules that a program can check.
//!
//! Faults fail; notes are printed for a reader to judge. The rules about text look at code with
//! comments and literals blanked out, so that a rule may be spoken about.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Result, bail};

use crate::figures;
use crate::workspace::{self, Package, root};

mod code;
mod layers;
mod manifest;
mod pages;
mod proofs;
mod source;
mod words;

/// Programs that a test shows not to compile; they hold what other code must not.
const SPECIMENS: &str = "/tests/ui/";

/// What tidy found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    /// What breaks a rule.
    pub(crate) faults: Vec<String>,
    /// What a reader should look at.
    pub(crate) notes: Vec<String>,
}

impl Findings {
    fn fault(&mut self, text: impl Into<String>) {
        self.faults.push(text.into());
    }

    fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }
}

/// Runs the command.
pub(crate) fn run() -> Result<()> {
    let packages = workspace::packages()?;
    let mut files = BTreeMap::new();
    for path in workspace::files()? {
        // What is not UTF-8 is data, and none of the rules is about data.
        if let Ok(text) = String::from_utf8(fs::read(root().join(&path))?) {
            files.insert(path, text);
        }
    }
    let findings = check(&packages, &files);
    for note in &findings.notes {
        println!("note: {note}");
    }
    for fault in &findings.faults {
        println!("fault: {fault}");
    }
    let (faults, notes) = (findings.faults.len(), findings.notes.len());
    println!("tidy: {} files, {faults} faults, {notes} notes", files.len());
    if faults > 0 {
        bail!("{faults} house rules are broken");
    }
    Ok(())
}

/// Checks a project given as its packages and its text files.
fn check(packages: &[Package], files: &BTreeMap<String, String>) -> Findings {
    let mut findings = Findings::default();
    layers::check(packages, &mut findings);
    manifest::check(packages, files, &mut findings);
    pages::check(files, &mut findings);
    proofs::check(files, &mut findings);
    findings.faults.extend(figures::untrue(files));
    for (path, text) in files {
        words::check(path, text, &mut findings);
        if path.ends_with(".rs") && !path.contains(SPECIMENS) {
            source::check(path, text, &mut findings);
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_rule_is_applied() {
        let files = [
            ("a/src/lib.rs", "fn a() { todo!() }".to_owned()),
            ("a/tests/ui/forge.rs", "fn main() { todo!() }".to_owned()),
            ("a/README.md", format!("see {}tmp/x", "/")),
        ];
        let files = files.into_iter().map(|(path, text)| (path.to_owned(), text)).collect();
        let package = Package {
            name: "yore-domain".to_owned(),
            manifest: "a/Cargo.toml".to_owned(),
            roots: vec!["a/src/lib.rs".to_owned()],
            dependencies: Vec::new(),
        };
        let faults = check(&[package], &files).faults;
        let kinds = ["todo!", "path of one machine", "lints", "lines of `//!`"];
        assert_eq!(faults.len(), kinds.len(), "{faults:?}");
        for kind in kinds {
            assert!(faults.iter().any(|fault| fault.contains(kind)), "{kind}: {faults:?}");
        }
    }
}

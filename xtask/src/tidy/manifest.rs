//! Rules about packages: lints, the words at the top of a crate, reasons for dependencies.

use std::collections::{BTreeMap, BTreeSet};

use super::Findings;
use crate::workspace::Package;

/// Where every dependency has its reason.
const DEPENDENCIES: &str = "docs/dependencies.md";

/// How many lines of `//!` a crate has at least.
const ROOT_WORDS: usize = 3;

pub(super) fn check(
    packages: &[Package],
    files: &BTreeMap<String, String>,
    findings: &mut Findings,
) {
    let text = |path: &str| files.get(path).map_or("", String::as_str);
    for package in packages {
        if !takes_workspace_lints(text(&package.manifest)) {
            findings.fault(format!("{}: no `[lints] workspace = true`", package.manifest));
        }
        for root in &package.roots {
            let words = text(root).lines().filter(|line| line.starts_with("//!")).count();
            if words < ROOT_WORDS {
                findings.fault(format!(
                    "{root}: a crate starts with at least {ROOT_WORDS} lines of `//!`"
                ));
            }
        }
    }
    check_reasons(packages, text(DEPENDENCIES), findings);
}

fn takes_workspace_lints(manifest: &str) -> bool {
    let lints = manifest.lines().map(str::trim).skip_while(|line| *line != "[lints]").skip(1);
    lints
        .take_while(|line| !line.starts_with('['))
        .any(|line| line.replace(' ', "") == "workspace=true")
}

fn check_reasons(packages: &[Package], page: &str, findings: &mut Findings) {
    let reasons = reasons(page);
    let mut used = BTreeSet::new();
    for package in packages {
        for dependency in package.dependencies.iter().filter(|dependency| !dependency.own) {
            used.insert(dependency.name.as_str());
            match reasons.get(dependency.name.as_str()) {
                Some(reason) if !reason.is_empty() => {}
                _ => findings.fault(format!(
                    "{}: {} has no reason in {DEPENDENCIES}",
                    package.manifest, dependency.name
                )),
            }
        }
    }
    for name in reasons.keys().filter(|name| !used.contains(*name)) {
        findings.note(format!("{DEPENDENCIES}: nothing depends on {name} any more"));
    }
}

/// Reads the rows of the table: the name first, its reason last.
fn reasons(page: &str) -> BTreeMap<&str, &str> {
    page.lines()
        .filter_map(|line| {
            let row = line.trim().strip_prefix('|')?.strip_suffix('|')?;
            let (name, rest) = row.split_once('|')?;
            let reason = rest.rsplit('|').next().unwrap_or_default().trim();
            let name = name.trim().trim_matches('`');
            let heading = name.is_empty() || name == "crate" || name.starts_with('-');
            (!heading).then_some((name, reason))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    fn package(dependencies: &[&str]) -> Package {
        Package {
            name: "yore-domain".to_owned(),
            manifest: "a/Cargo.toml".to_owned(),
            roots: vec!["a/src/lib.rs".to_owned()],
            dependencies: dependencies
                .iter()
                .map(|name| Dependency { name: (*name).to_owned(), dev: false, own: false })
                .collect(),
        }
    }

    fn found(dependencies: &[&str], files: &[(&str, &str)]) -> Findings {
        let files = files.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect();
        let mut findings = Findings::default();
        check(&[package(dependencies)], &files, &mut findings);
        findings
    }

    const ROOT: (&str, &str) = ("a/src/lib.rs", "//! One.\n//!\n//! Two.\n");
    const MANIFEST: (&str, &str) = ("a/Cargo.toml", "[package]\n[lints]\nworkspace = true\n");

    #[test]
    fn a_package_that_keeps_the_rules_has_no_faults() {
        let page = "| crate | used by | reason |\n|---|---|---|\n| `serde` | a | values |\n";
        let findings = found(&["serde"], &[ROOT, MANIFEST, (DEPENDENCIES, page)]);
        assert_eq!(findings, Findings::default());
    }

    #[test]
    fn each_rule_is_checked() {
        let short = ("a/src/lib.rs", "//! One line.\nmod b;\n");
        let bare = ("a/Cargo.toml", "[package]\nworkspace = true\n[lints]\n[features]\n");
        let page = (DEPENDENCIES, "| `serde` | |\n| `gone` | was used |\n");
        assert_eq!(found(&[], &[short, MANIFEST]).faults.len(), 1);
        assert_eq!(found(&[], &[ROOT, bare]).faults.len(), 1);
        let findings = found(&["serde", "rand"], &[ROOT, MANIFEST, page]);
        assert_eq!(findings.faults.len(), 2, "{findings:?}");
        assert_eq!(findings.notes.len(), 1, "{findings:?}");
    }
}

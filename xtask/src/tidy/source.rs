//! Rules about Rust files.

use super::{Findings, code};
use crate::requirement;

/// Over this many lines a file should be looked at for a second idea.
const LONG: usize = 500;
/// Over this many it must be split.
const TOO_LONG: usize = 800;

/// The one crate that may hold unsafe code, and the one test that listens to SQLite itself.
const UNSAFE: [&str; 2] = ["crates/kernels/", "crates/oamp/tests/statements.rs"];

const FORBIDDEN: [&str; 3] = ["todo!", "unimplemented!", "dbg!"];

pub(super) fn check(path: &str, text: &str, findings: &mut Findings) {
    match path.rsplit('/').next() {
        Some("mod.rs") => findings.fault(format!("{path}: a module is `name.rs`, not `mod.rs`")),
        Some("utils.rs") => findings.fault(format!("{path}: name the module for what it does")),
        _ => {}
    }
    let lines = text.lines().count();
    let generated = text.lines().next().is_some_and(|line| line.contains("@generated"));
    if lines > TOO_LONG && !generated {
        findings.fault(format!("{path}: {lines} lines, more than {TOO_LONG}"));
    } else if lines > LONG && !generated {
        findings.note(format!("{path}: {lines} lines, look for a second idea"));
    }
    let stripped = code::only(text);
    let raw: Vec<&str> = text.lines().collect();
    for (at, line) in stripped.lines().enumerate() {
        check_line(path, at, line, &raw, findings);
    }
    check_names(path, &stripped, findings);
}

fn check_line(path: &str, at: usize, line: &str, raw: &[&str], findings: &mut Findings) {
    let place = format!("{path}:{}", at + 1);
    for word in FORBIDDEN {
        if has_word(line, word) {
            findings.fault(format!("{place}: `{word}` is not for code that is kept"));
        }
    }
    let trusted = UNSAFE.iter().any(|place| path.starts_with(place));
    if !trusted && (has_word(line, "unsafe") || has_word(line, "unsafe_code")) {
        findings.fault(format!("{place}: unsafe code belongs in {}", UNSAFE[0]));
    }
    if line.replace(' ', "").contains("#[ignore]") {
        findings.fault(format!("{place}: `ignore` needs a reason"));
    }
    let before = at.checked_sub(1).and_then(|above| raw.get(above)).copied().unwrap_or_default();
    let explained = raw.get(at).is_some_and(|line| line.contains("//"))
        || before.trim_start().starts_with("//");
    if line.trim_start().starts_with("let _ =") && !explained {
        findings.note(format!("{place}: `let _ =` without a word why"));
    }
}

/// Tests that name a requirement spell its id as the digests do.
fn check_names(path: &str, code: &str, findings: &mut Findings) {
    let mut test = false;
    for line in code.lines().map(str::trim) {
        if line.starts_with("#[") {
            test |= line.contains("test");
        } else if let Some(name) = function(line) {
            if test || path.contains("/tests/") {
                for wrong in requirement::in_name(name).1 {
                    findings.fault(format!(
                        "{path}: {name}: {wrong} is no requirement id, write it like ump_031"
                    ));
                }
            }
            test = false;
        }
    }
}

/// Returns the name of the function a line begins.
fn function(line: &str) -> Option<&str> {
    let at = line.find("fn ").filter(|at| *at == 0 || line[..*at].ends_with(' '))?;
    let name = &line[at + 3..];
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    Some(&name[..end])
}

fn has_word(line: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(part) && !line[at + word.len()..].starts_with(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> (usize, usize) {
        let mut findings = Findings::default();
        check(path, text, &mut findings);
        (findings.faults.len(), findings.notes.len())
    }

    #[test]
    fn each_rule_is_checked() {
        let long = "x\n".repeat(501);
        let too_long = "x\n".repeat(801);
        let generated = format!("// @generated\n{too_long}");
        for (path, text, faults, notes) in [
            ("a/src/lib.rs", "fn a() {}\n", 0, 0),
            ("a/src/b/mod.rs", "", 1, 0),
            ("a/src/utils.rs", "", 1, 0),
            ("a/src/c.rs", long.as_str(), 0, 1),
            ("a/src/c.rs", too_long.as_str(), 1, 0),
            ("a/src/c.rs", generated.as_str(), 0, 0),
            ("a/src/c.rs", "fn a() { todo!() }", 1, 0),
            ("a/src/c.rs", "fn a() { dbg!(1); unimplemented!() }", 2, 0),
            ("a/src/c.rs", "// todo!() is forbidden\nlet a = \"dbg!\";", 0, 0),
            ("a/src/c.rs", "unsafe { a() }", 1, 0),
            ("a/src/c.rs", "#![allow(unsafe_code)]", 1, 0),
            ("crates/kernels/src/x86.rs", "unsafe { a() }", 0, 0),
            ("a/src/c.rs", "fn unsafely() {} // unsafe", 0, 0),
            ("a/src/c.rs", "#[ignore]", 1, 0),
            ("a/src/c.rs", "#[ignore = \"needs a network\"]", 0, 0),
            ("a/src/c.rs", "let _ = send();", 0, 1),
            ("a/src/c.rs", "let _ = send(); // the receiver may be gone", 0, 0),
            ("a/src/c.rs", "// The receiver may be gone.\nlet _ = send();", 0, 0),
        ] {
            assert_eq!(found(path, text), (faults, notes), "{path}: {text:.40}");
        }
    }

    #[test]
    fn tests_spell_requirements_like_the_digests() {
        for (text, faults) in [
            ("#[test]\nfn ump_031_numbers() {}", 0),
            ("#[test]\nfn ump_31_numbers() {}", 1),
            ("#[tokio::test]\nasync fn oamp_5_2_hidden() {}", 1),
            ("fn ump_1_is_no_test() {}", 0),
        ] {
            assert_eq!(found("a/src/c.rs", text).0, faults, "{text}");
        }
        assert_eq!(found("a/tests/c.rs", "fn ump_31_step() {}").0, 1);
    }
}

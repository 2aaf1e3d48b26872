//! Running the tests of the workspace and reading what they say.
//!
//! Tests run with `--show-output`, so that a test which cannot run here may say so: it prints a
//! line `NOT RUN: <reason>` and returns. Such a test counts as not run, never as passed. The
//! output of the others is kept out of the log unless they fail.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

const NOT_RUN: &str = "NOT RUN: ";

/// How a test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed,
    Ignored,
    /// It said that it cannot run here, and why.
    NotRun(String),
}

impl Outcome {
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Ignored => "ignored",
            Self::NotRun(_) => "not run",
        }
    }
}

/// What every test said, by its binary and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Results {
    pub(crate) tests: BTreeMap<(String, String), Outcome>,
}

impl Results {
    pub(crate) fn count(&self, word: &str) -> usize {
        self.tests.values().filter(|outcome| outcome.word() == word).count()
    }

    /// Writes them down, one test a line.
    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        let mut text = String::new();
        for ((binary, name), outcome) in &self.tests {
            let reason = match outcome {
                Outcome::NotRun(reason) => reason,
                Outcome::Passed | Outcome::Failed | Outcome::Ignored => "",
            };
            text.push_str(&[binary, name, outcome.word(), reason].join("\t"));
            text.push('\n');
        }
        fs::create_dir_all(path.parent().context("a file lies in a directory")?)?;
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// Reads what was written down.
    pub(crate) fn load(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| {
            format!("cannot read {}; run `cargo xtask test` first", path.display())
        })?;
        let mut results = Self::default();
        for line in text.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let [binary, name, word, reason] = fields[..] else {
                anyhow::bail!("{}: not a result: {line}", path.display());
            };
            let outcome = match word {
                "passed" => Outcome::Passed,
                "failed" => Outcome::Failed,
                "ignored" => Outcome::Ignored,
                _ => Outcome::NotRun(reason.to_owned()),
            };
            results.tests.insert((binary.to_owned(), name.to_owned()), outcome);
        }
        Ok(results)
    }
}

/// Runs a `cargo test` command and returns whether it succeeded and what the tests said.
pub(crate) fn run(command: &mut Command) -> Result<(bool, Results)> {
    let (reader, writer) = std::io::pipe()?;
    command.args(["--", "--show-output"]).stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn().context("cannot run cargo test")?;
    // The command keeps its own end of the pipe open until it is dropped or given another.
    command.stdout(std::process::Stdio::inherit()).stderr(std::process::Stdio::inherit());
    let mut listener = Listener::default();
    for line in BufReader::new(reader).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        if listener.hear(line.trim_end_matches('\r')) {
            println!("{line}");
        }
    }
    Ok((child.wait()?.success(), listener.results))
}

/// Understands the output of cargo and of the test harness, line by line.
#[derive(Debug, Default)]
struct Listener {
    binary: String,
    /// The test whose captured output is being shown.
    showing: Option<String>,
    /// Whether the shown output belongs to tests that passed.
    quiet: bool,
    results: Results,
}

impl Listener {
    /// Takes a line and returns whether it belongs in the log.
    fn hear(&mut self, line: &str) -> bool {
        if let Some(binary) = binary(line) {
            self.binary = binary;
            (self.showing, self.quiet) = (None, false);
        } else if line == "successes:" {
            (self.showing, self.quiet) = (None, true);
            return false;
        } else if line == "failures:" || line.starts_with("test result: ") {
            (self.showing, self.quiet) = (None, false);
        } else if let Some(name) =
            line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"))
        {
            self.showing = Some(name.to_owned());
        } else if let Some(reason) = line.strip_prefix(NOT_RUN) {
            let name = self.showing.clone().unwrap_or_else(|| self.binary.clone());
            self.put(&name, Outcome::NotRun(reason.to_owned()));
        } else if let Some((name, outcome)) = outcome(line) {
            self.put(&name, outcome);
        }
        !self.quiet
    }

    fn put(&mut self, name: &str, outcome: Outcome) {
        self.results.tests.insert((self.binary.clone(), name.to_owned()), outcome);
    }
}

/// Reads `Running unittests src/lib.rs (…/deps/yore_canon-0123456789abcdef)` and `Doc-tests x`.
fn binary(line: &str) -> Option<String> {
    let line = line.trim_start();
    if let Some(name) = line.strip_prefix("Doc-tests ") {
        return Some(format!("{name} (doc)"));
    }
    let path = line.strip_prefix("Running ")?.strip_suffix(')')?.rsplit_once('(')?.1;
    let file = path.rsplit(['/', '\\']).next()?;
    Some(file.rsplit_once('-').map_or(file, |(name, _)| name).to_owned())
}

/// Reads `test a::b ... ok`.
fn outcome(line: &str) -> Option<(String, Outcome)> {
    let (name, word) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let name = name.strip_suffix(" - should panic").unwrap_or(name);
    let outcome = match word.split([',', ' ']).next()? {
        "ok" => Outcome::Passed,
        "FAILED" => Outcome::Failed,
        "ignored" => Outcome::Ignored,
        _ => return None,
    };
    Some((name.to_owned(), outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
   Compiling yore-canon v0.1.0
     Running unittests src/lib.rs (target/debug/deps/yore_canon-0a1b2c3d4e5f6071)

running 4 tests
test jcs::tests::ump_031_numbers ... ok
test jcs::tests::needs_data ... ok
test jcs::tests::slow ... ignored, takes an hour
test jcs::tests::panics - should panic ... ok

successes:

---- jcs::tests::needs_data stdout ----
NOT RUN: YORE_TESTDATA is not set

---- jcs::tests::ump_031_numbers stdout ----
checked 31 numbers

successes:
    jcs::tests::needs_data

test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

     Running tests/routes.rs (target/debug/deps/routes-0a1b2c3d4e5f6071)
test get ... FAILED

failures:

---- get stdout ----
thread 'get' panicked

failures:
    get

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out
   Doc-tests yore_canon
test crates/canon/src/lib.rs - (line 5) ... ok
";

    fn heard() -> (Results, Vec<&'static str>) {
        let mut listener = Listener::default();
        let log = LOG.lines().filter(|line| listener.hear(line)).collect();
        (listener.results, log)
    }

    #[test]
    fn outcomes_are_read_and_a_test_that_did_not_run_has_not_passed() {
        let (results, _) = heard();
        let found: Vec<_> = results
            .tests
            .iter()
            .map(|((binary, name), outcome)| (binary.as_str(), name.as_str(), outcome.word()))
            .collect();
        assert_eq!(
            found,
            [
                ("routes", "get", "failed"),
                ("yore_canon", "jcs::tests::needs_data", "not run"),
                ("yore_canon", "jcs::tests::panics", "passed"),
                ("yore_canon", "jcs::tests::slow", "ignored"),
                ("yore_canon", "jcs::tests::ump_031_numbers", "passed"),
                ("yore_canon (doc)", "crates/canon/src/lib.rs - (line 5)", "passed"),
            ]
        );
    }

    #[test]
    fn only_the_output_of_failures_reaches_the_log() {
        let (_, log) = heard();
        assert!(log.contains(&"thread 'get' panicked"));
        assert!(!log.contains(&"checked 31 numbers"));
        assert!(log.iter().any(|line| line.starts_with("test result: ok. 3 passed")));
    }

    #[test]
    fn results_can_be_written_down() {
        let (results, _) = heard();
        let folder = std::env::temp_dir().join(format!("xtask-results-{}", std::process::id()));
        let path = folder.join("results.tsv");
        results.save(&path).unwrap();
        assert_eq!(Results::load(&path).unwrap(), results);
        fs::remove_dir_all(&folder).unwrap();
    }
}

//! `cargo xtask test`: everything CI runs, in groups, on a machine with nothing but a toolchain.
//!
//! One build profile serves all groups. Each has a time budget that is printed beside the time
//! it took; a group over its budget is marked, not failed, because machines differ.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::backends::Backends;
use crate::foreign::Python;
use crate::postgres::Postgres;
use crate::results::{self, Outcome, Results};
use crate::workspace::{cargo, target_dir};
use crate::{conformance, foreign, supply, tidy};

/// Arguments of `cargo xtask test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Run the counts the requirements state, not the short ones.
    #[arg(long)]
    full: bool,
    /// Run this group only; may be given several times.
    #[arg(long, value_enum)]
    only: Vec<Group>,
    /// Go on after a group that failed.
    #[arg(long)]
    keep_going: bool,
}

/// A group of checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Group {
    Fmt,
    Tidy,
    Supply,
    Clippy,
    Build,
    Tests,
    Postgres,
    Foreign,
    Browser,
    Doc,
    Conformance,
}

/// A bucket and a mailbox that copies go to.
const AWAY: [&str; 2] = ["moto[server]==5.2.5", "aiosmtpd==1.4.6"];
/// Whose tests run a second time, on vaults in a database, in the long run: the engine and every
/// protocol.
const ON_POSTGRES: [&str; 8] = [
    "yore-engine",
    "yore-ump",
    "yore-oamp",
    "yore-memorywire",
    "yore-omp",
    "yore-uamp",
    "yore-mcp",
    "yore-web",
];
/// The test that runs there each time: the engine's. It is chosen by its name among the whole
/// workspace, because a choice of crates would build their dependencies anew.
const EACH_TIME: &str = "operations";

/// The groups in the order they run: the quick ones first.
const ORDER: [Group; 11] = [
    Group::Fmt,
    Group::Tidy,
    Group::Supply,
    Group::Clippy,
    Group::Build,
    Group::Tests,
    Group::Postgres,
    Group::Foreign,
    Group::Browser,
    Group::Doc,
    Group::Conformance,
];

impl Group {
    fn name(self) -> &'static str {
        match self {
            Self::Fmt => "fmt",
            Self::Tidy => "tidy",
            Self::Supply => "supply",
            Self::Clippy => "clippy",
            Self::Build => "build",
            Self::Tests => "tests",
            Self::Postgres => "postgres",
            Self::Foreign => "foreign",
            Self::Browser => "browser",
            Self::Doc => "doc",
            Self::Conformance => "conformance",
        }
    }

    /// What it may take on two cores with nothing built before.
    fn budget(self, full: bool) -> Duration {
        Duration::from_secs(match self {
            Self::Fmt | Self::Tidy | Self::Supply => 30,
            Self::Clippy => 900,
            Self::Build => 900,
            Self::Tests if full => 7200,
            Self::Tests => 1200,
            Self::Postgres if full => 3600,
            Self::Postgres => 600,
            Self::Foreign => 600,
            Self::Browser => 300,
            Self::Doc => 300,
            Self::Conformance => 30,
        })
    }
}

/// How a group ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    Passed,
    Failed(String),
    NotRun(String),
}

#[derive(Debug)]
struct Line {
    group: Group,
    end: End,
    took: Duration,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut run = Run { full: arguments.full, results: None, saved: saved()? };
    let mut lines: Vec<Line> = Vec::new();
    for group in ORDER {
        if !arguments.only.is_empty() && !arguments.only.contains(&group) {
            continue;
        }
        let broken = lines.iter().any(|line| matches!(line.end, End::Failed(_)));
        let (end, took) = if broken && !arguments.keep_going {
            (End::NotRun("an earlier group failed".to_owned()), Duration::ZERO)
        } else {
            println!("\n== {} (budget {})", group.name(), time(group.budget(arguments.full)));
            let start = Instant::now();
            let end = run.group(group).unwrap_or_else(|error| End::Failed(format!("{error:#}")));
            (end, start.elapsed())
        };
        lines.push(Line { group, end, took });
    }
    if let Some(results) = &run.results {
        print_not_run(results);
    }
    print_summary(&lines, arguments.full);
    let failed = lines.iter().filter(|line| matches!(line.end, End::Failed(_))).count();
    if failed > 0 {
        bail!("{failed} of {} groups failed", lines.len());
    }
    Ok(())
}

/// Where the outcome of every test is written down.
pub(crate) fn saved() -> Result<PathBuf> {
    Ok(target_dir()?.join("xtask/results.tsv"))
}

struct Run {
    full: bool,
    results: Option<Results>,
    saved: PathBuf,
}

impl Run {
    fn group(&mut self, group: Group) -> Result<End> {
        match group {
            Group::Fmt => optional("fmt", &["fmt", "--all", "--check"]),
            Group::Tidy => tidy::run().map(|()| End::Passed),
            Group::Supply => supply::check().map(|()| End::Passed),
            Group::Clippy => optional(
                "clippy",
                &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
            ),
            // Building the tests builds the binary that the end-to-end tests start.
            Group::Build => status(self.cargo().args(["test", "--workspace", "--no-run"])),
            Group::Tests => self.tests(),
            Group::Postgres => self.on_postgres(),
            Group::Foreign => self.foreign(foreign::run),
            Group::Browser => self.foreign(|_| foreign::browse()),
            Group::Doc => status(
                self.cargo()
                    .args(["doc", "--no-deps", "--workspace"])
                    .env("RUSTDOCFLAGS", "-D warnings"),
            ),
            Group::Conformance => {
                let results = match &self.results {
                    Some(results) => results.clone(),
                    None if self.saved.exists() => Results::load(&self.saved)?,
                    None => return Ok(End::NotRun("the tests have not been run".to_owned())),
                };
                conformance::report(&results).map(|()| End::Passed)
            }
        }
    }

    fn tests(&mut self) -> Result<End> {
        let postgres = Postgres::start()?;
        let mut command = self.cargo();
        command.args(["test", "--workspace", "--no-fail-fast"]);
        command.env("YORE_TEST_PGVECTOR", postgres.dsn());
        command.env("YORE_TEST_POSTGRES", postgres.dsn());
        // Without them the tests of copies that go elsewhere say that they were not run.
        match Python::with("away", &AWAY) {
            Ok(away) => {
                command.env("YORE_TEST_AWAY", away.home());
            }
            Err(error) => println!("moto and aiosmtpd are not to be had: {error:#}"),
        }
        let backends = if self.full { Some(Backends::start(&postgres)?) } else { None };
        for (name, value) in backends.iter().flat_map(Backends::variables) {
            command.env(name, value);
        }
        let (success, results) = results::run(&mut command)?;
        results.save(&self.saved)?;
        println!(
            "tests: {} passed, {} failed, {} ignored, {} not run",
            results.count("passed"),
            results.count("failed"),
            results.count("ignored"),
            results.count("not run"),
        );
        let none = results.tests.is_empty();
        self.results = Some(results);
        Ok(if !success {
            End::Failed("cargo test failed".to_owned())
        } else if none {
            End::Failed("no test was run".to_owned())
        } else {
            End::Passed
        })
    }

    /// Runs the tests above the store again, on vaults in a database. Their results stand beside
    /// the others under names of their own.
    fn on_postgres(&mut self) -> Result<End> {
        let postgres = Postgres::start()?;
        let mut command = self.cargo();
        command.args(["test", "--no-fail-fast"]);
        if self.full {
            command.arg("--tests").args(ON_POSTGRES.iter().flat_map(|name| ["-p", name]));
        } else {
            command.args(["--workspace", "--test", EACH_TIME]);
        }
        command.env("YORE_TEST_POSTGRES", postgres.dsn()).env("YORE_TEST_STORE", "postgres");
        let (success, found) = results::run(&mut command)?;
        let (passed, failed) = (found.count("passed"), found.count("failed"));
        println!(
            "on PostgreSQL: {passed} passed, {failed} failed, {} not run",
            found.count("not run")
        );
        // What is only for vaults in files is proven there: here it is named, and counts for nothing.
        let named = found.tests.into_iter().filter_map(|((binary, name), outcome)| match outcome {
            Outcome::NotRun(reason) => {
                println!("  not on PostgreSQL: {binary} {name}: {reason}");
                None
            }
            Outcome::Passed | Outcome::Failed | Outcome::Ignored => {
                Some(((format!("{binary} on postgres"), name), outcome))
            }
        });
        let found = Results { tests: named.collect() };
        self.add(found)?;
        Ok(match (success, passed) {
            (true, 0) => End::Failed("no test was run".to_owned()),
            (true, _) => End::Passed,
            (false, _) => End::Failed(format!("{failed} tests failed on PostgreSQL")),
        })
    }

    fn foreign(&mut self, run: fn(bool) -> Result<Results>) -> Result<End> {
        let found = run(self.full)?;
        let failed = found.count("failed");
        self.add(found)?;
        Ok(match failed {
            0 => End::Passed,
            _ => End::Failed(format!("{failed} foreign checks failed")),
        })
    }

    /// Adds results to those of this run, or of the last one.
    fn add(&mut self, found: Results) -> Result<()> {
        let mut results = match self.results.take() {
            Some(results) => results,
            None if self.saved.exists() => Results::load(&self.saved)?,
            None => Results::default(),
        };
        results.tests.extend(found.tests);
        results.save(&self.saved)?;
        self.results = Some(results);
        Ok(())
    }

    fn cargo(&self) -> Command {
        let mut command = cargo();
        if self.full {
            command.env("YORE_FULL", "1");
        }
        command
    }
}

/// Runs a part of the toolchain that may not be installed.
fn optional(tool: &str, arguments: &[&str]) -> Result<End> {
    let there = cargo()
        .args([tool, "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !there {
        return Ok(End::NotRun(format!("cargo {tool} is not installed")));
    }
    status(cargo().args(arguments))
}

fn status(command: &mut Command) -> Result<End> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    Ok(if status.success() { End::Passed } else { End::Failed(status.to_string()) })
}

fn print_not_run(results: &Results) {
    let silent: Vec<_> = results
        .tests
        .iter()
        .filter_map(|((binary, name), outcome)| match outcome {
            Outcome::NotRun(reason) => Some(format!("  {binary} {name}: {reason}")),
            Outcome::Ignored => Some(format!("  {binary} {name}: ignored")),
            Outcome::Passed | Outcome::Failed => None,
        })
        .collect();
    if !silent.is_empty() {
        println!("\ntests not run:\n{}", silent.join("\n"));
    }
}

fn print_summary(lines: &[Line], full: bool) {
    println!("\n{:<12} {:>9} {:>9}  result", "group", "budget", "took");
    for Line { group, end, took } in lines {
        let budget = group.budget(full);
        let end = match end {
            End::Passed if *took > budget => "passed, over budget".to_owned(),
            End::Passed => "passed".to_owned(),
            End::Failed(reason) => format!("FAILED: {reason}"),
            End::NotRun(reason) => format!("not run: {reason}"),
        };
        println!("{:<12} {:>9} {:>9}  {end}", group.name(), time(budget), time(*took));
    }
    println!("{}", tally(lines));
}

fn tally(lines: &[Line]) -> String {
    let passed = lines.iter().filter(|line| line.end == End::Passed).count();
    let failed = lines.iter().filter(|line| matches!(line.end, End::Failed(_))).count();
    format!("{passed} passed, {failed} failed")
}

fn time(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0 => format!("{} ms", span.as_millis()),
        1..60 => format!("{:.1} s", span.as_secs_f64()),
        _ => format!("{} m {:02} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_was_not_run_counts_for_neither_side() {
        let line = |group, end| Line { group, end, took: Duration::ZERO };
        let lines = [
            line(Group::Fmt, End::NotRun("not installed".to_owned())),
            line(Group::Tidy, End::Passed),
            line(Group::Tests, End::Failed("exit 101".to_owned())),
        ];
        assert_eq!(tally(&lines), "1 passed, 1 failed");
    }

    #[test]
    fn a_tool_that_is_not_installed_is_not_run() {
        let end = optional("no-such-tool", &["no-such-tool"]).unwrap();
        assert_eq!(end, End::NotRun("cargo no-such-tool is not installed".to_owned()));
    }

    #[test]
    fn times_read_well() {
        for (millis, text) in [(12, "12 ms"), (1_250, "1.2 s"), (754_000, "12 m 34 s")] {
            assert_eq!(time(Duration::from_millis(millis)), text);
        }
    }
}

//! Checks by programs that others wrote: referees and clients from the registries, pointed at
//! servers that are started here. What they need is installed below the target directory.

mod agents;
mod browser;
mod home;
mod referee;
mod serving;
mod tools;
mod types;

use std::process::Command;

use anyhow::Result;

use crate::chaos;
use crate::results::{Outcome, Results};

pub(crate) use serving::Serving;
pub(crate) use tools::{Node, Python};

/// The name under which these checks stand among the results.
const BINARY: &str = "foreign";

/// Runs every foreign check, with large counts if asked, and returns how each ended.
pub(crate) fn run(full: bool) -> Result<Results> {
    let mut book = Book::default();
    referee::run(&mut book)?;
    types::run(&mut book)?;
    agents::run(&mut book, full)?;
    let name = "acknowledged_writes_survive_kill_9";
    book.check(name, chaos::acknowledged_writes_survive_kill_9);
    Ok(book.results)
}

/// Drives the web app in a real browser and returns how each flow ended.
pub(crate) fn browse() -> Result<Results> {
    let mut book = Book::default();
    browser::run(&mut book)?;
    Ok(book.results)
}

/// Notes how checks end.
#[derive(Debug, Default)]
struct Book {
    results: Results,
}

impl Book {
    /// Says that a check cannot run here, and why.
    fn not_run(&mut self, name: &str, reason: &str) {
        let outcome = Outcome::NotRun(reason.to_owned());
        println!("foreign {name} ... {}", outcome.word());
        self.results.tests.insert((BINARY.to_owned(), name.to_owned()), outcome);
    }

    /// Runs one check, says how it ended, and why when it failed.
    fn check(&mut self, name: &str, check: impl FnOnce() -> Result<()>) {
        let outcome = match check() {
            Ok(()) => Outcome::Passed,
            Err(error) => {
                println!("{error:#}");
                Outcome::Failed
            }
        };
        println!("foreign {name} ... {}", outcome.word());
        self.results.tests.insert((BINARY.to_owned(), name.to_owned()), outcome);
    }
}

/// Runs a command that must succeed; what it printed is told when it does not.
pub(crate) fn succeed(command: &mut Command) -> Result<String> {
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    anyhow::ensure!(
        output.status.success(),
        "{command:?} ended with {}:\n{said}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr),
    );
    Ok(said.into_owned())
}

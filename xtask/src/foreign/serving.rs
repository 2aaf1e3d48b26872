//! A server that runs as long as a check needs it.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// A process that is ended with its value.
#[derive(Debug)]
pub(crate) struct Serving(Child);

impl Serving {
    /// Starts a server and waits for the first line it prints.
    pub(crate) fn start(command: &mut Command) -> Result<(Self, String)> {
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        let mut serving = Self(child);
        let output = serving.0.stdout.take().context("the output was asked for")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        anyhow::ensure!(!line.trim().is_empty(), "{command:?} ended before it was ready");
        Ok((serving, line.trim().to_owned()))
    }

    /// Starts a server whose every word goes into a file.
    pub(crate) fn logging(command: &mut Command, log: &Path) -> Result<Self> {
        let file = File::create(log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        Ok(Self(child))
    }

    /// Whether it has not ended.
    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

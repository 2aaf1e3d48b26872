//! Mounts that nobody else sees: a namespace that is held open by a process in it.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::foreign::succeed;

/// A place among the mounts of a process that waits for its input to end.
#[derive(Debug)]
pub(super) struct Room {
    holder: Child,
    input: Option<ChildStdin>,
}

impl Room {
    /// Opens one and runs a script in it. The error says why there is none.
    pub(super) fn open(script: &str) -> Result<Self> {
        let script = format!("{script}\necho ready\nread end");
        let mut unshare = Command::new("unshare");
        unshare.args(["-rm", "sh", "-ec", &script]);
        let started = unshare.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut holder = started.spawn().context("unshare cannot be started")?;
        let input = holder.stdin.take();
        let output = holder.stdout.take().context("the output was asked for")?;
        let mut room = Self { holder, input };
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        if line.trim() != "ready" {
            room.input = None;
            let mut why = String::new();
            if let Some(mut error) = room.holder.stderr.take() {
                std::io::Read::read_to_string(&mut error, &mut why)?;
            }
            anyhow::bail!("this system gives no mounts of one's own: {}", why.trim());
        }
        Ok(room)
    }

    /// What starts a program in it.
    pub(super) fn enter(&self) -> Vec<String> {
        let pid = self.holder.id().to_string();
        let words = ["nsenter", "--preserve-credentials", "-U", "-m", "-t", &pid, "--"];
        words.map(str::to_owned).to_vec()
    }

    /// Runs a script in it.
    pub(super) fn run(&self, script: &str) -> Result<()> {
        let line = self.enter();
        let mut command = Command::new(&line[0]);
        succeed(command.args(&line[1..]).args(["sh", "-ec", script])).map(drop)
    }

    /// Where a path of the room is found from outside.
    pub(super) fn seen(&self, path: &Path) -> PathBuf {
        let root = format!("/proc/{}/root", self.holder.id());
        let inside = path.strip_prefix("/").unwrap_or(path);
        Path::new(&root).join(inside)
    }

    /// Writes into a file of the room until nothing more fits; returns its size.
    pub(super) fn fill(&self, path: &Path) -> Result<u64> {
        let path = self.seen(path);
        let mut file = std::fs::File::create(&path)?;
        let block = vec![0_u8; 64 << 10];
        // First in large pieces and then in the smallest.
        for size in [block.len(), 4096, 512] {
            while file.write_all(&block[..size]).is_ok() {}
        }
        let size = file.metadata()?.len();
        ensure!(size > 0, "the disk was full before it was filled");
        Ok(size)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        drop(self.input.take());
        // It ends by itself; what is left of it goes with it.
        drop(self.holder.kill());
        drop(self.holder.wait());
    }
}

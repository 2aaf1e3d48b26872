//! A bad disk and a bad clock, by a library that is loaded before a server's own.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::place::{Manner, Place};
use crate::foreign::succeed;

const SOURCE: &str = include_str!("faults.c");

/// What writing to a broken disk, and to one that became read-only, ends with.
pub(super) const EIO: i64 = 5;
pub(super) const EROFS: i64 = 30;

/// The library; compiled once for a run.
#[derive(Clone, Debug)]
pub(super) struct Library(PathBuf);

impl Library {
    /// Compiles it. The error says why there is none.
    pub(super) fn make(dir: &Path) -> Result<Self> {
        ensure!(cfg!(target_os = "linux"), "libraries are loaded before others on Linux only");
        let (source, library) = (dir.join("faults.c"), dir.join("faults.so"));
        fs::write(&source, SOURCE)?;
        let mut compile = Command::new("cc");
        compile.args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
        succeed(&mut compile).context("there is no C compiler")?;
        Ok(Self(library))
    }
}

/// What a server's disk and clock are told.
#[derive(Debug)]
pub(super) struct Faults {
    library: PathBuf,
    control: PathBuf,
    /// Where the library notes what is written and synced.
    pub(super) record: PathBuf,
}

impl Faults {
    pub(super) fn new(library: &Library, place: &mut Place) -> Result<Self> {
        let (control, record) = (place.path("control"), place.path("record"));
        fs::write(&control, [0; 24])?;
        fs::write(&record, [])?;
        let faults = Self { library: library.0.clone(), control, record };
        place.surroundings = faults.surroundings();
        Ok(faults)
    }

    fn surroundings(&self) -> Vec<(&'static str, String)> {
        let text = |path: &Path| path.display().to_string();
        vec![("LD_PRELOAD", text(&self.library)), ("CHAOS_CONTROL", text(&self.control))]
    }

    /// How a server is started that meets them, and whose writes are noted.
    pub(super) fn manner(&self) -> Manner {
        let mut surroundings = self.surroundings();
        surroundings.push(("CHAOS_RECORD", self.record.display().to_string()));
        Manner { surroundings, ..Manner::default() }
    }

    /// Sets the clock on the wall ahead of the true time, or behind it.
    pub(super) fn clock(&self, ahead_seconds: i64) -> Result<()> {
        self.set(0, ahead_seconds * 1_000_000_000)
    }

    /// Makes every sync take so much longer.
    pub(super) fn slow(&self, by: Duration) -> Result<()> {
        self.set(8, i64::try_from(by.as_micros())?)
    }

    /// Makes writing and syncing fail; 0 lets them do well again.
    pub(super) fn error(&self, number: i64) -> Result<()> {
        self.set(16, number)
    }

    fn set(&self, offset: u64, value: i64) -> Result<()> {
        let control = OpenOptions::new().write(true).open(&self.control)?;
        Ok(control.write_all_at(&value.to_ne_bytes(), offset)?)
    }
}

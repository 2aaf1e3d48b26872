//! The command in a directory of its own.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::serving::Serving;
use crate::workspace::target_dir;

/// A data directory with a key beside it.
#[derive(Debug)]
pub(super) struct Home {
    yore: PathBuf,
    data: PathBuf,
    key: PathBuf,
    /// What its programs find in their surroundings.
    surroundings: Vec<(&'static str, String)>,
}

impl Home {
    /// Makes an empty one below the target directory.
    pub(super) fn new(name: &str) -> Result<Self> {
        let home = target_dir()?.join("tests").join(name);
        if home.exists() {
            fs::remove_dir_all(&home)?;
        }
        fs::create_dir_all(&home)?;
        let (data, key) = (home.join("data"), home.join("master.key"));
        fs::write(&key, "07".repeat(32))?;
        // Programs that pass no surroundings on need the key in a file.
        fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        let yore = target_dir()?.join("debug/yore");
        Ok(Self { yore, data, key, surroundings: Vec::new() })
    }

    /// The same with more in the surroundings of its programs.
    pub(super) fn with(self, surroundings: &[(&'static str, String)]) -> Self {
        Self { surroundings: surroundings.to_vec(), ..self }
    }

    /// The program, and its arguments for this home.
    pub(super) fn line(&self, args: &[&str]) -> Vec<String> {
        let path = |path: &PathBuf| path.display().to_string();
        let place =
            ["--data".to_owned(), path(&self.data), "--key-file".to_owned(), path(&self.key)];
        let args = args.iter().map(|arg| (*arg).to_owned());
        std::iter::once(path(&self.yore)).chain(args).chain(place).collect()
    }

    /// The same as a command.
    pub(super) fn command(&self, args: &[&str]) -> Command {
        let line = self.line(args);
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).envs(self.surroundings.iter().cloned());
        command
    }

    /// A file beside the data.
    pub(super) fn path(&self, name: &str) -> String {
        self.key.with_file_name(name).display().to_string()
    }

    /// Starts a server with TLS on a free port and returns what it says of itself.
    pub(super) fn serve_tls_with(&self, more: &[&str]) -> Result<(Serving, Value)> {
        let args = ["serve", "--json", "--listen", "off", "--tls-listen", "127.0.0.1:0"];
        let mut serve = self.command(&[&args[..], more].concat());
        let (serving, ready) = Serving::start(serve.env("YORE_LOG", "error"))?;
        Ok((serving, serde_json::from_str(&ready)?))
    }

    /// Starts a server on a free port and returns its address.
    pub(super) fn serve(&self) -> Result<(Serving, String)> {
        let args = ["serve", "--json", "--listen", "127.0.0.1:0", "--tls-listen", "off"];
        let mut serve = self.command(&args);
        let (serving, ready) = Serving::start(serve.env("YORE_LOG", "error"))?;
        let ready: Value = serde_json::from_str(&ready)?;
        let url = ready["http"].as_str().context("the server says where it is")?;
        Ok((serving, url.to_owned()))
    }
}

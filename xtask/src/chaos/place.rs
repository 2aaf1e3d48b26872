//! A directory with a vault, the command on it, and the server that is to suffer.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::room::Room;
use super::wire::Request;

/// OMP is spoken in clear text only where it is asked for.
const CONFIG: &str = "[omp]\ninsecure_loopback = true\n";
/// How long a server may take to be ready.
const PATIENCE: Duration = Duration::from_secs(60);

/// A directory of its own, with everything that a server and its commands need.
#[derive(Debug)]
pub(super) struct Place {
    yore: PathBuf,
    dir: PathBuf,
    /// Mounts that the programs of this place see and nobody else.
    pub(super) room: Option<Room>,
    /// What its commands find in their surroundings: they live by the same clock as its servers.
    pub(super) surroundings: Vec<(&'static str, String)>,
}

impl Place {
    /// Makes an empty one.
    pub(super) fn new(yore: &Path, dir: PathBuf) -> Result<Self> {
        if dir.exists() {
            fs::remove_dir_all(&dir)?;
        }
        fs::create_dir_all(dir.join("data"))?;
        let key = dir.join("master.key");
        fs::write(&key, "07".repeat(32))?;
        for (path, mode) in [(dir.join("data"), 0o700), (key, 0o600)] {
            fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))?;
        }
        fs::write(dir.join("config.toml"), CONFIG)?;
        Ok(Self { yore: yore.to_owned(), dir, room: None, surroundings: Vec::new() })
    }

    /// Another one with a copy of the data, as it lies on the disk now.
    pub(super) fn copy(&self, dir: PathBuf) -> Result<Self> {
        let copy = Self::new(&self.yore, dir)?;
        let from = format!("{}/.", self.data().display());
        let done = Command::new("cp").args(["-a", &from]).arg(copy.data()).status()?;
        ensure!(done.success(), "cannot copy {from}");
        Ok(copy)
    }

    pub(super) fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// Where this program finds a path of the place's programs.
    pub(super) fn seen(&self, path: &Path) -> PathBuf {
        self.room.as_ref().map_or_else(|| path.to_owned(), |room| room.seen(path))
    }

    pub(super) fn name(&self) -> String {
        self.dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// What the servers of this place have logged.
    pub(super) fn log(&self) -> String {
        fs::read(self.path("log"))
            .map(|log| String::from_utf8_lossy(&log).into_owned())
            .unwrap_or_default()
    }

    /// The program itself, perhaps behind others that start it.
    fn program(&self, before: &[String]) -> Command {
        let mut line: Vec<String> = self.room.as_ref().map(Room::enter).unwrap_or_default();
        line.extend_from_slice(before);
        line.push(self.yore.display().to_string());
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]);
        // Nothing of whoever runs this may change what the server does.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("YORE_") {
                command.env_remove(name);
            }
        }
        command.env("HOME", &self.dir).env("NO_COLOR", "1").stdin(Stdio::null());
        command
    }

    fn bound(&self, command: &mut Command) {
        command.arg("--data").arg(self.data());
        command.arg("--key-file").arg(self.path("master.key"));
        command.arg("--config").arg(self.path("config.toml"));
    }

    /// Runs a command to its end.
    pub(super) fn run(&self, args: &[&str]) -> Result<Output> {
        let mut command = self.program(&[]);
        command.envs(self.surroundings.iter().cloned());
        self.bound(command.args(args));
        command.output().with_context(|| format!("cannot run yore {}", args.join(" ")))
    }

    /// Runs a command that must do well, and returns what it prints.
    pub(super) fn ok(&self, args: &[&str]) -> Result<String> {
        let done = self.run(args)?;
        let said = String::from_utf8_lossy(&done.stdout).trim().to_owned();
        let why = String::from_utf8_lossy(&done.stderr);
        ensure!(
            done.status.success(),
            "yore {} ended with {}: {said} {why}",
            args.join(" "),
            done.status
        );
        Ok(said)
    }

    /// Starts a server and waits until it is ready.
    pub(super) fn serve(&self, manner: &Manner) -> Result<Server> {
        let started = Server::start(&mut self.serving(manner)?);
        started.with_context(|| self.log().lines().last().unwrap_or_default().to_owned())
    }

    /// Starts a server and kills it after a moment, whatever it did until then.
    pub(super) fn kill_while_starting(&self, manner: &Manner, life: Duration) -> Result<()> {
        let mut child = self.serving(manner)?.stdout(Stdio::null()).spawn()?;
        std::thread::sleep(life);
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    fn serving(&self, manner: &Manner) -> Result<Command> {
        let log = OpenOptions::new().create(true).append(true).open(self.path("log"))?;
        let mut command = self.program(&manner.before);
        command.args(["serve", "--json", "--listen", "127.0.0.1:0", "--tls-listen", "off"]);
        self.bound(&mut command);
        command.envs(manner.surroundings.iter().cloned()).env("YORE_LOG", "info").stderr(log);
        Ok(command)
    }

    /// Removes it, with everything in it.
    pub(super) fn remove(self) -> Result<()> {
        drop(self.room);
        Ok(fs::remove_dir_all(&self.dir)?)
    }
}

/// How a server is started: behind which programs, in which surroundings.
#[derive(Clone, Debug, Default)]
pub(super) struct Manner {
    pub(super) before: Vec<String>,
    pub(super) surroundings: Vec<(&'static str, String)>,
}

/// A server; it is killed with its value.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    /// Where it speaks plain HTTP.
    pub(super) address: String,
    /// The owner's token, which only a first start tells.
    pub(super) owner: Option<String>,
    /// From its start until it was ready.
    pub(super) took: Duration,
}

impl Server {
    fn start(command: &mut Command) -> Result<Self> {
        let begun = Instant::now();
        let child = command.stdout(Stdio::piped()).spawn();
        let child = child.with_context(|| format!("cannot start {command:?}"))?;
        let mut server = Self { child, address: String::new(), owner: None, took: Duration::ZERO };
        let output = server.child.stdout.take().context("the output was asked for")?;
        let (said, heard) = mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            // Whoever stopped waiting hears nothing.
            let read = BufReader::new(output).read_line(&mut line);
            drop(said.send(read.map(|_| line)));
        });
        let line = match heard.recv_timeout(PATIENCE) {
            Ok(line) => line?,
            Err(_) => bail!("the server was not ready after {} s", PATIENCE.as_secs()),
        };
        if line.trim().is_empty() {
            bail!("the server ended with {} before it was ready", server.child.wait()?);
        }
        let ready: Value = serde_json::from_str(&line)?;
        let url = ready["http"].as_str().context("the server says where it is")?;
        server.address = url.trim_start_matches("http://").to_owned();
        server.owner = ready["owner_token"].as_str().map(str::to_owned);
        while begun.elapsed() < PATIENCE {
            if Request::get("/ready")
                .send(&server.address, "")
                .is_ok_and(|reply| reply.status == 200)
            {
                server.took = begun.elapsed();
                return Ok(server);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        bail!("the server does not say that it is ready");
    }

    /// Kills it, as a power cut would.
    pub(super) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end and waits; it must end well.
    pub(super) fn stop(&mut self) -> Result<()> {
        let pid = self.pid().to_string();
        Command::new("kill").args(["-TERM", &pid]).status()?;
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait()? {
                ensure!(
                    status.success(),
                    "the server ended with {status} when it was asked to end"
                );
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        bail!("the server did not end when it was asked to")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

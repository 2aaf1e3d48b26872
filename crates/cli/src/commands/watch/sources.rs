//! `yore watch sources`: takes in what programs on this machine keep, and exports that appear.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use yore_domain::{Span, Timestamp};
use yore_engine::Clock;
use yore_server::{SystemClock, interrupted};

use crate::app::App;
use crate::commands::import::{self, Sum};
use crate::failure::{Exit, Failure, Result};
use crate::output::{DIM, GOOD};
use crate::when;

/// An export that was written to so lately is looked at again later.
const SETTLED: Span = Span::seconds(3);
/// The file beside the vault that says how sources looked: their names and sizes, no words.
const KEPT: &str = "watched.json";
/// Files of one source that are looked at; more are a sign of a wrong folder.
const FILES: usize = 200_000;

/// Options of `yore watch sources`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Other files and folders to keep in step with
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// A folder in which exports appear
    #[arg(long, value_name = "DIR")]
    downloads: Option<PathBuf>,
    /// How long to wait between two looks
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = when::span)]
    every: Span,
    /// Look once and end
    #[arg(long)]
    pub(super) once: bool,
    /// Leave out the programs of this machine
    #[arg(long)]
    no_programs: bool,
    /// Draw nothing to remember from what was said
    #[arg(long)]
    no_proposals: bool,
    /// Read everything again, also what did not change since it was last taken in
    #[arg(long)]
    again: bool,
}

/// Something to keep in step with.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    name: String,
    paths: Vec<PathBuf>,
}

/// What a look at one source came to.
#[derive(Debug, Serialize)]
struct Seen<'a> {
    source: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    sum: Option<&'a Sum>,
}

pub(super) async fn run(app: &App, args: Args) -> Result {
    // How a server elsewhere fares cannot be known from here: then everything is read once.
    let kept = if app.is_local() { Some(app.config()?.data.join(KEPT)) } else { None };
    let known = kept.as_deref().filter(|_| !args.again).map(remembered).unwrap_or_default();
    let mut watch = Watch { app, args: &args, known, kept };
    if args.once {
        return watch.look().await;
    }
    let rest = Duration::from_micros(args.every.micros().unsigned_abs().max(1_000_000));
    loop {
        tokio::select! {
            looked = watch.look() => looked?,
            () = interrupted() => return Ok(()),
        }
        tokio::select! {
            () = tokio::time::sleep(rest) => {}
            () = interrupted() => return Ok(()),
        }
    }
}

/// How a source looked when it was last taken in: the number of its files, their bytes and the
/// newest time among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    files: usize,
    bytes: u64,
    newest: Option<SystemTime>,
}

/// How every source looked when it was last taken in; nothing when nothing is known.
fn remembered(path: &Path) -> BTreeMap<String, Stamp> {
    let bytes = std::fs::read(path).unwrap_or_default();
    // What is damaged is as good as nothing: then everything is read once more.
    serde_json::from_slice(&bytes).unwrap_or_default()
}

struct Watch<'a> {
    app: &'a App,
    args: &'a Args,
    known: BTreeMap<String, Stamp>,
    /// Where that is kept, so that a restart reads only what changed.
    kept: Option<PathBuf>,
}

impl Watch<'_> {
    /// Takes in every source that changed since it was last looked at.
    async fn look(&mut self) -> Result {
        for place in self.places()? {
            let stamp = stamp(&place.paths);
            if stamp.files == 0 || self.known.get(&place.name) == Some(&stamp) {
                continue;
            }
            match import::sources(self.app, place.paths.clone(), self.args.no_proposals).await {
                Ok(sum) => {
                    self.tell(&place.name, &sum)?;
                    // A file that could not be read is tried again after a restart.
                    let whole = sum.is_whole();
                    self.known.insert(place.name.clone(), stamp);
                    self.keep(&place.name, whole)?;
                }
                // Without the vault nothing can go on; a source that cannot be read can wait.
                Err(failure) if is_vaults(&failure) => return Err(failure),
                Err(failure) => {
                    let error = Some(failure.message.as_str());
                    let seen = Seen { source: &place.name, error, sum: None };
                    if self.app.out.json {
                        self.app.out.row(&seen)?;
                    } else {
                        self.app.out.remark(format!("{}: {}", place.name, failure.message));
                    }
                }
            }
        }
        Ok(())
    }

    fn keep(&self, name: &str, whole: bool) -> Result {
        let Some(path) = &self.kept else { return Ok(()) };
        let mut kept = self.known.clone();
        if !whole {
            kept.remove(name);
        }
        let bytes =
            serde_json::to_vec(&kept).map_err(|error| Failure::failed(error.to_string()))?;
        let fresh = path.with_extension("new");
        std::fs::write(&fresh, bytes).map_err(Failure::file(fresh.display()))?;
        std::fs::rename(&fresh, path).map_err(Failure::file(path.display()))
    }

    fn places(&self) -> Result<Vec<Place>> {
        let mut places = Vec::new();
        if !self.args.no_programs {
            places.extend(programs(&Home::here()?));
        }
        let shown =
            |path: &PathBuf| Place { name: path.display().to_string(), paths: vec![path.clone()] };
        places.extend(self.args.paths.iter().map(shown));
        if let Some(folder) = &self.args.downloads {
            places.extend(exports(folder)?.iter().map(shown));
        }
        Ok(places)
    }

    fn tell(&self, source: &str, sum: &Sum) -> Result {
        if self.app.out.json {
            return self.app.out.row(&Seen { source, error: None, sum: Some(sum) });
        }
        match sum.news() {
            Some(news) => self.app.out.line(format!("{GOOD}{source}{GOOD:#}  {news}")),
            None => self.app.out.line(format!("{DIM}{source}  nothing new{DIM:#}")),
        }
    }
}

/// Whether it is the vault that fails, and not what is read.
fn is_vaults(failure: &Failure) -> bool {
    matches!(failure.exit, Exit::Unreachable | Exit::NotAuthorised | Exit::Damaged)
}

/// Where programs keep their things.
#[derive(Debug)]
struct Home {
    /// The person's own folder.
    home: PathBuf,
    /// Where programs with windows keep theirs.
    applications: PathBuf,
}

impl Home {
    fn here() -> Result<Self> {
        let home = std::env::home_dir().ok_or_else(|| {
            Failure::usage("no home directory is known").hint("add --no-programs, and name paths")
        })?;
        let named = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty());
        let applications = if cfg!(target_os = "macos") {
            home.join("Library").join("Application Support")
        } else if cfg!(windows) {
            named("APPDATA").map_or_else(|| home.join("AppData").join("Roaming"), PathBuf::from)
        } else {
            named("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from)
        };
        Ok(Self { home, applications })
    }
}

/// The programs whose conversations lie on this machine, those that are here.
fn programs(at: &Home) -> Vec<Place> {
    let home = |path: &str| at.home.join(path);
    let application = |path: &str| at.applications.join(path);
    let known: [(&str, Vec<PathBuf>); 6] = [
        ("claude-code", vec![home(".claude/projects")]),
        (
            "codex",
            vec![
                home(".codex/sessions"),
                home(".codex/archived_sessions"),
                home(".codex/session_index.jsonl"),
            ],
        ),
        (
            "cursor",
            vec![
                application("Cursor/User/globalStorage/state.vscdb"),
                application("Cursor/User/workspaceStorage"),
                home(".cursor/projects"),
                home(".cursor/chats"),
            ],
        ),
        (
            "lm-studio",
            vec![home(".lmstudio/conversations"), home(".cache/lm-studio/conversations")],
        ),
        (
            "ollama",
            vec![
                home(".ollama/db.sqlite"),
                home(".ollama/history"),
                application("Ollama/db.sqlite"),
                home("AppData/Local/Ollama/db.sqlite"),
            ],
        ),
        (
            "vscode",
            vec![
                application("Code/User/workspaceStorage"),
                application("Code/User/globalStorage/emptyWindowChatSessions"),
            ],
        ),
    ];
    let there = |(name, paths): (&str, Vec<PathBuf>)| {
        let paths: Vec<PathBuf> = paths.into_iter().filter(|path| path.exists()).collect();
        (!paths.is_empty()).then(|| Place { name: name.to_owned(), paths })
    };
    known.into_iter().filter_map(there).collect()
}

/// The zips of a folder that hold conversations and are no longer written to.
fn exports(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = || Failure::file(folder.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed())? {
        let path = entry.map_err(failed())?.path();
        let is_zip = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("zip"));
        let written = path.metadata().and_then(|about| about.modified());
        let settled = written.is_ok_and(|at| is_settled(at, SystemClock::default().now()));
        if is_zip && settled && import::is_export(&path) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Whether something was written long enough ago to be whole.
fn is_settled(written: SystemTime, now: Timestamp) -> bool {
    let since = written.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let written = Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX));
    written.plus(SETTLED) <= now
}

/// How paths and everything below them look now. What cannot be seen counts as not there.
fn stamp(paths: &[PathBuf]) -> Stamp {
    let mut stamp = Stamp::default();
    let mut waiting = paths.to_vec();
    while let Some(path) = waiting.pop() {
        let Ok(about) = path.symlink_metadata() else { continue };
        if about.is_dir() {
            let Ok(entries) = std::fs::read_dir(&path) else { continue };
            waiting.extend(entries.flatten().map(|entry| entry.path()));
        } else if stamp.files < FILES {
            stamp.files += 1;
            stamp.bytes += about.len();
            stamp.newest = stamp.newest.max(about.modified().ok());
        }
    }
    stamp
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_named_when_they_are_here_and_a_change_is_noticed() {
        let place = tempfile::tempdir().unwrap();
        let at = Home { home: place.path().to_owned(), applications: place.path().join("apps") };
        assert_eq!(programs(&at), []);
        let sessions = place.path().join(".codex/sessions/2026");
        std::fs::create_dir_all(&sessions).unwrap();
        std::fs::create_dir_all(at.applications.join("Code/User/workspaceStorage")).unwrap();
        let found = programs(&at);
        let names: Vec<&str> = found.iter().map(|place| place.name.as_str()).collect();
        assert_eq!(names, ["codex", "vscode"]);
        let before = stamp(&found[0].paths);
        assert_eq!(before.files, 0);
        std::fs::write(sessions.join("rollout.jsonl"), "{}").unwrap();
        let after = stamp(&found[0].paths);
        assert_eq!((after.files, after.bytes), (1, 2));
        assert_eq!(after, stamp(&found[0].paths));
    }
}

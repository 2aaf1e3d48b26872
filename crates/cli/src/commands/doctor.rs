//! `yore doctor`: checks keys, permissions, storage, audit chain and indexes.

use std::path::Path;

use anstyle::Style;
use serde::Serialize;
use yore_client::api;
use yore_client::input::{self, Nothing};
use yore_domain::query::{Corpus, Cutoff, Effort, Filter, Recall};
use yore_server::backup::{Every, deliveries};
use yore_server::{Config, Note, examine_database, place};
use yore_store_postgres::doctor::{Finding, Verdict};

use crate::app::{App, Session};
use crate::failure::{Exit, Failure, Result};
use crate::local::key_file;
use crate::output::{BAD, GOOD, Table, WARN, bytes, cell, styled};
use crate::progress;

/// Options of `yore doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore doctor
  yore doctor --repair
  yore doctor --json | jq '.checks[] | select(.state != \"ok\")'

--repair rebuilds what is derived, such as the indexes. It never touches what you stored. Where vaults
lie in a database, that is examined, too: how it is reached, the walls between vaults, replication,
connections, indexes. The command ends with 0 when nothing is wrong, with 7 when the database cannot
be reached, with 8 when data, key or walls are damaged.")]
pub(crate) struct Args {
    /// Mend what can be mended
    #[arg(long)]
    repair: bool,
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    Warn,
    Fail,
}

#[derive(Debug, Serialize)]
struct Check {
    what: &'static str,
    state: State,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

#[derive(Debug, Default, Serialize)]
struct Findings {
    checks: Vec<Check>,
    #[serde(skip)]
    worst: Option<Exit>,
}

impl Findings {
    fn ok(&mut self, what: &'static str, found: impl Into<String>) {
        self.checks.push(Check { what, state: State::Ok, found: found.into(), advice: None });
    }

    fn warn(&mut self, what: &'static str, found: impl Into<String>, advice: impl Into<String>) {
        let advice = Some(advice.into());
        self.checks.push(Check { what, state: State::Warn, found: found.into(), advice });
    }

    fn fail(&mut self, what: &'static str, failure: Failure) {
        self.worst.get_or_insert(failure.exit);
        let (found, advice) = (failure.message, failure.hint);
        self.checks.push(Check { what, state: State::Fail, found, advice });
    }
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let bar = progress::through(&app.out, 8, "checking");
    let mut findings = Findings::default();
    if app.is_local() {
        match app.config() {
            Ok(config) => {
                findings.ok("configuration", app.config_file()?.display().to_string());
                surroundings(&mut findings, &config);
            }
            Err(failure) => findings.fail("configuration", failure),
        }
    }
    bar.inc(4);
    if app.is_local() && findings.worst.is_none() {
        database(&mut findings, app).await?;
    }
    if findings.worst.is_none() {
        match app.session().await {
            Ok(mut session) => {
                findings.ok("vault", "it opens, and its schema is known");
                bar.inc(1);
                vault(&mut findings, &mut session, args.repair).await;
            }
            Err(failure) => findings.fail("vault", failure),
        }
    }
    bar.finish_and_clear();
    app.out.either(&findings, |findings| show(app, findings))?;
    let failed = findings.checks.iter().filter(|check| check.state == State::Fail).count();
    match findings.worst {
        None => Ok(()),
        Some(exit) => Err(Failure::new(exit, format!("{failed} of the checks failed"))
            .hint("the table says what to do")),
    }
}

fn show(app: &App, findings: &Findings) -> Result {
    let mut table = Table::new(&["CHECK", "STATE", "FOUND"]);
    for check in &findings.checks {
        let (word, style): (&str, Style) = match check.state {
            State::Ok => ("ok", GOOD),
            State::Warn => ("warn", WARN),
            State::Fail => ("fail", BAD),
        };
        let advice = check.advice.as_ref().map(|advice| format!("\n→ {advice}"));
        let found = format!("{}{}", check.found, advice.unwrap_or_default());
        table.push([cell(check.what), styled(word, style), cell(found)]);
    }
    app.out.table(&table)
}

/// Whether copies reach the places they are to go to.
fn copies(findings: &mut Findings, config: &Config) {
    let folder = config.backup.folder(&config.data);
    let deliveries = match deliveries(&folder) {
        Ok(deliveries) => deliveries,
        Err(error) => return findings.fail("copies", Failure::file(folder.display())(error)),
    };
    let failing: Vec<String> = deliveries
        .iter()
        .filter_map(|(to, one)| Some((to, one.failed.as_ref()?)))
        .map(|(to, failed)| {
            format!("{to}: failed {} times since {}: {}", failed.times, failed.since, failed.why)
        })
        .collect();
    if failing.is_empty() {
        let told = match config.backup.every {
            Every::Off => "none are made by themselves".to_owned(),
            every @ (Every::Daily | Every::Weekly | Every::Monthly) => {
                format!("{}, nothing failed", every.as_str())
            }
        };
        findings.ok("copies", told);
    } else {
        findings.warn("copies", failing.join("; "), "a running server tries again by itself");
    }
}

/// How the database is, when the vaults are in one.
async fn database(findings: &mut Findings, app: &App) -> Result {
    let config = app.config()?;
    for found in examine_database(&config).await {
        let Finding { what, verdict, found, advice } = found;
        match (verdict, advice) {
            (Verdict::Fine, _) => findings.ok(what, found),
            (Verdict::Doubtful, advice) => findings.warn(what, found, advice.unwrap_or_default()),
            (Verdict::Wrong, advice) => {
                let exit = if what == "database" { Exit::Unreachable } else { Exit::Damaged };
                let failure = Failure::new(exit, found);
                findings.fail(what, failure.hint(advice.unwrap_or_default()));
            }
        }
    }
    Ok(())
}

/// What can be seen without opening the vault.
fn surroundings(findings: &mut Findings, config: &Config) {
    let data = &config.data;
    match std::fs::metadata(data) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            findings.ok("data directory", format!("{}: made at the first use", data.display()));
        }
        Err(error) => findings.fail("data directory", Failure::file(data.display())(error)),
        Ok(about) if !about.is_dir() => findings.fail(
            "data directory",
            Failure::failed(format!("{} is not a directory", data.display())),
        ),
        Ok(_) => private(findings, "data directory", data, 0o700),
    }
    copies(findings, config);
    match key_file(config) {
        None => findings.ok("master key", "from the environment"),
        Some(path) if path.exists() => private(findings, "master key", &path, 0o600),
        Some(path) if data.join("master.json").exists() => findings.fail(
            "master key",
            Failure::new(Exit::Damaged, format!("{} is not there", path.display()))
                .hint("bring it back from your copy: without it the vault cannot be opened"),
        ),
        Some(path) => {
            findings.ok("master key", format!("{}: made at the first use", path.display()))
        }
    }
    match Note::read(data) {
        Some(note) => {
            findings.ok("lock", format!("held by yore {} (process {})", note.version, note.pid));
        }
        None if place::lock(data).exists() => findings.ok("lock", "free, or held by a command"),
        None => findings.ok("lock", "free"),
    }
}

#[cfg(unix)]
fn private(findings: &mut Findings, what: &'static str, path: &Path, wanted: u32) {
    use std::os::unix::fs::PermissionsExt;
    match std::fs::metadata(path) {
        Err(error) => findings.fail(what, Failure::file(path.display())(error)),
        Ok(about) => {
            let mode = about.permissions().mode() & 0o777;
            let shown = format!("{} ({mode:o})", path.display());
            if mode & 0o077 == 0 {
                findings.ok(what, shown);
            } else {
                let advice = format!("others can reach it: chmod {wanted:o} {}", path.display());
                findings.warn(what, shown, advice);
            }
        }
    }
}

#[cfg(not(unix))]
fn private(findings: &mut Findings, what: &'static str, path: &Path, _wanted: u32) {
    findings.ok(what, path.display().to_string());
}

/// What the server says about the vault.
async fn vault(findings: &mut Findings, session: &mut Session<'_>, repair: bool) {
    match session.call::<api::Check>(input::Check { repair }).await {
        Err(failure) => findings.fail("storage", failure),
        Ok(health) => {
            if health.storage.is_empty() {
                findings.ok("storage", "every page is sound");
            } else {
                let faults = health.storage.join("; ");
                let failure = Failure::new(Exit::Damaged, faults)
                    .hint("put a backup in its place with yore restore");
                findings.fail("storage", failure);
            }
            let audit = &health.audit;
            if audit.faults.is_empty() {
                findings.ok(
                    "audit chain",
                    format!("{} entries, {} checkpoints", audit.entries, audit.checkpoints),
                );
            } else {
                let count = audit.faults.len();
                let failure = Failure::new(Exit::Damaged, format!("{count} faults"))
                    .hint("yore audit verify lists them");
                findings.fail("audit chain", failure);
            }
            match (health.indexes.is_empty(), health.repaired.is_empty()) {
                (true, true) => findings.ok("indexes", "they say what the rows say"),
                (_, false) => {
                    findings.ok("indexes", format!("mended: {}", health.repaired.join("; ")))
                }
                (false, true) => findings.warn(
                    "indexes",
                    health.indexes.join("; "),
                    "yore doctor --repair builds them anew",
                ),
            }
        }
    }
    match session.call::<api::Census>(Nothing {}).await {
        Err(failure) => findings.fail("contents", failure),
        Ok(counts) => {
            findings.ok(
                "contents",
                format!(
                    "{} memories, {} conversations, {} messages, {}",
                    counts.memories,
                    counts.conversations,
                    counts.messages,
                    bytes(counts.bytes)
                ),
            );
            if counts.pending > 0 {
                findings.warn(
                    "approvals",
                    format!("{} wait", counts.pending),
                    "yore review list shows them",
                );
            }
        }
    }
    memories(findings, session).await;
    models(findings, session).await;
}

/// How the memories are: nothing of it is a fault.
async fn memories(findings: &mut Findings, session: &mut Session<'_>) {
    match session.call::<api::Vitals>(input::Vitals { agent: None, user: None }).await {
        Err(failure) => findings.fail("memories", failure),
        Ok(signs) => {
            let pairs = match (signs.drifting, signs.drifting_more) {
                (1, false) => "1 pair".to_owned(),
                (pairs, false) => format!("{pairs} pairs"),
                (pairs, true) => format!("{pairs} or more pairs"),
            };
            let kinds = signs.kinds.iter().map(|(kind, count)| format!("{kind} {count}"));
            let kinds: Vec<String> = kinds.collect();
            findings.ok(
                "memories",
                format!(
                    "{} live, {} ({:.0} %) not recalled in 30 days, {pairs} nearly the same; {}",
                    signs.live,
                    signs.stale,
                    signs.stale_percent,
                    if kinds.is_empty() { "none of any kind".to_owned() } else { kinds.join(", ") }
                ),
            );
        }
    }
}

async fn models(findings: &mut Findings, session: &mut Session<'_>) {
    let recall = Recall {
        query: "is everything in order".to_owned(),
        corpus: Corpus::Memories,
        filter: Filter::default(),
        near: Default::default(),
        limit: 1,
        effort: Effort::Balanced,
        prefer: Vec::new(),
        cutoff: Cutoff::Calibrated,
    };
    match session.call::<api::Recall>(recall).await {
        Err(failure) => findings.fail("models", failure),
        Ok(found) => findings.ok(
            "models",
            format!("a question was embedded in {} ms", found.embedded_us.div_ceil(1000)),
        ),
    }
}

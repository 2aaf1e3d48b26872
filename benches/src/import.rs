//! Importing a large export by the shipped binary: time, memory, and a second time.
//!
//! The export is made by somebody else and named; its `truth.json`, when there is one, says what
//! must be found afterwards. Beside the import stand the limits of the machine: reading the same
//! export without a vault, and inserting its messages into a plain encrypted file in batches.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rusqlite::{Connection, params};
use serde_json::{Value, json};
use yore_archive::{Item, Limits, Source};

use crate::meter::{self, Took, round};

/// How often the child is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// Messages of one transaction of the plain insert.
const BATCH: usize = 500;
/// How long a server may take to open the vault.
const OPENING: Duration = Duration::from_secs(120);

/// Arguments of `yore-bench import`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The export: a file, a folder or a zip.
    export: PathBuf,
    /// What the generator says is in it.
    #[arg(long)]
    truth: Option<PathBuf>,
    /// The binary to measure.
    #[arg(long)]
    binary: PathBuf,
    /// Where vaults may be made; the largest needs about twice the export.
    #[arg(long)]
    work: PathBuf,
    /// Write everything measured into this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// The commit that is measured.
    #[arg(long, default_value = "unknown")]
    commit: String,
}

/// What a child took.
#[derive(Clone, Copy, Debug)]
struct Cost {
    wall: Duration,
    cpu: Duration,
    peak_kib: u64,
}

impl Cost {
    fn to_json(self) -> Value {
        json!({
            "wall_s": round(self.wall.as_secs_f64()),
            "cpu_s": round(self.cpu.as_secs_f64()),
            "peak_mb": round(self.peak_kib as f64 * 1024.0 / 1e6),
        })
    }
}

/// Measures, and prints what it came to.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    std::fs::create_dir_all(&arguments.work)?;
    let work = arguments.work.join(format!("import-{}", std::process::id()));
    std::fs::create_dir_all(&work)?;
    let measured = measure(arguments, &work);
    std::fs::remove_dir_all(&work)?;
    let measured = measured?;
    println!("{}", serde_json::to_string_pretty(&measured)?);
    if let Some(path) = &arguments.json {
        std::fs::write(path, measured.to_string())?;
    }
    Ok(())
}

fn measure(arguments: &Arguments, work: &Path) -> Result<Value> {
    let (read, texts) = plain_read(&arguments.export)?;
    let insert = plain_insert(&work.join("plain.db"), &texts)?;
    let messages = texts.len();
    drop(texts);
    let limit = read.cpu + insert.cpu;
    let import = || {
        let export = arguments.export.to_str().context("the path is not UTF-8 text")?;
        child(arguments, work, &["import", "--no-proposals", "--json", export])
    };
    let (first, said) = import()?;
    let (second, again) = import()?;
    ensure!(again["imported"] == 0 && again["merged"] == 0, "the second import changed something");
    ensure!(said["skipped"].as_array().is_some_and(Vec::is_empty), "something was passed over");
    let empty = Server::start(arguments, &work.join("empty"))?.stop()?;
    let server = Server::start(arguments, work)?;
    let needles = match &arguments.truth {
        Some(path) => needles(arguments, work, path, &said)?,
        None => Value::Null,
    };
    let full = server.stop()?;
    let index_kib = full.saturating_sub(empty);
    let own_kib = first.peak_kib.saturating_sub(index_kib);
    let megabytes = |kib: u64| round(kib as f64 * 1024.0 / 1e6);
    let times = first.cpu.as_secs_f64() / second.cpu.as_secs_f64().max(1e-9);
    let share = limit.as_secs_f64() / first.cpu.as_secs_f64().max(1e-9);
    let report = |held: bool| if held { "held" } else { "missed" };
    Ok(json!({
        "commit": arguments.commit,
        "messages": messages,
        "plain_read_cpu_s": round(read.cpu.as_secs_f64()),
        "plain_insert_cpu_s": round(insert.cpu.as_secs_f64()),
        "first": first.to_json(),
        "second": second.to_json(),
        "found": said["found"],
        "needles": needles,
        "bars": {
            "second_import_3_times_faster": {"value": round(times), "bar": report(times >= 3.0)},
            "half_of_the_plain_throughput": {"value": round(share), "bar": report(share >= 0.5)},
            "import_itself_under_300_mb": {
                "value": megabytes(own_kib),
                "bar": report(own_kib * 1024 < 300_000_000),
                "peak_mb": megabytes(first.peak_kib),
                "index_mb": megabytes(index_kib),
                "note": "the index is what a server holds with the vault beyond one without",
            },
        },
    }))
}

/// Reads the export without a vault; returns what each message says.
fn plain_read(export: &Path) -> Result<(Took, Vec<String>)> {
    let took = meter::start();
    let source = Source::open(&[export.to_owned()], Limits::default())?;
    let mut texts = Vec::new();
    yore_archive::read(&source, &mut |item| {
        if let Item::Conversation(talk) = item {
            texts.extend(talk.messages.into_iter().map(|message| message.text));
        }
        Ok(())
    })?;
    Ok((took(), texts))
}

/// Inserts the texts into an encrypted file, some at once.
fn plain_insert(path: &Path, texts: &[String]) -> Result<Took> {
    let mut connection = Connection::open(path)?;
    let key = "2b7e151628aed2a6abf7158809cf4f3c2b7e151628aed2a6abf7158809cf4f3c";
    connection.pragma_update(None, "key", format!("x'{key}'"))?;
    connection.execute_batch("PRAGMA cipher_hmac_algorithm = HMAC_SHA256")?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection
        .execute_batch("CREATE TABLE message (row INTEGER PRIMARY KEY, text TEXT NOT NULL)")?;
    let took = meter::start();
    for some in texts.chunks(BATCH) {
        let transaction = connection.transaction()?;
        {
            let mut insert =
                transaction.prepare_cached("INSERT INTO message (text) VALUES (?1)")?;
            for text in some {
                insert.execute(params![text])?;
            }
        }
        transaction.commit()?;
    }
    Ok(took())
}

/// Counts as the generator says, and every needle is found.
fn needles(arguments: &Arguments, work: &Path, truth: &Path, said: &Value) -> Result<Value> {
    let truth: Value = serde_json::from_slice(&std::fs::read(truth)?)?;
    ensure!(
        truth["conversations"] == said["exports"]["conversations"],
        "{} conversations were expected, {} read",
        truth["conversations"],
        said["exports"]["conversations"]
    );
    let all = truth["needles"].as_array().context("the truth names no needles")?;
    let tokens = all.iter().filter_map(|needle| needle["token"].as_str());
    let (mut found, mut missed) = (0, Vec::new());
    for token in tokens {
        let (_, hits) =
            child(arguments, work, &["search", "--in", "conversations", "--json", token])?;
        if hits.to_string().contains(token) {
            found += 1;
        } else {
            missed.push(token.to_owned());
        }
    }
    Ok(json!({"searched": found + missed.len(), "found": found, "missed": missed}))
}

/// Runs the binary on the vault and looks at it while it runs.
fn child(arguments: &Arguments, work: &Path, args: &[&str]) -> Result<(Cost, Value)> {
    let begin = Instant::now();
    let out = work.join("out.json");
    let mut running =
        command(arguments, work).args(args).stdout(std::fs::File::create(&out)?).spawn()?;
    let (mut cpu, mut peak_kib) = (Duration::ZERO, 0);
    while running.try_wait()?.is_none() {
        if let Ok((spent, peak)) = looked_at(&running) {
            (cpu, peak_kib) = (spent, peak);
        }
        std::thread::sleep(LOOK);
    }
    let status = running.wait()?;
    ensure!(status.success(), "{} {args:?} failed: {status}", arguments.binary.display());
    let said = serde_json::from_slice(&std::fs::read(&out)?)?;
    Ok((Cost { wall: begin.elapsed(), cpu, peak_kib }, said))
}

fn command(arguments: &Arguments, work: &Path) -> Command {
    let mut command = Command::new(&arguments.binary);
    command
        .env("HOME", work)
        .env("XDG_CONFIG_HOME", work.join("config"))
        .env("YORE_DATA", work.join("data"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// A server on the vault, so that a search does not open it anew each time.
struct Server(Child);

impl Server {
    /// Starts one, and waits until it has answered.
    fn start(arguments: &Arguments, work: &Path) -> Result<Self> {
        std::fs::create_dir_all(work)?;
        let listen = ["--listen", "127.0.0.1:0", "--tls-listen", "127.0.0.1:0"];
        let mut this = Self(command(arguments, work).arg("serve").args(listen).spawn()?);
        let begin = Instant::now();
        let socket = work.join("data").join("run").join("yore.sock");
        while !socket.exists() {
            ensure!(this.0.try_wait()?.is_none(), "the server did not stay");
            ensure!(begin.elapsed() < OPENING, "the server did not open the vault");
            std::thread::sleep(LOOK);
        }
        child(arguments, work, &["search", "--in", "conversations", "--json", "nothing"])?;
        Ok(this)
    }

    /// Ends it; returns what it held last, in KiB.
    fn stop(mut self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let held = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let held = held.context("no VmRSS")?.trim().trim_end_matches(" kB").parse()?;
        self.0.kill()?;
        self.0.wait()?;
        Ok(held)
    }
}

/// CPU time and the most memory of a child so far, as the kernel tells.
fn looked_at(child: &Child) -> Result<(Duration, u64)> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    let peak = line.trim().trim_end_matches(" kB").parse()?;
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id()))?;
    // The name may hold anything; the numbers begin behind its bracket.
    let (_, numbers) = stat.rsplit_once(')').context("no stat")?;
    let fields: Vec<&str> = numbers.split_whitespace().collect();
    let ticks = |place: usize| fields.get(place).and_then(|field| field.parse::<u64>().ok());
    let spent = ticks(11).zip(ticks(12)).context("no times")?;
    let per_second = rustix::param::clock_ticks_per_second();
    let spent = Duration::from_secs_f64((spent.0 + spent.1) as f64 / per_second as f64);
    Ok((spent, peak))
}

//! Killed at any moment, a vault loses nothing it acknowledged and doubles nothing.
//!
//! The test starts itself again as a child that writes from eight threads and prints every
//! acknowledged write. The parent kills it (SIGKILL) at a random point and opens the vault.
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that fails")]

#[path = "shared/support.rs"]
mod support;

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use support::*;
use yore_domain::change::What;
use yore_domain::memory::{Draft, Status, Version};
use yore_domain::query::{Filter, PageRequest};
use yore_domain::{MemoryId, Seq, TenantId, VaultId};
use yore_store::{Keeper, Store};

const CHILD: &str = "YORE_CRASH_CHILD";

/// The child: not a test of its own, it does nothing unless the parent asks.
#[test]
fn child() {
    let Ok(data) = std::env::var(CHILD) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let store = open(Path::new(&data));
    let permit = runtime.block_on(async { permit(vault(&store, "ada").await.id) });
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let (store, permit, runtime) = (store.clone(), permit.clone(), &runtime);
            scope.spawn(move || {
                for number in 0.. {
                    runtime.block_on(write_one(&store, &permit, writer, number));
                }
            });
        }
    });
}

/// Writes a memory, revises every third, erases every tenth; says so once it is acknowledged.
async fn write_one(
    store: &yore_store_sqlite::SqliteStore,
    permit: &yore_policy::Permit,
    writer: u32,
    number: u32,
) {
    let say = |line: String| {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{line}").unwrap();
        out.flush().unwrap();
    };
    let text = format!("crash phrase of writer {writer} number {number}");
    let version = Version::first(MemoryId::random(), Draft::text(text), now(), None);
    let memory = version.memory;
    // Said before: a write that was not acknowledged may still be there, once.
    say(format!("begin {memory}"));
    store.commit(permit, version_plan(permit, version.clone())).await.unwrap();
    say(format!("head {memory} 1"));
    if number.is_multiple_of(3) {
        revise(store, permit, &version, &format!("crash phrase revised {number}")).await;
        say(format!("head {memory} 2"));
    }
    if number % 10 == 9 {
        say(format!("erasing {memory}"));
        erase(store, permit, memory).await;
        say(format!("erased {memory}"));
    }
}

#[derive(Debug, Default)]
struct Told {
    head: u32,
    erasing: bool,
    erased: bool,
}

/// Runs a child, kills it after `life`, and returns what it acknowledged.
fn run_and_kill(data: &Path, life: Duration, told: &mut HashMap<MemoryId, Told>) -> usize {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture"])
        .env(CHILD, data)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    while !first.contains("begin") {
        first.clear();
        assert_ne!(lines.read_line(&mut first).unwrap(), 0, "the child ended by itself");
    }
    let reader = std::thread::spawn(move || {
        let mut all = vec![first];
        // A line cut short by the kill says nothing.
        all.extend(lines.lines().map_while(Result::ok));
        all
    });
    std::thread::sleep(life);
    child.kill().unwrap();
    child.wait().unwrap();
    let mut acknowledged = 0;
    for line in reader.join().unwrap() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(Ok(memory)) = words.get(1).map(|word| word.parse::<MemoryId>()) else { continue };
        let entry = told.entry(memory).or_default();
        match words[..] {
            ["head", _, number] => {
                entry.head = number.parse().unwrap();
                acknowledged += 1;
            }
            ["erasing", _] => entry.erasing = true,
            ["erased", _] => entry.erased = true,
            _ => {}
        }
    }
    acknowledged
}

async fn verify(data: &Path, told: &HashMap<MemoryId, Told>) {
    let store = open(data);
    let catalog = permit(VaultId::CATALOG);
    let info = store.find(&catalog, TenantId::DEFAULT, "ada").await.unwrap().expect("made first");
    let permit = permit(info.id);
    let health = store.check(&permit, false).await.unwrap();
    assert!(health.is_sound() && health.indexes.is_empty(), "{health:?}");

    let snapshot = store.snapshot(&permit).await.unwrap();
    for (id, told) in told {
        let history = snapshot.history(*id).await.unwrap();
        let head = u32::try_from(history.len()).unwrap();
        assert!(head >= told.head, "{id}: {head} of {told:?}");
        assert!(head <= told.head + 1, "{id}: {head} of {told:?}");
        let gone = history.last().is_some_and(|version| version.status == Status::Erased);
        assert!(!told.erased || gone, "{id}: {told:?}");
        assert!(!gone || told.erasing, "{id}: {told:?}");
    }

    // The outbox, folded, is the tables.
    let (mut folded, mut after) = (HashMap::new(), Seq(0));
    loop {
        let changes = snapshot.changes(after, 1000).await.unwrap();
        let Some(last) = changes.last() else { break };
        after = last.seq;
        for change in changes {
            match change.what {
                What::Memory { memory, head, status, .. } => folded.insert(memory, (head, status)),
                What::Erased { memory, head, .. } => folded.insert(memory, (head, Status::Erased)),
                other @ (What::Conversation { .. }
                | What::Message { .. }
                | What::ConversationErased { .. }
                | What::Profile { .. }
                | What::Hold { .. }
                | What::Grant { .. }
                | What::Job { .. }) => panic!("nothing else was written: {other:?}"),
            };
        }
    }
    for (id, (head, status)) in &folded {
        let memory = snapshot.memory(*id).await.unwrap().expect("the outbox names only memories");
        assert_eq!((memory.head.number, memory.head.status), (*head, *status), "{id}");
        assert!(told.contains_key(id), "{id} was never begun");
    }
    let live = folded.values().filter(|(_, status)| status.is_live()).count();
    let counted = snapshot.count(&Filter::default()).await.unwrap();
    assert_eq!(counted, live as u64);
    let page = snapshot.memories(&Filter::default(), &PageRequest::default()).await.unwrap();
    assert!(page.items.len() as u64 <= counted);
    drop(snapshot);
    store.close().await.unwrap();
}

fn no_clear_text(data: &Path) {
    for path in files(data) {
        let bytes = std::fs::read(&path).unwrap();
        let word = b"crash phrase";
        let clear = bytes.windows(word.len()).any(|window| window == word);
        assert!(!clear, "{}", path.display());
    }
}

#[test]
fn killed_at_random_points_nothing_acknowledged_is_lost() {
    let rounds = if std::env::var_os("YORE_FULL").is_some() { 200 } else { 10 };
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (mut told, mut acknowledged) = (HashMap::new(), 0);
    let mut seed = u64::from(std::process::id());
    for _ in 0..rounds {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let life = Duration::from_micros(20_000 + (seed >> 33) % 300_000);
        acknowledged += run_and_kill(dir.path(), life, &mut told);
        no_clear_text(dir.path());
        runtime.block_on(verify(dir.path(), &told));
    }
    assert!(acknowledged > rounds * 10, "only {acknowledged} writes in {rounds} rounds");
}

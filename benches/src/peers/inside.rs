//! Yore as the peers are run: inside the process that asks, on its encrypted vault.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::json;
use yore_domain::memory::Draft;
use yore_domain::mutation::{Depth, Mutation};
use yore_domain::query::{Corpus, Cutoff, Effort, Filter, Recall};
use yore_domain::scope::{Scope, ScopeRule};
use yore_engine::{Found, Wish};

use super::scene::{Scene, user};
use super::stage::{Stage, tell};
use super::{CANARY, Wanted, disk};
use crate::meter::cpu;
use crate::process::resident;
use crate::world::World;

/// How many writes are under way at once while a vault is filled.
const LOADERS: usize = 64;
/// How many results a search asks for, as the peers' drivers do.
pub(crate) const LIMIT: usize = 10;
/// The row of searches that use no transformer.
const STATIC: &str = "yore-static";

struct Inside {
    world: World,
    scene: Scene,
    users: usize,
    wrong: AtomicUsize,
    empty: AtomicUsize,
}

/// A memory of the scene.
pub(crate) fn draft(scene: &Scene, number: usize, users: usize) -> Draft {
    let mut draft = Draft::text(scene.memory(number));
    draft.content.scope.user = Some(user(number, users));
    draft
}

/// A question of the scene, filtered by the user it belongs to.
pub(crate) fn question(scene: &Scene, number: usize, users: usize, effort: Effort) -> Recall {
    Recall {
        query: scene.question(number),
        corpus: Corpus::Memories,
        filter: Filter {
            scope: ScopeRule { user: Some(user(number, users)), ..ScopeRule::default() },
            ..Filter::default()
        },
        near: Scope::default(),
        limit: LIMIT,
        effort,
        prefer: Vec::new(),
        // Ten results each time, relevant or not, as the peers give them.
        cutoff: Cutoff::Off,
    }
}

impl Inside {
    async fn open(scene: &Path, store: &Path, users: usize, effort: Effort) -> Result<Arc<Self>> {
        let (scene, world) = (Scene::at(scene), World::open_with(store, effort).await?);
        let (wrong, empty) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Ok(Arc::new(Self { world, scene, users, wrong, empty }))
    }

    async fn add(&self, number: usize) -> Result<()> {
        self.world.store(draft(&self.scene, number, self.users)).await
    }

    async fn ask(&self, number: usize, effort: Effort) -> Result<()> {
        let recall = question(&self.scene, number, self.users, effort);
        let wanted = user(number, self.users);
        let found = self.world.engine.recall(&self.world.owner, recall).await?.results;
        let foreign = |found: &Found| match found {
            Found::Memory { version, .. } => version.content.scope.user.as_ref() != Some(&wanted),
            Found::Message { .. } => true,
        };
        let wrong = found.iter().filter(|hit| foreign(&hit.found)).count();
        self.wrong.fetch_add(wrong, Ordering::Relaxed);
        self.empty.fetch_add(usize::from(found.is_empty()), Ordering::Relaxed);
        Ok(())
    }

    /// Every question once, so that caches are as a running system has them; with the transformer
    /// the question's vector is known from then on: it is supplied, as to the peers.
    async fn warm(&self, questions: usize, effort: Effort) -> Result<()> {
        for number in 0..questions {
            self.ask(number, effort).await?;
        }
        Ok(())
    }

    async fn close(self: Arc<Self>) -> Result<()> {
        let Some(inside) = Arc::into_inner(self) else {
            anyhow::bail!("somebody still uses the vault");
        };
        inside.world.close().await
    }
}

fn seconds() -> Result<f64> {
    Ok(cpu().as_secs_f64())
}

/// Fills, adds and asks, and prints a line for each cell.
pub(crate) async fn cells(scene: &Path, store: &Path, wanted: &Wanted) -> Result<()> {
    let inside = Inside::open(scene, store, wanted.users, Effort::Instant).await?;
    tell(&json!({ "versions": { "yore": env!("CARGO_PKG_VERSION") } }))?;
    let base = wanted.size - 2 * wanted.sample;
    let (begun, before) = (Instant::now(), seconds()?);
    let until = begun + Duration::from_secs(wanted.fill_seconds);
    let added = stream::iter(0..base)
        .map(|number| {
            let inside = inside.clone();
            async move {
                if Instant::now() > until {
                    return Ok(0);
                }
                inside.add(number).await.map(|()| 1)
            }
        })
        .buffer_unordered(LOADERS)
        .try_fold(0, async |sum, one| Ok(sum + one))
        .await?;
    tell(&json!({
        "filled": added, "seconds": begun.elapsed().as_secs_f64(), "cpu_s": seconds()? - before,
        "way": "remember, 64 at once, each acknowledged when it is on disk",
    }))?;
    if added < base {
        let time = wanted.fill_seconds;
        let error = format!("filled {added} of {base} memories in {time} s, then stopped");
        return tell(&json!({ "error": error }));
    }
    // What filling left to do is no part of an add.
    inside.world.engine.settle().await?;
    let (first, second) = (base..base + wanted.sample, base + wanted.sample..wanted.size);
    for (clients, numbers) in [(1, first), (wanted.clients, second)] {
        let last = numbers.end;
        let worker = inside.clone();
        let work = move |_, number| {
            let worker = worker.clone();
            async move { worker.add(number).await }
        };
        let mut done = wanted.stage(None, "add", clients).run(numbers, seconds, work).await?;
        // What a write leaves to do later is part of what it costs.
        inside.world.engine.settle().await?;
        let settled = (seconds()? - done.before) * 1e3 / done.count.max(1) as f64;
        done.line["settled_cpu_ms"] = json!(settled);
        tell(&done.line)?;
        let stage = wanted.stage(Some(STATIC), "search", clients);
        search(&inside, &stage, wanted, Effort::Instant).await?;
        let kept = inside.world.engine.census(&inside.world.owner).await?.memories;
        tell(&json!({ "clients": clients, "kept": kept, "expected": last }))?;
    }
    tell(&json!({ "peak_kib": peak("self")?, "resident_kib": resident()?, "disk": disk(store)? }))?;
    let inside = if wanted.size <= wanted.dense {
        inside.close().await?;
        let inside = Inside::open(scene, store, wanted.users, Effort::Balanced).await?;
        let before = seconds()?;
        inside.world.engine.settle().await?;
        let each = (seconds()? - before) * 1e3 / wanted.size as f64;
        tell(&json!({ "own_embedding_cpu_ms": each }))?;
        for clients in [1, wanted.clients] {
            let stage = wanted.stage(None, "search", clients);
            search(&inside, &stage, wanted, Effort::Balanced).await?;
        }
        tell(&json!({ "peak_kib": peak("self")?, "disk": disk(store)? }))?;
        inside
    } else {
        let error = "not run: making the transformer's vectors of so many memories takes too long; \
                     see the row without them";
        for clients in [1, wanted.clients] {
            tell(&json!({ "cell": "search", "clients": clients, "n": 0, "error": error }))?;
        }
        inside
    };
    let (wrong, empty) = (&inside.wrong, &inside.empty);
    tell(&json!({
        "wrong": wrong.load(Ordering::Relaxed), "empty": empty.load(Ordering::Relaxed),
    }))?;
    inside.close().await
}

async fn search(
    inside: &Arc<Inside>,
    stage: &Stage<'_>,
    wanted: &Wanted,
    effort: Effort,
) -> Result<()> {
    inside.warm(wanted.questions, effort).await?;
    let worker = inside.clone();
    let work = move |_, number| {
        let worker = worker.clone();
        async move { worker.ask(number, effort).await }
    };
    tell(&stage.run(0..wanted.questions, seconds, work).await?.line)
}

/// Adds one after the other, for whoever counts what the system is asked for meanwhile.
pub(crate) async fn adds(scene: &Path, store: &Path, wanted: &Wanted) -> Result<()> {
    let inside = Inside::open(scene, store, wanted.users, Effort::Instant).await?;
    tell(&json!({ "begun": true }))?;
    for number in 0..wanted.size {
        inside.add(number).await?;
    }
    tell(&json!({ "done": wanted.size }))?;
    // Closing writes more; only the adds are counted.
    std::process::exit(0);
}

/// Remembers, erases one and looks for it: in the bytes as they lie, and in all that decrypts.
pub(crate) async fn forget(scene: &Path, store: &Path, wanted: &Wanted) -> Result<()> {
    let inside = Inside::open(scene, store, wanted.users, Effort::Instant).await?;
    for number in 0..wanted.size {
        inside.add(number).await?;
    }
    let (world, owner) = (&inside.world, &inside.world.owner);
    let remember = Mutation::Remember { draft: Box::new(Draft::text(CANARY.to_owned())), id: None };
    let kept = world.engine.mutate(owner, remember, Wish::default()).await?;
    world.engine.settle().await?;
    let before = world.engine.traces(owner, CANARY.to_owned()).await?;
    ensure!(!before.found.is_empty(), "the scan does not find what is there");
    let memories = kept.memories.iter().map(|head| head.memory).collect();
    let erase = Mutation::Forget { memories, depth: Depth::Erase, reason: None };
    world.engine.mutate(owner, erase, Wish::default()).await?;
    let after = world.engine.traces(owner, CANARY.to_owned()).await?;
    tell(&json!({
        "decrypting": true, "before": before.found.len(), "after": after.found.len(),
        "bytes": after.scanned,
    }))?;
    inside.close().await
}

/// The most memory that a process ever held, in KiB.
pub(crate) fn peak(process: &str) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let line = line.ok_or_else(|| anyhow::anyhow!("no VmHWM"))?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

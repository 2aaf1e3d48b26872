//! Vectors through the HNSW index: it is really asked, and finds what comparing them all finds.
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that fails")]

#[path = "shared/support.rs"]
mod support;

use std::collections::BTreeSet;
use std::time::Duration;

use yore_domain::MemoryId;
use yore_domain::memory::{Draft, Version};
use yore_domain::query::{Corpus, Filter};
use yore_store::plan::Indexing;
use yore_store::suite::Scene;
use yore_store::{RowKey, Search, Source, Store, Vector, Write};
use yore_store_postgres::{Options, PostgresStore};

/// Documents of each of two vaults that share the tables.
const DOCUMENTS: u64 = 600;
const DEPTH: usize = 20;

/// Numbers that look random and are the same in every run.
fn vector(model: &str, dims: usize, seed: u64) -> Vector {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let values: Vec<i8> = (0..dims)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            i8::try_from((state >> 32) % 255).map_or(-64, |value| value)
        })
        .collect();
    let norm = values.iter().map(|&v| f32::from(v) * f32::from(v)).sum::<f32>().sqrt();
    Vector { model: model.into(), scale: 1.0 / norm, values }
}

async fn fill(scene: &Scene<'_>, from: u64) {
    for start in (0..DOCUMENTS).step_by(100) {
        let mut writes = Vec::new();
        for number in start..start + 100 {
            let draft = Draft::text(format!("note {number}"));
            let version = Version::first(MemoryId::random(), draft, scene.tick(), None);
            let statics = Some(vector("static", 256, from + number));
            let indexing = Indexing { tokens: Vec::new(), statics, statement: String::new() };
            writes.push(Write::Version { version: Box::new(version), indexing });
        }
        scene.commit(writes).await;
        let dense = (start..start + 100).map(|number| Write::Vector {
            row: RowKey { source: Source::Version, row: number + 1 },
            vector: vector("sentence", 384, from + number),
        });
        scene.commit(dense.collect()).await;
    }
}

/// The rows that the nearest vectors belong to, and their cosines.
async fn nearest(
    store: &PostgresStore,
    scene: &Scene<'_>,
    dense: bool,
    seed: u64,
) -> BTreeSet<u64> {
    let (statics, sentence) = (vector("static", 256, seed), vector("sentence", 384, seed));
    let filter = Filter::default();
    let search = Search {
        text: "",
        tokens: &[],
        statics: Some(&statics),
        dense: dense.then_some(&sentence),
        corpus: Corpus::Memories,
        filter: &filter,
        depth: DEPTH,
        now: scene.tick(),
    };
    let view = store.snapshot(&scene.owner()).await.unwrap();
    view.search(&search).await.unwrap().iter().map(|one| one.row.row).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_index_is_asked_and_finds_what_is_near() {
    let Some((indexed, ())) = support::indexed_store().await else { return };
    let address = support::indexed_database().await.unwrap();
    let exact =
        PostgresStore::open(Options { exact_up_to: u32::MAX, ..support::options(&address) });
    let exact = exact.await.unwrap();
    let (scene, stranger) = (Scene::new(&exact, &exact).await, Scene::new(&exact, &exact).await);
    fill(&stranger, 1_000_000).await;
    fill(&scene, 0).await;
    let admin = support::connect(&address).await;
    let scans = async |what: &str| -> i64 {
        let sql = "SELECT coalesce(sum(idx_scan), 0)::bigint FROM pg_stat_user_indexes
            WHERE indexrelname ~ $1";
        admin.query_one(sql, &[&what]).await.unwrap().get(0)
    };
    for (dense, index) in [(false, "statics_idx$"), (true, "value_idx$")] {
        let before = scans(index).await;
        let (mut found, mut wanted) = (0, 0);
        for seed in 5_000..5_020 {
            let all = nearest(&exact, &scene, dense, seed).await;
            assert_eq!(all.len(), DEPTH, "everything is compared");
            let some = nearest(&indexed, &scene, dense, seed).await;
            wanted += all.len();
            found += all.intersection(&some).count();
        }
        // The nearest of a document is itself, however it is looked for.
        for seed in [0, 7, DOCUMENTS - 1] {
            assert!(nearest(&indexed, &scene, dense, seed).await.contains(&(seed + 1)));
        }
        let share =
            f64::from(u32::try_from(found).unwrap()) / f64::from(u32::try_from(wanted).unwrap());
        assert!(share >= 0.9, "{index}: {share}");
        println!("{index}: {share:.3} of the nearest {DEPTH} through the index");
        // The database counts with a delay.
        let mut asked = false;
        for _ in 0..100 {
            asked = scans(index).await > before;
            if asked {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(asked, "{index} was never scanned");
    }
}

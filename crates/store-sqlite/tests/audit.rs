//! The audit chain from outside: sealed, copied to the catalog, and proof against old files.
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that fails")]

#[path = "shared/support.rs"]
mod support;

use std::num::NonZeroUsize;

use support::*;
use yore_domain::Seq;
use yore_store::snapshot::AuditQuery;
use yore_store::{Durability, Keeper, Plan, Store};
use yore_store_sqlite::{Options, SqliteStore};

#[tokio::test]
async fn an_old_file_put_back_in_place_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let info = vault(&store, "ada").await;
    let permit = permit(info.id);
    remember(&store, &permit, "what the thief wants back").await;
    store.close().await.unwrap();
    drop(store);
    let path = dir.path().join(format!("vaults/{}.db", info.id));
    let old = std::fs::read(&path).unwrap();

    let store = open(dir.path());
    for number in 0..5 {
        remember(&store, &permit, &format!("later {number}")).await;
    }
    store.seal_audit(&permit, now()).await.unwrap();
    assert!(store.check(&permit, false).await.unwrap().is_sound());
    store.close().await.unwrap();
    drop(store);

    std::fs::write(&path, old).unwrap();
    let store = open(dir.path());
    let audit = store.check(&permit, false).await.unwrap().audit;
    assert_eq!(audit.entries, 1);
    assert_eq!(audit.faults.len(), 1, "{audit:?}");
    assert_eq!(audit.faults[0].seq, Seq(2));
}

#[tokio::test]
async fn every_attempt_has_its_entry_and_written_texts_their_salted_digest() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let permit = permit(vault(&store, "ada").await.id);
    let one = remember(&store, &permit, "the same words").await;
    let two = remember(&store, &permit, "the same words").await;
    let mut read = Plan::of(audit(&permit, "recall"));
    read.durability = Durability::Relaxed;
    let receipt = store.commit(&permit, read).await.unwrap();
    assert_eq!((receipt.change, receipt.audit), (Seq(2), Seq(0)));
    store.commit(&permit, Plan::of(audit(&permit, "recall"))).await.unwrap();

    let query = AuditQuery { limit: 10, ..AuditQuery::default() };
    let snapshot = store.snapshot(&permit).await.unwrap();
    let entries = snapshot.audit(&query).await.unwrap();
    assert_eq!(entries.iter().map(|entry| entry.seq.0).collect::<Vec<_>>(), [1, 2, 3, 4]);
    let digests: Vec<_> =
        entries[..2].iter().map(|entry| entry.draft.targets[0].digest.clone().unwrap()).collect();
    assert_ne!(digests[0], digests[1], "the same text gives another digest each time");
    assert!(entries.windows(2).all(|pair| pair[1].previous == pair[0].hash));
    assert_ne!(one.memory, two.memory);
}

#[tokio::test]
async fn more_vaults_than_stay_open_close_and_open_again() {
    let dir = tempfile::tempdir().unwrap();
    let max_open_vaults = NonZeroUsize::new(2).unwrap();
    let store = SqliteStore::open(Options { max_open_vaults, ..options(dir.path()) }).unwrap();
    let mut permits = Vec::new();
    for number in 0..6 {
        permits.push(permit(vault(&store, &format!("owner {number}")).await.id));
    }
    let mut held = Vec::new();
    for round in 0..4 {
        for permit in &permits {
            remember(&store, permit, &format!("round {round}")).await;
            held.push(store.snapshot(permit).await.unwrap());
            held.truncate(3);
        }
    }
    drop(held);
    for permit in &permits {
        let health = store.check(permit, false).await.unwrap();
        assert!(health.is_sound() && health.indexes.is_empty(), "{health:?}");
        assert_eq!(health.audit.entries, 4);
    }
    let started = permits.iter().map(|permit| {
        let (store, permit) = (store.clone(), permit.clone());
        tokio::spawn(async move { remember(&store, &permit, "all at once").await })
    });
    for task in started.collect::<Vec<_>>() {
        task.await.unwrap();
    }
}

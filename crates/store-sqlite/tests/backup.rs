//! Copies: taken while the vault serves, encrypted, put back whole.
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that fails")]

#[path = "shared/support.rs"]
mod support;

use support::*;
use yore_store::{Keeper, Store};

#[tokio::test]
async fn a_copy_brings_back_what_was_there_even_after_new_keys() {
    let dir = tempfile::tempdir().unwrap();
    let (data, copy) = (dir.path().join("data"), dir.path().join("ada.yorebak"));
    let store = open(&data);
    let info = vault(&store, "ada").await;
    let permit = permit(info.id);
    let first = remember(&store, &permit, "a word before the copy").await;
    let size = store.backup(&permit, &copy).await.unwrap();
    assert_eq!(copy.metadata().unwrap().len(), size);
    let second = revise(&store, &permit, &first, "a word after the copy").await;
    let later = remember(&store, &permit, "never copied").await;
    let bytes = std::fs::read(&copy).unwrap();
    assert!(!bytes.windows(6).any(|window| window == b"before"), "the copy is encrypted");
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
    assert_eq!(left.len(), 2, "no leftovers: {left:?}");

    store.rotate(&permit).await.unwrap();
    store.rotate(&support::permit(yore_domain::VaultId::CATALOG)).await.unwrap();
    store.restore(&permit, &copy).await.unwrap();
    let snapshot = store.snapshot(&permit).await.unwrap();
    let memory = snapshot.memory(first.memory).await.unwrap().expect("it was in the copy");
    assert_eq!(memory.head, first);
    assert_ne!(memory.head.id, second.id);
    assert!(snapshot.memory(later.memory).await.unwrap().is_none());
    drop(snapshot);
    let health = store.check(&permit, false).await.unwrap();
    assert!(health.is_sound() && health.indexes.is_empty(), "{health:?}");
    remember(&store, &permit, "and life goes on").await;
    store.close().await.unwrap();
    drop(store);
    let store = open(&data);
    assert!(store.check(&permit, false).await.unwrap().is_sound());
}

#[tokio::test]
async fn a_destroyed_vault_comes_back_from_its_copy() {
    let dir = tempfile::tempdir().unwrap();
    let (data, copy) = (dir.path().join("data"), dir.path().join("copy"));
    let store = open(&data);
    let info = vault(&store, "ada").await;
    let permit = permit(info.id);
    let memory = remember(&store, &permit, "tea").await.memory;
    store.backup(&permit, &copy).await.unwrap();
    store.destroy(&permit).await.unwrap();
    store.restore(&permit, &copy).await.unwrap();
    assert_eq!(store.info(&permit).await.unwrap(), Some(info));
    let snapshot = store.snapshot(&permit).await.unwrap();
    assert!(snapshot.memory(memory).await.unwrap().is_some());
}

#[tokio::test]
async fn wrong_copies_are_refused_and_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (data, copy) = (dir.path().join("data"), dir.path().join("copy"));
    let store = open(&data);
    let (ada, bob) = (vault(&store, "ada").await, vault(&store, "bob").await);
    let (ada, bob) = (permit(ada.id), permit(bob.id));
    let memory = remember(&store, &ada, "tea").await.memory;
    remember(&store, &bob, "coffee").await;
    store.backup(&bob, &copy).await.unwrap();
    assert!(store.restore(&ada, &copy).await.is_err(), "another vault's copy");
    store.backup(&ada, &copy).await.unwrap();
    let good = std::fs::read(&copy).unwrap();
    let mut flipped = good.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let cases: [(&str, &[u8]); 4] = [
        ("cut", &good[..good.len() / 2]),
        ("flipped", &flipped),
        ("empty", b""),
        ("foreign", b"PK\x03\x04 and so on, much longer than twelve bytes"),
    ];
    for (case, bytes) in cases {
        std::fs::write(&copy, bytes).unwrap();
        assert!(store.restore(&ada, &copy).await.is_err(), "{case}");
        let snapshot = store.snapshot(&ada).await.unwrap();
        assert!(snapshot.memory(memory).await.unwrap().is_some(), "{case}");
    }
    let strays: Vec<_> = files(&data)
        .into_iter()
        .filter(|path| path.to_string_lossy().contains("restore"))
        .collect();
    assert!(strays.is_empty(), "{strays:?}");
}

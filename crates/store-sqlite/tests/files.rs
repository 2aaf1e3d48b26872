//! Files that are damaged, foreign, newer, taken or not writable.
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that fails")]

#[path = "shared/support.rs"]
mod support;

use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use support::*;
use yore_domain::VaultId;
use yore_store::{Keeper, Store};
use yore_store_sqlite::SqliteStore;

async fn filled(data: &Path, memories: usize) -> (VaultId, PathBuf) {
    let store = open(data);
    let info = vault(&store, "ada").await;
    for number in 0..memories {
        remember(&store, &permit(info.id), &format!("fact number {number} about the house")).await;
    }
    store.close().await.unwrap();
    (info.id, data.join(format!("vaults/{}.db", info.id)))
}

#[tokio::test]
async fn a_flipped_bit_is_reported_by_its_page() {
    let dir = tempfile::tempdir().unwrap();
    let (id, path) = filled(dir.path(), 60).await;
    let pages = path.metadata().unwrap().len() / 4096;
    assert!(pages > 20, "{pages}");
    for page in [1, 2, pages / 2, pages] {
        let good = std::fs::read(&path).unwrap();
        let mut bad = good.clone();
        bad[usize::try_from((page - 1) * 4096).unwrap() + 1000] ^= 1;
        std::fs::write(&path, &bad).unwrap();
        let store = open(dir.path());
        let health = store.check(&permit(id), false).await.unwrap();
        assert!(!health.is_sound());
        let named = format!("page {page}");
        assert!(
            health.storage.iter().any(|fault| fault.ends_with(&named)),
            "page {page} of {pages}: {:?}",
            health.storage
        );
        store.close().await.unwrap();
        drop(store);
        std::fs::write(&path, &good).unwrap();
    }
    let store = open(dir.path());
    assert!(store.check(&permit(id), false).await.unwrap().is_sound());
}

#[tokio::test]
async fn cut_foreign_and_missing_files_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let (id, path) = filled(dir.path(), 20).await;
    let good = std::fs::read(&path).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    let cases: [(&str, Option<Vec<u8>>); 5] = [
        ("emptied", Some(Vec::new())),
        ("cut inside the first page", Some(good[..1000].to_vec())),
        ("another file", Some(b"hello, I am a text file\n".repeat(1000))),
        ("plain SQLite", Some([b"SQLite format 3\0".as_slice(), &[0; 8176]].concat())),
        ("missing", None),
    ];
    for (case, content) in cases {
        match content {
            Some(content) => std::fs::write(&path, content).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        let store = open(dir.path());
        let error = store.snapshot(&permit(id)).await.err().expect(case);
        let source = std::error::Error::source(&error).expect(case).to_string();
        assert!(source.contains(&name), "{case}: {source}");
        store.close().await.unwrap();
        drop(store);
        std::fs::write(&path, &good).unwrap();
    }
    // A file that lost its tail opens, and the check says what is missing.
    std::fs::write(&path, &good[..good.len() - 5 * 4096]).unwrap();
    let store = open(dir.path());
    assert!(!store.check(&permit(id), false).await.unwrap().storage.is_empty());
}

#[tokio::test]
async fn a_catalog_that_is_gone_is_not_replaced_by_a_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let (id, _) = filled(dir.path(), 1).await;
    let path = dir.path().join("catalog.db");
    let good = std::fs::read(&path).unwrap();
    for emptied in [true, false] {
        if emptied {
            std::fs::write(&path, b"").unwrap();
        } else {
            std::fs::remove_file(&path).unwrap();
        }
        let error = SqliteStore::open(options(dir.path())).unwrap_err().to_string();
        assert!(error.contains("catalog.db"), "{error}");
        std::fs::write(&path, &good).unwrap();
    }
    let store = open(dir.path());
    assert!(store.check(&permit(id), false).await.unwrap().is_sound());
}

#[tokio::test]
async fn a_second_opener_is_told_who_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path());
    let error = SqliteStore::open(options(dir.path())).unwrap_err().to_string();
    let expected = format!("another process uses this data directory (pid {})", std::process::id());
    assert_eq!(error, expected);
    first.close().await.unwrap();
    drop(first);
    open(dir.path());
}

#[tokio::test]
async fn the_master_sheet_cannot_be_lost_unnoticed() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), 1).await;
    std::fs::remove_file(dir.path().join("master.json")).unwrap();
    let error = SqliteStore::open(options(dir.path())).unwrap_err().to_string();
    assert!(error.contains("master.json is missing"), "{error}");
}

#[tokio::test]
async fn nothing_stored_lies_in_clear_in_any_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let info = vault(&store, "ada.lovelace@example.org").await;
    let phrase = "the analytical engine weaves algebraic patterns";
    for number in 0..50 {
        remember(&store, &permit(info.id), &format!("{phrase} {number}")).await;
    }
    let scan = |when: &str| {
        let mut bytes = 0;
        for path in files(dir.path()) {
            let content = std::fs::read(&path).unwrap();
            bytes += content.len();
            for word in [phrase, "ada.lovelace", "algebraic", "remember", "CREATE TABLE"] {
                let clear = content.windows(word.len()).any(|window| window == word.as_bytes());
                assert!(!clear, "{when}: '{word}' in {}", path.display());
            }
        }
        assert!(bytes > 100_000, "{when}: only {bytes} bytes were looked at");
    };
    assert!(dir.path().join(format!("vaults/{}.db-wal", info.id)).exists());
    scan("while the journal is in use");
    store.close().await.unwrap();
    drop(store);
    scan("after closing");
}

#[tokio::test]
async fn a_damaged_index_snapshot_is_built_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (id, path) = filled(dir.path(), 10).await;
    let index = path.with_extension("idx");
    let length = index.metadata().unwrap().len();
    let mut file = std::fs::OpenOptions::new().write(true).open(&index).unwrap();
    file.seek(SeekFrom::Start(length / 2)).unwrap();
    file.write_all(b"spoilt").unwrap();
    drop(file);
    let store = open(dir.path());
    let health = store.check(&permit(id), false).await.unwrap();
    assert!(health.is_sound() && health.indexes.is_empty(), "{health:?}");
}

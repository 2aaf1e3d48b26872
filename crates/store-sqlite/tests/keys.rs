//! Keys: who opens a directory, who does not, and what stays readable when keys change.
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that fails")]

#[path = "shared/support.rs"]
mod support;

use std::os::unix::fs::PermissionsExt as _;

use support::*;
use yore_domain::{TenantId, VaultId};
use yore_store::{Keeper, Store};
use yore_store_sqlite::{Error, MasterKey, Options, SqliteStore};

#[tokio::test]
async fn a_wrong_passphrase_gives_one_clear_message() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    vault(&store, "ada").await;
    store.close().await.unwrap();
    drop(store);
    for master in [MasterKey::passphrase("wrong horse"), MasterKey::text("ab".repeat(32))] {
        let error = SqliteStore::open(Options { master, ..options(dir.path()) }).unwrap_err();
        assert_eq!(error.to_string(), "wrong key or passphrase for this data directory");
    }
    let store = open(dir.path());
    assert_eq!(store.vaults(&permit(VaultId::CATALOG)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_key_file_must_be_private_and_lie_elsewhere() {
    let (dir, keys) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = keys.path().join("master.key");
    let master = MasterKey::generate(&path).unwrap();
    assert!(MasterKey::generate(&path).is_err(), "an existing key is never overwritten");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let with = |master| Options { master, ..options(dir.path()) };
    drop(SqliteStore::open(with(master.clone())).unwrap());

    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let error = SqliteStore::open(with(master)).unwrap_err().to_string();
    assert!(error.contains("can be read by others (mode 640)"), "{error}");

    let inside = dir.path().join("master.key");
    let error = SqliteStore::open(with(MasterKey::generate(&inside).unwrap())).unwrap_err();
    assert!(error.to_string().contains("inside the data directory"), "{error}");
    let error = SqliteStore::open(with(MasterKey::text("short"))).unwrap_err().to_string();
    assert!(error.contains("not 32 bytes in hex or base64"), "{error}");
}

#[tokio::test]
async fn a_new_master_key_replaces_the_old_one() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let info = vault(&store, "ada").await;
    let memory = remember(&store, &permit(info.id), "tea, no sugar").await.memory;
    let other = MasterKey::text("cd".repeat(32));
    let refused = store.change_master(&permit(info.id), &other).await;
    assert!(matches!(refused, Err(yore_domain::Error::Forbidden { .. })), "{refused:?}");
    store.change_master(&permit(VaultId::CATALOG), &other).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    assert!(matches!(SqliteStore::open(options(dir.path())), Err(Error::WrongKey)));
    let store = SqliteStore::open(Options { master: other, ..options(dir.path()) }).unwrap();
    let snapshot = store.snapshot(&permit(info.id)).await.unwrap();
    assert!(snapshot.memory(memory).await.unwrap().is_some());
}

#[tokio::test]
async fn a_vault_and_the_root_get_new_keys_while_they_serve() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let (one, two) = (vault(&store, "ada").await, vault(&store, "bob").await);
    let first = remember(&store, &permit(one.id), "before the rotation").await;
    remember(&store, &permit(two.id), "bob was here").await;
    let path = dir.path().join(format!("vaults/{}.db", one.id));
    let before = std::fs::read(&path).unwrap();

    store.rotate(&permit(one.id)).await.unwrap();
    let second = revise(&store, &permit(one.id), &first, "after the vault's rotation").await;
    store.rotate(&permit(VaultId::CATALOG)).await.unwrap();
    revise(&store, &permit(one.id), &second, "after the root's rotation").await;
    assert!(store.check(&permit(one.id), false).await.unwrap().is_sound());
    store.close().await.unwrap();
    drop(store);

    let after = std::fs::read(&path).unwrap();
    let same = before.chunks(4096).zip(after.chunks(4096)).filter(|(a, b)| a == b).count();
    assert_eq!(same, 0, "no page is left under the old key");
    let store = open(dir.path());
    let snapshot = store.snapshot(&permit(one.id)).await.unwrap();
    assert_eq!(snapshot.history(first.memory).await.unwrap().len(), 3);
    drop(snapshot);
    for vault in [VaultId::CATALOG, one.id, two.id] {
        assert!(store.check(&permit(vault), false).await.unwrap().is_sound(), "{vault}");
    }
}

#[tokio::test]
async fn the_did_of_a_vault_signs_for_it_and_an_owner_has_one_vault() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let info = vault(&store, "ada").await;
    assert_eq!(vault(&store, "ada").await, info);
    let catalog = permit(VaultId::CATALOG);
    let found = store.find(&catalog, TenantId::DEFAULT, "ada").await.unwrap();
    assert_eq!(found, Some(info.clone()));
    assert_eq!(store.find(&catalog, TenantId::DEFAULT, "bob").await.unwrap(), None);

    use yore_canon::{did::Did, key::Algorithm, key::Signature};
    let signature = store.sign(&permit(info.id), b"hello").await.unwrap();
    let signature = Signature::from_slice(Algorithm::Ed25519, &signature).unwrap();
    let key = info.did.parse::<Did>().unwrap().key().unwrap();
    assert!(key.verify(b"hello", &signature).is_ok());
    assert!(key.verify(b"hallo", &signature).is_err());
}

#[tokio::test]
async fn a_destroyed_vault_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let info = vault(&store, "ada").await;
    remember(&store, &permit(info.id), "tea").await;
    store.destroy(&permit(info.id)).await.unwrap();
    assert!(store.snapshot(&permit(info.id)).await.is_err());
    let left: Vec<_> = files(&dir.path().join("vaults"));
    assert!(left.is_empty(), "{left:?}");
    assert_ne!(vault(&store, "ada").await.id, info.id);
}

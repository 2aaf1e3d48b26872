use yore_domain::{TenantId, Timestamp};

use super::*;
use crate::vault::tests::{commit, says};
use crate::{Cost, MasterKey, Options, SqliteStore};

fn open(data: &std::path::Path) -> SqliteStore {
    let master = MasterKey::passphrase("x");
    SqliteStore::open(Options { cost: Cost::Least, ..Options::new(data, master) }).unwrap()
}

fn made(store: &SqliteStore) -> VaultId {
    let info = store.inner.create(TenantId::DEFAULT, "ada", Timestamp::MIN).unwrap();
    let vault = store.inner.open_vault(info.id).unwrap();
    commit(&vault, says("before the crash")).unwrap();
    info.id
}

/// What a crash at this point leaves: everything closed, nothing finished.
fn end(store: SqliteStore) {
    store.inner.close().unwrap();
}

fn assert_whole(data: &std::path::Path, id: VaultId, entries: u64) {
    let store = open(data);
    let vault = store.inner.open_vault(id).unwrap();
    let found: u64 = vault
        .reader()
        .unwrap()
        .query_row("SELECT count(*) FROM audit", [], |row| row.get(0))
        .unwrap();
    assert_eq!(found, entries);
    assert_eq!(store.inner.roots.lock().all().len(), 1, "the rotation is finished");
    let line = store.inner.line(id).unwrap();
    assert_eq!(line.wrapped.len(), key::WRAPPED, "one key is left");
    assert_eq!(store.inner.unwrap_keys(&line).unwrap(), [vault.key()]);
    drop(vault);
    end(store);
}

#[test]
fn a_rotation_of_the_root_is_finished_from_wherever_it_stopped() {
    type Stop = fn(&Inner);
    let stops: [(&str, Stop); 3] = [
        ("the next root is written down", |inner| inner.roots.lock().begin_rotation().unwrap()),
        ("the vaults' keys are wrapped anew", |inner| {
            let mut roots = inner.roots.lock();
            roots.begin_rotation().unwrap();
            let known = roots.clone();
            let writer = &inner.catalog().unwrap().writer;
            writer.ask_blocking(move |desk| wrap_anew(&mut desk.conn, &known)).unwrap();
        }),
        ("the catalog is under the next root", |inner| {
            let mut roots = inner.roots.lock();
            roots.begin_rotation().unwrap();
            let (known, key) = (roots.clone(), root::catalog(roots.newest()));
            let catalog = inner.catalog().unwrap();
            catalog.writer.ask_blocking(move |desk| wrap_anew(&mut desk.conn, &known)).unwrap();
            catalog.rekey(&key).unwrap();
        }),
    ];
    for (point, stop) in stops {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        let id = made(&store);
        let before = store.inner.roots.lock().newest().clone();
        stop(&store.inner);
        end(store);
        assert_whole(dir.path(), id, 1);
        let store = open(dir.path());
        assert_ne!(*store.inner.roots.lock().newest(), before, "{point}");
        end(store);
    }
}

#[test]
fn a_vault_between_two_keys_opens_with_the_one_that_fits() {
    for rekeyed in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        let id = made(&store);
        let vault = store.inner.open_vault(id).unwrap();
        let next = Key::random();
        let both = {
            let roots = store.inner.roots.lock();
            [roots.wrap(&id.bytes(), &vault.key()), roots.wrap(&id.bytes(), &next)].concat()
        };
        let catalog = store.inner.catalog().unwrap();
        let write = move |desk: &mut Desk| catalog::set_wrapped(&desk.conn, id, &both);
        catalog.writer.ask_blocking(write).unwrap();
        drop(catalog);
        if rekeyed {
            vault.rekey(&next).unwrap();
            commit(&vault, says("under the new key")).unwrap();
        }
        drop(vault);
        end(store);
        assert_whole(dir.path(), id, if rekeyed { 2 } else { 1 });
    }
}

#[test]
fn a_change_of_key_waits_for_readers_and_readers_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let id = made(&store);
    let vault = store.inner.open_vault(id).unwrap();
    let reader = vault.reader().unwrap();
    std::thread::scope(|scope| {
        let rotation = scope.spawn(|| super::vault(&store.inner, id));
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert!(!rotation.is_finished(), "it would pull the file from under the reader");
        drop(reader);
        rotation.join().unwrap().unwrap();
    });
    let rows: u64 = vault
        .reader()
        .unwrap()
        .query_row("SELECT count(*) FROM memory", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 1);
}

//! The guarantees of every store, told against encrypted vaults in a temporary directory.

use tempfile::TempDir;
use yore_store_sqlite::{MasterKey, Options, SqliteStore};

async fn empty_store() -> (SqliteStore, TempDir) {
    let home = tempfile::tempdir().expect("a temporary directory");
    let options = Options::new(home.path().join("data"), MasterKey::text("07".repeat(32)));
    (SqliteStore::open(options).expect("an empty directory opens"), home)
}

yore_store::stories!(empty_store);

mod visible {
    async fn store() -> Option<(super::SqliteStore, super::TempDir)> {
        Some(super::empty_store().await)
    }

    yore_store::visibility!(store, 24);
}

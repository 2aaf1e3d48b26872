//! Checking a vault: pages, rows, audit chain, indexes.

use rusqlite::{Connection, OpenFlags};
use yore_domain::VaultId;
use yore_store::keeper::Health;

use crate::error::{Error, Result};
use crate::key::Key;
use crate::store::Inner;
use crate::vault::Vault;
use crate::{audit, open};

/// Looks at everything and, when asked, builds wrong indexes anew.
pub(crate) fn check(inner: &Inner, id: VaultId, repair: bool) -> Result<Health> {
    if id == VaultId::CATALOG {
        let catalog = inner.catalog()?;
        let path = inner.options.data.join("catalog.db");
        let mut health = Health { storage: pages(&path, &catalog.key())?, ..Health::default() };
        contents(&catalog, None, repair, &mut health)?;
        return Ok(health);
    }
    let line = inner.line(id)?;
    let path = inner.files(id).db;
    let mut health = Health::default();
    match inner.open_vault(id) {
        Ok(vault) => {
            // Pages that are only in the journal are checked when they reach the file.
            vault.writer.ask_blocking(|desk| open::truncate_wal(&desk.conn))?;
            health.storage = pages(&path, &vault.key())?;
            contents(&vault, line.checkpoint.as_deref(), repair, &mut health)?;
        }
        Err(
            error @ (Error::Foreign { .. } | Error::Sqlite(_) | Error::Json(_) | Error::Damaged(_)),
        ) => {
            health.storage.push(error.to_string());
            for key in inner.unwrap_keys(&line)? {
                health.storage.extend(pages(&path, &key)?);
            }
        }
        Err(error) => return Err(error),
    }
    Ok(health)
}

/// Authenticates every page of the file; each fault names its page.
fn pages(path: &std::path::Path, key: &Key) -> Result<Vec<String>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = open::keyed(path, key, flags)?;
    texts(&conn, "PRAGMA cipher_integrity_check")
}

fn contents(
    vault: &Vault,
    checkpoint: Option<&str>,
    repair: bool,
    health: &mut Health,
) -> Result<()> {
    let reader = vault.reader()?;
    // A damaged page may end the reading of rows; what was found until then is the answer.
    if let Err(error) = rows(vault, &reader, checkpoint, health) {
        health.storage.push(error.to_string());
        return Ok(());
    }
    drop(reader);
    let indexes = std::sync::Arc::clone(&vault.indexes);
    let (found, mended) = vault.writer.ask_blocking(move |desk| {
        let found = indexes.differences(&desk.conn)?;
        let mended = repair && !found.is_empty();
        if mended {
            indexes.rebuild(&desk.conn)?;
            desk.save_indexes();
        }
        Ok((found, mended))
    })?;
    if mended {
        health.repaired.push(format!("the indexes were built anew ({} differences)", found.len()));
    }
    health.indexes = found;
    Ok(())
}

fn rows(
    vault: &Vault,
    conn: &Connection,
    checkpoint: Option<&str>,
    health: &mut Health,
) -> Result<()> {
    health
        .storage
        .extend(texts(conn, "PRAGMA integrity_check")?.into_iter().filter(|line| line != "ok"));
    let mut statement = conn.prepare("PRAGMA foreign_key_check")?;
    let mut strays = statement.query([])?;
    while let Some(row) = strays.next()? {
        let (table, id): (String, Option<i64>) = (row.get(0)?, row.get(1)?);
        health.storage.push(match id {
            Some(id) => format!("row {id} of {table} names a row that is not there"),
            None => format!("a row of {table} names a row that is not there"),
        });
    }
    health.audit = audit::verify(conn, vault.id, &vault.signer.verifying_key(), checkpoint)?;
    Ok(())
}

fn texts(conn: &Connection, sql: &str) -> Result<Vec<String>> {
    let mut statement = conn.prepare(sql)?;
    let rows = statement.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

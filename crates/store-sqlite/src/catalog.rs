//! The catalog's own tables: which vaults there are, and their wrapped keys.

use rusqlite::{Connection, OptionalExtension as _, Row};
use yore_domain::{TenantId, Timestamp, VaultId};
use yore_store::keeper::VaultInfo;

use crate::error::Result;

const COLUMNS: &str = "id, tenant, owner, did, created, wrapped, checkpoint";

/// A vault's line in the catalog.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) info: VaultInfo,
    /// The vault's key, wrapped; two while it is being changed, the preferred one first.
    pub(crate) wrapped: Vec<u8>,
    /// The copy of its last signed audit checkpoint.
    pub(crate) checkpoint: Option<String>,
}

fn line(row: &Row<'_>) -> rusqlite::Result<Line> {
    Ok(Line {
        info: VaultInfo {
            id: VaultId::from_bytes(row.get(0)?),
            tenant: TenantId::from_bytes(row.get(1)?),
            owner: row.get(2)?,
            did: row.get(3)?,
            created: Timestamp::from_micros(row.get(4)?),
        },
        wrapped: row.get(5)?,
        checkpoint: row.get(6)?,
    })
}

pub(crate) fn get(conn: &Connection, id: VaultId) -> Result<Option<Line>> {
    let sql = format!("SELECT {COLUMNS} FROM vault WHERE id = ?1");
    Ok(conn.prepare_cached(&sql)?.query_row([id.bytes()], line).optional()?)
}

pub(crate) fn find(conn: &Connection, tenant: TenantId, owner: &str) -> Result<Option<Line>> {
    let sql = format!("SELECT {COLUMNS} FROM vault WHERE tenant = ?1 AND owner = ?2");
    Ok(conn.prepare_cached(&sql)?.query_row((tenant.bytes(), owner), line).optional()?)
}

pub(crate) fn all(conn: &Connection) -> Result<Vec<Line>> {
    let sql = format!("SELECT {COLUMNS} FROM vault ORDER BY created, id");
    Ok(conn.prepare_cached(&sql)?.query_map([], line)?.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn insert(conn: &Connection, line: &Line) -> Result<()> {
    let sql = format!("INSERT INTO vault ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)");
    let Line { info, wrapped, checkpoint } = line;
    conn.prepare_cached(&sql)?.execute((
        info.id.bytes(),
        info.tenant.bytes(),
        &info.owner,
        &info.did,
        info.created.micros(),
        wrapped,
        checkpoint,
    ))?;
    Ok(())
}

pub(crate) fn set_wrapped(conn: &Connection, id: VaultId, wrapped: &[u8]) -> Result<()> {
    conn.prepare_cached("UPDATE vault SET wrapped = ?2 WHERE id = ?1")?
        .execute((id.bytes(), wrapped))?;
    Ok(())
}

pub(crate) fn set_checkpoint(conn: &Connection, id: VaultId, text: Option<&str>) -> Result<()> {
    conn.prepare_cached("UPDATE vault SET checkpoint = ?2 WHERE id = ?1")?
        .execute((id.bytes(), text))?;
    Ok(())
}

pub(crate) fn remove(conn: &Connection, id: VaultId) -> Result<()> {
    for sql in ["DELETE FROM locate WHERE vault = ?1", "DELETE FROM vault WHERE id = ?1"] {
        conn.prepare_cached(sql)?.execute([id.bytes()])?;
    }
    Ok(())
}

//! Copies of a vault: one encrypted file that brings its own wrapped key.
//!
//! The copy is a short header and then the database as it lies on disk. The header holds the
//! vault's key under the directory's root key, so that a copy still opens after the vault
//! got another key, and after the catalog was lost.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;

use rusqlite::OpenFlags;
use serde::{Deserialize, Serialize};
use yore_canon::encode;
use yore_domain::{Error as DomainError, VaultId};
use yore_store::keeper::VaultInfo;
use yore_store::snapshot::Census;

use super::damaged;
use crate::catalog::{self, Line};
use crate::error::{Error, Result};
use crate::key::Key;
use crate::open::{self, Role, with_suffix};
use crate::snapshot::counts;
use crate::store::Inner;
use crate::{audit, migrate};

const MAGIC: &[u8; 8] = b"YOREBAK1";
const HEADER_LIMIT: u32 = 64 * 1024;

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    vault: VaultInfo,
    wrapped: String,
}

/// Copies a vault while it serves; returns the size of the copy.
pub(crate) fn write(inner: &Inner, id: VaultId, to: &Path) -> Result<u64> {
    let vault = inner.open_vault(id)?;
    let info = inner.line(id)?.info;
    let key = vault.key();
    let copy = with_suffix(to, ".partial");
    open::remove(&copy)?;
    let outcome = copy_database(&*vault.reader()?, &copy, &key)
        .and_then(|()| prove(inner, &copy, &key))
        .and_then(|()| {
            let wrapped = encode::hex(&inner.roots.lock().wrap(&id.bytes(), &key));
            pack(&Header { vault: info, wrapped }, &copy, to)
        });
    for leftover in ["", "-wal", "-shm", "-journal"] {
        open::remove(&with_suffix(&copy, leftover))?;
    }
    outcome
}

pub(crate) fn copy_database(from: &rusqlite::Connection, to: &Path, key: &Key) -> Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut copy = open::keyed(to, key, flags)?;
    let backup = rusqlite::backup::Backup::new(from, &mut copy)?;
    backup.run_to_completion(4096, std::time::Duration::ZERO, None)?;
    drop(backup);
    let _: String =
        copy.pragma_update_and_check(None, "journal_mode", "DELETE", |row| row.get(0))?;
    Ok(())
}

/// Opens a copy and reads all of it.
fn prove(inner: &Inner, path: &Path, key: &Key) -> Result<()> {
    let conn = open::connect(path, key, Role::Reader, inner.tuning())?;
    let verdict: String = conn.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    if verdict == "ok" { Ok(()) } else { Err(damaged(format!("the copy is faulty: {verdict}"))) }
}

fn pack(header: &Header, copy: &Path, to: &Path) -> Result<u64> {
    let fresh = with_suffix(to, ".new");
    let head = serde_json::to_vec(header)?;
    let length = u32::try_from(head.len()).map_err(|_| damaged("the header is too long"))?;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut out = options.open(&fresh).map_err(Error::file(&fresh))?;
    let mut database = File::open(copy).map_err(Error::file(copy))?;
    let size = out
        .write_all(MAGIC)
        .and_then(|()| out.write_all(&length.to_le_bytes()))
        .and_then(|()| out.write_all(&head))
        .and_then(|()| std::io::copy(&mut database, &mut out))
        .and_then(|_| out.sync_all())
        .and_then(|()| out.stream_position())
        .map_err(Error::file(&fresh))?;
    std::fs::rename(&fresh, to).map_err(Error::file(to))?;
    open::sync_parent(to)?;
    same(copy, to)?;
    Ok(size)
}

/// Reads what was written: it must be the copy that was found sound.
fn same(copy: &Path, packed: &Path) -> Result<()> {
    let (_, mut written) = unpack(packed)?;
    let mut copy = std::io::BufReader::new(File::open(copy).map_err(Error::file(copy))?);
    let (mut ours, mut theirs) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let count = copy.read(&mut ours).map_err(Error::file(packed))?;
        if count == 0 {
            break;
        }
        written.read_exact(&mut theirs[..count]).map_err(Error::file(packed))?;
        if ours[..count] != theirs[..count] {
            return Err(damaged("the disk gives back other bytes than were written"));
        }
    }
    Ok(())
}

fn unpack(from: &Path) -> Result<(Header, File)> {
    let not_ours = || damaged(format!("{} is not a copy of a vault", from.display()));
    let mut file = File::open(from).map_err(Error::file(from))?;
    let mut start = [0; 12];
    file.read_exact(&mut start).map_err(|_| not_ours())?;
    let length = u32::from_le_bytes([start[8], start[9], start[10], start[11]]);
    if start[..8] != *MAGIC || length > HEADER_LIMIT {
        return Err(not_ours());
    }
    let mut head = vec![0; length as usize];
    file.read_exact(&mut head).map_err(|_| not_ours())?;
    Ok((serde_json::from_slice(&head).map_err(|_| not_ours())?, file))
}

/// Opens a copy of a vault: its key, and the file from where its database begins.
pub(crate) fn opened(inner: &Inner, id: VaultId, from: &Path) -> Result<(Key, File)> {
    let (header, database) = unpack(from)?;
    Ok((key_of(inner, id, &header)?, database))
}

fn key_of(inner: &Inner, id: VaultId, header: &Header) -> Result<Key> {
    if header.vault.id != id {
        return Err(DomainError::conflict("the copy is of another vault").into());
    }
    encode::from_hex(&header.wrapped)
        .ok()
        .and_then(|wrapped| inner.roots.lock().unwrap(&id.bytes(), &wrapped))
        .ok_or(Error::WrongKey)
}

/// Takes the database out of a copy of a vault, into a file beside it.
fn taken_out(inner: &Inner, id: VaultId, from: &Path, to: &Path) -> Result<(VaultInfo, Key)> {
    let (header, mut database) = unpack(from)?;
    let key = key_of(inner, id, &header)?;
    open::remove(to)?;
    let mut out = File::create(to).map_err(Error::file(to))?;
    std::io::copy(&mut database, &mut out).and_then(|_| out.sync_all()).map_err(Error::file(to))?;
    Ok((header.vault, key))
}

/// Opens a database that was taken out of a copy, found sound and brought up to date.
fn proven(inner: &Inner, path: &Path, key: &Key) -> Result<rusqlite::Connection> {
    prove(inner, path, key)?;
    let mut conn = open::connect(path, key, Role::Writer, inner.tuning())?;
    migrate::migrate(&mut conn, migrate::Schema::Vault, path)?;
    Ok(conn)
}

/// Counts what a copy of a vault holds.
pub(crate) fn survey(inner: &Inner, id: VaultId, from: &Path) -> Result<Census> {
    // Two people may look at once.
    let place = with_suffix(&inner.files(id).db, &format!(".survey-{}", VaultId::random()));
    let counted = taken_out(inner, id, from, &place).and_then(|(_, key)| {
        let conn = proven(inner, &place, &key)?;
        Ok(counts(&conn)?)
    });
    for leftover in ["", "-wal", "-shm", "-journal"] {
        open::remove(&with_suffix(&place, leftover))?;
    }
    counted
}

/// Puts a copy in place of a vault, or brings back one that was destroyed.
pub(crate) fn restore(inner: &Inner, id: VaultId, from: &Path) -> Result<()> {
    let files = inner.files(id);
    let fresh = with_suffix(&files.db, ".restore");
    let (info, key) = taken_out(inner, id, from, &fresh)?;
    let proven = proven(inner, &fresh, &key).and_then(|conn| {
        let checkpoint = audit::newest(&conn)?;
        open::truncate_wal(&conn)?;
        Ok(checkpoint.map(|checkpoint| serde_json::to_string(&checkpoint)).transpose()?)
    });
    for leftover in ["-wal", "-shm"] {
        open::remove(&with_suffix(&fresh, leftover))?;
    }
    let checkpoint = match proven {
        Ok(checkpoint) => checkpoint,
        Err(error) => {
            open::remove(&fresh)?;
            return Err(error);
        }
    };
    inner.alone(id, || {
        accept(inner, info, &key, checkpoint)?;
        for path in files.all().iter().skip(1) {
            open::remove(path)?;
        }
        std::fs::rename(&fresh, &files.db).map_err(Error::file(&files.db))?;
        open::sync_parent(&files.db)?;
        inner.settle(id, &key)
    })
}

/// Writes the copy's key down beside the present one before the file changes.
fn accept(inner: &Inner, info: VaultInfo, key: &Key, checkpoint: Option<String>) -> Result<()> {
    let id = info.id;
    let fresh = inner.roots.lock().wrap(&id.bytes(), key);
    inner.catalog()?.writer.ask_blocking(move |desk| {
        let tx = desk.conn.transaction()?;
        match catalog::get(&tx, id)? {
            Some(line) => {
                catalog::set_wrapped(&tx, id, &[line.wrapped, fresh].concat())?;
                catalog::set_checkpoint(&tx, id, checkpoint.as_deref())?;
            }
            None => catalog::insert(&tx, &Line { info, wrapped: fresh, checkpoint })?,
        }
        tx.commit()?;
        Ok(())
    })
}

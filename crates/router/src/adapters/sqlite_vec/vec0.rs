//! The tables behind `vec0`: chunks of vectors, and where each row's vector lies.
//!
//! A chunk has places for some vectors. It says by bits which are taken, by numbers which rows
//! have them, and holds the vectors one after another.

use std::collections::BTreeMap;

use rusqlite::blob::Blob;
use rusqlite::{Connection, MAIN_DB, OptionalExtension, Transaction, params};

use super::super::vectors::{DIMENSIONS, bytes};
use crate::error::{Error, Result};

/// Places of a new chunk.
const SIZE: usize = 1024;
/// Bytes of a vector.
const WIDTH: usize = DIMENSIONS * 4;

/// Where a vector lies.
#[derive(Clone, Copy)]
struct Spot {
    chunk: i64,
    offset: usize,
}

/// Gives a row a vector, in place of the one it had.
pub(super) fn put(transaction: &Transaction<'_>, rowid: i64, vector: &[f32]) -> Result<()> {
    let spot = match spot(transaction, rowid)? {
        Some(spot) => spot,
        None => take(transaction, rowid)?,
    };
    write(transaction, spot, &bytes(vector))
}

/// Takes a row's vector away, and leaves nothing of it.
pub(super) fn remove(transaction: &Transaction<'_>, rowid: i64) -> Result<()> {
    let Some(spot) = spot(transaction, rowid)? else { return Ok(()) };
    write(transaction, spot, &[0; WIDTH])?;
    mark(transaction, spot, 0, false)?;
    transaction.execute("DELETE FROM memories_vec_rowids WHERE rowid = ?1", [rowid])?;
    Ok(())
}

/// Shows the vectors of some rows.
pub(super) fn each(
    connection: &Connection,
    rowids: impl Iterator<Item = i64>,
    mut see: impl FnMut(i64, &[u8]),
) -> Result<()> {
    // By chunk: which rows, and where in it.
    let mut chunks: BTreeMap<i64, Vec<(i64, usize)>> = BTreeMap::new();
    for rowid in rowids {
        if let Some(Spot { chunk, offset }) = spot(connection, rowid)? {
            chunks.entry(chunk).or_default().push((rowid, offset));
        }
    }
    let mut vector = vec![0; WIDTH];
    for (chunk, rows) in chunks {
        let blob = vectors(connection, chunk, true)?;
        for (rowid, offset) in rows {
            blob.read_at_exact(&mut vector, offset * WIDTH)?;
            see(rowid, &vector);
        }
    }
    Ok(())
}

fn spot(connection: &Connection, rowid: i64) -> Result<Option<Spot>> {
    let sql = "SELECT chunk_id, chunk_offset FROM memories_vec_rowids WHERE rowid = ?1";
    let found: Option<(Option<i64>, Option<usize>)> = connection
        .prepare_cached(sql)?
        .query_row([rowid], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(found.and_then(|(chunk, offset)| Some(Spot { chunk: chunk?, offset: offset? })))
}

/// Takes a free place for a row: in the newest chunk, which is the one vec0 fills, else in a new one.
fn take(transaction: &Transaction<'_>, rowid: i64) -> Result<Spot> {
    let sql = "SELECT chunk_id, validity FROM memories_vec_chunks ORDER BY chunk_id DESC LIMIT 1";
    let newest: Option<(i64, Vec<u8>)> =
        transaction.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let free = newest.and_then(|(chunk, validity)| {
        let byte = validity.iter().position(|byte| *byte != u8::MAX)?;
        let bit = validity[byte].trailing_ones() as usize;
        Some(Spot { chunk, offset: byte * 8 + bit })
    });
    let spot = match free {
        Some(spot) => spot,
        None => Spot { chunk: grow(transaction)?, offset: 0 },
    };
    mark(transaction, spot, rowid, true)?;
    transaction
        .prepare_cached(
            "INSERT OR REPLACE INTO memories_vec_rowids (rowid, chunk_id, chunk_offset) \
             VALUES (?1, ?2, ?3)",
        )?
        .execute(params![rowid, spot.chunk, spot.offset])?;
    Ok(spot)
}

fn grow(transaction: &Transaction<'_>) -> Result<i64> {
    transaction.execute(
        "INSERT INTO memories_vec_chunks (size, validity, rowids) \
         VALUES (?1, zeroblob(?2), zeroblob(?3))",
        params![SIZE, SIZE / 8, SIZE * 8],
    )?;
    let chunk = transaction.last_insert_rowid();
    transaction.execute(
        "INSERT INTO memories_vec_vector_chunks00 (_rowid_, rowid, vectors) \
         VALUES (?1, ?1, zeroblob(?2))",
        params![chunk, SIZE * WIDTH],
    )?;
    Ok(chunk)
}

/// Says which row has a place, or that none has.
fn mark(transaction: &Transaction<'_>, spot: Spot, rowid: i64, taken: bool) -> Result<()> {
    let table = "memories_vec_chunks";
    let mut rowids = transaction.blob_open(MAIN_DB, table, "rowids", spot.chunk, false)?;
    rowids.write_at(&rowid.to_le_bytes(), spot.offset * 8)?;
    drop(rowids);
    let mut validity = transaction.blob_open(MAIN_DB, table, "validity", spot.chunk, false)?;
    let mut byte = [0];
    validity.read_at_exact(&mut byte, spot.offset / 8)?;
    let bit = 1 << (spot.offset % 8);
    byte[0] = if taken { byte[0] | bit } else { byte[0] & !bit };
    validity.write_at(&byte, spot.offset / 8)?;
    Ok(())
}

fn write(transaction: &Transaction<'_>, spot: Spot, vector: &[u8]) -> Result<()> {
    let mut blob = vectors(transaction, spot.chunk, false)?;
    blob.write_at(vector, spot.offset * WIDTH)?;
    Ok(())
}

/// The vectors of a chunk. The column called `rowid` is not the row's own number.
fn vectors(connection: &Connection, chunk: i64, read_only: bool) -> Result<Blob<'_>> {
    let table = "memories_vec_vector_chunks00";
    let sql = "SELECT _rowid_ FROM memories_vec_vector_chunks00 WHERE rowid = ?1";
    let number: Option<i64> =
        connection.prepare_cached(sql)?.query_row([chunk], |row| row.get(0)).optional()?;
    let number = number.ok_or_else(|| Error::Database(format!("chunk {chunk} is missing")))?;
    Ok(connection.blob_open(MAIN_DB, table, "vectors", number, read_only)?)
}

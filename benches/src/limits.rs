//! What the machine allows: a plain encrypted insert and a plain scan, without an engine.

use std::path::Path;

use anyhow::Result;
use rusqlite::{Connection, params};
use yore_embed::builtin;
use yore_kernels::dot_i8;

use crate::corpus::{Corpus, Random};
use crate::meter::Series;

/// Dimensions of the rows that are scanned, those of the static table.
const WIDTH: usize = 256;

/// One row a transaction into an encrypted file, each on disk before the next.
pub(crate) fn plain_insert(folder: &Path, corpus: &Corpus, count: usize) -> Result<Series> {
    let path = folder.join("plain.db");
    let connection = Connection::open(&path)?;
    let key = "2b7e151628aed2a6abf7158809cf4f3c2b7e151628aed2a6abf7158809cf4f3c";
    connection.pragma_update(None, "key", format!("x'{key}'"))?;
    connection.execute_batch("PRAGMA cipher_hmac_algorithm = HMAC_SHA256")?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute_batch(
        "CREATE TABLE memory (
            row INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, created INTEGER NOT NULL,
            text TEXT NOT NULL, data TEXT NOT NULL, vector BLOB NOT NULL)",
    )?;
    let mut random = Random::new(3);
    let statics = &builtin().statics;
    let rows: Vec<_> = (0..count)
        .map(|number| {
            let text = corpus.memory(number);
            let vector = statics.embed(&statics.tokens(&text));
            let vector: Vec<u8> = vector.values.iter().map(|value| value.cast_unsigned()).collect();
            let id: Vec<u8> = (0..16).map(|_| random.next() as u8).collect();
            let data = format!(r#"{{"kind":"semantic","scope":{{}},"text":"{text}"}}"#);
            (id, text, data, vector)
        })
        .collect();
    let mut insert = connection.prepare(
        "INSERT INTO memory (id, created, text, data, vector) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let mut failure = None;
    let series = Series::of(&rows, |(id, text, data, vector)| {
        let done = insert.execute(params![id, 1_800_000_000_000_i64, text, data, vector]);
        failure = failure.take().or(done.err());
    });
    failure.map_or(Ok(series), |error| Err(error.into()))
}

/// Compares a query with every int8 row and keeps the ten nearest.
pub(crate) fn plain_scan(size: usize, count: usize) -> Series {
    let mut random = Random::new(5);
    let rows: Vec<i8> = (0..size * WIDTH).map(|_| random.next() as i8).collect();
    let queries: Vec<Vec<i8>> =
        (0..count).map(|_| (0..WIDTH).map(|_| random.next() as i8).collect()).collect();
    Series::of(&queries, |query| {
        let mut best = [(i32::MIN, 0_usize); 10];
        for (at, row) in rows.chunks_exact(WIDTH).enumerate() {
            let score = dot_i8(query, row);
            if score > best[9].0 {
                let place = best.partition_point(|(other, _)| *other >= score);
                best[place..].rotate_right(1);
                best[place] = (score, at);
            }
        }
        std::hint::black_box(best);
    })
}

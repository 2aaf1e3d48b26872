//! Snapshots: the whole index as bytes, with a checksum, ready for the caller to encrypt.
//!
//! Little-endian. `magic, version, dense dims, sequence, terms, partitions, documents, checksum`. Posting
//! lists, counts and sign bits are rebuilt on load: what can be derived cannot be inconsistent.

use std::io::{self, Write};

use crate::analysis::Language;
use crate::codec;
use crate::document::{ClassId, Meta, STATIC_DIMS, Vector};
use crate::index::Index;
use crate::partition::{Arrival, Doc, Partition};

const MAGIC: &[u8; 8] = b"yoreidx\0";
const VERSION: u32 = 4;
const CHECKSUM: usize = 32;
/// The bytes of a document besides its words.
const LEAST: usize = 8 + 16 + STATIC_DIMS;

/// Why bytes are not a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The bytes do not begin like a snapshot.
    #[error("not an index snapshot")]
    Foreign,
    /// The snapshot was written by another version of the format.
    #[error("unsupported snapshot version {0}")]
    Version(u32),
    /// The checksum or a bound does not hold.
    #[error("damaged snapshot: invalid {0}")]
    Damaged(&'static str),
}

impl Index {
    /// Writes the index; removed documents leave no trace in it.
    ///
    /// # Errors
    /// Returns the writer's error.
    pub fn snapshot(&self, out: &mut impl Write) -> io::Result<()> {
        let mut sink =
            Sink { out, hasher: blake3::Hasher::new(), buffer: Vec::with_capacity(1 << 16) };
        sink.buffer.extend_from_slice(MAGIC);
        sink.buffer.extend_from_slice(&VERSION.to_le_bytes());
        codec::put_varint(&mut sink.buffer, self.dense_dims as u64);
        codec::put_varint(&mut sink.buffer, self.sequence);
        // Term ids follow the alphabet, so equal contents give equal bytes whatever their history.
        let mut terms: Vec<(u32, &str)> = self.dictionary.iter().collect();
        terms.sort_unstable_by_key(|&(_, term)| term);
        let mut renumbered = vec![0u32; self.dictionary.bound()];
        codec::put_varint(&mut sink.buffer, terms.len() as u64);
        for (new, &(old, term)) in (0u32..).zip(&terms) {
            renumbered[old as usize] = new;
            codec::put_varint(&mut sink.buffer, term.len() as u64);
            sink.buffer.extend_from_slice(term.as_bytes());
            sink.flush_if_full()?;
        }
        codec::put_varint(&mut sink.buffer, self.partitions.len() as u64);
        for (class, partition) in &self.partitions {
            codec::put_varint(&mut sink.buffer, u64::from(class.0));
            codec::put_varint(&mut sink.buffer, partition.len() as u64);
            let mut docs: Vec<&Doc> = partition.docs.iter().filter(|doc| doc.live).collect();
            docs.sort_unstable_by_key(|doc| doc.key);
            for doc in docs {
                write_doc(&mut sink.buffer, partition, doc, &renumbered);
                sink.flush_if_full()?;
            }
        }
        sink.finish()
    }

    /// Reads an index back.
    ///
    /// # Errors
    /// Refuses anything that [`Index::snapshot`] did not write.
    pub fn restore(bytes: &[u8]) -> Result<Index, SnapshotError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(SnapshotError::Foreign)?;
        let (version, _) = rest.split_first_chunk::<4>().ok_or(SnapshotError::Damaged("length"))?;
        let version = u32::from_le_bytes(*version);
        if version != VERSION {
            return Err(SnapshotError::Version(version));
        }
        let (content, checksum) = bytes
            .len()
            .checked_sub(CHECKSUM)
            .filter(|&at| at >= MAGIC.len() + 4)
            .map(|at| bytes.split_at(at))
            .ok_or(SnapshotError::Damaged("length"))?;
        if blake3::hash(content).as_bytes() != checksum {
            return Err(SnapshotError::Damaged("checksum"));
        }
        read(&mut Source { rest: &content[MAGIC.len() + 4..] })
    }
}

struct Sink<'a, W> {
    out: &'a mut W,
    hasher: blake3::Hasher,
    buffer: Vec<u8>,
}

impl<W: Write> Sink<'_, W> {
    fn flush_if_full(&mut self) -> io::Result<()> {
        if self.buffer.len() >= 1 << 16 { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.hasher.update(&self.buffer);
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        self.out.write_all(self.hasher.finalize().as_bytes())
    }
}

fn write_doc(out: &mut Vec<u8>, partition: &Partition, doc: &Doc, renumbered: &[u32]) {
    out.extend_from_slice(&doc.key.to_le_bytes());
    out.extend_from_slice(&doc.id);
    write_meta(out, &doc.meta);
    out.push(doc.language as u8);
    codec::put_varint(out, u64::from(doc.length));
    let mut terms: Vec<(u32, u32)> = codec::terms(&doc.blob)
        .map(|(term, frequency)| (renumbered[term as usize], frequency))
        .collect();
    terms.sort_unstable();
    let tokens: Vec<u16> = codec::tokens(&doc.blob).collect();
    let blob = codec::pack(&terms, &tokens);
    codec::put_varint(out, blob.len() as u64);
    out.extend_from_slice(&blob);
    write_vector(out, partition.statics.vector(doc.statics));
    match doc.dense() {
        Some(row) => {
            out.push(1);
            write_vector(out, partition.dense.vector(row));
        }
        None => out.push(0),
    }
}

fn write_meta(out: &mut Vec<u8>, meta: &Meta) {
    out.extend_from_slice(&[meta.kind, meta.flags]);
    for time in
        [meta.created, meta.valid_from, meta.valid_to, meta.recorded, meta.retired, meta.expires]
    {
        out.extend_from_slice(&time.to_le_bytes());
    }
    out.extend_from_slice(&meta.session.to_le_bytes());
    out.extend_from_slice(&meta.ordinal.to_le_bytes());
    out.extend_from_slice(&meta.weight.to_le_bytes());
    out.extend_from_slice(&meta.tags.to_le_bytes());
}

fn write_vector(out: &mut Vec<u8>, vector: Vector<'_>) {
    out.extend_from_slice(&vector.scale.to_le_bytes());
    out.extend(vector.values.iter().map(|&value| value.cast_unsigned()));
}

/// Reads with every bound checked.
struct Source<'a> {
    rest: &'a [u8],
}

impl<'a> Source<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], SnapshotError> {
        let (head, rest) =
            self.rest.split_at_checked(count).ok_or(SnapshotError::Damaged("length"))?;
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        let (head, rest) =
            self.rest.split_first_chunk::<N>().ok_or(SnapshotError::Damaged("length"))?;
        self.rest = rest;
        Ok(*head)
    }

    fn varint(&mut self) -> Result<u64, SnapshotError> {
        codec::get_varint(&mut self.rest).ok_or(SnapshotError::Damaged("number"))
    }

    /// Reads a count of things that each take at least one byte.
    fn count(&mut self) -> Result<usize, SnapshotError> {
        let count = usize::try_from(self.varint()?).map_err(|_| SnapshotError::Damaged("count"))?;
        if count > self.rest.len() { Err(SnapshotError::Damaged("count")) } else { Ok(count) }
    }

    fn i64(&mut self) -> Result<i64, SnapshotError> {
        self.array().map(i64::from_le_bytes)
    }

    fn f32(&mut self) -> Result<f32, SnapshotError> {
        let value = self.array().map(f32::from_le_bytes)?;
        if value.is_finite() { Ok(value) } else { Err(SnapshotError::Damaged("float")) }
    }

    fn vector(&mut self, dims: usize) -> Result<Vector<'a>, SnapshotError> {
        let scale = self.f32()?;
        Ok(Vector { values: bytemuck::cast_slice(self.take(dims)?), scale })
    }

    fn meta(&mut self) -> Result<Meta, SnapshotError> {
        let [kind, flags] = self.array()?;
        Ok(Meta {
            kind,
            flags,
            created: self.i64()?,
            valid_from: self.i64()?,
            valid_to: self.i64()?,
            recorded: self.i64()?,
            retired: self.i64()?,
            expires: self.i64()?,
            session: self.array().map(u64::from_le_bytes)?,
            ordinal: self.array().map(u32::from_le_bytes)?,
            weight: self.f32()?,
            tags: self.array().map(u64::from_le_bytes)?,
        })
    }
}

fn read(source: &mut Source<'_>) -> Result<Index, SnapshotError> {
    let dense_dims = source.varint()?;
    if dense_dims > 1 << 16 {
        return Err(SnapshotError::Damaged("dimensions"));
    }
    let mut index = Index::new(dense_dims as usize);
    index.sequence = source.varint()?;
    let terms = source.count()?;
    for _ in 0..terms {
        let length = source.count()?;
        let term = std::str::from_utf8(source.take(length)?)
            .map_err(|_| SnapshotError::Damaged("term"))?;
        index.dictionary.intern(term);
    }
    if index.dictionary.len() != terms {
        return Err(SnapshotError::Damaged("term"));
    }
    for _ in 0..source.count()? {
        let class = u32::try_from(source.varint()?)
            .map(ClassId)
            .map_err(|_| SnapshotError::Damaged("class"))?;
        let documents = source.count()?;
        // A count that lies must not cost memory: each document takes this much at least.
        if documents > 0 {
            index.expect(class, documents.min(source.rest.len() / LEAST));
        }
        for _ in 0..documents {
            read_doc(source, &mut index, class)?;
        }
    }
    if !source.rest.is_empty() || index.dictionary.has_unused() {
        return Err(SnapshotError::Damaged("end"));
    }
    Ok(index)
}

fn read_doc(
    source: &mut Source<'_>,
    index: &mut Index,
    class: ClassId,
) -> Result<(), SnapshotError> {
    let key = source.array().map(u64::from_le_bytes)?;
    let id = source.array()?;
    let meta = source.meta()?;
    let [language] = source.array()?;
    let language =
        *Language::ALL.get(usize::from(language)).ok_or(SnapshotError::Damaged("language"))?;
    let length = u32::try_from(source.varint()?).map_err(|_| SnapshotError::Damaged("length"))?;
    let size = source.count()?;
    let blob = source.take(size)?;
    let statics = source.vector(STATIC_DIMS)?;
    let dense = match source.array()? {
        [0] => None,
        [1] => Some(source.vector(index.dense_dims)?),
        [_] => return Err(SnapshotError::Damaged("vector")),
    };
    if index.contains(key) || index.partitions.get(&class).is_some_and(Partition::is_full) {
        return Err(SnapshotError::Damaged("key"));
    }
    let mut next = 0;
    let known = codec::terms(blob).all(|(term, frequency)| {
        let ascends = term >= next;
        next = term.saturating_add(1);
        ascends && (term as usize) < index.dictionary.bound() && frequency > 0
    });
    if !known || !codec::is_whole(blob) {
        return Err(SnapshotError::Damaged("terms"));
    }
    index.dictionary.count(codec::terms(blob).map(|(term, _)| term));
    index.admit(
        class,
        Arrival { key, id, meta, blob: blob.into(), length, language, statics, dense },
    );
    Ok(())
}

//! Zips: every rule that makes one safe to open is checked before an entry is read.

use std::collections::HashSet;
use std::io::{self, BufReader, Read};
use std::sync::Arc;

use flate2::Crc;
use flate2::bufread::DeflateDecoder;
use yore_domain::Timestamp;
use zip::{CompressionMethod, ZipArchive};

use super::{Bounded, Shared};
use crate::{Error, Limits, Result};

/// A zip that was found safe.
#[derive(Debug)]
pub(crate) struct Archive {
    label: String,
    bytes: Shared,
}

/// A file inside a zip.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) size: u64,
    pub(crate) modified: Option<Timestamp>,
    packed: u64,
    start: u64,
    deflated: bool,
    crc: u32,
    most: u64,
}

impl Archive {
    /// Opens a zip and lists its files in the order of its directory.
    pub(crate) fn open(
        label: &str,
        bytes: Shared,
        limits: Limits,
    ) -> Result<(Arc<Self>, Vec<Entry>)> {
        let refuse = |reason: String| Error::Zip { path: label.to_owned(), reason };
        let path = |reason: String| Error::archive("path", format!("{label}: {reason}"));
        let mut zip = ZipArchive::new(bytes.clone())
            .map_err(|error| refuse(format!("not a readable zip: {error}")))?;
        if zip.len() > limits.entries {
            return Err(refuse(format!("more than {} entries", limits.entries)));
        }
        if zip.has_duplicate_names() {
            return Err(path("two entries have the same name".to_owned()));
        }
        let (mut entries, mut seen, mut total) = (Vec::new(), HashSet::new(), 0_u64);
        for index in 0..zip.len() {
            let file = zip
                .by_index_raw(index)
                .map_err(|error| refuse(format!("entry {index} cannot be read: {error}")))?;
            let name = file
                .name()
                .map_err(|_| refuse(format!("the name of entry {index} is not text")))?
                .into_owned();
            let shown = shown(&name);
            check_name(file.name_raw(), &name).map_err(|why| path(format!("{shown}: {why}")))?;
            if file.is_symlink() {
                return Err(path(format!("{shown}: a symbolic link")));
            }
            // Two spellings of a name may be one text.
            if !seen.insert(name.clone()) {
                return Err(path(format!("{shown}: two entries have the same name")));
            }
            if file.is_dir() {
                continue;
            }
            if file.encrypted() {
                return Err(refuse(format!("{shown}: encrypted")));
            }
            let method = file.compression();
            if method != CompressionMethod::Stored && method != CompressionMethod::Deflated {
                return Err(refuse(format!("{shown}: packed by an unknown method")));
            }
            total = total.saturating_add(file.size());
            let (size, packed) = (file.size(), file.compressed_size());
            let most = packed.saturating_mul(limits.ratio).max(1 << 20);
            if size > most {
                return Err(refuse(format!("{shown}: unpacks to over {} times", limits.ratio)));
            }
            if total > limits.inflated {
                return Err(refuse(format!("unpacks to more than {} bytes", limits.inflated)));
            }
            let start =
                file.data_start().ok_or_else(|| refuse(format!("{shown}: has no bytes")))?;
            entries.push(Entry {
                name,
                size,
                modified: file.last_modified().and_then(stamp),
                packed,
                start,
                deflated: method == CompressionMethod::Deflated,
                crc: file.crc32(),
                most: size,
            });
        }
        let overlap = zip.has_overlapping_files();
        if overlap.map_err(|error| refuse(format!("cannot be read: {error}")))? {
            return Err(refuse("two entries share their bytes".to_owned()));
        }
        Ok((Arc::new(Self { label: label.to_owned(), bytes }), entries))
    }

    /// Opens an entry. What does not match its size and checksum fails at its end.
    pub(crate) fn reader(&self, entry: &Entry) -> Box<dyn Read + Send> {
        let packed =
            BufReader::with_capacity(32 << 10, self.bytes.at(entry.start).take(entry.packed));
        let check =
            |inner| Checked { inner, crc: Crc::new(), expected: entry.crc, size: entry.size };
        if entry.deflated {
            let plain: Box<dyn Read + Send> = Box::new(DeflateDecoder::new(packed));
            Box::new(check(Bounded { inner: plain, left: entry.most }))
        } else {
            let plain: Box<dyn Read + Send> = Box::new(packed);
            Box::new(check(Bounded { inner: plain, left: entry.most }))
        }
    }

    /// Reads a zip that lies inside, into memory.
    pub(super) fn inner(&self, entry: &Entry, most: u64) -> Result<Shared> {
        let path = format!("{}/{}", self.label, entry.name);
        if entry.size > most {
            let reason = "too large for a zip inside a zip; unpack the outer one".to_owned();
            return Err(Error::Zip { path, reason });
        }
        let mut bytes = Vec::new();
        self.reader(entry).read_to_end(&mut bytes).map_err(Error::io(&path))?;
        let inner = Shared::memory(bytes);
        if inner.is_zip() {
            Ok(inner)
        } else {
            Err(Error::Zip { path, reason: "not a zip".into() })
        }
    }
}

/// Whether a zip has a manifest of the archive format.
pub(super) fn is_archive(bytes: &Shared) -> bool {
    let Ok(mut zip) = ZipArchive::new(bytes.clone()) else { return false };
    let Ok(manifest) = zip.by_name("manifest.json") else { return false };
    let mut head = Vec::new();
    manifest.take(64 << 10).read_to_end(&mut head).is_ok()
        && memchr::memmem::find(&head, b"\"omp_version\"").is_some()
}

/// Compares the checksum when the end is reached.
struct Checked<R> {
    inner: R,
    crc: Crc,
    expected: u32,
    size: u64,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.crc.update(&buffer[..count]);
        self.size = self.size.saturating_sub(count as u64);
        if count == 0 && !buffer.is_empty() && (self.size > 0 || self.crc.sum() != self.expected) {
            return Err(io::Error::other("damaged: the checksum in the zip is another"));
        }
        Ok(count)
    }
}

/// Says why a name must not be used.
fn check_name(raw: &[u8], name: &str) -> Result<(), &'static str> {
    if name.is_empty() || name.len() > 4096 {
        return Err("a name must have 1 to 4096 bytes");
    }
    if raw.contains(&0) {
        return Err("a name must not hold NUL");
    }
    if name.contains('\\') {
        return Err("a name must not hold a backslash");
    }
    if name.starts_with('/') {
        return Err("an absolute path");
    }
    let bytes = name.as_bytes();
    if bytes.len() >= 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' {
        return Err("a path with a drive letter");
    }
    let folders = name.strip_suffix('/').unwrap_or(name);
    if folders.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
        return Err("a path that leaves its folder");
    }
    Ok(())
}

fn shown(name: &str) -> String {
    let mut text: String = name.chars().take(120).flat_map(char::escape_debug).collect();
    if text.is_empty() {
        text.push_str("an entry without a name");
    }
    text
}

fn stamp(time: zip::DateTime) -> Option<Timestamp> {
    let text = format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        time.year(),
        time.month(),
        time.day(),
        time.hour(),
        time.minute(),
        time.second()
    );
    text.parse().ok()
}

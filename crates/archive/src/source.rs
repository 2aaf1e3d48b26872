//! What the person named: files, folders and zips, seen as one list of files.
//!
//! Zips are read in place. Their entries are checked by [`zipped`] before one is opened, and no
//! entry's name ever becomes a path on disk.

mod packed;
mod walk;
mod zipped;

use std::collections::HashMap;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use yore_domain::{BlobHash, BlobHasher, Timestamp};
use zeroize::Zeroizing;

use crate::item::Blob;
use crate::omp::Sealed;
use crate::{Error, Limits, Result, Skip};

pub(crate) use packed::{Shared, read_at};
pub(crate) use zipped::{Archive, Entry};

/// Bytes that are looked at to tell what a file is.
const SAMPLE: usize = 256 << 10;

/// Everything that was named, as one list of files.
#[derive(Debug)]
pub struct Source {
    files: Vec<File>,
    names: HashMap<String, Vec<usize>>,
    skipped: Vec<Skip>,
    limits: Limits,
    read: Arc<AtomicU64>,
    password: Option<Zeroizing<String>>,
}

/// One file of a [`Source`], on disk or inside a zip.
#[derive(Clone, Debug)]
pub struct File {
    path: String,
    size: u64,
    modified: Option<Timestamp>,
    named: bool,
    place: Place,
    read: Arc<AtomicU64>,
    ratio: u64,
}

#[derive(Clone, Debug)]
enum Place {
    Disk(PathBuf),
    Zip(Arc<Archive>, Entry),
    /// Encrypted on disk under a key that only this process has.
    Aside(Shared),
}

impl Source {
    /// Opens everything that was named. What is not safe to open is listed in
    /// [`skipped`](Self::skipped); only a path that is not there fails.
    pub fn open(paths: &[PathBuf], limits: Limits) -> Result<Self> {
        let mut source = Self::empty(limits);
        for path in paths {
            source.add(path)?;
        }
        Ok(source.listed())
    }

    /// Opens a zip that lies encrypted on disk, and is decrypted as it is read. An archive of
    /// this program's own is no export.
    pub fn sealed(path: &Path, password: &str, label: &str, limits: Limits) -> Result<Self> {
        let shared = Shared::sealed(Sealed::open(path, password, None)?);
        if zipped::is_archive(&shared) {
            return Err(Error::form("an archive is restored, not imported"));
        }
        let mut source = Self::empty(limits);
        source.add_zip(label, shared, 0);
        Ok(source.listed())
    }

    /// Opens one file that [`put_aside`](crate::omp::put_aside) wrote, as if it had this name. Its
    /// clear text never touches a disk.
    pub fn open_put_aside(path: &Path, key: &[u8; 32], name: &str, limits: Limits) -> Result<Self> {
        let mut source = Self::empty(limits);
        let sealed = Sealed::open_put_aside(path, key)?;
        let length = sealed.length();
        let shared = Shared::sealed(sealed);
        if shared.is_zip() && !zipped::is_archive(&shared) {
            source.add_zip(name, shared, 0);
        } else {
            source.push(name.to_owned(), length, None, true, Place::Aside(shared));
        }
        Ok(source.listed())
    }

    fn empty(limits: Limits) -> Self {
        Self {
            files: Vec::new(),
            names: HashMap::new(),
            skipped: Vec::new(),
            limits,
            read: Arc::default(),
            password: None,
        }
    }

    fn listed(mut self) -> Self {
        self.files.sort_by_cached_key(|file| natural(&file.path));
        for (index, file) in self.files.iter().enumerate() {
            self.names.entry(file.name().to_owned()).or_default().push(index);
        }
        self
    }

    /// Returns its files, sorted so that `part-2` comes before `part-10`.
    #[must_use]
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// Returns the files of that name, in any folder.
    pub fn named<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a File> {
        self.names.get(name).into_iter().flatten().map(|index| &self.files[*index])
    }

    /// Returns what was not opened, and why.
    #[must_use]
    pub fn skipped(&self) -> &[Skip] {
        &self.skipped
    }

    /// Returns the limits it was opened with.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Whether an archive under a password is among the files.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        let begins = |file: &File| file.head().is_ok_and(|head| Sealed::begins(&head));
        self.files.iter().any(begins)
    }

    /// Says the password of archives among the files.
    #[must_use]
    pub fn with_password(mut self, password: String) -> Self {
        self.password = Some(Zeroizing::new(password));
        self
    }

    pub(crate) fn password(&self) -> Option<&str> {
        self.password.as_ref().map(|password| password.as_str())
    }

    /// Returns how many bytes there are, unpacked.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.size))
    }

    /// Returns a counter of the bytes read so far, for a progress bar on another thread.
    #[must_use]
    pub fn progress(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.read)
    }

    /// Reads a file that is parsed at once.
    pub fn document(&self, file: &File) -> Result<Vec<u8>> {
        file.bytes(self.limits.document as u64)
    }

    /// Hashes a file, so that it can be attached to a message.
    pub(crate) fn blob(&self, file: &File) -> Result<Blob> {
        if file.size > self.limits.blob {
            return Err(Error::too_large(file.path(), format!("{} bytes", self.limits.blob)));
        }
        let (mut reader, mut hasher) = (file.open()?, BlobHasher::default());
        let (mut buffer, mut head, mut size) = (vec![0; 64 << 10], Vec::new(), 0);
        loop {
            let count = reader.read(&mut buffer).map_err(Error::io(file.path()))?;
            if count == 0 {
                break;
            }
            if head.len() < 512 {
                head.extend_from_slice(&buffer[..count.min(512)]);
            }
            size += count as u64;
            if size > self.limits.blob {
                return Err(Error::too_large(file.path(), format!("{} bytes", self.limits.blob)));
            }
            hasher.update(&buffer[..count]);
        }
        Ok(Blob::of_file(hasher.finish(), size, head, file.clone()))
    }

    fn add(&mut self, path: &Path) -> Result<()> {
        let shown = path.display().to_string();
        let about = std::fs::metadata(path).map_err(Error::io(&shown))?;
        if about.is_dir() {
            for found in walk::files(path, self.limits.entries)? {
                let inside = found.strip_prefix(path).unwrap_or(&found);
                let label = slashed(inside);
                self.add_file(&found, label, false)?;
            }
            return Ok(());
        }
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        self.add_file(path, name.unwrap_or(shown), true)
    }

    fn add_file(&mut self, path: &Path, label: String, named: bool) -> Result<()> {
        let about = match std::fs::metadata(path) {
            Ok(about) => about,
            Err(source) if named => return Err(Error::Io { path: label, source }),
            Err(error) => {
                self.skip(&label, error.to_string());
                return Ok(());
            }
        };
        let modified = about.modified().ok().and_then(stamp);
        let shared = match Shared::open(path) {
            Ok(shared) => shared,
            Err(error) => {
                self.skip(&label, error.to_string());
                return Ok(());
            }
        };
        // An archive is read as a whole; other zips are folders.
        if shared.is_zip() && !zipped::is_archive(&shared) {
            self.add_zip(&label, shared, 0);
            return Ok(());
        }
        let place = Place::Disk(path.to_owned());
        self.push(label, about.len(), modified, named, place);
        Ok(())
    }

    fn add_zip(&mut self, label: &str, shared: Shared, depth: u32) {
        let (archive, entries) = match Archive::open(label, shared, self.limits) {
            Ok(opened) => opened,
            Err(error) => {
                self.skip(label, error.to_string());
                return;
            }
        };
        for entry in entries {
            let path = entry.name.clone();
            if entry.name.ends_with(".zip") && depth < 2 {
                match archive.inner(&entry, self.limits.nested) {
                    Ok(inner) if zipped::is_archive(&inner) => {
                        let (size, modified) = (entry.size, entry.modified);
                        let place = Place::Zip(Arc::clone(&archive), entry);
                        self.push(path, size, modified, false, place);
                    }
                    Ok(inner) => self.add_zip(&format!("{label}/{path}"), inner, depth + 1),
                    Err(error) => self.skip(&path, error.to_string()),
                }
                continue;
            }
            let (size, modified) = (entry.size, entry.modified);
            self.push(path, size, modified, false, Place::Zip(Arc::clone(&archive), entry));
        }
    }

    fn push(
        &mut self,
        path: String,
        size: u64,
        modified: Option<Timestamp>,
        named: bool,
        place: Place,
    ) {
        if self.files.len() >= self.limits.entries {
            self.skip(&path, format!("there are more than {} files", self.limits.entries));
            return;
        }
        let read = Arc::clone(&self.read);
        let ratio = self.limits.ratio;
        self.files.push(File { path, size, modified, named, place, read, ratio });
    }

    fn skip(&mut self, path: &str, reason: String) {
        self.skipped.push(Skip { path: path.to_owned(), what: None, reason });
    }
}

impl File {
    /// Returns its path inside what was named, with forward slashes.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the last part of its path.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Returns the part of its path before the name.
    #[must_use]
    pub fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// Returns its size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns when it was last changed, if that is known.
    #[must_use]
    pub fn modified(&self) -> Option<Timestamp> {
        self.modified
    }

    /// Whether it was named itself instead of found in a folder or a zip.
    #[must_use]
    pub fn was_named(&self) -> bool {
        self.named
    }

    /// Returns its path on disk, when it lies there.
    pub(crate) fn on_disk(&self) -> Option<&Path> {
        match &self.place {
            Place::Disk(path) => Some(path),
            Place::Zip(..) | Place::Aside(_) => None,
        }
    }

    /// Returns its bytes to be read at any place; `most` bounds what is held in memory for it.
    pub(crate) fn shared(&self, most: u64) -> Result<Shared> {
        match &self.place {
            Place::Disk(path) => Shared::open(path).map_err(Error::io(self.path())),
            Place::Zip(..) => Ok(Shared::memory(self.bytes(most)?)),
            Place::Aside(shared) => Ok(shared.at(0)),
        }
    }

    /// Opens it. A zstd stream is unpacked on the way.
    pub fn open(&self) -> Result<Box<dyn Read + Send>> {
        let shown = || Error::io(self.path.clone());
        let plain: Box<dyn Read + Send> = match &self.place {
            Place::Disk(path) => Box::new(std::fs::File::open(path).map_err(shown())?),
            Place::Zip(archive, entry) => archive.reader(entry),
            Place::Aside(shared) => Box::new(shared.at(0)),
        };
        let counted = Counted { inner: plain, read: Arc::clone(&self.read) };
        let buffered = BufReader::with_capacity(64 << 10, counted);
        if !self.path.ends_with(".zst") {
            return Ok(Box::new(buffered));
        }
        let unpacked = ruzstd::decoding::StreamingDecoder::new(buffered)
            .map_err(|error| Error::form(format!("not a zstd stream: {error}")))?;
        let most = self.size.saturating_mul(self.ratio).max(1 << 20);
        Ok(Box::new(Bounded { inner: unpacked, left: most }))
    }

    /// Reads it whole, if it is not larger than `most`.
    pub fn bytes(&self, most: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut reader = self.open()?.take(most + 1);
        reader.read_to_end(&mut bytes).map_err(Error::io(self.path()))?;
        if bytes.len() as u64 > most {
            return Err(Error::too_large(self.path(), format!("{most} bytes")));
        }
        Ok(bytes)
    }

    /// Reads the beginning, to tell what it is.
    pub(crate) fn sample(&self) -> Result<Vec<u8>> {
        self.begin(SAMPLE)
    }

    fn head(&self) -> Result<Vec<u8>> {
        self.begin(16)
    }

    fn begin(&self, most: usize) -> Result<Vec<u8>> {
        let before = self.read.load(Ordering::Relaxed);
        let mut bytes = Vec::new();
        let read = self.open()?.take(most as u64).read_to_end(&mut bytes);
        self.read.store(before, Ordering::Relaxed);
        read.map_err(Error::io(self.path()))?;
        Ok(bytes)
    }
}

/// Counts what passes through.
struct Counted<R> {
    inner: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Fails when more comes than was allowed.
pub(crate) struct Bounded<R> {
    pub(crate) inner: R,
    pub(crate) left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.left = self
            .left
            .checked_sub(count as u64)
            .ok_or_else(|| std::io::Error::other("it unpacks to far more than it should"))?;
        Ok(count)
    }
}

/// Returns an entry of an archive as a file of its own.
pub(crate) fn file_in(archive: &Arc<Archive>, entry: &Entry) -> File {
    File {
        path: entry.name.clone(),
        size: entry.size,
        modified: entry.modified,
        named: false,
        place: Place::Zip(Arc::clone(archive), entry.clone()),
        read: Arc::default(),
        ratio: 1,
    }
}

pub(crate) fn hash(bytes: &[u8]) -> BlobHash {
    BlobHash::of(bytes)
}

fn slashed(path: &Path) -> String {
    let parts: Vec<_> = path.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}

fn stamp(time: std::time::SystemTime) -> Option<Timestamp> {
    let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(Timestamp::from_micros(i64::try_from(since.as_micros()).ok()?))
}

/// A key that sorts numbers by their value and the rest by its letters.
fn natural(path: &str) -> Vec<(String, u64)> {
    let mut key = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let words = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let digits = rest[words..]
            .find(|c: char| !c.is_ascii_digit())
            .map_or(rest.len(), |found| words + found);
        key.push((rest[..words].to_owned(), rest[words..digits].parse().unwrap_or(u64::MAX)));
        rest = &rest[digits..];
    }
    key
}

#[cfg(test)]
mod tests;

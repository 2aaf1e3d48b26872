//! Reading an archive: everything is verified before anything is handed over.

use std::collections::HashSet;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use yore_canon::hash::{Sha256, Sha256Hasher};

use super::checksum::{Method, Sums};
use super::cipher::Sealed;
use super::manifest::Manifest;
use super::{attachment_at, memory, wire};
use crate::connector::Sink;
use crate::item::{Blob, Talk};
use crate::scan::Pieces;
use crate::source::{Archive, Entry, Shared, file_in};
use crate::{Error, Limits, Result};

const MANIFEST: &str = "manifest.json";

/// An archive that was found whole.
#[derive(Debug)]
pub struct Reader {
    archive: Arc<Archive>,
    /// Its files in the order of their paths, without the manifest.
    entries: Vec<Entry>,
    manifest: Manifest,
    method: Method,
    limits: Limits,
}

impl Reader {
    /// Opens and verifies an archive.
    pub fn open(path: &Path, limits: Limits) -> Result<Self> {
        let label = path.display().to_string();
        let bytes = Shared::open(path).map_err(Error::io(&label))?;
        Self::verify(&label, bytes, limits)
    }

    /// Opens and verifies an archive under a password. `tag` is the text of the file with the
    /// ending `.hmac`, when there is one.
    pub fn open_sealed(
        path: &Path,
        password: &str,
        tag: Option<&str>,
        limits: Limits,
    ) -> Result<Self> {
        let label = path.display().to_string();
        let sealed = Sealed::open(path, password, tag)?;
        Self::verify(&label, Shared::sealed(sealed), limits)
    }

    /// Verifies an archive that is in memory.
    pub fn of_bytes(bytes: Vec<u8>, limits: Limits) -> Result<Self> {
        Self::verify("archive", Shared::memory(bytes), limits)
    }

    pub(crate) fn verify(label: &str, bytes: Shared, limits: Limits) -> Result<Self> {
        let (archive, listed) = Archive::open(label, bytes, limits)?;
        let manifest = listed
            .iter()
            .find(|entry| entry.name == MANIFEST)
            .ok_or_else(|| Error::archive("manifest", "there is no manifest.json"))?;
        if manifest.size > 1 << 20 {
            return Err(Error::archive("manifest", "manifest.json is larger than 1 MiB"));
        }
        let mut text = Vec::new();
        archive.reader(manifest).read_to_end(&mut text).map_err(Error::io(MANIFEST))?;
        let manifest = Manifest::parse(&text)?;
        let listed: Vec<Entry> =
            listed.into_iter().filter(|entry| entry.name != MANIFEST).collect();
        let mut entries = listed.clone();
        entries.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
        let method = checked(&archive, &entries, &listed, &manifest)?;
        counted(&archive, &entries, &manifest, limits)?;
        Ok(Self { archive, entries, manifest, method, limits })
    }

    /// Returns the manifest.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns how the checksum was found to be computed.
    #[must_use]
    pub fn method(&self) -> Method {
        self.method
    }

    /// Hands over everything. A file that is not valid is skipped and named.
    pub fn read(&self, sink: &mut Sink<'_>) -> Result<()> {
        for entry in &self.entries {
            let done = match entry.name.split_once('/') {
                Some(("conversations", name)) if name.ends_with(".json") => {
                    self.conversation(entry, sink)
                }
                Some(("memories", name)) if name.ends_with(".json") => self
                    .document(entry)
                    .and_then(|object| sink.note(&entry.name, memory::memory_from(object)?)),
                // Attachments are read through the messages that name them; other files have no
                // meaning here.
                Some(_) | None => Ok(()),
            };
            sink.pass(&entry.name, None, done)?;
        }
        Ok(())
    }

    fn document(&self, entry: &Entry) -> Result<crate::json::Object> {
        if entry.size > self.limits.piece as u64 {
            return Err(Error::too_large(&entry.name, format!("{} bytes", self.limits.piece)));
        }
        let mut text = Vec::new();
        self.archive.reader(entry).read_to_end(&mut text).map_err(Error::io(&entry.name))?;
        let limits = yore_canon::json::Limits {
            bytes: self.limits.piece,
            depth: yore_canon::json::MAX_DEPTH,
            nodes: 20_000_000,
        };
        yore_canon::json::parse_object(&text, limits)
            .map_err(|error| Error::archive("entry", error.to_string()))
    }

    fn conversation(&self, entry: &Entry, sink: &mut Sink<'_>) -> Result<()> {
        let mut wrong = Vec::new();
        let (head, messages) = wire::conversation_from(self.document(entry)?, &mut wrong)?;
        for (message, reason) in wrong {
            sink.skip(&entry.name, Some(message), reason)?;
        }
        let (mut blobs, mut seen, mut there) = (Vec::new(), HashSet::new(), HashSet::new());
        for attachment in messages.iter().flat_map(|message| &message.attachments) {
            let Some(hash) = attachment.blob.filter(|hash| seen.insert(*hash)) else { continue };
            match self.blob(hash) {
                Ok(blob) => {
                    there.insert(hash);
                    blobs.push(blob);
                }
                Err(error) => {
                    sink.skip(&entry.name, Some(attachment.filename.clone()), error.to_string())?;
                }
            }
        }
        let mut messages = messages;
        for attachment in messages.iter_mut().flat_map(|message| &mut message.attachments) {
            attachment.blob = attachment.blob.filter(|hash| there.contains(hash));
        }
        sink.talk(&entry.name, Talk { head, messages, blobs, print: None })
    }

    /// The name of an attachment is not trusted: its bytes are hashed.
    fn blob(&self, hash: yore_domain::BlobHash) -> Result<Blob> {
        let from = format!("attachments/{hash}");
        let place = self.entries.partition_point(|entry| entry.name.as_str() < from.as_str());
        let entry =
            self.entries.get(place).filter(|entry| attachment_at(&entry.name) == Some(hash));
        let entry = entry.ok_or_else(|| Error::archive("entry", format!("{from} is missing")))?;
        let file = file_in(&self.archive, entry);
        let mut hasher = yore_domain::BlobHasher::default();
        let (mut reader, mut buffer, mut head) = (file.open()?, vec![0; 64 << 10], Vec::new());
        loop {
            let count = reader.read(&mut buffer).map_err(Error::io(&entry.name))?;
            if count == 0 {
                break;
            }
            if head.is_empty() {
                head.extend_from_slice(&buffer[..count.min(512)]);
            }
            hasher.update(&buffer[..count]);
        }
        if hasher.finish() != hash {
            return Err(Error::archive("entry", format!("{from} holds other bytes than it says")));
        }
        Ok(Blob::of_file(hash, entry.size, head, file))
    }
}

/// Compares the checksum, by the method the manifest names or by each that others use.
fn checked(
    archive: &Archive,
    sorted: &[Entry],
    listed: &[Entry],
    manifest: &Manifest,
) -> Result<Method> {
    let mut sums = Sums::default();
    let mut joined = Sha256::hasher();
    for entry in sorted {
        let mut own = Sha256::hasher();
        feed(archive, entry, &mut [&mut own, &mut joined])?;
        sums.add(&entry.name, own.finish());
    }
    let expected = manifest.checksum.as_str();
    let computed = sums.total();
    if computed.to_string() == expected {
        return Ok(Method::Sums);
    }
    if manifest.x_checksum_method.is_none() {
        if joined.finish().to_string() == expected {
            return Ok(Method::PathOrder);
        }
        let mut directory = Sha256::hasher();
        listed.iter().try_for_each(|entry| feed(archive, entry, &mut [&mut directory]))?;
        if directory.finish().to_string() == expected {
            return Ok(Method::DirectoryOrder);
        }
        let mut some = Sha256::hasher();
        for folder in ["conversations/", "memories/"] {
            for entry in sorted.iter().filter(|entry| entry.name.starts_with(folder)) {
                feed(archive, entry, &mut [&mut some])?;
            }
        }
        if some.finish().to_string() == expected {
            return Ok(Method::ConversationsAndMemories);
        }
    }
    // A file whose name is its hash tells by itself that it was changed.
    let damaged = sorted.iter().find(|entry| {
        let named = attachment_at(&entry.name).map(|hash| hash.to_string());
        named.is_some() && named != sums.get(&entry.name).map(Sha256::to_hex)
    });
    let which = damaged.map(|entry| format!("; {} is damaged", entry.name)).unwrap_or_default();
    let reason = format!("the manifest says {expected}, the files give {computed}{which}");
    Err(Error::archive("checksum", reason))
}

fn feed(archive: &Archive, entry: &Entry, hashers: &mut [&mut Sha256Hasher]) -> Result<()> {
    let (mut reader, mut buffer) = (archive.reader(entry), vec![0; 64 << 10]);
    loop {
        let count = reader.read(&mut buffer).map_err(|error| {
            Error::archive("checksum", format!("{} is damaged: {error}", entry.name))
        })?;
        if count == 0 {
            return Ok(());
        }
        for hasher in hashers.iter_mut() {
            hasher.update(&buffer[..count]);
        }
    }
}

/// Compares the counts of the manifest, which the checksum does not cover, with the content.
fn counted(
    archive: &Archive,
    entries: &[Entry],
    manifest: &Manifest,
    limits: Limits,
) -> Result<()> {
    let files =
        |folder: &str| entries.iter().filter(|entry| entry.name.starts_with(folder)).count() as u64;
    let mut messages = 0;
    for entry in entries.iter().filter(|entry| entry.name.starts_with("conversations/")) {
        let mut pieces = Pieces::new(archive.reader(entry), limits.piece);
        while let Some(piece) = pieces.take().map_err(Error::io(&entry.name))? {
            messages += u64::from(piece.key.as_deref() == Some("messages"));
        }
    }
    let counts = &manifest.counts;
    let found = [
        ("conversations", Some(counts.conversations), files("conversations/")),
        ("messages", Some(counts.messages), messages),
        ("memories", counts.memories, files("memories/")),
        ("attachments", counts.attachments, files("attachments/")),
    ];
    for (what, said, found) in found {
        if said.is_some_and(|said| said != found) {
            let said = said.unwrap_or_default();
            let reason = format!("the manifest says {said} {what}, there are {found}");
            return Err(Error::archive("counts", reason));
        }
    }
    Ok(())
}

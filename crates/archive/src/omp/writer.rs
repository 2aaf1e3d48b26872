//! Writing an archive: in one pass, and the same bytes for the same content.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};

use serde_json::Value;
use yore_canon::hash::Sha256;
use yore_domain::conversation::{Conversation, Message};
use yore_domain::memory::Version;
use yore_domain::{BlobHash, ConversationId, MemoryId, Timestamp};
use zip::write::{SimpleFileOptions, StreamWriter};
use zip::{CompressionMethod, ZipWriter};

use super::checksum::{Method, Sums};
use super::manifest::{Counts, Manifest, Range};
use super::{attachment_path, entry_id, memory, wire};
use crate::{Error, Result};

/// An archive on its way out. Attachments come first, by hash; then conversations, then memories,
/// each by id. Nothing but the names is kept in memory.
pub struct Writer<W: Write> {
    zip: ZipWriter<StreamWriter<W>>,
    options: SimpleFileOptions,
    exported: Timestamp,
    last: String,
    sums: Sums,
    paths: BTreeMap<BlobHash, String>,
    counts: Counts,
    platforms: BTreeSet<String>,
    range: Option<(Timestamp, Timestamp)>,
    user_id: Option<String>,
}

impl<W: Write> std::fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl<W: Write> Writer<W> {
    /// Begins an archive. The time is the archive's own; every entry carries it.
    pub fn new(inner: W, exported: Timestamp, user_id: Option<String>) -> Self {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(6))
            .unix_permissions(0o644)
            .last_modified_time(dos_time(exported));
        Self {
            zip: ZipWriter::new_stream(inner),
            options,
            exported,
            last: String::new(),
            sums: Sums::default(),
            paths: BTreeMap::new(),
            counts: Counts { memories: Some(0), attachments: Some(0), ..Counts::default() },
            platforms: BTreeSet::new(),
            range: None,
            user_id,
        }
    }

    /// Adds the bytes of an attachment.
    pub fn attachment(
        &mut self,
        blob: BlobHash,
        media_type: &str,
        bytes: &mut dyn Read,
    ) -> Result<()> {
        let path = attachment_path(blob, media_type);
        if self.paths.contains_key(&blob) {
            return Err(Error::archive("entry", format!("{path} was added already")));
        }
        self.start(&path)?;
        let (mut hasher, mut buffer) = (Sha256::hasher(), vec![0; 64 << 10]);
        loop {
            let count = bytes.read(&mut buffer).map_err(Error::io(&path))?;
            if count == 0 {
                break;
            }
            hasher.update(&buffer[..count]);
            self.zip.write_all(&buffer[..count]).map_err(Error::io(&path))?;
        }
        let hash = hasher.finish();
        if hash.as_bytes() != &blob.0 {
            return Err(Error::archive("entry", format!("{path} has other bytes than its name")));
        }
        self.sums.add(&path, hash);
        self.paths.insert(blob, path);
        self.counts.attachments = self.counts.attachments.map(|count| count + 1);
        Ok(())
    }

    /// Adds a conversation. Attachments that were not added are marked as missing.
    pub fn conversation(&mut self, head: &Conversation, messages: &[Message]) -> Result<()> {
        let path = |blob: BlobHash| self.paths.get(&blob).cloned();
        let json = wire::conversation_json(head, messages, &path);
        let name = ConversationId::from_bytes(entry_id(head.id.bytes()));
        self.entry(&format!("conversations/{name}.json"), &serde_json::to_vec(&json)?)?;
        let branches = messages.iter().filter(|message| message.off_path).count() as u64;
        self.counts.conversations += 1;
        self.counts.messages += messages.len() as u64 - branches;
        if branches > 0 {
            *self.counts.x_branch_messages.get_or_insert(0) += branches;
        }
        self.platforms.insert(head.platform.clone());
        messages.iter().for_each(|message| self.widen(message.at));
        Ok(())
    }

    /// Adds a memory as it stands.
    pub fn memory(&mut self, version: &Version, created: Timestamp) -> Result<()> {
        self.remembered(version, created, &memory::memory_json(version, created))
    }

    /// Adds a memory with all its versions, oldest first.
    pub fn history(&mut self, versions: &[Version]) -> Result<()> {
        match (versions.first(), versions.last(), memory::history_json(versions)) {
            (Some(first), Some(last), Some(json)) => {
                self.remembered(last, first.time.created, &json)
            }
            _ => Ok(()),
        }
    }

    fn remembered(&mut self, version: &Version, created: Timestamp, json: &Value) -> Result<()> {
        let name = MemoryId::from_bytes(entry_id(version.memory.bytes()));
        self.entry(&format!("memories/{name}.json"), &serde_json::to_vec(json)?)?;
        self.counts.memories = self.counts.memories.map(|count| count + 1);
        self.platforms.extend(version.content.provenance.provider.clone());
        self.widen(memory::first_made(version, created));
        Ok(())
    }

    /// Writes the manifest and the end of the zip.
    pub fn finish(mut self) -> Result<(W, Manifest)> {
        let mut platforms: Vec<String> = self.platforms.into_iter().collect();
        let manifest = Manifest {
            omp_version: "2.0".to_owned(),
            export_timestamp: self.exported.to_string(),
            source_platform: match platforms.len() {
                1 => platforms[0].clone(),
                _ => "multi-platform".to_owned(),
            },
            user_id: self.user_id,
            counts: self.counts,
            date_range: self.range.map(|(earliest, latest)| Range {
                earliest: earliest.to_string(),
                latest: latest.to_string(),
            }),
            platforms_included: Some(std::mem::take(&mut platforms)),
            checksum: self.sums.total().to_string(),
            x_checksum_method: Some(Method::NAME.to_owned()),
            others: serde_json::Map::new(),
        };
        self.zip.start_file("manifest.json", self.options).map_err(failed)?;
        let text = serde_json::to_vec_pretty(&manifest)?;
        self.zip.write_all(&text).map_err(Error::io("manifest.json"))?;
        let inner = self.zip.finish().map_err(failed)?.into_inner();
        Ok((inner, manifest))
    }

    fn entry(&mut self, path: &str, bytes: &[u8]) -> Result<()> {
        self.start(path)?;
        self.zip.write_all(bytes).map_err(Error::io(path))?;
        self.sums.add(path, Sha256::of(bytes));
        Ok(())
    }

    /// Entries in another order would be other bytes.
    fn start(&mut self, path: &str) -> Result<()> {
        if self.last.as_str() >= path {
            let reason = format!("{path} comes after {}, which sorts behind it", self.last);
            return Err(Error::archive("entry", reason));
        }
        path.clone_into(&mut self.last);
        self.zip.start_file(path, self.options).map_err(failed)
    }

    fn widen(&mut self, at: Timestamp) {
        let (first, last) = self.range.unwrap_or((at, at));
        self.range = Some((first.min(at), last.max(at)));
    }
}

fn failed(error: zip::result::ZipError) -> Error {
    Error::Zip { path: "archive".to_owned(), reason: error.to_string() }
}

/// The time as a zip can say it: from 1980, in steps of two seconds.
fn dos_time(time: Timestamp) -> zip::DateTime {
    let text = time.to_string();
    let part = |from: usize, to: usize| text.get(from..to).and_then(|digits| digits.parse().ok());
    let year: Option<u16> = part(0, 4);
    let rest: Option<[u16; 5]> =
        (|| Some([part(5, 7)?, part(8, 10)?, part(11, 13)?, part(14, 16)?, part(17, 19)?]))();
    let small = |value: u16| u8::try_from(value).unwrap_or(0);
    year.zip(rest)
        .and_then(|(year, [month, day, hour, minute, second])| {
            zip::DateTime::from_date_and_time(
                year,
                small(month),
                small(day),
                small(hour),
                small(minute),
                small(second),
            )
            .ok()
        })
        .unwrap_or_default()
}

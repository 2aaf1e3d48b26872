//! The `.omp.zip` archive: a plain zip of JSON and attachments under one checksum.
//!
//! [`Reader::open`] verifies everything before it hands over anything: the paths, the manifest,
//! the checksum over every file, the counts. [`Writer`] takes attachments, conversations and
//! memories in the order of their names and gives the same bytes for the same vault. [`seal`] and
//! [`Reader::open_sealed`] put a password around it, in the form that `openssl enc` opens.

mod checksum;
mod cipher;
mod manifest;
mod memory;
mod protect;
mod reader;
mod wire;
mod writer;

use yore_domain::BlobHash;

use crate::sniff;

pub use checksum::{Method, Sums};
pub use cipher::{Sealed, Sealer, put_aside, seal};
pub use manifest::{Counts, Manifest, Range};
pub use memory::{history_json, memory_from, memory_json};
pub use protect::PROTECTED;
pub use reader::Reader;
pub use wire::{conversation_from, conversation_json, message_from, message_json};
pub use writer::Writer;

/// Returns the id under which a conversation, a message or a memory stands in an archive, where
/// every id is a UUID v4; another one is kept beside it.
#[must_use]
pub fn entry_id(id: [u8; 16]) -> [u8; 16] {
    crate::ids::in_archive(id)
}

/// Returns where an attachment lies in an archive.
#[must_use]
pub fn attachment_path(blob: BlobHash, media_type: &str) -> String {
    format!("attachments/{blob}.{}", sniff::ending(media_type))
}

/// Returns the attachment that a place in an archive names.
#[must_use]
pub fn attachment_at(path: &str) -> Option<BlobHash> {
    let name = path.strip_prefix("attachments/")?;
    name.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests;

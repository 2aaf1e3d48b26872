//! What reading yields.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use serde::Serialize;
use yore_domain::conversation::{Conversation, Message};
use yore_domain::memory::{Draft, Version};
use yore_domain::{BlobHash, MemoryId};

use crate::source::File;
use crate::{Result, sniff};

/// One thing that was read.
#[derive(Clone, Debug)]
pub enum Item {
    /// A conversation, whole.
    Conversation(Box<Talk>),
    /// Something a platform remembered, or a file of instructions says.
    Memory(Box<Note>),
    /// Something that could not be read.
    Skipped(Skip),
}

/// A conversation with its messages and the bytes of what is attached to them.
#[derive(Clone, Debug)]
pub struct Talk {
    /// The conversation.
    pub head: Conversation,
    /// The active path from first to last, then the branches that were left, depth first.
    pub messages: Vec<Message>,
    /// The bytes that the messages' attachments name.
    pub blobs: Vec<Blob>,
    /// Tells the piece of an export that it was read from, when nothing else says anything of it:
    /// who knows it need not read that piece again.
    pub print: Option<String>,
}

/// A memory that was read.
#[derive(Clone, Debug)]
pub struct Note {
    /// Its id, which follows from what was read.
    pub id: MemoryId,
    /// What it says.
    pub draft: Draft,
    /// Whether it still holds; one that does not is kept, and not recalled.
    pub active: bool,
    /// Whether somebody settled it.
    pub standing: Standing,
    /// All its versions, oldest first, where what was read has them.
    pub versions: Vec<Version>,
}

/// Whether a memory was settled where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It was a memory there: of a memory store, of an archive, or of a file somebody wrote.
    Kept,
    /// A platform or a rule concluded it from what was said: a person decides.
    Proposed,
}

/// What could not be read, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skip {
    /// The file.
    pub path: String,
    /// Which part of it; absent when it is the whole file.
    pub what: Option<String>,
    /// Why.
    pub reason: String,
}

/// Bytes to attach, read when they are asked for.
#[derive(Clone, Debug)]
pub struct Blob {
    /// Their hash.
    pub hash: BlobHash,
    /// How many there are.
    pub size: u64,
    media_type: &'static str,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    Memory(Arc<[u8]>),
    File(Box<File>),
}

impl Blob {
    /// Takes bytes that are at hand.
    #[must_use]
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        let media_type = sniff::media_type(&bytes);
        let (hash, size) = (BlobHash::of(&bytes), bytes.len() as u64);
        Self { hash, size, media_type, place: Place::Memory(bytes) }
    }

    pub(crate) fn of_file(hash: BlobHash, size: u64, head: Vec<u8>, file: File) -> Self {
        let media_type = sniff::media_type(&head);
        Self { hash, size, media_type, place: Place::File(Box::new(file)) }
    }

    /// Returns the media type its first bytes tell.
    #[must_use]
    pub fn media_type(&self) -> &'static str {
        self.media_type
    }

    /// Opens the bytes.
    pub fn open(&self) -> Result<Box<dyn Read + Send>> {
        match &self.place {
            Place::Memory(bytes) => Ok(Box::new(std::io::Cursor::new(Arc::clone(bytes)))),
            Place::File(file) => file.open(),
        }
    }
}

/// Counts of what was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Conversations by platform.
    pub platforms: BTreeMap<String, u64>,
    /// Conversations.
    pub conversations: u64,
    /// Those of them that were known already, exactly as they are, and so not read.
    pub known: u64,
    /// Conversations without a message.
    pub empty: u64,
    /// Messages on active paths.
    pub messages: u64,
    /// Messages on branches that were left.
    pub branch_messages: u64,
    /// Memories.
    pub memories: u64,
    /// Attachments whose bytes were found.
    pub attachments: u64,
    /// Attachments that are named while their bytes are not in the export.
    pub missing_attachments: u64,
    /// What could not be read.
    pub skipped: Vec<Skip>,
    /// Files that no connector knows and that no message names.
    pub unread: u64,
}

impl Report {
    /// Counts a conversation that was known.
    pub(crate) fn pass_over(&mut self, platform: &str) {
        self.conversations += 1;
        self.known += 1;
        *self.platforms.entry(platform.to_owned()).or_default() += 1;
    }

    /// Counts an item.
    pub fn count(&mut self, item: &Item) {
        match item {
            Item::Conversation(talk) => {
                self.conversations += 1;
                *self.platforms.entry(talk.head.platform.clone()).or_default() += 1;
                self.empty += u64::from(talk.messages.is_empty());
                for message in &talk.messages {
                    *if message.off_path {
                        &mut self.branch_messages
                    } else {
                        &mut self.messages
                    } += 1;
                    for attachment in &message.attachments {
                        *if attachment.blob.is_some() {
                            &mut self.attachments
                        } else {
                            &mut self.missing_attachments
                        } += 1;
                    }
                }
            }
            Item::Memory(_) => self.memories += 1,
            Item::Skipped(skip) => self.skipped.push(skip.clone()),
        }
    }
}

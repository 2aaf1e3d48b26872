//! What was read, on its way to the vault in batches.

use std::collections::{HashMap, HashSet};
use std::io::Read;

use yore_archive::{Blob, Note, Standing, Talk};
use yore_domain::conversation::Message;
use yore_domain::memory::{Status, Version};
use yore_domain::{BlobHash, ConversationId, Error, MemoryId, Result, Timestamp};
use yore_engine::{Call, Engine, Imported, Item, Proposal, fingerprint};

use super::Summary;
use crate::snippet::beginning;

/// Items and bytes of one batch.
const BATCH: usize = 200;
const BATCH_BYTES: usize = 8 << 20;
/// Messages that are stored at once.
const MESSAGES: usize = 5000;

/// An item with the bytes that are attached to it.
struct Brought {
    item: Item,
    blobs: Vec<Blob>,
    /// Whether it goes on with a conversation whose beginning was counted.
    continued: bool,
}

pub(super) struct Tray<'a> {
    engine: &'a Engine,
    call: Call,
    dry_run: bool,
    draws: bool,
    now: Timestamp,
    summary: Summary,
    batch: Vec<Brought>,
    bytes: usize,
    /// The conversations of the batch, which holds each once.
    here: HashSet<ConversationId>,
    /// What a report calls the items of the batch.
    names: HashMap<String, String>,
    /// Attachments that were looked at, and whether the vault has them.
    stored: HashMap<BlobHash, bool>,
    proposals: Vec<Proposal>,
    drawn: HashSet<MemoryId>,
}

impl<'a> Tray<'a> {
    pub(super) fn new(engine: &'a Engine, call: &Call, dry_run: bool, draws: bool) -> Self {
        Self {
            engine,
            call: Call { operation: None, ..call.clone() },
            dry_run,
            draws,
            now: engine.now(),
            summary: Summary { dry_run, ..Summary::default() },
            batch: Vec::new(),
            bytes: 0,
            here: HashSet::new(),
            names: HashMap::new(),
            stored: HashMap::new(),
            proposals: Vec::new(),
            drawn: HashSet::new(),
        }
    }

    pub(super) async fn take(&mut self, item: yore_archive::Item) -> Result<()> {
        match item {
            yore_archive::Item::Conversation(talk) => self.talk(*talk).await,
            yore_archive::Item::Memory(note) => self.note(*note).await,
            // The reader's report names it.
            yore_archive::Item::Skipped(_) => Ok(()),
        }
    }

    pub(super) async fn finish(mut self) -> Result<Summary> {
        self.send().await?;
        Ok(self.summary)
    }

    async fn talk(&mut self, talk: Talk) -> Result<()> {
        let drawn = if self.draws { yore_archive::proposals(&talk) } else { Vec::new() };
        let Talk { head, messages, blobs, .. } = talk;
        let title = head.title.as_deref().unwrap_or("without a title");
        let name = format!("{} conversation “{}”", head.platform, beginning(title, 60));
        let mut blobs = Some(blobs);
        for (messages, bytes) in parts(messages) {
            let item = Item::Conversation { conversation: Box::new(head.clone()), messages };
            if self.here.contains(&head.id) {
                self.send().await?;
            }
            let continued = blobs.is_none();
            let blobs = blobs.take().unwrap_or_default();
            self.here.insert(head.id);
            self.names.insert(head.id.to_string(), name.clone());
            self.push(Brought { item, blobs, continued }, bytes).await?;
        }
        for note in drawn {
            self.propose(note);
        }
        Ok(())
    }

    async fn note(&mut self, note: Note) -> Result<()> {
        if note.standing == Standing::Proposed && note.active {
            self.propose(note);
            return Ok(());
        }
        let Note { id, draft, active, mut versions, .. } = note;
        if versions.is_empty() {
            let mut version = Version::first(id, draft, self.now, None);
            if !active {
                version.status = Status::Tombstoned;
            }
            versions.push(version);
        }
        let texts = versions.iter().map(|version| version.content.body.text.len());
        let bytes = texts.map(|length| 2 * length + 2000).sum();
        if let Some(last) = versions.last() {
            self.names.insert(id.to_string(), called(&last.content.body.text));
        }
        let item = Item::Memory { versions };
        self.push(Brought { item, blobs: Vec::new(), continued: false }, bytes).await
    }

    /// Keeps what a person shall decide about; the same words are one proposal.
    fn propose(&mut self, note: Note) {
        if !self.drawn.insert(note.id) {
            self.summary.duplicates += 1;
            return;
        }
        self.bytes += 2 * note.draft.content.body.text.len() + 2000;
        self.names.insert(note.id.to_string(), called(&note.draft.content.body.text));
        self.proposals.push(Proposal { id: note.id, draft: note.draft });
    }

    async fn push(&mut self, brought: Brought, bytes: usize) -> Result<()> {
        self.batch.push(brought);
        self.bytes += bytes;
        if self.batch.len() >= BATCH || self.bytes >= BATCH_BYTES {
            return self.send().await;
        }
        Ok(())
    }

    /// Sends what waits: what was said first, then what is proposed to remember of it.
    async fn send(&mut self) -> Result<()> {
        self.bytes = 0;
        self.here.clear();
        let batch = std::mem::take(&mut self.batch);
        let mut items = Vec::new();
        for mut brought in self.unknown(batch).await? {
            for blob in std::mem::take(&mut brought.blobs) {
                self.attach(blob).await?;
            }
            self.unname(&mut brought.item);
            items.push((brought.item, brought.continued));
        }
        self.take_in(items).await?;
        while !self.proposals.is_empty() {
            let rest = self.proposals.split_off(self.proposals.len().min(BATCH));
            let some = std::mem::replace(&mut self.proposals, rest);
            let done = match self.dry_run {
                true => self.engine.weigh_proposals(&self.call, some).await?,
                false => self.engine.propose(&self.call, some).await?,
            };
            self.summary.proposed += done.held as u64;
            self.summary.duplicates += done.known as u64;
            self.reject(done.rejected);
        }
        self.names.clear();
        Ok(())
    }

    /// Leaves out the conversations that came in before exactly as they are.
    async fn unknown(&mut self, batch: Vec<Brought>) -> Result<Vec<Brought>> {
        let prints: Vec<String> = batch.iter().filter_map(|one| print(&one.item)).collect();
        if prints.is_empty() {
            return Ok(batch);
        }
        let mut known = self.engine.imported(&self.call, prints).await?.into_iter();
        let mut left = Vec::with_capacity(batch.len());
        for brought in batch {
            let is_talk = matches!(brought.item, Item::Conversation { .. });
            if is_talk && known.next().unwrap_or(false) {
                self.summary.duplicates += u64::from(!brought.continued);
            } else {
                left.push(brought);
            }
        }
        Ok(left)
    }

    /// Takes items in. Where they are too much at once they go one by one, and one that is too
    /// much by itself is turned down.
    async fn take_in(&mut self, items: Vec<(Item, bool)>) -> Result<()> {
        let (rest, fresh): (Vec<_>, Vec<_>) = items.into_iter().partition(|(_, on)| *on);
        let fresh: Vec<Item> = fresh.into_iter().map(|(item, _)| item).collect();
        let mut waiting: Vec<(Vec<Item>, bool)> =
            rest.into_iter().map(|(item, _)| (vec![item], true)).collect();
        waiting.push((fresh, false));
        while let Some((items, continued)) = waiting.pop() {
            if items.is_empty() {
                continue;
            }
            match self.imported(items.clone()).await {
                Ok(done) => self.count(done, continued),
                Err(error @ (Error::TooLarge { .. } | Error::Invalid { .. })) => {
                    match items.as_slice() {
                        [item] => self.reject(vec![(id(item), error.to_string())]),
                        _ => waiting.extend(items.into_iter().map(|item| (vec![item], continued))),
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn imported(&self, items: Vec<Item>) -> Result<Imported> {
        match self.dry_run {
            true => self.engine.weigh_import(&self.call, items).await,
            false => self.engine.import(&self.call, items).await,
        }
    }

    fn count(&mut self, done: Imported, continued: bool) {
        if !continued {
            self.summary.imported += done.imported as u64;
            self.summary.merged += done.merged as u64;
            self.summary.duplicates += done.duplicates as u64;
            self.summary.erased += done.erased as u64;
        }
        self.summary.held += done.held as u64;
        self.reject(done.rejected);
    }

    fn reject(&mut self, rejected: Vec<(String, String)>) {
        for (id, reason) in rejected {
            let what = self.names.get(&id).cloned().unwrap_or(id);
            self.summary.fault(what, reason);
        }
    }

    async fn attach(&mut self, blob: Blob) -> Result<()> {
        let hash = blob.hash;
        if self.dry_run || self.stored.contains_key(&hash) {
            return Ok(());
        }
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = Vec::new();
            let read = blob.open().map(|mut open| open.read_to_end(&mut bytes));
            matches!(read, Ok(Ok(_))).then_some(bytes)
        });
        let stored = match read.await.map_err(Error::internal)? {
            None => Err("it cannot be read".to_owned()),
            Some(bytes) => match self.engine.attach(&self.call, bytes).await {
                Ok(named) if named == hash => Ok(()),
                Ok(_) => Err("it changed while it was read".to_owned()),
                Err(error @ (Error::TooLarge { .. } | Error::Invalid { .. })) => {
                    Err(error.to_string())
                }
                Err(error) => return Err(error),
            },
        };
        self.stored.insert(hash, stored.is_ok());
        match stored {
            Ok(()) => self.summary.attachments += 1,
            Err(reason) => self.summary.fault("an attachment".to_owned(), reason),
        }
        Ok(())
    }

    /// What the vault does not have is named without its bytes.
    fn unname(&self, item: &mut Item) {
        let Item::Conversation { messages, .. } = item else { return };
        for attachment in messages.iter_mut().flat_map(|message| &mut message.attachments) {
            attachment.blob =
                attachment.blob.filter(|blob| self.stored.get(blob).copied().unwrap_or(false));
        }
    }
}

/// The fingerprint of a conversation; nothing else has one.
fn print(item: &Item) -> Option<String> {
    match item {
        Item::Conversation { conversation, messages } => Some(fingerprint(conversation, messages)),
        Item::Memory { .. } | Item::Profile(_) => None,
    }
}

fn id(item: &Item) -> String {
    match item {
        Item::Memory { versions } => {
            versions.first().map_or_else(String::new, |version| version.memory.to_string())
        }
        Item::Conversation { conversation, .. } => conversation.id.to_string(),
        Item::Profile(_) => "the profile".to_owned(),
    }
}

fn called(text: &str) -> String {
    format!("memory “{}”", beginning(text.lines().next().unwrap_or_default(), 60))
}

/// Cuts a long conversation into parts that fit a commit, each with roughly its size.
fn parts(messages: Vec<Message>) -> Vec<(Vec<Message>, usize)> {
    let mut parts: Vec<(Vec<Message>, usize)> = Vec::new();
    let (mut held, mut size) = (Vec::new(), 2000);
    for message in messages {
        let content = serde_json::to_string(&message.content).map_or(0, |text| text.len());
        let bytes = content + message.text.len() + 600;
        if !held.is_empty() && (held.len() >= MESSAGES || size + bytes > BATCH_BYTES) {
            parts.push((std::mem::take(&mut held), size));
            size = 2000;
        }
        held.push(message);
        size += bytes;
    }
    parts.push((held, size));
    parts
}

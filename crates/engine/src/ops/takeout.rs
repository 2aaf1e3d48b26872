//! Taking a vault out as an archive: first what there is, then one thing after the other.
//!
//! An archive has its files in the order of their names, so everything is counted before the
//! first thing is read. The caller is looked up again for every piece, so that a revoked grant
//! ends the work; the audit chain has one entry for the whole.

use std::collections::{BTreeMap, BTreeSet};

use yore_domain::class::Surface;
use yore_domain::grant::{Verb, Verbs};
use yore_domain::memory::{Status, Version};
use yore_domain::query::{Filter, Order, PageRequest};
use yore_domain::{BlobHash, ConversationId, Error, MemoryId, Result, Timestamp, limits};
use yore_policy::Need;
use yore_store::Snapshot;

use super::export::{Item, whole as whole_memory};
use super::talk::{Talk, whole};
use crate::call::Call;
use crate::engine::Engine;
use crate::kept::Kept;
use crate::run::{Session, Trace};

/// What a vault holds is taken out whether it still counts or not.
const KEPT: [Status; 4] =
    [Status::Active, Status::Candidate, Status::Quarantined, Status::Tombstoned];

/// What there is to take out, each in the order of its name.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// Attachments, with the media type that sorts first of those they are given.
    pub blobs: BTreeMap<BlobHash, String>,
    /// Conversations.
    pub conversations: BTreeSet<ConversationId>,
    /// Memories.
    pub memories: BTreeSet<MemoryId>,
    /// The time of the newest thing.
    pub latest: Option<Timestamp>,
}

/// A vault on its way out.
#[derive(Clone, Debug)]
pub struct Takeout {
    engine: Engine,
    call: Call,
    /// What there is.
    pub contents: Contents,
}

impl Engine {
    /// Counts what the caller may take out of what passes a filter.
    pub async fn takeout(&self, call: &Call, filter: Filter) -> Result<Takeout> {
        let filter = Filter { statuses: KEPT.to_vec(), ..filter };
        let mut session = self.enter(call, need()).await?;
        let counted = async {
            let snapshot = self.store().snapshot(&session.permit).await?;
            session.kept = Kept::of(&session, &*snapshot).await?;
            let contents = counted(&session, &*snapshot, &filter).await?;
            let trace = Trace::count(contents.conversations.len() + contents.memories.len())
                .with("conversations", contents.conversations.len())
                .with("memories", contents.memories.len());
            Ok((contents, trace))
        };
        let counted = counted.await;
        let contents = self.leave(call, &session, counted).await?;
        Ok(Takeout { engine: self.clone(), call: call.clone(), contents })
    }
}

/// One step of taking a vault out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// An attachment, with its media type.
    Attachment(BlobHash, String),
    /// A conversation.
    Talk(ConversationId),
    /// A memory.
    Memory(MemoryId),
}

/// What a step brought.
#[derive(Clone, Debug)]
pub enum Part {
    /// An attachment, with its media type and its bytes.
    Attachment(BlobHash, String, Vec<u8>),
    /// A conversation.
    Talk(Box<Talk>),
    /// The versions of a memory, at least one, oldest first.
    Memory(Vec<Version>),
}

impl Takeout {
    /// What there is to do, in the order of the names that ids have outside.
    pub fn steps(&self, name: fn([u8; 16]) -> [u8; 16]) -> Vec<Step> {
        let Contents { blobs, conversations, memories, .. } = &self.contents;
        let mut talks: Vec<ConversationId> = conversations.iter().copied().collect();
        talks.sort_by_key(|id| name(id.bytes()));
        let mut notes: Vec<MemoryId> = memories.iter().copied().collect();
        notes.sort_by_key(|id| name(id.bytes()));
        let attachments = blobs.iter().map(|(blob, kind)| Step::Attachment(*blob, kind.clone()));
        let talks = talks.into_iter().map(Step::Talk);
        attachments.chain(talks).chain(notes.into_iter().map(Step::Memory)).collect()
    }

    /// Does one step; nothing when what it names was removed meanwhile.
    pub async fn take(&self, step: Step) -> Result<Option<Part>> {
        Ok(match step {
            Step::Attachment(blob, kind) => {
                self.attachment(blob).await?.map(|bytes| Part::Attachment(blob, kind, bytes))
            }
            Step::Talk(id) => self.talk(id).await?.map(|talk| Part::Talk(Box::new(talk))),
            Step::Memory(id) => self.memory(id).await?.map(Part::Memory),
        })
    }

    /// Reads a conversation; nothing when it was removed meanwhile.
    pub async fn talk(&self, id: ConversationId) -> Result<Option<Talk>> {
        let session = self.session().await?;
        let snapshot = self.engine.store().snapshot(&session.permit).await?;
        match whole(&*snapshot, id).await {
            Ok(talk) => Ok(Some(talk)),
            Err(Error::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads the versions of a memory; nothing when it was removed meanwhile.
    async fn memory(&self, id: MemoryId) -> Result<Option<Vec<Version>>> {
        let mut session = self.session().await?;
        let snapshot = self.engine.store().snapshot(&session.permit).await?;
        session.kept = Kept::of(&session, &*snapshot).await?;
        let Some(memory) = snapshot.memory(id).await? else { return Ok(None) };
        let item = whole_memory(&session, session.viewer(), &*snapshot, memory).await?;
        let Some(Item::Memory { versions }) = item else { return Ok(None) };
        Ok(Some(versions).filter(|versions| !versions.is_empty()))
    }

    /// Reads an attachment; nothing when its bytes are not here.
    async fn attachment(&self, blob: BlobHash) -> Result<Option<Vec<u8>>> {
        let session = self.session().await?;
        let snapshot = self.engine.store().snapshot(&session.permit).await?;
        let Some(size) = snapshot.blob(blob).await? else { return Ok(None) };
        let mut bytes = Vec::new();
        for number in 0.. {
            if bytes.len() as u64 >= size {
                break;
            }
            let Some(piece) = snapshot.blob_chunk(blob, number).await? else { return Ok(None) };
            bytes.extend(piece);
        }
        Ok(Some(bytes))
    }

    async fn session(&self) -> Result<Session> {
        self.engine.enter_again(&self.engine.renewed(&self.call), need()).await
    }
}

fn need() -> Need {
    let verbs = Verbs::of(&[Verb::Export]);
    Need::of("takeout", verbs, Surface::Export)
}

async fn counted(session: &Session, snapshot: &dyn Snapshot, filter: &Filter) -> Result<Contents> {
    let mut contents = Contents::default();
    let mut page =
        PageRequest { limit: limits::PAGE, order: Order::OldestFirst, ..PageRequest::default() };
    loop {
        let found = snapshot.conversations(filter, &page).await?;
        for (head, _) in &found.items {
            let talk = whole(snapshot, head.id).await?;
            contents.conversation(&talk);
        }
        match found.next {
            Some(next) => page.after = Some(next),
            None => break,
        }
    }
    page.after = None;
    loop {
        let found = snapshot.memories(filter, &page).await?;
        for memory in found.items {
            let (id, made) = (memory.head.memory, memory.head.time.created);
            if whole_memory(session, session.viewer(), snapshot, memory).await?.is_some() {
                contents.memories.insert(id);
                contents.latest = contents.latest.max(Some(made));
            }
        }
        match found.next {
            Some(next) => page.after = Some(next),
            None => return Ok(contents),
        }
    }
}

impl Contents {
    fn conversation(&mut self, talk: &Talk) {
        self.conversations.insert(talk.head.id);
        self.latest = self.latest.max(Some(talk.head.updated));
        for attachment in talk.messages.iter().flat_map(|message| &message.attachments) {
            let Some(blob) = attachment.blob else { continue };
            let kind = &attachment.media_type;
            let known = self.blobs.entry(blob).or_insert_with(|| kind.clone());
            if kind < known {
                known.clone_from(kind);
            }
        }
    }
}

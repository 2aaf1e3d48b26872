//! Writing `.omp.zip` archives: conversations with their attachments, and memories as they stand
//! or with all their versions.
//!
//! An archive has its files in the order of their names, so that the same vault gives the same
//! bytes, while the vault gives them out by time. What comes is put aside in a file without a
//! name beside the archive; only ids are kept in memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use futures::StreamExt;
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};
use yore_archive::{Limits, omp};
use yore_client::api::{self, Hands};
use yore_client::input;
use yore_domain::conversation::{Conversation, Message};
use yore_domain::memory::{Status, Version};
use yore_domain::query::{Filter, Order, PageRequest};
use yore_domain::{BlobHash, Timestamp};

use crate::app::{App, Session};
use crate::failure::{Exit, Failure, Result};
use crate::file::{self, Sink};
use crate::progress;

/// The largest page.
const PAGE: usize = 200;
/// A page of conversations should be about so large.
const PAGE_BYTES: usize = 4 << 20;

/// What an archive shall hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// Which memories and conversations.
    pub(crate) filter: Filter,
    /// Whose hands it is for.
    pub(crate) hands: Hands,
    /// How much of a memory.
    pub(crate) extent: Extent,
    /// The password that is put around it.
    pub(crate) password: Option<String>,
}

/// How much of a memory an archive holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What it says now.
    #[default]
    Standing,
    /// Every version, also of what was forgotten.
    History,
}

/// What was written.
#[derive(Debug, Serialize)]
pub(crate) struct Written {
    /// Where.
    pub(crate) file: String,
    conversations: u64,
    messages: u64,
    memories: u64,
    attachments: u64,
    /// Attachments that the vault names and lacks.
    missing_attachments: u64,
    /// Memories that consent keeps inside.
    kept_inside: u64,
    checksum: String,
}

impl Wanted {
    /// Everything the vault holds, for its owner.
    pub(crate) fn everything(password: Option<String>) -> Self {
        let statuses =
            vec![Status::Active, Status::Candidate, Status::Quarantined, Status::Tombstoned];
        let filter = Filter { statuses, ..Filter::default() };
        Self { filter, hands: Hands::Own, extent: Extent::History, password }
    }
}

/// Writes an archive, and reads it again to see that it is whole.
pub(crate) async fn write(app: &App, wanted: Wanted, out: &Path) -> Result<Written> {
    let mut session = app.session().await?;
    let mut sink = Sink::open(Some(out))?;
    let spinner = progress::spinner(&app.out, "reading the vault");
    let mut aside = Aside::new(out, wanted.extent)?;
    aside.fill(&mut session, &wanted, &spinner).await?;
    spinner.finish_and_clear();
    let count = session.call::<api::Count>(input::Count { filter: wanted.filter.clone() }).await?;
    let kept_inside = count.saturating_sub(aside.memories.len() as u64);
    let (manifest, missing, tag) = match &wanted.password {
        None => {
            let (manifest, missing, _) = pack(app, &session, &mut aside, out, &mut sink).await?;
            (manifest, missing, None)
        }
        Some(password) => {
            let sealer = omp::seal(&mut sink, password).map_err(failed)?;
            let (manifest, missing, sealer) = pack(app, &session, &mut aside, out, sealer).await?;
            let (_, tag) = sealer.finish().map_err(failed)?;
            (manifest, missing, Some(tag))
        }
    };
    let (_, file) = sink.close()?;
    if let Some(tag) = &tag {
        file::write(&beside(out), format!("{tag}\n").as_bytes())?;
    }
    verified(out, wanted.password.as_deref(), tag.as_deref()).await?;
    let counts = manifest.counts;
    Ok(Written {
        file,
        conversations: counts.conversations,
        messages: counts.messages + counts.x_branch_messages.unwrap_or(0),
        memories: counts.memories.unwrap_or(0),
        attachments: counts.attachments.unwrap_or(0),
        missing_attachments: missing,
        kept_inside,
        checksum: manifest.checksum,
    })
}

impl Written {
    /// Says it to people.
    pub(crate) fn tell(&self, app: &App) {
        app.out.remark(format!(
            "{} conversations with {} messages, {} memories and {} attachments written to {}",
            self.conversations, self.messages, self.memories, self.attachments, self.file,
        ));
        if self.missing_attachments > 0 {
            let missing = self.missing_attachments;
            app.out.remark(format!("{missing} attachments could not be read and are marked"));
        }
        if self.kept_inside > 0 {
            app.out.remark(format!(
                "{} memories stay inside, as consent says; --unredacted takes them too",
                self.kept_inside
            ));
        }
    }
}

/// Where the tag of an archive under a password lies.
pub(crate) fn beside(out: &Path) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(".hmac");
    name.into()
}

/// Reads what was written, every byte of it.
async fn verified(out: &Path, password: Option<&str>, tag: Option<&str>) -> Result {
    let (out, password, tag) =
        (out.to_owned(), password.map(str::to_owned), tag.map(str::to_owned));
    let read = tokio::task::spawn_blocking(move || match password {
        None => omp::Reader::open(&out, Limits::default()).map(drop),
        Some(password) => {
            omp::Reader::open_sealed(&out, &password, tag.as_deref(), Limits::default()).map(drop)
        }
    });
    let read = read.await.map_err(|error| Failure::failed(error.to_string()))?;
    read.map_err(|error| failed(error).at("what was written is not whole"))
}

/// Writes what was put aside, in the order of its names.
async fn pack<W: Write>(
    app: &App,
    session: &Session<'_>,
    aside: &mut Aside,
    out: &Path,
    to: W,
) -> Result<(omp::Manifest, u64, W)> {
    let steps = aside.blobs.len() + aside.conversations.len() + aside.memories.len();
    let bar = progress::through(&app.out, steps as u64, "writing");
    // The time of the archive is that of the last thing in it: the same content, the same bytes.
    let mut writer = omp::Writer::new(to, aside.latest, None);
    let mut missing = 0_u64;
    for (blob, media_type) in std::mem::take(&mut aside.blobs) {
        match fetched(session, blob, out).await? {
            Some(mut bytes) => writer.attachment(blob, &media_type, &mut bytes).map_err(failed)?,
            None => missing += 1,
        }
        bar.inc(1);
    }
    for place in std::mem::take(&mut aside.conversations).into_values() {
        let Talk { head, messages } = aside.take(place)?;
        writer.conversation(&head, &messages).map_err(failed)?;
        bar.inc(1);
    }
    for place in std::mem::take(&mut aside.memories).into_values() {
        let versions: Vec<Version> = aside.take(place)?;
        let ends = versions.first().zip(versions.last());
        match (aside.extent, ends) {
            (Extent::History, _) => writer.history(&versions),
            (Extent::Standing, Some((first, last))) => writer.memory(last, first.time.created),
            (Extent::Standing, None) => Ok(()),
        }
        .map_err(failed)?;
        bar.inc(1);
    }
    let (to, manifest) = writer.finish().map_err(failed)?;
    bar.finish_and_clear();
    Ok((manifest, missing, to))
}

fn failed(error: yore_archive::Error) -> Failure {
    Failure::failed(error.to_string())
}

/// The bytes of an attachment, in a file without a name; nothing when the vault lacks them.
async fn fetched(session: &Session<'_>, blob: BlobHash, out: &Path) -> Result<Option<File>> {
    let mut pieces = match session.client().attachment(blob).await.map_err(Failure::from) {
        Ok(pieces) => pieces,
        Err(failure) if failure.exit == Exit::NotFound => return Ok(None),
        Err(failure) => return Err(failure),
    };
    let broken = || Failure::file(out.display());
    let mut bytes = file::nameless(out)?;
    while let Some(piece) = pieces.next().await {
        bytes.write_all(&piece?).map_err(broken())?;
    }
    bytes.seek(SeekFrom::Start(0)).map_err(broken())?;
    Ok(Some(bytes))
}

/// Where something lies in the file: where it begins, and how long it is.
type Place = (u64, u64);

/// What the vault gave, put aside until it is its turn.
struct Aside {
    file: BufWriter<File>,
    shown: String,
    end: u64,
    conversations: BTreeMap<[u8; 16], Place>,
    memories: BTreeMap<[u8; 16], Place>,
    /// Attachments with their media type; of several the first.
    blobs: BTreeMap<BlobHash, String>,
    latest: Timestamp,
    extent: Extent,
}

#[derive(Serialize, Deserialize)]
struct Talk {
    head: Box<Conversation>,
    messages: Vec<Message>,
}

impl Aside {
    fn new(out: &Path, extent: Extent) -> Result<Self> {
        Ok(Self {
            file: BufWriter::new(file::nameless(out)?),
            shown: out.display().to_string(),
            end: 0,
            conversations: BTreeMap::new(),
            memories: BTreeMap::new(),
            blobs: BTreeMap::new(),
            latest: Timestamp::from_micros(0),
            extent,
        })
    }

    async fn fill(
        &mut self,
        session: &mut Session<'_>,
        wanted: &Wanted,
        spinner: &ProgressBar,
    ) -> Result {
        let mut after = None;
        let mut limit = PAGE;
        loop {
            // Conversations may be large: their pages begin with one.
            if after == Some(api::CONVERSATIONS) {
                limit = 1;
            }
            let page = PageRequest { limit, after, offset: 0, order: Order::OldestFirst };
            let (filter, hands) = (wanted.filter.clone(), wanted.hands);
            let request = input::Export { filter, page, hands };
            let found = session.call::<api::Export>(request).await?;
            let before = self.end;
            for item in found.items {
                self.item(item)?;
                spinner.inc(1);
            }
            let bytes = usize::try_from(self.end - before).unwrap_or(usize::MAX);
            limit = if bytes < PAGE_BYTES / 2 { (limit * 2).min(PAGE) } else { (limit / 2).max(1) };
            after = found.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    fn item(&mut self, item: api::Item) -> Result {
        match item {
            api::Item::Memory { versions } => {
                let (Some(first), Some(last)) = (versions.first(), versions.last()) else {
                    return Ok(());
                };
                self.latest = self.latest.max(first.time.created).max(last.time.created);
                let id = omp::entry_id(last.memory.bytes());
                let place = match self.extent {
                    Extent::History => self.put(&versions)?,
                    // Only the ends tell when it began and what it says.
                    Extent::Standing if versions.len() > 1 => self.put(&[first, last])?,
                    Extent::Standing => self.put(&[last])?,
                };
                self.memories.insert(id, place);
            }
            api::Item::Conversation { conversation, messages } => {
                self.latest = self.latest.max(conversation.updated);
                for attachment in messages.iter().flat_map(|message| &message.attachments) {
                    let Some(blob) = attachment.blob else { continue };
                    let kind = &attachment.media_type;
                    let known = self.blobs.entry(blob).or_insert_with(|| kind.clone());
                    if *kind < *known {
                        known.clone_from(kind);
                    }
                }
                let id = omp::entry_id(conversation.id.bytes());
                let place = self.put(&Talk { head: conversation, messages })?;
                self.conversations.insert(id, place);
            }
            // The format has no place for it.
            api::Item::Profile(_) => {}
        }
        Ok(())
    }

    fn put(&mut self, value: &impl Serialize) -> Result<Place> {
        let bytes =
            serde_json::to_vec(value).map_err(|error| Failure::failed(error.to_string()))?;
        self.file.write_all(&bytes).map_err(Failure::file(&self.shown))?;
        let place = (self.end, bytes.len() as u64);
        self.end += place.1;
        Ok(place)
    }

    fn take<T: for<'de> Deserialize<'de>>(&mut self, (from, length): Place) -> Result<T> {
        let length = usize::try_from(length).expect("invariant: it was in memory before");
        let mut bytes = vec![0; length];
        let read = self.file.seek(SeekFrom::Start(from));
        read.and_then(|_| self.file.get_mut().read_exact(&mut bytes))
            .map_err(Failure::file(&self.shown))?;
        serde_json::from_slice(&bytes).map_err(|error| Failure::failed(error.to_string()))
    }
}

//! `yore export --format omp.zip`: conversations with their attachments, and memories as they
//! stand, in one archive.
//!
//! An archive has its files in the order of their names, so that the same vault gives the same
//! bytes, while the vault gives them out by time. What comes is put aside in a file without a
//! name beside the archive; only ids are kept in memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use futures::StreamExt;
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};
use yore_archive::omp;
use yore_client::{api, input};
use yore_domain::conversation::{Conversation, Message};
use yore_domain::memory::Version;
use yore_domain::query::{Filter, Order, PageRequest};
use yore_domain::{BlobHash, Timestamp};

use super::PAGE;
use crate::app::{App, Session};
use crate::failure::{Exit, Failure, Result};
use crate::file::{self, Sink};
use crate::progress;

/// A page of conversations should be about so large.
const PAGE_BYTES: usize = 4 << 20;

/// Writes the archive.
pub(super) async fn run(app: &App, filter: Filter, out: &Path) -> Result {
    let mut session = app.session().await?;
    let mut sink = Sink::open(Some(out))?;
    let spinner = progress::spinner(&app.out, "exporting");
    let mut aside = Aside::new(out)?;
    aside.fill(&mut session, filter, &spinner).await?;
    spinner.finish_and_clear();
    let steps = aside.blobs.len() + aside.conversations.len() + aside.memories.len();
    let bar = progress::through(&app.out, steps as u64, "writing");
    // The time of the archive is that of the last thing in it: the same content, the same bytes.
    let mut writer = omp::Writer::new(&mut sink, aside.latest, None);
    let mut missing = 0_u64;
    for (blob, media_type) in std::mem::take(&mut aside.blobs) {
        match fetched(&session, blob, out).await? {
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
        let Standing { version, created } = aside.take(place)?;
        writer.memory(&version, created).map_err(failed)?;
        bar.inc(1);
    }
    let (_, manifest) = writer.finish().map_err(failed)?;
    let (_, place) = sink.close()?;
    bar.finish_and_clear();
    let counts = &manifest.counts;
    let messages = counts.messages + counts.x_branch_messages.unwrap_or(0);
    let done = serde_json::json!({
        "file": place,
        "conversations": counts.conversations,
        "messages": messages,
        "memories": counts.memories.unwrap_or(0),
        "attachments": counts.attachments.unwrap_or(0),
        "missing_attachments": missing,
        "checksum": manifest.checksum,
    });
    app.out.either(&done, |_| {
        app.out.remark(format!(
            "{} conversations with {messages} messages, {} memories and {} attachments written to \
             {place}",
            counts.conversations,
            counts.memories.unwrap_or(0),
            counts.attachments.unwrap_or(0),
        ));
        if missing > 0 {
            app.out.remark(format!("{missing} attachments could not be read and are marked"));
        }
        Ok(())
    })
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
}

#[derive(Serialize, Deserialize)]
struct Talk {
    head: Box<Conversation>,
    messages: Vec<Message>,
}

#[derive(Serialize, Deserialize)]
struct Standing {
    version: Box<Version>,
    created: Timestamp,
}

impl Aside {
    fn new(out: &Path) -> Result<Self> {
        Ok(Self {
            file: BufWriter::new(file::nameless(out)?),
            shown: out.display().to_string(),
            end: 0,
            conversations: BTreeMap::new(),
            memories: BTreeMap::new(),
            blobs: BTreeMap::new(),
            latest: Timestamp::from_micros(0),
        })
    }

    async fn fill(
        &mut self,
        session: &mut Session<'_>,
        filter: Filter,
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
            let request = input::List { filter: filter.clone(), page };
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
                let created = versions.first().map(|first| first.time.created);
                let (Some(created), Some(version)) = (created, versions.into_iter().next_back())
                else {
                    return Ok(());
                };
                self.latest = self.latest.max(created).max(version.time.created);
                let id = version.memory.bytes();
                let place = self.put(&Standing { version: Box::new(version), created })?;
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
                let id = conversation.id.bytes();
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

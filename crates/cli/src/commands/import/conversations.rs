//! Exports of other platforms, and archives: read on a thread of their own, one conversation at
//! a time, and sent in batches.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use indicatif::ProgressBar;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use yore_archive::{Blob, Known, Limits, Note, Report, Skip, Source, Standing, Talk, connector};
use yore_client::api::{self, DryRun, Imported, Item, Proposal};
use yore_client::input;
use yore_domain::conversation::{Conversation, Message};
use yore_domain::memory::{Status, Version};
use yore_domain::{BlobHash, ConversationId, MemoryId, Timestamp};

use super::near::{self, Taken};
use super::{Args, BATCH, BATCH_BYTES, Choice, Sum, attachments};
use crate::app::{App, Session};
use crate::failure::{Failure, Result};
use crate::output::{Table, cell};
use crate::source::{self, Skipped};
use crate::{password, progress};

/// Conversations that wait between the reader and the vault.
const WAITING: usize = 2;
/// Messages that are sent at once.
const MESSAGES: usize = 5000;

/// What the files of other platforms hold.
#[derive(Debug, Default, Serialize)]
pub(super) struct Exports {
    /// Conversations by platform.
    platforms: BTreeMap<String, u64>,
    conversations: u64,
    /// Those of them that came in before exactly as they are, and were not read again.
    #[serde(skip_serializing_if = "super::is_zero")]
    known: u64,
    /// Conversations without a message.
    empty: u64,
    /// Messages on active paths.
    messages: u64,
    /// Messages on branches that were left.
    branch_messages: u64,
    memories: u64,
    /// Memories that rules drew from what was said.
    drawn: u64,
    /// Attachments with their bytes, and those of them that were stored now.
    attachments: u64,
    stored_attachments: u64,
    /// Attachments that are named while their bytes are nowhere.
    missing_attachments: u64,
    /// Files of no known form.
    unread: u64,
}

/// Whether something holds conversations, or memories in another program's form.
pub(super) fn are_in(path: &Path) -> bool {
    let known = source::known(path);
    if known == Some(source::Known::Own) {
        return false;
    }
    let Ok(source) = Source::open(&[path.to_owned()], Limits::default()) else { return false };
    // A zip that is not safe to open is named by the reader.
    if source::is_zip(path) || (source.files().is_empty() && !source.skipped().is_empty()) {
        return true;
    }
    source.files().iter().any(|file| match connector::detect(file) {
        // Notes and instruction files are read here only where nobody else reads them.
        Some("notes") => known == Some(source::Known::No),
        Some(_) => true,
        None => false,
    })
}

/// Whether some platform's connector knows something in a file.
pub(super) fn are_exported(path: &Path) -> bool {
    let Ok(source) = Source::open(&[path.to_owned()], Limits::default()) else { return false };
    source.files().iter().any(|file| connector::detect(file).is_some_and(|name| name != "notes"))
}

/// Takes in everything.
pub(super) async fn run(
    app: &App,
    session: &mut Session<'_>,
    args: &Args,
    paths: &[PathBuf],
    choice: &Choice,
    sum: &mut Sum,
) -> Result {
    let source = Source::open(paths, Limits::default())
        .map_err(|error| Failure::usage(error.to_string()))?;
    let source =
        if source.is_sealed() { source.with_password(password::for_reading()?) } else { source };
    // An archive has the memories that were drawn from its conversations.
    let restored = source.files().iter().all(|file| connector::detect(file) == Some("omp"));
    let bar = progress::through_bytes(&app.out, source.total(), "importing");
    let read = source.progress();
    let (sender, mut receiver) = mpsc::channel(WAITING);
    // What was not chosen must be counted, so everything is read. What would be drawn from a
    // conversation is not known of one that came in without.
    let draws = !args.no_proposals && !restored;
    let salt = (*choice == Choice::default()).then_some(if draws { "drawn" } else { "plain" });
    let reader = tokio::task::spawn_blocking(move || {
        let give = |read| sender.blocking_send(read).map_err(|_| unheard());
        let take = &mut |item| give(Read::Item(item));
        let ask = &mut |prints: &[String]| {
            let (reply, answer) = oneshot::channel();
            give(Read::Asked(prints.to_vec(), reply))?;
            answer.blocking_recv().map_err(|_| unheard())
        };
        match salt {
            Some(salt) => yore_archive::read_unknown(&source, Known { salt, ask }, take),
            None => yore_archive::read(&source, take),
        }
    });
    let mut tray = Tray {
        dry_run: if args.dry_run { DryRun::Yes } else { DryRun::No },
        draws,
        now: app.out.now,
        choice,
        bar,
        sum,
        exports: Exports::default(),
        batch: Vec::new(),
        bytes: 0,
        names: HashMap::new(),
        here: HashSet::new(),
        prints: BTreeMap::new(),
        stored: HashMap::new(),
        unsure: Vec::new(),
        proposals: Vec::new(),
        drawn: HashSet::new(),
    };
    while let Some(handed) = receiver.recv().await {
        match handed {
            Read::Item(yore_archive::Item::Conversation(talk)) => tray.talk(session, *talk).await?,
            Read::Item(yore_archive::Item::Memory(note)) => tray.note(session, *note).await?,
            Read::Item(yore_archive::Item::Skipped(_)) => {}
            Read::Asked(prints, reply) => {
                let known = near::known(session, prints).await.map_err(stopped)?;
                // The reader that no longer waits has ended, and says why.
                reply.send(known).unwrap_or_default();
            }
        }
        tray.bar.set_position(read.load(Ordering::Relaxed));
    }
    tray.send(session).await?;
    tray.bar.finish_and_clear();
    let Tray { exports, sum, .. } = tray;
    let report = reader.await.map_err(|error| Failure::failed(error.to_string()))?;
    let report = report.map_err(|error| Failure::failed(error.to_string()))?;
    sum.found += report.known;
    sum.duplicates += report.known;
    sum.skipped.extend(report.skipped.iter().map(skipped));
    sum.exports = Some(exports.of(report));
    Ok(())
}

/// What the reader hands over.
enum Read {
    /// Something it read.
    Item(yore_archive::Item),
    /// Pieces it would read, unless they are known.
    Asked(Vec<String>, oneshot::Sender<Vec<bool>>),
}

fn unheard() -> yore_archive::Error {
    yore_archive::Error::Stopped("nobody takes what is read".to_owned())
}

fn skipped(skip: &Skip) -> Skipped {
    let item = match &skip.what {
        Some(what) => format!("{}: {what}", skip.path),
        None => skip.path.clone(),
    };
    Skipped { item, reason: skip.reason.clone() }
}

/// Items on their way to the vault.
struct Tray<'a> {
    dry_run: DryRun,
    /// Whether memories are drawn from what was said.
    draws: bool,
    now: Timestamp,
    choice: &'a Choice,
    bar: ProgressBar,
    sum: &'a mut Sum,
    exports: Exports,
    batch: Vec<Item>,
    bytes: usize,
    /// What the reader of the report calls an item of the batch.
    names: HashMap<String, String>,
    /// The conversations of the batch, which holds each once.
    here: HashSet<ConversationId>,
    /// The pieces of exports that they were read from.
    prints: BTreeMap<ConversationId, String>,
    /// Attachments that were looked at, and whether the vault has them.
    stored: HashMap<BlobHash, bool>,
    /// Attachments that the vault had before the batch names them.
    unsure: Vec<Blob>,
    proposals: Vec<Proposal>,
    drawn: HashSet<MemoryId>,
}

impl Tray<'_> {
    async fn talk(&mut self, session: &mut Session<'_>, talk: Talk) -> Result {
        if !self.chosen(&talk) {
            self.sum.left_out += 1;
            return Ok(());
        }
        self.found();
        let drawn = if self.draws { yore_archive::proposals(&talk) } else { Vec::new() };
        let Talk { head, mut messages, blobs, print } = talk;
        let title = head.title.as_deref().unwrap_or("without a title");
        let name = format!("{} conversation \"{title}\"", head.platform);
        let mut known = Vec::new();
        for blob in blobs {
            known.extend(self.attach(session, blob, &name).await?);
        }
        self.unname(&mut messages);
        let mut parts = parts(messages);
        if parts.len() == 1 {
            let (messages, bytes) = parts.remove(0);
            let full = self.batch.len() >= BATCH || self.bytes + bytes > BATCH_BYTES;
            if full || self.here.contains(&head.id) {
                self.send(session).await?;
            }
            self.here.insert(head.id);
            // What is drawn comes in after it, and must not be lost in between.
            if let Some(print) = print.filter(|_| drawn.is_empty()) {
                self.prints.insert(head.id, print);
            }
            self.names.insert(head.id.to_string(), name);
            self.batch.push(Item::Conversation { conversation: Box::new(head), messages });
            self.bytes += bytes;
            self.unsure.append(&mut known);
        } else {
            self.long(session, &head, parts, name).await?;
            self.unsure.append(&mut known);
            self.ensure(session).await?;
        }
        for note in drawn {
            // The same words are one proposal, wherever they were said.
            if self.drawn.insert(note.id) {
                self.exports.drawn += 1;
                self.found();
                self.propose(session, note).await?;
            }
        }
        Ok(())
    }

    /// Sends a conversation that no request holds in parts; it counts as one.
    async fn long(
        &mut self,
        session: &mut Session<'_>,
        head: &Conversation,
        parts: Vec<(Vec<Message>, usize)>,
        name: String,
    ) -> Result {
        self.send(session).await?;
        self.names.insert(head.id.to_string(), name);
        let mut done: Vec<Imported> = Vec::new();
        for (messages, _) in parts {
            let item = Item::Conversation { conversation: Box::new(head.clone()), messages };
            done.push(self.brought(session, vec![item]).await?);
        }
        let rejected: Vec<_> = done.iter().flat_map(|done| done.rejected.clone()).take(1).collect();
        let whole = Imported {
            imported: done.first().map_or(0, |first| first.imported),
            merged: done.iter().map(|done| done.imported + done.merged).sum(),
            erased: done.iter().map(|done| done.erased).sum(),
            ..Imported::default()
        };
        let whole = match (rejected.is_empty(), whole.imported, whole.merged) {
            (false, ..) => Imported { rejected, ..Imported::default() },
            (true, 0, 0) if whole.erased > 0 => Imported { erased: 1, ..Imported::default() },
            (true, 1.., _) => Imported { imported: 1, ..Imported::default() },
            (true, 0, 1..) => Imported { merged: 1, ..Imported::default() },
            (true, 0, 0) => Imported { duplicates: 1, ..Imported::default() },
        };
        self.count(whole);
        Ok(())
    }

    fn chosen(&self, talk: &Talk) -> bool {
        let times: Vec<Timestamp> = talk.messages.iter().map(|message| message.at).collect();
        self.choice.conversation.is_none_or(|wanted| wanted == talk.head.id)
            && self.choice.takes(Some(&talk.head.platform), &talk.head.tags, &times)
    }

    async fn note(&mut self, session: &mut Session<'_>, note: Note) -> Result {
        let content = &note.draft.content;
        let made = note.versions.first().map(|first| first.time.created);
        let times: Vec<Timestamp> = made.or(note.draft.time.created).into_iter().collect();
        let platform = content.provenance.provider.as_deref();
        if self.choice.conversation.is_some() || !self.choice.takes(platform, &content.tags, &times)
        {
            self.sum.left_out += 1;
            return Ok(());
        }
        self.found();
        if note.standing == Standing::Proposed && note.active {
            if self.drawn.insert(note.id) {
                self.propose(session, note).await?;
            } else {
                self.sum.duplicates += 1;
            }
            return Ok(());
        }
        let Note { id, draft, active, versions, .. } = note;
        let versions = if versions.is_empty() {
            let mut version = Version::first(id, draft, self.now, None);
            if !active {
                version.status = Status::Tombstoned;
            }
            vec![version]
        } else {
            versions
        };
        if self.batch.len() >= BATCH || self.bytes >= BATCH_BYTES {
            self.send(session).await?;
        }
        let texts = versions.iter().map(|version| &version.content.body.text);
        self.bytes += texts.map(|text| 2 * text.len() + 2000).sum::<usize>();
        if let Some(last) = versions.last() {
            self.names.insert(id.to_string(), called(&last.content.body.text));
        }
        self.batch.push(Item::Memory { versions });
        Ok(())
    }

    fn found(&mut self) {
        self.sum.found += 1;
        self.bar.set_message(format!("importing {}", self.sum.found));
    }

    async fn propose(&mut self, session: &mut Session<'_>, note: Note) -> Result {
        if self.bytes >= BATCH_BYTES {
            self.send(session).await?;
        }
        self.names.insert(note.id.to_string(), called(&note.draft.content.body.text));
        self.bytes += 2 * note.draft.content.body.text.len() + 2000;
        self.proposals.push(Proposal { id: note.id, draft: note.draft });
        Ok(())
    }

    /// Stores an attachment, unless the vault has it: then it comes back, for whatever named it
    /// may be erased before its new message is in.
    async fn attach(
        &mut self,
        session: &mut Session<'_>,
        blob: Blob,
        talk: &str,
    ) -> Result<Option<Blob>> {
        let hash = blob.hash;
        if self.stored.contains_key(&hash) || self.dry_run == DryRun::Yes {
            return Ok(None);
        }
        let mut known = None;
        let stored = match attachments::store(session, &blob).await? {
            Ok(attachments::Stored::Now) => {
                self.exports.stored_attachments += 1;
                true
            }
            Ok(attachments::Stored::Before) => {
                known = Some(blob);
                true
            }
            Err(reason) => {
                let item = format!("an attachment of the {talk}");
                self.sum.skipped.push(Skipped { item, reason });
                false
            }
        };
        self.stored.insert(hash, stored);
        Ok(known)
    }

    /// Stores again what was there before a message named it and is gone since.
    async fn ensure(&mut self, session: &mut Session<'_>) -> Result {
        for blob in std::mem::take(&mut self.unsure) {
            if let Ok(attachments::Stored::Now) = attachments::store(session, &blob).await? {
                self.exports.stored_attachments += 1;
            }
        }
        Ok(())
    }

    /// What the vault does not have is named without its bytes.
    fn unname(&mut self, messages: &mut [Message]) {
        for attachment in messages.iter_mut().flat_map(|message| &mut message.attachments) {
            let Some(blob) = attachment.blob else { continue };
            if self.dry_run == DryRun::Yes {
                // Weighing looks at no bytes.
                attachment.blob = None;
            } else if !self.stored.get(&blob).copied().unwrap_or(false) {
                attachment.blob = None;
                self.exports.missing_attachments += 1;
            }
        }
    }

    /// Sends what waits: what was said first, then what is proposed to remember of it.
    async fn send(&mut self, session: &mut Session<'_>) -> Result {
        self.bytes = 0;
        self.here.clear();
        let items = std::mem::take(&mut self.batch);
        if !items.is_empty() {
            let done = self.brought(session, items).await?;
            let new = done.imported + done.merged > 0;
            self.count(done);
            if new {
                self.ensure(session).await?;
            }
        }
        self.unsure.clear();
        while !self.proposals.is_empty() {
            let rest = self.proposals.split_off(self.proposals.len().min(BATCH));
            let proposals = std::mem::replace(&mut self.proposals, rest);
            let request = input::Propose { proposals, dry_run: self.dry_run };
            let done = session.change::<api::Propose>(request).await.map_err(stopped)?;
            self.sum.proposed += done.held as u64;
            self.sum.duplicates += done.known as u64;
            self.reject(done.rejected);
        }
        self.names.clear();
        Ok(())
    }

    /// Brings items into the vault, on the shortest way.
    async fn brought(&mut self, session: &mut Session<'_>, items: Vec<Item>) -> Result<Imported> {
        let prints = std::mem::take(&mut self.prints);
        match near::take(session, items, prints, self.dry_run).await.map_err(stopped)? {
            Taken::Here(done) => Ok(done),
            Taken::Elsewhere(items) => {
                let all = items.len();
                let items = Self::unknown(session, items).await?;
                let known = all - items.len();
                let mut done = self.taken(session, items).await?;
                done.duplicates += known;
                Ok(done)
            }
        }
    }

    /// Leaves out the conversations that came in before exactly as they are.
    async fn unknown(session: &mut Session<'_>, items: Vec<Item>) -> Result<Vec<Item>> {
        let fingerprints: Vec<String> = items.iter().filter_map(fingerprint).collect();
        if fingerprints.is_empty() {
            return Ok(items);
        }
        let request = input::KnownImports { fingerprints };
        let known = session.call::<api::KnownImports>(request).await.map_err(stopped)?;
        let mut known = known.into_iter();
        let mut left = Vec::with_capacity(items.len());
        for item in items {
            let is_talk = matches!(item, Item::Conversation { .. });
            if !is_talk || !known.next().unwrap_or(false) {
                left.push(item);
            }
        }
        Ok(left)
    }

    /// Sends items. Where they are too much for one request they go one by one, and one that is
    /// too large by itself is turned down.
    async fn taken(&self, session: &mut Session<'_>, items: Vec<Item>) -> Result<Imported> {
        let mut sum = Imported::default();
        let mut waiting = vec![items];
        while let Some(items) = waiting.pop() {
            if items.is_empty() {
                continue;
            }
            let request = input::Import { items: items.clone(), dry_run: self.dry_run };
            match session.change::<api::Import>(request).await {
                Ok(done) => {
                    sum.imported += done.imported;
                    sum.merged += done.merged;
                    sum.duplicates += done.duplicates;
                    sum.erased += done.erased;
                    sum.held += done.held;
                    sum.rejected.extend(done.rejected);
                }
                // One that is too large or too deep must not stop the others.
                Err(failure) if ["too_large", "invalid"].contains(&failure.code.as_str()) => {
                    match items.as_slice() {
                        [item] => sum.rejected.push((id(item), failure.message)),
                        _ => waiting.extend(items.into_iter().rev().map(|item| vec![item])),
                    }
                }
                Err(failure) => return Err(stopped(failure)),
            }
        }
        Ok(sum)
    }

    fn count(&mut self, done: Imported) {
        self.sum.imported += done.imported as u64;
        self.sum.merged += done.merged as u64;
        self.sum.duplicates += done.duplicates as u64;
        self.sum.erased += done.erased as u64;
        self.sum.held += done.held as u64;
        self.reject(done.rejected);
    }

    fn reject(&mut self, rejected: Vec<(String, String)>) {
        for (id, reason) in rejected {
            let item = self.names.get(&id).cloned().unwrap_or(id);
            self.sum.rejected.push(Skipped { item, reason });
        }
    }
}

/// The fingerprint of a conversation; nothing else has one.
fn fingerprint(item: &Item) -> Option<String> {
    match item {
        Item::Conversation { conversation, messages } => {
            Some(api::fingerprint(conversation, messages))
        }
        Item::Memory { .. } | Item::Profile(_) => None,
    }
}

fn stopped(failure: Failure) -> Failure {
    failure.at("stopped; what was taken in stays, run the import again for the rest")
}

pub(super) fn id(item: &Item) -> String {
    match item {
        Item::Memory { versions } => {
            versions.first().map_or_else(String::new, |version| version.memory.to_string())
        }
        Item::Conversation { conversation, .. } => conversation.id.to_string(),
        Item::Profile(_) => "the profile".to_owned(),
    }
}

/// What a memory is called in a report.
fn called(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let short: String = line.chars().take(60).collect();
    let dots = if short.len() < text.trim_end().len() { "…" } else { "" };
    format!("memory \"{short}{dots}\"")
}

/// Cuts a long conversation into parts that fit a request, each with its size.
fn parts(messages: Vec<Message>) -> Vec<(Vec<Message>, usize)> {
    let mut parts: Vec<(Vec<Message>, usize)> = Vec::new();
    let (mut held, mut size) = (Vec::new(), 2000);
    for message in messages {
        let bytes = weight(&message.content)
            + message.text.len()
            + message.foreign.values().map(weight).sum::<usize>()
            + 600;
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

/// Roughly the bytes of a value as JSON.
pub(super) fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 4,
        Value::Array(items) => items.iter().map(|item| weight(item) + 1).sum::<usize>() + 2,
        Value::Object(members) => {
            members.iter().map(|(name, value)| name.len() + weight(value) + 4).sum::<usize>() + 2
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

impl Exports {
    fn of(self, report: Report) -> Self {
        // What could not be stored was counted among the found.
        let lost = self.missing_attachments;
        Self {
            platforms: report.platforms,
            conversations: report.conversations,
            known: report.known,
            empty: report.empty,
            messages: report.messages,
            branch_messages: report.branch_messages,
            memories: report.memories,
            attachments: report.attachments.saturating_sub(lost),
            missing_attachments: report.missing_attachments + lost,
            unread: report.unread,
            ..self
        }
    }

    /// Whether nothing at all could be read.
    pub(super) fn is_empty(&self) -> bool {
        self.conversations == 0 && self.memories == 0
    }

    pub(super) fn show(&self, app: &App) -> Result {
        let mut table = Table::new(&["READ", ""]);
        let platforms = self.platforms.iter().map(|(name, count)| format!("{name} {count}"));
        let platforms = platforms.collect::<Vec<_>>().join(", ");
        let what = if platforms.is_empty() {
            "conversations".to_owned()
        } else {
            format!("conversations: {platforms}")
        };
        table.push([cell(self.conversations.to_string()), cell(what)]);
        let rows = [
            (self.known, "of them known, not read again"),
            (self.messages, "messages"),
            (self.branch_messages, "messages on branches that were left"),
            (self.memories, "memories"),
            (self.drawn, "things to remember, drawn from what was said"),
            (self.attachments, "attachments"),
            (self.missing_attachments, "attachments without their bytes"),
            (self.unread, "files of no known form"),
        ];
        for (number, what) in rows.into_iter().filter(|(number, _)| *number > 0) {
            table.push([cell(number.to_string()), cell(what)]);
        }
        app.out.table(&table)?;
        app.out.line("")
    }
}

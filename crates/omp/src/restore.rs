//! Restore: an archive is verified whole, then taken in one thing after the other.
//!
//! What is here already stays as it is: restoring the same archive again changes nothing. What
//! was deleted here does not come back.

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use axum::body::Body;
use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use yore_archive::connector::detect;
use yore_archive::omp::Reader;
use yore_archive::{Blob, Item, Limits, Note, Sink, Source, Standing, Talk, connectors, proposals};
use yore_domain::conversation::{Conversation, Message};
use yore_domain::grant::Verb;
use yore_domain::job::{Job, JobState};
use yore_domain::memory::{Status, Version};
use yore_domain::query::Filter;
use yore_domain::{BlobHash, Error, JobId, MessageId, Timestamp};
use yore_engine::{Call, Imported, Item as Brought, Proposal, Work};

use crate::Omp;
use crate::backup::{state_of, stopped};
use crate::conversations::there;
use crate::error::{Refusal, Result};
use crate::params::Params;
use crate::routes::Asking;
use crate::upload::{Expecting, plain_name};

/// What waits between the archive and the vault.
const WAITING: usize = 2;
/// Messages that are stored at once.
const MESSAGES: usize = 5000;
/// How many things lie between two notes of progress.
const NOTED: u64 = 50;
/// How many faults are listed.
const FAULTS: usize = 1000;

/// How a restore is to be done.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Order {
    filter: Filter,
    dry_run: bool,
    /// The platform whose own export it is; absent for an archive.
    #[serde(default)]
    connector: Option<String>,
    /// Whether things to remember are drawn from what was said.
    #[serde(default)]
    draws: bool,
    /// The server's own where the archive came without one; that is never written down.
    #[serde(skip)]
    password: String,
}

/// Where a restore goes on after the end of a server.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Checkpoint {
    order: Option<Order>,
    /// What was taken of the archive, in its order.
    taken: u64,
    summary: Summary,
}

/// What became of what an archive holds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Summary {
    conversations: Counts,
    messages: Counts,
    memories: Counts,
    attachments: Counts,
    errors: Vec<Value>,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Counts {
    imported: u64,
    merged: u64,
    skipped: u64,
    /// Those that say something else than what is here, which stays.
    #[serde(skip_serializing_if = "is_zero")]
    conflicts: u64,
    /// Those that were deleted here and stay so.
    #[serde(skip_serializing_if = "is_zero")]
    deleted: u64,
    /// Those that a person decides about first.
    #[serde(skip_serializing_if = "is_zero")]
    pending: u64,
}

const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Omp {
    /// Begins a restore: the archive is put aside before the answer, and read after it.
    pub(crate) async fn restore(
        &self,
        asking: &Asking,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<JobId> {
        self.take_aside(asking, headers, body, None).await
    }

    /// The same for what a platform exported in a form of its own.
    pub(crate) async fn import(
        &self,
        asking: &Asking,
        connector: &str,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<JobId> {
        let known = connectors::all();
        if connector != ANY && !known.iter().any(|one| one.platform() == connector) {
            return Err(Error::NotFound.into());
        }
        self.take_aside(asking, headers, body, Some(connector.to_owned())).await
    }

    async fn take_aside(
        &self,
        asking: &Asking,
        headers: &HeaderMap,
        body: Body,
        connector: Option<String>,
    ) -> Result<JobId> {
        let call = &asking.call;
        self.spool()?;
        let identity = self.engine.identify(call, Verb::Write).await?;
        let job = self.engine.begin_work(call, Work::Restore, Value::Null).await?;
        let id = job.id;
        let own = self.spool_password(&identity, id);
        let mut resumable = false;
        let expecting = match &connector {
            None => Expecting::Archive,
            Some(_) => {
                Expecting::Export(plain_name(asking.params.one("filename").unwrap_or_default()))
            }
        };
        let order = match self.arrive(headers, body, &job, &own, expecting).await {
            Ok(arrived) => {
                resumable = !arrived.sealed;
                let params = asking.params.with(arrived.fields);
                order(&params, if arrived.sealed { None } else { Some(own) }, connector)
            }
            Err(refusal) => Err(refusal),
        };
        let order = match order {
            Ok(order) => order,
            Err(refusal) => {
                self.end_restore(call, job, Err(refusal.clone())).await;
                return Err(refusal);
            }
        };
        let mut job = job;
        if resumable {
            let order = Some(order.clone());
            job.checkpoint = json!(Checkpoint { order, ..Checkpoint::default() });
            self.engine.move_work(call, Work::Restore, job.clone()).await?;
        }
        self.set_out(call.clone(), job, order);
        Ok(id)
    }

    fn set_out(&self, call: Call, mut job: Job, order: Order) {
        let (omp, id) = (self.clone(), job.id);
        self.running.begin(id);
        tokio::spawn(async move {
            let done = omp.carry_out_restore(&call, &mut job, order).await;
            if done.is_ok() || !omp.running.is_halted() {
                omp.end_restore(&call, job, done).await;
            }
            omp.running.end(id);
        });
    }

    /// Goes on with a restore that was cut off. One of which not all had arrived, or whose
    /// archive has a password of its own, is given up.
    pub(crate) async fn resume_restore(&self, call: Call, job: Job) {
        let checkpoint = serde_json::from_value::<Checkpoint>(job.checkpoint.clone());
        let identity = self.engine.identify(&call, Verb::Write).await;
        let here = self.spool().is_ok_and(|spool| spool.path(&job).exists());
        match (checkpoint.ok().and_then(|checkpoint| checkpoint.order), identity) {
            (Some(order), Ok(identity)) if here => {
                let password = self.spool_password(&identity, job.id);
                self.set_out(call, job, Order { password, ..order });
            }
            _ => self.give_up(call.vault, job).await,
        }
    }

    async fn end_restore(&self, call: &Call, mut job: Job, done: Result<Summary>) {
        if let Ok(spool) = self.spool() {
            spool.remove(&job);
        }
        match done {
            Ok(summary) => {
                job.state = JobState::Completed;
                job.checkpoint = Value::Null;
                job.report = json!(summary);
            }
            Err(refusal) => {
                job.state = JobState::Failed;
                job.error = Some(refusal.message);
            }
        }
        if let Err(error) = self.engine.move_work(call, Work::Restore, job).await {
            tracing::warn!(%error, "the end of a restore could not be written down");
        }
    }

    async fn carry_out_restore(&self, call: &Call, job: &mut Job, order: Order) -> Result<Summary> {
        let path = self.spool()?.path(job);
        let (sender, mut items) = mpsc::channel(WAITING);
        let (opened, total) = tokio::sync::oneshot::channel();
        let (password, connector) = (order.password.clone(), order.connector.clone());
        let reader = tokio::task::spawn_blocking(move || {
            let mut give = |item: Item| {
                let stopped = |_| yore_archive::Error::Stopped("nobody takes it".to_owned());
                sender.blocking_send(item).map_err(stopped)
            };
            // Nobody waits for the total only if the work was given up.
            let Some(connector) = connector else {
                let reader = open(path, &password)?;
                let counts = &reader.manifest().counts;
                let _ =
                    opened.send(Some(counts.conversations + counts.memories.unwrap_or_default()));
                return reader.read(&mut Sink::new(&mut give));
            };
            let source = exported(&path, &password, &connector)?;
            let _ = opened.send(None);
            yore_archive::read(&source, &mut give).map(drop)
        });
        let Ok(total) = total.await else {
            reader.await.map_err(Error::internal)??;
            return Err(Error::internal("an archive was given up").into());
        };
        let before: Option<Checkpoint> =
            serde_json::from_value(job.checkpoint.clone()).map_err(Error::internal)?;
        let before = before.unwrap_or_default();
        job.state = JobState::Running;
        job.total = total;
        self.engine.move_work(call, Work::Restore, job.clone()).await?;
        let mut hand = Hand {
            omp: self,
            call: Call { operation: None, ..call.clone() },
            order: &order,
            now: self.engine.now(),
            stored: HashSet::new(),
            summary: before.summary,
        };
        let mut seen = 0;
        job.done = before.taken;
        while let Some(item) = items.recv().await {
            seen += 1;
            // What was taken before the server ended is not looked at again.
            if seen <= before.taken {
                continue;
            }
            if self.running.is_halted() {
                return Err(stopped());
            }
            hand.item(item).await?;
            job.done = seen;
            if seen.is_multiple_of(NOTED) {
                if let Some(order) = &before.order {
                    let (order, summary) = (Some(order.clone()), hand.summary.clone());
                    job.checkpoint = json!(Checkpoint { order, taken: seen, summary });
                }
                self.engine.move_work(call, Work::Restore, job.clone()).await?;
            }
        }
        reader.await.map_err(Error::internal)??;
        Ok(hand.summary)
    }

    /// Says how a restore stands.
    pub(crate) async fn restore_state(&self, asking: &Asking, id: &str) -> Result<Value> {
        let (job, running) = self.job(asking, Work::Restore, id).await?;
        let mut state = state_of(&job, running);
        if job.state == JobState::Completed {
            state["summary"] = job.report;
        }
        Ok(state)
    }
}

/// What is said where the platform is not.
const ANY: &str = "auto";

/// Opens what a platform exported, if it is of that platform.
fn exported(path: &Path, password: &str, connector: &str) -> yore_archive::Result<Source> {
    let source = Source::sealed(path, password, "export", Limits::default())?;
    let known = |file: &yore_archive::File| match detect(file) {
        Some(found) => connector == ANY || found == connector,
        None => false,
    };
    if source.files().iter().any(known) {
        return Ok(source);
    }
    let reason = match source.skipped().first() {
        Some(skip) => skip.reason.clone(),
        None if connector == ANY => "no known export".to_owned(),
        None => format!("nothing in it is an export of {connector}"),
    };
    Err(yore_archive::Error::Form(reason))
}

fn order(params: &Params, own: Option<String>, connector: Option<String>) -> Result<Order> {
    let password = match own {
        Some(own) => own,
        None => params.one("password").map(str::to_owned).ok_or_else(|| {
            Refusal::invalid("password", "the archive has one; give it as a field of the form")
        })?,
    };
    let dry_run = params.flag("dry_run")?.unwrap_or(false);
    let draws = connector.is_some() && params.flag("proposals")?.unwrap_or(true);
    Ok(Order { filter: params.filter()?, dry_run, connector, draws, password })
}

fn open(path: PathBuf, password: &str) -> yore_archive::Result<Reader> {
    Reader::open_sealed(&path, password, None, Limits::default())
}

/// Takes an archive in.
struct Hand<'a> {
    omp: &'a Omp,
    call: Call,
    order: &'a Order,
    now: Timestamp,
    /// Attachments that were stored by this restore.
    stored: HashSet<BlobHash>,
    summary: Summary,
}

impl Hand<'_> {
    async fn item(&mut self, item: Item) -> Result<()> {
        match item {
            Item::Conversation(talk) if self.wants_talk(&talk.head) => {
                let drawn = if self.order.draws { proposals(&talk) } else { Vec::new() };
                self.talk(*talk).await?;
                self.propose(drawn).await
            }
            Item::Memory(note) if self.wants_note(&note) => {
                let proposed = note.standing == Standing::Proposed && note.active;
                match proposed && self.order.connector.is_some() {
                    true => self.propose(vec![*note]).await,
                    false => self.note(*note).await,
                }
            }
            Item::Conversation(_) | Item::Memory(_) => Ok(()),
            Item::Skipped(skip) => {
                self.fault(&skip.path, skip.what.as_deref(), &skip.reason);
                Ok(())
            }
        }
    }

    fn fault(&mut self, path: &str, id: Option<&str>, reason: &str) {
        if self.summary.errors.len() < FAULTS {
            self.summary.errors.push(json!({"path": path, "id": id, "reason": reason}));
        }
    }

    fn wants_talk(&self, head: &Conversation) -> bool {
        let Filter { platform, tags, from, until, conversation, .. } = &self.order.filter;
        platform.as_ref().is_none_or(|platform| *platform == head.platform)
            && tags.iter().all(|tag| head.tags.contains(tag))
            && from.is_none_or(|from| from <= head.created)
            && until.is_none_or(|until| head.created < until)
            && conversation.is_none_or(|wanted| wanted == head.id)
    }

    fn wants_note(&self, note: &Note) -> bool {
        let Filter { platform, tags, from, until, conversation, .. } = &self.order.filter;
        let content = &note.draft.content;
        let first = note.versions.first().map(|first| first.time.created);
        let made = first.or(note.draft.time.created);
        let from_talk = |id| content.provenance.messages.iter().any(|one| one.conversation == id);
        platform.as_ref().is_none_or(|name| content.provenance.provider.as_ref() == Some(name))
            && tags.iter().all(|tag| content.tags.contains(tag))
            && from.is_none_or(|from| made.is_some_and(|made| from <= made))
            && until.is_none_or(|until| made.is_some_and(|made| made < until))
            && conversation.is_none_or(from_talk)
    }

    /// Takes in what is new of a conversation.
    async fn talk(&mut self, talk: Talk) -> Result<()> {
        let Talk { head, mut messages, blobs, .. } = talk;
        let (engine, id) = (&self.omp.engine, head.id);
        let known = there(engine.talk(&self.call, id).await)?;
        let gone = engine.erased_of(&self.call, id).await?;
        if known.is_none() && gone.whole {
            self.summary.conversations.deleted += 1;
            self.summary.messages.deleted += messages.len() as u64;
            return Ok(());
        }
        let mut fresh = Vec::with_capacity(messages.len());
        for message in messages.drain(..) {
            let same = known.as_ref().and_then(|known| find(&known.messages, message.id));
            match same {
                Some(same) if *same == message => self.summary.messages.skipped += 1,
                Some(_) => self.summary.messages.conflicts += 1,
                None if gone.messages.contains(&message.id) => self.summary.messages.deleted += 1,
                None => fresh.push(message),
            }
        }
        let counts = &mut self.summary.conversations;
        match (&known, fresh.is_empty()) {
            (None, _) => counts.imported += 1,
            (Some(_), false) => counts.merged += 1,
            (Some(_), true) => counts.skipped += 1,
        }
        self.summary.messages.imported += fresh.len() as u64;
        if self.order.dry_run || (known.is_some() && fresh.is_empty()) {
            return Ok(());
        }
        for blob in blobs {
            self.attach(&head, blob).await?;
        }
        for attachment in fresh.iter_mut().flat_map(|message| &mut message.attachments) {
            attachment.blob = attachment.blob.filter(|blob| self.stored.contains(blob));
        }
        self.store(head, known.is_some(), fresh).await
    }

    /// Stores messages in parts that fit a commit; the first part begins the conversation.
    async fn store(
        &mut self,
        head: Conversation,
        known: bool,
        mut messages: Vec<Message>,
    ) -> Result<()> {
        let engine = &self.omp.engine;
        let mut id = head.id;
        if !known {
            let rest = messages.split_off(messages.len().min(MESSAGES));
            id = engine.begin(&self.call, head, std::mem::replace(&mut messages, rest)).await?;
        }
        while !messages.is_empty() {
            let rest = messages.split_off(messages.len().min(MESSAGES));
            engine.say(&self.call, id, std::mem::replace(&mut messages, rest)).await?;
        }
        Ok(())
    }

    async fn attach(&mut self, head: &Conversation, blob: Blob) -> Result<()> {
        let hash = blob.hash;
        if self.stored.contains(&hash) {
            self.summary.attachments.skipped += 1;
            return Ok(());
        }
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = Vec::new();
            let read = blob.open().map(|mut open| open.read_to_end(&mut bytes));
            matches!(read, Ok(Ok(_))).then_some(bytes)
        });
        let Some(bytes) = read.await.map_err(Error::internal)? else {
            let path = format!("conversations/{}.json", head.id);
            self.fault(&path, Some(&hash.to_string()), "an attachment cannot be read");
            return Ok(());
        };
        self.omp.engine.attach(&self.call, bytes).await?;
        self.stored.insert(hash);
        self.summary.attachments.imported += 1;
        Ok(())
    }

    /// Lets a person decide what a platform concluded, and what was asked to be remembered.
    async fn propose(&mut self, notes: Vec<Note>) -> Result<()> {
        if notes.is_empty() {
            return Ok(());
        }
        let made = notes.into_iter().map(|note| Proposal { id: note.id, draft: note.draft });
        let (made, engine) = (made.collect(), &self.omp.engine);
        let done = match self.order.dry_run {
            true => engine.weigh_proposals(&self.call, made).await?,
            false => engine.propose(&self.call, made).await?,
        };
        self.summary.memories.pending += done.held as u64;
        self.summary.memories.skipped += done.known as u64;
        for (id, reason) in done.rejected {
            self.fault("memories", Some(&id), &reason);
        }
        Ok(())
    }

    async fn note(&mut self, note: Note) -> Result<()> {
        let Note { id, draft, active, mut versions, .. } = note;
        if versions.is_empty() {
            let mut version = Version::first(id, draft, self.now, None);
            if !active {
                version.status = Status::Tombstoned;
            }
            versions.push(version);
        }
        let items = vec![Brought::Memory { versions }];
        let engine = &self.omp.engine;
        let done: Imported = match self.order.dry_run {
            true => engine.weigh_import(&self.call, items).await?,
            false => engine.import(&self.call, items).await?,
        };
        let counts = &mut self.summary.memories;
        counts.imported += done.imported as u64;
        counts.merged += done.merged as u64;
        counts.skipped += done.duplicates as u64;
        counts.deleted += done.erased as u64;
        counts.pending += done.held as u64;
        for (id, reason) in done.rejected {
            self.fault(&format!("memories/{id}.json"), Some(&id), &reason);
        }
        Ok(())
    }
}

fn find(messages: &[Message], id: MessageId) -> Option<&Message> {
    messages.iter().find(|message| message.id == id)
}

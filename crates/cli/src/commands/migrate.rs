//! `yore migrate`: moves what a vault holds to another host, and says first what will not be seen
//! there.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use futures::StreamExt;
use http::Method;
use http::header::HeaderValue;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc;
use yore_archive::omp::Sealed;
use yore_client::api;
use yore_client::input::{self, Nothing};
use yore_domain::MemoryId;
use yore_domain::hold::HoldState;
use yore_domain::query::PageRequest;

use crate::app::{App, Session};
use crate::archive::{self, Wanted};
use crate::failure::{Exit, Failure, Result};
use crate::input as given;
use crate::output::{BAD, GOOD, Table, WARN, cell, styled};
use crate::peer::{Elsewhere, Peer};
use crate::progress;

/// How often the other host is asked how far it is.
const LOOK: Duration = Duration::from_millis(300);
/// What is sent at once.
const PIECE: usize = 256 << 10;
/// How many things that are missing are named.
const NAMED: usize = 20;

/// Options of `yore migrate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore migrate https://memory.example:7443 --peer-token yore_v_… --dry-run
  yore migrate https://memory.example:7443 --peer-ca their-ca.pem --yes

Everything goes as one archive of the Open Memory Protocol: conversations with their branches and
attachments, and memories with all their versions. What the other host keeps and does not show, and
what belongs to this vault alone and stays, is counted before anything is sent. What is there stays
as it is, so that a migration that was cut off is run again. In the end both hosts are compared,
thing by thing. Nothing is deleted here: yore delete --everything does that when you are sure.")]
pub(crate) struct Args {
    /// The address of the other host
    #[arg(value_name = "URL")]
    place: String,
    #[command(flatten)]
    elsewhere: Elsewhere,
    /// Say what would be moved and what would be lost sight of, and send nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Numbers {
    conversations: u64,
    messages: u64,
    memories: u64,
}

/// What will not be seen at the other host, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct Notice {
    /// Kept there, and shown by no host that knows the protocol alone.
    kept_unseen: BTreeMap<&'static str, u64>,
    /// Not part of an archive.
    stays_here: BTreeMap<&'static str, u64>,
}

#[derive(Debug, Serialize)]
struct Done {
    to: String,
    host: Value,
    moves: Numbers,
    notice: Notice,
    dry_run: bool,
    /// What the other host says it did.
    #[serde(skip_serializing_if = "Value::is_null")]
    summary: Value,
    /// What both have.
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<Numbers>,
    /// What the other host lacks.
    missing: Vec<String>,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let there = Peer::there(&args.place, &args.elsewhere).await?;
    let here = Peer::here(app).await?;
    if here.did.is_some() && here.did == there.did {
        return Err(Failure::usage(format!("{} is this very vault", args.place)));
    }
    let described = there.described().await?;
    able(&there, &described)?;
    let ours = Holdings::of(&here).await?;
    let mut session = app.session().await?;
    let notice = notice(app, &mut session, there.did.is_some()).await?;
    let mut done = Done {
        to: args.place.clone(),
        host: described["implementation"].clone(),
        moves: ours.numbers(),
        notice,
        dry_run: args.dry_run,
        summary: Value::Null,
        verified: None,
        missing: Vec::new(),
    };
    if args.dry_run {
        return app.out.either(&done, |done| show(app, done));
    }
    if !args.yes && !app.out.json {
        show(app, &done)?;
    }
    let Numbers { conversations, messages, memories } = done.moves;
    let question = format!(
        "send {conversations} conversations with {messages} messages and {memories} memories to \
         {}?",
        args.place
    );
    if !given::agreed(args.yes, &question)? {
        return Err(Failure::failed("nothing was sent"));
    }
    done.summary = sent(app, &there).await?;
    let theirs = Holdings::of(&there).await?;
    done.missing = ours.lacking(&theirs);
    done.verified = Some(ours.shared(&theirs));
    app.out.either(&done, |done| show(app, done))?;
    match done.missing.len() {
        0 => Ok(()),
        count => Err(Failure::new(
            Exit::Conflict,
            format!("{}: {count} things are not there", args.place),
        )
        .hint("what was deleted there before does not come back; nothing was deleted here")),
    }
}

/// Refuses a host that could not take it before anything is sent.
fn able(there: &Peer, described: &Value) -> Result {
    let can = described["capabilities"].as_array().into_iter().flatten();
    if can.filter_map(Value::as_str).any(|word| word == "restore") {
        return Ok(());
    }
    Err(Failure::failed(format!("{} does not say that it restores archives", there.name)))
}

/// What a host has: how many messages each conversation, and which records.
struct Holdings {
    talks: BTreeMap<String, u64>,
    records: BTreeMap<String, ()>,
}

impl Holdings {
    async fn of(peer: &Peer) -> Result<Self> {
        let talks = listed(peer, "/conversations").await?;
        let talks = talks.iter().filter_map(|talk| {
            Some((talk["id"].as_str()?.to_owned(), talk["message_count"].as_u64().unwrap_or(0)))
        });
        let records = listed(peer, "/memories").await?;
        let records = records.iter().filter_map(|one| Some((one["id"].as_str()?.to_owned(), ())));
        Ok(Self { talks: talks.collect(), records: records.collect() })
    }

    fn numbers(&self) -> Numbers {
        Numbers {
            conversations: self.talks.len() as u64,
            messages: self.talks.values().sum(),
            memories: self.records.len() as u64,
        }
    }

    /// What the other has of it.
    fn shared(&self, other: &Self) -> Numbers {
        let talks =
            self.talks.iter().filter_map(|(id, count)| Some((*count).min(*other.talks.get(id)?)));
        let messages: Vec<u64> = talks.collect();
        Numbers {
            conversations: messages.len() as u64,
            messages: messages.iter().sum(),
            memories: self.records.keys().filter(|id| other.records.contains_key(*id)).count()
                as u64,
        }
    }

    fn lacking(&self, other: &Self) -> Vec<String> {
        let talks = self.talks.iter().filter_map(|(id, count)| match other.talks.get(id) {
            None => Some(format!("conversation {id}")),
            Some(there) if there < count => {
                Some(format!("{} of {count} messages of conversation {id}", count - there))
            }
            Some(_) => None,
        });
        let records = self.records.keys().filter(|id| !other.records.contains_key(*id));
        talks.chain(records.map(|id| format!("memory {id}"))).collect()
    }
}

/// Reads a list to its end.
async fn listed(peer: &Peer, path: &str) -> Result<Vec<Value>> {
    let (mut found, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let path = match &cursor {
            Some(cursor) => format!("{path}?limit=200&cursor={cursor}"),
            None => format!("{path}?limit=200"),
        };
        let page = peer.ask(Method::GET, &path, &[], None).await?.good(peer)?.body;
        for one in page["data"].as_array().into_iter().flatten() {
            let (id, count) = (one["id"].clone(), one["message_count"].clone());
            found.push(serde_json::json!({"id": id, "message_count": count}));
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => return Ok(found),
        }
    }
}

/// Counts what will not be seen. A host of ours shows what it understands of the archive.
async fn notice(app: &App, session: &mut Session<'_>, ours: bool) -> Result<Notice> {
    let mut notice = Notice::default();
    let mut stays = |name, count: usize| {
        if count > 0 {
            notice.stays_here.insert(name, count as u64);
        }
    };
    stays("grants", session.call::<api::Grants>(Nothing {}).await?.len());
    stays("tokens", session.call::<api::Tokens>(Nothing {}).await?.len());
    stays("rules", session.call::<api::Rules>(Nothing {}).await?.len());
    let waiting = input::Holds { state: HoldState::Pending, limit: 1000 };
    stays("proposals that wait", session.call::<api::Holds>(waiting).await?.len());
    stays("registered agents", session.call::<api::Agents>(Nothing {}).await?.len());
    stays("entries of the audit chain", last_entry(session).await?);
    if ours {
        return Ok(notice);
    }
    let spinner = progress::spinner(&app.out, "counting");
    let unseen = &mut notice.kept_unseen;
    let mut after = None;
    let filter = Wanted::everything(None).filter;
    loop {
        let page = PageRequest { limit: 200, after, ..PageRequest::default() };
        let hands = api::Hands::Own;
        let asked = input::Export { filter: filter.clone(), page, hands };
        let found = session.call::<api::Export>(asked).await?;
        for item in &found.items {
            spinner.inc(1);
            match item {
                api::Item::Memory { versions } => {
                    let earlier = versions.len().saturating_sub(1) as u64;
                    *unseen.entry("earlier versions of memories").or_default() += earlier;
                    let last = versions.last().map(|version| &version.content);
                    let labelled = last.is_some_and(|last| !last.governance.labels.is_empty());
                    *unseen.entry("labels of memories").or_default() += u64::from(labelled);
                }
                api::Item::Conversation { messages, .. } => {
                    let thought = messages.iter().filter(|one| has_thinking(&one.content)).count();
                    *unseen.entry("messages with thinking").or_default() += thought as u64;
                    let left = off_path(messages);
                    *unseen.entry("messages on branches that were left").or_default() += left;
                }
                api::Item::Profile(_) => *unseen.entry("profiles").or_default() += 1,
            }
        }
        after = found.next;
        if after.is_none() {
            break;
        }
    }
    spinner.finish_and_clear();
    unseen.retain(|_, count| *count > 0);
    Ok(notice)
}

async fn last_entry(session: &mut Session<'_>) -> Result<usize> {
    let report = session.call::<api::VerifyAudit>(Nothing {}).await?;
    Ok(usize::try_from(report.entries).unwrap_or(usize::MAX))
}

fn has_thinking(content: &Value) -> bool {
    let blocks = content.as_array().into_iter().flatten();
    blocks.filter_map(|block| block["x_kind"].as_str()).any(|kind| kind == "thinking")
}

/// How many messages are on no path to the last one.
fn off_path(messages: &[yore_domain::conversation::Message]) -> u64 {
    let parents: BTreeMap<_, _> = messages.iter().map(|one| (one.id, one.parent)).collect();
    let mut at = messages.last().filter(|last| last.parent.is_some()).map(|last| last.id);
    if at.is_none() {
        return 0;
    }
    let mut on = 0;
    while let Some(id) = at {
        on += 1;
        at = parents.get(&id).copied().flatten().filter(|_| on <= messages.len());
    }
    messages.len().saturating_sub(on) as u64
}

/// Sends everything and waits until the other host has taken it in.
async fn sent(app: &App, there: &Peer) -> Result<Value> {
    // What lies on this disk meanwhile is under a password that nobody keeps.
    let password = MemoryId::random().to_string() + &MemoryId::random().to_string();
    let room = tempfile::tempdir().map_err(Failure::file("a directory for the archive"))?;
    let file = room.path().join("vault.omp.zip.enc");
    archive::write(app, Wanted::everything(Some(password.clone())), &file).await?;
    let job = upload(app, there, &file, password).await?;
    let path = format!("/restore/{job}");
    let bar = progress::spinner(&app.out, "taken in there");
    loop {
        let state = there.ask(Method::GET, &path, &[], None).await?.good(there)?.body;
        match state["status"].as_str() {
            Some("completed") => {
                bar.finish_and_clear();
                return Ok(state["summary"].clone());
            }
            Some("failed") => {
                let reason = state["error"].as_str().unwrap_or("it does not say why");
                return Err(Failure::failed(format!("{}: {reason}", there.name)));
            }
            _ => tokio::time::sleep(LOOK).await,
        }
    }
}

/// Sends an archive in clear over the line, which is encrypted itself.
async fn upload(app: &App, there: &Peer, file: &Path, password: String) -> Result<String> {
    let file = file.to_owned();
    let opened = tokio::task::spawn_blocking(move || Sealed::open(&file, &password, None));
    let sealed = opened
        .await
        .map_err(|error| Failure::failed(error.to_string()))?
        .map_err(|error| Failure::failed(error.to_string()))?;
    let bar = progress::through_bytes(&app.out, sealed.length(), "sending");
    let (sender, mut pieces) = mpsc::channel(4);
    let sending = bar.clone();
    let reader = tokio::task::spawn_blocking(move || {
        let mut at = 0;
        while at < sealed.length() {
            let mut piece = vec![0; PIECE];
            let read = sealed.read_at(&mut piece, at).map(|count| {
                piece.truncate(count);
                at += count as u64;
                sending.set_position(at);
                bytes::Bytes::from(piece)
            });
            let ended = read.is_err();
            if sender.blocking_send(read).is_err() || ended {
                break;
            }
        }
    });
    let stream = futures::stream::poll_fn(move |context| pieces.poll_recv(context));
    let kind = HeaderValue::from_static("application/zip");
    let response = there.client().upload("/restore", kind, stream).await?;
    reader.await.map_err(|error| Failure::failed(error.to_string()))?;
    bar.finish_and_clear();
    let status = response.status();
    let mut body = Vec::new();
    let mut answer = response.into_body();
    while let Some(piece) = answer.next().await {
        body.extend_from_slice(&piece.map_err(Failure::file(&there.name))?);
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    match body["job_id"].as_str() {
        Some(job) => Ok(job.to_owned()),
        None => {
            let reason = body["error"]["message"].as_str().unwrap_or("no job was begun");
            Err(Failure::failed(format!("{}: {reason} ({})", there.name, status.as_u16())))
        }
    }
}

fn show(app: &App, done: &Done) -> Result {
    let mut table = Table::new(&["THINGS", ""]);
    let would = if done.dry_run { "would be moved" } else { "to be moved" };
    let rows = [
        (done.moves.conversations, "conversations"),
        (done.moves.messages, "messages"),
        (done.moves.memories, "memories"),
    ];
    for (number, what) in rows {
        table.push([styled(number.to_string(), GOOD), cell(format!("{what} {would}"))]);
    }
    for (what, number) in &done.notice.kept_unseen {
        let what = format!("{what}: kept there and not shown");
        table.push([styled(number.to_string(), WARN), cell(what)]);
    }
    for (what, number) in &done.notice.stays_here {
        let what = format!("{what}: not part of an archive, and stay here");
        table.push([styled(number.to_string(), WARN), cell(what)]);
    }
    if let Some(both) = done.verified {
        for (number, what) in [
            (both.conversations, "conversations"),
            (both.messages, "messages"),
            (both.memories, "memories"),
        ] {
            table.push([styled(number.to_string(), GOOD), cell(format!("{what} found there"))]);
        }
        let missing = (done.missing.len() as u64).to_string();
        table.push([
            styled(missing, if done.missing.is_empty() { GOOD } else { BAD }),
            cell("missing"),
        ]);
    }
    app.out.table(&table)?;
    for missing in done.missing.iter().take(NAMED) {
        app.out.remark(format!("{missing} is not there"));
    }
    Ok(())
}

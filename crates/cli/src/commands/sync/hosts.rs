//! `yore sync URL`: keeps two hosts in step, both ways, by what each says has changed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use http::Method;
use http::header::{HeaderName, IF_NONE_MATCH};
use indicatif::ProgressBar;
use serde::Serialize;
use serde_json::Value;
use yore_domain::{BlobHash, Timestamp};
use yore_server::interrupted;

use super::book::{Book, Thing};
use super::{Args, only::Only};
use crate::app::{App, Session};
use crate::failure::{Exit, Failure, Result};
use crate::output::{BAD, GOOD, Table, WARN, cell, styled};
use crate::peer::Peer;
use crate::progress;
use crate::source::Skipped;

/// How often what was done is written down.
const NOTED: Duration = Duration::from_secs(2);
/// How long to wait between looks while it goes on.
const LOOK: Duration = Duration::from_secs(10);
/// How often a run looks again for what its own writes set off.
const PASSES: usize = 4;

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Side {
    Here,
    There,
}

impl Side {
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Here => Self::There,
            Self::There => Self::Here,
        }
    }
}

/// What came over to one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Moved {
    pub(super) conversations: u64,
    pub(super) messages: u64,
    pub(super) memories: u64,
    pub(super) deleted: u64,
}

/// What a run did.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Sum {
    /// What the other host got.
    pub(super) sent: Moved,
    /// What this vault got.
    pub(super) received: Moved,
    /// What the other host says and waits here for a decision.
    pub(super) proposed: u64,
    /// What still waits from before.
    pub(super) waiting: u64,
    /// What a host took and holds for a person.
    pub(super) held: u64,
    /// What consent keeps where it is.
    pub(super) kept_inside: u64,
    /// What was deleted on one side and is kept on the other.
    pub(super) apart: Vec<String>,
    pub(super) problems: Vec<Skipped>,
}

impl Sum {
    pub(super) fn to(&mut self, side: Side) -> &mut Moved {
        match side {
            Side::Here => &mut self.received,
            Side::There => &mut self.sent,
        }
    }

    fn count(&self) -> u64 {
        let of =
            |moved: &Moved| moved.conversations + moved.messages + moved.memories + moved.deleted;
        of(&self.sent) + of(&self.received) + self.proposed
    }
}

/// What a host said of something since it was last asked.
#[derive(Clone, Debug, Default)]
pub(super) struct News {
    /// Whether it was deleted, and is not there again.
    pub(super) deleted: bool,
    /// Messages that were deleted one by one.
    pub(super) messages: Vec<String>,
    /// When it last changed.
    pub(super) at: Option<Timestamp>,
}

/// The changes of one side, oldest first.
#[derive(Debug, Default)]
struct Changes {
    order: Vec<Thing>,
    news: HashMap<Thing, News>,
    /// Up to which of them a cursor stands for.
    pages: Vec<(usize, String)>,
}

/// A document at a host.
#[derive(Clone, Debug)]
pub(super) struct Doc {
    pub(super) tag: String,
    pub(super) body: Value,
}

/// Two hosts on their way into step.
pub(super) struct Pair<'a> {
    pub(super) session: Session<'a>,
    here: Peer,
    there: Peer,
    pub(super) book: Book,
    pub(super) only: Only,
    pub(super) sum: Sum,
    changes: BTreeMap<bool, Changes>,
    /// What this run left behind at a host, so that its echo costs little.
    left: HashMap<(Side, Thing), String>,
    /// Attachments that a side has.
    blobs: [HashSet<BlobHash>; 2],
}

pub(super) async fn run(app: &App, args: Args) -> Result {
    let there = Peer::there(&args.place, &args.elsewhere).await?;
    let here = Peer::here(app).await?;
    if here.did.is_some() && here.did == there.did {
        return Err(Failure::usage(format!("{} is this very vault", args.place)));
    }
    let only = Only::parse(&args.only)?;
    let mut session = app.session().await?;
    let called = match &args.elsewhere.peer_vault {
        Some(vault) => format!("{} {vault}", args.place.trim_end_matches('/')),
        None => args.place.trim_end_matches('/').to_owned(),
    };
    let book = Book::open(&mut session, &called, &only.to_string(), args.anew).await?;
    let mut pair = Pair {
        session,
        here,
        there,
        book,
        only,
        sum: Sum::default(),
        changes: BTreeMap::new(),
        left: HashMap::new(),
        blobs: Default::default(),
    };
    loop {
        pair.sum = Sum::default();
        let bar = progress::spinner(&app.out, "in step");
        tokio::select! {
            done = pair.run(&bar) => done?,
            () = interrupted() => {
                pair.book.save(&mut pair.session).await?;
                return Err(Failure::failed("stopped; the same command goes on from here"));
            }
        }
        bar.finish_and_clear();
        let news = pair.sum.count() > 0 || !pair.sum.problems.is_empty();
        if !args.watch {
            app.out.either(&pair.sum, |sum| show(app, sum))?;
            return ended(&args.place, &pair.sum);
        }
        if news {
            if app.out.json { app.out.row(&pair.sum)? } else { show(app, &pair.sum)? }
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = interrupted() => return Ok(()),
        }
    }
}

impl Pair<'_> {
    pub(super) fn peer(&self, side: Side) -> &Peer {
        match side {
            Side::Here => &self.here,
            Side::There => &self.there,
        }
    }

    /// What a side said of something.
    pub(super) fn news(&self, side: Side, thing: &Thing) -> Option<&News> {
        self.changes.get(&(side == Side::There))?.news.get(thing)
    }

    /// Looks until nothing moves any more; what one look writes, the next one reads back.
    async fn run(&mut self, bar: &ProgressBar) -> Result {
        for _ in 0..PASSES {
            let before = self.sum.count();
            let read = self.pass(bar).await?;
            if self.sum.count() == before || !read {
                break;
            }
        }
        // What was proposed a moment ago does not wait since before.
        self.sum.waiting = self.sum.waiting.saturating_sub(self.sum.proposed);
        Ok(())
    }

    /// Says whether there was anything to look at.
    async fn pass(&mut self, bar: &ProgressBar) -> Result<bool> {
        // What waits and what could not be done is looked at in each pass.
        self.sum.waiting = 0;
        self.sum.problems.clear();
        let here = self.read(Side::Here).await?;
        let there = self.read(Side::There).await?;
        let read = !here.order.is_empty() || !there.order.is_empty();
        self.changes = BTreeMap::from([(false, here), (true, there)]);
        let mut done = HashSet::new();
        let waiting: Vec<Thing> =
            self.book.owed.iter().chain(self.book.apart.keys()).cloned().collect();
        let mut noted = Instant::now();
        for thing in waiting {
            self.look_at(&thing, &mut done, bar).await?;
        }
        for side in [Side::Here, Side::There] {
            let changes = &self.changes[&(side == Side::There)];
            let (order, pages) = (changes.order.clone(), changes.pages.clone());
            let mut at = 0;
            for (end, cursor) in pages {
                while at < end {
                    self.look_at(&order[at], &mut done, bar).await?;
                    at += 1;
                    // The other side's cursor stands still until all of this one is done, and
                    // this one's until its page is: what is lost by an end is only time.
                }
                *self.book.cursors().of(side) = Some(cursor);
                if noted.elapsed() >= NOTED {
                    self.book.save(&mut self.session).await?;
                    noted = Instant::now();
                }
            }
        }
        self.book.save(&mut self.session).await?;
        Ok(read)
    }

    async fn look_at(
        &mut self,
        thing: &Thing,
        done: &mut HashSet<Thing>,
        bar: &ProgressBar,
    ) -> Result {
        if !done.insert(thing.clone()) {
            return Ok(());
        }
        let looked = match thing {
            Thing::Talk(_) => Box::pin(self.talk(thing)).await,
            Thing::Record(_) => Box::pin(self.record(thing)).await,
        };
        bar.inc(1);
        match looked {
            Ok(()) => _ = self.book.owed.remove(thing),
            Err(failure) if failure.exit == Exit::Unreachable => return Err(failure),
            Err(failure) => {
                self.book.owed.insert(thing.clone());
                let skipped = Skipped { item: thing.called(), reason: failure.message };
                self.sum.problems.push(skipped);
            }
        }
        Ok(())
    }

    /// Reads what changed at a side since the last time.
    async fn read(&mut self, side: Side) -> Result<Changes> {
        let mut changes = Changes::default();
        let mut cursor = self.book.cursors().of(side).clone();
        loop {
            let path = match &cursor {
                Some(cursor) => format!("/changes?limit=200&cursor={cursor}"),
                None => "/changes?limit=200".to_owned(),
            };
            let answer = self.peer(side).ask(Method::GET, &path, &[], None).await?;
            // A host that was set up anew does not know its old cursors.
            if answer.status.as_u16() == 400 && cursor.is_some() && changes.pages.is_empty() {
                cursor = None;
                continue;
            }
            let page = answer.good(self.peer(side))?.body;
            for event in page["data"].as_array().into_iter().flatten() {
                changes.add(event);
            }
            let Some(next) = page["next_cursor"].as_str() else { break };
            changes.pages.push((changes.order.len(), next.to_owned()));
            cursor = Some(next.to_owned());
            if page["has_more"] != true {
                break;
            }
        }
        Ok(changes)
    }

    /// Reads a document; nothing where there is none, and where it is as this run left it.
    pub(super) async fn moved(&self, side: Side, thing: &Thing) -> Result<Option<Option<Doc>>> {
        let left = self.left.get(&(side, thing.clone()));
        let demand: Vec<(HeaderName, String)> =
            left.map(|tag| (IF_NONE_MATCH, tag.clone())).into_iter().collect();
        let answer = self.peer(side).ask(Method::GET, &thing.path(), &demand, None).await?;
        match answer.status.as_u16() {
            304 => Ok(None),
            404 => Ok(Some(None)),
            _ => {
                let answer = answer.good(self.peer(side))?;
                let tag = answer.tag.clone().unwrap_or_default();
                Ok(Some(Some(Doc { tag, body: answer.body })))
            }
        }
    }

    /// Reads a document as it is.
    pub(super) async fn document(&self, side: Side, thing: &Thing) -> Result<Option<Doc>> {
        let answer = self.peer(side).ask(Method::GET, &thing.path(), &[], None).await?;
        if answer.status.as_u16() == 404 {
            return Ok(None);
        }
        let answer = answer.good(self.peer(side))?;
        let tag = answer.tag.clone().unwrap_or_default();
        Ok(Some(Doc { tag, body: answer.body }))
    }

    /// Reads both sides, unless what is new is only what this run wrote there itself.
    pub(super) async fn both(&self, thing: &Thing) -> Result<Option<[Option<Doc>; 2]>> {
        let echoes = [Side::Here, Side::There].map(|side| {
            self.news(side, thing).is_none() || self.left.contains_key(&(side, thing.clone()))
        });
        let waits = self.book.apart.contains_key(thing) || self.book.owed.contains(thing);
        if echoes == [true, true] && !waits {
            let mut quiet = true;
            for side in [Side::Here, Side::There] {
                let told = self.news(side, thing).is_some();
                quiet = quiet && (!told || self.moved(side, thing).await?.is_none());
            }
            if quiet {
                return Ok(None);
            }
        }
        let here = self.document(Side::Here, thing).await?;
        let there = self.document(Side::There, thing).await?;
        Ok(Some([here, there]))
    }

    /// Notes the state in which this run left something at a side.
    pub(super) fn leave(&mut self, side: Side, thing: &Thing, tag: Option<String>) {
        if let Some(tag) = tag {
            self.left.insert((side, thing.clone()), tag);
        }
    }

    /// Brings what is attached to a document to a side.
    pub(super) async fn bring(&mut self, to: Side, document: &mut Value) -> Result {
        let mut known = std::mem::take(&mut self.blobs[to as usize]);
        let brought = self.peer(to).bring(self.peer(to.other()), document, &mut known).await;
        self.blobs[to as usize] = known;
        for reason in brought? {
            let item = "an attachment".to_owned();
            self.sum.problems.push(Skipped { item, reason });
        }
        Ok(())
    }
}

impl Changes {
    fn add(&mut self, event: &Value) {
        let (Some(kind), Some(id)) = (event["type"].as_str(), event["id"].as_str()) else { return };
        let of = event["conversation_id"].as_str().unwrap_or_default();
        let thing = match kind {
            "conversation.changed" | "conversation.deleted" => Thing::Talk(id.to_owned()),
            "message.created" | "message.deleted" => Thing::Talk(of.to_owned()),
            "memory.changed" | "memory.deleted" => Thing::Record(id.to_owned()),
            _ => return,
        };
        if !self.news.contains_key(&thing) {
            self.order.push(thing.clone());
        }
        let news = self.news.entry(thing).or_default();
        if kind == "message.deleted" {
            news.messages.push(id.to_owned());
        }
        news.deleted = matches!(kind, "conversation.deleted" | "memory.deleted");
        news.at = event["timestamp"].as_str().and_then(|text| text.parse().ok()).or(news.at);
    }
}

fn show(app: &App, sum: &Sum) -> Result {
    let mut table = Table::new(&["THINGS", ""]);
    let rows = [
        (sum.sent.conversations, "conversations sent", GOOD),
        (sum.sent.messages, "messages sent", GOOD),
        (sum.sent.memories, "memories sent", GOOD),
        (sum.sent.deleted, "deleted there, as they were here", GOOD),
        (sum.received.conversations, "conversations received", GOOD),
        (sum.received.messages, "messages received", GOOD),
        (sum.received.memories, "memories received", GOOD),
        (sum.received.deleted, "deleted here, as they were there", GOOD),
        (sum.proposed, "changed on both sides and proposed: yore review list", WARN),
        (sum.waiting, "wait for a decision since before: yore review list", WARN),
        (sum.held, "held for approval where they came to", WARN),
        (sum.kept_inside, "kept where they are by consent", GOOD),
        (sum.apart.len() as u64, "deleted on one side, changed and kept on the other", WARN),
        (sum.problems.len() as u64, "not done; the next sync tries again", BAD),
    ];
    let all: u64 = rows.iter().map(|(number, _, _)| number).sum();
    if all == 0 {
        return app.out.line("in step");
    }
    for (number, what, style) in rows.into_iter().filter(|(number, _, _)| *number > 0) {
        table.push([styled(number.to_string(), style), cell(what)]);
    }
    app.out.table(&table)?;
    for name in &sum.apart {
        app.out.remark(format!("{name} is kept on one side"));
    }
    for problem in sum.problems.iter().take(20) {
        app.out.remark(format!("{}: {}", problem.item, problem.reason));
    }
    Ok(())
}

fn ended(place: &str, sum: &Sum) -> Result {
    match sum.problems.len() {
        0 => Ok(()),
        count => {
            Err(Failure::new(Exit::Failed, format!("{place}: {count} things are not in step"))
                .hint("the others are; run it again when what is listed is mended"))
        }
    }
}

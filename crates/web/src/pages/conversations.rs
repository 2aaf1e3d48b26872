//! What was said, as a list and to read.

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::Path;
use serde_json::Value;
use yore_domain::conversation::{Conversation, Message, Role};
use yore_domain::query::{Filter, PageRequest};
use yore_domain::{ConversationId, Error, Result, Timestamp};

use super::attachment::is_picture;
use super::{back, position, written};
use crate::branches::Branches;
use crate::draw;
use crate::form::query;
use crate::markdown;
use crate::markup::{Markup, bytes, grouped};
use crate::snippet::beginning;
use crate::trouble::{Page, shown};
use crate::visit::{Posted, Shell, Visit};

const ROWS: usize = 40;
const MESSAGES: usize = 60;
/// How long a conversation may be whose branches are followed.
const THREAD: u64 = 4000;
/// How much of what was said before is shown with a message that was looked for.
const AROUND: u64 = 4;
/// How many characters of one message a page shows.
const LENGTH: usize = 40_000;

#[derive(Template)]
#[template(path = "conversations.html")]
struct ListPage {
    shell: Shell,
    rows: Vec<Row>,
    platform: String,
    more: Option<String>,
    statistics: Option<Statistics>,
}

struct Row {
    id: String,
    title: String,
    platform: String,
    model: String,
    messages: String,
    updated: Timestamp,
}

/// How many conversations and messages, by platform and by month.
struct Statistics {
    /// Whether all of it was counted yet.
    is_counted: bool,
    counted: String,
    platforms: Markup,
    months: Markup,
}

#[derive(Template)]
#[template(path = "conversation.html")]
struct ReadPage {
    shell: Shell,
    id: String,
    title: String,
    platform: String,
    model: String,
    created: Timestamp,
    summary: String,
    tags: Vec<String>,
    turns: Vec<Turn>,
    count: String,
    before: Option<String>,
    after: Option<String>,
}

/// One message.
struct Turn {
    position: u64,
    speaker: &'static str,
    class: &'static str,
    model: String,
    at: Timestamp,
    html: Markup,
    /// Whether a page shows only its beginning.
    cut: bool,
    /// Tools that were called, folded.
    calls: Vec<(String, String)>,
    /// Whether the message itself is a tool's answer, and folded.
    folded: bool,
    /// Whether it lies on a branch that was left.
    left: bool,
    /// Whether it is folded for that.
    folded_as_left: bool,
    /// What else was said in its place.
    others: Option<Others>,
    files: Vec<File>,
}

/// Which of several messages in one place this is, and where those beside it are.
struct Others {
    at: usize,
    of: usize,
    before: Option<String>,
    after: Option<String>,
}

/// Something that is attached to a message.
struct File {
    name: String,
    about: String,
    /// Where its bytes are, if they are here.
    href: Option<String>,
    picture: bool,
}

pub(crate) async fn list(visit: Visit) -> Page {
    let form = &visit.query;
    let platform = form.get("platform").unwrap_or_default().to_owned();
    let filter = Filter { platform: form.get("platform").map(str::to_owned), ..Filter::default() };
    let after = form.get("after").map(position).transpose()?;
    let wanted = PageRequest { limit: ROWS, after, ..PageRequest::default() };
    let found = visit.engine().conversations(&visit.call, filter, wanted).await?;
    let more = found.next.map(|next| {
        let pairs = [("platform", platform.as_str()), ("after", &written(&next))];
        format!("/app/conversations?{}", query(&pairs))
    });
    let statistics = match form.get("view") {
        Some("statistics") => Some(statistics(&visit).await?),
        Some(_) | None => None,
    };
    Ok(shown(&ListPage {
        shell: visit.shell("conversations"),
        rows: found.items.into_iter().map(row).collect(),
        platform,
        more,
        statistics,
    }))
}

fn row((conversation, messages): (Conversation, u64)) -> Row {
    Row {
        id: conversation.id.to_string(),
        title: title(&conversation),
        platform: conversation.platform,
        model: conversation.model.unwrap_or_default(),
        messages: grouped(messages),
        updated: conversation.updated,
    }
}

fn title(conversation: &Conversation) -> String {
    let given = conversation.title.as_deref().map(str::trim).filter(|title| !title.is_empty());
    given.map_or_else(|| "Untitled".to_owned(), |title| beginning(title, 120))
}

async fn statistics(visit: &Visit) -> Result<Statistics> {
    let counted = visit.numbers().await?;
    let is_counted = counted.is_some();
    let numbers = counted.unwrap_or_default();
    let (mut platforms, mut months) = (BTreeMap::new(), BTreeMap::new());
    let mut talks = 0;
    for tally in &numbers.tally {
        *platforms.entry(tally.platform.clone()).or_insert(0_u64) += tally.messages;
        *months.entry(tally.month.clone()).or_insert(0_u64) += tally.messages;
        talks += tally.conversations;
    }
    let mut platforms: Vec<(String, u64)> = platforms.into_iter().collect();
    platforms.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    platforms.truncate(16);
    let months: Vec<(String, u64)> = months.into_iter().rev().take(12).collect();
    Ok(Statistics {
        is_counted,
        counted: grouped(talks),
        platforms: draw::bars(&platforms),
        months: draw::bars(&months),
    })
}

/// Removes a conversation for good.
pub(crate) async fn erase(Path(id): Path<String>, Posted { visit, form }: Posted) -> Page {
    let id: ConversationId = id.parse().map_err(|_| Error::NotFound)?;
    if form.get("sure") != Some("yes") {
        return Err(Error::invalid("sure", "say that you mean it").into());
    }
    visit.engine().erase_conversation(&visit.call, id, Vec::new()).await?;
    Ok(back("/app/conversations", "erased"))
}

pub(crate) async fn read(Path(id): Path<String>, visit: Visit) -> Page {
    let id: ConversationId = id.parse().map_err(|_| Error::NotFound)?;
    let (engine, call) = (visit.engine(), &visit.call);
    let (conversation, count) = engine.conversation(call, id).await?;
    // Beyond that, what was left is folded in its place.
    let all = if count <= THREAD { all(&visit, id, count).await? } else { Vec::new() };
    let branches = Branches::of(&all).filter(|branches| !branches.path(None).is_empty());
    let Read { turns, before, after } = match branches {
        Some(branches) => along(&visit, id, &all, &branches)?,
        None => in_order(&visit, id, count).await?,
    };
    Ok(shown(&ReadPage {
        shell: visit.shell("conversations"),
        id: id.to_string(),
        title: title(&conversation),
        platform: conversation.platform,
        model: conversation.model.unwrap_or_default(),
        created: conversation.created,
        summary: conversation.summary.unwrap_or_default(),
        tags: conversation.tags,
        turns,
        count: grouped(count),
        before,
        after,
    }))
}

/// A page of a conversation, and where its neighbours are.
struct Read {
    turns: Vec<Turn>,
    before: Option<String>,
    after: Option<String>,
}

async fn all(visit: &Visit, id: ConversationId, count: u64) -> Result<Vec<Message>> {
    let mut all = Vec::new();
    while (all.len() as u64) < count {
        let some = visit.engine().messages(&visit.call, id, all.len() as u64, 1000).await?;
        if some.is_empty() {
            break;
        }
        all.extend(some);
    }
    Ok(all)
}

/// Everything as it was stored, what was left folded.
async fn in_order(visit: &Visit, id: ConversationId, count: u64) -> Result<Read> {
    let from = begin(visit, id, count).await?;
    let messages = visit.engine().messages(&visit.call, id, from, MESSAGES).await?;
    let next = from + messages.len() as u64;
    let page = |from: u64| format!("/app/conversations/{id}?from={from}");
    Ok(Read {
        turns: messages.iter().zip(from..).map(turn).collect(),
        before: (from > 0).then(|| page(from.saturating_sub(MESSAGES as u64))),
        after: (next < count).then(|| page(next)),
    })
}

/// One path through a conversation that has several.
fn along(
    visit: &Visit,
    id: ConversationId,
    all: &[Message],
    branches: &Branches<'_>,
) -> Result<Read> {
    let number = |name: &str| visit.query.get(name).and_then(|text| text.parse::<usize>().ok());
    let named = |id: &str| all.iter().position(|message| message.id.to_string() == id);
    let sought = match visit.query.get("message").or(visit.query.get("branch")) {
        Some(message) => Some(named(message).ok_or(Error::NotFound)?),
        None => number("at").filter(|at| *at < all.len()),
    };
    let path = branches.path(sought);
    let branch = sought.map(|place| all[place].id.to_string()).unwrap_or_default();
    let page = |from: usize| {
        let from = from.to_string();
        format!("/app/conversations/{id}?{}", query(&[("branch", &branch), ("from", &from)]))
    };
    let from = match number("from") {
        Some(from) => from.min(path.len().saturating_sub(1)),
        None => {
            let place = path.iter().position(|place| Some(*place) == sought).unwrap_or(0);
            place - place % MESSAGES
        }
    };
    let turns = path.iter().skip(from).take(MESSAGES).map(|place| {
        let turn = turn((&all[*place], *place as u64));
        Turn { others: others(id, all, branches, *place), folded_as_left: false, ..turn }
    });
    Ok(Read {
        turns: turns.collect(),
        before: (from > 0).then(|| page(from.saturating_sub(MESSAGES))),
        after: (from + MESSAGES < path.len()).then(|| page(from + MESSAGES)),
    })
}

/// What else was said in the place of a message.
fn others(
    id: ConversationId,
    all: &[Message],
    branches: &Branches<'_>,
    place: usize,
) -> Option<Others> {
    let some = branches.instead(place);
    let at = some.iter().position(|one| *one == place)?;
    let to = |place: &usize| {
        let branch = all[*place].id;
        format!("/app/conversations/{id}?branch={branch}#m{place}")
    };
    (some.len() > 1).then(|| Others {
        at: at + 1,
        of: some.len(),
        before: at.checked_sub(1).and_then(|at| some.get(at)).map(to),
        after: some.get(at + 1).map(to),
    })
}

/// Where a page begins: where it says, or shortly before a message that was looked for.
async fn begin(visit: &Visit, id: ConversationId, count: u64) -> Result<u64> {
    let number = |name: &str| visit.query.get(name).and_then(|text| text.parse::<u64>().ok());
    let sought = match visit.query.get("message") {
        Some(message) => Some(place_of(visit, id, message, count).await?),
        None => number("at"),
    };
    let from = match sought {
        Some(at) => at.saturating_sub(AROUND),
        None => number("from").unwrap_or(0),
    };
    Ok(from.min(count.saturating_sub(1)))
}

/// The position of a message that a memory names.
async fn place_of(visit: &Visit, id: ConversationId, message: &str, count: u64) -> Result<u64> {
    let mut from = 0;
    while from < count {
        let some = visit.engine().messages(&visit.call, id, from, 1000).await?;
        if some.is_empty() {
            break;
        }
        if let Some(at) = some.iter().position(|one| one.id.to_string() == message) {
            return Ok(from + at as u64);
        }
        from += some.len() as u64;
    }
    Err(Error::NotFound)
}

fn turn((message, position): (&Message, u64)) -> Turn {
    let (speaker, class) = match message.role {
        Role::User => ("You", "user"),
        Role::Assistant => ("Assistant", "assistant"),
        Role::System => ("Instructions", "system"),
        Role::Tool => ("Tool", "tool"),
    };
    let shown = beginning(&message.text, LENGTH);
    Turn {
        position,
        speaker,
        class,
        model: message.model.clone().unwrap_or_default(),
        at: message.at,
        html: markdown::render(&shown),
        cut: shown.len() < message.text.len(),
        calls: calls(&message.content),
        folded: matches!(message.role, Role::Tool | Role::System),
        left: message.off_path,
        folded_as_left: message.off_path,
        others: None,
        files: message.attachments.iter().map(file).collect(),
    }
}

fn file(attachment: &yore_domain::conversation::Attachment) -> File {
    let size = attachment.size.map(bytes).unwrap_or_default();
    File {
        name: attachment.filename.clone(),
        about: format!("{} {size}", attachment.media_type),
        href: attachment.blob.map(|blob| format!("/app/attachments/{blob}")),
        picture: attachment.blob.is_some() && is_picture(&attachment.media_type),
    }
}

/// The tools that a message calls, as its platform wrote them down.
fn calls(content: &Value) -> Vec<(String, String)> {
    let Value::Array(blocks) = content else { return Vec::new() };
    let is_call = |block: &&Value| {
        let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
        kind.contains("tool") || kind.contains("function")
    };
    let name = |block: &Value| {
        let name = block.get("name").or_else(|| block.get("type")).and_then(Value::as_str);
        beginning(name.unwrap_or("tool"), 80)
    };
    let told = |block: &Value| (name(block), beginning(&format!("{block:#}"), LENGTH));
    blocks.iter().filter(is_call).map(told).collect()
}

//! What was said, as a list and to read.

use std::collections::BTreeMap;

use askama::Template;
use axum::extract::Path;
use serde_json::Value;
use yore_domain::conversation::{Conversation, Message, Role};
use yore_domain::query::{Filter, PageRequest};
use yore_domain::{ConversationId, Error, Result, Timestamp};

use super::attachment::is_picture;
use super::{position, written};
use crate::draw;
use crate::form::query;
use crate::markdown;
use crate::markup::{Markup, bytes, grouped};
use crate::snippet::beginning;
use crate::trouble::{Page, shown};
use crate::visit::{Shell, Visit};

const ROWS: usize = 40;
const MESSAGES: usize = 60;
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
    counted: String,
    platforms: Markup,
    months: Markup,
}

#[derive(Template)]
#[template(path = "conversation.html")]
struct ReadPage {
    shell: Shell,
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
    files: Vec<File>,
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
    let numbers = visit.numbers().await?;
    let (mut platforms, mut months) = (BTreeMap::new(), BTreeMap::new());
    let mut counted = 0;
    for tally in &numbers.tally {
        *platforms.entry(tally.platform.clone()).or_insert(0_u64) += tally.messages;
        *months.entry(tally.month.clone()).or_insert(0_u64) += tally.messages;
        counted += tally.conversations;
    }
    let mut platforms: Vec<(String, u64)> = platforms.into_iter().collect();
    platforms.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    platforms.truncate(16);
    let months: Vec<(String, u64)> = months.into_iter().rev().take(12).collect();
    Ok(Statistics {
        counted: grouped(counted),
        platforms: draw::bars(&platforms),
        months: draw::bars(&months),
    })
}

pub(crate) async fn read(Path(id): Path<String>, visit: Visit) -> Page {
    let id: ConversationId = id.parse().map_err(|_| Error::NotFound)?;
    let (engine, call) = (visit.engine(), &visit.call);
    let (conversation, count) = engine.conversation(call, id).await?;
    let from = begin(&visit, id, count).await?;
    let messages = engine.messages(call, id, from, MESSAGES).await?;
    let next = from + messages.len() as u64;
    let page = |from: u64| format!("/app/conversations/{id}?from={from}");
    Ok(shown(&ReadPage {
        shell: visit.shell("conversations"),
        title: title(&conversation),
        platform: conversation.platform,
        model: conversation.model.unwrap_or_default(),
        created: conversation.created,
        summary: conversation.summary.unwrap_or_default(),
        tags: conversation.tags,
        turns: messages.into_iter().zip(from..).map(turn).collect(),
        count: grouped(count),
        before: (from > 0).then(|| page(from.saturating_sub(MESSAGES as u64))),
        after: (next < count).then(|| page(next)),
    }))
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

fn turn((message, position): (Message, u64)) -> Turn {
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
        model: message.model.unwrap_or_default(),
        at: message.at,
        html: markdown::render(&shown),
        cut: shown.len() < message.text.len(),
        calls: calls(&message.content),
        folded: matches!(message.role, Role::Tool | Role::System),
        left: message.off_path,
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

//! One box over memories and conversations.

use askama::Template;
use yore_domain::class::Label;
use yore_domain::conversation::Role;
use yore_domain::kind::Kind;
use yore_domain::memory::Memory;
use yore_domain::query::{Corpus, Cutoff, Effort, Filter, Order, PageRequest, Recall};
use yore_domain::scope::Scope;
use yore_domain::{Result, Timestamp};
use yore_engine::{Found, Hit};

use super::{end_of, position, written};
use crate::draw;
use crate::form::{Form, query};
use crate::markup::Markup;
use crate::snippet::{Piece, snippet};
use crate::trouble::{Page, shown};
use crate::visit::{Shell, Visit};

const RESULTS: usize = 20;
const ROWS: usize = 30;
/// How many days back one can go at least, and at most.
const LEAST_DAYS: u64 = 7;
const MOST_DAYS: u64 = 3650;

#[derive(Template)]
#[template(path = "search.html")]
struct SearchPage {
    shell: Shell,
    q: String,
    corpus: &'static str,
    kind: String,
    label: String,
    platform: String,
    as_of: String,
    /// How far back the slider goes.
    days: u64,
    kinds: [&'static str; 6],
    results: Vec<Row>,
    /// Whether a question was asked; otherwise the newest are listed.
    asked: bool,
    considered: usize,
    more: Option<String>,
}

/// One result.
struct Row {
    href: String,
    what: &'static str,
    title: String,
    pieces: Vec<Piece>,
    at: Timestamp,
    labels: Vec<String>,
    head: bool,
    why: Option<Markup>,
}

pub(crate) async fn show(visit: Visit) -> Page {
    let form = &visit.query;
    let filter = filter(form)?;
    let corpus = match form.get("in") {
        Some("memories") => (Corpus::Memories, "memories"),
        Some("messages") => (Corpus::Messages, "messages"),
        Some(_) | None => (Corpus::Both, "both"),
    };
    let text = |name: &str| form.get(name).unwrap_or_default().to_owned();
    let mut page = SearchPage {
        shell: visit.shell("search"),
        q: text("q"),
        corpus: corpus.1,
        kind: text("kind"),
        label: text("label"),
        platform: text("platform"),
        as_of: text("as_of"),
        days: if visit.quick { LEAST_DAYS } else { days(&visit).await? },
        kinds: Kind::ALL.map(Kind::as_str),
        results: Vec::new(),
        asked: false,
        considered: 0,
        more: None,
    };
    if page.q.is_empty() {
        newest(&visit, filter, &mut page).await?;
    } else {
        find(&visit, filter, corpus.0, &mut page).await?;
    }
    Ok(shown(&page))
}

/// How many days ago the first memory was made.
async fn days(visit: &Visit) -> Result<u64> {
    let wanted = PageRequest { limit: 1, order: Order::OldestFirst, ..PageRequest::default() };
    let first = visit.engine().list(&visit.call, Filter::default(), wanted).await?.items;
    let age = first.first().map_or(0, |memory| {
        visit.engine().now().micros().saturating_sub(memory.since.micros()) / 86_400_000_000
    });
    Ok(u64::try_from(age).unwrap_or(0).saturating_add(1).clamp(LEAST_DAYS, MOST_DAYS))
}

fn filter(form: &Form) -> Result<Filter> {
    let mut filter = Filter::default();
    if let Some(kind) = form.get("kind") {
        filter.kinds.push(kind.parse()?);
    }
    if let Some(label) = form.get("label") {
        filter.labels.push(Label::new(label)?);
    }
    filter.platform = form.get("platform").map(str::to_owned);
    filter.as_of = form.get("as_of").map(end_of).transpose()?;
    Ok(filter)
}

async fn find(visit: &Visit, filter: Filter, corpus: Corpus, page: &mut SearchPage) -> Result<()> {
    let recall = Recall {
        query: page.q.clone(),
        corpus,
        filter,
        near: Scope::default(),
        limit: RESULTS,
        effort: Effort::Balanced,
        prefer: Vec::new(),
        cutoff: Cutoff::Calibrated,
    };
    let recalled = visit.engine().browse(&visit.call, recall).await?;
    page.asked = true;
    page.considered = recalled.considered;
    page.results = recalled.results.into_iter().map(|hit| row(hit, &page.q)).collect();
    Ok(())
}

fn row(hit: Hit, question: &str) -> Row {
    let why = Some(draw::signals(&hit.signals));
    let pieces = snippet(hit.text(), question);
    let file = hit.inside.map(|passage| passage.filename);
    match hit.found {
        Found::Memory { version, head } => Row {
            href: format!("/app/memory/{}", version.memory),
            what: version.content.kind.as_str(),
            title: String::new(),
            pieces,
            at: version.time.created,
            labels: labels(&version.content.governance.labels),
            head,
            why,
        },
        Found::Message { conversation, position, message } => Row {
            href: format!("/app/conversations/{}?at={position}#m{position}", conversation.id),
            what: match message.role {
                Role::User => "you said",
                Role::Assistant => "answer",
                Role::System => "instruction",
                Role::Tool => "tool",
            },
            title: {
                let title = conversation.title.as_ref().unwrap_or(&conversation.platform);
                file.map_or_else(|| title.clone(), |file| format!("{title} · {file}"))
            },
            pieces,
            at: message.at,
            labels: labels(&conversation.governance.labels),
            head: true,
            why,
        },
    }
}

fn labels(labels: &[Label]) -> Vec<String> {
    labels.iter().map(|label| label.as_str().to_owned()).collect()
}

/// Without a question, the newest memories are listed.
async fn newest(visit: &Visit, filter: Filter, page: &mut SearchPage) -> Result<()> {
    let after = visit.query.get("after").map(position).transpose()?;
    let wanted = PageRequest { limit: ROWS, after, ..PageRequest::default() };
    let listed = visit.engine().list(&visit.call, filter, wanted).await?;
    page.results = listed.items.into_iter().map(listed_row).collect();
    page.more = listed.next.map(|next| {
        let pairs = [
            ("kind", page.kind.as_str()),
            ("label", &page.label),
            ("as_of", &page.as_of),
            ("after", &written(&next)),
        ];
        format!("/app/search?{}", query(&pairs))
    });
    Ok(())
}

fn listed_row(memory: Memory) -> Row {
    let head = memory.head;
    Row {
        href: format!("/app/memory/{}", head.memory),
        what: head.content.kind.as_str(),
        title: String::new(),
        pieces: snippet(&head.content.body.text, ""),
        at: head.time.created,
        labels: labels(&head.content.governance.labels),
        head: true,
        why: None,
    }
}

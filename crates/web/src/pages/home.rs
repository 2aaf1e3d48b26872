//! The first page: what the vault holds, what is new, what waits, who read what.

use askama::Template;
use axum::http::header::SET_COOKIE;
use axum::response::{IntoResponse, Redirect};
use yore_domain::audit::Actor;
use yore_domain::memory::{Draft, Memory};
use yore_domain::mutation::Mutation;
use yore_domain::query::{Filter, PageRequest};
use yore_domain::{Result, Timestamp};
use yore_engine::{AuditQuery, Effect, Wish};

use super::{Line, back};
use crate::cookie;
use crate::headers::own_place;
use crate::markup::{bytes, grouped};
use crate::role::Role;
use crate::snippet::beginning;
use crate::trouble::{Page, shown};
use crate::visit::{Posted, Shell, Visit};

/// How many lines of the audit chain are looked through for those of agents.
const LINES: usize = 200;
const SHOWN: usize = 6;

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    shell: Shell,
    /// Empty while they are being counted.
    counts: Vec<(&'static str, String)>,
    is_new: bool,
    recent: Vec<Recent>,
    waiting: u64,
    contradicted: usize,
    expiring: Vec<Recent>,
    unused: u64,
    reads: Vec<Line>,
    snippet: String,
}

/// A memory in a short list.
struct Recent {
    id: String,
    text: String,
    kind: &'static str,
    writer: String,
    at: Timestamp,
}

impl From<&Memory> for Recent {
    fn from(memory: &Memory) -> Self {
        let head = &memory.head;
        Self {
            id: head.memory.to_string(),
            text: beginning(&head.content.body.text, 160),
            kind: head.content.kind.as_str(),
            writer: head.writer.clone().unwrap_or_else(|| "you".into()),
            at: head.recorded,
        }
    }
}

pub(crate) async fn show(visit: Visit) -> Page {
    if visit.role != Role::Owner {
        return Ok(Redirect::to(visit.role.home()).into_response());
    }
    let (engine, call) = (visit.engine(), &visit.call);
    let counted = visit.numbers().await?;
    let is_counted = counted.is_some();
    let numbers = counted.unwrap_or_default();
    let (census, upkeep) = (&numbers.census, &numbers.upkeep);
    let page = PageRequest { limit: SHOWN, ..PageRequest::default() };
    let newest = engine.list(call, Filter::default(), page).await?.items;
    let mut counts = vec![
        ("memories", grouped(census.memories)),
        ("versions", grouped(census.versions)),
        ("conversations", grouped(census.conversations)),
        ("messages", grouped(census.messages)),
        ("on disk", bytes(census.bytes)),
    ];
    if !is_counted {
        counts.clear();
    }
    Ok(shown(&HomePage {
        shell: visit.shell("home"),
        counts,
        is_new: is_counted && census.memories == 0 && census.conversations == 0,
        recent: newest.iter().map(Recent::from).collect(),
        waiting: census.pending,
        contradicted: numbers.contradicted,
        expiring: upkeep.ending.first.iter().take(SHOWN).map(Recent::from).collect(),
        unused: upkeep.unused.count,
        reads: reads(&visit).await?,
        snippet: snippet(),
    }))
}

/// What others looked at lately.
async fn reads(visit: &Visit) -> Result<Vec<Line>> {
    let query = AuditQuery { limit: LINES, newest_first: true, ..AuditQuery::default() };
    let entries = visit.engine().audit(&visit.call, query).await?;
    let by_others = entries.into_iter().filter(|entry| match &entry.draft.actor {
        Actor::Agent { .. } | Actor::Service { .. } | Actor::Anonymous | Actor::Unknown => true,
        Actor::Owner | Actor::System { .. } => false,
    });
    Ok(by_others.take(SHOWN).map(Line::from).collect())
}

/// What an MCP host is told to use this vault.
fn snippet() -> String {
    let servers = serde_json::json!({
        "mcpServers": { "yore": { "command": "yore", "args": ["mcp"] } }
    });
    format!("{servers:#}")
}

/// Remembers what was typed in.
pub(crate) async fn remember(Posted { visit, form }: Posted) -> Page {
    let mutation = Mutation::Remember { draft: Box::new(Draft::text(form.text("text"))), id: None };
    let done = visit.engine().mutate(&visit.call, mutation, Wish::default()).await?;
    let code = match done.effect {
        Effect::Merged | Effect::Unchanged => "known",
        Effect::Created | Effect::Revised | Effect::Tombstoned | Effect::Erased => "remembered",
    };
    Ok(back("/app", code))
}

/// Keeps the choice of colours.
pub(crate) async fn theme(Posted { visit, form }: Posted) -> Page {
    let word = match form.get("theme") {
        Some("dark") => "dark",
        Some("light") => "light",
        Some(_) | None => "",
    };
    let mut response = Redirect::to(own_place(form.get("next"))).into_response();
    if let Some(cookie) = cookie::theme(word, visit.way) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    Ok(response)
}

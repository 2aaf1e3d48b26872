//! The guardian's page: what a child's vault holds, and stopping that more is stored.

use askama::Template;
use yore_domain::Timestamp;
use yore_domain::query::{Filter, PageRequest};

use super::back;
use crate::markup::grouped;
use crate::snippet::beginning;
use crate::trouble::{Page, shown};
use crate::visit::{Posted, Shell, Visit};

const SHOWN: usize = 20;

#[derive(Template)]
#[template(path = "guardian.html")]
struct GuardianPage {
    shell: Shell,
    child: bool,
    consent: String,
    stopped: bool,
    memories: String,
    newest: Vec<Held>,
    conversations: Vec<Held>,
}

/// Something that is kept of a child.
struct Held {
    id: String,
    text: String,
    at: Timestamp,
}

pub(crate) async fn show(visit: Visit) -> Page {
    let (engine, call) = (visit.engine(), &visit.call);
    let guarded = engine.guardianship(call).await?;
    let page = PageRequest { limit: SHOWN, ..PageRequest::default() };
    let newest = engine.list(call, Filter::default(), page.clone()).await?.items;
    let talks = engine.conversations(call, Filter::default(), page).await?.items;
    let memories = engine.count(call, Filter::default()).await?;
    Ok(shown(&GuardianPage {
        shell: visit.shell("guardian"),
        child: guarded.child == Some(true),
        consent: guarded.consent.unwrap_or_default(),
        stopped: guarded.stopped,
        memories: grouped(memories),
        newest: newest
            .iter()
            .map(|memory| Held {
                id: memory.head.memory.to_string(),
                text: beginning(&memory.head.content.body.text, 160),
                at: memory.head.recorded,
            })
            .collect(),
        conversations: talks
            .iter()
            .map(|(talk, _)| Held {
                id: talk.id.to_string(),
                text: beginning(talk.title.as_deref().unwrap_or("Untitled"), 120),
                at: talk.updated,
            })
            .collect(),
    }))
}

/// Stops that anything more is stored, or lets it go on.
pub(crate) async fn stop(Posted { visit, form }: Posted) -> Page {
    let stopped = form.get("stopped") == Some("yes");
    visit.engine().stop_collection(&visit.call, stopped).await?;
    Ok(back("/app/guardian", if stopped { "stopped" } else { "going" }))
}

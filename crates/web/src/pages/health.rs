//! How the vault is.

use askama::Template;
use yore_domain::job::JobState;
use yore_domain::query::{Filter, PageRequest};
use yore_domain::{MemoryId, Result, Span, Timestamp};

use crate::draw;
use crate::markup::{Markup, bytes, grouped};
use crate::snippet::beginning;
use crate::trouble::{Page, shown};
use crate::visit::{Posted, Shell, Visit};

/// How many of the newest memories are looked at.
const LOOKED_AT: usize = 1000;
const SHOWN: usize = 8;

#[derive(Template)]
#[template(path = "health.html")]
struct HealthPage {
    shell: Shell,
    sizes: Vec<(&'static str, String)>,
    looked_at: usize,
    stale: Vec<(String, String)>,
    drifting: Vec<(String, String)>,
    jobs: Vec<Work>,
    report: Option<Report>,
}

struct Work {
    kind: String,
    state: &'static str,
    done: String,
    error: String,
    updated: Timestamp,
}

struct Report {
    sound: bool,
    storage: Vec<String>,
    indexes: Vec<String>,
    entries: String,
    faults: usize,
    /// How many memories nobody asked for lately, of how many.
    stale: String,
    /// How many of each kind.
    kinds: Markup,
    /// Pairs that say nearly the same: both addresses and what they share, in percent.
    alike: Vec<(String, String, u8)>,
    /// How many such pairs there are.
    pairs: String,
}

pub(crate) async fn show(visit: Visit) -> Page {
    page(&visit, None).await
}

/// Checks files, indexes and the audit chain.
pub(crate) async fn check(Posted { visit, .. }: Posted) -> Page {
    let health = visit.engine().check(&visit.call, false).await?;
    let vitals = visit.engine().vitals(&visit.call, None, None).await?;
    let kinds: Vec<(String, u64)> =
        vitals.kinds.iter().map(|(kind, count)| (kind.to_string(), *count)).collect();
    let alike = vitals.drift.iter().take(SHOWN).map(|pair| {
        let place = |id: MemoryId| format!("/app/memory/{id}");
        (place(pair.one), place(pair.other), percent(pair.share))
    });
    let at_least = if vitals.drifting_more { "at least " } else { "" };
    let report = Report {
        stale: format!("{} of {}", grouped(vitals.stale), grouped(vitals.live)),
        kinds: draw::bars(&kinds),
        alike: alike.collect(),
        pairs: format!("{at_least}{}", grouped(vitals.drifting)),
        sound: health.is_sound(),
        entries: grouped(health.audit.entries),
        faults: health.audit.faults.len(),
        storage: health.storage,
        indexes: health.indexes,
    };
    page(&visit, Some(report)).await
}

/// A share in percent.
fn percent(share: f64) -> u8 {
    let mut whole = 0;
    while whole < 100 && f64::from(whole + 1) <= share * 100.0 {
        whole += 1;
    }
    whole
}

async fn page(visit: &Visit, report: Option<Report>) -> Page {
    let (engine, call) = (visit.engine(), &visit.call);
    let census = engine.census(call).await?;
    let wanted = PageRequest { limit: LOOKED_AT, ..PageRequest::default() };
    let memories = engine.list(call, Filter::default(), wanted).await?.items;
    let long_ago = engine.now().minus(Span::days(90));
    let told = |memory: &yore_domain::memory::Memory| {
        let head = &memory.head;
        (format!("/app/memory/{}", head.memory), beginning(&head.content.body.text, 120))
    };
    let stale = memories.iter().filter(|memory| {
        memory.since < long_ago && memory.usage.recalled.is_none_or(|at| at < long_ago)
    });
    let drifting = memories.iter().filter(|memory| memory.head.number > 4);
    Ok(shown(&HealthPage {
        shell: visit.shell("health"),
        sizes: vec![
            ("memories", grouped(census.memories)),
            ("versions", grouped(census.versions)),
            ("conversations", grouped(census.conversations)),
            ("messages", grouped(census.messages)),
            ("attachments", grouped(census.blobs)),
            ("on disk", bytes(census.bytes)),
            ("not yet understood", grouped(census.unembedded)),
            ("waiting for you", grouped(census.pending)),
        ],
        looked_at: memories.len(),
        stale: stale.take(SHOWN).map(told).collect(),
        drifting: drifting.take(SHOWN).map(told).collect(),
        jobs: jobs(visit).await?,
        report,
    }))
}

async fn jobs(visit: &Visit) -> Result<Vec<Work>> {
    let jobs = visit.engine().jobs(&visit.call, 20).await?;
    let work = |job: yore_domain::job::Job| Work {
        kind: job.kind,
        state: match job.state {
            JobState::Queued => "waiting",
            JobState::Running => "running",
            JobState::Completed => "done",
            JobState::Failed => "failed",
            JobState::Cancelled => "cancelled",
        },
        done: match job.total {
            Some(total) => format!("{} of {}", grouped(job.done), grouped(total)),
            None => grouped(job.done),
        },
        error: job.error.unwrap_or_default(),
        updated: job.updated,
    };
    Ok(jobs.into_iter().map(work).collect())
}

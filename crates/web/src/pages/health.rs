//! How the vault is.

use std::collections::VecDeque;
use std::time::Duration;

use askama::Template;
use yore_domain::grant::Verb;
use yore_domain::job::JobState;
use yore_domain::memory::Memory;
use yore_domain::{MemoryId, Result, Timestamp};

use yore_engine::Care;

use crate::draw;
use crate::markup::{Markup, bytes, grouped};
use crate::snippet::beginning;
use crate::trouble::{Page, shown};
use crate::visit::{Posted, Shell, Visit};

const SHOWN: usize = 8;

#[derive(Template)]
#[template(path = "health.html")]
struct HealthPage {
    shell: Shell,
    /// Whether the sizes and concerns are known yet.
    counted: bool,
    sizes: Vec<(&'static str, String)>,
    concerns: Vec<Concern>,
    /// Each part of the app with how long its pages took.
    latencies: Vec<Latency>,
    jobs: Vec<Work>,
    report: Option<Report>,
}

/// Memories that need care for one reason.
struct Concern {
    id: &'static str,
    title: &'static str,
    none: &'static str,
    count: String,
    /// The address and the beginning of the first of them.
    first: Vec<(String, String)>,
}

/// How long the pages of a part of the app took.
struct Latency {
    page: &'static str,
    median: String,
    most: String,
    line: Markup,
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
    let counted = visit.numbers().await?;
    let is_counted = counted.is_some();
    let numbers = counted.unwrap_or_default();
    let (census, upkeep) = (&numbers.census, &numbers.upkeep);
    Ok(shown(&HealthPage {
        shell: visit.shell("health"),
        counted: is_counted,
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
        concerns: vec![
            concern(
                "unused",
                "Never used",
                "Everything older than a month was used.",
                &upkeep.unused,
            ),
            concern(
                "stale",
                "Not used for three months",
                "Everything was used lately.",
                &upkeep.stale,
            ),
            concern(
                "drift",
                "Changed again and again",
                "Nothing has more than four versions.",
                &upkeep.changing,
            ),
            concern("ending", "Ends within a month", "Nothing ends soon.", &upkeep.ending),
        ],
        latencies: latencies(visit).await?,
        jobs: jobs(visit).await?,
        report,
    }))
}

async fn latencies(visit: &Visit) -> Result<Vec<Latency>> {
    let vault = visit.engine().identify(&visit.call, Verb::Admin).await?.vault();
    let told = |(page, times): (&'static str, VecDeque<Duration>)| {
        let times: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1000.0).collect();
        let mut sorted = times.clone();
        sorted.sort_by(f64::total_cmp);
        // Of so few, the nearest rank is as good as any other.
        let rank = |percent: usize| sorted.get((sorted.len() * percent).div_ceil(100).max(1) - 1);
        let spelled =
            |time: Option<&f64>| time.map_or_else(String::new, |ms| format!("{ms:.1} ms"));
        Latency {
            page,
            median: spelled(rank(50)),
            most: spelled(rank(95)),
            line: draw::line(&times),
        }
    };
    Ok(visit.desk.timing.of(vault).into_iter().map(told).collect())
}

fn concern(id: &'static str, title: &'static str, none: &'static str, care: &Care) -> Concern {
    let told = |memory: &Memory| {
        let head = &memory.head;
        (format!("/app/memory/{}", head.memory), beginning(&head.content.body.text, 120))
    };
    let first = care.first.iter().take(SHOWN).map(told).collect();
    Concern { id, title, none, count: grouped(care.count), first }
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

//! Small probes of our own: what was superseded must not come back, and what nobody said must not
//! be answered; and the labelled facts of memorywire's paper.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use yore_domain::memory::Draft;
use yore_domain::mutation::{Mutation, Patch};
use yore_domain::query::{Corpus, Cutoff, Effort, Filter, Recall};
use yore_domain::scope::Scope;
use yore_engine::{Found, Wish};

use super::score::{Ranking, rows};
use crate::report::Report;
use crate::world::World;

/// What was believed, what is believed now, and the question.
const REVISED: [(&str, &str, &str); 12] = [
    ("Nora lives in Lisbon", "Nora lives in Turin", "where does Nora live?"),
    ("The gate code is 4411", "The gate code is 9027", "what is the code of the gate?"),
    ("Our database is Postgres", "Our database is SQLite", "which database do we use?"),
    (
        "The dentist appointment is on Monday",
        "The dentist appointment is on Thursday",
        "when do I see the dentist?",
    ),
    ("Paul drinks coffee with milk", "Paul drinks coffee black", "how does Paul take his coffee?"),
    ("The backup runs at midnight", "The backup runs at noon", "when does the backup run?"),
    (
        "Mira's favourite colour is green",
        "Mira's favourite colour is orange",
        "which colour does Mira like best?",
    ),
    (
        "The spare key lies under the mat",
        "The spare key hangs in the shed",
        "where is the spare key?",
    ),
    ("We deploy on Fridays", "We deploy on Tuesdays", "on which day do we deploy?"),
    ("The cat is called Pebble", "The cat is called Biscuit", "what is the name of the cat?"),
    ("The team meets in room 12", "The team meets in room 31", "in which room does the team meet?"),
    ("Olga works as a nurse", "Olga works as a pilot", "what is Olga's job?"),
];
/// Questions to which those sentences have no answer.
const UNANSWERED: [&str; 12] = [
    "how tall is the lighthouse of Alexandria?",
    "what did the orchestra play last night?",
    "which train goes to Prague?",
    "who painted the ceiling of the chapel?",
    "what is the boiling point of ethanol?",
    "how many moons has Jupiter?",
    "where did I park the bicycle?",
    "what is my passport number?",
    "which wine goes with trout?",
    "when was the treaty signed?",
    "how do I sharpen a chisel?",
    "what is the capital of Mongolia?",
];

fn recall(query: &str, limit: usize, cutoff: Cutoff) -> Recall {
    Recall {
        query: query.to_owned(),
        corpus: Corpus::Memories,
        filter: Filter::default(),
        near: Scope::default(),
        limit,
        effort: Effort::Balanced,
        prefer: Vec::new(),
        cutoff,
    }
}

async fn texts(world: &World, query: &str, limit: usize, cutoff: Cutoff) -> Result<Vec<String>> {
    let found = world.engine.recall(&world.owner, recall(query, limit, cutoff)).await?.results;
    let text = |found: &Found| found.text().to_owned();
    Ok(found.iter().map(|hit| text(&hit.found)).collect())
}

async fn remember(world: &World, text: &str) -> Result<yore_domain::MemoryId> {
    let remember = Mutation::Remember { draft: Box::new(Draft::text(text)), id: None };
    let done = world.engine.mutate(&world.owner, remember, Wish::default()).await?;
    Ok(done.memories.first().context("a memory was made")?.memory)
}

/// Runs our own probes.
pub(crate) async fn run(work: &Path, report: &mut Report) -> Result<()> {
    let world = World::open(&work.join("probes")).await?;
    for (before, now, _) in REVISED {
        let memory = remember(&world, before).await?;
        let patch: Patch = serde_json::from_value(json!({ "body": { "text": now } }))?;
        let revise = Mutation::Revise { memory, patch: Box::new(patch), expected: None };
        world.engine.mutate(&world.owner, revise, Wish::default()).await?;
    }
    world.engine.settle().await?;
    let (mut first, mut stale) = (0, 0);
    for (before, now, question) in REVISED {
        let found = texts(&world, question, 10, Cutoff::Off).await?;
        first += u32::from(found.first().is_some_and(|text| text == now));
        stale += u32::from(found.iter().any(|text| text == before));
    }
    let mut silent = 0;
    for question in UNANSWERED {
        silent += u32::from(texts(&world, question, 10, Cutoff::Calibrated).await?.is_empty());
    }
    world.close().await?;
    report.figure(
        "Probes",
        json!({
            "superseded": REVISED.len(), "current_is_first": first, "superseded_came_back": stale,
            "no_match": UNANSWERED.len(), "answered_by_nothing": silent,
        }),
    );
    report.at_most("superseded memories that came back", "of 12", 0.0, Some(f64::from(stale)));
    Ok(())
}

/// The labelled facts of memorywire's paper, a vault for each person.
pub(crate) async fn facts(data: &Path, work: &Path, report: &mut Report) -> Result<Vec<Value>> {
    let bytes = std::fs::read(data.join("memorywire/microbench.json"))
        .context("no memorywire/microbench.json in the data")?;
    let bench: Value = serde_json::from_slice(&bytes)?;
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut worlds: BTreeMap<String, (World, BTreeMap<String, String>)> = BTreeMap::new();
    for fact in bench["facts"].as_array().into_iter().flatten() {
        let user = word(&fact["user"]);
        if !worlds.contains_key(&user) {
            let world = World::open(&work.join(format!("facts-{user}"))).await?;
            worlds.insert(user.clone(), (world, BTreeMap::new()));
        }
        let Some((world, ids)) = worlds.get_mut(&user) else { continue };
        remember(world, &word(&fact["content"])).await?;
        ids.insert(word(&fact["content"]), word(&fact["id"]));
    }
    for (world, _) in worlds.values() {
        world.engine.settle().await?;
    }
    let (mut rankings, mut written) = (Vec::new(), Vec::new());
    let (mut empty, mut unanswerable) = (0, 0);
    for query in bench["queries"].as_array().into_iter().flatten() {
        let (world, ids) = worlds.get(&word(&query["user"])).context("a person without facts")?;
        let gold: Vec<String> =
            query["gold_ids"].as_array().into_iter().flatten().map(word).collect();
        let asked = word(&query["query"]);
        if gold.is_empty() {
            unanswerable += 1;
            empty += usize::from(texts(world, &asked, 10, Cutoff::Calibrated).await?.is_empty());
            continue;
        }
        let found = texts(world, &asked, 10, Cutoff::Off).await?;
        let ranked: Vec<String> = found.iter().filter_map(|text| ids.get(text)).cloned().collect();
        written.push(json!({ "question": asked, "gold": gold, "ranked": ranked }));
        rankings.push(Ranking { ranked, gold });
    }
    for (world, _) in worlds.into_values() {
        world.close().await?;
    }
    report.figure("memorywire's facts", Value::from(rows("fact", &rankings)));
    report.figure(
        "memorywire's questions without an answer",
        json!({
            "asked": unanswerable, "answered_by_nothing": empty,
        }),
    );
    Ok(written)
}

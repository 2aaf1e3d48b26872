//! Whether writes that wait for a person cost those who recall anything.

use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::desk::Desk;
use crate::corpus::Corpus;
use crate::meter::{Series, start};
use crate::recall::questions;
use crate::report::Report;
use crate::world::World;

/// Recalls before and after many writes that wait, each of which repeats the words of a question.
pub(crate) async fn run(
    work: &Path,
    corpus: &Corpus,
    live: usize,
    pending: usize,
    report: &mut Report,
) -> Result<()> {
    let world = World::open(work).await?;
    let desk = Desk::open(&world).await?;
    for number in 0..live {
        let body = json!({ "type": "semantic", "content": corpus.memory(number) });
        desk.remember(body).await?;
    }
    let questions = questions(corpus, live, 200);
    answers(&desk, &questions).await?;
    let (before, found) = answers(&desk, &questions).await?;
    for number in 0..pending {
        let content = format!("{} {number}", questions[number % questions.len()]);
        let body = json!({ "type": "semantic", "content": content, "approval_required": true });
        desk.ok("remember", body).await?;
    }
    answers(&desk, &questions).await?;
    let (after, still) = answers(&desk, &questions).await?;
    world.close().await?;
    ensure!(found == still, "writes that wait changed what is recalled");
    report.figure(format!("recall of {live}, nothing waits"), before.to_json());
    report.figure(format!("recall of {live}, {pending} wait"), after.to_json());
    report.at_most(
        format!("recall while {pending} wait, CPU p50, against none"),
        "ms",
        1.1 * before.cpu(0.5) + 0.05,
        Some(after.cpu(0.5)),
    );
    Ok(())
}

/// Asks every question and returns what it took and what was found.
async fn answers(desk: &Desk, questions: &[String]) -> Result<(Series, Vec<Value>)> {
    let mut series = Series::default();
    let mut found = Vec::new();
    for question in questions {
        let took = start();
        let hits = desk.recall(json!({ "query": question, "k": 5 })).await?;
        series.push(took());
        found.push(hits.iter().map(|hit| hit["id"].clone()).collect());
    }
    Ok((series, found))
}

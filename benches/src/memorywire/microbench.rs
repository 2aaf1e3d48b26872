//! The paper's first experiment: its corpus of 100 facts and 50 questions, over the REST surface.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::json;

use super::desk::{Desk, text};
use crate::meter::{Series, round, start};
use crate::report::Report;
use crate::world::World;

/// How many answers are asked for.
const K: usize = 5;

#[derive(Debug, Deserialize)]
struct Published {
    facts: Vec<Fact>,
    queries: Vec<Query>,
}

#[derive(Debug, Deserialize)]
struct Fact {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    user: String,
    content: String,
}

#[derive(Debug, Deserialize)]
struct Query {
    query: String,
    gold_ids: Vec<String>,
    user: Option<String>,
}

/// How well questions were answered, summed over them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Score {
    labelled: f64,
    first: f64,
    recall: f64,
    precision: f64,
    reciprocal: f64,
    probes: usize,
    empty: usize,
}

impl Score {
    /// Counts one answer.
    fn add(&mut self, gold: &[String], found: &[String]) {
        if gold.is_empty() {
            self.probes += 1;
            self.empty += usize::from(found.is_empty());
            return;
        }
        let hits = found.iter().filter(|id| gold.contains(id)).count() as f64;
        let place = found.iter().position(|id| gold.contains(id));
        self.labelled += 1.0;
        self.first += f64::from(u8::from(place == Some(0)));
        self.recall += hits / gold.len() as f64;
        self.precision += hits / K as f64;
        self.reciprocal += place.map_or(0.0, |place| 1.0 / (place + 1) as f64);
    }
}

/// Runs the experiment where the corpus is there, and prints the paper's table.
pub(crate) async fn run(work: &Path, data: Option<&Path>, report: &mut Report) -> Result<()> {
    let bars = |report: &mut Report, score: Option<Score>| {
        let mean = |sum: fn(&Score) -> f64| score.map(|score| sum(&score) / score.labelled);
        report.at_least("microbench, recall@5", "share", 1.0, mean(|score| score.recall));
        // What exact search with the same model finds first.
        report.at_least("microbench, recall@1", "share", 0.857, mean(|score| score.first));
        let empty = score.map(|score| score.empty as f64);
        report.at_least("microbench, no-match probes empty", "of 8", 5.0, empty);
    };
    let file = data.map(|data| data.join("memorywire/microbench.json"));
    let Some(file) = file.filter(|file| file.exists()) else {
        println!(
            "microbenchmark: NOT RUN: no memorywire/microbench.json in --data or YORE_TESTDATA"
        );
        bars(report, None);
        return Ok(());
    };
    let corpus = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let corpus: Published = serde_json::from_slice(&corpus)?;
    let took = start();
    let world = World::open(work).await?;
    let desk = Desk::open(&world).await?;
    let mut names = BTreeMap::new();
    let mut ingest = Series::default();
    for Fact { id, kind, user, content } in &corpus.facts {
        let one = start();
        let body = json!({ "type": kind, "user_id": user, "content": content });
        names.insert(desk.remember(body).await?, id.clone());
        ingest.push(one());
    }
    let settling = start();
    world.engine.settle().await?;
    let settling = settling();
    let mut recall = Series::default();
    let mut score = Score::default();
    for Query { query, gold_ids, user } in &corpus.queries {
        let mut body = json!({ "query": query, "k": K });
        if let Some(user) = user {
            body["user_id"] = user.as_str().into();
        }
        let one = start();
        let hits = desk.recall(body).await?;
        recall.push(one());
        let found: Vec<String> =
            hits.iter().filter_map(|hit| names.get(&text(&hit["id"])).cloned()).collect();
        score.add(gold_ids, &found);
    }
    let took = took();
    world.close().await?;
    let mean = |sum: f64| sum / score.labelled;
    let three = |series: &Series| {
        let wall = |share| series.wall(share);
        format!("{:.1} / {:.1} / {:.1} ms", wall(0.5), wall(0.95), wall(0.99))
    };
    println!("\n{:<36} {:>24} {:>24}", "microbenchmark", "published", "here");
    for (what, published, here) in [
        ("Recall@1 (first answer is gold)", "–".into(), format!("{:.3}", mean(score.first))),
        ("Recall@5 mean (labelled queries)", "1.000".into(), format!("{:.3}", mean(score.recall))),
        ("Precision@5 mean", "0.214".into(), format!("{:.3}", mean(score.precision))),
        ("MRR", "–".into(), format!("{:.3}", mean(score.reciprocal))),
        ("Ingest latency p50 / p95 / p99", "37.8 / 46.0 / 69.1 ms".into(), three(&ingest)),
        ("Recall latency p50 / p95 / p99", "40.6 / 46.6 / 55.7 ms".into(), three(&recall)),
        (
            "No-match probes correctly empty",
            "0 / 8".to_owned(),
            format!("{} / {}", score.empty, score.probes),
        ),
        ("Total benchmark runtime", "5.9 s".into(), format!("{:.1} s", took.wall.as_secs_f64())),
    ] {
        println!("{what:<36} {published:>24} {here:>24}");
    }
    println!();
    let figure = json!({
        "recall_at_1": round(mean(score.first)),
        "recall_at_5": round(mean(score.recall)),
        "precision_at_5": round(mean(score.precision)),
        "mrr": round(mean(score.reciprocal)),
        "no_match_empty": score.empty,
        "no_match_probes": score.probes,
        "ingest": ingest.to_json(),
        "background_cpu_s": round(settling.cpu.as_secs_f64()),
        "recall": recall.to_json(),
        "runtime_wall_s": round(took.wall.as_secs_f64()),
        "runtime_cpu_s": round(took.cpu.as_secs_f64()),
        "published": {
            "recall_at_5": 1.0, "precision_at_5": 0.214, "no_match_empty": 0,
            "ingest_wall_ms_p50": 37.8, "recall_wall_ms_p50": 40.6, "runtime_wall_s": 5.9,
        },
    });
    report.keep("microbenchmark", figure);
    bars(report, Some(score));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_scored_as_the_paper_does() {
        let ids = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let mut score = Score::default();
        score.add(&ids("a"), &ids("a b c"));
        score.add(&ids("a b"), &ids("x b"));
        score.add(&[], &[]);
        score.add(&[], &ids("x"));
        let expected = Score {
            labelled: 2.0,
            first: 1.0,
            recall: 1.5,
            precision: 0.4,
            reciprocal: 1.5,
            probes: 2,
            empty: 1,
        };
        assert_eq!(score, expected);
    }
}

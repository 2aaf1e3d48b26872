//! The same memories and questions, here and in the reference implementation.
//!
//! The reference is asked in its own process on the same core. "Without embedding" means that a
//! text's vector is looked up instead of computed: there from a table, here because the engine
//! still knows the vectors of its last questions. Nothing else differs.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use serde::Deserialize;
use serde_json::{Value, json};

use super::desk::Desk;
use crate::corpus::Corpus;
use crate::meter::{cpu, round};
use crate::recall::questions;
use crate::report::Report;
use crate::world::World;

/// The driver of the reference.
const DRIVER: &str = include_str!("reference.py");
/// How many answers are asked for.
const K: usize = 5;
/// How many memories are written by themselves, once a store is full.
const SAMPLE: usize = 200;
/// How many writes are under way at once while a vault is filled.
const WRITERS: usize = 64;

/// The reference implementation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reference<'a> {
    /// Where its packages are.
    pub(crate) packages: &'a Path,
    /// Where it may write.
    pub(crate) work: &'a Path,
    /// CPU seconds for filling its store.
    pub(crate) patience: u64,
}

/// What is remembered and asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene<'a> {
    pub(crate) corpus: &'a Corpus,
    pub(crate) size: usize,
    pub(crate) questions: usize,
    /// Whether memories get the transformer's vectors before questions are asked.
    pub(crate) dense: bool,
}

/// CPU milliseconds for one memory or one question, mean.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Costs {
    /// How many memories lay there in the end.
    size: usize,
    /// Until a write is acknowledged, its vector computed.
    ingest: Option<f64>,
    /// The same without computing it.
    ingest_bare: Option<f64>,
    /// With the work that follows in the background.
    #[serde(default)]
    ingest_settled: Option<f64>,
    recall: Option<f64>,
    recall_bare: Option<f64>,
}

/// What the driver says in its last line.
#[derive(Debug, Deserialize)]
pub(crate) struct Theirs {
    costs: Costs,
    /// Why something was not measured.
    notes: Vec<String>,
}

impl Scene<'_> {
    /// Fills a vault over REST and asks.
    pub(crate) async fn ours(&self, place: &Path) -> Result<Costs> {
        let world = World::open(place).await?;
        let desk = Desk::open(&world).await?;
        let first = self.size.saturating_sub(SAMPLE);
        stream::iter(0..first)
            .map(|number| self.remember(&desk, number))
            .buffer_unordered(WRITERS)
            .try_collect::<()>()
            .await?;
        if self.dense {
            world.engine.settle().await?;
        }
        let before = cpu();
        for number in first..self.size {
            self.remember(&desk, number).await?;
        }
        let ingest = mean(before, self.size - first);
        if self.dense {
            world.engine.settle().await?;
        }
        let settled = self.dense.then(|| mean(before, self.size - first));
        // A server that runs has met the kin of most tokens; no question is asked here as later.
        self.asked(&desk, " instead").await?;
        let recall = self.asked(&desk, "").await?;
        let recall_bare = self.asked(&desk, "").await?;
        world.close().await?;
        std::fs::remove_dir_all(place)?;
        Ok(Costs {
            size: self.size,
            ingest: Some(ingest),
            ingest_bare: None,
            ingest_settled: settled,
            recall: Some(recall),
            recall_bare: Some(recall_bare),
        })
    }

    async fn remember(&self, desk: &Desk, number: usize) -> Result<()> {
        let content = self.corpus.memory(number);
        desk.remember(json!({ "type": "semantic", "content": content })).await.map(drop)
    }

    /// Asks every question, with some words added, and returns what one took.
    async fn asked(&self, desk: &Desk, added: &str) -> Result<f64> {
        let questions = questions(self.corpus, self.size, self.questions);
        let mut found = 0;
        let before = cpu();
        for question in &questions {
            let body = json!({ "query": format!("{question}{added}"), "k": K });
            found += desk.recall(body).await?.len();
        }
        let spent = mean(before, questions.len());
        ensure!(found > 0, "no question was answered, so nothing was measured");
        Ok(spent)
    }

    /// Has the reference do the same, in a process of its own.
    pub(crate) fn theirs(&self, reference: &Reference<'_>) -> Result<Theirs> {
        let place = reference.work.join("reference");
        std::fs::create_dir_all(&place)?;
        let lines =
            |texts: Vec<String>| texts.iter().fold(String::new(), |all, one| all + one + "\n");
        let memories = (0..self.size).map(|number| self.corpus.memory(number)).collect();
        std::fs::write(place.join("memories.txt"), lines(memories))?;
        let asked = questions(self.corpus, self.size, self.questions);
        std::fs::write(place.join("questions.txt"), lines(asked))?;
        std::fs::write(place.join("driver.py"), DRIVER)?;
        let done = Command::new("python3")
            .arg(place.join("driver.py"))
            .arg(&place)
            .args([SAMPLE, K].map(|number| number.to_string()))
            .arg(reference.patience.to_string())
            .env("PYTHONPATH", reference.packages)
            .env("OMP_NUM_THREADS", "1")
            .env("HF_HUB_OFFLINE", "1")
            .output()
            .context("cannot run python3")?;
        let said = String::from_utf8_lossy(&done.stdout);
        let wrong = || format!("the reference failed: {}", String::from_utf8_lossy(&done.stderr));
        ensure!(done.status.success(), wrong());
        let last = said.lines().next_back().with_context(wrong)?;
        let theirs = serde_json::from_str(last).with_context(wrong)?;
        std::fs::remove_dir_all(place)?;
        Ok(theirs)
    }
}

/// CPU milliseconds of one of many since a reading.
fn mean(before: Duration, count: usize) -> f64 {
    cpu().saturating_sub(before).as_secs_f64() * 1e3 / count.max(1) as f64
}

impl Costs {
    fn to_json(self) -> Value {
        let ms = |cost: Option<f64>| cost.map(round);
        json!({
            "size": self.size,
            "ingest_cpu_ms": ms(self.ingest),
            "ingest_without_embedding_cpu_ms": ms(self.ingest_bare),
            "ingest_with_background_cpu_ms": ms(self.ingest_settled),
            "recall_cpu_ms": ms(self.recall),
            "recall_without_embedding_cpu_ms": ms(self.recall_bare),
        })
    }
}

/// Compares both at one size. Where the reference was not measured, no bar is called held.
pub(crate) fn judge(size: usize, ours: &Costs, theirs: Option<&Theirs>, report: &mut Report) {
    report.figure(format!("memorywire at {size}, here"), ours.to_json());
    if let Some(theirs) = theirs {
        let mut figure = theirs.costs.to_json();
        figure["notes"] = json!(theirs.notes);
        report.figure(format!("memorywire at {size}, the reference"), figure);
        for note in &theirs.notes {
            println!("the reference at {size}: {note}");
        }
    }
    // One that did not fill its store in time did less than was asked.
    let full = theirs.filter(|theirs| theirs.costs.size == size).map(|theirs| theirs.costs);
    let mut bar = |what: &str, share: f64, ours: Option<f64>, theirs: Option<f64>| {
        let found = ours.zip(theirs).map(|(ours, theirs)| ours / theirs);
        report.at_most(format!("{what} at {size}, CPU"), "of the reference's", share, found);
    };
    let of = |cost: fn(&Costs) -> Option<f64>| full.as_ref().and_then(cost);
    bar("ingest", 0.1, ours.ingest, of(|costs| costs.ingest));
    bar("ingest with background", 0.1, ours.ingest_settled, of(|costs| costs.ingest));
    bar("recall", 0.25, ours.recall, of(|costs| costs.recall));
    bar("recall, no embedding", 0.1, ours.recall_bare, of(|costs| costs.recall_bare));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(size: usize, each: f64) -> Costs {
        Costs {
            size,
            ingest: Some(each),
            ingest_bare: None,
            ingest_settled: None,
            recall: Some(each),
            recall_bare: Some(each),
        }
    }

    #[test]
    fn only_a_reference_that_did_the_same_is_compared() {
        let verdicts = |theirs: Option<Theirs>| {
            let mut report = Report::default();
            judge(1000, &costs(1000, 1.0), theirs.as_ref(), &mut report);
            let bars = report.to_json("none")["bars"].clone();
            let bars = bars.as_array().cloned().unwrap_or_default();
            bars.iter().map(|bar| bar["verdict"].clone()).collect::<Vec<_>>()
        };
        let theirs = |size, each| Theirs { costs: costs(size, each), notes: Vec::new() };
        assert_eq!(verdicts(None), ["not measured"; 4]);
        assert_eq!(verdicts(Some(theirs(900, 50.0))), ["not measured"; 4]);
        let five = ["DOES NOT HOLD", "not measured", "holds", "DOES NOT HOLD"];
        assert_eq!(verdicts(Some(theirs(1000, 5.0))), five);
        let fifty = ["holds", "not measured", "holds", "holds"];
        assert_eq!(verdicts(Some(theirs(1000, 50.0))), fifty);
    }
}

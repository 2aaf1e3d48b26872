//! What it costs to remember.

use anyhow::Result;
use futures::future::try_join_all;
use serde_json::{Value, json};

use crate::corpus::Corpus;
use crate::meter::{Series, round, start};
use crate::world::{World, draft};

const WRITERS: usize = 8;

/// Remembers one after the other; each is on disk before the next begins.
pub(crate) async fn sequential(
    world: &World,
    corpus: &Corpus,
    first: usize,
    count: usize,
) -> Result<Series> {
    let drafts = (first..first + count).map(|number| draft(corpus, number));
    let drafts: Vec<_> = drafts.collect::<Result<_>>()?;
    Series::of_each(drafts, |draft| world.store(draft)).await
}

/// What several writers at once cost.
#[derive(Debug)]
pub(crate) struct Crowd {
    /// CPU milliseconds of the whole process for each write.
    pub(crate) cpu_per_write: f64,
    writes: usize,
    per_second: f64,
}

impl Crowd {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "writers": WRITERS,
            "writes": self.writes,
            "cpu_ms_per_write": round(self.cpu_per_write),
            "writes_per_second": self.per_second.round(),
        })
    }
}

/// Remembers with several writers at once, each waiting for its own write.
pub(crate) async fn crowd(
    world: &World,
    corpus: &Corpus,
    first: usize,
    count: usize,
) -> Result<Crowd> {
    let each = count / WRITERS;
    let mut shares = Vec::new();
    for writer in 0..WRITERS {
        let begin = first + writer * each;
        let drafts = (begin..begin + each).map(|number| draft(corpus, number));
        shares.push(drafts.collect::<Result<Vec<_>>>()?);
    }
    let took = start();
    try_join_all(shares.into_iter().map(|drafts| async move {
        for draft in drafts {
            world.store(draft).await?;
        }
        anyhow::Ok(())
    }))
    .await?;
    let took = took();
    let writes = each * WRITERS;
    Ok(Crowd {
        cpu_per_write: took.cpu.as_secs_f64() * 1e3 / writes as f64,
        writes,
        per_second: writes as f64 / took.wall.as_secs_f64(),
    })
}

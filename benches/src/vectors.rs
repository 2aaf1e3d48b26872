//! How much of what exact search finds the vector part of the index finds too.
//!
//! Rows are mixtures of real transformer vectors with noise, questions are transformer vectors
//! of questions about the texts that were mixed: generated sentences, or the turns and questions
//! of a dialogue benchmark when `YORE_TESTDATA` names a folder that has one. Exact means cosine of the floats before any
//! rounding; a scan of all rows in int8 says how much of a loss is rounding and how much the
//! index's own short cuts.

use anyhow::Result;
use yore_embed::builtin;
use yore_index::{ClassId, Document, Index, Meta, Search, Vector};

use crate::corpus::{Corpus, Random};

const NEAREST: usize = 10;
/// As many candidates as recall takes from each list.
const DEPTH: usize = 100;

/// Shares of the ten exact nearest, over all questions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shares {
    /// What the index returns.
    pub(crate) index: f64,
    /// What comparing every row in int8 returns.
    pub(crate) int8: f64,
}

/// Rows in int8 with their scales.
#[derive(Debug, Default)]
struct Rows(Vec<(Vec<i8>, f32)>);

impl Rows {
    fn nearest(&self, query: &[i8]) -> Vec<u64> {
        let mut best = Vec::new();
        for (key, (values, scale)) in self.0.iter().enumerate() {
            keep(&mut best, (yore_kernels::dot_i8(query, values) as f32 * scale, key as u64));
        }
        best.into_iter().map(|(_, key)| key).collect()
    }
}

/// Measures on a corpus of this size, mixed from so many real vectors, with so many questions.
pub(crate) fn recall_at_10(
    corpus: &Corpus,
    size: usize,
    bases: usize,
    asked: usize,
) -> Result<Shares> {
    let embed = |text: &String| builtin().transformer.embed(text).to_floats();
    let (texts, questions) = match dialogue()? {
        Some((mut texts, mut questions)) => {
            texts.truncate(bases);
            questions.truncate(asked);
            (texts, questions)
        }
        None => (
            (0..bases).map(|number| corpus.memory(number)).collect(),
            (0..asked).map(|number| corpus.question(bases, number)).collect(),
        ),
    };
    let asked = questions.len();
    let texts: Vec<Vec<f32>> = texts.iter().map(embed).collect();
    let queries: Vec<Vec<f32>> = questions.iter().map(embed).collect();
    let mut exact = vec![Vec::<(f32, u64)>::new(); asked];
    let mut index = Index::new(queries.first().map_or(0, Vec::len));
    let mut rows = Rows::default();
    let mut random = Random::new(11);
    for key in 0..size as u64 {
        let row = mixture(&texts, &mut random);
        for (query, best) in queries.iter().zip(&mut exact) {
            keep(best, (yore_kernels::dot_f32(query, &row), key));
        }
        let (values, scale) = Vector::quantise(&row);
        put(&mut index, key, Vector { values: &values, scale })?;
        rows.0.push((values, scale));
    }
    let (mut by_index, mut by_int8) = (0, 0);
    for (query, best) in queries.iter().zip(&exact) {
        let (values, scale) = Vector::quantise(query);
        let found = search(&index, Vector { values: &values, scale });
        let scanned = rows.nearest(&values);
        by_index += best.iter().filter(|(_, key)| found.contains(key)).count();
        by_int8 += best.iter().filter(|(_, key)| scanned.contains(key)).count();
    }
    let share = |hits: usize| hits as f64 / (asked * NEAREST) as f64;
    Ok(Shares { index: share(by_index), int8: share(by_int8) })
}

/// Turns and questions of the dialogues, when they are at hand; they are never part of this.
fn dialogue() -> Result<Option<(Vec<String>, Vec<String>)>> {
    let Some(place) = std::env::var_os("YORE_TESTDATA") else { return Ok(None) };
    let path = std::path::Path::new(&place).join("bench/locomo-dev.json");
    if !path.exists() {
        return Ok(None);
    }
    let value = serde_json::from_slice(&std::fs::read(path)?)?;
    let (mut texts, mut questions) = (Vec::new(), Vec::new());
    collect(&value, "text", &mut texts);
    collect(&value, "question", &mut questions);
    Ok(Some((texts, questions)))
}

fn collect(value: &serde_json::Value, member: &str, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(members) => {
            for (name, value) in members {
                match value.as_str() {
                    Some(text) if name == member => found.push(text.to_owned()),
                    _ => collect(value, member, found),
                }
            }
        }
        serde_json::Value::Array(items) => {
            items.iter().for_each(|item| collect(item, member, found));
        }
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_) => {}
    }
}

fn put(index: &mut Index, key: u64, dense: Vector<'_>) -> Result<()> {
    index.put(&Document {
        key,
        id: u128::from(key).to_be_bytes(),
        class: ClassId(1),
        text: "",
        meta: Meta::default(),
        tokens: &[],
        statics: Vector { values: &[0; yore_index::STATIC_DIMS], scale: 0.0 },
        dense: Some(dense),
    })?;
    Ok(())
}

fn search(index: &Index, query: Vector<'_>) -> Vec<u64> {
    let candidates = index.search(&Search {
        classes: &[ClassId(1)],
        text: "",
        tokens: &[],
        statics: None,
        dense: Some(query),
        depth: DEPTH,
        filter: &|_, _| true,
        token_table: None,
        context: false,
    });
    let mut list: Vec<(f32, u64)> =
        candidates.list.iter().map(|found| (found.dense.unwrap_or(-1.0), found.key)).collect();
    list.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    list.into_iter().take(NEAREST).map(|(_, key)| key).collect()
}

/// Three real vectors and noise, the first one strongest, of length one.
fn mixture(bases: &[Vec<f32>], random: &mut Random) -> Vec<f32> {
    let shares = [(0.4, 0.6), (0.1, 0.4), (0.0, 0.4)]
        .map(|(least, more)| (random.below(bases.len()), (least + more * random.unit()) as f32));
    let mut row: Vec<f32> = (0..bases[0].len())
        .map(|at| {
            let noise = (random.unit() + random.unit() - 1.0) as f32 * 0.03;
            shares.iter().map(|(base, share)| share * bases[*base][at]).sum::<f32>() + noise
        })
        .collect();
    yore_kernels::normalise(&mut row);
    row
}

fn keep(best: &mut Vec<(f32, u64)>, found: (f32, u64)) {
    let place = best.partition_point(|other| other.0 >= found.0);
    if place < NEAREST {
        best.insert(place, found);
        best.truncate(NEAREST);
    }
}

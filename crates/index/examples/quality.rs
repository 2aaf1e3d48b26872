//! Measures retrieval quality on labelled data that is not part of the project.
//!
//! `YORE_TESTDATA` names the directory with `memorywire/microbench.json` and `bench/locomo-dev.json`.
//! Without it the program says so and fails: nothing measured is not a pass.

use std::collections::HashMap;
use std::error::Error;
use std::path::Path;

use serde_json::Value;
use yore_embed::{Quantised, builtin};
use yore_index::{ClassId, Document, Index, Meta, Search, Vector};
use yore_rank::{Candidate, Cutoff, Prior, Query, Ranked, Weights, asks_whether, fuse};

struct Embedded {
    text: String,
    tokens: Vec<u16>,
    statics: Quantised,
    dense: Quantised,
}

fn embed(text: String) -> Embedded {
    let models = builtin();
    let tokens = models.statics.tokens(&text);
    Embedded {
        statics: models.statics.embed(&tokens),
        dense: models.transformer.embed(&text),
        tokens,
        text,
    }
}

fn vector(quantised: &Quantised) -> Vector<'_> {
    Vector { values: &quantised.values, scale: quantised.scale }
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Instant,
    Balanced,
}

struct Corpus {
    index: Index,
}

impl Corpus {
    fn build(documents: &[(Embedded, Meta)]) -> Result<Corpus, Box<dyn Error>> {
        let mut index = Index::new(384);
        for (key, (document, meta)) in (0u64..).zip(documents) {
            let mut id = [0; 16];
            id[..8].copy_from_slice(&key.to_be_bytes());
            index.put(&Document {
                key,
                id,
                class: ClassId(1),
                text: &document.text,
                meta: *meta,
                tokens: &document.tokens,
                statics: vector(&document.statics),
                dense: Some(vector(&document.dense)),
            })?;
        }
        Ok(Corpus { index })
    }

    fn candidates(&self, query: &Embedded, mode: Mode) -> Vec<Candidate> {
        let found = self.index.search(&Search {
            classes: &[ClassId(1)],
            text: &query.text,
            tokens: &query.tokens,
            statics: Some(vector(&query.statics)),
            dense: (mode == Mode::Balanced).then(|| vector(&query.dense)),
            depth: 100,
            filter: &|_, _| true,
            token_table: Some(&|token| builtin().statics.kin(token)),
            context: true,
        });
        found
            .list
            .into_iter()
            .map(|c| Candidate {
                key: c.key,
                id: c.id,
                lexical: c.lexical,
                dense: c.dense,
                statics: c.statics,
                soft: c.soft,
                coverage: c.coverage,
                session: (c.meta.session != 0).then_some(c.session),
                neighbours: c.neighbours,
                listed: c.origin.lexical || c.origin.vector,
                prior: Prior::default(),
            })
            .collect()
    }
}

/// One question: its candidates, and the keys that answer it.
struct Case {
    candidates: Vec<Candidate>,
    gold: Vec<u64>,
    sessions: HashMap<u64, u64>,
    whether: bool,
}

fn rank(case: &Case, weights: &Weights) -> Vec<Ranked> {
    fuse(&case.candidates, &Query::default(), weights)
}

fn recall(ranked: &[Ranked], gold: &[u64], k: usize) -> f64 {
    let found = ranked.iter().take(k).filter(|one| gold.contains(&one.key)).count();
    found as f64 / gold.len() as f64
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count.max(1))
}

/// One user's facts and their ids.
type Facts = (Vec<(Embedded, Meta)>, Vec<String>);

fn microbench(data: &Path, mode: Mode) -> Result<Vec<Case>, Box<dyn Error>> {
    let bench: Value =
        serde_json::from_slice(&std::fs::read(data.join("memorywire/microbench.json"))?)?;
    let mut users: HashMap<String, Facts> = HashMap::new();
    for fact in bench["facts"].as_array().ok_or("no facts")? {
        let user = users.entry(fact["user"].as_str().unwrap_or("").to_owned()).or_default();
        user.0.push((
            embed(fact["content"].as_str().ok_or("no content")?.to_owned()),
            Meta::default(),
        ));
        user.1.push(fact["id"].as_str().ok_or("no id")?.to_owned());
    }
    let mut corpora = HashMap::new();
    for (user, (documents, ids)) in &users {
        corpora.insert(user.clone(), (Corpus::build(documents)?, ids));
    }
    let mut cases = Vec::new();
    for query in bench["queries"].as_array().ok_or("no queries")? {
        let (corpus, ids) =
            corpora.get(query["user"].as_str().unwrap_or("")).ok_or("unknown user")?;
        let gold = query["gold_ids"].as_array().ok_or("no gold")?;
        let gold = gold
            .iter()
            .filter_map(|id| ids.iter().position(|have| id == have))
            .map(|at| at as u64)
            .collect();
        let asked = embed(query["query"].as_str().ok_or("no query")?.to_owned());
        let whether = asks_whether(&asked.text);
        cases.push(Case {
            candidates: corpus.candidates(&asked, mode),
            gold,
            sessions: HashMap::new(),
            whether,
        });
    }
    Ok(cases)
}

struct Dialogue {
    corpus: Corpus,
    sessions: HashMap<u64, u64>,
    questions: Vec<(Embedded, Vec<u64>)>,
}

fn dialogues(data: &Path) -> Result<Vec<Dialogue>, Box<dyn Error>> {
    let conversations: Vec<Value> =
        serde_json::from_slice(&std::fs::read(data.join("bench/locomo-dev.json"))?)?;
    let corrections: Vec<Value> =
        serde_json::from_slice(&std::fs::read(data.join("bench/locomo-dev-corrections.json"))?)?;
    let corrections: HashMap<&str, &Value> = corrections
        .iter()
        .filter_map(|one| one["question_id"].as_str().map(|id| (id, &one["correct_evidence"])))
        .collect();
    let mut all = Vec::new();
    for (at, conversation) in conversations.iter().enumerate() {
        let talk = &conversation["conversation"];
        let mut documents = Vec::new();
        let mut places = HashMap::new();
        let mut sessions = HashMap::new();
        for session in 1u64.. {
            if talk[format!("session_{session}_date_time")].is_null()
                && talk[format!("session_{session}")].is_null()
            {
                break;
            }
            let turns = talk[format!("session_{session}")].as_array().cloned().unwrap_or_default();
            for (ordinal, turn) in (0u32..).zip(&turns) {
                let mut text = format!(
                    "{}: {}",
                    turn["speaker"].as_str().unwrap_or(""),
                    turn["text"].as_str().unwrap_or("")
                );
                if let Some(caption) = turn["blip_caption"].as_str() {
                    text.push_str(&format!(" [image: {caption}]"));
                }
                let key = documents.len() as u64;
                places.insert(turn["dia_id"].as_str().unwrap_or("").to_owned(), key);
                sessions.insert(key, session);
                documents.push((embed(text), Meta { session, ordinal, ..Meta::default() }));
            }
        }
        let mut questions = Vec::new();
        for (number, question) in
            conversation["qa"].as_array().ok_or("no questions")?.iter().enumerate()
        {
            let id = format!("locomo_{at}_qa{number}");
            let evidence = corrections.get(id.as_str()).copied().unwrap_or(&question["evidence"]);
            let mut gold: Vec<u64> = evidence
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .flat_map(|cited| cited.split([';', ' ', ',']))
                .filter_map(|dia| places.get(dia).copied())
                .collect();
            gold.sort_unstable();
            gold.dedup();
            if !gold.is_empty() {
                questions
                    .push((embed(question["question"].as_str().unwrap_or("").to_owned()), gold));
            }
        }
        all.push(Dialogue { corpus: Corpus::build(&documents)?, sessions, questions });
    }
    Ok(all)
}

fn cases(dialogues: &[Dialogue], mode: Mode) -> Vec<Case> {
    dialogues
        .iter()
        .flat_map(|one| {
            one.questions.iter().map(|(asked, gold)| Case {
                candidates: one.corpus.candidates(asked, mode),
                gold: gold.clone(),
                sessions: one.sessions.clone(),
                whether: asks_whether(&asked.text),
            })
        })
        .collect()
}

fn report_dialogues(name: &str, cases: &[Case], weights: &Weights) {
    let ranked: Vec<Vec<Ranked>> = cases.iter().map(|case| rank(case, weights)).collect();
    let over = |score: &dyn Fn(&Case, &[Ranked]) -> f64| {
        mean(cases.iter().zip(&ranked).map(|(c, r)| score(c, r)))
    };
    let sessions = |case: &Case, ranked: &[Ranked], k: usize| {
        let mut wanted: Vec<u64> = case.gold.iter().map(|key| case.sessions[key]).collect();
        wanted.sort_unstable();
        wanted.dedup();
        // Sessions in the order of their best turn.
        let mut found: Vec<u64> = Vec::new();
        for session in ranked.iter().map(|one| case.sessions[&one.key]) {
            if found.len() < k && !found.contains(&session) {
                found.push(session);
            }
        }
        wanted.iter().filter(|session| found.contains(session)).count() as f64 / wanted.len() as f64
    };
    let kept = cases
        .iter()
        .filter(|c| !Cutoff::default().apply(rank(c, weights), c.whether).is_empty())
        .count();
    let reciprocal = |case: &Case, ranked: &[Ranked]| {
        ranked
            .iter()
            .position(|one| case.gold.contains(&one.key))
            .map_or(0.0, |at| 1.0 / (at + 1) as f64)
    };
    println!(
        "dialogue {name:9} questions {} r@1 {:.3} r@5 {:.3} r@10 {:.3} any@5 {:.3} any@10 {:.3} mrr {:.3} session@10 {:.3} kept {kept}",
        cases.len(),
        over(&|c, r| recall(r, &c.gold, 1)),
        over(&|c, r| recall(r, &c.gold, 5)),
        over(&|c, r| recall(r, &c.gold, 10)),
        over(&|c, r| f64::from(recall(r, &c.gold, 5) > 0.0)),
        over(&|c, r| f64::from(recall(r, &c.gold, 10) > 0.0)),
        over(&reciprocal),
        over(&|c, r| sessions(c, r, 10)),
    );
}

fn report_facts(name: &str, cases: &[Case], weights: &Weights, cutoff: &Cutoff) {
    let answerable = || cases.iter().filter(|case| !case.gold.is_empty());
    let at = |k| mean(answerable().map(|case| recall(&rank(case, weights), &case.gold, k)));
    let kept = mean(
        answerable()
            .map(|case| recall(&cutoff.apply(rank(case, weights), case.whether), &case.gold, 5)),
    );
    let silent = cases
        .iter()
        .filter(|case| {
            case.gold.is_empty() && cutoff.apply(rank(case, weights), case.whether).is_empty()
        })
        .count();
    println!(
        "facts    {name:9} questions {} r@1 {:.3} r@5 {:.3} | with cutoff: r@5 {kept:.3}, silent on {silent} of {}",
        answerable().count(),
        at(1),
        at(5),
        cases.iter().filter(|case| case.gold.is_empty()).count(),
    );
}

fn main() -> Result<(), Box<dyn Error>> {
    let data = std::env::var_os("YORE_TESTDATA")
        .ok_or("YORE_TESTDATA is not set: nothing was measured")?;
    let data = Path::new(&data);
    let (weights, cutoff) = (Weights::default(), Cutoff::default());
    for (name, mode) in [("instant", Mode::Instant), ("balanced", Mode::Balanced)] {
        report_facts(name, &microbench(data, mode)?, &weights, &cutoff);
    }
    let dialogues = dialogues(data)?;
    for (name, mode) in [("instant", Mode::Instant), ("balanced", Mode::Balanced)] {
        report_dialogues(name, &cases(&dialogues, mode), &weights);
    }
    Ok(())
}

//! A rogue store among honest ones: how much it can push aside, and how much of its own it can
//! push in.
//!
//! The scene is the one of the protocol's paper: two honest stores and a rogue one, 50 memories,
//! 20 questions with two right answers each, five places. The rogue spends a budget of poisoned
//! rows at the top of its lists, with scores it chooses. Everything goes through a [`Router`], as
//! it would in use.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt};

use crate::error::{Error, Result};
use crate::fuse::Fusion;
use crate::mapping::InMemory;
use crate::record::{Found, Question, Record, Type, Whose};
use crate::router::{Ask, Options, Router};
use crate::slot::{Depth, Slot, Terms};
use crate::store::{Capabilities, Capability, Health, Keeps, MemoryStore, Page};

/// Poisoned rows that the published sweep goes up to.
pub const MOST: usize = 50;
/// Memories in the honest stores.
const MEMORIES: usize = 50;
/// Questions of one sweep.
const QUESTIONS: usize = 20;
/// Right answers to each.
const RIGHT: usize = 2;
/// Places of an answer.
const K: usize = 5;
const NOW: i64 = 1_800_000_000_000;

/// What a rogue store does with its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    /// New ids with new words.
    Invent,
    /// Ids that exist in the other stores, with other words.
    Forge,
    /// True memories that do not answer the question, word for word.
    Lift,
}

/// One setting of the sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scene {
    /// What the rogue does.
    pub attack: Attack,
    /// How many rows it poisons in each answer.
    pub budget: usize,
    /// The score of its first row; the others follow closely.
    pub score: f64,
    /// How the lists become one.
    pub fusion: Fusion,
    /// How many stores must have a memory before it counts.
    pub quorum: usize,
    /// Whether the rogue is the first of the stores, whose word counts among equals.
    pub rogue_first: bool,
}

/// What a sweep found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Swept {
    /// The share of right answers that are in their places.
    pub recall: f64,
    /// How many poisoned rows are in any.
    pub leaked: usize,
}

/// Asks all questions of a scene.
pub async fn sweep(scene: Scene) -> Result<Swept> {
    let router = scene.router()?;
    let (mut found, mut leaked) = (0, 0);
    for question in 0..QUESTIONS {
        let asked = Question::new(whose(), &query(question), K, NOW);
        let mut ask = Ask::new(asked);
        (ask.fusion, ask.quorum) = (Some(scene.fusion), scene.quorum);
        let hits = router.recall(&ask, Vec::new()).await?.hits;
        let told = |text: &str| hits.iter().any(|hit| hit.record.content == text);
        let right = order(question).into_iter().take(RIGHT);
        found += right.filter(|memory| told(&truth(*memory).content)).count();
        leaked += hits.iter().filter(|hit| hit.record.content.starts_with(POISON)).count();
    }
    Ok(Swept { recall: found as f64 / (QUESTIONS * RIGHT) as f64, leaked })
}

/// What every poisoned row says first.
const POISON: &str = "poison";

impl Scene {
    fn router(&self) -> Result<Router> {
        let mut stores = vec![
            ("one", Scripted::new(|question| honest(order(question)))),
            ("two", Scripted::new(|question| honest(another_order(question)))),
        ];
        let rogue = ("rogue", Scripted::new(|question| self.rogue(question)));
        stores.insert(if self.rogue_first { 0 } else { stores.len() }, rogue);
        let slot = |(name, store): (&str, Scripted)| {
            let mapping = Arc::new(InMemory::default());
            Arc::new(Slot::new(name, Arc::new(store), mapping, Terms::default()))
        };
        Router::new(stores.into_iter().map(slot).collect(), Options::default())
    }

    /// What the rogue answers: its own rows, then what an honest store would say.
    fn rogue(&self, question: usize) -> Vec<(Record, f64)> {
        let order = another_order(question);
        let poisoned = |row: usize| match self.attack {
            Attack::Invent => record(&format!("p{row:02}"), &format!("{POISON} number {row}")),
            Attack::Forge => record(&name(row), &format!("{POISON} number {row}")),
            Attack::Lift => truth(order[RIGHT + row % (MEMORIES - RIGHT)]),
        };
        let scored = |row: usize| (poisoned(row), self.score * (1.0 - 0.001 * row as f64));
        (0..self.budget).map(scored).chain(honest(order.clone())).collect()
    }
}

/// The right answers first, then the rest in an order of the question's own.
fn order(question: usize) -> Vec<usize> {
    (0..MEMORIES).map(|place| (question * RIGHT + place * 7) % MEMORIES).collect()
}

/// The right answers first, and the rest in another order.
fn another_order(question: usize) -> Vec<usize> {
    let mut order = order(question);
    order[RIGHT..].reverse();
    order[RIGHT..].rotate_left(MEMORIES - 10);
    order
}

fn honest(order: Vec<usize>) -> Vec<(Record, f64)> {
    let row = |(place, memory): (usize, usize)| (truth(memory), 1.0 - 0.01 * place as f64);
    order.into_iter().enumerate().map(row).collect()
}

fn whose() -> Whose {
    Whose { agent: "agent-a".into(), user: None }
}

fn query(question: usize) -> String {
    format!("question {question}")
}

fn name(memory: usize) -> String {
    format!("m{memory:02}")
}

fn truth(memory: usize) -> Record {
    record(&name(memory), &format!("memory number {memory}"))
}

fn record(id: &str, text: &str) -> Record {
    Record::new(id, &whose(), Type::Semantic, text, NOW)
}

/// A store whose answers are written down beforehand. It takes nothing.
#[derive(Debug)]
struct Scripted(BTreeMap<String, Vec<(Record, f64)>>);

impl Scripted {
    fn new(answer: impl Fn(usize) -> Vec<(Record, f64)>) -> Self {
        Self((0..QUESTIONS).map(|question| (query(question), answer(question))).collect())
    }
}

fn read_only<T: Send + 'static>() -> BoxFuture<'static, Result<T>> {
    async { Err(Error::Unsupported("the answers are written down".into())) }.boxed()
}

impl MemoryStore for Scripted {
    fn capabilities(&self) -> Capabilities {
        Capabilities::from([Capability::Semantic])
    }

    fn health(&self) -> BoxFuture<'_, Result<Health>> {
        async { Ok(Health::ok("scripted")) }.boxed()
    }

    fn keeps(&self) -> Keeps {
        Keeps::Everything
    }

    fn remember<'a>(&'a self, _record: &'a Record) -> BoxFuture<'a, Result<String>> {
        read_only()
    }

    fn locate<'a>(&'a self, _: &'a Whose, _: &'a str) -> BoxFuture<'a, Result<Option<String>>> {
        read_only()
    }

    fn recall<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<Vec<Found>>> {
        async move {
            let answer = self.0.get(&question.query).into_iter().flatten().enumerate();
            let found = |(place, (record, score)): (usize, &(Record, f64))| {
                Found::new(place.to_string(), record.clone(), *score)
            };
            Ok(answer.map(found).collect())
        }
        .boxed()
    }

    fn list<'a>(&'a self, _: &'a Whose, _: Option<&'a str>) -> BoxFuture<'a, Result<Page>> {
        read_only()
    }

    fn forget<'a>(&'a self, _: &'a Whose, _: &'a str, _: Depth) -> BoxFuture<'a, Result<bool>> {
        read_only()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Scene = Scene {
        attack: Attack::Invent,
        budget: 0,
        score: 1.0,
        fusion: Fusion::Rrf,
        quorum: 1,
        rogue_first: true,
    };
    const WHOLE: Swept = Swept { recall: 1.0, leaked: 0 };

    /// All budgets where the full counts are asked for, else some of them.
    fn budgets() -> impl Iterator<Item = usize> {
        let step = if std::env::var_os("YORE_FULL").is_some() { 1 } else { 10 };
        (0..=MOST).step_by(step)
    }

    async fn withstands(scene: Scene) {
        assert_eq!(sweep(scene).await.unwrap(), WHOLE, "{scene:?}");
    }

    #[tokio::test]
    async fn mw_084_poisoned_rows_neither_leak_nor_push_anything_out() {
        for budget in budgets() {
            for score in [1.0, 2.0, 10.0, f64::INFINITY, f64::NAN, -1.0, 1e300] {
                for fusion in [Fusion::Rrf, Fusion::Weighted] {
                    for attack in [Attack::Invent, Attack::Forge] {
                        let rogue_first = budget.is_multiple_of(20);
                        withstands(Scene { attack, budget, score, fusion, rogue_first, ..PLAIN })
                            .await;
                    }
                }
            }
        }
    }

    #[tokio::test]
    async fn mw_201_a_quorum_of_two_withstands_ids_that_exist_elsewhere() {
        for budget in budgets() {
            for score in [1.0, 2.0, 10.0, f64::INFINITY, f64::NAN] {
                for fusion in [Fusion::Rrf, Fusion::Weighted, Fusion::Max] {
                    for attack in [Attack::Invent, Attack::Forge, Attack::Lift] {
                        withstands(Scene { attack, budget, score, fusion, quorum: 2, ..PLAIN })
                            .await;
                    }
                }
            }
        }
    }

    #[tokio::test]
    async fn without_a_defence_the_sweep_fails() {
        let max = Scene { budget: MOST, score: 10.0, fusion: Fusion::Max, ..PLAIN };
        let swept = sweep(max).await.unwrap();
        assert!(swept.recall < 1.0 && swept.leaked > 0, "{swept:?}");
        let lifted = Scene { attack: Attack::Lift, budget: MOST, ..PLAIN };
        let swept = sweep(lifted).await.unwrap();
        assert!(swept.recall < 1.0, "true memories lifted by one store push others out: {swept:?}");
    }
}

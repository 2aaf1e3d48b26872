//! Many agents and many writes in one vault. `YORE_FULL` asks for the counts of the requirement.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::Request;
use futures::future::join_all;
use serde_json::{Value, json};
use yore_domain::query::{Corpus, Cutoff, Effort, Filter, Recall};
use yore_domain::scope::Scope;

use crate::support::{AGENT, Vault};

/// How many memories answer each question.
const ANSWERS: usize = 5;
/// How many questions each agent asks.
const QUESTIONS: usize = 5;
/// How many writes are under way at once.
const AT_ONCE: usize = 50;

fn full() -> bool {
    std::env::var_os("YORE_FULL").is_some()
}

/// A word that nobody uses, another for each number.
fn word(number: usize) -> String {
    const STARTS: [&str; 8] = ["bra", "clo", "dri", "fle", "gru", "ska", "tro", "vli"];
    const ENDS: [&str; 8] = ["mond", "vek", "zarn", "pilt", "quor", "shen", "buck", "ject"];
    let (first, rest) = (number % 8, number / 8);
    let (second, third) = (rest % 8, rest / 8 % 8);
    format!("{}{}{}", STARTS[first], STARTS[third], ENDS[second])
}

/// The words that the memories of one topic share.
fn topic(number: usize) -> String {
    format!("{} {}", word(number), word(number * 7 + 3))
}

/// What an agent remembers under a number. All agents speak of the same topics.
fn content(agent: usize, number: usize) -> String {
    let (topic, part) = (topic(number / ANSWERS), number % ANSWERS);
    format!("Note {part} on {topic} by clerk {agent}.")
}

/// The memories of an agent that say the words of a topic, found by looking at all of them.
fn exact(agent: usize, memories: usize, words: &str) -> BTreeSet<String> {
    let all = (0..memories).map(|number| content(agent, number));
    all.filter(|text| text.contains(words)).collect()
}

/// Writes without looking at the answer's schema, which would take longer than the writes.
async fn write(vault: &Vault, body: Value) {
    let request = Request::post("/memorywire/v0/remember")
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {}", vault.owner))
        .body(Body::from(body.to_string()))
        .unwrap();
    vault.send(request).await.expect(200);
}

async fn write_all(vault: &Vault, bodies: Vec<Value>) {
    for some in bodies.chunks(AT_ONCE) {
        join_all(some.iter().map(|body| write(vault, body.clone()))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mw_076_every_agent_among_many_finds_what_exact_search_finds() {
    let (agents, memories) = if full() { (100, 1000) } else { (20, 200) };
    let vault = Vault::new().await;
    for agent in 0..agents {
        let body = |number| {
            let content = content(agent, number);
            json!({"agent_id": format!("clerk-{agent}"), "type": "semantic", "content": content})
        };
        write_all(&vault, (0..memories).map(body).collect()).await;
    }
    let topics = memories / ANSWERS;
    for agent in 0..agents {
        for question in 0..QUESTIONS {
            let words = topic((agent + question * topics / QUESTIONS) % topics);
            let expected = exact(agent, memories, &words);
            assert_eq!(expected.len(), ANSWERS, "{words} is asked of five memories");
            let asked = json!({
                "agent_id": format!("clerk-{agent}"), "query": format!("notes on {words}"), "k": 5,
            });
            let found: BTreeSet<String> = vault.texts(asked).await.into_iter().collect();
            assert_eq!(found, expected, "clerk {agent}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mw_076_many_writes_that_wait_change_neither_the_ranking_nor_the_work_of_a_recall() {
    let waiting = if full() { 10_000 } else { 500 };
    let vault = Vault::new().await;
    let live =
        |number| json!({"agent_id": AGENT, "type": "semantic", "content": content(0, number)});
    write_all(&vault, (0..50).map(live).collect()).await;
    let questions: Vec<String> = (0..10).map(topic).collect();
    let before = looked(&vault, &questions).await;
    assert!(before.iter().all(|(hits, _)| hits.len() == ANSWERS), "{before:?}");
    let held = |number: usize| {
        let content = format!("{} {number}", questions[number % questions.len()]);
        json!({
            "agent_id": AGENT, "type": "semantic", "content": content, "approval_required": true,
        })
    };
    write_all(&vault, (0..waiting).map(held).collect()).await;
    assert_eq!(looked(&vault, &questions).await, before);
}

/// What each question finds, and how many candidates the engine weighed for it.
async fn looked(vault: &Vault, questions: &[String]) -> Vec<(Vec<Value>, usize)> {
    let mut looked = Vec::new();
    for query in questions {
        let hits = vault.hits(json!({"query": query, "k": ANSWERS})).await;
        let recall = Recall {
            query: query.clone(),
            corpus: Corpus::Memories,
            filter: Filter::default(),
            near: Scope::default(),
            limit: ANSWERS,
            effort: Effort::Instant,
            prefer: Vec::new(),
            cutoff: Cutoff::Off,
        };
        let recalled = vault.engine.recall(&vault.owner_call(), recall).await.unwrap();
        looked.push((hits, recalled.considered));
    }
    looked
}

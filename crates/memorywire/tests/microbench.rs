//! The corpus of the protocol's authors, asked over the REST surface.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::Vault;

/// What of the labelled questions must be found, and how many of the others may stay unanswered.
const FIRST: usize = 36;
const EMPTY: usize = 5;

#[tokio::test]
async fn every_labelled_question_is_answered_and_nonsense_is_not() {
    let Some(data) = std::env::var_os("YORE_TESTDATA") else {
        println!("NOT RUN: YORE_TESTDATA is not set");
        return;
    };
    let corpus = std::fs::read(Path::new(&data).join("memorywire/microbench.json")).unwrap();
    let corpus: Value = serde_json::from_slice(&corpus).unwrap();
    let vault = Vault::new().await;
    let mut names = BTreeMap::new();
    for fact in corpus["facts"].as_array().unwrap() {
        let body =
            json!({"type": fact["type"], "content": fact["content"], "user_id": fact["user"]});
        names.insert(vault.holds(body).await, fact["id"].as_str().unwrap().to_owned());
    }
    vault.engine.settle().await.unwrap();

    let (mut first, mut empty, mut labelled, mut others) = (0, 0, 0, 0);
    for query in corpus["queries"].as_array().unwrap() {
        let mut asked = json!({"query": query["query"], "k": 5});
        if query["user"].is_string() {
            asked["user_id"] = query["user"].clone();
        }
        let hits = vault.hits(asked).await;
        let found: Vec<&str> =
            hits.iter().map(|hit| names[hit["id"].as_str().unwrap()].as_str()).collect();
        let gold: Vec<&str> =
            query["gold_ids"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
        if gold.is_empty() {
            others += 1;
            empty += usize::from(found.is_empty());
        } else {
            labelled += 1;
            assert!(gold.iter().any(|id| found.contains(id)), "{query}: {found:?}");
            first += usize::from(found.first().is_some_and(|id| gold.contains(id)));
        }
    }
    assert_eq!((labelled, others), (42, 8));
    assert!(first >= FIRST, "first: {first} of {labelled}");
    assert!(empty >= EMPTY, "empty: {empty} of {others}");
}

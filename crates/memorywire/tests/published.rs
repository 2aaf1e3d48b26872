//! What the protocol's authors published: examples of requests and answers, and facts with
//! questions about them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{AGENT, Vault, valid};

fn published() -> Option<PathBuf> {
    let Some(data) = std::env::var_os("YORE_TESTDATA") else {
        println!("NOT RUN: YORE_TESTDATA is not set");
        return None;
    };
    Some(Path::new(&data).join("memorywire"))
}

fn document(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[tokio::test]
async fn the_published_examples_are_understood_and_fit_the_schemas() {
    let Some(place) = published() else { return };
    let vault = Vault::new().await;
    let mut seen = 0;
    for operation in ["remember", "recall", "forget", "merge", "expire"] {
        for file in std::fs::read_dir(place.join("examples").join(operation)).unwrap() {
            let example = document(&file.unwrap().path());
            valid(operation, &example["request"]);
            valid(&format!("{operation}.response"), &example["response"]);
            vault.ask(&vault.owner, operation, &example["request"]).await.expect(200);
            seen += 1;
        }
    }
    assert!(seen >= 15, "{seen}");
}

#[tokio::test]
async fn the_published_questions_are_answered() {
    let Some(place) = published() else { return };
    let bench = document(&place.join("microbench.json"));
    let vault = Vault::new().await;
    let mut ids = std::collections::HashMap::new();
    for fact in bench["facts"].as_array().unwrap() {
        let body = json!({
            "agent_id": AGENT, "user_id": fact["user"], "type": fact["type"],
            "content": fact["content"],
        });
        let reply = vault.ask(&vault.owner, "remember", &body).await;
        // Two of them are called procedural and are no machines; no question is about them.
        if fact["type"] == "procedural" && reply.status == 400 {
            continue;
        }
        let stored = reply.expect(200)["id"].clone();
        ids.insert(fact["id"].as_str().unwrap().to_owned(), stored);
    }
    let (mut asked, mut first, mut missed, mut empty) = (0, 0, Vec::new(), 0);
    for question in bench["queries"].as_array().unwrap() {
        let query = question["query"].as_str().unwrap();
        let gold: Vec<&Value> = question["gold_ids"].as_array().unwrap().iter().collect();
        let hits = vault.hits(json!({"query": query, "user_id": question["user"], "k": 5})).await;
        if gold.is_empty() {
            empty += usize::from(hits.is_empty());
            continue;
        }
        let gold: Vec<&Value> = gold.iter().map(|id| &ids[id.as_str().unwrap()]).collect();
        asked += 1;
        first += usize::from(hits.first().is_some_and(|hit| gold.contains(&&hit["id"])));
        if !gold.iter().all(|id| hits.iter().any(|hit| hit["id"] == **id)) {
            missed.push(query);
        }
    }
    println!("{asked} questions, {first} answered first, {empty} of 8 rightly empty");
    assert_eq!(asked, 42);
    assert!(missed.is_empty(), "{missed:?}");
    assert!(first >= 36, "{first} of 42");
    assert!(empty >= 5, "{empty} of 8");
}

//! A store beside the vault that hangs, talks nonsense, fails or dies in the middle of a write, seen
//! over REST: operations end in time and say who lacks what, and later nothing is lost or doubled.

use std::future::Future;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use yore_router::config::StoreConfig;

use crate::fakes;
use crate::http::Reply;
use crate::stores::{self, Beside};
use crate::support::USER;

/// How long the store may take for an operation.
const DEADLINE: u64 = 300;
/// How long an operation may take in all, on a machine that has other work.
const IN_TIME: Duration = Duration::from_secs(5);
/// How long it may take until a store that is well again has everything.
const MENDED: Duration = Duration::from_secs(60);

async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> T {
    let begun = Instant::now();
    let done = work.await;
    assert!(begun.elapsed() < IN_TIME, "{what} took {:?}", begun.elapsed());
    done
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(tokio::time::timeout(MENDED, waiting).await.is_ok(), "{what} never came");
}

/// The store does what it is asked, and its answers go wrong like this for a while.
async fn goes_wrong(trouble: Reply) {
    let (address, state) = fakes::mem0().await;
    let mut config = StoreConfig::new("mem0", format!("mem0://{address}"));
    config.deadline_ms = DEADLINE;
    let Beside { vault, slot, .. } = &stores::with(config, None).await;
    *state.trouble.lock() = Some(trouble.clone());

    let body = json!({"type": "semantic", "content": "the ferry leaves at six", "user_id": USER});
    let stored = in_time("remember", vault.ok("remember", body)).await;
    assert_eq!(stored["stores"], json!(["yore"]), "the other does not have it, or cannot say so");
    let id = stored["id"].as_str().unwrap();
    let asked = json!({"query": "when does the ferry leave"});
    let found = in_time("recall", vault.ok("recall", asked.clone())).await;
    assert_eq!(contents(&found), ["the ferry leaves at six"]);
    let listed = in_time("list", vault.ok("stores/list", json!({}))).await;
    assert_eq!(listed["stores"][0]["store"], "mem0");
    assert!(listed["stores"][0]["error"].is_string(), "{listed}");

    *state.trouble.lock() = None;
    until("the write", async || slot.has(id).await.unwrap()).await;
    assert_eq!(state.len(), 1, "delivered, and not doubled");
    let found = vault.ok("recall", asked.clone()).await;
    assert_eq!(contents(&found), ["the ferry leaves at six"]);

    *state.trouble.lock() = Some(trouble);
    let gone = in_time("forget", vault.ok("forget", json!({"ids": [id]}))).await;
    assert_eq!(gone["forgotten_ids"], json!([id]));
    assert_eq!(gone["stores"][1]["store"], "mem0");
    assert!(gone["stores"][1]["error"].is_string(), "{gone}");
    let found = in_time("recall", vault.ok("recall", asked)).await;
    assert_eq!(found["results"], json!([]), "what the vault forgot is not shown");
    *state.trouble.lock() = None;
    until("the removal", async || !slot.has(id).await.unwrap() && state.len() == 0).await;
}

fn contents(recalled: &Value) -> Vec<&str> {
    let hits = recalled["results"].as_array().unwrap();
    hits.iter().map(|hit| hit["content"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn mw_087_a_store_that_hangs_stops_nobody_and_catches_up() {
    goes_wrong(Reply::Hang).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mw_087_a_store_that_talks_nonsense_stops_nobody_and_catches_up() {
    goes_wrong(Reply::Raw(b"\x00\xffno protocol at all\r\n\r\n")).await;
    goes_wrong(Reply::Text("<html>".into())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mw_087_a_store_that_fails_stops_nobody_and_catches_up() {
    goes_wrong(Reply::Json(500, json!({"detail": "oops"}))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mw_087_a_store_that_dies_in_the_middle_stops_nobody_and_catches_up() {
    goes_wrong(Reply::Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{\"res")).await;
}

//! Jobs that the end of a server cut off go on with the next one.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use serde_json::{Value, json};
use yore_domain::Span;
use yore_domain::grant::Verb;
use yore_domain::job::Job;
use yore_domain::query::Filter;
use yore_engine::{Call, Secret, Work};

use crate::support::{Vault, record, talk};

async fn ended(vault: &Vault, token: &str, path: &str) -> Value {
    loop {
        let state = vault.ask(Method::GET, token, path, &[], &Value::Null).await.expect(200);
        if ["completed", "failed"].contains(&state["status"].as_str().unwrap()) {
            return state;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn downloaded(vault: &Vault, token: &str, state: &Value) -> Vec<u8> {
    let url = state["download_url"].as_str().unwrap();
    let archive = vault.ask(Method::GET, token, url, &[], &Value::Null).await;
    assert_eq!(archive.status, 200);
    archive.bytes
}

async fn backup(vault: &Vault) -> Vec<u8> {
    let begun = vault.post("/backup", &json!({})).await;
    let path = begun.header("location").to_owned();
    let state = ended(vault, &vault.owner, &path).await;
    downloaded(vault, &vault.owner, &state).await
}

/// A job that a server had begun when it ended, with a part of its file.
async fn cut_off(vault: &Vault, token: &str, sealed: bool) -> Job {
    let call = Call::bearer("test", Secret::new(token));
    let asked = json!({"filter": Filter::default(), "sealed": sealed});
    let job = vault.engine.begin_work(&call, Work::Archive, asked).await.unwrap();
    let kept_until = job.created.plus(Span::days(7)).micros();
    std::fs::create_dir_all(vault.spool()).unwrap();
    let file = vault.spool().join(format!("{}-{kept_until}.omp.zip.enc", job.id));
    std::fs::write(file, "Salted__ and no more").unwrap();
    job
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn omp_117_a_backup_that_was_cut_off_is_written_after_the_restart() {
    let vault = Vault::new().await;
    vault.holds(&talk("Tea", "one", "two")).await;
    vault.post("/memories", &record("fact", "likes tea")).await.expect(201);
    let expected = backup(&vault).await;
    let job = cut_off(&vault, &vault.owner, false).await;
    let sealed = cut_off(&vault, &vault.owner, true).await;
    let (path, lost) = (format!("/backup/{}", job.id), format!("/backup/{}", sealed.id));
    let owner = vault.owner.clone();
    let vault = vault.restarted(Span::seconds(60)).await;
    let waiting = vault.ask(Method::GET, &owner, &path, &[], &Value::Null).await.expect(200);
    assert_eq!(waiting["status"], "queued");
    vault.omp.resume().await.unwrap();
    let state = ended(&vault, &owner, &path).await;
    assert_eq!(state["status"], "completed", "{state}");
    assert_eq!(downloaded(&vault, &owner, &state).await, expected);
    // A password of the user's is kept nowhere, so such a backup is begun again by the user.
    let state = ended(&vault, &owner, &lost).await;
    assert_eq!(state["status"], "failed");
    assert!(state["error"].as_str().unwrap().contains("begin again"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn omp_117_a_delegates_backup_goes_on_as_the_delegate_or_not_at_all() {
    let vault = Vault::new().await;
    vault.holds(&talk("Tea", "one", "two")).await;
    let mut hidden = talk("Hidden", "one", "two");
    hidden["x_yore"] = json!({"governance": {"labels": ["health"], "sensitivity": "restricted"}});
    vault.holds(&hidden).await;
    let verbs = [Verb::Read, Verb::Export];
    let (stays, goes) = (vault.agent("stays", &verbs).await, vault.agent("goes", &verbs).await);
    let (kept, lost) = (cut_off(&vault, &stays, false).await, cut_off(&vault, &goes, false).await);
    let grants = vault.engine.grants(&vault.owner_call()).await.unwrap();
    let revoked = grants.iter().find(|grant| grant.agent.as_str() == "goes").unwrap();
    vault.engine.revoke_grant(&vault.owner_call(), revoked.id).await.unwrap();
    let owner = vault.owner.clone();
    let vault = vault.restarted(Span::seconds(60)).await;
    vault.omp.resume().await.unwrap();
    let state = ended(&vault, &stays, &format!("/backup/{}", kept.id)).await;
    assert_eq!(state["status"], "completed", "{state}");
    assert_eq!(state["counts"]["conversations"], 1, "no more than its grant shows");
    assert!(!downloaded(&vault, &stays, &state).await.is_empty());
    let call = Call::bearer("test", Secret::new(owner));
    let job = vault.engine.job(&call, lost.id).await.unwrap();
    assert!(job.state.is_final() && job.error.is_some(), "{job:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn omp_119_a_restore_that_was_cut_off_goes_on_and_nothing_is_lost_or_doubled() {
    const TALKS: usize = 300;
    let source = Vault::new().await;
    for number in 0..TALKS {
        source.holds(&talk(&format!("Talk {number}"), "one", "two")).await;
    }
    let archive = backup(&source).await;
    let mut vault = Vault::new().await;
    let owner = vault.owner.clone();
    let request = Request::post("/restore")
        .header("authorization", format!("Bearer {owner}"))
        .header("content-type", "application/zip")
        .body(Body::from(archive.clone()))
        .unwrap();
    let begun = vault.send(request).await;
    let path = begun.header("location").to_owned();
    begun.expect(202);
    let mut restarts = 0;
    // The server ends again and again while it is at work.
    loop {
        tokio::time::sleep(Duration::from_millis(40)).await;
        let state = vault.ask(Method::GET, &owner, &path, &[], &Value::Null).await.expect(200);
        if state["status"] == "completed" || restarts == 5 {
            break;
        }
        restarts += 1;
        vault = vault.restarted(Span::seconds(60)).await;
        vault.omp.resume().await.unwrap();
    }
    let state = ended(&vault, &owner, &path).await;
    assert_eq!(state["status"], "completed", "{state}");
    assert!(restarts > 0, "it was never cut off");
    let counts = &state["summary"]["conversations"];
    let (imported, skipped) = (&counts["imported"], &counts["skipped"]);
    let all = imported.as_u64().unwrap() + skipped.as_u64().unwrap();
    assert_eq!(all as usize, TALKS, "each is counted once: {counts}");
    assert_eq!(backup(&vault).await, archive, "the same content, the same bytes");
    assert_eq!(std::fs::read_dir(vault.spool()).unwrap().count(), 1, "only the backup waits");
}

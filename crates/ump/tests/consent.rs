//! Retention, export and redaction.

use serde_json::json;
use yore_canon::seal;
use yore_domain::Span;
use yore_domain::grant::Verb;
use yore_domain::query::PageRequest;
use yore_ump::files::{Export, Redaction};

use crate::support::{Vault, object};

#[tokio::test]
async fn ump_057_redaction_applies_to_everyone_but_the_owner() {
    let vault = Vault::new().await;
    let mut said = vault.said("the door code");
    said["body"]["structured"] = json!({"code": "1234", "door": "front"});
    said["provenance"]["source"] = json!({"ref": "my diary"});
    said["consent"] = json!({"redact": ["body.structured.code", "provenance.source"]});
    let id = vault.remember(said).await;
    let own = vault.record(&vault.owner, &id).await.ok()["record"].clone();
    assert_eq!(own["body"]["structured"]["code"], "1234");
    assert!(seal::verify(&object(&own)).is_ok());
    let agent = vault.agent("scheduler", &[Verb::Read, Verb::Export]).await;
    let got = vault.record(&agent, &id).await.ok();
    let recalled = vault.post(&agent, "/ump/recall", &json!({"query": "door"})).await.ok();
    for copy in [&got["record"], &recalled["results"][0]["record"]] {
        assert_eq!(copy["body"]["structured"], json!({"door": "front"}));
        assert!(copy["provenance"].get("source").is_none());
        assert!(copy.get("integrity").is_none(), "no stale proof");
        assert!(!copy.to_string().contains("1234") && !copy.to_string().contains("diary"));
    }
}

#[tokio::test]
async fn ump_057_what_may_be_kept_no_longer_is_not_recalled() {
    let vault = Vault::new().await;
    let mut said = vault.said("tea");
    said["consent"] = json!({"retention": "P1D"});
    let id = vault.remember(said).await;
    vault.clock.advance(Span::days(1));
    assert!(vault.texts(&vault.owner, json!({"query": "tea"})).await.is_empty());
    let record = vault.record(&vault.owner, &id).await.ok()["record"].clone();
    assert_eq!(record["lifecycle"]["status"], "tombstoned", "the end is part of the span");
    let mut late = vault.said("old");
    late["time"] = json!({"created": "2026-01-01T00:00:00Z"});
    late["consent"] = json!({"retention": "P1D"});
    let refused = vault.post(&vault.owner, "/ump/remember", &late).await;
    assert_eq!(refused.refusal(), (400, "consent_violation"));
}

#[tokio::test]
async fn ump_049_what_may_not_be_exported_is_not_public() {
    let vault = Vault::new().await;
    let mut said = vault.said("tea");
    said["consent"] = json!({"exportable": false});
    said["scope"]["visibility"] = json!("public");
    let refused = vault.post(&vault.owner, "/ump/remember", &said).await;
    assert_eq!(refused.refusal(), (400, "consent_violation"));
}

#[tokio::test]
async fn ump_104_exports_honour_consent() {
    let vault = Vault::new().await;
    let mut kept = vault.said("stays here");
    kept["consent"] = json!({"exportable": false});
    vault.remember(kept).await;
    let mut said = vault.said("the door code");
    said["body"]["structured"] = json!({"code": "1234"});
    said["consent"] = json!({"redact": ["body.structured.code"]});
    vault.remember(said).await;
    let page = || PageRequest { limit: 10, ..PageRequest::default() };
    let call = vault.owner_call();
    let shared =
        vault.ump.export(&call, Default::default(), page(), Export::default()).await.unwrap();
    assert_eq!(shared.records.len(), 1);
    assert_eq!(shared.records[0]["body"]["structured"], json!({}));
    assert!(!shared.records[0].contains_key("integrity"));
    let own = vault
        .ump
        .export(
            &call,
            Default::default(),
            page(),
            Export { redaction: Redaction::Keep, ..Export::default() },
        )
        .await
        .unwrap();
    assert_eq!(own.records.len(), 2);
    assert!(own.records.iter().all(|record| seal::verify(record).is_ok()));
}

#[tokio::test]
async fn ump_057_a_revision_by_who_sees_a_part_keeps_the_rest() {
    let vault = Vault::new().await;
    let mut said = vault.said("the door code");
    said["body"]["structured"] = json!({"code": "1234"});
    said["lifecycle"] = json!({"confidence": 0.5});
    said["provenance"]["source"] = json!({"ref": "my diary"});
    said["provenance"]["evidence"] = json!([{"ref": "a note"}]);
    said["consent"] = json!({"redact": ["body.structured.code", "provenance.source"]});
    let id = vault.remember(said).await;
    let agent = vault.agent("scheduler", &[Verb::Read, Verb::Write, Verb::Derive]).await;
    let body = json!({"id": id, "patch": {"body": {"text": "the back door code"}}});
    let refused = vault.post(&agent, "/ump/revise", &body).await;
    assert_eq!(refused.refusal(), (400, "consent_violation"), "it would lose the code");
    assert!(refused.body.to_string().contains("body"), "{}", refused.body);

    let sure = json!({"id": id, "patch": {"lifecycle": {"confidence": 0.9}}});
    let retry = async || {
        let request = axum::http::Request::post("/ump/revise")
            .header("authorization", format!("Bearer {agent}"))
            .header("content-type", "application/json")
            .header("yore-operation-id", "op-1")
            .body(axum::body::Body::from(sure.to_string()))
            .unwrap();
        crate::support::reply(vault.send(request).await).await.ok()
    };
    let answer = retry().await;
    assert_eq!(answer["supersedes"], json!([id]), "{answer}");
    assert_eq!(retry().await, answer, "a retry gets the same answer");
    let new = answer["id"].as_str().unwrap();
    let own = vault.record(&vault.owner, new).await.ok()["record"].clone();
    assert_eq!(own["lifecycle"]["confidence"], 0.9);
    assert_eq!(own["body"]["structured"]["code"], "1234", "{own}");
    assert_eq!(own["provenance"]["source"]["ref"], "my diary", "{own}");
    assert_eq!(own["provenance"]["evidence"][0]["ref"], "a note");
    assert_eq!(own["supersedes"], json!([id]));
    let copy = vault.record(&agent, new).await.ok()["record"].clone();
    assert!(!copy.to_string().contains("1234") && !copy.to_string().contains("diary"), "{copy}");
    let prior = vault.record(&vault.owner, &id).await.ok()["record"].clone();
    assert_eq!(prior["superseded_by"], json!([new]));
}

//! The record itself: both versions, signatures, and bytes that come back as they were.

use serde_json::{Value, json};
use yore_canon::seal;

use crate::support::{Vault, did_of, key, object, vectors};

/// A whole record, signed.
fn signed(seed: u8, change: impl FnOnce(&mut Value)) -> Value {
    let key = key(seed);
    let mut record = json!({
        "ump": "1.0", "id": "urn:ump:signedbyitsowner", "kind": "semantic",
        "body": {"text": "tea, no sugar "},
        "scope": {"owner": did_of(&key), "visibility": "private"},
        "time": {"created": "2026-06-04T12:00:00.500+02:00"},
    });
    change(&mut record);
    let mut object = object(&record);
    seal::seal(&mut object, &key).unwrap();
    object.into()
}

#[tokio::test]
async fn ump_030_vectors_come_back_byte_for_byte() {
    for case in vectors()["records"].as_array().unwrap() {
        let vault = Vault::new().await;
        let record = &case["record"];
        let sent = json!({"record": record});
        let answer = vault.post(&vault.owner, "/ump/remember", &sent).await.ok();
        assert_eq!(answer["id"], record["id"], "{}", case["name"]);
        let version = if record["ump"] == "0.1" { "/ump/v0.1" } else { "/ump" };
        let path = format!("{version}/memory/{}", record["id"].as_str().unwrap());
        let back = vault.get(&vault.owner, &path).await.ok()["record"].clone();
        let signer = seal::verify(&object(&back)).unwrap().signer;
        if record["integrity"]["signer"] == record["scope"]["owner"] {
            assert_eq!(&back, record, "{}", case["name"]);
        } else {
            assert_eq!(back["body"], record["body"], "{}", case["name"]);
            assert_eq!(signer.as_str(), vault.did, "another's signature is not handed on");
        }
    }
}

#[tokio::test]
async fn ump_003_an_older_record_is_rewritten_and_its_bytes_are_kept() {
    let vault = Vault::new().await;
    let old = signed(3, |record| record["ump"] = json!("0.1"));
    let answer = vault.post(&vault.owner, "/ump/remember", &old).await.ok();
    let id = answer["id"].as_str().unwrap();
    let new = vault.record(&vault.owner, id).await.ok()["record"].clone();
    assert_eq!(
        (&new["ump"], &new["body"], &new["time"]["created"]),
        (&json!("1.0"), &old["body"], &old["time"]["created"])
    );
    assert_eq!(seal::verify(&object(&new)).unwrap().signer.as_str(), vault.did, "signed anew");
    let references = yore_ump::id::references(id).unwrap();
    let chain = vault
        .engine
        .chain(&vault.owner_call(), references, yore_engine::Purpose::Reading)
        .await
        .unwrap();
    let kept = chain.asked.content.seal.unwrap();
    assert_eq!(kept.format, "ump/0.1");
    assert_eq!(serde_json::from_str::<Value>(&kept.bytes).unwrap(), old);
    let back = vault.get(&vault.owner, &format!("/ump/v0.1/memory/{id}")).await.ok();
    assert_eq!(back["record"], old, "and whoever speaks it gets it as it was");
}

#[tokio::test]
async fn ump_002_both_versions_are_spoken_by_one_server() {
    let vault = Vault::new().await;
    let id = vault.remember(vault.said("tea")).await;
    let asked = |version: &str| json!({"query": "tea", "client": {"ump": version}});
    for (path, body, version) in [
        ("/ump/recall", json!({"query": "tea"}), "1.0"),
        ("/ump/recall", asked("1.0"), "1.0"),
        ("/ump/recall", asked("1.4"), "1.0"),
        ("/ump/recall", asked("0.1"), "0.1"),
        ("/ump/v0.1/recall", json!({"query": "tea"}), "0.1"),
    ] {
        let answer = vault.post(&vault.owner, path, &body).await.ok();
        let record = &answer["results"][0]["record"];
        assert_eq!(record["ump"], version, "{path} {body}");
        assert_eq!(record["id"], json!(id), "one id in both");
        assert!(seal::verify(&object(record)).is_ok(), "signed in the version it is in");
    }
    let refused = vault.post(&vault.owner, "/ump/recall", &asked("2.0")).await;
    assert_eq!(refused.refusal(), (400, "invalid_record"));
    assert_eq!(vault.get("", "/ump/capabilities").await.ok()["ump"], "1.0");
    assert_eq!(vault.get("", "/ump/v0.1/capabilities").await.ok()["ump"], "0.1");
    let strange = json!({"record": {"ump": "2.0", "kind": "semantic", "body": {"text": "x"},
        "scope": {"owner": "owner"}}});
    let refused = vault.post(&vault.owner, "/ump/remember", &strange).await;
    assert_eq!(refused.refusal(), (400, "invalid_record"));
}

#[tokio::test]
async fn ump_045_a_signature_that_does_not_fit_is_refused() {
    let vault = Vault::new().await;
    let mut tampered = signed(3, |_| {});
    tampered["body"]["text"] = json!("coffee");
    let mut foreign = signed(3, |_| {});
    foreign["integrity"]["signer"] = json!(did_of(&key(4)));
    let mut bare = signed(3, |_| {});
    bare["integrity"] = json!({"content_hash": bare["integrity"]["content_hash"]});
    for record in [tampered, foreign, bare] {
        let refused = vault.post(&vault.owner, "/ump/remember", &record).await;
        assert_eq!(refused.refusal(), (400, "signature_invalid"), "{record}");
    }
    for case in vectors()["negative"].as_array().unwrap() {
        let refused = vault.post(&vault.owner, "/ump/remember", &case["record"]).await;
        assert_eq!(refused.refusal(), (400, "signature_invalid"), "{}", case["name"]);
    }
}

#[tokio::test]
async fn ump_036_a_foreign_signer_is_countersigned_and_kept_as_evidence() {
    let vault = Vault::new().await;
    let did = vault.did.clone();
    let record = signed(3, |record| record["scope"]["owner"] = json!(did));
    let answer = vault.post(&vault.owner, "/ump/remember", &record).await.ok();
    let id = answer["id"].as_str().unwrap();
    let back = vault.record(&vault.owner, id).await.ok()["record"].clone();
    assert_eq!(seal::verify(&object(&back)).unwrap().signer.as_str(), vault.did);
    assert_eq!(back["body"], record["body"]);
    let references = yore_ump::id::references(id).unwrap();
    let chain = vault
        .engine
        .chain(&vault.owner_call(), references, yore_engine::Purpose::Reading)
        .await
        .unwrap();
    let kept = chain.asked.content.seal.unwrap();
    assert_eq!((kept.signer.as_str(), kept.by_owner), (did_of(&key(3)).as_str(), false));

    let options = yore_ump::Options { strict: yore_ump::Strictness::Strict, ..Default::default() };
    let strict = Vault::with(|_| {}, options).await;
    let did = strict.did.clone();
    let record = signed(3, |record| record["scope"]["owner"] = json!(did));
    let refused = strict.post(&strict.owner, "/ump/remember", &record).await;
    assert_eq!(refused.refusal(), (400, "signature_invalid"));
}

#[tokio::test]
async fn ump_038_a_mark_on_a_signed_record_is_signed_by_the_vault() {
    let vault = Vault::new().await;
    let record = signed(3, |_| {});
    let id = vault.remember(record.clone()).await;
    assert_eq!(vault.record(&vault.owner, &id).await.ok()["record"], record);
    vault.post(&vault.owner, "/ump/forget", &json!({"id": id, "reason": "x"})).await.ok();
    let gone = vault.record(&vault.owner, &id).await.ok()["record"].clone();
    assert_eq!(gone["lifecycle"]["status"], "tombstoned");
    assert_eq!((&gone["id"], &gone["body"]), (&record["id"], &record["body"]));
    assert_eq!(gone["time"]["created"], "2026-06-04T12:00:00.500+02:00", "times as received");
    assert_eq!(seal::verify(&object(&gone)).unwrap().signer.as_str(), vault.did);
}

#[tokio::test]
async fn what_another_surface_wrote_is_a_record_too() {
    use yore_domain::memory::{Body, Draft};
    use yore_domain::mutation::{Mutation, Patch};
    let vault = Vault::new().await;
    let call = vault.owner_call();
    let remember = Mutation::Remember { draft: Box::new(Draft::text("tea")), id: None };
    let memory =
        vault.engine.mutate(&call, remember, Default::default()).await.unwrap().memories[0].memory;
    let first = vault.record(&vault.owner, &memory.to_string()).await.ok()["record"].clone();
    assert_eq!(first["scope"]["owner"], json!(vault.did));
    assert_eq!(first["id"].as_str().unwrap().len(), 8 + 26);
    let body = Some(Body { text: "coffee".into(), structured: None });
    let patch = Box::new(Patch { body, ..Patch::default() });
    let revise = Mutation::Revise { memory, patch, expected: None };
    vault.engine.mutate(&call, revise, Default::default()).await.unwrap();
    let second = vault.record(&vault.owner, &memory.to_string()).await.ok()["record"].clone();
    assert_eq!(second["supersedes"], json!([first["id"]]));
    let prior = vault.record(&vault.owner, first["id"].as_str().unwrap()).await.ok();
    assert_eq!(prior["record"]["superseded_by"], json!([second["id"]]));

    let id = vault.remember(vault.said("jam")).await;
    let references = yore_ump::id::references(&id).unwrap();
    let memory = vault
        .engine
        .chain(&call, references, yore_engine::Purpose::Reading)
        .await
        .unwrap()
        .asked
        .memory;
    let body = Some(Body { text: "honey".into(), structured: None });
    let patch = Box::new(Patch { body, ..Patch::default() });
    let revise = Mutation::Revise { memory, patch, expected: None };
    vault.engine.mutate(&call, revise, Default::default()).await.unwrap();
    let head = vault.record(&vault.owner, &memory.to_string()).await.ok()["record"].clone();
    assert_ne!(head["id"], json!(id), "another statement has another id");
    assert_eq!(head["supersedes"], json!([id]));
}

#[tokio::test]
async fn ump_035_signed_bytes_are_handed_on_only_for_what_they_say() {
    let vault = Vault::new().await;
    let true_word = signed(3, |_| {});
    // Somebody put the owner's bytes beside other words.
    let mut forged = yore_domain::memory::Draft::text("tea, three sugars");
    forged.content.seal = Some(yore_domain::memory::Seal {
        format: "ump/1.0".into(),
        bytes: true_word.to_string(),
        signer: did_of(&key(3)),
        by_owner: true,
    });
    let remember = yore_domain::mutation::Mutation::Remember { draft: Box::new(forged), id: None };
    let made = vault.engine.mutate(&vault.owner_call(), remember, Default::default()).await;
    let id = yore_ump::id::of_version(made.unwrap().memories[0].version);
    let back = vault.record(&vault.owner, &id).await.ok()["record"].clone();
    assert_eq!(back["body"]["text"], "tea, three sugars");
    assert_eq!(seal::verify(&object(&back)).unwrap().signer.as_str(), vault.did);
    // The true word comes back to the last byte, with members that nobody here knows.
    let odd = signed(3, |record| {
        record["id"] = json!("urn:ump:odd");
        record["x-note"] = json!({"kept": true});
    });
    vault.post(&vault.owner, "/ump/remember", &odd).await.ok();
    let back = vault.record(&vault.owner, "urn:ump:odd").await.ok()["record"].clone();
    assert_eq!(back, odd);
}

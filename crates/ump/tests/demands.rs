//! Demands of the protocol that no other test carries in its name.

use futures::StreamExt;
use serde_json::{Value, json};
use yore_canon::seal;
use yore_domain::grant::Verb;
use yore_domain::query::PageRequest;
use yore_engine::dialect::Dialect;
use yore_engine::{Call, Item, Secret};

use crate::support::{Vault, did_of, key, object, umpcap};

#[tokio::test]
async fn ump_010_a_record_comes_back_with_all_it_needs() {
    let vault = Vault::new().await;
    let whole = vault.said("tea");
    let id = vault.remember(whole.clone()).await;
    let record = vault.record(&vault.owner, &id).await.ok()["record"].clone();
    for name in ["ump", "id", "kind", "body", "scope", "time", "provenance", "integrity"] {
        assert!(record.get(name).is_some(), "{name}: {record}");
    }
    for name in ["kind", "body", "scope"] {
        let mut partial = object(&whole);
        partial.shift_remove(name);
        let refused = vault.post(&vault.owner, "/ump/remember", &partial.into()).await;
        assert_eq!(refused.refusal(), (400, "invalid_record"), "{name}");
        assert!(refused.body["error"]["message"].as_str().unwrap().contains(name));
    }
}

#[tokio::test]
async fn ump_014_ump_018_ump_019_ump_020_members_of_the_wrong_shape_are_refused() {
    let vault = Vault::new().await;
    let cases = [
        ("body", json!({"text": ""})),
        ("body", json!({"structured": {"a": 1}})),
        ("body", json!({"text": "tea", "structured": [1]})),
        ("supersedes", json!("urn:ump:a")),
        ("supersedes", json!(["no id"])),
        ("superseded_by", json!([7])),
        ("relations", json!([{"type": "about"}])),
        ("relations", json!([{"target": "entity:tea"}])),
        ("relations", json!({"type": "about", "target": "entity:tea"})),
        ("provenance", json!({"actor": "a", "actor_kind": "user"})),
        ("provenance", json!({"actor": "a", "actor_kind": "robot", "method": "m"})),
        (
            "provenance",
            json!({"actor": "a", "actor_kind": "user", "method": "m", "evidence": [{}]}),
        ),
    ];
    for (name, value) in cases {
        let mut said = vault.said("tea");
        said[name] = value.clone();
        let refused = vault.post(&vault.owner, "/ump/remember", &said).await;
        assert_eq!(refused.refusal(), (400, "invalid_record"), "{name} = {value}");
    }
    assert!(
        vault.texts(&vault.owner, json!({"query": "tea"})).await.is_empty(),
        "nothing was kept"
    );
    let mut open = vault.said("tea");
    open["relations"] = json!([{"type": "a word of our own", "target": "entity:tea"}]);
    let id = vault.remember(open.clone()).await;
    let record = vault.record(&vault.owner, &id).await.ok();
    assert_eq!(record["record"]["relations"], open["relations"], "the vocabulary is open");
}

#[tokio::test]
async fn ump_062_what_is_out_of_scope_changes_nothing_of_a_ranking() {
    let vault = Vault::new().await;
    for text in ["tea with milk", "tea with lemon", "coffee"] {
        let mut said = vault.said(text);
        said["scope"]["project"] = json!("x");
        vault.remember(said).await;
    }
    let issuer = vault.agent("scheduler", &[Verb::Read]).await;
    let scoped = json!({"query": "tea with something", "scope": {"project": "x"}, "limit": 10});
    let order = |answer: Value| -> Vec<(String, String)> {
        let results = answer["results"].as_array().unwrap().clone();
        let one = |result: &Value| {
            (
                result["record"]["id"].to_string(),
                format!("{}{}", result["score"], result["signals"]),
            )
        };
        results.iter().map(one).collect()
    };
    let mut project = vault.said("x");
    project["scope"]["project"] = json!("y");
    let before = order(vault.post(&issuer, "/ump/recall", &scoped).await.ok());
    assert_eq!(before.len(), 3);
    for number in 0..20 {
        let mut said = project.clone();
        said["body"]["text"] = json!(format!("tea with something, number {number}"));
        vault.remember(said).await;
    }
    let after = vault.post(&issuer, "/ump/recall", &scoped).await.ok();
    assert_eq!(after["results"].as_array().unwrap().len(), 3, "{after}");
    let ids =
        |order: &[(String, String)]| order.iter().map(|one| one.0.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&order(after)), ids(&before));
}

#[tokio::test]
async fn ump_080_ump_081_every_route_is_there_and_only_descriptions_are_open() {
    let vault = Vault::new().await;
    let id = vault.remember(vault.said("tea")).await;
    for path in ["/ump/capabilities", "/.well-known/ump.json"] {
        assert_eq!(vault.get("", path).await.status, 200, "{path}");
    }
    let revise = json!({"id": id, "patch": {"body": {"text": "green tea"}}});
    let posts = [
        ("recall", json!({"query": "tea"})),
        ("remember", vault.said("coffee")),
        ("revise", revise),
        ("feedback", json!({"id": id, "outcome": "followed"})),
        ("export", json!({})),
        ("audit", json!({})),
    ];
    for prefix in ["/ump", "/ump/v0.1"] {
        for (name, body) in &posts {
            let path = format!("{prefix}/{name}");
            assert_eq!(
                vault.post("", &path, body).await.refusal(),
                (401, "unauthorized"),
                "{path}"
            );
            assert_eq!(vault.post(&vault.owner, &path, body).await.status, 200, "{path}");
        }
        for name in [format!("memory/{}", id.replace(':', "%3A")), "audit/verify".to_owned()] {
            let path = format!("{prefix}/{name}");
            assert_eq!(vault.get("", &path).await.refusal(), (401, "unauthorized"), "{path}");
            assert_eq!(vault.get(&vault.owner, &path).await.status, 200, "{path}");
        }
        let stream = vault.get("", &format!("{prefix}/subscribe")).await;
        assert_eq!(stream.refusal(), (401, "unauthorized"));
    }
    let forget = json!({"id": id, "reason": "enough"});
    assert_eq!(vault.post("", "/ump/forget", &forget).await.refusal(), (401, "unauthorized"));
}

#[tokio::test]
async fn ump_093_a_refusal_over_a_carrier_carries_the_code() {
    let vault = Vault::new().await;
    let reader = vault.agent("reader", &[Verb::Read]).await;
    let reader = Call::bearer("test", Secret::new(reader));
    let mut tampered = vault.said("tea");
    tampered["integrity"] =
        json!({"content_hash": "blake3:a", "signature": "ed25519:a", "signer": "did:key:z"});
    let mut public = vault.said("tea");
    public["scope"]["visibility"] = json!("public");
    public["consent"] = json!({"exportable": false});
    let mut major = vault.said("tea");
    major["ump"] = json!("7.0");
    let owner = vault.owner_call();
    let cases = [
        (owner.clone(), "remember", tampered, "signature_invalid"),
        (owner.clone(), "remember", public, "consent_violation"),
        (owner.clone(), "remember", major, "invalid_record"),
        (owner.clone(), "recall", json!({"query": " "}), "invalid_record"),
        (owner.clone(), "recall", json!("text"), "invalid_record"),
        (owner.clone(), "get", json!({"id": "urn:ump:aaaa"}), "not_found"),
        (owner, "dance", json!({}), "unsupported"),
        (reader.clone(), "remember", vault.said("tea"), "forbidden_scope"),
        (reader, "audit", json!({}), "forbidden_scope"),
        (Call::anonymous("test"), "recall", json!({"query": "tea"}), "unauthorized"),
        (vault.claims(&umpcap(&key(8), |_| {})), "recall", json!({"query": "tea"}), "unauthorized"),
    ];
    for (call, operation, input, code) in cases {
        let error = vault.ump.call(call, operation, input).await.unwrap_err();
        assert_eq!(error["error"]["code"], code, "{operation}: {error}");
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("{code}: ")), "{message}");
    }
}

#[tokio::test]
async fn ump_095_a_carrier_is_told_of_changes_inside_its_scope() {
    let vault = Vault::new().await;
    let input = json!({"scope": {"project": "x"}});
    let mut told = vault.ump.subscribe(vault.owner_call(), input).await.unwrap();
    vault.remember(vault.said("outside")).await;
    let mut inside = vault.said("inside");
    inside["scope"]["project"] = json!("x");
    let id = vault.remember(inside).await;
    let next = tokio::time::timeout(std::time::Duration::from_secs(10), told.next());
    let event = next.await.unwrap().unwrap();
    assert_eq!((&event["type"], &event["id"]), (&json!("created"), &json!(id)));
    assert!(seal::verify(&object(&event["record"])).is_ok());
    let stranger = vault.ump.subscribe(Call::anonymous("test"), json!({})).await;
    assert_eq!(stranger.err().unwrap()["error"]["code"], "unauthorized");
}

#[tokio::test]
async fn ump_121_a_seal_that_does_not_verify_is_not_handed_out() {
    let vault = Vault::new().await;
    let mut signed = vault.said("the owner's own word");
    signed["ump"] = json!("1.0");
    signed["id"] = json!("urn:ump:sealed");
    signed["scope"]["owner"] = json!(did_of(&key(3)));
    signed["time"] = json!({"created": "2026-06-04T10:00:00Z"});
    let proof = seal::Seal::new(seal::content_hash(&object(&signed)), &key(3)).unwrap();
    signed["integrity"] = proof.to_json();
    let id = vault.remember(signed.clone()).await;
    assert_eq!(vault.record(&vault.owner, &id).await.ok()["record"], signed);
    // Somebody reached into the rows and changed what was sealed.
    let page = PageRequest { limit: 10, ..PageRequest::default() };
    let exported =
        vault.engine.export(&vault.owner_call(), Default::default(), page).await.unwrap();
    let Item::Memory { mut versions } = exported.items[0].clone() else { panic!("a memory") };
    let sealed = versions[0].content.seal.as_mut().unwrap();
    sealed.bytes = sealed.bytes.replace("the owner's own word", "a forged word");
    let other = Vault::new().await;
    let items = vec![Item::Memory { versions }];
    other.engine.import(&other.owner_call(), items).await.unwrap();
    let record = other.record(&other.owner, &id).await.ok()["record"].clone();
    assert_eq!(
        record["body"]["text"], "the owner's own word",
        "the row counts, not the forged seal"
    );
    assert_eq!(seal::verify(&object(&record)).unwrap().signer.as_str(), other.did);
}

#[tokio::test]
async fn ump_076_another_owners_id_is_a_missing_id_before_and_after_authentication() {
    let (vault, other) = (Vault::new().await, Vault::new().await);
    let theirs = other.remember(other.said("tea")).await;
    let missing = "urn:ump:aaaaaaaaaaaaaaaaaaaaaaaaaa";
    for token in ["", &vault.owner] {
        let (one, two) = (vault.record(token, &theirs).await, vault.record(token, missing).await);
        assert_eq!((one.status, &one.body), (two.status, &two.body));
        for path in ["/ump/revise", "/ump/forget", "/ump/feedback"] {
            let body =
                |id: &str| json!({"id": id, "reason": "x", "outcome": "followed", "patch": {}});
            let one = vault.post(token, path, &body(&theirs)).await;
            let two = vault.post(token, path, &body(missing)).await;
            assert_eq!((one.status, &one.body), (two.status, &two.body), "{path}");
        }
    }
    // A token of one vault is nothing to another.
    assert_eq!(vault.record(&other.owner, &theirs).await.refusal(), (401, "unauthorized"));
}

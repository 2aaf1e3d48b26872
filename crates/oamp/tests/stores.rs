//! Whole stores: out, in, and out again.

use serde_json::{Value, json};
use yore_canon::jcs;
use yore_domain::class::Sensitivity;

use crate::model::model;
use crate::support::{USER, Vault, fact, governed, published, store};

/// A store in one order, without the moment it was made at.
fn canonical(mut store: Value) -> String {
    store.as_object_mut().unwrap().remove("exported_at");
    let entries = store["entries"].as_array_mut().unwrap();
    entries.sort_by_key(|entry| entry["id"].as_str().unwrap().to_owned());
    jcs::canonical(&store)
}

#[tokio::test]
async fn oamp_160_oamp_161_oamp_163_an_export_holds_everything() {
    let vault = Vault::new().await;
    let owner = &vault.owner;
    let exported = vault.export(owner).await;
    assert_eq!(exported["entries"], json!([]));
    assert_eq!(
        (&exported["oamp_version"], &exported["type"]),
        (&json!("1.0.0"), &json!("knowledge_store"))
    );
    assert!(exported.get("metadata").is_none() && exported["exported_at"].is_string());
    let entries: Vec<Value> = (0..1203).map(|number| fact(&format!("entry {number}"))).collect();
    let done = vault.post(owner, "/v1/import", &store(&entries)).await.expect(201);
    assert_eq!(done["imported"], 1203);
    let exported = vault.export(owner).await;
    assert_eq!(exported["entries"].as_array().unwrap().len(), 1203);
    assert_eq!(exported["oamp_version"], "1.0.0");
    vault.holds(&governed("governed", "public", &["work"])).await;
    vault.post(owner, "/v1/user-model", &model(3)).await.expect(201);
    let exported = vault.export(owner).await;
    assert_eq!(exported["oamp_version"], "1.3.0");
    assert_eq!(exported["metadata"]["user_model"], model(3));
    let reply = vault.post(owner, "/v1/export", &json!({})).await;
    assert_eq!(reply.refusal(), (400, "VALIDATION_ERROR"));
}

#[tokio::test]
async fn oamp_162_a_person_nobody_wrote_about_has_an_empty_store() {
    let vault = Vault::new().await;
    let reply = vault.post(&vault.service, "/v1/export", &json!({"user_id": "nobody"})).await;
    let exported = reply.expect(200);
    assert_eq!((&exported["entries"], &exported["user_id"]), (&json!([]), &json!("nobody")));
    let other = vault.post(&vault.owner, "/v1/export", &json!({"user_id": "nobody"})).await;
    assert_eq!(other.refusal(), (403, "FORBIDDEN"));
    assert_eq!(vault.post("", "/v1/export", &json!({"user_id": USER})).await.status, 401);
}

#[tokio::test]
async fn oamp_164_oamp_173_oamp_301_out_in_and_out_again_is_the_same() {
    let (first, second) = (Vault::new().await, Vault::new().await);
    let mut entries = vec![
        governed("one", "restricted", &["health.condition", "Odd Label"]),
        governed("two", "public", &[]),
        fact("three"),
        fact("three"),
    ];
    entries[0]["provenance"] = json!({
        "sources": [{"session_id": "s", "timestamp": "2026-01-01T00:00:00-05:00", "turn_id": "t"}],
    });
    entries[1]["governance"]["handling"] = json!({"retrieval": "ungoverned", "stream": "governed"});
    entries[2]["tags"] = json!([]);
    entries[2]["metadata"] = json!({"deep": {"er": [1, 2.5, "x", null]}});
    entries[3]["confidence"] = json!(0);
    for entry in &entries {
        first.holds(entry).await;
    }
    first.post(&first.owner, "/v1/user-model", &model(4)).await.expect(201);
    let out = first.export(&first.owner).await;
    let done = second.post(&second.owner, "/v1/import", &out).await.expect(201);
    assert_eq!(
        (&done["imported"], &done["rejected"], &done["skipped"]),
        (&json!(4), &json!(0), &json!(0))
    );
    assert_eq!(done["user_model"], "imported");
    let again = second.export(&second.owner).await;
    assert_eq!(canonical(again), canonical(out.clone()));
    let twice = second.post(&second.owner, "/v1/import", &out).await.expect(201);
    assert_eq!(
        (&twice["imported"], &twice["rejected"], &twice["skipped"]),
        (&json!(0), &json!(0), &json!(4))
    );
    assert_eq!(twice["user_model"], "skipped");
}

#[tokio::test]
async fn oamp_040_oamp_041_oamp_170_entries_of_a_store_inherit_what_they_leave_out() {
    let vault = Vault::new().await;
    let mut entry = fact("inherits");
    for name in ["oamp_version", "type"] {
        entry.as_object_mut().unwrap().remove(name);
    }
    let mut bare = store(&[entry.clone(), fact("states it")]);
    bare.as_object_mut().unwrap().remove("exported_at");
    let done = vault.post(&vault.owner, "/v1/import", &bare).await.expect(201);
    assert_eq!(
        done,
        json!({"user_id": USER, "imported": 2, "skipped": 0, "rejected": 0, "id_mappings": {}})
    );
    let read = vault.entry(&vault.owner, entry["id"].as_str().unwrap()).await.expect(200);
    assert_eq!(
        (&read["oamp_version"], &read["type"]),
        (&json!("1.2.0"), &json!("knowledge_entry"))
    );
}

#[tokio::test]
async fn oamp_042_oamp_172_the_surer_of_two_entries_wins_and_the_other_is_reported() {
    let vault = Vault::new().await;
    let entry = fact("as it stands");
    let id = vault.holds(&entry).await;
    let mut weaker = entry.clone();
    weaker["content"] = "a rumour".into();
    weaker["confidence"] = json!(0.3);
    let done = vault.post(&vault.owner, "/v1/import", &store(&[weaker])).await.expect(201);
    assert_eq!(
        (&done["imported"], &done["skipped"], &done["rejected"]),
        (&json!(0), &json!(0), &json!(1))
    );
    assert_eq!(done["rejections"][0]["id"], id.as_str());
    assert!(done["rejections"][0]["reason"].as_str().unwrap().starts_with("duplicate"));
    assert_eq!(vault.entry(&vault.owner, &id).await.expect(200), entry);
    let mut surer = governed("proven now", "confidential", &["work"]);
    surer["id"] = id.clone().into();
    surer["confidence"] = json!(0.99);
    surer["category"] = "correction".into();
    let done = vault.post(&vault.owner, "/v1/import", &store(std::slice::from_ref(&surer))).await;
    assert_eq!(done.expect(201)["imported"], 1);
    assert_eq!(vault.entry(&vault.owner, &id).await.expect(200), surer);
    // Two of one id in one store: the second meets the first.
    let (mut one, mut two) = (fact("first"), fact("second"));
    two["id"] = one["id"].clone();
    one["confidence"] = json!(0.4);
    two["confidence"] = json!(0.5);
    let done =
        vault.post(&vault.owner, "/v1/import", &store(&[one, two.clone()])).await.expect(201);
    assert_eq!(done["imported"], 2);
    let read = vault.entry(&vault.owner, two["id"].as_str().unwrap()).await.expect(200);
    assert_eq!(read, two);
}

#[tokio::test]
async fn oamp_043_oamp_044_oamp_171_every_entry_is_accounted_for() {
    let vault = Vault::new().await;
    let mut foreign = fact("someone else's");
    foreign["user_id"] = "anna".into();
    let mut unknown = fact("x");
    unknown["category"] = "opinion".into();
    let mut nameless = fact("y");
    nameless.as_object_mut().unwrap().remove("id");
    let entries =
        [fact("good"), foreign.clone(), unknown, nameless, json!("no entry"), fact("better")];
    let done = vault.post(&vault.owner, "/v1/import", &store(&entries)).await.expect(201);
    assert_eq!((&done["imported"], &done["rejected"]), (&json!(2), &json!(4)));
    assert_eq!(done["rejections"].as_array().unwrap().len(), 4);
    assert_eq!(
        done["rejections"][0],
        json!({"id": foreign["id"], "reason": "invalid user_id: is not the store's"})
    );
    assert_eq!(vault.contents(&vault.owner, "").await.len(), 2);
    for spoil in [
        |s: &mut Value| s["type"] = json!("knowledge_entry"),
        |s: &mut Value| s["oamp_version"] = json!("2.0.0"),
        |s: &mut Value| s["entries"] = json!({}),
        |s: &mut Value| drop(s.as_object_mut().unwrap().remove("entries")),
        |s: &mut Value| drop(s.as_object_mut().unwrap().remove("user_id")),
        |s: &mut Value| s["mood"] = json!(1),
        |s: &mut Value| s["exported_at"] = json!("yesterday"),
    ] {
        let mut bad = store(&[fact("never stored")]);
        spoil(&mut bad);
        let reply = vault.post(&vault.owner, "/v1/import", &bad).await;
        assert_eq!(reply.refusal(), (400, "VALIDATION_ERROR"), "{bad}");
    }
    let mut theirs = store(&[]);
    theirs["user_id"] = "anna".into();
    let reply = vault.post(&vault.owner, "/v1/import", &theirs).await;
    assert_eq!(reply.refusal(), (403, "FORBIDDEN"));
    assert_eq!(vault.contents(&vault.owner, "").await.len(), 2);
}

#[tokio::test]
async fn oamp_345_what_lies_outside_the_grant_is_rejected_and_the_rest_goes_in() {
    let vault = Vault::new().await;
    let hidden = governed("the diagnosis", "restricted", &["health"]);
    let hidden_id = vault.holds(&hidden).await;
    let agent = vault.agent("scheduler", &["work"], Sensitivity::Internal).await;
    let good = governed("meeting at nine", "internal", &["work.calendar"]);
    let mut other_agent = governed("forged", "internal", &["work"]);
    other_agent["source"]["agent_id"] = "doctor".into();
    let mut taken = governed("under a taken id", "public", &["work"]);
    taken["id"] = hidden_id.clone().into();
    taken["confidence"] = json!(1.0);
    let entries = [
        good.clone(),
        governed("too secret", "confidential", &["work"]),
        governed("other label", "internal", &["work", "health"]),
        fact("no label is behaviour"),
        other_agent,
        taken.clone(),
    ];
    let done = vault.post(&agent, "/v1/import", &store(&entries)).await.expect(201);
    assert_eq!((&done["imported"], &done["rejected"]), (&json!(2), &json!(4)), "{done}");
    assert_eq!(done["id_mappings"], json!({}));
    // The hidden entry stands untouched; the agent sees its own under the id it chose.
    assert_eq!(vault.entry(&vault.owner, &hidden_id).await.expect(200), hidden);
    assert_eq!(vault.entry(&agent, &hidden_id).await.expect(200), taken);
    assert_eq!(vault.entry(&agent, good["id"].as_str().unwrap()).await.expect(200), good);
    let mut mine = vault.contents(&agent, "").await;
    mine.sort();
    assert_eq!(mine, ["meeting at nine", "under a taken id"]);
}

#[tokio::test]
async fn published_examples_survive_unchanged() {
    let names = [
        "v1/examples/knowledge-store.json",
        "v1.2/examples/knowledge-store-governed.json",
        "v1.2/examples/knowledge-store-interop.json",
    ];
    for name in names {
        let Some(sent) = published(name) else { return };
        let vault = Vault::new().await;
        let done = vault.post(&vault.service, "/v1/import", &sent).await.expect(201);
        let count = sent["entries"].as_array().unwrap().len();
        assert_eq!((&done["imported"], &done["rejected"]), (&json!(count), &json!(0)), "{name}");
        let user = json!({"user_id": sent["user_id"]});
        let out = vault.post(&vault.service, "/v1/export", &user).await.expect(200);
        let ordered = |store: &Value| {
            let mut entries = store["entries"].as_array().unwrap().clone();
            entries.sort_by_key(|entry| entry["id"].as_str().unwrap().to_owned());
            entries
        };
        assert_eq!(ordered(&out), ordered(&sent), "{name}");
    }
    for name in [
        "v1/examples/knowledge-entry.json",
        "v1.2/examples/knowledge-entry-governed.json",
        "v1.2/examples/knowledge-entry-provenance.json",
    ] {
        let Some(sent) = published(name) else { return };
        let vault = Vault::new().await;
        let stored = vault.post(&vault.service, "/v1/knowledge", &sent).await.expect(201);
        assert_eq!(stored, sent, "{name}");
        let read = vault.entry(&vault.service, sent["id"].as_str().unwrap()).await.expect(200);
        assert_eq!(read, sent, "{name}");
    }
    let Some(model) = published("v1/examples/user-model.json") else { return };
    let vault = Vault::new().await;
    vault.post(&vault.service, "/v1/user-model", &model).await.expect(201);
    let path = format!("/v1/user-model/{}", model["user_id"].as_str().unwrap());
    assert_eq!(vault.get(&vault.service, &path).await.expect(200), model);
}

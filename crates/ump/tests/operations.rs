//! Remember, recall, get, revise, forget and feedback.

use serde_json::json;
use yore_canon::seal;
use yore_domain::Span;

use crate::support::{NOW_TEXT, Vault, object};

#[tokio::test]
async fn ump_045_what_is_remembered_is_signed_and_found() {
    let vault = Vault::new().await;
    let id = vault.remember(vault.said("Anna drinks green tea")).await;
    let record = vault.record(&vault.owner, &id).await.ok()["record"].clone();
    assert_eq!(record["id"], json!(id));
    assert_eq!(record["ump"], "1.0");
    let sealed = seal::verify(&object(&record)).unwrap();
    assert_eq!(sealed.signer.as_str(), vault.did);
    let found = vault.texts(&vault.owner, json!({"query": "green tea"})).await;
    assert_eq!(found, ["Anna drinks green tea"]);
}

#[tokio::test]
async fn ump_046_what_is_left_out_is_filled_in_and_strange_members_are_dropped() {
    let vault = Vault::new().await;
    let id = vault
        .remember(json!({
            "kind": "semantic", "body": {"text": "tea"}, "scope": {"owner": "owner"},
            "colour": "green",
        }))
        .await;
    let record = vault.record(&vault.owner, &id).await.ok()["record"].clone();
    assert_eq!(
        record["time"],
        json!({"created": NOW_TEXT, "observed": NOW_TEXT, "valid_from": NOW_TEXT, "valid_to": null})
    );
    assert_eq!(record["scope"], json!({"owner": vault.did, "visibility": "private"}));
    assert_eq!(record["lifecycle"], json!({"status": "active"}));
    assert_eq!(record["superseded_by"], json!([]));
    assert_eq!(record["provenance"]["actor"], json!(vault.did));
    assert!(record.get("colour").is_none());
}

#[tokio::test]
async fn ump_037_ids_are_addresses_of_the_content() {
    let vault = Vault::new().await;
    let id = vault.remember(vault.said("Anna drinks green tea")).await;
    assert_eq!(id.len(), 8 + 52);
    let mut record = object(&vault.record(&vault.owner, &id).await.ok()["record"]);
    assert_eq!(id, format!("urn:ump:{}", seal::content_id(&record).to_base32()));

    vault.clock.advance(Span::seconds(5));
    let revised = vault
        .post(
            &vault.owner,
            "/ump/revise",
            &json!({"id": id, "patch": {"body": {"text": "coffee"}}}),
        )
        .await
        .ok();
    let next = revised["id"].as_str().unwrap();
    record = object(&vault.record(&vault.owner, next).await.ok()["record"]);
    assert_eq!(next, format!("urn:ump:{}", seal::content_id(&record).to_base32()));
    assert_ne!(next, id);
}

#[tokio::test]
async fn ump_051_revising_keeps_the_prior_for_its_time() {
    let vault = Vault::new().await;
    let first = vault.remember(vault.said("Anna lives in Rome")).await;
    vault.clock.advance(Span::days(1));
    let answer = vault
        .post(
            &vault.owner,
            "/ump/revise",
            &json!({"id": first, "patch": {"body": {"text": "Anna lives in Oslo"}}}),
        )
        .await
        .ok();
    assert_eq!(answer["supersedes"], json!([first]));
    let second = answer["id"].as_str().unwrap();

    let prior = vault.record(&vault.owner, &first).await.ok()["record"].clone();
    assert_eq!(prior["superseded_by"], json!([second]));
    assert_eq!(prior["time"]["valid_to"], "2027-01-16T08:00:00Z");
    assert!(seal::verify(&object(&prior)).is_ok());
    let successor = vault.record(&vault.owner, second).await.ok()["record"].clone();
    assert_eq!(successor["supersedes"], json!([first]));
    assert_eq!(successor["time"]["valid_to"], json!(null));

    let now = vault.texts(&vault.owner, json!({"query": "where does Anna live"})).await;
    assert_eq!(now, ["Anna lives in Oslo"]);
    let then = json!({"query": "where does Anna live", "filter": {"valid_at": NOW_TEXT}});
    assert_eq!(vault.texts(&vault.owner, then).await, ["Anna lives in Rome"]);
}

#[tokio::test]
async fn ump_044_ump_054_what_is_forgotten_is_kept_but_not_recalled() {
    let vault = Vault::new().await;
    let id = vault.remember(vault.said("Anna drinks green tea")).await;
    let forget = json!({"id": id, "reason": "wrong"});
    assert_eq!(vault.post(&vault.owner, "/ump/forget", &forget).await.ok()["result"], "tombstoned");
    assert!(vault.texts(&vault.owner, json!({"query": "tea"})).await.is_empty());
    let asked = json!({"query": "tea", "filter": {"status": ["tombstoned"]}});
    assert!(vault.texts(&vault.owner, asked).await.is_empty());
    let record = vault.record(&vault.owner, &id).await.ok()["record"].clone();
    assert_eq!(record["lifecycle"]["status"], "tombstoned");
    assert_eq!(record["id"], json!(id));
}

#[tokio::test]
async fn ump_050_get_returns_superseded_records_and_hides_nothing_that_exists() {
    let vault = Vault::new().await;
    let id = vault.remember(vault.said("tea")).await;
    let references = yore_ump::id::references(&id).unwrap();
    let chain = vault
        .engine
        .chain(&vault.owner_call(), references, yore_engine::Purpose::Reading)
        .await
        .unwrap();
    let memory = chain.asked.memory;
    for alias in [memory.to_string(), yore_ump::id::of_memory(memory)] {
        let record = vault.record(&vault.owner, &alias).await.ok()["record"].clone();
        assert_eq!(record["id"], json!(id), "{alias}");
    }
    let missing = vault.record(&vault.owner, "urn:ump:aaaa").await;
    assert_eq!(missing.refusal(), (404, "not_found"));
    let strange = vault.record(&vault.owner, "urn:ump:9").await;
    assert_eq!(strange.refusal(), (400, "invalid_record"));
}

#[tokio::test]
async fn ump_048_the_same_said_again_is_merged_under_its_id() {
    let vault = Vault::new().await;
    let mut said = vault.said("tea");
    said["lifecycle"] = json!({"confidence": 0.6});
    let id = vault.remember(said.clone()).await;
    vault.clock.advance(Span::seconds(60));
    said["provenance"]["evidence"] = json!([{"ref": "file:a", "weight": 0.5}]);
    let again = vault.post(&vault.owner, "/ump/remember", &said).await.ok();
    assert_eq!(again, json!({"id": id, "result": "merged"}));
    let record = vault.record(&vault.owner, &id).await.ok()["record"].clone();
    assert_eq!(record["provenance"]["evidence"], json!([{"ref": "file:a", "weight": 0.5}]));
    assert_eq!(record["lifecycle"]["confidence"], json!(0.7));
    assert_eq!(record["time"]["observed"], "2027-01-15T08:01:00Z");
    assert_eq!(record["time"]["created"], NOW_TEXT);
    assert!(seal::verify(&object(&record)).is_ok());
}

#[tokio::test]
async fn ump_015_a_15_what_was_forgotten_can_be_said_anew() {
    let vault = Vault::new().await;
    let mut said = vault.said("tea");
    said["time"] = json!({"created": NOW_TEXT, "observed": NOW_TEXT, "valid_from": NOW_TEXT});
    let id = vault.remember(said.clone()).await;
    vault.post(&vault.owner, "/ump/forget", &json!({"id": id, "reason": "x"})).await.ok();
    let again = vault.remember(said).await;
    assert_ne!(again, id);
    assert_eq!(vault.texts(&vault.owner, json!({"query": "tea"})).await, ["tea"]);
}

#[tokio::test]
async fn ump_052_a_revision_replaces_merges_and_copies() {
    let vault = Vault::new().await;
    let mut said = vault.said("Anna lives in Rome");
    said["lifecycle"] = json!({"confidence": 0.5, "salience": 0.9, "decay": "linear:1"});
    said["relations"] = json!([{"type": "about", "target": "entity:Anna"}]);
    said["consent"] = json!({"retention": "P1Y", "exportable": true});
    said["scope"]["project"] = json!("p1");
    let first = vault.remember(said).await;
    vault.clock.advance(Span::days(2));
    let answer = vault
        .post(
            &vault.owner,
            "/ump/revise",
            &json!({
                "id": first,
                "patch": {
                    "lifecycle": {"confidence": 0.8},
                    "relations": [],
                    "time": {"valid_from": "2027-01-16T08:00:00Z"},
                },
                "actor": {"did": "did:key:z6MkEditor"},
            }),
        )
        .await
        .ok();
    let second = answer["id"].as_str().unwrap();
    let record = vault.record(&vault.owner, second).await.ok()["record"].clone();
    assert_eq!(record["body"], json!({"text": "Anna lives in Rome"}));
    assert_eq!(
        record["lifecycle"],
        json!({"status": "active", "confidence": 0.8, "salience": 0.9, "decay": "linear:1"})
    );
    assert!(record.get("relations").is_none());
    assert_eq!(record["consent"], json!({"retention": "P1Y", "exportable": true}));
    assert_eq!(record["scope"]["project"], "p1");
    assert_eq!(record["time"]["created"], "2027-01-17T08:00:00Z");
    assert_eq!(record["time"]["valid_from"], "2027-01-16T08:00:00Z");
    assert_eq!(
        record["provenance"],
        json!({"actor": "did:key:z6MkEditor", "actor_kind": "user", "method": "revise",
            "source": {"ref": first}})
    );
    // A backdated successor closes the prior where it begins.
    let prior = vault.record(&vault.owner, &first).await.ok()["record"].clone();
    assert_eq!(prior["time"]["valid_to"], "2027-01-16T08:00:00Z");

    vault.clock.advance(Span::days(1));
    let fork = vault
        .post(
            &vault.owner,
            "/ump/revise",
            &json!({"id": first, "patch": {"body": {"text": "Oslo"}}}),
        )
        .await
        .ok();
    assert_eq!(fork["supersedes"], json!([second, first]), "the whole chain, newest first");
    assert!(fork["note"].as_str().unwrap().contains(second));
    let stale = json!({"id": first, "reason": "old"});
    let refused = vault.post(&vault.owner, "/ump/forget", &stale).await;
    assert_eq!(refused.refusal(), (400, "invalid_record"));

    for patch in [
        json!({"scope": {}}),
        json!({"body": {"text": ""}}),
        json!({"lifecycle": {"status": "tombstoned"}}),
    ] {
        let refused =
            vault.post(&vault.owner, "/ump/revise", &json!({"id": first, "patch": patch})).await;
        assert_eq!(refused.refusal(), (400, "invalid_record"), "{patch}");
    }
    let gone = json!({"id": fork["id"], "reason": "x"});
    vault.post(&vault.owner, "/ump/forget", &gone).await.ok();
    let late = json!({"id": fork["id"], "patch": {"body": {"text": "y"}}});
    assert_eq!(vault.post(&vault.owner, "/ump/revise", &late).await.refusal(), (404, "not_found"));
}

#[tokio::test]
async fn ump_041_recall_answers_with_signals_best_first() {
    let vault = Vault::new().await;
    for text in ["Anna drinks green tea", "The car needs new tyres", "Bob likes jazz"] {
        vault.remember(vault.said(text)).await;
    }
    let answer = vault
        .post(&vault.owner, "/ump/recall", &json!({"query": "what tea does Anna drink"}))
        .await
        .ok();
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results[0]["record"]["body"]["text"], "Anna drinks green tea");
    assert_eq!(results.len(), 3, "every record in scope is a candidate");
    for name in ["similarity", "scope_match", "recency", "salience", "provenance_depth"] {
        assert!(results[0]["signals"][name].is_number(), "{name}");
    }
    let scores: Vec<f64> = results.iter().map(|one| one["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
}

#[tokio::test]
async fn ump_042_an_empty_query_or_limit_is_refused_and_a_large_one_is_cut() {
    let vault = Vault::new().await;
    vault.remember(vault.said("tea")).await;
    for recall in [
        json!({"query": ""}),
        json!({"query": " \n"}),
        json!({}),
        json!({"query": "tea", "limit": 0}),
        json!({"query": "tea", "limit": -1}),
        json!({"query": "tea", "limit": 1.5}),
        json!({"query": "tea", "limit": "8"}),
        json!({"query": "tea", "filter": {"valid_at": "now"}}),
        json!({"query": "tea", "filter": {"kind": ["x"]}}),
        json!({"query": "tea", "scope": {"visibility": "x"}}),
    ] {
        let refused = vault.post(&vault.owner, "/ump/recall", &recall).await;
        assert_eq!(refused.refusal(), (400, "invalid_record"), "{recall}");
    }
    let large = json!({"query": "tea", "limit": 100_000, "ranking_hints": {"prefer": ["x"]}});
    assert_eq!(vault.texts(&vault.owner, large).await, ["tea"]);
}

#[tokio::test]
async fn ump_043_what_ended_is_found_for_its_time_only() {
    let vault = Vault::new().await;
    let mut said = vault.said("the sale");
    said["time"] = json!({"created": "2027-01-01T00:00:00Z", "valid_from": "2027-01-01T00:00:00Z",
        "valid_to": "2027-01-10T00:00:00Z"});
    vault.remember(said).await;
    assert!(vault.texts(&vault.owner, json!({"query": "sale"})).await.is_empty());
    for (at, found) in [
        ("2026-12-31T23:59:59Z", false),
        ("2027-01-01T00:00:00Z", true),
        ("2027-01-10T00:00:00Z", true),
        ("2027-01-10T00:00:00.000001Z", false),
    ] {
        let recall = json!({"query": "sale", "filter": {"valid_at": at}});
        assert_eq!(!vault.texts(&vault.owner, recall).await.is_empty(), found, "{at}");
    }
}

#[tokio::test]
async fn ump_061_scopes_keep_out_what_belongs_elsewhere() {
    let vault = Vault::new().await;
    for (text, project) in
        [("tea here", Some("p1")), ("tea there", Some("p2")), ("tea anywhere", None)]
    {
        let mut said = vault.said(text);
        if let Some(project) = project {
            said["scope"]["project"] = json!(project);
        }
        vault.remember(said).await;
    }
    let recall = json!({"query": "tea", "scope": {"owner": vault.did, "project": "p1"}});
    let found = vault.texts(&vault.owner, recall.clone()).await;
    assert_eq!(found, ["tea here", "tea anywhere"], "the closer scope first");
    let other = json!({"query": "tea", "scope": {"owner": "did:key:z6MkSomeoneElse"}});
    assert!(vault.texts(&vault.owner, other).await.is_empty(), "the owner is exact");

    let options = yore_ump::Options { strict: yore_ump::Strictness::Strict, ..Default::default() };
    let strict = Vault::with(|_| {}, options).await;
    strict.remember(strict.said("tea anywhere")).await;
    let recall = json!({"query": "tea", "scope": {"owner": strict.did, "project": "p1"}});
    assert!(strict.texts(&strict.owner, recall).await.is_empty());
}

#[tokio::test]
async fn ump_060_records_of_another_owner_are_kept_apart() {
    let vault = Vault::new().await;
    let mut bobs = vault.said("tea of Bob");
    bobs["scope"]["owner"] = json!("bob");
    let id = vault.remember(bobs).await;
    vault.remember(vault.said("tea of Anna")).await;
    let of = |owner: &str| json!({"query": "tea", "scope": {"owner": owner}});
    assert_eq!(vault.texts(&vault.owner, of("bob")).await, ["tea of Bob"]);
    assert_eq!(vault.texts(&vault.owner, of(&vault.did)).await, ["tea of Anna"]);
    assert_eq!(vault.texts(&vault.owner, json!({"query": "tea"})).await.len(), 2);
    let record = vault.record(&vault.owner, &id).await.ok()["record"].clone();
    assert_eq!(record["scope"]["owner"], "bob");
}

#[tokio::test]
async fn ump_055_feedback_changes_the_order() {
    let vault = Vault::new().await;
    let first = vault.remember(vault.said("the deploy script is in tools")).await;
    let second = vault.remember(vault.said("the deploy script is in scripts")).await;
    let lead = async || {
        let recall = json!({"query": "where is the deploy script"});
        let answer = vault.post(&vault.owner, "/ump/recall", &recall).await.ok();
        let results = answer["results"].as_array().unwrap().clone();
        let of = |id: &str| results.iter().find(|one| one["record"]["id"] == json!(id)).unwrap();
        let score = |id: &str| of(id)["score"].as_f64().unwrap();
        score(&first) - score(&second)
    };
    let mut before = lead().await;
    for _ in 0..3 {
        for (id, outcome) in [(&first, "contradicted"), (&second, "followed")] {
            let told = json!({"id": id, "outcome": outcome});
            let answer = vault.post(&vault.owner, "/ump/feedback", &told).await.ok();
            assert_eq!(answer, json!({"ok": true}));
        }
        let after = lead().await;
        assert!(after < before, "{after} {before}");
        before = after;
    }
    let strange = json!({"id": first, "outcome": "loved"});
    assert_eq!(
        vault.post(&vault.owner, "/ump/feedback", &strange).await.refusal(),
        (400, "invalid_record")
    );
    let missing = json!({"id": "urn:ump:aaaa", "outcome": "followed"});
    assert_eq!(
        vault.post(&vault.owner, "/ump/feedback", &missing).await.refusal(),
        (404, "not_found")
    );
}

#[tokio::test]
async fn ump_041_preferences_steer() {
    let vault = Vault::new().await;
    let mut old = vault.said("the meeting is on Monday, says the board");
    old["lifecycle"] = json!({"salience": 1.0});
    vault.remember(old).await;
    vault.clock.advance(Span::days(20));
    let mut new = vault.said("the meeting is on Tuesday, says the board");
    new["lifecycle"] = json!({"salience": 0.0});
    vault.remember(new).await;
    let gap = async |hints: &[&str]| {
        let recall = json!({"query": "when is the meeting", "ranking_hints": {"prefer": hints}});
        let answer = vault.post(&vault.owner, "/ump/recall", &recall).await.ok();
        let score = |day: &str| {
            let results = answer["results"].as_array().unwrap();
            let found = results.iter().find(|one| one["record"].to_string().contains(day));
            found.unwrap()["score"].as_f64().unwrap()
        };
        score("Tuesday") - score("Monday")
    };
    let (plain, newer, weightier) =
        (gap(&[]).await, gap(&["recency"]).await, gap(&["salience"]).await);
    assert!(newer > plain && plain > weightier, "{newer} {plain} {weightier}");
}

#[tokio::test]
async fn ump_023_a_candidate_is_recalled_and_can_be_settled() {
    let vault = Vault::new().await;
    let mut said = vault.said("tea");
    said["lifecycle"] = json!({"status": "candidate"});
    let id = vault.remember(said).await;
    let only = json!({"query": "tea", "filter": {"status": ["candidate"]}});
    assert_eq!(vault.texts(&vault.owner, only.clone()).await, ["tea"]);
    assert_eq!(vault.texts(&vault.owner, json!({"query": "tea"})).await, ["tea"]);
    let settle = json!({"id": id, "patch": {"lifecycle": {"status": "active"}}});
    vault.post(&vault.owner, "/ump/revise", &settle).await.ok();
    assert!(vault.texts(&vault.owner, only).await.is_empty());
}

#[tokio::test]
async fn a_retry_under_the_same_operation_id_doubles_nothing() {
    let vault = Vault::new().await;
    let retry = async |body: &serde_json::Value, path: &str| {
        let request = axum::http::Request::post(path)
            .header("authorization", format!("Bearer {}", vault.owner))
            .header("content-type", "application/json")
            .header("yore-operation-id", "op-1")
            .body(axum::body::Body::from(body.to_string()))
            .unwrap();
        crate::support::reply(vault.send(request).await).await
    };
    let said = vault.said("tea");
    let first = retry(&said, "/ump/remember").await.ok();
    vault.clock.advance(Span::seconds(30));
    let again = retry(&said, "/ump/remember").await.ok();
    assert_eq!(first, again);
    let other = retry(&vault.said("coffee"), "/ump/remember").await;
    assert_eq!(other.refusal(), (400, "invalid_record"));
    let record = vault.record(&vault.owner, first["id"].as_str().unwrap()).await.ok();
    assert_eq!(record["record"]["time"]["observed"], NOW_TEXT, "nothing was merged either");
}

#[tokio::test]
async fn a_retry_that_overtakes_its_first_try_is_answered_like_it() {
    let vault = Vault::new().await;
    let tries = async |body: serde_json::Value, path: &str, operation: &str| {
        let one = async || {
            let request = axum::http::Request::post(path)
                .header("authorization", format!("Bearer {}", vault.owner))
                .header("content-type", "application/json")
                .header("yore-operation-id", operation)
                .body(axum::body::Body::from(body.to_string()))
                .unwrap();
            crate::support::reply(vault.send(request).await).await.ok()
        };
        // Each try is asked at another moment, and none waits for another.
        let ticking = async {
            loop {
                vault.clock.advance(Span::seconds(1));
                tokio::task::yield_now().await;
            }
        };
        let all = futures::future::join_all((0..8).map(|_| one()));
        tokio::select! {
            answers = all => answers,
            () = ticking => unreachable!("it goes on"),
        }
    };
    for turn in 0..4 {
        let operation = |name: &str| format!("{name}-{turn}");
        let said = vault.said(&format!("tea {turn}"));
        let answers = tries(said, "/ump/remember", &operation("remember")).await;
        assert!(answers.iter().all(|one| *one == answers[0]), "{answers:?}");
        let patch = json!({"id": answers[0]["id"], "patch": {"body": {"text": "coffee"}}});
        let answers = tries(patch, "/ump/revise", &operation("revise")).await;
        assert!(answers.iter().all(|one| one["id"] == answers[0]["id"]), "{answers:?}");
    }
}

#[tokio::test]
async fn ump_052_a_retried_forget_gets_the_first_answer_though_nothing_is_left() {
    let vault = Vault::new().await;
    for (hard, result) in [(true, "erased"), (false, "tombstoned")] {
        let id = vault.remember(vault.said(&format!("tea {hard}"))).await;
        let forget = json!({"id": id, "reason": "r", "hard": hard});
        let retry = async |body: &serde_json::Value| {
            let request = axum::http::Request::post("/ump/forget")
                .header("authorization", format!("Bearer {}", vault.owner))
                .header("content-type", "application/json")
                .header("yore-operation-id", format!("forget-{hard}"))
                .body(axum::body::Body::from(body.to_string()))
                .unwrap();
            crate::support::reply(vault.send(request).await).await
        };
        for _ in 0..2 {
            assert_eq!(retry(&forget).await.ok(), json!({"result": result}));
        }
        let other = json!({"id": id, "reason": "another", "hard": hard});
        assert_eq!(retry(&other).await.refusal(), (400, "invalid_record"), "another request");
        if hard {
            let plain = vault.post(&vault.owner, "/ump/forget", &forget).await;
            assert_eq!(plain.refusal(), (404, "not_found"), "without an operation id it is gone");
        }
    }
}

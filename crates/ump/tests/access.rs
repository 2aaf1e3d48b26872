//! Who may do what: capability tokens, grants, strangers and the open vault.

use serde_json::{Value, json};
use yore_domain::Span;
use yore_domain::grant::Verb;
use yore_engine::{Call, Secret};

use crate::support::{Vault, did_of, key, umpcap};

/// A vault that trusts one issuer besides its owner.
async fn trusting() -> Vault {
    let issuer = did_of(&key(9));
    let change = move |settings: &mut yore_engine::Settings| {
        settings.issuers = vec![issuer];
        settings.audiences = vec!["https://yore.example".to_owned()];
    };
    Vault::with(change, yore_ump::Options::default()).await
}

#[tokio::test]
async fn ump_077_only_an_issuer_with_standing_counts() {
    let vault = trusting().await;
    vault.remember(vault.said("tea")).await;
    let trusted = umpcap(&key(9), |_| {});
    assert_eq!(vault.texts(&trusted, json!({"query": "tea"})).await, ["tea"]);
    let stranger = umpcap(&key(8), |_| {});
    let refused = vault.post(&stranger, "/ump/recall", &json!({"query": "tea"})).await;
    assert_eq!(refused.refusal(), (401, "unauthorized"));
    assert!(refused.headers.contains_key("www-authenticate"));
}

#[tokio::test]
async fn ump_074_a_token_is_about_the_owner_it_names_and_nobody_else() {
    let vault = trusting().await;
    vault.remember(vault.said("tea")).await;
    let about = |owner: &str| umpcap(&key(9), |c| c["scope"] = json!({"owner": owner}));
    for owner in [vault.did.clone(), "owner".to_owned()] {
        assert_eq!(vault.texts(&about(&owner), json!({"query": "tea"})).await, ["tea"], "{owner}");
    }
    // A trusted issuer speaks for owners of this server, not for whoever it likes, nor for itself.
    for owner in ["did:key:z6MkOther".to_owned(), did_of(&key(9))] {
        let refused = vault.post(&about(&owner), "/ump/recall", &json!({"query": "tea"})).await;
        assert_eq!(refused.refusal(), (401, "unauthorized"), "{owner}");
    }
    let empty = umpcap(&key(9), |c| c["scope"] = json!({}));
    assert_eq!(vault.texts(&empty, json!({"query": "tea"})).await, ["tea"]);
}

#[tokio::test]
async fn ump_070_the_vault_signs_tokens_and_its_own_word_counts() {
    let vault = Vault::new().await;
    let mut inside = vault.said("tea inside");
    inside["scope"]["project"] = json!("x");
    vault.remember(inside).await;
    vault.remember(vault.said("tea outside")).await;
    let request = yore_engine::GrantRequest {
        agent: yore_domain::AgentId::new("scheduler").unwrap(),
        verbs: yore_domain::grant::Verbs::of(&[Verb::Read]),
        read: yore_domain::grant::Labels::Any,
        write: yore_domain::grant::Labels::Any,
        ceiling: yore_domain::class::Sensitivity::Restricted,
        scope: yore_domain::scope::ScopeRule { project: Some("x".into()), ..Default::default() },
        ttl: Some(Span::days(1)),
        note: None,
    };
    let call = vault.owner_call();
    let issued = yore_ump::issue(&vault.engine, &call, request.clone(), Vec::new()).await.unwrap();
    assert_eq!(vault.texts(&issued.token, json!({"query": "tea"})).await, ["tea inside"]);
    let agent =
        Call::bearer("test", Secret::new(vault.agent("clerk", &[Verb::Read, Verb::Grant]).await));
    let refused = yore_ump::issue(&vault.engine, &agent, request.clone(), Vec::new()).await;
    assert!(matches!(refused, Err(yore_domain::Error::Forbidden { .. })), "only the owner signs");
    let spoilt: [fn(&mut yore_engine::GrantRequest); 4] = [
        |request| request.ttl = None,
        |request| request.ceiling = yore_domain::class::Sensitivity::Internal,
        |request| request.verbs = yore_domain::grant::Verbs::of(&[Verb::Admin]),
        |request| request.scope.user = Some("u".into()),
    ];
    for spoil in spoilt {
        let mut request = request.clone();
        spoil(&mut request);
        assert!(yore_ump::issue(&vault.engine, &call, request, Vec::new()).await.is_err());
    }
    vault.engine.revoke_grant(&call, issued.grant.id).await.unwrap();
    let refused = vault.post(&issued.token, "/ump/recall", &json!({"query": "tea"})).await;
    assert_eq!(refused.refusal(), (401, "unauthorized"));
    let entries =
        vault.post(&vault.owner, "/ump/audit", &json!({"op": "grant.capability"})).await.ok();
    assert_eq!(entries["events"].as_array().unwrap().len(), 2, "{entries}");
}

#[tokio::test]
async fn ump_130_the_audit_chain_is_listed_and_verified_by_who_may() {
    let vault = Vault::new().await;
    let id = vault.remember(vault.said("a very private text")).await;
    let other = vault.remember(vault.said("another")).await;
    vault.texts(&vault.owner, json!({"query": "a very private question"})).await;
    vault.record(&vault.owner, "urn:ump:aaaa").await;
    let listed = vault.post(&vault.owner, "/ump/audit", &json!({})).await.ok();
    let events = listed["events"].as_array().unwrap();
    for (before, event) in events.iter().zip(&events[1..]) {
        assert_eq!(event["prev"], before["hash"], "each is bound to the one before");
        assert!(event["seq"].as_u64() > before["seq"].as_u64());
        assert_eq!(event["ump"], "1.0");
        event["ts"].as_str().unwrap().parse::<yore_domain::Timestamp>().unwrap();
    }
    assert!(!listed.to_string().contains("private"), "no text and no query: {listed}");
    assert!(events.iter().any(|event| event["result"] == "refused:not_found"), "{listed}");
    let of = |query: Value| {
        let vault = &vault;
        async move {
            let listed = vault.post(&vault.owner, "/ump/audit", &query).await.ok();
            listed["events"].as_array().unwrap().clone()
        }
    };
    let made = of(json!({"ops": ["remember", "recall"]})).await;
    let ops: Vec<&str> = made.iter().map(|event| event["op"].as_str().unwrap()).collect();
    assert_eq!(ops, ["remember", "remember", "recall"]);
    let of_one = of(json!({"op": "remember", "target": id})).await;
    assert_eq!(of_one.len(), 1, "{of_one:?}");
    assert_ne!(
        of_one[0]["targets"],
        of(json!({"op": "remember", "target": other})).await[0]["targets"]
    );
    assert_eq!(of(json!({"limit": 1})).await.len(), 1);
    assert!(of(json!({"since": "2030-01-01T00:00:00Z"})).await.is_empty());
    let verified = vault.get(&vault.owner, "/ump/audit/verify").await.ok();
    assert_eq!(verified["ok"], true, "{verified}");
    assert!(verified["count"].as_u64().unwrap() >= 5);
    let agent = vault.agent("scheduler", &[Verb::Read, Verb::Write]).await;
    assert_eq!(
        vault.post(&agent, "/ump/audit", &json!({})).await.refusal(),
        (403, "forbidden_scope")
    );
    assert_eq!(vault.get("", "/ump/audit/verify").await.refusal(), (401, "unauthorized"));
    for bad in [json!({"limit": 0}), json!({"since": "soon"}), json!({"target": "x"})] {
        let refused = vault.post(&vault.owner, "/ump/audit", &bad).await;
        assert_eq!(refused.refusal(), (400, "invalid_record"), "{bad}");
    }
}

#[tokio::test]
async fn ump_073_expired_early_forged_and_misdirected_tokens_are_refused() {
    let vault = trusting().await;
    type Spoil = fn(&mut serde_json::Map<String, Value>);
    let cases: [(&str, Spoil); 4] = [
        ("expired", |c| c["exp"] = json!("2027-01-15T07:59:59Z")),
        ("early", |c| _ = c.insert("nbf".into(), json!("2027-01-15T08:00:01Z"))),
        ("version", |c| c["v"] = json!("ump-cap/9.9")),
        ("audience", |c| _ = c.insert("aud".into(), json!("https://elsewhere.example"))),
    ];
    for (name, spoil) in cases {
        let token = umpcap(&key(9), spoil);
        let refused = vault.post(&token, "/ump/recall", &json!({"query": "tea"})).await;
        assert_eq!(refused.refusal(), (401, "unauthorized"), "{name}");
    }
    let good = umpcap(&key(9), |c| _ = c.insert("aud".into(), json!("https://yore.example")));
    assert!(vault.post(&good, "/ump/recall", &json!({"query": "tea"})).await.status == 200);
    let edge = umpcap(&key(9), |c| c["exp"] = json!("2027-01-15T08:00:00Z"));
    assert_eq!(vault.post(&edge, "/ump/recall", &json!({"query": "tea"})).await.status, 200);
    let forged = {
        let mut parts: Vec<String> = good.split('.').map(str::to_owned).collect();
        parts[1] = umpcap(&key(9), |_| {}).split('.').nth(1).unwrap().to_owned();
        parts.join(".")
    };
    let refused = vault.post(&forged, "/ump/recall", &json!({"query": "tea"})).await;
    assert_eq!(refused.refusal(), (401, "unauthorized"));
}

#[tokio::test]
async fn ump_077_a_revoked_token_is_refused_from_the_next_call_on() {
    let vault = trusting().await;
    let token = umpcap(&key(9), |c| c["jti"] = json!("to-be-revoked"));
    assert_eq!(vault.post(&token, "/ump/recall", &json!({"query": "tea"})).await.status, 200);
    let grant = yore_ump::grant_id("to-be-revoked");
    vault.engine.revoke_grant(&vault.owner_call(), grant).await.unwrap();
    let refused = vault.post(&token, "/ump/recall", &json!({"query": "tea"})).await;
    assert_eq!(refused.refusal(), (401, "unauthorized"));
}

#[tokio::test]
async fn ump_075_each_operation_needs_its_verb() {
    let vault = trusting().await;
    let id = vault.remember(vault.said("tea")).await;
    let with = |verbs: &[&str]| umpcap(&key(9), |c| c["verbs"] = json!(verbs));
    let owner = did_of(&key(9));
    let said = json!({"kind": "semantic", "body": {"text": "x"}, "scope": {"owner": owner}});
    let operations = [
        ("/ump/recall", json!({"query": "tea"}), "read"),
        ("/ump/remember", said, "write"),
        ("/ump/revise", json!({"id": id, "patch": {"body": {"text": "y"}}}), "write"),
        ("/ump/feedback", json!({"id": id, "outcome": "followed"}), "write"),
        ("/ump/forget", json!({"id": id, "reason": "z"}), "write"),
    ];
    for (path, body, verb) in &operations {
        let other = if *verb == "read" { "write" } else { "read" };
        let refused = vault.post(&with(&[other]), path, body).await;
        assert_eq!(refused.refusal(), (403, "forbidden_scope"), "{path}");
        assert_eq!(vault.post("", path, body).await.refusal(), (401, "unauthorized"), "{path}");
    }
    for (path, body, verb) in &operations[..4] {
        let answer = vault.post(&with(&[verb]), path, body).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    }
    let refused = vault.record(&with(&["write"]), &id).await;
    assert_eq!(refused.refusal(), (403, "forbidden_scope"));
}

#[tokio::test]
async fn ump_070_read_and_derive_in_one_project_for_a_day_without_export() {
    let vault = trusting().await;
    let mut inside = vault.said("tea inside");
    inside["scope"]["project"] = json!("x");
    let inside = vault.remember(inside).await;
    let outside = vault.remember(vault.said("tea outside")).await;
    let owner = did_of(&key(9));
    let token = umpcap(&key(9), |c| {
        c["verbs"] = json!(["read", "derive"]);
        c["scope"] = json!({"project": "x"});
        c["exp"] = json!("2027-01-16T08:00:00Z");
    });
    assert_eq!(vault.texts(&token, json!({"query": "tea"})).await, ["tea inside"]);
    assert_eq!(vault.record(&token, &inside).await.status, 200);
    let hidden = vault.record(&token, &outside).await;
    let missing = vault.record(&token, "urn:ump:aaaa").await;
    assert_eq!((hidden.status, &hidden.body), (missing.status, &missing.body));
    let derived = json!({"kind": "semantic", "body": {"text": "so"},
        "scope": {"owner": owner, "project": "x"},
        "relations": [{"type": "derived_from", "target": inside}]});
    let refused = vault.post(&token, "/ump/remember", &derived).await;
    assert_eq!(refused.refusal(), (403, "forbidden_scope"), "to derive is not yet to write");
    let call = vault.claims(&token);
    let page = yore_domain::query::PageRequest { limit: 10, ..Default::default() };
    let export = vault.ump.export(&call, Default::default(), page, Default::default());
    assert!(matches!(export.await, Err(yore_domain::Error::Forbidden { .. })));
    vault.clock.advance(Span::days(2));
    assert_eq!(vault.record(&token, &inside).await.refusal(), (401, "unauthorized"));
}

#[tokio::test]
async fn ump_070_what_cites_a_record_needs_derive() {
    let vault = trusting().await;
    let id = vault.remember(vault.said("tea")).await;
    let with = |verbs: &[&str]| umpcap(&key(9), |c| c["verbs"] = json!(verbs));
    let owner = did_of(&key(9));
    let plain = |extra: Value| {
        let mut said = json!({"kind": "semantic", "body": {"text": extra.to_string()},
            "scope": {"owner": owner}});
        said.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        said
    };
    let cites = [
        plain(json!({"relations": [{"type": "derived_from", "target": id}]})),
        plain(json!({"provenance": {"actor": "a", "actor_kind": "model", "method": "m",
            "evidence": [{"ref": id}]}})),
        plain(json!({"provenance": {"actor": "a", "actor_kind": "model", "method": "m",
            "evidence": [{"ref": format!("ump://-/{}", id.replace(':', "%3A"))}]}})),
        plain(json!({"provenance": {"actor": "a", "actor_kind": "model", "method": "m",
            "evidence": [{"ref": "yore://memory/00000000-0000-4000-8000-000000000000"}]}})),
        plain(json!({"supersedes": [id]})),
    ];
    for said in &cites {
        let refused = vault.post(&with(&["read", "write"]), "/ump/remember", said).await;
        assert_eq!(refused.refusal(), (403, "forbidden_scope"), "{said}");
        let answer = vault.post(&with(&["read", "write", "derive"]), "/ump/remember", said).await;
        assert_eq!(answer.ok()["result"], "created");
    }
}

#[tokio::test]
async fn ump_076_nobody_learns_whether_an_id_exists() {
    let vault = Vault::new().await;
    let id = vault.remember(vault.said("tea")).await;
    let (known, unknown) = (vault.record("", &id).await, vault.record("", "urn:ump:aaaa").await);
    assert_eq!(known.refusal(), (401, "unauthorized"));
    assert_eq!((known.status, known.body), (unknown.status, unknown.body));
    let forget = |id: &str| json!({"id": id, "reason": "x"});
    let known = vault.post("", "/ump/forget", &forget(&id)).await;
    let unknown = vault.post("", "/ump/forget", &forget("urn:ump:aaaa")).await;
    assert_eq!((known.status, known.body), (unknown.status, unknown.body));
}

#[tokio::test]
async fn ump_076_nobody_learns_whether_an_owner_exists() {
    let vault = trusting().await;
    let id = vault.remember(vault.said("tea")).await;
    let path = format!("/ump/memory/{}", id.replace(':', "%3A"));
    let ask = async |token: &str, asked: &str| {
        let request = axum::http::Request::get(&path)
            .header("authorization", format!("Bearer {token}"))
            .header("yore-vault", asked)
            .body(axum::body::Body::empty())
            .unwrap();
        let reply = crate::support::reply(vault.send(request).await).await;
        (reply.status, reply.body)
    };
    let vaults = vault.engine.identify(&vault.owner_call(), Verb::Read).await.unwrap();
    let known = ["owner", vaults.did()];
    let unknown = ["alice", "did:key:z6MkOther", "7c9f2a60-0000-4000-8000-000000000000"];
    let strangers = [
        "x".to_owned(),
        "umpcap.x.y".to_owned(),
        umpcap(&key(8), |_| {}),
        umpcap(&key(8), |c| c["scope"] = json!({"owner": "owner"})),
        umpcap(&key(8), |c| c["exp"] = json!("2020-01-01T00:00:00Z")),
        umpcap(&key(9), |_| {}).replace("umpcap.", "umpcap.a"),
    ];
    let first = ask(&strangers[0], "alice").await;
    assert_eq!(first.0, 401, "{}", first.1);
    for token in &strangers {
        for asked in known.into_iter().chain(unknown) {
            assert_eq!(ask(token, asked).await, first, "{token} {asked}");
        }
    }
    // A trusted issuer's token for somebody else is told the same of both.
    let about = umpcap(&key(9), |c| c["scope"] = json!({"owner": "bob"}));
    assert_eq!(ask(&about, "owner").await, ask(&about, "alice").await);
    let late = umpcap(&key(9), |c| c["exp"] = json!("2020-01-01T00:00:00Z"));
    assert_eq!(ask(&late, "owner").await, ask(&late, "alice").await);
    assert_eq!(ask(&vault.owner, "owner").await.0, 200, "who has standing is let in");
}

#[tokio::test]
async fn ump_053_an_agent_is_who_its_credential_says() {
    let vault = Vault::new().await;
    let token = vault.agent("scheduler", &[Verb::Read, Verb::Write, Verb::Derive]).await;
    let mut said = vault.said("tea at four");
    said["provenance"] = json!({"actor": "someone-else", "actor_kind": "agent", "method": "m"});
    let answer = vault.post(&token, "/ump/remember", &said).await.ok();
    let id = answer["id"].as_str().unwrap();
    let record = vault.record(&vault.owner, id).await.ok()["record"].clone();
    assert_eq!(record["provenance"]["actor"], "scheduler");
    let other = vault.agent("planner", &[Verb::Read, Verb::Write, Verb::Derive]).await;
    let revise = json!({"id": id, "patch": {"body": {"text": "tea at five"}},
        "actor": {"did": "did:key:z6MkOwner", "kind": "user"}});
    let answer = vault.post(&other, "/ump/revise", &revise).await.ok();
    let record = vault.record(&vault.owner, answer["id"].as_str().unwrap()).await.ok();
    assert_eq!(record["record"]["provenance"]["actor"], "planner");
    let mut foreign = vault.said("x");
    foreign["scope"]["owner"] = json!("did:key:z6MkSomeoneElse");
    let refused = vault.post(&token, "/ump/remember", &foreign).await;
    assert_eq!(refused.refusal(), (403, "forbidden_scope"));
}

#[tokio::test]
async fn ump_054_only_the_owner_erases() {
    let vault = trusting().await;
    let id = vault.remember(vault.said("a secret")).await;
    let hard = json!({"id": id, "reason": "x", "hard": true});
    let refused = vault.post(&umpcap(&key(9), |_| {}), "/ump/forget", &hard).await;
    assert_eq!(refused.refusal(), (403, "forbidden_scope"));
    assert_eq!(
        vault.post(&vault.owner, "/ump/forget", &hard).await.ok(),
        json!({"result": "erased"})
    );
    assert_eq!(vault.record(&vault.owner, &id).await.refusal(), (404, "not_found"));
}

#[tokio::test]
async fn ump_037_an_id_that_an_agent_chose_is_a_name_of_its_own() {
    let vault = Vault::new().await;
    let mut hidden = vault.said("hidden");
    hidden["id"] = json!("urn:ump:chosen");
    assert_eq!(vault.remember(hidden).await, "urn:ump:chosen", "the owner's word counts");
    let taken = json!({"kind": "semantic", "body": {"text": "other"}, "id": "urn:ump:chosen",
        "scope": {"owner": vault.did}});
    assert_eq!(
        vault.post(&vault.owner, "/ump/remember", &taken).await.refusal(),
        (400, "invalid_record")
    );

    let agent = vault.agent("scheduler", &[Verb::Read, Verb::Write]).await;
    let mut named = vault.said("tea");
    named["id"] = json!("urn:ump:mine");
    let answer = vault.post(&agent, "/ump/remember", &named).await.ok();
    let id = answer["id"].as_str().unwrap();
    assert_ne!(id, "urn:ump:mine");
    let by_name = vault.record(&agent, "urn:ump:mine").await.ok();
    assert_eq!(by_name["record"]["id"], json!(id));
    let other = vault.agent("planner", &[Verb::Read]).await;
    assert_eq!(vault.record(&other, "urn:ump:mine").await.refusal(), (404, "not_found"));
    assert_eq!(vault.record(&other, id).await.status, 200, "the address is everyone's");
}

#[tokio::test]
async fn ump_060_strangers_read_public_records_once_the_owner_opens_the_vault() {
    let vault = Vault::new().await;
    let mut public = vault.said("how this project builds");
    public["scope"]["visibility"] = json!("public");
    let public = vault.remember(public).await;
    let private = vault.remember(vault.said("how I feel")).await;
    assert_eq!(vault.record("", &public).await.refusal(), (401, "unauthorized"));
    vault.engine.set_public_reads(&vault.owner_call(), true).await.unwrap();
    let record = vault.record("", &public).await.ok()["record"].clone();
    assert!(yore_canon::seal::verify(record.as_object().unwrap()).is_ok());
    assert_eq!(vault.record("", &private).await.refusal(), (404, "not_found"));
    assert_eq!(vault.texts("", json!({"query": "how"})).await, ["how this project builds"]);
    let write = vault.post("", "/ump/remember", &vault.said("x")).await;
    assert_eq!(write.refusal(), (401, "unauthorized"));
    vault.engine.set_public_reads(&vault.owner_call(), false).await.unwrap();
    assert_eq!(vault.record("", &public).await.refusal(), (401, "unauthorized"));
}

#[tokio::test]
async fn ump_045_a_write_that_waits_is_rejected_with_its_hold() {
    use yore_domain::hold::{Rule, RuleAction};
    let vault = Vault::new().await;
    let rule: Rule = serde_json::from_value(json!({"name": "ask me", "action": "hold"})).unwrap();
    assert_eq!(rule.action, RuleAction::Hold);
    vault.engine.put_rule(&vault.owner_call(), rule).await.unwrap();
    let agent = vault.agent("scheduler", &[Verb::Read, Verb::Write]).await;
    let answer = vault.post(&agent, "/ump/remember", &vault.said("tea")).await.ok();
    assert_eq!(answer["result"], "rejected");
    let hold = answer["reason"].as_str().unwrap().strip_prefix("pending_approval:").unwrap();
    assert!(vault.texts(&vault.owner, json!({"query": "tea"})).await.is_empty());
    let hold = hold.parse().unwrap();
    vault
        .engine
        .review(&vault.owner_call(), hold, yore_engine::Decision::Approve, None)
        .await
        .unwrap();
    assert_eq!(vault.texts(&vault.owner, json!({"query": "tea"})).await, ["tea"]);
}

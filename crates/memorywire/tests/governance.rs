use serde_json::{Value, json};
use yore_domain::Span;
use yore_domain::class::{Governance, Label};
use yore_domain::hold::{Privacy, Rule, RuleAction};
use yore_domain::mutation::{Mutation, Relabel};
use yore_engine::Wish;
use yore_memorywire::{Memorywire, Options};

use crate::support::{AGENT, USER, Vault, of_agent, valid};

async fn relabelled(vault: &Vault, id: &str, label: &str) {
    let governance =
        Governance { labels: vec![Label::new(label).unwrap()], ..Governance::default() };
    let change = Relabel { governance: Some(governance), ..Relabel::default() };
    let memory = id.parse().unwrap();
    let relabel = Mutation::Relabel { memory, change: Box::new(change) };
    vault.engine.mutate(&vault.owner_call(), relabel, Wish::default()).await.unwrap();
}

fn intended(content: &str, intent: Value) -> Value {
    of_agent(json!({"type": "semantic", "content": content, "privacy_intent": intent}))
}

#[tokio::test]
async fn mw_200_an_intent_becomes_retention_visibility_and_a_reference_that_is_kept() {
    let vault = Vault::new().await;
    let agent = vault.agent(AGENT).await;
    let intent = json!({
        "retain": "30d", "share_with": ["planner"], "user_consent_id": "Consent #7/\u{e9}",
    });
    let body = intended("the surprise party is on Friday", intent.clone());
    let stored = vault.ask(&agent, "remember", &body).await.expect(200);
    let id = stored["id"].as_str().unwrap();
    let content = vault.memory(id).await.unwrap().head.content;
    assert_eq!(content.consent.retention, Some(Span::days(30)));
    assert_eq!(content.consent.reference.as_deref(), Some("Consent #7/\u{e9}"));
    assert_eq!(content.scope.shared_with, Some(["planner".to_owned()].into()));
    let asked = of_agent(json!({"query": "when is the surprise party"}));
    let found = vault.ask(&agent, "recall", &asked).await.expect(200);
    assert_eq!(found["results"][0]["privacy_intent"], intent);

    // The lens decides, whatever the protocol: the friend's agent finds it, another does not.
    for (name, shown) in [("planner", 1), ("stranger", 0)] {
        let token = vault.agent(name).await;
        let call = yore_engine::Call::bearer("test", yore_engine::Secret::new(token));
        let count = vault.engine.count(&call, Default::default()).await.unwrap();
        assert_eq!(count, shown, "{name}");
    }
    vault.days_pass(30);
    vault.engine.settle().await.unwrap();
    assert!(vault.texts(json!({"query": "when is the surprise party"})).await.is_empty());
    assert!(vault.memory(id).await.is_none(), "nothing of it is left");
}

#[tokio::test]
async fn mw_200_an_intent_that_cannot_be_kept_is_refused() {
    let vault = Vault::new().await;
    for intent in [
        json!({"retain": "a while"}),
        json!({"retain": 30}),
        json!({"retain": "0d"}),
        json!({"share_with": "planner"}),
        json!({"share_with": [""]}),
        json!({"user_consent_id": ""}),
    ] {
        let reply = vault.ask(&vault.owner, "remember", &intended("tea", intent.clone())).await;
        assert!([400, 403].contains(&reply.status), "{intent}: {reply:?}");
    }
    let own = intended("only mine", json!({"share_with": []}));
    vault.ask(&vault.owner, "remember", &own).await.expect(200);
    let other = vault.agent("planner").await;
    let call = yore_engine::Call::bearer("test", yore_engine::Secret::new(other));
    assert_eq!(vault.engine.count(&call, Default::default()).await.unwrap(), 0);
}

#[tokio::test]
async fn mw_200_a_rule_asks_for_approval_of_what_states_no_intent() {
    let vault = Vault::new().await;
    let privacy = Privacy { stated: Some(false), ..Privacy::default() };
    let rule = Rule { privacy: Some(privacy), ..Rule::new("unstated", RuleAction::Hold) };
    vault.engine.put_rule(&vault.owner_call(), rule).await.unwrap();
    let agent = vault.agent(AGENT).await;
    let silent = of_agent(json!({"type": "semantic", "content": "tea at four"}));
    let answer = vault.ask(&agent, "remember", &silent).await.expect(200);
    assert_eq!(answer["pending_approval"], true);
    let stated = intended("tea at five", json!({"user_consent_id": "c-1"}));
    let answer = vault.ask(&agent, "remember", &stated).await.expect(200);
    assert_eq!(answer["pending_approval"], false);
}

#[tokio::test]
async fn mw_204_a_recall_says_that_approval_is_pending() {
    let vault = Vault::new().await;
    let id = vault.fact("blood pressure was high").await;
    relabelled(&vault, &id, "health").await;
    vault.fact("tyre pressure was low").await;
    let rule = Rule {
        operations: vec!["recall".into()],
        label: Some(Label::new("health").unwrap()),
        ..Rule::new("health reads", RuleAction::Hold)
    };
    vault.engine.put_rule(&vault.owner_call(), rule).await.unwrap();
    let agent = vault.agent(AGENT).await;
    let asked = of_agent(json!({"query": "how was the pressure"}));
    let found = vault.ask(&agent, "recall", &asked).await.expect(200);
    assert_eq!(found["results"].as_array().unwrap().len(), 1);
    assert_eq!(found["pending_approval"], true);
    let hold = vault.pending().await.remove(0);
    assert_eq!(found["approval_url"], format!("/app/review/{}", hold.id));
    let own = vault.ok("recall", json!({"query": "how was the pressure"})).await;
    assert!(own.get("pending_approval").is_none(), "nothing is kept from the owner");

    vault.approve(&hold).await;
    let found = vault.ask(&agent, "recall", &asked).await.expect(200);
    assert_eq!(found["results"].as_array().unwrap().len(), 2);
    assert!(found.get("pending_approval").is_none());
}

#[tokio::test]
async fn mw_205_a_secret_is_recalled_without_its_words() {
    let vault = Vault::new().await;
    let body = json!({"content": "the safe opens with 4711", "metadata": {"code": "4711"}});
    let id = vault.holds(body).await;
    relabelled(&vault, &id, "secret").await;
    let agent = vault.agent(AGENT).await;
    let asked = of_agent(json!({"query": "how does the safe open"}));
    let reply = vault.ask(&agent, "recall", &asked).await;
    assert!(!reply.text.contains("4711"), "{}", reply.text);
    let found = reply.expect(200);
    assert_eq!(found["results"][0]["content"], "[redacted]");
    assert_eq!(found["results"][0]["id"], json!(id));
    let own = vault.texts(json!({"query": "how does the safe open"})).await;
    assert_eq!(own, ["the safe opens with 4711"]);
}

#[tokio::test]
async fn mw_207_no_way_lets_a_policy_expire_everything() {
    let vault = Vault::new().await;
    vault.fact("tea is hot").await;
    let empty = [
        json!({}),
        json!({"policy": null}),
        json!({"policy": {}}),
        json!({"policy": {"older_then_days": 3}}),
        json!({"policy": {"type": null}}),
    ];
    for body in empty {
        let refused = vault.refused("expire", body.clone()).await;
        assert_eq!(refused, (400, "invalid".to_owned()), "{body}");
    }
    // Whoever asks the engine itself is told the same.
    let owner = vault.owner_call();
    let all = vault.engine.expire(
        &owner,
        yore_domain::mutation::ExpiryPolicy::default(),
        yore_domain::mutation::ExpiryAction::Forget,
        yore_engine::DryRun::No,
    );
    assert!(matches!(all.await, Err(yore_domain::Error::Invalid { .. })));
    assert_eq!(vault.texts(json!({"query": "is tea hot"})).await.len(), 1);
}

#[tokio::test]
async fn mw_209_where_a_person_is_required_leaving_them_out_must_be_meant() {
    let mut vault = Vault::new().await;
    vault.fact("tea is hot").await;
    let options = Options { require_user: true, ..Options::default() };
    vault.speak(Memorywire::new(vault.engine.clone(), options));
    let requests = [
        ("remember", json!({"type": "semantic", "content": "tea"})),
        ("recall", json!({"query": "tea"})),
        ("forget", json!({"filter": {"x": "y"}})),
        ("merge", json!({"canonical": "a", "duplicates": ["b"]})),
        ("expire", json!({"policy": {"older_than_days": 400}})),
        ("recover", json!({})),
        ("restore", json!({"ids": ["00112233445566778899aabbccddeeff"]})),
    ];
    for (operation, body) in requests {
        let refused = vault.refused(operation, body.clone()).await;
        assert_eq!(refused, (400, "invalid".to_owned()), "{operation}");
        for (member, value) in [("user_id", json!(USER)), ("agent_only", json!(true))] {
            let mut body = body.clone();
            body[member] = value;
            vault.ok(operation, body).await;
        }
        let mut body = body;
        body["agent_only"] = json!(false);
        assert_eq!(vault.refused(operation, body).await.0, 400, "{operation}");
    }
    let hits = vault.hits(json!({"query": "tea is hot", "agent_only": true})).await;
    assert!(hits.iter().all(|hit| hit.get("agent_only").is_none()), "it is no part of a memory");
}

#[tokio::test]
async fn mw_120_mw_211_the_governance_channel_shows_and_decides_what_waits() {
    let vault = Vault::new().await;
    let known = vault.holds(json!({"content": "the shop opens at nine", "user_id": USER})).await;
    let body = json!({
        "type": "semantic", "content": "the shop opens at ten", "user_id": USER, "source": "web",
        "approval_required": true, "privacy_intent": {"retain": "12h"},
    });
    let waits = vault.ok("remember", body).await;
    vault.ok("forget", json!({"ids": [known], "approval_required": true})).await;
    let second = vault.fact("the shop opens at nine sharp").await;
    let merge = json!({"canonical": known, "duplicates": [second], "approval_required": true});
    vault.ok("merge", merge).await;

    let listed = vault.ok("governance/list", json!({})).await;
    let reviews = listed["reviews"].as_array().unwrap();
    let mut operations: Vec<&str> =
        reviews.iter().map(|review| review["operation"].as_str().unwrap()).collect();
    operations.sort_unstable();
    assert_eq!(operations, ["forget", "merge", "remember"]);
    for review in reviews {
        valid("governance", review);
    }
    let shown = vault.ok("governance/show", json!({"id": waits["id"]})).await;
    assert_eq!(shown["approval_url"], waits["approval_url"]);
    assert_eq!(shown["request"]["privacy_intent"], json!({"retain": "12h"}));
    let modified = shown["diff"]["modified"].as_array().unwrap();
    let text = modified.iter().find(|change| change["field"] == "body.text").unwrap();
    assert_eq!(
        (&text["before"], &text["after"]),
        (&json!("the shop opens at nine"), &json!("the shop opens at ten"))
    );
    let agent = vault.agent(AGENT).await;
    let decide = json!({"id": waits["id"], "approved": true, "reason": "seen it"});
    assert_eq!(vault.ask(&agent, "governance/decide", &decide).await.status, 403);
    let decided = vault.ok("governance/decide", decide).await;
    valid("governance.response", &decided);
    assert_eq!((&decided["approved"], &decided["reason"]), (&json!(true), &json!("seen it")));
    assert_eq!(vault.refused("governance/show", json!({"id": "nothing"})).await.0, 404);
}

use serde_json::{Value, json};
use yore_domain::Span;

use crate::support::{NOW, USER, Vault};

#[tokio::test]
async fn mw_021_hits_come_best_first_with_all_that_is_known_of_them() {
    let vault = Vault::new().await;
    for content in ["green tea is brewed at 80 degrees", "black tea is brewed boiling", "tea"] {
        vault.fact(content).await;
    }
    let recalled = vault.ok("recall", json!({"query": "green tea at 80 degrees"})).await;
    assert_eq!(recalled["stores_queried"], json!(["yore"]));
    assert!(recalled["latency_ms"].is_u64());
    let hits = recalled["results"].as_array().unwrap();
    assert_eq!(hits[0]["content"], "green tea is brewed at 80 degrees");
    let scores: Vec<f64> = hits.iter().map(|hit| hit["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
    assert_eq!(hits[0]["supporting"], json!([]));
}

#[tokio::test]
async fn mw_020_fusion_is_reported_and_bounds_are_kept() {
    let vault = Vault::new().await;
    for number in 0..8 {
        vault.fact(&format!("tea fact number {number}")).await;
    }
    assert_eq!(vault.ok("recall", json!({"query": "tea fact"})).await["fusion_used"], "rrf");
    for fusion in ["rrf", "max", "weighted"] {
        let asked = json!({"query": "tea fact", "fusion": fusion, "hops": 3});
        assert_eq!(vault.ok("recall", asked).await["fusion_used"], fusion);
    }
    assert_eq!(vault.hits(json!({"query": "tea fact"})).await.len(), 5);
    assert_eq!(vault.hits(json!({"query": "tea fact", "k": 1000})).await.len(), 8);
    assert_eq!(vault.hits(json!({"query": "tea fact", "k": 1})).await.len(), 1);
    for spoilt in [
        json!({}),
        json!({"query": ""}),
        json!({"query": "tea", "k": 0}),
        json!({"query": "tea", "k": 1001}),
        json!({"query": "tea", "hops": 4}),
        json!({"query": "tea", "fusion": "best"}),
        json!({"query": "tea", "types": ["working"]}),
        json!({"query": "tea", "fresher_than_days": -1}),
        json!({"query": "tea", "filter": []}),
    ] {
        assert_eq!(vault.refused("recall", spoilt.clone()).await.0, 400, "{spoilt}");
    }
}

#[tokio::test]
async fn mw_022_fresh_means_made_since_then_inclusive() {
    let vault = Vault::new().await;
    vault.fact("the old tea shop").await;
    vault.days_pass(30);
    vault.fact("the new tea shop").await;
    let texts = |days: u64| vault.texts(json!({"query": "tea shop", "fresher_than_days": days}));
    assert_eq!(texts(30).await.len(), 2);
    assert_eq!(texts(29).await, ["the new tea shop"]);
    assert_eq!(texts(0).await, ["the new tea shop"]);
    vault.clock.advance(Span::seconds(1));
    assert_eq!(texts(30).await, ["the new tea shop"]);
}

#[tokio::test]
async fn mw_023_a_user_and_types_are_walls() {
    let vault = Vault::new().await;
    vault.fact("Alice likes green tea").await;
    vault.holds(json!({"content": "Bob likes green tea", "user_id": "bob"})).await;
    vault.holds(json!({"content": "everybody likes green tea"})).await;
    let episode = json!({"content": "we drank green tea", "type": "episodic", "user_id": USER});
    vault.holds(episode).await;
    let texts = |mut more: Value| {
        more["query"] = "who likes green tea".into();
        vault.texts(more)
    };
    let of_alice = texts(json!({"user_id": USER})).await;
    assert_eq!(of_alice.len(), 2);
    assert!(of_alice.iter().all(|text| !text.contains("Bob") && !text.contains("everybody")));
    assert_eq!(
        texts(json!({"user_id": USER, "types": ["episodic"]})).await,
        ["we drank green tea"]
    );
    assert_eq!(texts(json!({"types": ["semantic", "episodic"]})).await.len(), 4);
    assert_eq!(texts(json!({"types": []})).await.len(), 4);
    assert!(texts(json!({"user_id": "carol"})).await.is_empty());
}

#[tokio::test]
async fn mw_024_a_recall_is_noted_on_what_it_returned_and_audited() {
    let vault = Vault::new().await;
    let tea = vault.fact("Alice likes green tea").await;
    let car = vault.fact("the car needs new tyres").await;
    assert_eq!(vault.hits(json!({"query": "green tea", "k": 1})).await.len(), 1);
    assert_eq!(vault.memory(&tea).await.unwrap().usage.recalled, Some(NOW));
    assert_eq!(vault.memory(&car).await.unwrap().usage.recalled, None);
    let entry = &vault.audit("recall").await[0];
    assert_eq!(entry.draft.protocol, "memorywire");
    assert_eq!(entry.draft.detail["count"], 1);
    assert!(!serde_json::to_string(entry).unwrap().contains("green"));
}

#[tokio::test]
async fn mw_025_what_has_expired_is_not_recalled() {
    let vault = Vault::new().await;
    let end = NOW.millis() + 1000;
    vault.holds(json!({"content": "the tea is hot", "expires_at": end})).await;
    assert_eq!(vault.texts(json!({"query": "the tea is hot"})).await, ["the tea is hot"]);
    vault.clock.advance(Span::seconds(1));
    assert!(vault.texts(json!({"query": "the tea is hot"})).await.is_empty());
    vault.holds(json!({"content": "the tea was hot", "expires_at": NOW.millis()})).await;
    assert!(vault.texts(json!({"query": "the tea was hot"})).await.is_empty());
}

#[tokio::test]
async fn mw_206_what_nothing_answers_is_answered_by_nothing() {
    let vault = Vault::new().await;
    for content in ["Alice likes green tea", "the car needs new tyres", "Bob plays the cello"] {
        vault.fact(content).await;
    }
    let asked = json!({"query": "melting point of tungsten carbide", "k": 5});
    assert!(vault.texts(asked).await.is_empty());
}

#[tokio::test]
async fn mw_060_a_filter_is_equality_of_all_its_members() {
    let vault = Vault::new().await;
    for (content, metadata, source, confidence) in [
        ("green tea from Uji", json!({"place": {"town": "Uji"}, "n": 1, "open": true}), "web", 0.5),
        ("green tea from Assam", json!({"place": {"town": "Assam"}, "n": 2}), "chat", 0.75),
        ("green tea from nowhere", json!({}), "chat", 0.75),
    ] {
        let body = json!({
            "content": content, "metadata": metadata, "source": source, "confidence": confidence,
        });
        vault.holds(body).await;
    }
    let count = async |filter: Value| {
        vault.hits(json!({"query": "green tea", "k": 50, "filter": filter})).await.len()
    };
    for (found, filter) in [
        (3, json!({})),
        (1, json!({"place.town": "Uji"})),
        (0, json!({"place.town": "Rome"})),
        (1, json!({"n": 2})),
        (1, json!({"n": 2.0})),
        (0, json!({"n": "2"})),
        (1, json!({"open": true})),
        (2, json!({"source": "chat"})),
        (1, json!({"source": "chat", "n": 2})),
        (0, json!({"source": "web", "n": 2})),
        (1, json!({"confidence": 0.5})),
        (2, json!({"confidence": 0.75})),
        (0, json!({"confidence": 0.6})),
        (3, json!({"type": "semantic"})),
        (0, json!({"type": "episodic"})),
        (0, json!({"n": {"gt": 1}})),
        (0, json!({"n": [1, 2]})),
        (0, json!({"absent": null})),
        (3, json!({"agent_id": "agent-a"})),
        (0, json!({"agent_id": "agent-b"})),
        (0, json!({"user_id": USER})),
    ] {
        assert_eq!(count(filter.clone()).await, found, "{filter}");
    }
}

#[tokio::test]
async fn filters_hold_before_the_best_are_chosen() {
    let vault = Vault::new().await;
    for number in 0..130 {
        let content = format!("what tea does Alice drink, asked for the {number}th time");
        vault.holds(json!({"content": content, "user_id": "bob", "metadata": {"n": 1}})).await;
    }
    let sought = json!({"content": "Alice drinks tea", "user_id": USER, "metadata": {"n": 2}});
    vault.holds(sought).await;
    let query = "what tea does Alice drink";
    for narrow in [json!({"user_id": USER}), json!({"filter": {"n": 2}})] {
        let mut asked = narrow.clone();
        asked["query"] = query.into();
        asked["k"] = 1.into();
        assert_eq!(vault.texts(asked).await, ["Alice drinks tea"], "{narrow}");
    }
}

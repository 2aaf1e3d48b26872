use serde_json::json;
use yore_domain::Span;
use yore_domain::kind::Kind;
use yore_domain::memory::Status;
use yore_engine::{Consolidation, DryRun, Fate};

use crate::support::{AGENT, USER, Vault, ids, valid};

#[tokio::test]
async fn mw_100_short_term_memory_is_asked_for_and_keeps_what_was_said() {
    let vault = Vault::new().await;
    let id = vault
        .holds(json!({
            "content": "Anna waits at gate 12", "user_id": USER, "short_term": true,
            "importance": 0.8, "confidence": 0.7, "metadata": {"user_flagged": false},
        }))
        .await;
    let head = vault.memory(&id).await.unwrap().head;
    let (content, lifecycle) = (&head.content, &head.content.lifecycle);
    assert_eq!(content.kind, Kind::Working);
    assert_eq!((lifecycle.salience, lifecycle.confidence), (Some(0.8), Some(0.7)));
    assert_eq!(
        (content.scope.agent.as_deref(), content.scope.user.as_deref()),
        (Some(AGENT), Some(USER))
    );
    let hits = vault.hits(json!({"query": "Anna waits at gate 12", "types": ["episodic"]})).await;
    assert_eq!((&hits[0]["id"], &hits[0]["type"]), (&json!(id), &json!("episodic")));
    assert_eq!((&hits[0]["short_term"], &hits[0]["importance"]), (&json!(true), &json!(0.8)));
    assert_eq!(hits[0]["metadata"], json!({"user_flagged": false}));

    for spoilt in [
        json!({"type": "procedural", "content": "{}", "short_term": true}),
        json!({"type": "emotional", "content": "glad", "short_term": true}),
        json!({"type": "semantic", "content": "tea", "short_term": "yes"}),
        json!({"type": "semantic", "content": "tea", "importance": 1.5}),
    ] {
        assert_eq!(vault.refused("remember", spoilt.clone()).await.0, 400, "{spoilt}");
    }
}

#[tokio::test]
async fn mw_105_what_proves_useful_is_found_as_semantic_under_the_same_id() {
    let vault = Vault::new().await;
    let push = |content: &str, importance: f64| {
        vault.holds(json!({
            "type": "episodic", "content": content, "user_id": USER, "short_term": true,
            "importance": importance,
        }))
    };
    let good = push("Anna is allergic to peanuts", 0.9).await;
    let poor = push("the kettle is on", 0.1).await;
    vault.engine.settle().await.unwrap();
    let asked = json!({"query": "Anna is allergic to peanuts", "types": ["semantic"]});
    let hits = vault.hits(asked).await;
    assert_eq!((&hits[0]["id"], &hits[0]["confidence"]), (&json!(good), &json!(1.0)));
    assert!(hits[0].get("short_term").is_none(), "{hits:?}");
    valid("types/semantic", &hits[0]);
    assert_eq!(vault.memory(&poor).await.unwrap().head.content.kind, Kind::Working);

    vault.clock.advance(Span::days(2));
    vault.engine.settle().await.unwrap();
    assert_eq!(vault.memory(&poor).await.unwrap().head.status, Status::Tombstoned);
    let back = vault.ok("restore", json!({"ids": [poor.clone()]})).await;
    assert_eq!(ids(&back["restored"]), [poor]);
}

#[tokio::test]
async fn mw_103_the_formula_of_the_reference_decides_when_it_is_asked_to() {
    let vault = Vault::new().await;
    let push = |content: &str, importance: f64| {
        vault.holds(json!({"content": content, "short_term": true, "importance": importance}))
    };
    push("important", 0.9).await;
    push("not so", 0.5).await;
    let asked =
        || Consolidation { scorer: Some("reference".to_owned()), ..Consolidation::default() };
    let owner = vault.owner_call();
    let done = vault.engine.consolidate(&owner, asked(), DryRun::No).await.unwrap();
    let scores: Vec<_> = done.items.iter().map(|one| (one.score, one.fate)).collect();
    assert_eq!(scores, [(0.65, Fate::Promote), (0.45, Fate::Keep)]);
    vault.clock.advance(Span::seconds(121));
    let done = vault.engine.consolidate(&owner, asked(), DryRun::No).await.unwrap();
    assert_eq!((done.count(Fate::Evict), done.items.len()), (1, 1));
}

use serde_json::{Value, json};
use yore_domain::memory::Status;

use crate::support::{USER, Vault};

async fn status(vault: &Vault, id: &str) -> Status {
    vault.memory(id).await.unwrap().head.status
}

#[tokio::test]
async fn mw_052_a_policy_that_demands_nothing_is_refused() {
    let vault = Vault::new().await;
    let id = vault.fact("kept").await;
    for spoilt in [
        json!({}),
        json!({"policy": {}}),
        json!({"policy": null}),
        json!({"policy": {"older_then_days": 1}}),
        json!({"policy": {"older_than_days": null, "type": null}}),
        json!({"policy": {"older_than_days": 0}}),
        json!({"policy": {"no_recall_in_days": 0}}),
        json!({"policy": {"confidence_below": 1.5}}),
        json!({"policy": {"type": "working"}}),
        json!({"policy": {"older_than_days": 1}, "action": "burn"}),
    ] {
        let refused = vault.refused("expire", spoilt.clone()).await;
        assert_eq!(refused, (400, "invalid".to_owned()), "{spoilt}");
    }
    assert_eq!(status(&vault, &id).await, Status::Active);
}

#[tokio::test]
async fn mw_050_mw_051_mw_055_all_demands_must_hold() {
    let vault = Vault::new().await;
    let old = json!({"content": "an old doubt", "confidence": 0.3, "user_id": USER});
    let old = vault.holds(old).await;
    let sure = json!({"content": "an old certainty", "confidence": 0.5});
    let sure = vault.holds(sure).await;
    let felt = json!({"content": "an old fear", "confidence": 0.3, "type": "emotional"});
    let felt = vault.holds(felt).await;
    let theirs = json!({"content": "an old doubt", "confidence": 0.3, "agent_id": "agent-b"});
    let theirs = vault.holds(theirs).await;
    vault.days_pass(10);
    let young = vault.holds(json!({"content": "a young doubt", "confidence": 0.3})).await;
    let asked = json!({
        "policy": {"older_than_days": 10, "type": "semantic", "confidence_below": 0.5},
    });
    let done = vault.ok("expire", asked).await;
    assert_eq!(done, json!({"matched_count": 1, "action_taken": "forget", "stores": ["yore"]}));
    assert_eq!(status(&vault, &old).await, Status::Tombstoned);
    for stays in [&sure, &felt, &theirs, &young] {
        assert_eq!(status(&vault, stays).await, Status::Active);
    }
    let asked = json!({"policy": {"type": "emotional"}});
    assert_eq!(vault.ok("expire", asked).await["matched_count"], 1);
    assert_eq!(status(&vault, &felt).await, Status::Tombstoned);
}

#[tokio::test]
async fn mw_051_what_was_never_recalled_counts_as_stale() {
    let vault = Vault::new().await;
    let used = vault.fact("green tea in the morning").await;
    let lately = vault.fact("black coffee at noon").await;
    assert_eq!(vault.hits(json!({"query": "green tea in the morning", "k": 1})).await.len(), 1);
    vault.days_pass(30);
    assert_eq!(vault.hits(json!({"query": "black coffee at noon", "k": 1})).await.len(), 1);
    let never = vault.fact("the car needs new tyres").await;
    let done = vault.ok("expire", json!({"policy": {"no_recall_in_days": 30}})).await;
    assert_eq!(done["matched_count"], 2);
    for gone in [used, never] {
        assert_eq!(status(&vault, &gone).await, Status::Tombstoned);
    }
    assert_eq!(status(&vault, &lately).await, Status::Active);
}

#[tokio::test]
async fn mw_054_archiving_marks_what_it_takes() {
    let vault = Vault::new().await;
    let id = vault.fact("an old certainty").await;
    vault.days_pass(2);
    let asked = json!({"policy": {"older_than_days": 1}, "action": "archive"});
    let done = vault.ok("expire", asked).await;
    assert_eq!((&done["matched_count"], &done["action_taken"]), (&json!(1), &json!("archive")));
    let head = vault.memory(&id).await.unwrap().head;
    assert_eq!(head.status, Status::Tombstoned);
    assert!(head.content.tags.contains(&"archived".to_owned()));
    assert!(vault.texts(json!({"query": "an old certainty"})).await.is_empty());
}

#[tokio::test]
async fn mw_054_demoting_moves_ranks_and_leaves_the_row_alone() {
    let vault = Vault::new().await;
    let first = json!({"content": "the tea shop opens at nine", "confidence": 0.4});
    let first = vault.holds(first).await;
    let other = json!({"content": "the tea shop opens at nine sharp", "confidence": 0.9});
    let other = vault.holds(other).await;
    let asked = json!({"query": "the tea shop opens at nine"});
    let order = |hits: Vec<Value>| -> Vec<String> {
        hits.iter().map(|hit| hit["id"].as_str().unwrap().to_owned()).collect()
    };
    let before = vault.hits(asked.clone()).await;
    assert_eq!(order(before.clone()), [first.clone(), other.clone()]);
    let demote = json!({"policy": {"confidence_below": 0.5}, "action": "demote"});
    for _ in 0..2 {
        assert_eq!(vault.ok("expire", demote.clone()).await["matched_count"], 1);
    }
    let after = vault.hits(asked).await;
    assert_eq!(order(after.clone()), [other, first.clone()]);
    let memory = vault.memory(&first).await.unwrap();
    assert_eq!(memory.head.number, 1, "the row is as it was");
    assert_eq!(after[1]["confidence"], 0.4);
    let score = |hits: &[Value], id: &str| {
        let hit = hits.iter().find(|hit| hit["id"] == id).unwrap();
        hit["score"].as_f64().unwrap()
    };
    assert!(score(&after, &first) < score(&before, &first));
}

use serde_json::json;
use yore_domain::memory::Status;

use crate::support::{USER, Vault, ids};

#[tokio::test]
async fn mw_031_forgetting_without_saying_what_is_refused() {
    let vault = Vault::new().await;
    let id = vault.fact("the sky is blue").await;
    for spoilt in [
        json!({}),
        json!({"ids": []}),
        json!({"filter": {}}),
        json!({"ids": [], "filter": {}}),
        json!({"ids": null, "filter": null, "user_id": USER, "hard_delete": true}),
    ] {
        assert_eq!(vault.refused("forget", spoilt.clone()).await, (400, "invalid".to_owned()));
    }
    assert_eq!(vault.memory(&id).await.unwrap().head.status, Status::Active);
}

#[tokio::test]
async fn mw_032_soft_can_come_back_and_hard_cannot() {
    let vault = Vault::new().await;
    let soft = vault.fact("the sky is blue").await;
    let hard = vault.fact("water is wet").await;
    let done = vault.ok("forget", json!({"ids": [soft], "reason": "asked to"})).await;
    assert_eq!(done["forgotten_ids"], json!([soft]));
    assert_eq!(done["hard_delete"], false);
    assert_eq!(done["stores"], json!([{"store": "yore", "count": 1, "error": null}]));
    assert_eq!(done["pending_approval"], false);
    let done = vault.ok("forget", json!({"ids": [hard], "hard_delete": true})).await;
    assert_eq!((&done["forgotten_ids"], &done["hard_delete"]), (&json!([hard]), &json!(true)));
    assert!(vault.texts(json!({"query": "the sky is blue, water is wet"})).await.is_empty());
    assert_eq!(vault.memory(&soft).await.unwrap().head.status, Status::Tombstoned);
    assert!(vault.memory(&hard).await.is_none());
    let entries = vault.audit("forget").await;
    assert_eq!(entries.len(), 2);
    assert!(entries.iter().all(|entry| entry.draft.targets.len() == 1));
}

#[tokio::test]
async fn mw_030_mw_034_ids_and_filter_together_are_a_union_of_live_rows() {
    let vault = Vault::new().await;
    let sky = vault.fact("the sky is blue").await;
    let water = vault.holds(json!({"content": "water is wet", "metadata": {"n": 1}})).await;
    let both = vault.holds(json!({"content": "trees are green", "metadata": {"n": 1}})).await;
    let stays = vault.fact("snow is white").await;
    let asked = json!({"ids": [sky, both, "nonsense", "0".repeat(32)], "filter": {"n": 1}});
    let done = vault.ok("forget", asked.clone()).await;
    let mut gone = ids(&done["forgotten_ids"]);
    gone.sort_unstable();
    let mut expected = [sky.as_str(), &water, &both];
    expected.sort_unstable();
    assert_eq!(gone, expected);
    assert_eq!(done["stores"][0]["count"], 3);
    let again = vault.ok("forget", asked).await;
    assert_eq!(again["forgotten_ids"], json!([]), "what is deleted is not deleted again");
    assert_eq!(vault.memory(&stays).await.unwrap().head.status, Status::Active);
}

#[tokio::test]
async fn mw_035_another_users_row_is_not_touched_and_no_word_is_left() {
    let vault = Vault::new().await;
    let bobs = vault.holds(json!({"content": "Bob hoards zirconium", "user_id": "bob"})).await;
    for asked in [
        json!({"ids": [bobs], "user_id": USER, "hard_delete": true}),
        json!({"filter": {"user_id": "bob"}, "user_id": USER}),
    ] {
        assert_eq!(vault.ok("forget", asked).await["forgotten_ids"], json!([]));
    }
    let hits = vault.hits(json!({"query": "zirconium"})).await;
    assert_eq!(hits.len(), 1);
    let asked = json!({"ids": [bobs], "user_id": "bob", "hard_delete": true});
    assert_eq!(vault.ok("forget", asked).await["forgotten_ids"], json!([bobs]));
    vault.holds(json!({"content": "Bob hoards stamps", "user_id": "bob"})).await;
    let texts = vault.texts(json!({"query": "zirconium"})).await;
    assert!(texts.iter().all(|text| !text.contains("zirconium")), "{texts:?}");
    let audited = serde_json::to_string(&vault.audit("forget").await).unwrap();
    assert!(!audited.contains("zirconium"));
}

#[tokio::test]
async fn mw_061_no_filter_reaches_another_agents_rows() {
    let vault = Vault::new().await;
    let theirs = vault.holds(json!({"agent_id": "agent-b", "content": "a secret of b"})).await;
    for asked in [
        json!({"filter": {"agent_id": "agent-b"}}),
        json!({"filter": {"type": "semantic"}}),
        json!({"ids": [theirs]}),
    ] {
        assert_eq!(vault.ok("forget", asked).await["forgotten_ids"], json!([]));
    }
    assert_eq!(vault.memory(&theirs).await.unwrap().head.status, Status::Active);
}

//! Memories that lift each other because they are related.

use serde_json::{Value, json};
use yore_domain::kind::Kind;
use yore_domain::memory::{Draft, Relation};
use yore_domain::mutation::Mutation;
use yore_engine::Wish;

use crate::support::{AGENT, USER, Vault};

/// Remembers a fact that is linked to another memory.
async fn linked(vault: &Vault, content: &str, target: &str) -> String {
    let mut draft = Draft::new(Kind::Semantic, content);
    draft.content.scope.agent = Some(AGENT.to_owned());
    draft.content.scope.user = Some(USER.to_owned());
    draft.content.relations = vec![Relation { kind: "about".into(), target: target.to_owned() }];
    let remember = Mutation::Remember { draft: Box::new(draft), id: None };
    let done = vault.engine.mutate(&vault.owner_call(), remember, Wish::default()).await.unwrap();
    done.memories[0].memory.to_string().replace('-', "")
}

fn score(hits: &[Value], id: &str) -> f64 {
    hits.iter().find(|hit| hit["id"] == id).unwrap()["score"].as_f64().unwrap()
}

fn supporting<'a>(hits: &'a [Value], id: &str) -> &'a Value {
    &hits.iter().find(|hit| hit["id"] == id).unwrap()["supporting"]
}

#[tokio::test]
async fn mw_085_what_is_linked_is_lifted_once_by_the_least_distance() {
    let vault = Vault::new().await;
    let mill = vault.fact("the mill is by the river").await;
    let miller = linked(&vault, "the miller of the mill is called Tom", &mill).await;
    let cat = linked(&vault, "the cat of the miller sleeps in the mill", &miller).await;
    // Without hops no more is looked at than is wanted.
    let k = |hops: u8| if hops == 0 { 20 } else { 5 };
    let ask = |hops: u8| json!({"query": "mill miller river cat", "k": k(hops), "hops": hops});
    let plain = vault.hits(ask(0)).await;
    assert_eq!(plain.len(), 3);
    assert_eq!(*supporting(&plain, &mill), json!([]));
    for hops in [1, 3] {
        let hits = vault.hits(ask(hops)).await;
        for id in [&mill, &miller, &cat] {
            let ratio = score(&hits, id) / score(&plain, id);
            assert!((ratio - 1.05).abs() < 1e-6, "{hops} {id}: {ratio}");
        }
        assert_eq!(*supporting(&hits, &cat), json!([miller]), "the nearest, once");
    }
    assert_eq!(vault.refused("recall", ask(4)).await.0, 400);
}

#[tokio::test]
async fn mw_085_memories_of_one_entity_lift_each_other_and_no_others() {
    let vault = Vault::new().await;
    let about = |content: &str, entity: &str| json!({"content": content, "user_id": USER, "metadata": {"entity_name": entity}});
    let first = vault.holds(about("the ferry leaves at noon", "ferry")).await;
    let second = vault.holds(about("the ferry is blue and leaves late", "ferry")).await;
    let other = vault.holds(about("the train leaves at one", "train")).await;
    let k = |hops: u8| if hops == 0 { 20 } else { 5 };
    let ask = |hops: u8| json!({"query": "when does the ferry leave", "k": k(hops), "hops": hops});
    let (plain, hits) = (vault.hits(ask(0)).await, vault.hits(ask(1)).await);
    assert_eq!(*supporting(&hits, &first), json!([second]));
    assert_eq!(*supporting(&hits, &other), json!([]));
    assert!(score(&hits, &second) > score(&plain, &second));
    assert!((score(&hits, &other) - score(&plain, &other)).abs() < 1e-9);
}

#[tokio::test]
async fn mw_070_neighbours_are_the_agents_own_and_say_how_far_they_are() {
    let vault = Vault::new().await;
    let mill = vault.fact("the mill is by the river").await;
    let miller = linked(&vault, "the miller is called Tom", &mill).await;
    let cat = linked(&vault, "the miller has a cat", &miller).await;
    let near = vault.ok("neighbours", json!({"id": mill, "hops": 2})).await;
    let one = |id: &str, distance: u8| json!({"id": id, "distance": distance});
    assert_eq!(near["results"], json!([one(&miller, 1), one(&cat, 2)]));
    let strange = vault.ok("neighbours", json!({"agent_id": "agent-b", "id": mill})).await;
    assert_eq!(strange["results"], json!([]));
    let health = vault.get("/memorywire/v0/health").await.expect(200);
    assert!(health["capabilities"].as_array().unwrap().contains(&json!("graph")));
}

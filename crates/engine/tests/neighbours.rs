//! What lies next to memories, for whoever may see it.

use yore_domain::memory::{Draft, Relation};
use yore_domain::mutation::{MergeStrategy, Mutation};
use yore_domain::scope::ScopeRule;
use yore_domain::{Error, MemoryId};
use yore_engine::{Call, Wish};

use crate::support::{Vault, labelled, under};

async fn near(vault: &Vault, call: &Call, of: MemoryId, hops: u8) -> Vec<(MemoryId, u8)> {
    let scope = ScopeRule::default();
    let near = vault.engine.neighbours(call, vec![of], scope, hops).await.unwrap();
    near.into_iter().map(|near| (near.memory, near.distance)).collect()
}

fn linked(mut draft: Draft, target: impl ToString) -> Draft {
    draft.content.relations = vec![Relation { kind: "about".into(), target: target.to_string() }];
    draft
}

#[tokio::test]
async fn mw_085_links_are_followed_both_ways_by_the_least_distance() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let a = vault.holds(Draft::text("the mill")).await;
    let b = vault.holds(linked(Draft::text("the miller"), a)).await;
    let c = vault.holds(linked(Draft::text("the miller's cat"), b)).await;
    assert_eq!(near(&vault, &owner, a, 1).await, [(b, 1)]);
    assert_eq!(near(&vault, &owner, a, 3).await, [(b, 1), (c, 2)]);
    assert_eq!(near(&vault, &owner, c, 2).await, [(b, 1), (a, 2)]);
    let far = vault.engine.neighbours(&owner, vec![a], ScopeRule::default(), 4).await;
    assert!(matches!(far, Err(Error::Invalid { .. })), "{far:?}");
}

#[tokio::test]
async fn mw_085_entities_and_merges_join_memories() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let a = vault.holds(linked(Draft::text("Ada was born in 1815"), "entity:Ada")).await;
    let b = vault.holds(linked(Draft::text("she wrote programs"), "entity:Ada")).await;
    assert_eq!(near(&vault, &owner, a, 1).await, [(b, 1)]);
    let kept = vault.holds(Draft::text("the gate is green")).await;
    let same = vault.holds(linked(Draft::text("the gate is all green"), b)).await;
    let strategy = MergeStrategy::KeepCanonical;
    let merge = Mutation::Merge { canonical: kept, duplicates: vec![same], strategy };
    vault.engine.mutate(&owner, merge, Wish::default()).await.unwrap();
    assert_eq!(near(&vault, &owner, kept, 1).await, [(same, 1)]);
    assert!(near(&vault, &owner, kept, 2).await.contains(&(b, 2)), "through what was absorbed");
}

#[tokio::test]
async fn mw_085_nothing_hidden_joins_two_memories() {
    let vault = Vault::new().await;
    let a = vault.holds(labelled("the mill", "work")).await;
    let between = vault.holds(linked(labelled("the debt", "finance"), a)).await;
    let b = vault.holds(linked(labelled("the miller", "work"), between)).await;
    let agent = vault.agent(|request| request.read = under("work")).await.call;
    assert_eq!(near(&vault, &vault.owner(), a, 3).await, [(between, 1), (b, 2)]);
    assert_eq!(near(&vault, &agent, a, 3).await, []);
    assert_eq!(near(&vault, &agent, between, 3).await, [], "hidden is missing");

    let mut redacted = linked(labelled("the heir", "work"), b);
    redacted.content.consent.redact = vec!["relations".into()];
    let heir = vault.holds(redacted).await;
    assert!(near(&vault, &vault.owner(), b, 1).await.contains(&(heir, 1)));
    assert_eq!(near(&vault, &agent, b, 1).await, [], "the link itself is withheld");
}

#[tokio::test]
async fn mw_085_a_scope_is_not_left() {
    let vault = Vault::new().await;
    let of_agent = |text: &str, agent: &str| {
        let mut draft = Draft::text(text);
        draft.content.scope.agent = Some(agent.to_owned());
        draft
    };
    let a = vault.holds(of_agent("the mill", "a")).await;
    let b = vault.holds(linked(of_agent("the miller", "b"), a)).await;
    vault.holds(linked(of_agent("the cat", "a"), b)).await;
    let within = ScopeRule { agent: Some("a".to_owned()), ..ScopeRule::default() };
    let near = vault.engine.neighbours(&vault.owner(), vec![a], within, 3).await.unwrap();
    assert_eq!(near, []);
}

//! What only a protocol may state is taken from nobody else.

use serde_json::json;
use yore_domain::grant::{Verb, Verbs};
use yore_domain::memory::{Draft, Seal, Version};
use yore_domain::mutation::{Mutation, Patch};
use yore_domain::{MemoryId, VersionId};
use yore_engine::{Item, Reference, Wish};

use crate::support::{NOW, Vault};

fn forged(text: &str, version: VersionId) -> Draft {
    let mut draft = Draft::text(text);
    draft.version = Some(version);
    draft.content.foreign =
        [("ump".to_owned(), json!({"id": "urn:ump:a"})), ("oamp".to_owned(), json!({}))].into();
    draft.content.seal = Some(Seal {
        format: "ump/1.0".into(),
        bytes: "{}".into(),
        signer: "did:key:z6MkOwner".into(),
        by_owner: true,
    });
    draft
}

#[tokio::test]
async fn an_agent_states_no_seal_no_foreign_member_and_no_version() {
    let vault = Vault::new().await;
    let agent = vault.agent(|grant| grant.verbs = Verbs::of(&[Verb::Read, Verb::Write])).await;
    let chosen = VersionId::random();
    let remember =
        |text: &str| Mutation::Remember { draft: Box::new(forged(text, chosen)), id: None };
    let made = vault.engine.mutate(&agent.call, remember("a"), Wish::default()).await.unwrap();
    let id = made.memories[0].memory;
    let stored = vault.engine.get(&vault.owner(), Reference::Memory(id)).await.unwrap().head;
    assert_eq!((stored.content.seal, stored.content.foreign.len()), (None, 0));
    assert_ne!(stored.id, chosen);

    let patch = Patch {
        foreign: forged("b", chosen).content.foreign,
        version: Some(chosen),
        ..Patch::default()
    };
    let revise = Mutation::Revise { memory: id, patch: Box::new(patch), expected: None };
    vault.engine.mutate(&agent.call, revise, Wish::default()).await.unwrap();
    let stored = vault.engine.get(&vault.owner(), Reference::Memory(id)).await.unwrap().head;
    assert!(stored.content.foreign.is_empty() && stored.id != chosen);

    let brought = Version::first(MemoryId::random(), forged("c", chosen), NOW, None);
    let items = vec![Item::Memory { versions: vec![brought] }];
    let done = vault.engine.import(&agent.call, items).await.unwrap();
    let reference = Reference::Memory(done.memories[0]);
    let stored = vault.engine.get(&vault.owner(), reference).await.unwrap().head;
    assert_eq!((stored.content.seal, stored.content.foreign.len()), (None, 0));
    assert_ne!(stored.id, chosen);

    // A dialect vouches for what stands under its own name, and for nothing else.
    let made = vault.engine.mutate_as("ump", &agent.call, remember("d"), Wish::default());
    let reference = Reference::Memory(made.await.unwrap().memories[0].memory);
    let stored = vault.engine.get(&vault.owner(), reference).await.unwrap().head;
    assert!(stored.content.seal.is_some() && stored.id == chosen);
    assert_eq!(stored.content.foreign.keys().collect::<Vec<_>>(), ["ump"]);
    let remember =
        Mutation::Remember { draft: Box::new(forged("e", VersionId::random())), id: None };
    let made = vault.engine.mutate(&vault.owner(), remember, Wish::default()).await.unwrap();
    let reference = Reference::Memory(made.memories[0].memory);
    let stored = vault.engine.get(&vault.owner(), reference).await.unwrap().head;
    assert_eq!(stored.content.foreign.len(), 2, "the owner's word is taken as it is");
}

#[tokio::test]
async fn what_an_agent_brings_in_is_found_by_the_ids_it_had() {
    let vault = Vault::new().await;
    let agent = vault.agent(|_| {}).await;
    let memory = MemoryId::random();
    let first = Version::first(memory, Draft::text("one"), NOW, None);
    let mut second = first.next(yore_domain::memory::Cause::Revised, NOW, None);
    second.content.body.text = "two".into();
    let ids = [first.id, second.id];
    let item = Item::Memory { versions: vec![first, second] };
    let done = vault.engine.import(&agent.call, vec![item.clone()]).await.unwrap();
    assert_eq!((done.imported, done.memories.len()), (1, 1));
    assert_ne!(done.memories[0], memory, "an id of its own");
    for (id, text) in ids.into_iter().zip(["one", "two"]) {
        let found = vault.engine.get(&agent.call, Reference::Version(id)).await.unwrap();
        assert_eq!(found.head.content.body.text, text);
        assert_eq!(found.head.memory, done.memories[0]);
        assert!(vault.engine.get(&vault.owner(), Reference::Version(id)).await.is_err());
    }
    let again = vault.engine.import(&agent.call, vec![item]).await.unwrap();
    assert_eq!((again.imported, again.duplicates), (0, 1));
}

#[tokio::test]
async fn a_statement_that_is_here_under_another_memory_is_a_duplicate() {
    let vault = Vault::new().await;
    let owner = vault.owner();
    let kept = vault.holds(Draft::text("tea")).await;
    let known = vault.engine.get(&owner, Reference::Memory(kept)).await.unwrap().head;
    let forget = Mutation::Forget {
        memories: vec![kept],
        depth: yore_domain::mutation::Depth::Tombstone,
        reason: None,
    };
    vault.engine.mutate(&owner, forget, Wish::default()).await.unwrap();
    let moved = Version { memory: MemoryId::random(), ..known };
    let fresh = Version::first(MemoryId::random(), Draft::text("coffee"), NOW, None);
    let twice = Version { memory: MemoryId::random(), ..fresh.clone() };
    let items =
        [moved, fresh, twice].map(|version| Item::Memory { versions: vec![version] }).to_vec();
    let done = vault.engine.import(&owner, items).await.unwrap();
    assert_eq!((done.imported, done.duplicates, done.rejected.len()), (1, 2, 0), "{done:?}");
}

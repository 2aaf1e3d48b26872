//! What is hidden and what is missing cannot be told apart.

use yore_domain::grant::{Verb, Verbs};
use yore_domain::memory::FeedbackOutcome;
use yore_domain::mutation::{Depth, Mutation, Patch, Relabel};
use yore_domain::{MemoryId, VersionId};
use yore_engine::{Reference, Wish};

use crate::support::{Vault, labelled, refused, under};

#[tokio::test]
async fn a_hidden_id_and_a_missing_id_give_the_same_answer_everywhere() {
    let vault = Vault::new().await;
    let hidden = vault.holds(labelled("blood pressure 120/80", "health")).await;
    let seen = vault.holds(labelled("meeting at noon", "work")).await;
    let history = vault.engine.history(&vault.owner(), hidden).await.unwrap();
    let change = |grant: &mut yore_engine::GrantRequest| {
        grant.verbs = Verbs::of(&[Verb::Read, Verb::Write, Verb::Derive]);
        grant.read = under("work");
    };
    let agent = vault.agent(change).await.call;
    let engine = &vault.engine;
    let missing = (MemoryId::random(), VersionId::random());

    let mut answers = Vec::new();
    for (memory, version) in [(hidden, history[0].id), missing] {
        let mut said = Vec::new();
        let mut note = |name: &str, error: yore_domain::Error| {
            said.push(format!("{name}: {} {error}", error.code()));
        };
        let get = Reference::Memory(memory);
        note("get", engine.get(&agent, get).await.unwrap_err());
        let get = Reference::Version(version);
        note("version", engine.get(&agent, get).await.unwrap_err());
        note("history", engine.history(&agent, memory).await.unwrap_err());
        let now = crate::support::NOW;
        note("as of", engine.get_as_of(&agent, memory, now).await.unwrap_err());
        let outcome = FeedbackOutcome::Followed;
        note("feedback", engine.feedback(&agent, memory, outcome).await.unwrap_err());
        let mutations = [
            Mutation::Revise { memory, patch: Box::new(Patch::default()), expected: Some(9) },
            Mutation::Relabel { memory, change: Box::new(Relabel::default()) },
            Mutation::Forget {
                memories: vec![seen, memory],
                depth: Depth::Tombstone,
                reason: None,
            },
            Mutation::Merge {
                canonical: seen,
                duplicates: vec![memory],
                strategy: Default::default(),
            },
            Mutation::Restore { memory, number: 1 },
        ];
        for mutation in mutations {
            let name = mutation.name();
            note(name, engine.mutate(&agent, mutation, Wish::default()).await.unwrap_err());
        }
        let entry = vault.last().await;
        assert_eq!(refused(&entry), Some("not_found"));
        assert!(entry.draft.targets.is_empty(), "the trail does not name what was not found");
        answers.push(said);
    }
    assert_eq!(answers[0], answers[1]);
    assert!(answers[0].iter().all(|answer| answer.ends_with("not_found not found")));
}

#[tokio::test]
async fn hidden_memories_change_no_byte_of_an_answer() {
    let vault = Vault::new().await;
    for text in ["tea in the morning", "coffee at noon", "the tea pot is green"] {
        vault.holds(labelled(text, "work")).await;
    }
    let agent = vault.agent(|grant| grant.read = under("work")).await.call;
    let ask = async || {
        let mut found =
            vault.engine.recall(&agent, crate::support::recall("green tea")).await.unwrap();
        found.embedded_us = 0;
        serde_json::to_string(&found).unwrap()
    };
    let before = ask().await;
    for number in 0..5 {
        vault.holds(labelled(&format!("green tea secret {number}"), "health")).await;
    }
    assert_eq!(ask().await, before);
}

//! What consent keeps inside stays inside, whatever an agent makes of it.

use serde_json::json;
use yore_domain::class::{Governance, Sensitivity};
use yore_domain::consent::Consent;
use yore_domain::grant::{Verb, Verbs};
use yore_domain::hold::HoldState;
use yore_domain::memory::{Draft, Seal};
use yore_domain::mutation::{MergeStrategy, Mutation, Patch, Relabel};
use yore_domain::query::{Filter, PageRequest};
use yore_domain::scope::{Scope, Visibility};
use yore_domain::{Error, MemoryId, Result, Span};
use yore_engine::{Call, Mutated, Reference, Wish};

use crate::support::{Agent, NOW, Vault, recall};

const SECRET: &str = "S3CRET";

fn draft(redact: &[&str]) -> Draft {
    let mut draft = Draft::text("the door");
    draft.content.body.structured = json!({"code": SECRET, "door": "front"}).as_object().cloned();
    draft.content.consent.redact = redact.iter().map(|path| (*path).to_owned()).collect();
    draft
}

async fn worker(vault: &Vault) -> Agent {
    let verbs = Verbs::of(&[Verb::Read, Verb::Write, Verb::Derive, Verb::Export]);
    vault.agent(|grant| grant.verbs = verbs).await
}

async fn relabel(vault: &Vault, call: &Call, memory: MemoryId, change: Relabel) -> Result<Mutated> {
    let mutation = Mutation::Relabel { memory, change: Box::new(change) };
    vault.engine.mutate(call, mutation, Wish::default()).await
}

fn consent(redact: &[&str]) -> Relabel {
    Relabel { consent: Some(draft(redact).content.consent), ..Relabel::default() }
}

#[tokio::test]
async fn ump_057_an_agent_finds_no_way_around_a_redaction() {
    let vault = Vault::new().await;
    let agent = worker(&vault).await;
    let kept = vault.holds(draft(&[])).await;
    let owner = vault.owner();
    relabel(&vault, &owner, kept, consent(&["body.structured.code"])).await.unwrap();
    let mine = vault.remember(&agent.call, Draft::text("mine")).await.unwrap().memories[0].memory;

    let lifted = relabel(&vault, &agent.call, kept, consent(&[])).await;
    assert!(matches!(lifted, Err(Error::Forbidden { .. })), "{lifted:?}");
    let restore = Mutation::Restore { memory: kept, number: 1 };
    let restored = vault.engine.mutate(&agent.call, restore.clone(), Wish::default()).await;
    assert!(matches!(restored, Err(Error::Forbidden { .. })), "{restored:?}");
    let strategy = MergeStrategy::MergeContent;
    let merge = Mutation::Merge { canonical: mine, duplicates: vec![kept], strategy };
    let merged = vault.engine.mutate(&agent.call, merge, Wish::default()).await;
    assert!(matches!(merged, Err(Error::Forbidden { .. })), "{merged:?}");
    let seen = vault.engine.get(&agent.call, Reference::Memory(kept)).await.unwrap();
    assert!(!serde_json::to_string(&seen).unwrap().contains(SECRET));
    vault.engine.mutate(&owner, restore, Wish::default()).await.expect("the owner may");
}

#[tokio::test]
async fn only_the_owner_shows_a_memory_to_more() {
    let vault = Vault::new().await;
    let agent = worker(&vault).await;
    let kept = vault.holds(Draft::text("how I feel")).await;
    let governance = Governance { sensitivity: Some(Sensitivity::Public), ..Governance::default() };
    let scope = Scope { visibility: Visibility::Public, ..Scope::default() };
    let wider = [
        Relabel { scope: Some(scope.clone()), ..Relabel::default() },
        Relabel { governance: Some(governance.clone()), ..Relabel::default() },
    ];
    for change in wider {
        let done = relabel(&vault, &agent.call, kept, change.clone()).await;
        assert!(matches!(done, Err(Error::Forbidden { .. })), "{change:?}: {done:?}");
    }
    let patch = Patch { governance: Some(governance), ..Patch::default() };
    let revise = Mutation::Revise { memory: kept, patch: Box::new(patch), expected: None };
    let revised = vault.engine.mutate(&agent.call, revise, Wish::default()).await;
    assert!(matches!(revised, Err(Error::Forbidden { .. })), "{revised:?}");
    let open = Relabel { scope: Some(scope), ..Relabel::default() };
    relabel(&vault, &vault.owner(), kept, open).await.expect("the owner may");
}

#[tokio::test]
async fn ump_057_a_redaction_covers_what_was_said_before_it() {
    let vault = Vault::new().await;
    let agent = worker(&vault).await;
    let kept = vault.holds(draft(&[])).await;
    let first = vault.engine.get(&vault.owner(), Reference::Memory(kept)).await.unwrap().head;
    vault.clock.advance(Span::days(1));
    relabel(&vault, &vault.owner(), kept, consent(&["body.structured.code"])).await.unwrap();
    vault.clock.advance(Span::days(1));

    let engine = &vault.engine;
    let then = NOW.plus(Span::seconds(5));
    let filter = Filter { as_of: Some(then), ..Filter::default() };
    let page = || PageRequest { limit: 10, ..PageRequest::default() };
    let mut travel = recall("the door");
    travel.filter = filter.clone();
    let call = &agent.call;
    let told = [
        serde_json::to_string(&engine.history(call, kept).await.unwrap()).unwrap(),
        serde_json::to_string(&engine.get_as_of(call, kept, then).await.unwrap()).unwrap(),
        serde_json::to_string(&engine.get(call, Reference::Version(first.id)).await.unwrap())
            .unwrap(),
        serde_json::to_string(&engine.list(call, filter.clone(), page()).await.unwrap()).unwrap(),
        serde_json::to_string(&engine.recall(call, travel).await.unwrap()).unwrap(),
        serde_json::to_string(&engine.export(call, Filter::default(), page()).await.unwrap())
            .unwrap(),
        serde_json::to_string(&engine.export_heads(call, filter, page()).await.unwrap()).unwrap(),
    ];
    for (number, text) in told.iter().enumerate() {
        assert!(text.contains("the door"), "{number}: {text}");
        assert!(!text.contains(SECRET), "{number}: {text}");
    }
    let owners = engine.history(&vault.owner(), kept).await.unwrap();
    assert!(serde_json::to_string(&owners[0]).unwrap().contains(SECRET), "the owner sees it");
}

#[tokio::test]
async fn ump_057_a_proposal_tells_its_agent_nothing_of_what_is_redacted() {
    let vault = Vault::new().await;
    let agent = worker(&vault).await;
    let kept = vault.holds(draft(&["body.structured.code"])).await;
    let patch = Patch { body: Some(Draft::text("other").content.body), ..Patch::default() };
    let revise = Mutation::Revise { memory: kept, patch: Box::new(patch), expected: None };
    let wish = Wish { approval: true, ..Wish::default() };
    let held = vault.engine.mutate(&agent.call, revise, wish).await;
    let Err(Error::Held { hold }) = held else { panic!("{held:?}") };
    let mut told = vault.engine.holds(&agent.call, HoldState::Pending, 10).await.unwrap();
    told.push(vault.engine.hold(&agent.call, hold).await.unwrap());
    assert_eq!(told.len(), 2);
    assert!(!serde_json::to_string(&told).unwrap().contains(SECRET), "{told:?}");
    let owners = vault.engine.hold(&vault.owner(), hold).await.unwrap();
    assert!(serde_json::to_string(&owners).unwrap().contains(SECRET));
}

#[tokio::test]
async fn ump_057_paths_of_a_record_count_on_every_surface() {
    let vault = Vault::new().await;
    let agent = worker(&vault).await;
    let with = |redact: &[&str]| {
        let mut draft = Draft::text("tea");
        draft.content.provenance.source = Some("my diary".into());
        draft.content.provenance.provider = Some("paper".into());
        draft.content.lifecycle.half_life = Some(Span::days(30));
        draft.content.foreign = [(
            "ump".to_owned(),
            json!({"id": "urn:ump:aaaa",
            "said": {"provenance": [null, {"source": {"ref": "my diary"}}]}}),
        )]
        .into();
        draft.content.seal = Some(Seal {
            format: "ump/1.0".into(),
            bytes: "{\"x\": \"my diary\"}".into(),
            signer: "did:key:z6Mk".into(),
            by_owner: true,
        });
        draft.content.consent = Consent {
            redact: redact.iter().map(|path| (*path).to_owned()).collect(),
            ..Consent::default()
        };
        draft
    };
    let cases: [(&[&str], bool, bool, bool); 5] = [
        (&["provenance.source"], false, false, true),
        (&["provenance.source.ref"], false, true, true),
        (&["provenance.source.provider"], true, false, true),
        (&["lifecycle.decay"], true, true, false),
        (&["body.structured.absent"], true, true, true),
    ];
    for (number, (redact, source, provider, decay)) in cases.into_iter().enumerate() {
        let mut draft = with(redact);
        draft.content.body.text = format!("tea {number}");
        let id = vault.holds(draft).await;
        let seen = vault.engine.get(&agent.call, Reference::Memory(id)).await.unwrap().head.content;
        let found = (
            seen.provenance.source.is_some(),
            seen.provenance.provider.is_some(),
            seen.lifecycle.half_life.is_some(),
        );
        assert_eq!(found, (source, provider, decay), "{redact:?}");
        assert_eq!(seen.seal, None, "{redact:?}");
        assert_eq!(seen.foreign["ump"], json!({"id": "urn:ump:aaaa"}), "{redact:?}");
        let own = vault.engine.get(&vault.owner(), Reference::Memory(id)).await.unwrap();
        assert!(own.head.content.seal.is_some());
    }
}

#[tokio::test]
async fn ump_070_making_one_of_several_needs_the_verb_to_derive() {
    let vault = Vault::new().await;
    let plain = vault.agent(|_| {}).await;
    let (one, other) = (vault.holds(Draft::text("a")).await, vault.holds(Draft::text("b")).await);
    let strategy = MergeStrategy::MergeContent;
    let merge = Mutation::Merge { canonical: one, duplicates: vec![other], strategy };
    let refused = vault.engine.mutate(&plain.call, merge.clone(), Wish::default()).await;
    assert!(matches!(refused, Err(Error::Forbidden { .. })), "{refused:?}");
    let agent = worker(&vault).await;
    vault.engine.mutate(&agent.call, merge, Wish::default()).await.unwrap();
}

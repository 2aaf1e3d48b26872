//! What lies in stores beside the vault: who may do what, and what the audit chain says of it.

use std::sync::atomic::{AtomicBool, Ordering};

use yore_domain::MemoryId;
use yore_domain::grant::{Verb, Verbs};
use yore_domain::mutation::Depth;
use yore_engine::{ChangedElsewhere, Elsewhere};

use crate::support::{Vault, refused};

#[tokio::test]
async fn mw_086_a_forget_elsewhere_is_audited_and_no_agents() {
    let vault = Vault::new().await;
    let gone = MemoryId::random();
    let work = async { Ok(ChangedElsewhere { answer: 7, count: 1, memories: vec![gone] }) };
    let done =
        vault.engine.change_elsewhere(&vault.owner(), Elsewhere::Forget(Depth::Erase), work).await;
    assert_eq!(done.unwrap(), 7);
    let entry = vault.last().await;
    assert_eq!(entry.draft.operation, "stores.forget");
    assert_eq!(entry.draft.detail["count"], 1);
    assert_eq!(entry.draft.detail["erase"], true);
    assert_eq!(entry.draft.targets[0].memory, gone);

    let verbs = [Verb::Read, Verb::Write, Verb::Erase];
    let agent = vault.agent(|request| request.verbs = Verbs::of(&verbs)).await.call;
    let begun = AtomicBool::new(false);
    let never = async {
        begun.store(true, Ordering::SeqCst);
        Ok(ChangedElsewhere::<()>::default())
    };
    let change = Elsewhere::Forget(Depth::Tombstone);
    let done = vault.engine.change_elsewhere(&agent, change, never).await;
    assert_eq!(done.unwrap_err().code(), "forbidden");
    assert!(!begun.load(Ordering::SeqCst), "what is refused is not begun");
    let entry = vault.last().await;
    assert_eq!(
        (entry.draft.operation.as_str(), refused(&entry)),
        ("stores.forget", Some("forbidden"))
    );
}

#[tokio::test]
async fn only_the_owner_keeps_the_stores() {
    let vault = Vault::new().await;
    vault.engine.keep_stores(&vault.owner(), "stores.repair").await.unwrap();
    assert_eq!(vault.last().await.draft.operation, "stores.repair");
    let agent = vault.agent(|request| request.verbs = Verbs::of(&[Verb::Read])).await.call;
    assert!(vault.engine.keep_stores(&agent, "stores.list").await.is_err());
    assert_eq!(refused(&vault.last().await), Some("forbidden"));
}

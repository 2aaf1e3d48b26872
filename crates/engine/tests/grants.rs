use yore_domain::class::Sensitivity;
use yore_domain::grant::{Labels, Verb, Verbs};
use yore_domain::memory::Draft;
use yore_domain::scope::ScopeRule;
use yore_domain::{Error, Span, VaultId};
use yore_engine::{Call, GrantRequest, Secret, TokenKind, VaultRef};

use crate::support::{Vault, refused, under};

type Change = fn(&mut GrantRequest);

#[tokio::test]
async fn a_revoked_grant_refuses_the_next_call() {
    let vault = Vault::new().await;
    let agent = vault.agent(|_| {}).await;
    assert!(vault.remember(&agent.call, Draft::text("one")).await.is_ok());
    vault.engine.revoke_grant(&vault.owner(), agent.grant).await.unwrap();

    let next = vault.remember(&agent.call, Draft::text("two")).await;
    assert!(matches!(next, Err(Error::Unauthenticated { .. })));
    assert_eq!(refused(&vault.last().await), Some("unauthenticated"));
    assert!(vault.engine.revoke_grant(&vault.owner(), agent.grant).await.is_ok(), "again");
    let longer = vault.engine.extend_grant(&vault.owner(), agent.grant, Span::days(1)).await;
    assert!(matches!(longer, Err(Error::Conflict { .. })));
}

#[tokio::test]
async fn a_grant_ends_with_its_time_and_can_be_extended() {
    let vault = Vault::new().await;
    let agent = vault.agent(|grant| grant.ttl = Some(Span::seconds(60))).await;
    vault.clock.advance(Span::seconds(61));
    let late = vault.engine.count(&agent.call, Default::default()).await;
    assert!(matches!(late, Err(Error::Unauthenticated { .. })));
    vault.engine.extend_grant(&vault.owner(), agent.grant, Span::days(1)).await.unwrap();
    assert!(vault.engine.count(&agent.call, Default::default()).await.is_ok());
}

#[tokio::test]
async fn nobody_gives_more_than_they_hold() {
    let vault = Vault::new().await;
    let wide = Verbs::of(&[Verb::Read, Verb::Write, Verb::Grant]);
    let issuer = vault
        .agent(|grant| {
            grant.verbs = wide;
            grant.read = under("work");
            grant.write = under("work.calendar");
            grant.ceiling = Sensitivity::Internal;
            grant.scope = ScopeRule { project: Some("x".into()), ..ScopeRule::default() };
            grant.ttl = Some(Span::days(1));
        })
        .await;
    let modest: Change = |grant| {
        grant.verbs = Verbs::of(&[Verb::Read]);
        grant.read = under("work.calendar");
        grant.write = Labels::Under(vec![]);
        grant.ceiling = Sensitivity::Public;
        grant.scope = ScopeRule { project: Some("x".into()), ..ScopeRule::default() };
    };
    let greedy: [(&str, Change); 6] = [
        ("verbs", |grant| grant.verbs = Verbs::of(&[Verb::Read, Verb::Erase])),
        ("read", |grant| grant.read = Labels::Any),
        ("write", |grant| grant.write = under("work")),
        ("ceiling", |grant| grant.ceiling = Sensitivity::Restricted),
        ("scope", |grant| grant.scope = ScopeRule::default()),
        ("other project", |grant| grant.scope.project = Some("y".into())),
    ];
    for (name, more) in greedy {
        let issued = vault.agent_of(&issuer.call, |grant| {
            modest(grant);
            more(grant);
        });
        assert!(matches!(issued.await, Err(Error::Forbidden { .. })), "{name}");
        assert_eq!(refused(&vault.last().await), Some("forbidden"), "{name}");
    }
    let given = vault.agent_of(&issuer.call, modest).await.unwrap();
    let grant = vault.engine.grant(&vault.owner(), given.grant).await.unwrap();
    assert!(grant.expires.is_some(), "it ends with the issuer's own");
    let plain = vault.agent(|_| {}).await;
    let without = vault.agent_of(&plain.call, modest).await;
    assert!(matches!(without, Err(Error::Forbidden { .. })), "the verb is needed");
}

#[tokio::test]
async fn a_retry_gives_the_same_token_and_no_second_grant() {
    let vault = Vault::new().await;
    let call = Call { operation: Some("give".into()), ..vault.owner() };
    let first = vault.agent_of(&call, |_| {}).await.unwrap();
    let again = vault.agent_of(&call, |_| {}).await.unwrap();
    assert_eq!(first.grant, again.grant);
    let token = |call: &Call| call.credentials.bearer.as_ref().unwrap().expose().to_owned();
    assert_eq!(token(&first.call), token(&again.call));
    assert_eq!(vault.engine.grants(&vault.owner()).await.unwrap().len(), 1);
    assert!(vault.engine.count(&again.call, Default::default()).await.is_ok());
}

#[tokio::test]
async fn a_revoked_token_opens_nothing() {
    let vault = Vault::new().await;
    let note = Some("phone".to_owned());
    let made =
        vault.engine.issue_token(&vault.owner(), TokenKind::Owner, None, note).await.unwrap();
    let call = Call::bearer("test", Secret::new(made));
    assert!(vault.engine.census(&call).await.is_ok());
    let tokens = vault.engine.tokens(&vault.owner()).await.unwrap();
    let phone = tokens.iter().find(|token| token.note.as_deref() == Some("phone")).unwrap();
    vault.engine.revoke_token(&vault.owner(), phone.id).await.unwrap();
    assert!(matches!(vault.engine.census(&call).await, Err(Error::Unauthenticated { .. })));
    let agent = vault.agent(|grant| grant.verbs = Verbs::ALL).await;
    let made = vault.engine.issue_token(&agent.call, TokenKind::Owner, None, None).await;
    assert!(matches!(made, Err(Error::Forbidden { .. })), "an agent never becomes the owner");
}

#[tokio::test]
async fn a_service_acts_for_owners_and_never_in_the_catalog() {
    let vault = Vault::new().await;
    let made = vault.engine.issue_token(&vault.owner(), TokenKind::Service, None, None).await;
    assert!(made.is_err(), "an owner is owner of one vault");
    let master = vault.master();
    let made = vault.engine.issue_token(&master, TokenKind::Service, None, None).await.unwrap();
    let service = |vault| Call { vault, ..Call::bearer("test", Secret::new(made.clone())) };
    let anna = service(VaultRef::Owner("anna".into()));
    let unknown = vault.engine.count(&anna, Default::default()).await;
    assert!(matches!(unknown, Err(Error::NotFound)), "reading makes no vault");
    vault.remember(&anna, Draft::text("Anna's own")).await.unwrap();
    assert_eq!(vault.engine.count(&anna, Default::default()).await.unwrap(), 1);
    let ben = service(VaultRef::Owner("ben".into()));
    vault.remember(&ben, Draft::text("Ben's own")).await.unwrap();
    assert_eq!(vault.texts(&ben, "own").await, ["Ben's own"]);
    let catalog = service(VaultRef::Id(VaultId::CATALOG));
    assert!(matches!(vault.engine.tokens(&catalog).await, Err(Error::Unauthenticated { .. })));
    let more = vault.engine.issue_token(&anna, TokenKind::Service, None, None).await;
    assert!(matches!(more, Err(Error::Unauthenticated { .. })));
}

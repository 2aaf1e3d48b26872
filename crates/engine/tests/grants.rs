use yore_domain::class::Sensitivity;
use yore_domain::grant::{Labels, Verb, Verbs};
use yore_domain::memory::Draft;
use yore_domain::scope::ScopeRule;
use yore_domain::{Error, Span, TenantId, VaultId};
use yore_engine::{Call, GrantRequest, Secret, TokenKind, VaultRef, token};

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
    let made = vault
        .engine
        .issue_token(&vault.owner(), TokenKind::Service(TenantId::DEFAULT), None, None)
        .await;
    assert!(made.is_err(), "an owner is owner of one vault");
    let master = vault.master();
    let made = vault
        .engine
        .issue_token(&master, TokenKind::Service(TenantId::DEFAULT), None, None)
        .await
        .unwrap();
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
    let more =
        vault.engine.issue_token(&anna, TokenKind::Service(TenantId::DEFAULT), None, None).await;
    assert!(matches!(more, Err(Error::Unauthenticated { .. })));
}

#[tokio::test]
async fn a_grant_falls_with_the_one_it_was_given_under() {
    let vault = Vault::new().await;
    let wide: Change = |grant| grant.verbs = Verbs::of(&[Verb::Read, Verb::Write, Verb::Grant]);
    let first = vault.agent(wide).await;
    let second = vault.agent_of(&first.call, wide).await.unwrap();
    let third = vault.agent_of(&second.call, |_| {}).await.unwrap();
    let other = vault.agent(wide).await;
    let others = vault.agent_of(&other.call, |_| {}).await.unwrap();
    vault.engine.revoke_grant(&vault.owner(), first.grant).await.unwrap();
    for fallen in [&first, &second, &third] {
        let refused = vault.engine.count(&fallen.call, Default::default()).await;
        assert!(matches!(refused, Err(Error::Unauthenticated { .. })));
        let grant = vault.engine.grant(&vault.owner(), fallen.grant).await.unwrap();
        assert!(grant.revoked.is_some());
    }
    for standing in [&other, &others] {
        assert!(vault.engine.count(&standing.call, Default::default()).await.is_ok());
    }
    let late = vault.agent_of(&first.call, |_| {}).await;
    assert!(matches!(late, Err(Error::Unauthenticated { .. })));
}

#[tokio::test]
async fn an_agent_extends_no_grant_least_of_all_its_own() {
    let vault = Vault::new().await;
    let granting: Change = |grant| {
        grant.verbs = Verbs::of(&[Verb::Read, Verb::Grant]);
        grant.ttl = Some(Span::days(2));
    };
    let issuer = vault.agent(granting).await;
    let given = vault.agent_of(&issuer.call, granting).await.unwrap();
    let stranger = vault.agent(granting).await;
    for grant in [issuer.grant, given.grant, stranger.grant] {
        let before = vault.engine.grant(&vault.owner(), grant).await.unwrap();
        let refused = vault.engine.extend_grant(&issuer.call, grant, Span::days(30)).await;
        assert!(matches!(refused, Err(Error::Forbidden { .. })));
        assert_eq!(vault.engine.grant(&vault.owner(), grant).await.unwrap(), before);
    }
}

#[tokio::test]
async fn a_service_of_one_tenant_opens_nothing_of_another() {
    let vault = Vault::new().await;
    let tenants = [TenantId::DEFAULT, TenantId::random(), TenantId::random()];
    let mut calls = Vec::new();
    for tenant in tenants {
        let kind = TokenKind::Service(tenant);
        let made = vault.engine.issue_token(&vault.master(), kind, None, None).await.unwrap();
        let owner = VaultRef::Owner("anna".into());
        calls.push(Call { vault: owner, ..Call::bearer("test", Secret::new(made)) });
    }
    for (number, call) in calls.iter().enumerate() {
        vault.remember(call, Draft::text(format!("tenant number {number}"))).await.unwrap();
    }
    let mut homes = Vec::new();
    for (number, call) in calls.iter().enumerate() {
        assert_eq!(vault.texts(call, "tenant").await, [format!("tenant number {number}")]);
        let made = vault.engine.issue_token(call, TokenKind::Owner, None, None).await.unwrap();
        let Ok(token::Shape::Vault(home)) = token::shape(&Secret::new(made)) else { panic!() };
        homes.push(home);
    }
    for (number, call) in calls.iter().enumerate() {
        for (other, home) in homes.iter().enumerate().filter(|(other, _)| *other != number) {
            let call = Call { vault: VaultRef::Id(*home), ..call.clone() };
            let looked = vault.engine.count(&call, Default::default()).await;
            assert!(matches!(looked, Err(Error::Unauthenticated { .. })), "{number} in {other}");
            let wrote = vault.remember(&call, Draft::text("not mine")).await;
            assert!(matches!(wrote, Err(Error::Unauthenticated { .. })), "{number} in {other}");
        }
    }
    // A token that merely says it belongs to another tenant is nobody's.
    let bearer = calls[1].credentials.bearer.as_ref().unwrap().expose().to_owned();
    let place = |tenant: TenantId| tenant.to_string().replace('-', "");
    let forged = bearer.replace(&place(tenants[1]), &place(tenants[2]));
    assert_ne!(forged, bearer);
    let forged =
        Call { vault: calls[2].vault.clone(), ..Call::bearer("test", Secret::new(forged)) };
    let looked = vault.engine.count(&forged, Default::default()).await;
    assert!(matches!(looked, Err(Error::Unauthenticated { .. })));
}

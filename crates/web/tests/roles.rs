//! Who else signs in: an administrator of a tenant, and a child's guardian.

use axum::http::Method;
use yore_domain::class::Sensitivity;
use yore_domain::conversation::Role;
use yore_domain::grant::{Labels, Verb, Verbs};
use yore_domain::memory::Draft;
use yore_domain::regulated::{Guardianship, Regulated};
use yore_domain::scope::ScopeRule;
use yore_domain::{AgentId, Error, Span, TenantId};
use yore_engine::{Call, GrantRequest, Retention, Secret, TokenKind, Wish};

use crate::conversations::{conversation, message};
use crate::support::{Vault, form, remembering};

const TYPE: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

async fn admin(vault: &Vault) -> String {
    let kind = TokenKind::Admin(TenantId::DEFAULT);
    let note = Some("the help desk".to_owned());
    vault.engine.issue_token(&vault.master(None), kind, None, note).await.unwrap()
}

#[tokio::test]
async fn an_administrator_sees_the_tenant_and_an_owner_does_not() {
    let vault = Vault::new().await;
    vault.stranger().await;
    let (browser, place) = vault.signed_in(&admin(&vault).await).await;
    assert_eq!(place, "/app/admin");
    let page = browser.get("/app/admin").await.expect(200);
    assert!(page.contains("somebody else") && page.contains(">Tenant</a>"), "{page}");
    assert!(!page.contains("/app/import"), "the frame offers an administrator its own pages");
    assert_eq!(browser.get("/app").await.place(), "/app/admin");
    let page = browser.get("/app/admin/users/somebody%20else").await.expect(200);
    assert!(page.contains("remember") && page.contains("Legal holds"), "{page}");

    let owner = vault.browser().await;
    for path in ["/app/admin", "/app/admin/users/somebody%20else"] {
        assert_eq!(owner.get(path).await.status, 403, "{path}");
    }
    assert_eq!(owner.post("/app/admin", &[("name", "mallory")]).await.status, 403);
    assert!(!owner.get("/app/search").await.expect(200).contains("/app/admin"));
    // The cookie that says as what one signed in opens nothing.
    let lying = format!("yore_session={}; yore_role=admin", owner.session);
    let reply = vault.bare(Method::GET, "/app/admin", &[("cookie", &lying)]).await;
    assert_eq!(reply.status, 403);
}

#[tokio::test]
async fn an_administrator_keeps_vaults_and_writes_nothing_in_them() {
    let vault = Vault::new().await;
    let stranger = vault.stranger().await;
    let memory = vault.remember_as(&stranger, Draft::text("the spare key is under the mat")).await;
    let (browser, _) = vault.signed_in(&admin(&vault).await).await;
    let page = browser.follow("/app/admin", &[("name", "newcomer")]).await;
    assert!(page.contains("newcomer"), "{page}");
    let reply = browser.post("/app/admin/users/newcomer/remove", &[]).await;
    assert_eq!(reply.place(), "/app/admin?said=user-gone");
    let full = browser.post("/app/admin/users/somebody%20else/remove", &[]).await;
    assert_eq!(full.status, 409, "a vault with something in it stays");

    let user = "/app/admin/users/somebody%20else";
    let days = [("conversations_days", "30"), ("memories_days", ""), ("children_days", "7")];
    let page = browser.follow(&format!("{user}/retention"), &days).await;
    assert!(page.contains(r#"name="conversations_days" type="number" min="1" value="30""#));
    let kept = vault.engine.retention(&stranger).await.unwrap();
    let wanted =
        Retention { conversations_days: Some(30), memories_days: None, children_days: Some(7) };
    assert_eq!(kept, wanted);

    let memory = memory.to_string();
    let hold = [("what", "memory"), ("id", memory.as_str()), ("held", "yes")];
    let page = browser.follow(&format!("{user}/hold"), &hold).await;
    assert!(page.contains("It is protected"), "{page}");
    let forget = yore_domain::mutation::Mutation::Forget {
        memories: vec![memory.parse().unwrap()],
        depth: yore_domain::mutation::Depth::Erase,
        reason: None,
    };
    assert!(vault.engine.mutate(&stranger, forget, Wish::default()).await.is_err());

    // An administrator looks; what belongs to the owner stays the owner's.
    assert_eq!(browser.get("/app/access").await.status, 403);
    assert_eq!(browser.post("/app/remember", &[("text", "x")]).await.status, 403);
}

#[tokio::test]
async fn an_administrator_of_one_tenant_learns_of_no_other() {
    let vault = Vault::new().await;
    vault.stranger().await;
    let made = vault.engine.add_tenant(&vault.master(None), "clinic".into()).await.unwrap();
    let kind = TokenKind::Admin(made.id);
    let token = vault.engine.issue_token(&vault.master(None), kind, None, None).await.unwrap();
    let (browser, _) = vault.signed_in(&token).await;
    let page = browser.get("/app/admin").await.expect(200);
    assert!(page.contains("clinic") && !page.contains("somebody else"), "{page}");
    for path in ["/app/admin/users/somebody%20else", "/app/admin/users/nobody"] {
        assert_eq!(browser.get(path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn an_administrators_sign_in_ends_with_its_token_and_by_signing_out() {
    let vault = Vault::new().await;
    let kind = TokenKind::Admin(TenantId::DEFAULT);
    let life = Some(Span::seconds(600));
    let token = vault.engine.issue_token(&vault.master(None), kind, life, None).await.unwrap();
    let (first, _) = vault.signed_in(&token).await;
    let (second, _) = vault.signed_in(&token).await;
    assert_ne!(first.session, token);
    assert_eq!(first.post("/app/logout", &[]).await.place(), "/app/login");
    assert_eq!(first.get("/app/admin").await.status, 303, "signed out");
    assert_eq!(second.get("/app/admin").await.status, 200);
    vault.clock.advance(Span::seconds(601));
    assert_eq!(second.get("/app/admin").await.status, 303, "it does not outlive the token");

    let service = TokenKind::Service(TenantId::DEFAULT);
    let token = vault.engine.issue_token(&vault.master(None), service, None, None).await.unwrap();
    let reply = vault.send(Method::POST, "/app/login", &[TYPE], form(&[("token", &token)])).await;
    assert_eq!((reply.status, reply.session()), (401, None), "a service is nobody");
}

/// A child's vault, with its guardian's token.
async fn guarded(vault: &Vault) -> (String, Call) {
    let owner = vault.owner_call();
    let guardian = "a parent's app";
    let guardianship = Guardianship {
        child: Some(true),
        consent: Some("consent-17".into()),
        guardian: Some(guardian.into()),
        stopped: false,
    };
    vault.engine.set_guardianship(&owner, guardianship).await.unwrap();
    let everything = Labels::AnyWith(Regulated::ALL.map(Regulated::label).to_vec());
    let request = GrantRequest {
        agent: AgentId::new(guardian).unwrap(),
        verbs: Verbs::of(&[Verb::Read, Verb::Export, Verb::Erase, Verb::Grant]),
        read: everything.clone(),
        write: everything,
        ceiling: Sensitivity::Restricted,
        scope: ScopeRule::default(),
        ttl: None,
        note: None,
    };
    let issued = vault.engine.issue_grant(&owner, request).await.unwrap();
    (issued.token.clone(), Call::bearer("test", Secret::new(issued.token)))
}

#[tokio::test]
async fn a_guardian_reviews_deletes_and_stops() {
    let vault = Vault::new().await;
    let (token, _) = guarded(&vault).await;
    let memory = vault.remember(Draft::text("I am afraid of the dark")).await;
    let head = conversation("A bedtime story", "chatgpt");
    let id = head.id;
    vault.converse(head, vec![message(Role::User, "hello")]).await;
    let (browser, place) = vault.signed_in(&token).await;
    assert_eq!(place, "/app/guardian");
    let page = browser.get("/app/guardian").await.expect(200);
    for wanted in ["afraid of the dark", "A bedtime story", "consent-17", "Stop storing"] {
        assert!(page.contains(wanted), "{wanted}: {page}");
    }
    // Review: what is kept can be read.
    let path = format!("/app/memory/{memory}");
    assert!(browser.get(&path).await.expect(200).contains("afraid of the dark"));
    assert!(browser.get("/app/search?q=dark").await.expect(200).contains("afraid"));
    let talk_path = format!("/app/conversations/{id}");
    assert!(browser.get(&talk_path).await.expect(200).contains("hello"));
    // Delete.
    browser.post(&format!("{path}/erase"), &[("sure", "yes")]).await.expect(200);
    assert_eq!(browser.post(&format!("{talk_path}/erase"), &[]).await.status, 400, "not sure");
    let page = browser.follow(&format!("{talk_path}/erase"), &[("sure", "yes")]).await;
    assert!(page.contains("Erased for good."), "{page}");
    assert_eq!(browser.get(&talk_path).await.status, 404);
    // Stop.
    let page = browser.follow("/app/guardian/stop", &[("stopped", "yes")]).await;
    assert!(page.contains("Nothing more is stored"), "{page}");
    let agent = vault.agent("helper").await;
    let more = vault.engine.mutate(&agent, remembering(Draft::text("x")), Wish::default()).await;
    assert!(matches!(more, Err(Error::Consent { .. })), "{more:?}");
    let page = browser.follow("/app/guardian/stop", &[("stopped", "no")]).await;
    assert!(page.contains("New things are stored"), "{page}");
    // What is not the guardian's.
    for path in ["/app/access", "/app/audit", "/app/backup", "/app/admin"] {
        assert_eq!(browser.get(path).await.status, 403, "{path}");
    }
}

#[tokio::test]
async fn other_agents_are_no_guardians() {
    let vault = Vault::new().await;
    guarded(&vault).await;
    let agent = vault.agent("helper").await;
    let token = agent.credentials.bearer.unwrap().expose().to_owned();
    let reply = vault.send(Method::POST, "/app/login", &[TYPE], form(&[("token", &token)])).await;
    assert_eq!((reply.status, reply.session()), (401, None));
}

#[tokio::test]
async fn a_guardians_sign_in_falls_with_the_grant() {
    let vault = Vault::new().await;
    let (token, _) = guarded(&vault).await;
    let (browser, _) = vault.signed_in(&token).await;
    let grants = vault.engine.grants(&vault.owner_call()).await.unwrap();
    vault.engine.revoke_grant(&vault.owner_call(), grants[0].id).await.unwrap();
    assert_eq!(browser.get("/app/guardian").await.status, 303);
}

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use axum::http::header::{COOKIE, HOST};
use http_body_util::BodyExt;
use tower::ServiceExt;
use yore_domain::hold::HoldState;
use yore_domain::memory::Draft;
use yore_domain::mutation::{Depth, Mutation};
use yore_domain::{Error, HoldId};
use yore_engine::Wish;
use yore_web::Options;

use crate::support::{Vault, remembering};

async fn state(vault: &Vault, hold: HoldId) -> HoldState {
    vault.engine.hold(&vault.owner_call(), hold).await.unwrap().state
}

async fn texts(vault: &Vault) -> Vec<String> {
    let page = yore_domain::query::PageRequest { limit: 50, ..Default::default() };
    let listed = vault.engine.list(&vault.owner_call(), Default::default(), page).await.unwrap();
    listed.items.into_iter().map(|memory| memory.head.content.body.text).collect()
}

#[tokio::test]
async fn what_waits_is_shown_side_by_side() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    assert!(browser.get("/app/review").await.expect(200).contains("Nothing waits for you"));
    let agent = vault.agent("scheduler").await;
    vault.held(&agent, "the raise is planned").await;
    let id = vault.remember(Draft::text("tea at nine")).await;
    let revise = Mutation::Revise {
        memory: id,
        patch: Box::new(yore_domain::mutation::Patch {
            body: Some(yore_domain::memory::Body { text: "tea at ten".into(), structured: None }),
            ..Default::default()
        }),
        expected: None,
    };
    let wish = Wish { approval: true, ..Wish::default() };
    let held = vault.engine.mutate(&agent, revise, wish).await;
    assert!(matches!(held, Err(Error::Held { .. })), "{held:?}");
    let page = browser.get("/app/review").await.expect(200);
    assert!(page.contains("<strong>scheduler</strong> wants to remember"), "{page}");
    assert!(page.contains("<ins>the raise is planned</ins>"), "{page}");
    assert!(page.contains("<strong>scheduler</strong> wants to change"), "{page}");
    assert!(page.contains("tea at <del>nine</del>") && page.contains("tea at <ins>ten</ins>"));
    assert!(browser.get("/app").await.expect(200).contains("<strong>2</strong> waiting"));
}

#[tokio::test]
async fn mw_012_the_address_of_one_that_waits_shows_it_alone() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let agent = vault.agent("scheduler").await;
    let hold = vault.held(&agent, "the raise is planned").await;
    vault.held(&agent, "the lunch is cancelled").await;
    let page = browser.get(&format!("/app/review/{hold}")).await.expect(200);
    assert!(page.contains("the raise is planned") && !page.contains("the lunch is cancelled"));
    let reject = yore_engine::Decision::Reject;
    vault.engine.review(&vault.owner_call(), hold, reject, None).await.unwrap();
    assert_eq!(browser.get(&format!("/app/review/{hold}")).await.status, 303);
    let nobody = HoldId::from_bytes([7; 16]);
    assert_eq!(browser.get(&format!("/app/review/{nobody}")).await.status, 404);
    assert_eq!(browser.get("/app/review/nonsense").await.status, 404);
}

#[tokio::test]
async fn approve_reject_and_edit() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let agent = vault.agent("scheduler").await;
    let (yes, no, other) = (
        vault.held(&agent, "good").await,
        vault.held(&agent, "bad").await,
        vault.held(&agent, "nearly right").await,
    );
    for (hold, decision) in [(yes, "approve"), (no, "reject")] {
        browser.follow("/app/review", &[("hold", &hold.to_string()), ("decision", decision)]).await;
    }
    let other = other.to_string();
    let fields = [("hold", other.as_str()), ("text", "exactly right")];
    browser.follow("/app/review/edit", &fields).await;
    assert_eq!(state(&vault, yes).await, HoldState::Approved);
    assert_eq!(state(&vault, no).await, HoldState::Rejected);
    let mut kept = texts(&vault).await;
    kept.sort();
    assert_eq!(kept, ["exactly right", "good"]);
    let id = yes.to_string();
    for (decision, status) in [("reject", 409), ("maybe", 400)] {
        let reply = browser.post("/app/review", &[("hold", &id), ("decision", decision)]).await;
        assert_eq!(reply.status, status, "{decision}");
    }
}

#[tokio::test]
async fn several_are_decided_at_once() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let agent = vault.agent("scheduler").await;
    let first = vault.held(&agent, "one").await.to_string();
    let second = vault.held(&agent, "two").await.to_string();
    let fields = [("hold", first.as_str()), ("hold", &second), ("decision", "approve")];
    let page = browser.follow("/app/review", &fields).await;
    assert!(page.contains("Nothing waits for you"), "{page}");
    assert_eq!(texts(&vault).await.len(), 2);
}

#[tokio::test]
async fn a_forget_that_waits_can_be_approved() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let agent = vault.agent("scheduler").await;
    let id = vault.remember(Draft::text("to be forgotten")).await;
    let forget = Mutation::Forget { memories: vec![id], depth: Depth::Tombstone, reason: None };
    let wish = Wish { approval: true, ..Wish::default() };
    let Err(Error::Held { hold }) = vault.engine.mutate(&agent, forget, wish).await else {
        panic!("it waits");
    };
    let page = browser.get("/app/review").await.expect(200);
    assert!(page.contains("wants to forget") && page.contains("<del>to be forgotten</del>"));
    let id = hold.to_string();
    let edit = browser.post("/app/review/edit", &[("hold", &id), ("text", "x")]).await;
    assert_eq!(edit.status, 400, "only a new memory has a text to edit");
    browser.follow("/app/review", &[("hold", &hold.to_string()), ("decision", "approve")]).await;
    assert!(texts(&vault).await.is_empty());
}

#[tokio::test]
async fn a_decision_can_be_taken_back_for_a_while() {
    let vault = Vault::with(Options { undo: Duration::from_secs(600), ..Options::default() }).await;
    let browser = vault.browser().await;
    let agent = vault.agent("scheduler").await;
    let hold = vault.held(&agent, "hasty").await;
    let id = hold.to_string();
    let page = browser.follow("/app/review", &[("hold", &id), ("decision", "approve")]).await;
    assert!(page.contains("Just decided") && page.contains("Approved: remember"), "{page}");
    assert_eq!(state(&vault, hold).await, HoldState::Pending);
    let other = vault.browser().await;
    let foreign = other.follow("/app/review/undo", &[("hold", &id)]).await;
    assert!(foreign.contains("Too late"), "another sign-in takes nothing back: {foreign}");
    let page = browser.follow("/app/review/undo", &[("hold", &id)]).await;
    assert!(page.contains("Taken back.") && page.contains("wants to remember"), "{page}");
    assert!(browser.follow("/app/review/undo", &[("hold", &id)]).await.contains("Too late"));
    let never = HoldId::random().to_string();
    let reply = browser.post("/app/review", &[("hold", &never), ("decision", "approve")]).await;
    assert_eq!(reply.status, 404, "what nobody knows is not decided later either");
}

#[tokio::test]
async fn a_decision_is_carried_out_after_the_while() {
    let vault =
        Vault::with(Options { undo: Duration::from_millis(30), ..Options::default() }).await;
    let browser = vault.browser().await;
    let agent = vault.agent("scheduler").await;
    let hold = vault.held(&agent, "considered").await;
    browser.follow("/app/review", &[("hold", &hold.to_string()), ("decision", "approve")]).await;
    for _ in 0..200 {
        if state(&vault, hold).await == HoldState::Approved {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(state(&vault, hold).await, HoldState::Approved);
    assert_eq!(texts(&vault).await, ["considered"]);
}

#[tokio::test]
async fn a_page_is_told_when_something_begins_to_wait() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let agent = vault.agent("scheduler").await;
    let request = Request::builder()
        .uri("/app/review/events")
        .header(HOST, "localhost")
        .header(COOKIE, browser.cookie())
        .body(Body::empty())
        .unwrap();
    let response = vault.router().oneshot(request).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body();
    vault.remember(Draft::text("this is no hold")).await;
    vault.held(&agent, "this is one").await;
    let mut told = String::new();
    while !told.contains("event: holds") {
        let frame = tokio::time::timeout(Duration::from_secs(20), body.frame()).await.unwrap();
        told += std::str::from_utf8(frame.unwrap().unwrap().data_ref().unwrap()).unwrap();
    }
    assert_eq!(told.matches("event:").count(), 1, "{told}");
    assert!(!told.contains("this is"), "{told}");
}

#[tokio::test]
async fn rules_are_made_and_switched_off() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    vault.rule("about money", &["salary"]).await;
    let page = browser.get("/app/rules").await.expect(200);
    assert!(page.contains("about money") && page.contains("words salary"), "{page}");
    let fields = [("name", "no health"), ("action", "refuse"), ("label", "health")];
    let page = browser.follow("/app/rules", &fields).await;
    assert!(page.contains("The rule is in force.") && page.contains("is turned down"), "{page}");
    let off = [("name", "about money"), ("state", "off")];
    let page = browser.follow("/app/rules/switch", &off).await;
    assert!(page.contains("The rule is switched off.") && page.contains("Switch on"), "{page}");
    assert!(vault.engine.rules(&vault.owner_call()).await.unwrap().iter().any(|rule| rule.off));
    let page = browser.follow("/app/rules/remove", &[("name", "about money")]).await;
    assert!(!page.contains("about money"), "{page}");
    assert_eq!(vault.engine.rules(&vault.owner_call()).await.unwrap().len(), 1);
    assert_eq!(browser.post("/app/rules", &[("name", ""), ("action", "hold")]).await.status, 400);
    assert_eq!(browser.post("/app/rules/remove", &[("name", "none")]).await.status, 404);
    assert_eq!(browser.post("/app/rules/switch", &[("name", "none")]).await.status, 404);
}

#[tokio::test]
async fn what_is_learned_from_decisions_is_shown_and_can_be_switched_off() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let page = browser.follow("/app/rules/learn", &[("after", "2")]).await;
    assert!(page.contains("After 2 decisions"), "{page}");
    vault.rule("about money", &["salary"]).await;
    let agent = vault.agent("helper").await;
    for text in ["restaurants pay a salary at nine", "restaurants pay a salary at ten"] {
        let asked = vault.engine.mutate(&agent, remembering(Draft::text(text)), Wish::default());
        let Err(Error::Held { hold }) = asked.await else { panic!("not held") };
        let fields = [("hold", &*hold.to_string()), ("decision", "approve")];
        assert_eq!(browser.post("/app/review", &fields).await.status, 303);
    }
    let rules = vault.engine.rules(&vault.owner_call()).await.unwrap();
    let learned = rules.iter().find(|rule| rule.learned).expect("a rule was learned");
    let page = browser.get("/app/rules").await.expect(200);
    assert!(page.contains("<span class=\"tag\">learned</span>"), "{page}");
    let off = [("name", learned.name.as_str()), ("state", "off")];
    let page = browser.follow("/app/rules/switch", &off).await;
    assert!(page.contains("<span class=\"tag\">off</span>"), "{page}");
    assert_eq!(browser.post("/app/rules/learn", &[("after", "1")]).await.status, 400);
    browser.follow("/app/rules/learn", &[]).await;
    assert_eq!(vault.engine.learning(&vault.owner_call()).await.unwrap(), None);
}

#[tokio::test]
async fn something_else_is_done_instead() {
    let vault = Vault::with(Options { undo: Duration::ZERO, ..Options::default() }).await;
    let browser = vault.browser().await;
    let known = vault.remember(Draft::text("Kim lives in Oslo")).await;
    let agent = vault.agent("scheduler").await;
    let wish = Wish { approval: true, ..Wish::default() };
    let forget = Mutation::Forget { memories: vec![known], depth: Depth::Tombstone, reason: None };
    let Err(Error::Held { hold }) = vault.engine.mutate(&agent, forget, wish).await else {
        panic!("a forgetting that asks waits")
    };
    let named = hold.to_string();
    let other = vault.remember(Draft::text("Kim moved to the harbour in May")).await;
    let place = format!("http://localhost/app/memory/{other}?said=revised");
    let page = browser.get("/app/review").await.expect(200);
    assert!(page.contains("Merge into another memory instead"), "{page}");
    for odd in ["change", "forget-others", "merge", ""] {
        let odd = [("hold", named.as_str()), ("what", odd), ("other", "nowhere")];
        assert_eq!(browser.post("/app/review/instead", &odd).await.status, 400);
    }
    let merged = [("hold", named.as_str()), ("what", "merge"), ("other", place.as_str())];
    browser.follow("/app/review/instead", &merged).await;
    let texts = texts(&vault).await;
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(texts[0].contains("Kim moved") && texts[0].contains("Oslo"), "{texts:?}");
}

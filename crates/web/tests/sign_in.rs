use axum::http::Method;
use axum::http::header::COOKIE;
use yore_domain::Span;
use yore_engine::{Call, Secret, TokenKind, token};
use yore_web::{SIGN_IN_LIFE, SIGN_IN_NOTE, sign_in};

use crate::support::{Reply, Vault, form};

const TYPE: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

async fn enter(vault: &Vault, pairs: &[(&str, &str)]) -> Reply {
    vault.send(Method::POST, "/app/login", &[TYPE], form(pairs)).await
}

#[tokio::test]
async fn strangers_are_led_to_the_sign_in_and_back() {
    let vault = Vault::new().await;
    for (path, place) in [
        ("/app", "/app/login"),
        ("/app/search?q=a%20b", "/app/login?next=%2Fapp%2Fsearch%3Fq%3Da%2520b"),
        ("/app/review", "/app/login?next=%2Fapp%2Freview"),
        ("/app/audit/export", "/app/login?next=%2Fapp%2Faudit%2Fexport"),
    ] {
        let reply = vault.bare(Method::GET, path, &[]).await;
        assert_eq!((reply.status, reply.place()), (303, place));
    }
    let page = vault.bare(Method::GET, "/app/login?next=%2Fapp%2Freview", &[]).await.expect(200);
    assert!(page.contains(r#"name="next" value="/app/review""#), "{page}");
    let reply = enter(&vault, &[("token", &vault.owner), ("next", "/app/review")]).await;
    assert_eq!((reply.status, reply.place()), (303, "/app/review"));
    let quick = vault.bare(Method::GET, "/app/search", &[("hx-request", "true")]).await;
    assert_eq!(
        (quick.status, quick.header("hx-redirect")),
        (401, "/app/login?next=%2Fapp%2Fsearch")
    );
}

#[tokio::test]
async fn nobody_is_sent_elsewhere_after_signing_in() {
    let vault = Vault::new().await;
    for next in ["https://evil.example", "//evil.example", "/\\evil.example", "/app/../mcp"] {
        let reply = enter(&vault, &[("token", &vault.owner), ("next", next)]).await;
        assert_eq!((reply.status, reply.place()), (303, "/app"), "{next}");
        let query = form(&[("next", next)]);
        let page = vault.bare(Method::GET, &format!("/app/login?{query}"), &[]).await.expect(200);
        assert!(!page.contains("evil.example"), "{page}");
    }
    let browser = vault.browser().await;
    let reply = browser.post("/app/theme", &[("theme", "dark"), ("next", "//evil.example")]).await;
    assert_eq!(reply.place(), "/app");
}

#[tokio::test]
async fn only_a_token_of_the_owner_signs_in() {
    let vault = Vault::new().await;
    let agent = vault.agent("helper").await;
    let agent = agent.credentials.bearer.unwrap().expose().to_owned();
    let unknown = format!("yore_v_{}_{}", "0".repeat(32), "1".repeat(64));
    for token in ["", "x", unknown.as_str(), agent.as_str()] {
        let reply = enter(&vault, &[("token", token)]).await;
        assert_eq!((reply.status, reply.session()), (401, None), "{token}");
        assert!(reply.text.contains("not a token of the owner"), "{}", reply.text);
        assert!(token.is_empty() || token == "x" || !reply.text.contains(token));
    }
}

#[tokio::test]
async fn a_sign_in_is_a_token_of_its_own() {
    let vault = Vault::new().await;
    // A cookie that somebody planted before is not taken over.
    let planted = "yore_session=planted";
    let lines = [TYPE, (COOKIE.as_str(), planted)];
    let reply =
        vault.send(Method::POST, "/app/login", &lines, form(&[("token", &vault.owner)])).await;
    let session = reply.session().unwrap();
    assert!(session != vault.owner && session != "planted");
    let again = enter(&vault, &[("token", &vault.owner)]).await.session().unwrap();
    assert_ne!(again, session);
    let tokens = vault.engine.tokens(&vault.owner_call()).await.unwrap();
    let kept = tokens.iter().find(|kept| kept.hash == token::digest(&Secret::new(&*session)));
    assert_eq!(kept.unwrap().note.as_deref(), Some("signed in to the web app"));
    assert!(kept.unwrap().expires.is_some());
}

#[tokio::test]
async fn who_signs_out_is_out() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let reply = browser.post("/app/logout", &[]).await;
    assert_eq!((reply.status, reply.place()), (303, "/app/login"));
    assert!(reply.header("set-cookie").contains("Max-Age=0"));
    assert_eq!(browser.get("/app").await.place(), "/app/login", "the cookie opens nothing more");
    let call = Call::bearer("test", Secret::new(&*browser.session));
    assert!(vault.engine.whoami(&call).await.is_err(), "nor does the token in it");
}

#[tokio::test]
async fn a_sign_in_ends_with_its_time() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    vault.clock.advance(Span::seconds(11 * 3600));
    assert_eq!(browser.get("/app/review").await.status, 200);
    vault.clock.advance(Span::seconds(2 * 3600));
    let reply = browser.get("/app/review").await;
    assert_eq!((reply.status, reply.place()), (303, "/app/login?next=%2Fapp%2Freview"));
    assert!(reply.header("set-cookie").contains("Max-Age=0"));
    let reply = browser.post("/app/remember", &[("text", "too late")]).await;
    assert_eq!((reply.status, reply.place()), (303, "/app/login"));
}

#[tokio::test]
async fn a_link_signs_in_once() {
    let vault = Vault::new().await;
    let note = Some(SIGN_IN_NOTE.to_owned());
    let call = vault.owner_call();
    let life = Some(SIGN_IN_LIFE);
    let key = vault.engine.issue_token(&call, TokenKind::Owner, life, note).await.unwrap();
    let link = sign_in("", &key);
    let foreign = vault.bare(Method::GET, &link, &[("sec-fetch-site", "cross-site")]).await;
    assert_eq!(
        (foreign.status, foreign.session()),
        (401, None),
        "a page elsewhere signs nobody in"
    );
    let reply = vault.bare(Method::GET, &link, &[("sec-fetch-site", "none")]).await;
    assert_eq!((reply.status, reply.place()), (303, "/app"));
    assert!(reply.session().is_some_and(|session| session != key));
    let again = vault.bare(Method::GET, &link, &[]).await;
    assert_eq!((again.status, again.session()), (401, None));
}

#[tokio::test]
async fn a_link_gets_old_and_lasting_tokens_are_no_links() {
    let vault = Vault::new().await;
    let reply = vault.bare(Method::GET, &sign_in("", &vault.owner), &[]).await;
    assert_eq!((reply.status, reply.session()), (401, None));
    let note = Some(SIGN_IN_NOTE.to_owned());
    let call = vault.owner_call();
    let key =
        vault.engine.issue_token(&call, TokenKind::Owner, Some(SIGN_IN_LIFE), note).await.unwrap();
    vault.clock.advance(Span::seconds(301));
    let reply = vault.bare(Method::GET, &sign_in("", &key), &[]).await;
    assert_eq!((reply.status, reply.session()), (401, None));
    assert!(reply.text.contains("yore open"), "{}", reply.text);
}

#[tokio::test]
async fn colours_can_be_chosen() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let reply = browser.post("/app/theme", &[("theme", "dark"), ("next", "/app/search")]).await;
    assert_eq!(reply.place(), "/app/search");
    assert!(reply.header("set-cookie").starts_with("yore_theme=dark; HttpOnly"));
    let cookie = format!("{}; yore_theme=dark", browser.cookie());
    let page = vault.bare(Method::GET, "/app", &[("cookie", &cookie)]).await.expect(200);
    assert!(page.contains(r#"<html lang="en" data-theme="dark">"#));
    let cookie = format!("{}; yore_theme=\"><script>", browser.cookie());
    let page = vault.bare(Method::GET, "/app", &[("cookie", &cookie)]).await.expect(200);
    assert!(page.contains(r#"<html lang="en">"#));
}

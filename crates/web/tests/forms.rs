//! What keeps other sites and other sign-ins out.

use axum::http::Method;
use axum::http::header::{CONTENT_TYPE, COOKIE};
use yore_domain::memory::Draft;
use yore_domain::query::Filter;
use yore_engine::Wish;

use crate::support::{Vault, form, remembering};

const FORMS: [&str; 21] = [
    "/app/remember",
    "/app/theme",
    "/app/logout",
    "/app/memory/ID/revise",
    "/app/memory/ID/label",
    "/app/memory/ID/forget",
    "/app/memory/ID/erase",
    "/app/memory/ID/restore",
    "/app/review",
    "/app/review/undo",
    "/app/review/edit",
    "/app/rules",
    "/app/rules/remove",
    "/app/rules/switch",
    "/app/rules/learn",
    "/app/access/preview",
    "/app/access/issue",
    "/app/access/revoke",
    "/app/audit/verify",
    "/app/health",
    "/app/backup",
];

const FIELDS: [(&str, &str); 8] = [
    ("text", "planted"),
    ("sure", "yes"),
    ("number", "1"),
    ("decision", "approve"),
    ("name", "planted"),
    ("action", "allow"),
    ("agent", "planted"),
    ("verbs", "read"),
];

#[tokio::test]
async fn a_form_without_its_mark_does_nothing() {
    let vault = Vault::new().await;
    let id = vault.remember(Draft::text("stays as it is")).await.to_string();
    let (browser, other) = (vault.browser().await, vault.browser().await);
    assert_ne!(browser.mark, other.mark);
    let before = vault.engine.history(&vault.owner_call(), id.parse().unwrap()).await.unwrap();
    for path in FORMS {
        let path = path.replace("ID", &id);
        for mark in [None, Some(""), Some("00"), Some(other.mark.as_str())] {
            let pairs: Vec<(&str, &str)> =
                mark.map(|mark| ("csrf", mark)).into_iter().chain(FIELDS).collect();
            let reply = browser.post_bare(&path, &pairs).await;
            assert_eq!(reply.status, 403, "{path} with {mark:?}");
        }
        let stranger = vault.send(Method::POST, &path, &[], form(&FIELDS)).await;
        assert_eq!((stranger.status, stranger.place()), (303, "/app/login"), "{path}");
    }
    let after = vault.engine.history(&vault.owner_call(), id.parse().unwrap()).await.unwrap();
    assert_eq!(before, after);
    assert_eq!(vault.engine.count(&vault.owner_call(), Filter::default()).await.unwrap(), 1);
    assert!(vault.engine.rules(&vault.owner_call()).await.unwrap().is_empty());
    assert!(vault.engine.grants(&vault.owner_call()).await.unwrap().is_empty());
    assert_eq!(browser.get("/app").await.status, 200, "nobody was signed out");
}

#[tokio::test]
async fn other_sites_send_nothing() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let (cookie, body) = (browser.cookie(), form(&[("csrf", &browser.mark), ("text", "planted")]));
    for site in ["cross-site", "same-site"] {
        let lines = [
            (CONTENT_TYPE.as_str(), "application/x-www-form-urlencoded"),
            (COOKIE.as_str(), cookie.as_str()),
            ("sec-fetch-site", site),
        ];
        let reply = vault.send(Method::POST, "/app/remember", &lines, body.clone()).await;
        assert_eq!(reply.status, 403, "{site}");
        let reply = vault.send(Method::POST, "/app/login", &lines, body.clone()).await;
        assert_eq!((reply.status, reply.session()), (403, None), "{site}");
    }
    assert_eq!(vault.engine.count(&vault.owner_call(), Filter::default()).await.unwrap(), 0);
}

#[tokio::test]
async fn every_answer_has_its_walls() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let missing = "/app/memory/00000000-0000-4000-8000-000000000000";
    for path in [
        "/app",
        "/app/search",
        "/app/review",
        "/app/rules",
        "/app/conversations",
        "/app/access",
        "/app/audit",
        "/app/health",
        "/app/api",
        "/app/login",
        "/app/nowhere",
        missing,
        "/app/assets/app.css",
        "/app/assets/none",
    ] {
        let reply = browser.get(path).await;
        let policy = reply.header("content-security-policy");
        assert!(policy.contains("default-src 'none'"), "{path}: {policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{path}: {policy}");
        assert!(!policy.contains("unsafe") && !policy.contains('*'), "{path}: {policy}");
        assert_eq!(reply.header("x-frame-options"), "DENY", "{path}");
        assert_eq!(reply.header("x-content-type-options"), "nosniff", "{path}");
        // With "no-referrer" a browser would call the origin of our own forms unknown.
        assert_eq!(reply.header("referrer-policy"), "same-origin", "{path}");
        let kept = path == "/app/assets/app.css";
        assert_eq!(reply.header("cache-control") == "no-store", !kept, "{path}");
        assert!(reply.text.len() < 100_000, "{path} has {} bytes", reply.text.len());
    }
    let bare = vault.bare(Method::GET, "/app", &[]).await;
    assert!(bare.header("content-security-policy").contains("default-src 'none'"));
}

#[tokio::test]
async fn ids_of_another_vault_are_missing() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let stranger = vault.stranger().await;
    let memory = vault.remember_as(&stranger, Draft::text("a foreign secret")).await;
    let wish = Wish { approval: true, ..Wish::default() };
    let held = vault.engine.mutate(&stranger, remembering(Draft::text("held there")), wish).await;
    let hold = match held {
        Err(yore_domain::Error::Held { hold }) => hold.to_string(),
        other => panic!("not held: {other:?}"),
    };
    let page = browser.get(&format!("/app/memory/{memory}")).await;
    let never = browser.get("/app/memory/00000000-0000-4000-8000-000000000000").await;
    assert_eq!((page.status, &page.text), (404, &never.text));
    for (path, pairs) in [
        (format!("/app/memory/{memory}/revise"), vec![("text", "mine now")]),
        (format!("/app/memory/{memory}/label"), vec![("labels", "x")]),
        (format!("/app/memory/{memory}/forget"), vec![]),
        (format!("/app/memory/{memory}/erase"), vec![("sure", "yes")]),
        (format!("/app/memory/{memory}/restore"), vec![("number", "1")]),
        ("/app/review".to_owned(), vec![("hold", hold.as_str()), ("decision", "approve")]),
        ("/app/review/edit".to_owned(), vec![("hold", hold.as_str()), ("text", "x")]),
    ] {
        assert_eq!(browser.post(&path, &pairs).await.status, 404, "{path}");
    }
    assert!(!browser.get("/app/search?q=foreign+secret").await.expect(200).contains("a foreign"));
    assert_eq!(vault.engine.history(&stranger, memory).await.unwrap().len(), 1);
}

#[tokio::test]
async fn files_are_packed_for_who_accepts_it_and_pages_never() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let style = "/app/assets/app.css";
    let ask = async |path: &str, lines: &[(&str, &str)]| vault.bare(Method::GET, path, lines).await;
    let plain = ask(style, &[]).await;
    let packed = ask(style, &[("accept-encoding", "gzip, br")]).await;
    let refused = ask(style, &[("accept-encoding", "gzip;q=0, *")]).await;
    assert_eq!((plain.status, packed.status, refused.status), (200, 200, 200));
    assert_eq!(packed.header("content-encoding"), "gzip");
    assert_eq!((plain.header("content-encoding"), refused.header("content-encoding")), ("", ""));
    for reply in [&plain, &packed, &refused] {
        assert_eq!(reply.header("vary"), "accept-encoding");
        assert_eq!(reply.header("content-type"), "text/css; charset=utf-8");
    }
    let tag = packed.header("etag");
    assert_ne!(tag, plain.header("etag"), "each form has a tag of its own");
    assert_eq!(refused.header("etag"), plain.header("etag"));
    let known = ask(style, &[("accept-encoding", "gzip"), ("if-none-match", tag)]).await;
    assert_eq!((known.status, known.header("etag"), known.text.len()), (304, tag, 0));
    assert_eq!(known.header("vary"), "accept-encoding");
    let other = ask(style, &[("if-none-match", tag)]).await;
    assert_eq!(other.status, 200, "the tag of one form is not that of the other");
    // What is packed tells by its length what is in it, and pages hold secrets.
    let cookie = browser.cookie();
    for path in ["/app", "/app/access", "/app/search?q=x"] {
        let lines = [("accept-encoding", "gzip"), ("cookie", cookie.as_str())];
        let page = ask(path, &lines).await;
        assert_eq!((page.status, page.header("content-encoding")), (200, ""), "{path}");
    }
}

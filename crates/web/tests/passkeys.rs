//! Passkeys, by an authenticator of our own: it signs what it is asked, or what a test wants.

use axum::http::Method;
use axum::http::header::COOKIE;
use serde_json::Value;
use yore_canon::encode::{base64url, from_base64url};
use yore_canon::hash::Sha256;
use yore_canon::key::{Algorithm, SigningKey};
use yore_engine::AuditQuery;

use crate::support::{Browser, Reply, Vault, form};

const TYPE: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

/// An authenticator with one passkey, and what it is told to do wrong.
struct Authenticator {
    key: SigningKey,
    user: Vec<u8>,
    counter: u32,
    flags: u8,
    host: &'static str,
    origin: &'static str,
}

impl Authenticator {
    fn new() -> Self {
        let key = SigningKey::generate(Algorithm::Ed25519, &[3; 32]);
        let (host, origin) = ("localhost", "http://localhost");
        Self { key, user: Vec::new(), counter: 1, flags: 5, host, origin }
    }

    fn client_data(&self, purpose: &str, challenge: &str) -> String {
        let origin = self.origin;
        format!(
            r#"{{"type":"webauthn.{purpose}","challenge":"{challenge}","origin":"{origin}","crossOrigin":false}}"#
        )
    }

    fn data(&self, flags: u8) -> Vec<u8> {
        let host = Sha256::of(self.host);
        [&host.as_bytes()[..], &[flags], &self.counter.to_be_bytes()].concat()
    }

    /// Makes the passkey and sends it.
    async fn register(&mut self, browser: &Browser<'_>) -> Reply {
        let asked = browser.post("/app/passkeys/ask", &[]).await.expect(200);
        let asked: Value = serde_json::from_str(&asked).unwrap();
        assert_eq!(asked["host"], "localhost");
        self.user = from_base64url(asked["user"].as_str().unwrap()).unwrap();
        self.answer(browser, asked["challenge"].as_str().unwrap()).await
    }

    async fn answer(&self, browser: &Browser<'_>, challenge: &str) -> Reply {
        let client = base64url(self.client_data("create", challenge).as_bytes());
        let key = self.key.verifying_key().to_bytes();
        let cose = [&[0xa4, 1, 1, 3, 0x27, 0x20, 6, 0x21, 0x58, 32][..], &key].concat();
        let made = [&[0; 16][..], &2u16.to_be_bytes(), b"id", &cose].concat();
        let data = [self.data(self.flags | 0x40), made].concat();
        let head = b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58";
        let object = [&head[..], &[u8::try_from(data.len()).unwrap()], &data].concat();
        let fields =
            [("name", "a laptop"), ("client", &client), ("attestation", &base64url(&object))];
        browser.post("/app/passkeys", &fields).await
    }

    /// Signs what a browser is asked, and sends it.
    async fn enter(&mut self, vault: &Vault) -> Reply {
        let (challenge, cookie) = asked(vault).await;
        self.show(vault, &challenge, &cookie).await
    }

    async fn show(&mut self, vault: &Vault, challenge: &str, cookie: &str) -> Reply {
        self.counter += 1;
        let client = self.client_data("get", challenge);
        let data = self.data(self.flags);
        let message = [&data[..], Sha256::of(&client).as_bytes()].concat();
        let signature = self.key.sign(&message);
        let fields = form(&[
            ("id", &base64url(b"id")),
            ("user", &base64url(&self.user)),
            ("client", &base64url(client.as_bytes())),
            ("data", &base64url(&data)),
            ("signature", &base64url(signature.as_bytes())),
            ("next", "/app/review"),
        ]);
        let lines = [TYPE, (COOKIE.as_str(), cookie)];
        vault.send(Method::POST, "/app/login/passkey", &lines, fields).await
    }
}

/// What a browser is asked, and the cookie that marks it.
async fn asked(vault: &Vault) -> (String, String) {
    let reply = vault.bare(Method::POST, "/app/login/ask", &[]).await;
    let set = reply.header("set-cookie").to_owned();
    assert!(set.starts_with("yore_asked=") && set.contains("HttpOnly"), "{set}");
    let asked: Value = serde_json::from_str(&reply.expect(200)).unwrap();
    let cookie = set.split(';').next().unwrap().to_owned();
    (asked["challenge"].as_str().unwrap().to_owned(), cookie)
}

async fn registered(vault: &Vault) -> Authenticator {
    let mut authenticator = Authenticator::new();
    let browser = vault.browser().await;
    let reply = authenticator.register(&browser).await;
    assert_eq!((reply.status, reply.place()), (303, "/app/access?said=passkey"), "{}", reply.text);
    authenticator
}

#[tokio::test]
async fn a_passkey_is_added_signs_in_and_is_taken_back() {
    let vault = Vault::new().await;
    let mut authenticator = registered(&vault).await;
    let browser = vault.browser().await;
    let page = browser.get("/app/access").await.expect(200);
    assert!(page.contains("a laptop") && page.contains("never"), "{page}");

    let reply = authenticator.enter(&vault).await;
    assert_eq!((reply.status, reply.place()), (303, "/app/review"), "{}", reply.text);
    let session = reply.session().unwrap();
    let cookie = format!("yore_session={session}");
    let page = vault.bare(Method::GET, "/app/access", &[("cookie", &cookie)]).await.expect(200);
    assert!(page.contains("this sign-in") && !page.contains("never</td>"), "{page}");

    let query = AuditQuery { limit: 100, ..AuditQuery::default() };
    let entries = vault.engine.audit(&vault.owner_call(), query).await.unwrap();
    for wanted in ["passkey.add", "sign-in"] {
        let told = entries.iter().filter(|entry| entry.draft.operation == wanted);
        assert!(told.filter(|entry| entry.draft.detail.contains_key("passkey")).count() == 1);
    }

    browser.follow("/app/passkeys/remove", &[("passkey", &base64url(b"id"))]).await;
    let reply = authenticator.enter(&vault).await;
    assert_eq!((reply.status, reply.session()), (401, None));
    let still = vault.bare(Method::GET, "/app/review", &[("cookie", &cookie)]).await;
    assert_eq!(still.status, 200, "who is signed in stays signed in");
}

#[tokio::test]
async fn a_passkey_signs_in_only_when_all_of_it_is_right() {
    type Spoil = fn(&mut Authenticator);
    let vault = Vault::new().await;
    registered(&vault).await;
    let wrong: [(&str, Spoil); 7] = [
        ("another key", |one| one.key = SigningKey::generate(Algorithm::Ed25519, &[4; 32])),
        ("another host", |one| one.host = "evil.example"),
        ("another origin", |one| one.origin = "http://evil.example"),
        ("another port", |one| one.origin = "http://localhost:1"),
        ("nobody was asked who they are", |one| one.flags = 1),
        ("nobody was there", |one| one.flags = 4),
        ("another vault", |one| one.user = vec![9; 16]),
    ];
    let user = registered_user(&vault).await;
    for (number, (name, spoil)) in (0_u32..).zip(wrong) {
        let mut authenticator = Authenticator::new();
        authenticator.user.clone_from(&user);
        authenticator.counter = 100 + number;
        spoil(&mut authenticator);
        let reply = authenticator.enter(&vault).await;
        assert_eq!((reply.status, reply.session()), (401, None), "{name}");
    }
    let mut right = Authenticator::new();
    right.user = user;
    right.counter = 200;
    assert!(right.enter(&vault).await.session().is_some());
}

async fn registered_user(vault: &Vault) -> Vec<u8> {
    let browser = vault.browser().await;
    let asked = browser.post("/app/passkeys/ask", &[]).await.expect(200);
    let asked: Value = serde_json::from_str(&asked).unwrap();
    from_base64url(asked["user"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn a_challenge_counts_once_and_for_one_browser() {
    let vault = Vault::new().await;
    let mut authenticator = registered(&vault).await;
    let (challenge, cookie) = asked(&vault).await;
    let (_, other) = asked(&vault).await;
    let reply = authenticator.show(&vault, &challenge, &other).await;
    assert_eq!((reply.status, reply.session()), (401, None), "another browser");
    let reply = authenticator.show(&vault, &challenge, "yore_theme=dark").await;
    assert_eq!((reply.status, reply.session()), (401, None), "no browser that was asked");
    assert!(authenticator.show(&vault, &challenge, &cookie).await.session().is_some());
    let reply = authenticator.show(&vault, &challenge, &cookie).await;
    assert_eq!((reply.status, reply.session()), (401, None), "again");
}

#[tokio::test]
async fn a_copied_passkey_is_found_out_by_its_counter() {
    let vault = Vault::new().await;
    let mut authenticator = registered(&vault).await;
    assert!(authenticator.enter(&vault).await.session().is_some());
    authenticator.counter = 0;
    let reply = authenticator.enter(&vault).await;
    assert_eq!((reply.status, reply.session()), (401, None));
}

#[tokio::test]
async fn only_the_owner_adds_passkeys_and_only_such_as_were_asked_for() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let unasked = Authenticator::new().answer(&browser, "AAAA").await;
    assert_eq!(unasked.status, 400, "nothing was asked");
    for spoil in [
        (|one: &mut Authenticator| one.flags = 1) as fn(&mut Authenticator),
        |one| one.origin = "https://evil.example",
        |one| one.host = "evil.example",
    ] {
        let mut authenticator = Authenticator::new();
        spoil(&mut authenticator);
        assert_eq!(authenticator.register(&browser).await.status, 400);
    }
    let mut authenticator = Authenticator::new();
    assert_eq!(authenticator.register(&browser).await.status, 303);
    assert_eq!(authenticator.register(&browser).await.status, 409, "it is known already");
    let foreign = browser.post_bare("/app/passkeys/ask", &[("csrf", "0")]).await;
    assert_eq!(foreign.status, 403);
}

//! Agents that are connected by clicking, and everybody who tries to be.

use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use serde_json::{Value, json};
use yore_canon::encode::base64url;
use yore_canon::hash::Sha256;
use yore_domain::Span;
use yore_domain::memory::Draft;
use yore_engine::{Call, Secret};
use yore_web::Options;

use crate::support::{Browser, Reply, Vault, form};

const VERIFIER: &str = "a-verifier-that-is-long-enough-to-be-one-0123456789";
const PLACE: &str = "http://127.0.0.1:9999/callback";

fn challenge() -> String {
    base64url(Sha256::of(VERIFIER).as_bytes())
}

async fn register(vault: &Vault, said: &Value) -> Reply {
    let lines = [(CONTENT_TYPE.as_str(), "application/json")];
    vault.send(Method::POST, "/oauth/register", &lines, said.to_string()).await
}

async fn client(vault: &Vault) -> String {
    let said = json!({ "client_name": "Claude Code", "redirect_uris": [PLACE] });
    let made: Value = serde_json::from_str(&register(vault, &said).await.expect(201)).unwrap();
    made["client_id"].as_str().unwrap().to_owned()
}

/// The request of a well-behaved client, with one member changed.
fn asking(client: &str, changed: Option<(&str, &str)>) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = [
        ("response_type", "code"),
        ("client_id", client),
        ("redirect_uri", PLACE),
        ("code_challenge", &challenge()),
        ("code_challenge_method", "S256"),
        ("scope", "read write"),
        ("state", "s&t=ate"),
        ("resource", "http://localhost/mcp"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    if let Some((name, value)) = changed {
        pairs.retain(|(other, _)| other != name);
        pairs.push((name.to_owned(), value.to_owned()));
    }
    pairs
}

fn borrowed(pairs: &[(String, String)]) -> Vec<(&str, &str)> {
    pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// Lets the owner agree; returns where that leads.
async fn agree(browser: &Browser<'_>, client: &str) -> String {
    let asked = asking(client, None);
    let mut pairs = borrowed(&asked);
    pairs.extend([("decision", "allow"), ("agent", "claude-code"), ("verbs", "read")]);
    let reply = browser.post("/app/oauth/authorize", &pairs).await;
    assert_eq!(reply.status, 303, "{}", reply.text);
    reply.place().to_owned()
}

fn member(place: &str, name: &str) -> Option<String> {
    let (_, query) = place.split_once('?')?;
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

async fn redeem(vault: &Vault, pairs: &[(&str, &str)]) -> (u16, Value) {
    let lines = [(CONTENT_TYPE.as_str(), "application/x-www-form-urlencoded")];
    let reply = vault.send(Method::POST, "/oauth/token", &lines, form(pairs)).await;
    assert_eq!(reply.header("cache-control"), "no-store");
    (reply.status, serde_json::from_str(&reply.text).unwrap())
}

fn redeeming<'a>(client: &'a str, code: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("grant_type", "authorization_code"),
        ("code", code),
        ("client_id", client),
        ("redirect_uri", PLACE),
        ("code_verifier", VERIFIER),
        ("resource", "http://localhost/mcp"),
    ]
}

#[tokio::test]
async fn an_agent_is_let_in_by_clicking() {
    let vault = Vault::new().await;
    vault.remember(Draft::text("tea at nine")).await;
    let browser = vault.browser().await;
    let described = vault.bare(Method::GET, "/.well-known/oauth-authorization-server", &[]).await;
    let described: Value = serde_json::from_str(&described.expect(200)).unwrap();
    assert_eq!(described["issuer"], "http://localhost");
    assert_eq!(described["code_challenge_methods_supported"], json!(["S256"]));
    let client = client(&vault).await;
    let address = format!("/app/oauth/authorize?{}", form(&borrowed(&asking(&client, None))));
    let stranger = vault.bare(Method::GET, &address, &[]).await;
    assert_eq!(stranger.status, 303, "the owner signs in first");
    let next = member(stranger.place(), "next").unwrap();
    assert_eq!(next, address, "and comes back to the question");
    let page = browser.get(&address).await;
    let policy = page.header("content-security-policy").to_owned();
    assert!(policy.contains("form-action 'self' http://127.0.0.1:9999;"), "{policy}");
    let page = page.expect(200);
    assert!(page.contains("Let Claude Code in?") && page.contains("1 memory today"), "{page}");
    let place = agree(&browser, &client).await;
    assert!(place.starts_with(PLACE), "{place}");
    assert_eq!(member(&place, "state").as_deref(), Some("s&t=ate"));
    assert_eq!(member(&place, "iss").as_deref(), Some("http://localhost"));
    assert!(vault.engine.grants(&vault.owner_call()).await.unwrap().is_empty(), "nothing yet");
    let code = member(&place, "code").unwrap();
    let (status, told) = redeem(&vault, &redeeming(&client, &code)).await;
    assert_eq!(
        (status, &told["token_type"], &told["scope"]),
        (200, &json!("Bearer"), &json!("read"))
    );
    assert_eq!(told["expires_in"], 8 * 3600, "a token is renewed during the day");
    let agent = Call::bearer("test", Secret::new(told["access_token"].as_str().unwrap()));
    assert_eq!(vault.engine.count(&agent, Default::default()).await.unwrap(), 1);
    assert_eq!(vault.engine.whoami(&agent).await.unwrap().agent.as_deref(), Some("claude-code"));
    assert!(browser.get("/app/access").await.expect(200).contains("connected by consent"));
}

#[tokio::test]
async fn the_owner_may_say_no() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let asked = asking(&client(&vault).await, None);
    let mut pairs = borrowed(&asked);
    pairs.push(("decision", "deny"));
    let reply = browser.post("/app/oauth/authorize", &pairs).await;
    assert_eq!(member(reply.place(), "error").as_deref(), Some("access_denied"));
    assert_eq!(member(reply.place(), "code"), None);
    let reply = browser.post_bare("/app/oauth/authorize", &pairs).await;
    assert_eq!(reply.status, 403, "without the mark of the form nothing is decided");
}

#[tokio::test]
async fn a_code_that_comes_again_takes_everything_back() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let client = client(&vault).await;
    let code = member(&agree(&browser, &client).await, "code").unwrap();
    let (_, told) = redeem(&vault, &redeeming(&client, &code)).await;
    let agent = Call::bearer("test", Secret::new(told["access_token"].as_str().unwrap()));
    assert!(vault.engine.whoami(&agent).await.is_ok());
    let (status, told) = redeem(&vault, &redeeming(&client, &code)).await;
    assert_eq!((status, &told["error"]), (400, &json!("invalid_grant")));
    assert!(vault.engine.whoami(&agent).await.is_err(), "what came of it is taken back");
}

#[tokio::test]
async fn only_who_asked_redeems_a_code() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let client = client(&vault).await;
    let wrong_verifier = "another-verifier-that-is-long-enough-0123456789";
    for (name, value, error) in [
        ("code_verifier", wrong_verifier, "invalid_grant"),
        ("code_verifier", "", "invalid_grant"),
        ("code_verifier", "short", "invalid_grant"),
        ("client_id", "yore-client.other", "invalid_client"),
        ("redirect_uri", "http://127.0.0.1:9999/other", "invalid_grant"),
        ("resource", "https://other.example/mcp", "invalid_target"),
        ("grant_type", "password", "unsupported_grant_type"),
        ("code", "made-up", "invalid_grant"),
    ] {
        let code = member(&agree(&browser, &client).await, "code").unwrap();
        let mut pairs = redeeming(&client, &code);
        pairs.retain(|(other, _)| *other != name);
        pairs.push((name, value));
        let (status, told) = redeem(&vault, &pairs).await;
        assert_eq!((status, told["error"].as_str()), (400, Some(error)), "{name}={value}");
        assert!(told.get("access_token").is_none());
    }
    assert!(vault.engine.grants(&vault.owner_call()).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_code_gets_old_and_ends_with_the_sign_in() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let client = client(&vault).await;
    let code = member(&agree(&browser, &client).await, "code").unwrap();
    vault.clock.advance(Span::seconds(61));
    assert_eq!(redeem(&vault, &redeeming(&client, &code)).await.0, 400);
    let code = member(&agree(&browser, &client).await, "code").unwrap();
    browser.post("/app/logout", &[]).await.expect(303);
    let (status, told) = redeem(&vault, &redeeming(&client, &code)).await;
    assert_eq!((status, told["error"].as_str()), (400, Some("invalid_grant")));
}

#[tokio::test]
async fn what_cannot_be_trusted_is_told_nothing() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let client = client(&vault).await;
    for changed in [
        ("client_id", "nobody"),
        ("redirect_uri", "https://evil.example/"),
        ("redirect_uri", "javascript:alert(1)"),
        ("redirect_uri", ""),
    ] {
        let asked = asking(&client, Some(changed));
        let address = format!("/app/oauth/authorize?{}", form(&borrowed(&asked)));
        let reply = browser.get(&address).await;
        assert_eq!((reply.status, reply.place()), (400, ""), "{changed:?}");
        assert!(!reply.text.contains("evil.example"), "{}", reply.text);
        let mut pairs = borrowed(&asked);
        pairs.push(("decision", "allow"));
        assert_eq!(browser.post("/app/oauth/authorize", &pairs).await.status, 400, "{changed:?}");
    }
}

#[tokio::test]
async fn what_is_asked_wrongly_is_told_so() {
    let vault = Vault::new().await;
    let browser = vault.browser().await;
    let client = client(&vault).await;
    for (name, value, error) in [
        ("response_type", "token", "unsupported_response_type"),
        ("code_challenge_method", "plain", "invalid_request"),
        ("code_challenge", "", "invalid_request"),
        ("scope", "read admin", "invalid_scope"),
        ("resource", "https://other.example/mcp", "invalid_target"),
    ] {
        let asked = asking(&client, Some((name, value)));
        let address = format!("/app/oauth/authorize?{}", form(&borrowed(&asked)));
        let reply = browser.get(&address).await;
        assert_eq!(reply.status, 303, "{name}={value}: {}", reply.text);
        assert!(reply.place().starts_with(PLACE), "{}", reply.place());
        assert_eq!(member(reply.place(), "error").as_deref(), Some(error), "{name}={value}");
    }
}

#[tokio::test]
async fn a_registration_must_make_sense() {
    let vault = Vault::new().await;
    for said in [
        json!({}),
        json!({ "redirect_uris": [] }),
        json!({ "redirect_uris": ["javascript:alert(1)"] }),
        json!({ "redirect_uris": ["http://evil.example/"] }),
        json!([]),
    ] {
        let reply = register(&vault, &said).await;
        assert_eq!(reply.status, 400, "{said}");
        assert!(reply.text.contains("invalid_client_metadata"), "{}", reply.text);
    }
}

/// What is exchanged for the next token.
fn renewing<'a>(client: &'a str, renewal: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("grant_type", "refresh_token"),
        ("refresh_token", renewal),
        ("client_id", client),
        ("resource", "http://localhost/mcp"),
    ]
}

/// A client that was let in, with its token and what renews it.
async fn let_in(vault: &Vault) -> (String, Call, String) {
    let browser = vault.browser().await;
    let client = client(vault).await;
    let code = member(&agree(&browser, &client).await, "code").unwrap();
    let (_, told) = redeem(vault, &redeeming(&client, &code)).await;
    let agent = Call::bearer("test", Secret::new(told["access_token"].as_str().unwrap()));
    (client, agent, told["refresh_token"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_token_is_renewed_without_asking_again() {
    let vault = Vault::new().await;
    let (client, agent, renewal) = let_in(&vault).await;
    let bare = Call::bearer("test", Secret::new(renewal.clone()));
    assert!(vault.engine.whoami(&bare).await.is_err(), "what renews opens nothing");
    vault.clock.advance(Span::seconds(8 * 3600 + 1));
    assert!(vault.engine.whoami(&agent).await.is_err(), "a token lives for a while");
    let (status, told) = redeem(&vault, &renewing(&client, &renewal)).await;
    assert_eq!((status, &told["expires_in"]), (200, &json!(8 * 3600)), "{told}");
    let next = Call::bearer("test", Secret::new(told["access_token"].as_str().unwrap()));
    assert_eq!(vault.engine.whoami(&next).await.unwrap().agent.as_deref(), Some("claude-code"));
    assert_eq!(vault.engine.grants(&vault.owner_call()).await.unwrap().len(), 1, "one grant");
}

#[tokio::test]
async fn what_renews_counts_once_and_for_its_client_only() {
    let vault = Vault::new().await;
    let (client, agent, renewal) = let_in(&vault).await;
    for (name, value, error) in [
        ("client_id", "yore-client.other", "invalid_grant"),
        ("refresh_token", "yore_v_00_00", "invalid_grant"),
        ("refresh_token", &vault.owner, "invalid_grant"),
        ("resource", "https://other.example/mcp", "invalid_target"),
    ] {
        let mut pairs = renewing(&client, &renewal);
        pairs.retain(|(other, _)| *other != name);
        pairs.push((name, value));
        let (status, told) = redeem(&vault, &pairs).await;
        assert_eq!((status, told["error"].as_str()), (400, Some(error)), "{name}={value}");
    }
    let (status, told) = redeem(&vault, &renewing(&client, &renewal)).await;
    assert_eq!(status, 200, "what others tried spoils nothing: {told}");
    let next = Call::bearer("test", Secret::new(told["access_token"].as_str().unwrap()));
    assert!(vault.engine.whoami(&next).await.is_ok());
    let (status, told) = redeem(&vault, &renewing(&client, &renewal)).await;
    assert_eq!((status, told["error"].as_str()), (400, Some("invalid_grant")));
    for gone in [&agent, &next] {
        assert!(vault.engine.whoami(gone).await.is_err(), "a stolen renewal ends the grant");
    }
}

#[tokio::test]
async fn what_was_taken_back_is_not_renewed() {
    let vault = Vault::new().await;
    let (client, _, renewal) = let_in(&vault).await;
    let owner = vault.owner_call();
    let grant = vault.engine.grants(&owner).await.unwrap()[0].id;
    vault.engine.revoke_grant(&owner, grant).await.unwrap();
    assert_eq!(redeem(&vault, &renewing(&client, &renewal)).await.0, 400);
}

#[tokio::test]
async fn a_client_with_an_address_needs_no_registration() {
    const CARD: &str = "https://host.example/client.json";
    let said = json!({ "client_id": CARD, "client_name": "Claude Code", "redirect_uris": [PLACE] });
    let fetch = yore_web::Fetch(std::sync::Arc::new(move |url| -> yore_web::Fetched {
        let said = said.to_string();
        Box::pin(async move {
            if url == CARD { Ok(said.into_bytes()) } else { Err("the answer was 404".into()) }
        })
    }));
    let vault = Vault::with(Options { fetch: Some(fetch), ..Options::default() }).await;
    let described = vault.bare(Method::GET, "/.well-known/oauth-authorization-server", &[]).await;
    let described: Value = serde_json::from_str(&described.expect(200)).unwrap();
    assert_eq!(described["client_id_metadata_document_supported"], true);
    let browser = vault.browser().await;
    let address = format!("/app/oauth/authorize?{}", form(&borrowed(&asking(CARD, None))));
    let page = browser.get(&address).await.expect(200);
    assert!(
        page.contains("Let Claude Code in?") && page.contains("https://host.example"),
        "{page}"
    );
    let code = member(&agree(&browser, CARD).await, "code").unwrap();
    assert_eq!(redeem(&vault, &redeeming(CARD, &code)).await.0, 200);
    for (name, other) in [
        ("client_id", "https://host.example/another.json"),
        ("client_id", "http://host.example/client.json"),
        ("redirect_uri", "https://evil.example/cb"),
    ] {
        let asked = asking(CARD, Some((name, other)));
        let address = format!("/app/oauth/authorize?{}", form(&borrowed(&asked)));
        let page = browser.get(&address).await.expect(400);
        assert!(page.contains("Not to be trusted"), "{name}={other}");
    }
}

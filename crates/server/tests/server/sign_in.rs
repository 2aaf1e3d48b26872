//! Signing in through an identity provider, which the test plays over real connections: it checks
//! what it is asked (PKCE, secret, code) and can be told to lie.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::json;
use yore_canon::encode::base64url;
use yore_canon::hash::Sha256;
use yore_canon::key::{Algorithm, SigningKey};
use yore_client::{api, input};
use yore_engine::Clock as _;
use yore_server::SystemClock;

use crate::support::{Server, exchange, remember};

const SECRET: &str = "between us";

/// What the provider says, and what it does wrong.
#[derive(Clone, Default)]
struct Told {
    groups: Vec<&'static str>,
    audience: Option<&'static str>,
    nonce: Option<&'static str>,
    issuer: Option<&'static str>,
    forged: bool,
    unsigned: bool,
    late: bool,
}

struct Provider {
    issuer: String,
    key: SigningKey,
    told: Mutex<Told>,
    /// What was asked for each code: the challenge and the nonce.
    asked: Mutex<HashMap<String, (String, String)>>,
}

impl Provider {
    async fn start() -> Arc<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let provider = Arc::new(Self {
            issuer,
            key: SigningKey::generate(Algorithm::P256, &[5; 32]),
            told: Mutex::default(),
            asked: Mutex::default(),
        });
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(described))
            .route("/keys", get(keys))
            .route("/token", post(token))
            .with_state(Arc::clone(&provider));
        tokio::spawn(async move { axum::serve(listener, router).await });
        provider
    }

    fn say(&self, told: Told) {
        *self.told.lock().unwrap() = told;
    }

    /// What happens at its page: somebody signs in there, and is sent back with a code.
    fn agree(&self, address: &str) -> (String, String) {
        let query = address.strip_prefix(&format!("{}/authorize?", self.issuer)).unwrap();
        let asked: HashMap<String, String> =
            form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        assert_eq!(asked["client_id"], "yore");
        assert_eq!(asked["response_type"], "code");
        assert_eq!(asked["code_challenge_method"], "S256");
        assert!(asked["scope"].split(' ').any(|scope| scope == "openid"), "{asked:?}");
        assert!(asked["redirect_uri"].ends_with("/app/operators/return"), "{asked:?}");
        let code = format!("code-{}", self.asked.lock().unwrap().len());
        let kept = (asked["code_challenge"].clone(), asked["nonce"].clone());
        self.asked.lock().unwrap().insert(code.clone(), kept);
        (code, asked["state"].clone())
    }
}

async fn described(State(provider): State<Arc<Provider>>) -> String {
    let issuer = &provider.issuer;
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "jwks_uri": format!("{issuer}/keys"),
    })
    .to_string()
}

async fn keys(State(provider): State<Arc<Provider>>) -> String {
    let mut key = provider.key.verifying_key().to_jwk();
    key["kid"] = json!("1");
    json!({ "keys": [key] }).to_string()
}

async fn token(
    State(provider): State<Arc<Provider>>,
    headers: HeaderMap,
    body: String,
) -> Response {
    let form: HashMap<String, String> =
        form_urlencoded::parse(body.as_bytes()).into_owned().collect();
    let expected = format!("Basic {}", yore_canon::encode::base64(b"yore:between+us"));
    let shown = headers.get("authorization").and_then(|value| value.to_str().ok());
    let kept = provider.asked.lock().unwrap().remove(&form["code"]);
    let Some((challenge, nonce)) = kept else { return StatusCode::BAD_REQUEST.into_response() };
    let proven = base64url(Sha256::of(&form["code_verifier"]).as_bytes()) == challenge;
    if shown != Some(expected.as_str()) || !proven || form["grant_type"] != "authorization_code" {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let told = provider.told.lock().unwrap().clone();
    let now = SystemClock::default().now().micros() / 1_000_000;
    let claims = json!({
        "iss": told.issuer.unwrap_or(&provider.issuer),
        "aud": told.audience.unwrap_or("yore"),
        "nonce": told.nonce.unwrap_or(&nonce),
        "sub": "u-17",
        "preferred_username": "kim",
        "groups": told.groups,
        "iat": now,
        "exp": if told.late { now - 600 } else { now + 300 },
    });
    let head = match told.unsigned {
        true => json!({ "alg": "none" }),
        false => json!({ "alg": "ES256", "kid": "1" }),
    };
    let message = [head, claims].map(|part| base64url(part.to_string().as_bytes())).join(".");
    let key = match told.forged {
        true => SigningKey::generate(Algorithm::P256, &[6; 32]),
        false => provider.key.clone(),
    };
    let signature = match told.unsigned {
        true => String::new(),
        false => base64url(key.sign(message.as_bytes()).as_bytes()),
    };
    let id_token = format!("{message}.{signature}");
    json!({ "access_token": "x", "token_type": "Bearer", "id_token": id_token })
        .to_string()
        .into_response()
}

/// A browser: what it asks with, and what it is answered.
struct Answer {
    status: u16,
    place: String,
    cookies: Vec<String>,
    body: String,
}

async fn ask(at: SocketAddr, line: &str, cookies: &[String], body: &str) -> Answer {
    let cookies = cookies.join("; ");
    let kind = "application/x-www-form-urlencoded";
    let head = format!(
        "{line} HTTP/1.1\r\nHost: localhost:{}\r\nConnection: close\r\nCookie: {cookies}\r\n\
         Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
        at.port(),
        body.len()
    );
    let (status, text) = exchange(at, head.as_bytes()).await;
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let lines = |name: &str| -> Vec<String> {
        let found = head.lines().filter_map(|line| line.split_once(": "));
        let found = found.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.to_owned()).collect()
    };
    let set = lines("set-cookie");
    let cookies = set.iter().map(|line| line.split(';').next().unwrap().to_owned());
    Answer {
        status,
        place: lines("location").into_iter().next().unwrap_or_default(),
        cookies: cookies.filter(|pair| !pair.ends_with('=')).collect(),
        body: body.to_owned(),
    }
}

async fn started() -> (Server, Arc<Provider>, tempfile::TempDir) {
    let provider = Provider::start().await;
    let place = tempfile::tempdir().unwrap();
    let secret = place.path().join("secret");
    std::fs::write(&secret, format!("{SECRET}\n")).unwrap();
    let file = place.path().join("yore.toml");
    let config = format!(
        r#"
        [[sign_in]]
        name = "Example Corp"
        issuer = "{}"
        client_id = "yore"
        client_secret_file = "{}"
        [[sign_in.roles]]
        group = "admins"
        role = "admin"
        [[sign_in.roles]]
        group = "desk"
        role = "operator"
        verbs = ["read", "review"]
        agent = "scheduler"
        ceiling = "internal"
        "#,
        provider.issuer,
        secret.display()
    );
    std::fs::write(&file, config).unwrap();
    let server = Server::start_with(|layers| layers.file(file)).await;
    (server, provider, place)
}

/// Goes to the provider and comes back; answers with the last page.
async fn come_and_go(server: &Server, provider: &Provider) -> Answer {
    let at = server.http();
    let left = ask(at, "GET /app/operators?provider=0&next=%2Fapp", &[], "").await;
    assert_eq!(left.status, 303, "{}", left.body);
    let (code, state) = provider.agree(&left.place);
    ask(at, &format!("GET /app/operators/return?code={code}&state={state}"), &left.cookies, "")
        .await
}

#[tokio::test]
async fn groups_become_roles() {
    let (server, provider, _place) = started().await;
    let at = server.http();
    let login = ask(at, "GET /app/login", &[], "").await;
    assert!(login.body.contains("Sign in with Example Corp"), "{}", login.body);

    provider.say(Told { groups: vec!["admins"], ..Told::default() });
    let back = come_and_go(&server, &provider).await;
    assert_eq!((back.status, back.place.as_str()), (303, "/app/admin"), "{}", back.body);
    let page = ask(at, "GET /app/admin", &back.cookies, "").await;
    assert!(page.status == 200 && page.body.contains("Users of"), "{}", page.body);
    let own = ask(at, "GET /app/access", &back.cookies, "").await;
    assert_ne!(own.status, 200, "an administrator is no owner");

    provider.say(Told { groups: vec!["people", "cooks"], ..Told::default() });
    let back = come_and_go(&server, &provider).await;
    assert_eq!(back.status, 401, "no group has a role");
    assert!(back.body.contains("None of your groups"), "{}", back.body);
    server.end().await;
}

#[tokio::test]
async fn an_operator_sees_one_agents_memories_and_no_more() {
    let (server, provider, _place) = started().await;
    let at = server.http();
    let mut own = remember("the owner's own secret plan");
    own.draft.content.scope.agent = None;
    server.client().call::<api::Remember>(own).await.unwrap();
    let mut theirs = remember("the plan of the scheduler");
    theirs.draft.content.scope.agent = Some("scheduler".into());
    server.client().call::<api::Remember>(theirs).await.unwrap();

    provider.say(Told { groups: vec!["desk"], ..Told::default() });
    let back = come_and_go(&server, &provider).await;
    assert_eq!((back.status, back.place.as_str()), (303, "/app/search"), "{}", back.body);
    let found = ask(at, "GET /app/search?q=plan", &back.cookies, "").await;
    assert_eq!(found.status, 200, "{}", found.body);
    assert!(found.body.contains("of the scheduler"), "{}", found.body);
    assert!(!found.body.contains("secret plan"), "{}", found.body);
    assert_eq!(ask(at, "GET /app/review", &back.cookies, "").await.status, 200);
    for path in ["/app/access", "/app/backup", "/app/admin", "/app/health"] {
        assert_eq!(ask(at, &format!("GET {path}"), &back.cookies, "").await.status, 403, "{path}");
    }
    let grants = server.client().call::<api::Grants>(input::Nothing {}).await.unwrap();
    let grant = grants.iter().find(|grant| grant.agent.as_str() == "operator:kim").unwrap();
    assert_eq!(grant.note.as_deref(), Some("kim through Example Corp"));
    server.end().await;
}

#[tokio::test]
async fn who_has_several_roles_chooses_one() {
    let (server, provider, _place) = started().await;
    let at = server.http();
    provider.say(Told { groups: vec!["desk", "admins"], ..Told::default() });
    let left = ask(at, "GET /app/operators?provider=0", &[], "").await;
    let (code, state) = provider.agree(&left.place);
    let line = format!("GET /app/operators/return?code={code}&state={state}");
    let choice = ask(at, &line, &left.cookies, "").await;
    assert!(choice.status == 200 && choice.body.contains("Administrator"), "{}", choice.body);
    let stranger = ask(at, "POST /app/operators/seat", &[], "seat=0").await;
    assert_eq!(stranger.status, 401);
    let sat = ask(at, "POST /app/operators/seat", &left.cookies, "seat=1").await;
    assert_eq!((sat.status, sat.place.as_str()), (303, "/app/search"), "{}", sat.body);
    let again = ask(at, "POST /app/operators/seat", &left.cookies, "seat=0").await;
    assert_eq!(again.status, 401, "a choice is made once");
    server.end().await;
}

#[tokio::test]
async fn what_a_provider_did_not_say_to_us_lets_nobody_in() {
    let (server, provider, _place) = started().await;
    let lies: [(&str, Told); 6] = [
        ("another audience", Told { audience: Some("other"), ..Told::default() }),
        ("another nonce", Told { nonce: Some("other"), ..Told::default() }),
        ("another issuer", Told { issuer: Some("https://evil.example"), ..Told::default() }),
        ("another key", Told { forged: true, ..Told::default() }),
        ("no signature", Told { unsigned: true, ..Told::default() }),
        ("too old", Told { late: true, ..Told::default() }),
    ];
    for (name, told) in lies {
        provider.say(Told { groups: vec!["admins"], ..told });
        let back = come_and_go(&server, &provider).await;
        assert_eq!(back.status, 401, "{name}: {}", back.body);
        assert!(!back.cookies.iter().any(|pair| pair.starts_with("yore_session")), "{name}");
    }
    server.end().await;
}

#[tokio::test]
async fn an_answer_counts_once_for_the_browser_that_was_sent() {
    let (server, provider, _place) = started().await;
    let at = server.http();
    provider.say(Told { groups: vec!["admins"], ..Told::default() });
    let left = ask(at, "GET /app/operators?provider=0", &[], "").await;
    let other = ask(at, "GET /app/operators?provider=0", &[], "").await;
    let (code, state) = provider.agree(&left.place);
    let line = format!("GET /app/operators/return?code={code}&state={state}");
    assert_eq!(ask(at, &line, &[], "").await.status, 401, "no browser that was sent");
    assert_eq!(ask(at, &line, &other.cookies, "").await.status, 401, "another browser");
    let wrong = format!("GET /app/operators/return?code={code}&state=x");
    let third = ask(at, "GET /app/operators?provider=0", &[], "").await;
    assert_eq!(ask(at, &wrong, &third.cookies, "").await.status, 401, "another state");
    assert_eq!(ask(at, &line, &left.cookies, "").await.status, 303);
    assert_eq!(ask(at, &line, &left.cookies, "").await.status, 401, "again");
    let denied = ask(at, "GET /app/operators?provider=0", &[], "").await;
    let line = "GET /app/operators/return?error=access_denied";
    assert_eq!(ask(at, line, &denied.cookies, "").await.status, 401);
    assert_eq!(ask(at, "GET /app/operators?provider=7", &[], "").await.status, 404);
    server.end().await;
}

#[tokio::test]
async fn a_provider_in_clear_text_elsewhere_is_refused_at_the_start() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("yore.toml");
    let text = "[[sign_in]]\nname = \"x\"\nissuer = \"http://id.example\"\nclient_id = \"y\"\n";
    std::fs::write(&file, text).unwrap();
    let layers = crate::support::layers(&place).file(file);
    let refused = yore_server::Config::load(layers).and_then(|config| config.check());
    assert!(refused.unwrap_err().to_string().contains("must be https"));
}

//! A vault in a temporary directory behind the real router, and a browser in front of it.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::{COOKIE, HOST, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, Method, Request};
use http_body_util::BodyExt;
use tempfile::TempDir;
use tower::ServiceExt;
use yore_domain::class::Sensitivity;
use yore_domain::conversation::{Conversation, Message};
use yore_domain::grant::{Labels, Verb, Verbs};
use yore_domain::hold::{Rule, RuleAction};
use yore_domain::memory::Draft;
use yore_domain::mutation::Mutation;
use yore_domain::scope::ScopeRule;
use yore_domain::{AgentId, Error, HoldId, MemoryId, Timestamp};
use yore_engine::dialect::Registry;
use yore_engine::{
    Call, Engine, FixedClock, GrantRequest, Parts, Secret, Settings, TokenKind, VaultRef, Wish,
    token,
};
use yore_http::Surface;
use yore_web::Options;
use zeroize::Zeroizing;

/// 2027-01-15T08:00:00Z.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const LOCAL_KEY: [u8; 32] = [7; 32];

pub(crate) struct Vault {
    pub(crate) engine: Engine,
    pub(crate) clock: Arc<FixedClock>,
    /// The owner's token.
    pub(crate) owner: String,
    router: Router,
    directory: TempDir,
}

/// What a browser got.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Reply {
    /// Where it leads.
    pub(crate) fn place(&self) -> &str {
        self.header(LOCATION.as_str())
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The cookie of a sign-in that it sets.
    pub(crate) fn session(&self) -> Option<String> {
        let lines = self.headers.get_all(SET_COOKIE).iter().map(|line| line.to_str().unwrap());
        let found = lines.filter_map(|line| line.strip_prefix("yore_session=")).next()?;
        Some(found.split(';').next().unwrap().to_owned())
    }

    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> String {
        assert_eq!(self.status, status, "{} {}", self.place(), self.text);
        self.text
    }
}

impl Vault {
    pub(crate) async fn new() -> Self {
        Self::with(Options { undo: Duration::ZERO, ..Options::default() }).await
    }

    pub(crate) async fn with(mut options: Options) -> Self {
        let directory = TempDir::new().unwrap();
        options.spool = Some(directory.path().join("spool"));
        let (store, keeper) = yore_scratch::open(directory.path()).await;
        let clock = Arc::new(FixedClock::at(NOW));
        let engine = Engine::new(Parts {
            store,
            keeper,
            clock: clock.clone(),
            local_key: Zeroizing::new(LOCAL_KEY),
            settings: Settings { strict_audit: true, ..Settings::default() },
        });
        let master = Call::bearer("test", token::proof(&LOCAL_KEY, NOW));
        let owner = engine.issue_token(&master, TokenKind::Owner, None, None).await.unwrap();
        let surface = Surface::new(engine.clone(), Arc::new(Registry::default()));
        let router = yore_web::routes(surface, options);
        Self { engine, clock, owner, router, directory }
    }

    /// What lies in the spool.
    pub(crate) fn spooled(&self) -> usize {
        std::fs::read_dir(self.directory.path().join("spool")).map_or(0, Iterator::count)
    }

    /// All bytes that lie in the spool.
    pub(crate) fn spooled_bytes(&self) -> Vec<u8> {
        let mut found = Vec::new();
        for room in std::fs::read_dir(self.directory.path().join("spool")).unwrap() {
            for file in std::fs::read_dir(room.unwrap().path()).unwrap() {
                found.extend(std::fs::read(file.unwrap().path()).unwrap());
            }
        }
        found
    }

    pub(crate) fn owner_call(&self) -> Call {
        Call::bearer("test", Secret::new(self.owner.clone()))
    }

    /// Whoever holds the master key, speaking of an owner's vault.
    pub(crate) fn master(&self, owner: Option<&str>) -> Call {
        let vault = owner.map_or(VaultRef::Default, |owner| VaultRef::Owner(owner.to_owned()));
        Call { vault, ..Call::bearer("test", token::proof(&LOCAL_KEY, self.engine.now())) }
    }

    /// A browser in which somebody signed in with a token, and where that led.
    pub(crate) async fn signed_in(&self, token: &str) -> (Browser<'_>, String) {
        let form = form(&[("token", token)]);
        let reply = self.send(Method::POST, "/app/login", &[TYPE], form).await;
        assert_eq!(reply.status, 303, "{}", reply.text);
        let place = reply.place().to_owned();
        let set = reply.headers.get_all(SET_COOKIE).iter().map(|line| line.to_str().unwrap());
        let role = set.filter_map(|line| line.strip_prefix("yore_role=")).next().unwrap();
        let role = role.split(';').next().unwrap().to_owned();
        let session = reply.session().unwrap();
        let mut browser = Browser { vault: self, session, mark: String::new(), role };
        browser.mark = mark_in(&browser.get(&place).await.expect(200));
        (browser, place)
    }

    /// The owner of another vault of the same server.
    pub(crate) async fn stranger(&self) -> Call {
        let master = Call {
            vault: VaultRef::Owner("somebody else".into()),
            ..Call::bearer("test", token::proof(&LOCAL_KEY, self.engine.now()))
        };
        self.engine
            .mutate(&master, remembering(Draft::text("a first")), Wish::default())
            .await
            .unwrap();
        let made = self.engine.issue_token(&master, TokenKind::Owner, None, None).await.unwrap();
        Call::bearer("test", Secret::new(made))
    }

    pub(crate) async fn remember(&self, draft: Draft) -> MemoryId {
        self.remember_as(&self.owner_call(), draft).await
    }

    pub(crate) async fn remember_as(&self, call: &Call, draft: Draft) -> MemoryId {
        let done = self.engine.mutate(call, remembering(draft), Wish::default()).await.unwrap();
        done.memories[0].memory
    }

    /// An agent that may read and write everything internal.
    pub(crate) async fn agent(&self, name: &str) -> Call {
        let request = GrantRequest {
            agent: AgentId::new(name).unwrap(),
            verbs: Verbs::of(&[Verb::Read, Verb::Write]),
            read: Labels::Any,
            write: Labels::Any,
            ceiling: Sensitivity::Internal,
            scope: ScopeRule::default(),
            ttl: None,
            note: None,
        };
        let issued = self.engine.issue_grant(&self.owner_call(), request).await.unwrap();
        Call::bearer("test", Secret::new(issued.token))
    }

    /// Lets an agent ask for something that a rule holds.
    pub(crate) async fn held(&self, call: &Call, text: &str) -> HoldId {
        let wish = Wish { approval: true, ..Wish::default() };
        match self.engine.mutate(call, remembering(Draft::text(text)), wish).await {
            Err(Error::Held { hold }) => hold,
            other => panic!("not held: {other:?}"),
        }
    }

    pub(crate) async fn rule(&self, name: &str, words: &[&str]) {
        let rule = Rule {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            ..Rule::new(name, RuleAction::Hold)
        };
        self.engine.put_rule(&self.owner_call(), rule).await.unwrap();
    }

    pub(crate) async fn converse(&self, conversation: Conversation, messages: Vec<Message>) {
        let call = self.owner_call();
        self.engine.converse(&call, conversation, messages).await.unwrap();
    }

    /// A request without any cookie.
    pub(crate) async fn bare(&self, method: Method, path: &str, lines: &[(&str, &str)]) -> Reply {
        self.send(method, path, lines, String::new()).await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        lines: &[(&str, &str)],
        body: String,
    ) -> Reply {
        self.bytes(method, path, lines, body).await.0
    }

    /// The same, with the bytes of a file.
    pub(crate) async fn bytes(
        &self,
        method: Method,
        path: &str,
        lines: &[(&str, &str)],
        body: String,
    ) -> (Reply, Vec<u8>) {
        let mut request = Request::builder().method(method).uri(path).header(HOST, "localhost");
        for (name, value) in lines {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body)).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        // Only files are no text.
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert_ne!(status, 500, "{path}: {text}");
        (Reply { status, headers, text }, bytes.into())
    }

    /// The router, for answers that do not end.
    pub(crate) fn router(&self) -> Router {
        self.router.clone()
    }

    /// A browser in which the owner is signed in.
    pub(crate) async fn browser(&self) -> Browser<'_> {
        let form = form(&[("token", &self.owner)]);
        let reply = self.send(Method::POST, "/app/login", &[TYPE], form).await;
        assert_eq!((reply.status, reply.place()), (303, "/app"), "{}", reply.text);
        let mut browser = Browser {
            vault: self,
            session: reply.session().unwrap(),
            mark: String::new(),
            role: String::new(),
        };
        browser.mark = mark_in(&browser.get("/app/api").await.expect(200));
        browser
    }
}

const TYPE: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

pub(crate) fn form(pairs: &[(&str, &str)]) -> String {
    let mut written = form_urlencoded::Serializer::new(String::new());
    written.extend_pairs(pairs);
    written.finish()
}

pub(crate) fn remembering(draft: Draft) -> Mutation {
    Mutation::Remember { draft: Box::new(draft), id: None }
}

/// What the forms of a page carry.
pub(crate) fn mark_in(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"csrf\" value=\"").expect("a page has forms");
    rest.split('"').next().unwrap().to_owned()
}

/// A browser with the cookie of a sign-in.
pub(crate) struct Browser<'a> {
    vault: &'a Vault,
    pub(crate) session: String,
    pub(crate) mark: String,
    /// As what somebody is signed in, as the cookie says.
    pub(crate) role: String,
}

impl Browser<'_> {
    pub(crate) fn cookie(&self) -> String {
        format!("yore_session={}; yore_role={}", self.session, self.role)
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        let lines = [(COOKIE.as_str(), self.cookie())];
        self.vault.bare(Method::GET, path, &[(lines[0].0, &lines[0].1)]).await
    }

    /// Sends a form as our own pages do.
    pub(crate) async fn post(&self, path: &str, pairs: &[(&str, &str)]) -> Reply {
        let mark = self.mark.clone();
        let pairs: Vec<(&str, &str)> =
            std::iter::once(("csrf", mark.as_str())).chain(pairs.iter().copied()).collect();
        self.post_bare(path, &pairs).await
    }

    /// Sends exactly this.
    pub(crate) async fn post_bare(&self, path: &str, pairs: &[(&str, &str)]) -> Reply {
        let cookie = self.cookie();
        let lines = [TYPE, (COOKIE.as_str(), cookie.as_str())];
        self.vault.send(Method::POST, path, &lines, form(pairs)).await
    }

    /// Sends a form and goes where it leads.
    pub(crate) async fn follow(&self, path: &str, pairs: &[(&str, &str)]) -> String {
        let reply = self.post(path, pairs).await;
        let place = reply.place().to_owned();
        reply.expect(303);
        self.get(&place).await.expect(200)
    }
}

//! One server that speaks everything, who talks to it, and what its audit chain says of them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use yore_canon::did::{Did, KeyId};
use yore_canon::hash::Sha256;
use yore_canon::key::{Algorithm, SigningKey};
use yore_canon::{jcs, jws};
use yore_domain::{MessageId, Timestamp};

use crate::common::{Home, Server};

/// Both speak in clear text on the loopback address only when they are told to; and what is
/// answered is in the audit chain by then.
const CONFIG: &str =
    "strict_audit = true\n[omp]\ninsecure_loopback = true\n[uamp]\ninsecure_loopback = true\n";

/// The agent whose memories they are.
pub(crate) const HAND: &str = "hand";
/// The agent whose writes wait for a person.
pub(crate) const WARD: &str = "ward";

/// A story that says what went wrong in it, line by line.
pub(crate) type Story = (&'static str, fn(&World) -> Vec<String>);

/// A story that fails by a panic.
pub(crate) type Plain = (&'static str, fn(&World));

/// Somebody with a token, and a key to sign messages with.
pub(crate) struct Caller {
    pub(crate) token: String,
    pub(crate) key: SigningKey,
}

impl Caller {
    pub(crate) fn did(&self) -> String {
        Did::of_key(&self.key.verifying_key()).as_str().to_owned()
    }
}

/// An answer over HTTP.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(value.trim())
        })
    }

    /// The documents of an event stream.
    pub(crate) fn events(&self) -> Vec<Value> {
        let lines = self.text.lines().filter_map(|line| line.strip_prefix("data:"));
        lines.filter_map(|line| serde_json::from_str(line.trim()).ok()).collect()
    }
}

pub(crate) struct World {
    pub(crate) home: Home,
    server: Server,
    address: String,
    /// Whom messages are for.
    pub(crate) did: String,
    pub(crate) owner: Caller,
    /// May do everything, as an agent.
    pub(crate) hand: Caller,
    /// The same agent, and may only read.
    pub(crate) reader: Caller,
    /// The same agent, and sees nothing of what these stories are about.
    pub(crate) narrow: Caller,
    /// May do everything once a person has agreed.
    pub(crate) ward: Caller,
}

impl World {
    /// One that speaks everything in clear text.
    pub(crate) fn start() -> Self {
        Self::configured(CONFIG)
    }

    /// One as it comes out of the box.
    pub(crate) fn untouched() -> Self {
        Self::configured("")
    }

    fn configured(config: &str) -> Self {
        let home = Home::new();
        let place = home.path("config/yore");
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join("config.toml"), config).unwrap();
        let server = home.serve();
        let address = server.url().trim_start_matches("http://").to_owned();
        let owner = caller(server.ready["owner_token"].as_str().unwrap(), 1);
        let any = ["--read", "any", "--write", "any", "--max", "restricted"];
        let grant = |agent: &str, more: &[&str]| {
            home.ok(&[&["grant", "issue", "--agent", agent], more].concat())
        };
        let hand = caller(&grant(HAND, &any), 2);
        let reader =
            caller(&grant(HAND, &["--read", "any", "--max", "restricted", "--verbs", "read"]), 2);
        let narrow = caller(&grant(HAND, &["--read", "work", "--write", "work"]), 2);
        let ward = caller(&grant(WARD, &any), 3);
        home.ok(&["rule", "add", "ward-waits", "--action", "hold", "--agent", WARD]);
        home.ok(&["agent", "register", &owner.did(), "--own", "--no-record"]);
        home.ok(&["agent", "register", &hand.did(), "--name", HAND, "--no-record"]);
        home.ok(&["agent", "register", &ward.did(), "--name", WARD, "--no-record"]);
        let mut world =
            Self { home, server, address, did: String::new(), owner, hand, reader, narrow, ward };
        let document = world.http(&world.owner, "GET", "/.well-known/did.json", &[], "");
        world.did = document.json()["id"].as_str().unwrap().to_owned();
        world
    }

    /// Asks over HTTP/1.1, one connection each.
    pub(crate) fn http(
        &self,
        caller: &Caller,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n",
            self.address,
            body.len()
        );
        if !caller.token.is_empty() {
            head.push_str(&format!("authorization: Bearer {}\r\n", caller.token));
        }
        if !headers.iter().any(|(name, _)| *name == "content-type") {
            head.push_str("content-type: application/json\r\n");
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let cut = answer.windows(4).position(|at| at == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(answer[..cut].to_vec()).unwrap();
        let mut reply = Reply { status: 0, head, text: String::new() };
        reply.status = reply.head.split(' ').nth(1).unwrap().parse().unwrap();
        let chunked = reply.header("transfer-encoding").is_some();
        let body = &answer[cut + 4..];
        let body = if chunked { unchunked(body) } else { body.to_vec() };
        reply.text = String::from_utf8(body).unwrap();
        reply
    }

    /// Asks over TLS and HTTP/2, by a client that somebody else wrote.
    pub(crate) fn tls(
        &self,
        caller: &Caller,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let authority = self.home.data().join("tls/ca.pem");
        let port = self.server.ready["https"].as_str().unwrap().rsplit(':').next().unwrap();
        let port = port.trim_end_matches('/');
        let mut curl = std::process::Command::new("curl");
        curl.args(["-sS", "-i", "-N", "--max-time", "30", "-X", method, "--cacert"]);
        curl.arg(authority).arg(format!("https://localhost:{port}{path}"));
        if !caller.token.is_empty() {
            curl.arg("-H").arg(format!("authorization: Bearer {}", caller.token));
        }
        if !headers.iter().any(|(name, _)| *name == "content-type") {
            curl.args(["-H", "content-type: application/json"]);
        }
        for (name, value) in headers {
            curl.arg("-H").arg(format!("{name}: {value}"));
        }
        if !body.is_empty() {
            curl.args(["--data-binary", body]);
        }
        let answer = curl.output().unwrap();
        let text = String::from_utf8(answer.stdout).unwrap();
        let (head, text) = text.split_once("\r\n\r\n").unwrap_or_else(|| {
            panic!("{path}: {}", String::from_utf8_lossy(&answer.stderr));
        });
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Reply { status, head: head.to_owned(), text: text.to_owned() }
    }

    pub(crate) fn post(&self, caller: &Caller, path: &str, body: &Value) -> Reply {
        self.http(caller, "POST", path, &[], &body.to_string())
    }

    /// An operation of the native API, as the owner.
    pub(crate) fn native(&self, operation: &str, input: &Value) -> Value {
        let reply = self.post(&self.owner, &format!("/api/v1/{operation}"), input);
        assert_eq!(reply.status, 200, "{operation}: {}", reply.text);
        reply.json()
    }

    /// The live memory whose text begins so, as the vault has it.
    pub(crate) fn head_of(&self, text: &str) -> Option<Value> {
        let page = json!({"page": {"limit": 200, "order": "newest_first"}});
        let rows = self.native("list", &page)["items"].clone();
        let rows = rows.as_array().cloned().unwrap_or_default();
        let begins = |row: &Value| {
            row["head"]["body"]["text"].as_str().is_some_and(|found| found.starts_with(text))
        };
        rows.into_iter().find(begins).map(|row| row["head"].clone())
    }

    /// Where the audit chain stands.
    pub(crate) fn mark(&self) -> u64 {
        let last = json!({"after": 0, "limit": 1, "newest_first": true});
        self.native("audit.query", &last)[0]["seq"].as_u64().unwrap()
    }

    /// What the chain says since then of one protocol, oldest first.
    pub(crate) fn since(&self, mark: u64, protocol: &str) -> Vec<Value> {
        let query = json!({"after": mark, "limit": 200, "newest_first": false});
        let entries = self.native("audit.query", &query);
        let entries = entries.as_array().unwrap().iter();
        entries.filter(|entry| entry["protocol"] == protocol).cloned().collect()
    }

    /// Carries out what waits, and says how much that was.
    pub(crate) fn approve_all(&self) -> usize {
        self.decide_all("approve")
    }

    /// Turns down what waits.
    pub(crate) fn reject_all(&self) -> usize {
        self.decide_all("reject")
    }

    fn decide_all(&self, decision: &str) -> usize {
        let waiting = self.native("review.list", &json!({"limit": 200}));
        // What the vault itself proposes, because two stories are alike, waits on.
        let asked = waiting.as_array().unwrap().iter().filter(|hold| hold["agent"] == WARD);
        let asked: Vec<&Value> = asked.collect();
        for hold in &asked {
            self.native("review.decide", &json!({"hold": hold["id"], "decision": decision}));
        }
        asked.len()
    }

    /// Signs a message and sends it; an accepted question is followed to its end.
    pub(crate) fn say(&self, caller: &Caller, intent: &str, body: &Value) -> (Reply, Vec<Value>) {
        let envelope = json!({
            "id": format!("urn:uuid:{}", MessageId::random()), "ts": now().to_string(),
            "from": caller.did(), "to": [self.did], "intent": intent, "body": body,
        });
        let kind = [("content-type", "application/uamp+json")];
        let signed = signed(&caller.key, &envelope).to_string();
        let reply = self.http(caller, "POST", "/v1/messages", &kind, &signed);
        let Some(place) = reply.header("location").map(str::to_owned) else {
            return (reply, Vec::new());
        };
        let frames = self.http(caller, "GET", &place, &[("accept", "text/event-stream")], "");
        let events = frames.events();
        (reply, events)
    }

    /// Where it is reached.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Ends the server as an operator would.
    pub(crate) fn stop(mut self) {
        assert_eq!(self.server.stop(), 0);
    }
}

/// The moment, as messages state it.
#[expect(clippy::disallowed_methods, reason = "messages must be fresh by the server's clock")]
pub(crate) fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap())
}

/// Signs an envelope.
pub(crate) fn signed(key: &SigningKey, envelope: &Value) -> Value {
    let mut object = envelope.as_object().unwrap().clone();
    let digest = Sha256::of(jcs::canonical_without(&object, &["sig"]));
    let kid = KeyId::of_key(&key.verifying_key()).to_string();
    let payload = jws::digest_payload(&digest);
    object.insert("sig".into(), jws::sign_detached(key, &kid, payload.as_bytes()).into());
    Value::Object(object)
}

fn caller(token: &str, seed: u8) -> Caller {
    let key = SigningKey::generate(Algorithm::Ed25519, &[seed; 32]);
    Caller { token: token.trim().to_owned(), key }
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(cut) = bytes.windows(2).position(|at| at == b"\r\n") {
        let size = std::str::from_utf8(&bytes[..cut]).unwrap();
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        if size == 0 {
            break;
        }
        whole.extend_from_slice(&bytes[cut + 2..cut + 2 + size]);
        bytes = &bytes[cut + 4 + size..];
    }
    whole
}

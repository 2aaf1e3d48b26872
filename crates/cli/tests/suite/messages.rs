//! UAMP on a server that is killed under load: what was answered 202 is there, and was done once.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use yore_canon::did::{Did, KeyId};
use yore_canon::hash::Sha256;
use yore_canon::key::{Algorithm, SigningKey};
use yore_canon::{jcs, jws};
use yore_domain::{MessageId, Timestamp};

use crate::common::{Home, Server, ask};

const SENDERS: usize = 4;

/// How many kills: a few, or as many as the requirement states.
fn rounds() -> u64 {
    if std::env::var_os("YORE_FULL").is_some() { 100 } else { 4 }
}

fn now() -> Timestamp {
    let now = yore_engine::Clock::now(&yore_server::SystemClock::default());
    Timestamp::from_millis(now.millis())
}

/// A signed message that tells the vault something.
fn inform(key: &SigningKey, to: &str, text: &str) -> String {
    let envelope = json!({
        "id": format!("urn:uuid:{}", MessageId::random()), "ts": now().to_string(),
        "from": Did::of_key(&key.verifying_key()).as_str(), "to": [to], "intent": "inform",
        "body": { "type": "text/plain", "content": text },
    });
    let Value::Object(mut object) = envelope else { unreachable!("it is an object") };
    let digest = Sha256::of(jcs::canonical_object(&object));
    let kid = KeyId::of_key(&key.verifying_key()).to_string();
    let payload = jws::digest_payload(&digest);
    object.insert("sig".into(), jws::sign_detached(key, &kid, payload.as_bytes()).into());
    Value::Object(object).to_string()
}

/// Sends a message; `None` when the server was gone before it answered.
fn send(address: &str, token: &str, body: &str) -> Option<u16> {
    let mut stream = std::net::TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         content-type: application/uamp+json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split(' ').nth(1)?.parse().ok()
}

/// What became of each message: its bytes, and whether it was answered 202.
type Told = Arc<Mutex<BTreeMap<String, (String, bool)>>>;

/// Lets several senders write until the server is killed.
fn load(server: &mut Server, token: &str, key: &SigningKey, to: &str, round: u64, told: &Told) {
    let address = server.url().trim_start_matches("http://").to_owned();
    let (stop, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for sender in 0..SENDERS {
            let (stop, sent, address, told) = (&stop, &sent, &address, Arc::clone(told));
            scope.spawn(move || {
                for number in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let text = format!("locker {round}-{sender}-{number} belongs to me");
                    let body = inform(key, to, &text);
                    told.lock().unwrap().insert(text.clone(), (body.clone(), false));
                    match send(address, token, &body) {
                        Some(202) => {
                            told.lock().unwrap().insert(text, (body, true));
                            sent.fetch_add(1, Ordering::Relaxed);
                        }
                        Some(status) => panic!("{text}: {status}"),
                        None => break,
                    }
                }
            });
        }
        // Not before the load is on; then at a moment that differs from kill to kill.
        while sent.load(Ordering::Relaxed) < 3 {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis((round * 2_654_435_761 + 7) % 60));
        server.kill();
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn uamp_040_uamp_076_what_was_accepted_outlives_kills_and_is_done_once() {
    let home = Home::new();
    let place = home.path("config/yore");
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("config.toml"), "[uamp]\ninsecure_loopback = true\n").unwrap();
    let mut server = home.serve();
    let token = server.ready["owner_token"].as_str().unwrap().to_owned();
    let key = SigningKey::generate(Algorithm::Ed25519, &[9; 32]);
    let did = Did::of_key(&key.verifying_key()).as_str().to_owned();
    home.ok(&["agent", "register", &did, "--own", "--no-record"]);
    let (_, document) = ask(&server.url(), &token, "GET /.well-known/did.json", "");
    let document: Value = serde_json::from_str(&document).unwrap();
    let to = document["id"].as_str().unwrap().to_owned();
    let told: Told = Arc::default();
    for round in 0..rounds() {
        load(&mut server, &token, &key, &to, round, &told);
        server = home.serve();
        // Whoever got no answer sends again, and whoever did may do so too.
        let address = server.url().trim_start_matches("http://").to_owned();
        let mut told = told.lock().unwrap();
        let mine = format!("locker {round}-");
        for (text, (body, accepted)) in told.iter_mut().filter(|(text, _)| text.starts_with(&mine))
        {
            assert_eq!(send(&address, &token, body), Some(202), "{text}, accepted: {accepted}");
            *accepted = true;
        }
    }
    let told = told.lock().unwrap();
    let mut kept = home.all();
    kept.sort();
    let expected: Vec<String> = told.keys().cloned().collect();
    assert_eq!(kept, expected, "every message is there, once");
    let trail = home.ok(&["audit", "export"]);
    let done = trail.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let done = done.filter(|entry| entry["protocol"] == "uamp" && entry["operation"] == "remember");
    assert_eq!(done.count(), expected.len(), "and was done once");
}

#[test]
fn an_agent_on_the_command_line_asks_and_is_answered() {
    let home = Home::new();
    let server = home.serve();
    home.remember(&["I am allergic to peanuts"]);
    let (key, key_of) = (home.path("agent.jwk"), home.path("agent.jwk").display().to_string());
    let ask = ["agent", "ask", "what am I allergic to?", "--key", &key_of];
    let refused = home.fails(&ask, 4, &["does not speak for the sender", "yore agent register"]);
    let did = refused.err.split("register ").nth(1).unwrap().split(' ').next().unwrap();
    home.ok(&["agent", "register", did, "--own"]);
    let said = home.ok(&ask);
    assert!(said.contains("peanuts"), "{said}");
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(key).unwrap());
    assert_eq!(mode & 0o777, 0o600);
    drop(server);
}

#[test]
fn agents_are_registered_written_to_followed_and_struck_off_on_the_command_line() {
    let home = Home::new();
    let server = home.serve();
    let key = SigningKey::generate(Algorithm::Ed25519, &[11; 32]);
    let did = Did::of_key(&key.verifying_key()).as_str().to_owned();
    home.fails(&["agent", "send", &did, "hello"], 3, &["not found"]);
    home.ok(&["agent", "register", &did, "--name", "scheduler"]);
    let listed = home.json(&["agent", "list"]);
    assert_eq!((&listed[0]["did"], &listed[0]["agent"]), (&json!(did), &json!("scheduler")));
    // Whoever follows sees what is said from then on.
    let tail = home.command(&["agent", "tail", "-n", "1"]).spawn().unwrap();
    let mut sent = 0;
    let told = std::thread::scope(|scope| {
        let told = scope.spawn(|| tail.wait_with_output().unwrap());
        while !told.is_finished() && sent < 100 {
            home.ok(&["agent", "send", &did, &format!("the plumber comes on day {sent}")]);
            sent += 1;
        }
        told.join().unwrap()
    });
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("the plumber comes on day"), "{told}");
    let inbox = home.ok(&["agent", "inbox", &did]);
    assert_eq!(inbox.lines().count(), sent, "{inbox}");
    assert!(inbox.lines().next().unwrap().contains("the plumber comes on day 0"), "{inbox}");
    home.ok(&["agent", "remove", &did]);
    assert_eq!(home.json(&["agent", "list"]), json!([]));
    drop(server);
}

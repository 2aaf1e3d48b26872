//! Peers that send bombs, never read, lose what they meant to acknowledge, and race each other.

use std::io::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use yore_canon::encode;
use yore_domain::MessageId;

use crate::agent::{attached, joined, noise};
use crate::sockets::{hear, listen, open, say};
use crate::streams::ended;
use crate::support::{Agent, Vault, kinds};

/// Numbers that look random and are the same each time, so that a failure can be repeated.
struct Dice(u64);

impl Dice {
    fn below(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

fn full() -> bool {
    std::env::var_os("YORE_FULL").is_some()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_077_uamp_093_bombs_are_refused_in_the_protocols_own_words() {
    let vault = Vault::new().await;
    let agent = vault.agent("bomber", 1).await;
    let content = encode::base64(&gzip(&vec![b'a'; 64 << 20]));
    let bomb = json!({"type": "text/plain", "content": content, "encoding": "base64",
                      "compression": "gzip"});
    let mut socket = open(listen(&vault).await, &agent).await;
    for intent in ["ask", "inform", "propose"] {
        let envelope = agent.envelope(intent, &bomb);
        let refusal = vault.say(&agent, &envelope).await.expect(413).refusal();
        assert_eq!((&refusal["code"], &refusal["retry"]), (&json!("4.13"), &json!(false)));
        say(&mut socket, &agent.sign(&envelope)).await;
        let heard = hear(&mut socket).await;
        assert_eq!((&heard["intent"], &heard["reply_to"]), (&json!("error"), &envelope["id"]));
        assert!(heard["body"]["content"].as_str().unwrap().contains("4.13"), "{heard}");
    }
    // A message that is packed as a whole is not unpacked at all.
    let packed = gzip(agent.sign(&agent.ask("x")).as_bytes());
    let request = axum::http::Request::post("/v1/messages")
        .header("content-type", "application/uamp+json;v=1")
        .header("content-encoding", "gzip")
        .header("authorization", format!("Bearer {}", agent.token))
        .body(axum::body::Body::from(packed))
        .unwrap();
    assert_eq!(vault.send(request).await.expect(400).refusal()["code"], "4.00");
    let counts = vault.engine.census(&vault.owner_call()).await.unwrap();
    assert_eq!((counts.memories, counts.conversations), (0, 0), "and nothing is kept of it");
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_052_uamp_054_the_window_holds_whatever_acknowledgements_are_lost() {
    let frames = if full() { 10_000 } else { 120 };
    let vault = Vault::new().await;
    let agent = vault.agent("scheduler", 1).await;
    let address = listen(&vault).await;
    let mut dice = Dice(0x1234_5678_9abc_def1);
    for window in [1, 3, 16, 256] {
        let stream = format!("s-{window}");
        ended(&vault, &agent, &stream, frames, window).await;
        let mut socket = open(address, &agent).await;
        let begin = json!({"type": "application/json", "content": r#"{"expected":0}"#});
        let mut subscribe = agent.envelope("subscribe", &begin);
        subscribe["stream_id"] = stream.as_str().into();
        say(&mut socket, &agent.sign(&subscribe)).await;
        // What arrived at the server, and what the client has.
        let (mut acknowledged, mut next) = (0_u64, 0_u64);
        while next < frames {
            let heard = tokio::time::timeout(Duration::from_millis(5), hear(&mut socket)).await;
            let stands = heard.is_err();
            if let Ok(frame) = heard {
                assert_eq!(frame["delta_seq"], next, "no gap and nothing twice: {frame}");
                assert!(next < acknowledged + u64::from(window), "{next} of {acknowledged}");
                next += 1;
            }
            // Most are lost, some come late; when nothing moves any more, one gets through.
            if next > 0 && (stands || dice.below(3) == 0) {
                let late = if stands { 0 } else { dice.below(4).min(next - 1) };
                let last = next - 1 - late;
                let ack = json!({"delta_seq": 0, "stream_id": stream, "type": "progress",
                                 "ts": "2026-01-02T03:05:00Z", "payload": {"ack": last}});
                acknowledged = acknowledged.max(last + 1);
                say(&mut socket, &ack.to_string()).await;
            }
        }
    }
}

/// Opens a stream over HTTP by a connection that takes hardly anything in.
async fn barely(address: std::net::SocketAddr, token: &str, path: &str) -> tokio::net::TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut connection = socket.connect(address).await.unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\
         connection: close\r\n\r\n"
    );
    connection.write_all(request.as_bytes()).await.unwrap();
    connection
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_055_whoever_reads_slowly_or_not_at_all_holds_nobody_up() {
    let vault = Vault::new().await;
    vault.remembers("I am allergic to peanuts").await;
    let bytes = noise(12 << 20);
    let body = attached(&vault, &bytes).await;
    let (slow, other) = (vault.agent("slow", 1).await, vault.agent("other", 2).await);
    let mut ask = slow.envelope("ask", &body);
    ask["stream_id"] = "file".into();
    ask["delta_window"] = 1024.into();
    vault.say(&slow, &ask).await.expect(202);
    let address = listen(&vault).await;
    let mut asleep = Vec::new();
    for _ in 0..8 {
        asleep.push(barely(address, &slow.token, "/v1/stream/file").await);
    }
    // A socket that asks for everything and never looks at it.
    let mut deaf = open(address, &slow).await;
    let begin = json!({"type": "application/json", "content": r#"{"expected":0}"#});
    let mut subscribe = slow.envelope("subscribe", &begin);
    subscribe["stream_id"] = "file".into();
    say(&mut deaf, &slow.sign(&subscribe)).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    // Another is answered as ever, and so is the same agent on another connection.
    let answered = tokio::time::timeout(Duration::from_secs(30), async {
        let frames = vault.answer(&other, &other.ask("what am I allergic to?")).await;
        assert_eq!(kinds(&frames), ["chunk", "done"]);
        vault.all(&slow, "/v1/stream/file").await
    });
    let whole = answered.await.unwrap();
    assert!(joined(&whole) == bytes, "the file arrived changed");
    // Nobody was given up on, either: who wakes up reads on where it was.
    let mut woken = asleep.pop().unwrap();
    let mut text = Vec::new();
    tokio::time::timeout(Duration::from_secs(60), woken.read_to_end(&mut text))
        .await
        .unwrap()
        .unwrap();
    let text = String::from_utf8_lossy(&text);
    let events = text.lines().filter(|line| line.starts_with("data: ")).count();
    assert_eq!(events, whole.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_010_uamp_076_senders_that_race_for_one_stream_id_get_each_its_own() {
    let vault = Vault::new().await;
    vault.remembers("I am allergic to peanuts").await;
    let (one, two) = (vault.agent("one", 1).await, vault.agent("two", 2).await);
    for round in 0..if full() { 100 } else { 8 } {
        let stream = format!("shared-{round}");
        let shared = |agent: &Agent, question: &str| {
            let mut ask = agent.ask(question);
            ask["stream_id"] = stream.as_str().into();
            ask
        };
        // One sender's two messages for one stream: one of them gets it.
        let asks = [shared(&one, "what am I allergic to?"), shared(&one, "what else?")];
        let theirs = shared(&two, "what am I allergic to?");
        let (first, second, other) = tokio::join!(
            vault.say(&one, &asks[0]),
            vault.say(&one, &asks[1]),
            vault.say(&two, &theirs)
        );
        let mut statuses = [first.status, second.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [202, 400], "{} {}", first.text, second.text);
        let place = other.expect(202).location();
        for agent in [&one, &two] {
            let frames = vault.all(agent, &place).await;
            let ends = frames.iter().filter(|frame| frame["type"] == "done");
            assert_eq!(ends.count(), 1, "{frames:?}");
            assert_eq!(frames.last().unwrap()["delta_seq"], frames.len() - 1, "{frames:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_100_uamp_101_of_a_cancel_and_an_end_at_one_moment_one_counts() {
    let vault = Vault::new().await;
    vault.remembers("I am allergic to peanuts").await;
    let agent = vault.agent("hasty", 1).await;
    let (mut dice, mut seen) = (Dice(0x0dd_ba11), Vec::new());
    for _ in 0..if full() { 200 } else { 20 } {
        let ask = agent.ask("what am I allergic to?");
        let body = json!({"type": "text/plain", "content": ""});
        let mut cancel = agent.envelope("cancel", &body);
        cancel["reply_to"] = ask["id"].clone();
        cancel["id"] = format!("urn:uuid:{}", MessageId::random()).into();
        let place = vault.say(&agent, &ask).await.expect(202).location();
        let pause = Duration::from_micros(dice.below(400));
        let (cancelled, frames) = tokio::join!(
            async {
                tokio::time::sleep(pause).await;
                vault.say(&agent, &cancel).await
            },
            vault.all(&agent, &place)
        );
        cancelled.expect(202);
        let again = vault.all(&agent, &place).await;
        assert_eq!(frames, again, "what has ended stays as it is");
        let ends: Vec<&Value> = frames
            .iter()
            .filter(|frame| frame["type"] != "chunk")
            .map(|end| &end["type"])
            .collect();
        assert_eq!(ends.len(), 1, "{frames:?}");
        assert!(ends[0] == "done" || ends[0] == "cancel", "{frames:?}");
        seen.push(ends[0].clone());
    }
    println!("{} of {} were done", seen.iter().filter(|end| **end == "done").count(), seen.len());
}

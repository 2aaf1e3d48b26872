//! The WebSocket, with a foreign client over a real socket.

use std::net::SocketAddr;

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use yore_http::{Peer, Way};

use crate::support::{Agent, Vault};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Serves the router on a real socket, as if TLS were spoken there.
pub(crate) async fn listen(vault: &Vault) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = vault.router.clone().layer(from_fn(as_tls));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    address
}

async fn as_tls(mut request: Request, next: Next) -> Response {
    request.extensions_mut().insert(Peer { way: Way::Tls, address: None });
    next.run(request).await
}

pub(crate) async fn open(address: SocketAddr, agent: &Agent) -> Socket {
    let mut request = format!("ws://{address}/uamp/1/ws").into_client_request().unwrap();
    let headers = request.headers_mut();
    headers.insert("authorization", format!("Bearer {}", agent.token).parse().unwrap());
    headers.insert("sec-websocket-protocol", "uamp.v1".parse().unwrap());
    let (socket, response) = connect_async(request).await.unwrap();
    assert_eq!(response.headers()["sec-websocket-protocol"], "uamp.v1");
    socket
}

pub(crate) async fn say(socket: &mut Socket, json: &str) {
    let length = u32::try_from(json.len()).unwrap().to_be_bytes();
    let frame = [&length[..], json.as_bytes()].concat();
    socket.send(Message::Binary(frame.into())).await.unwrap();
}

pub(crate) async fn hear(socket: &mut Socket) -> Value {
    loop {
        match socket.next().await.unwrap().unwrap() {
            Message::Binary(bytes) => {
                let (length, json) = bytes.split_first_chunk::<4>().unwrap();
                assert_eq!(u32::from_be_bytes(*length) as usize, json.len());
                return serde_json::from_slice(json).unwrap();
            }
            Message::Ping(_) | Message::Pong(_) => {}
            other @ (Message::Text(_) | Message::Close(_) | Message::Frame(_)) => {
                panic!("{other:?}")
            }
        }
    }
}

fn content(envelope: &Value) -> Value {
    serde_json::from_str(envelope["body"]["content"].as_str().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_062_uamp_063_a_question_is_answered_on_the_socket_and_faults_leave_it_open() {
    let vault = Vault::new().await;
    vault.remembers("I am allergic to peanuts").await;
    let agent = vault.agent("cook", 1).await;
    let mut socket = open(listen(&vault).await, &agent).await;
    let ask = agent.ask("what am I allergic to?");
    let mut forged = ask.clone();
    forged["sig"] = "eyJhbGciOiJub25lIn0..".into();
    for broken in ["[]", "{}", &forged.to_string()] {
        say(&mut socket, broken).await;
        assert_eq!(hear(&mut socket).await["intent"], "error");
    }
    say(&mut socket, &agent.sign(&ask)).await;
    let mut kinds = Vec::new();
    let mut accepted = false;
    while kinds.last().is_none_or(|kind| kind != "done") {
        let frame = hear(&mut socket).await;
        match frame.get("delta_seq") {
            Some(_) => kinds.push(frame["type"].as_str().unwrap().to_owned()),
            None => {
                assert_eq!(
                    (&frame["intent"], &frame["reply_to"]),
                    (&json!("progress"), &ask["id"])
                );
                accepted = true;
            }
        }
    }
    assert!(accepted);
    assert_eq!(kinds, ["chunk", "done"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_052_uamp_054_uamp_056_the_window_opens_with_acknowledgements() {
    let vault = Vault::new().await;
    let agent = vault.agent("watcher", 1).await;
    let mut socket = open(listen(&vault).await, &agent).await;
    let body = json!({"type": "text/plain", "content": ""});
    let mut subscribe = agent.envelope("subscribe", &body);
    subscribe["stream_id"] = "s".into();
    subscribe["delta_window"] = 2.into();
    say(&mut socket, &agent.sign(&subscribe)).await;
    assert_eq!(content(&hear(&mut socket).await)["state"], "accepted");
    for text in ["one", "two", "three", "four", "five"] {
        vault.remembers(text).await;
    }
    for number in [0, 1] {
        assert_eq!(hear(&mut socket).await["delta_seq"], number);
    }
    let silent = tokio::time::timeout(std::time::Duration::from_millis(300), socket.next()).await;
    assert!(silent.is_err(), "two are out, so no third comes");
    let delta = json!({"delta_seq": 0, "stream_id": "s", "ts": "2026-01-02T03:05:00Z",
                       "type": "progress", "payload": {"ack": 0}});
    say(&mut socket, &delta.to_string()).await;
    assert_eq!(hear(&mut socket).await["delta_seq"], 2);
    say(&mut socket, &agent.sign(&agent.ack("s", 2))).await;
    for number in [3, 4] {
        assert_eq!(hear(&mut socket).await["delta_seq"], number);
    }
    // Whoever misses a frame gets everything from there on again.
    let gap =
        json!({"delta_seq": 1, "stream_id": "s", "type": "error", "payload": {"expected": 3}});
    say(&mut socket, &gap.to_string()).await;
    for number in [3, 4] {
        assert_eq!(hear(&mut socket).await["delta_seq"], number);
    }
    let beyond =
        json!({"delta_seq": 2, "stream_id": "s", "type": "progress", "payload": {"ack": 99}});
    say(&mut socket, &beyond.to_string()).await;
    assert_eq!(content(&hear(&mut socket).await)["code"], "4.09");
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_047_uamp_063_a_stream_goes_on_over_another_transport() {
    let vault = Vault::new().await;
    let agent = vault.agent("watcher", 1).await;
    let address = listen(&vault).await;
    let body = json!({"type": "text/plain", "content": ""});
    let mut subscribe = agent.envelope("subscribe", &body);
    subscribe["stream_id"] = "s".into();
    vault.say(&agent, &subscribe).await.expect(202);
    for text in ["one", "two"] {
        vault.remembers(text).await;
    }
    let mut begun = Vec::new();
    while begun.len() < 2 {
        begun = vault.get(&agent.token, "/v1/stream/s", &[]).await.frames();
    }
    // Begun over HTTP, resumed here after the first frame, by a signed message.
    let mut socket = open(address, &agent).await;
    say(&mut socket, &agent.sign(&agent.ack("s", 0))).await;
    assert_eq!(hear(&mut socket).await, begun[1]);
    vault.remembers("three").await;
    assert_eq!(hear(&mut socket).await["delta_seq"], 2);
    socket.close(None).await.unwrap();
    // And back again.
    vault.remembers("four").await;
    let mut more = Vec::new();
    while more.is_empty() {
        more = vault.get(&agent.token, "/v1/stream/s", &[("last-event-id", "2")]).await.frames();
    }
    assert_eq!(more[0]["delta_seq"], 3);
}

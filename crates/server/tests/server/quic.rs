//! HTTP/3, with a client of its own over real UDP.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use h3::client::SendRequest;
use h3::error::{Code, StreamError};
use quinn::crypto::rustls::QuicClientConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use yore_canon::did::{Did, KeyId};
use yore_canon::hash::Sha256;
use yore_canon::key::{Algorithm, SigningKey};
use yore_canon::{jcs, jws};
use yore_client::{api, input};
use yore_domain::MessageId;
use yore_engine::Clock as _;

use crate::support::Server;

struct Client {
    send: SendRequest<h3_quinn::OpenStreams, Bytes>,
    /// Dropped last: it is what the connection runs on.
    endpoint: quinn::Endpoint,
}

struct Reply {
    status: u16,
    headers: hyper::HeaderMap,
    text: String,
}

impl Client {
    async fn connect(server: &Server) -> Self {
        let mut roots = RootCertStore::empty();
        let ca = CertificateDer::from_pem_file(server.note.ca.as_ref().unwrap()).unwrap();
        roots.add(ca).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h3".to_vec()];
        let config = QuicClientConfig::try_from(config).unwrap();
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let mut endpoint = quinn::Endpoint::client(any).unwrap();
        endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(config)));
        let connecting = endpoint.connect(server.note.https.unwrap(), "localhost").unwrap();
        let connection = h3_quinn::Connection::new(connecting.await.unwrap());
        let (mut driver, send) = h3::client::new(connection).await.unwrap();
        tokio::spawn(async move { driver.wait_idle().await });
        Self { send, endpoint }
    }

    async fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let mut request =
            hyper::Request::builder().method(method).uri(format!("https://localhost{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut stream = self.send.send_request(request.body(()).unwrap()).await.unwrap();
        if !body.is_empty() {
            stream.send_data(Bytes::copy_from_slice(body.as_bytes())).await.unwrap();
        }
        // A server that needs no body may stop reading before its end was sent; the answer counts.
        let _ = stream.finish().await;
        let response = stream.recv_response().await.unwrap();
        let mut read = Vec::new();
        while let Some(mut data) = stream.recv_data().await.unwrap() {
            read.extend_from_slice(&data.copy_to_bytes(data.remaining()));
        }
        Reply {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            text: String::from_utf8(read).unwrap(),
        }
    }
}

fn signed(key: &SigningKey, envelope: Value) -> String {
    let Value::Object(mut object) = envelope else { panic!("an envelope is an object") };
    let digest = Sha256::of(jcs::canonical_object(&object));
    let kid = KeyId::of_key(&key.verifying_key()).to_string();
    let payload = jws::digest_payload(&digest);
    object.insert("sig".into(), jws::sign_detached(key, &kid, payload.as_bytes()).into());
    Value::Object(object).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_061_messages_and_streams_go_over_http_3() {
    let server = Server::start().await;
    let key = SigningKey::generate(Algorithm::Ed25519, &[7; 32]);
    let did = Did::of_key(&key.verifying_key()).as_str().to_owned();
    let register = input::RegisterAgent { did: did.clone(), agent: None, recorded: true };
    server.client().call::<api::RegisterAgent>(register).await.unwrap();
    let mut client = Client::connect(&server).await;
    let document = client.ask("GET", "/.well-known/did.json", &[], "").await;
    let document: Value = serde_json::from_str(&document.text).unwrap();
    let token = format!("Bearer {}", server.token.expose());
    let now = yore_server::SystemClock::default().now();
    let message = signed(
        &key,
        json!({
            "id": format!("urn:uuid:{}", MessageId::random()),
            "ts": now.to_string(),
            "from": did,
            "to": [document["id"]],
            "intent": "ask",
            "body": {"type": "text/plain", "content": "what do you know?"},
        }),
    );
    let kind = ("content-type", "application/uamp+json");
    let refused = client.ask("POST", "/v1/messages", &[kind], &message).await;
    assert_eq!(refused.status, 401, "{}", refused.text);
    let error: Value = serde_json::from_str(&refused.text).unwrap();
    assert_eq!(error["intent"], "error");
    let bearer = ("authorization", token.as_str());
    let taken = client.ask("POST", "/v1/messages", &[kind, bearer], &message).await;
    assert_eq!(taken.status, 202, "{}", taken.text);
    let place = taken.headers["location"].to_str().unwrap();
    let stream = client.ask("GET", place, &[bearer], "").await;
    assert_eq!(
        (stream.status, stream.headers["content-type"].to_str().unwrap()),
        (200, "text/event-stream")
    );
    let last = stream.text.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
    let last: Value = serde_json::from_str(last.unwrap()).unwrap();
    assert_eq!(last["type"], "done", "{}", stream.text);
    // Begun here, it is told to whoever has everything that it is over, elsewhere too.
    let after = format!("{place}?after={}", last["delta_seq"]);
    assert_eq!(client.ask("GET", &after, &[bearer], "").await.status, 204);
    let endpoint = client.endpoint.clone();
    drop(client);
    endpoint.close(quinn::VarInt::from_u32(0), b"");
    server.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_061_a_body_that_nobody_needs_is_stopped_without_an_error() {
    let server = Server::start().await;
    let mut client = Client::connect(&server).await;
    let request = hyper::Request::post("https://localhost/v1/messages");
    let request = request.header("content-type", "text/html").body(()).unwrap();
    let mut stream = client.send.send_request(request).await.unwrap();
    // A message of this kind is refused whatever it says.
    let response = stream.recv_response().await.unwrap();
    assert_eq!(response.status().as_u16(), 415);
    let stopped = loop {
        if let Err(error) = stream.send_data(Bytes::from(vec![b' '; 64 << 10])).await {
            break error;
        }
    };
    let StreamError::RemoteTerminate { code, .. } = stopped else { panic!("{stopped:?}") };
    assert_eq!(code, Code::H3_NO_ERROR);
    // The connection is as good as before.
    assert_eq!(client.ask("GET", "/health", &[], "").await.status, 200);
    server.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_061_a_body_that_is_given_up_while_more_is_awaited_is_stopped_without_an_error() {
    let server = Server::start_with(|layers| layers.set("limits.request_seconds", 1)).await;
    let mut client = Client::connect(&server).await;
    let request = hyper::Request::post("https://localhost/v1/messages")
        .header("authorization", format!("Bearer {}", server.token.expose()))
        .header("content-type", "application/uamp+json");
    let mut stream = client.send.send_request(request.body(()).unwrap()).await.unwrap();
    stream.send_data(Bytes::from_static(b"{")).await.unwrap();
    // The rest does not come in time, and what comes after that nobody reads.
    let response = stream.recv_response().await.unwrap();
    assert_eq!(response.status().as_u16(), 503);
    let stopped = loop {
        if let Err(error) = stream.send_data(Bytes::from(vec![b' '; 64 << 10])).await {
            break error;
        }
    };
    let StreamError::RemoteTerminate { code, .. } = stopped else { panic!("{stopped:?}") };
    assert_eq!(code, Code::H3_NO_ERROR);
    assert_eq!(client.ask("GET", "/health", &[], "").await.status, 200);
    server.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_061_http_3_is_announced_checked_as_elsewhere_and_may_be_switched_off() {
    let server = Server::start().await;
    let port = server.note.https.unwrap().port();
    let told = crate::tls::over_http_2(&server, "/health").await;
    let told = told.headers().get("alt-svc").unwrap().to_str().unwrap().to_owned();
    assert_eq!(told, format!("h3=\":{port}\"; ma=86400"));
    let plain = server.get("/health").await.1.to_lowercase();
    assert!(!plain.contains("alt-svc"), "{plain}");
    let mut client = Client::connect(&server).await;
    assert_eq!(client.ask("GET", "/health", &[], "").await.status, 200);
    let foreign = client.ask("GET", "/health", &[("origin", "https://evil.example")], "").await;
    assert_eq!(foreign.status, 403);
    // A body of some size arrives whole, and one that is too large is refused.
    let token = format!("Bearer {}", server.token.expose());
    let headers = [("authorization", token.as_str()), ("content-type", "application/json")];
    let long = json!({"query": "x".repeat(100_000)}).to_string();
    let answered = client.ask("POST", "/api/v1/recall", &headers, &long).await;
    assert!(matches!(answered.status, 200 | 400), "{}", answered.text);
    server.end().await;
    let server = Server::start_with(|layers| layers.set("listen.http3", false)).await;
    let told = crate::tls::over_http_2(&server, "/health").await;
    assert!(told.headers().get("alt-svc").is_none());
    server.end().await;
}

//! Webhooks: who is told of what, how it is signed, and that nothing is lost.

use std::sync::Arc;

use axum::http::{HeaderMap, Method, Request, Response};
use futures::FutureExt;
use futures::future::BoxFuture;
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use serde_json::{Value, json};
use yore_canon::encode::{base64, from_base64};
use yore_canon::hash::hmac_sha256;
use yore_domain::Span;
use yore_domain::grant::Verb;
use yore_domain::webhook::{Topic, Webhook};
use yore_engine::{Answered, Notice, Post};
use yore_http::{Outward, Reach};
use yore_omp::Messenger;

use crate::support::{Vault, record, talk};

/// The head and the body of a request that came.
type Heard = (HeaderMap, Vec<u8>);

/// Somebody who listens, and answers as told.
#[derive(Default)]
struct Listener {
    heard: Mutex<Vec<Notice>>,
    answers: Mutex<Vec<Answered>>,
}

impl Listener {
    fn answering(answers: &[Answered]) -> Self {
        let answers = answers.iter().rev().cloned().collect();
        Self { heard: Mutex::default(), answers: Mutex::new(answers) }
    }

    fn topics(&self) -> Vec<Topic> {
        self.heard.lock().iter().map(|notice| notice.topic).collect()
    }
}

impl Post for Listener {
    fn post<'a>(&'a self, _: &'a Webhook, notice: &'a Notice) -> BoxFuture<'a, Answered> {
        self.heard.lock().push(notice.clone());
        let answer = self.answers.lock().pop().unwrap_or(Answered::Taken);
        async move { answer }.boxed()
    }
}

async fn registered(vault: &Vault, events: &[&str]) -> (String, Value) {
    let asked = json!({"url": "https://hooks.example.com/in", "events": events});
    let made = vault.post("/admin/webhooks", &asked).await;
    let place = made.header("location").to_owned();
    (place, made.expect(201))
}

async fn shown(vault: &Vault) -> Value {
    vault.get("/admin/webhooks").await.expect(200)["data"][0].clone()
}

fn failed() -> Answered {
    Answered::Failed("status 503".to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn omp_181_each_event_is_told_once_by_its_id_and_nothing_of_before() {
    let vault = Vault::new().await;
    vault.holds(&talk("Before", "one", "two")).await;
    let all = ["conversation.created", "memory.created", "backup.completed", "access.revoked"];
    registered(&vault, &all).await;
    let listener = Listener::default();
    vault.engine.tell_all(&listener).await.unwrap();
    assert_eq!(listener.topics(), [], "what was before is not told");

    let path = vault.holds(&talk("Tea", "a very private word", "two")).await;
    vault.patch(&path, &json!({"title": "Green tea"})).await.expect(200);
    let memory = record("fact", "one");
    vault.post("/memories", &memory).await.expect(201);
    let begun = vault.post("/backup", &json!({})).await;
    let job = begun.header("location").to_owned();
    begun.expect(202);
    while vault.get(&job).await.expect(200)["status"] != "completed" {
        tokio::task::yield_now().await;
    }
    let asked = json!({"agent": "delegate", "scopes": ["omp:read"]});
    let grant = vault.post("/admin/grants", &asked).await.expect(201);
    vault.delete(&format!("/admin/grants/{}", grant["id"].as_str().unwrap())).await.expect(200);

    vault.engine.tell_all(&listener).await.unwrap();
    vault.engine.tell_all(&listener).await.unwrap();
    let expected = [
        Topic::ConversationCreated,
        Topic::MemoryCreated,
        Topic::BackupCompleted,
        Topic::AccessRevoked,
    ];
    assert_eq!(listener.topics(), expected);
    let heard = listener.heard.lock().clone();
    assert_eq!(heard[0].subject, path.rsplit('/').next().unwrap());
    assert_eq!(heard[1].subject, memory["id"].as_str().unwrap());
    assert_eq!(heard[2].subject, job.rsplit('/').next().unwrap());
    assert_eq!(heard[3].subject, grant["id"].as_str().unwrap());
    assert!(heard.iter().all(|notice| !notice.body().to_string().contains("private")));
    let mut ids: Vec<&str> = heard.iter().map(|notice| notice.id.as_str()).collect();
    ids.dedup();
    assert_eq!(ids.len(), 4);
    assert_eq!(shown(&vault).await["delivered"], 4);
}

#[tokio::test]
async fn omp_181_a_notice_is_tried_again_later_and_later_over_a_restart_and_then_given_up() {
    let vault = Vault::new().await;
    let (place, _) = registered(&vault, &["memory.created"]).await;
    vault.holds(&talk("Tea", "one", "two")).await;
    vault.post("/memories", &record("fact", "one")).await.expect(201);
    vault.post("/memories", &record("fact", "another thing")).await.expect(201);
    let away = Listener::answering(&[failed(), failed()]);
    vault.engine.tell_all(&away).await.unwrap();
    vault.engine.tell_all(&away).await.unwrap();
    assert_eq!(away.topics().len(), 1, "not before its time");
    vault.clock.advance(Span::seconds(5));
    vault.engine.tell_all(&away).await.unwrap();
    assert_eq!(away.topics().len(), 2);
    let state = shown(&vault).await;
    assert_eq!((&state["attempts"], &state["active"]), (&json!(2), &json!(true)));
    assert_eq!(state["error"], "status 503");
    assert!(state["next_attempt_at"].is_string());

    let vault = vault.restarted(Span::seconds(299)).await;
    let back = Listener::default();
    vault.engine.tell_all(&back).await.unwrap();
    assert_eq!(back.topics(), [], "the waiting outlives the server");
    vault.clock.advance(Span::seconds(1));
    vault.engine.tell_all(&back).await.unwrap();
    let (before, after) = (away.heard.lock().clone(), back.heard.lock().clone());
    assert_eq!(after.len(), 2, "what waited comes, and what came after it");
    assert_eq!(before[0].id, before[1].id);
    assert_eq!(before[0].id, after[0].id, "the same notice has the same id each time");
    assert!(after[0].sent > before[0].sent);
    assert_eq!(shown(&vault).await["attempts"], 0);

    vault.post("/memories", &record("fact", "a third thing")).await.expect(201);
    let gone = Listener::answering(&vec![failed(); 100]);
    for _ in 0..50 {
        vault.engine.tell_all(&gone).await.unwrap();
        vault.clock.advance(Span::days(1));
    }
    assert_eq!(gone.topics().len(), 10, "one attempt and nine more");
    assert_eq!(shown(&vault).await["active"], false);
    // Whoever mended it switches it on, and gets what waited.
    vault.ask(Method::PATCH, &vault.owner, &place, &[], &json!({"active": true})).await.expect(200);
    let mended = Listener::default();
    vault.engine.tell_all(&mended).await.unwrap();
    assert_eq!(mended.heard.lock()[0].id, gone.heard.lock()[0].id);
}

#[tokio::test]
async fn omp_181_who_answers_gone_or_is_removed_is_told_nothing_more() {
    let vault = Vault::new().await;
    let (place, _) = registered(&vault, &["memory.created"]).await;
    vault.post("/memories", &record("fact", "one")).await.expect(201);
    vault.post("/memories", &record("fact", "another thing")).await.expect(201);
    let listener = Listener::answering(&[Answered::Gone]);
    vault.engine.tell_all(&listener).await.unwrap();
    vault.engine.tell_all(&listener).await.unwrap();
    assert_eq!(listener.topics().len(), 1);
    assert_eq!(shown(&vault).await["active"], false);
    vault.delete(&place).await.expect(200);
    assert_eq!(vault.delete(&place).await.status, 404);
    assert_eq!(vault.get("/admin/webhooks").await.expect(200)["data"], json!([]));
    vault.engine.tell_all(&listener).await.unwrap();
    assert_eq!(listener.topics().len(), 1);
}

#[tokio::test]
async fn omp_181_only_the_owner_registers_and_only_public_addresses() {
    let vault = Vault::new().await;
    for wrong in [
        json!({}),
        json!({"url": "http://hooks.example.com/"}),
        json!({"url": "https://127.0.0.1/"}),
        json!({"url": "https://169.254.169.254/latest"}),
        json!({"url": "https://localhost/"}),
        json!({"url": "https://a:b@hooks.example.com/"}),
        json!({"url": "https://hooks.example.com/", "events": []}),
        json!({"url": "https://hooks.example.com/", "events": ["everything"]}),
        json!({"url": format!("https://hooks.example.com/{}", "x".repeat(4000))}),
    ] {
        let reply = vault.post("/admin/webhooks", &wrong).await;
        assert!([400, 413].contains(&reply.status), "{wrong}: {}", reply.status);
    }
    let asked = json!({"url": "https://hooks.example.com/"});
    let all = Verb::ALL;
    let admin = vault.agent("admin", &all).await;
    let refused = vault.ask(Method::POST, &admin, "/admin/webhooks", &[], &asked).await;
    assert_eq!(refused.refusal(), (403, "forbidden"), "it would learn what its grant hides");
    let reader = vault.agent("reader", &[Verb::Read]).await;
    let refused = vault.ask(Method::GET, &reader, "/admin/webhooks", &[], &Value::Null).await;
    assert_eq!(refused.refusal(), (403, "forbidden"));
    let (_, made) = registered(&vault, &["memory.created"]).await;
    let secret = made["secret"].as_str().unwrap().strip_prefix("whsec_").unwrap();
    assert_eq!(from_base64(secret).unwrap().len(), 32);
    assert!(!shown(&vault).await.to_string().contains("secret"), "it is told once");
    for _ in 0..15 {
        registered(&vault, &["memory.created"]).await;
    }
    assert_eq!(vault.post("/admin/webhooks", &asked).await.refusal(), (409, "conflict"));
}

/// A listener over TLS that answers 204, its address, and who vouches for it.
async fn over_tls() -> (Arc<Mutex<Vec<Heard>>>, u16, rustls::RootCertStore) {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let private = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard: Arc<Mutex<Vec<Heard>>> = Arc::default();
    let kept = Arc::clone(&heard);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let Ok(client) = acceptor.accept(client).await else { continue };
            let kept = Arc::clone(&kept);
            let answer =
                hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
                    let kept = Arc::clone(&kept);
                    async move {
                        let (parts, body) = request.into_parts();
                        let bytes = body.collect().await?.to_bytes().to_vec();
                        kept.lock().push((parts.headers, bytes));
                        let reply = Response::builder().status(204).body(Full::<&[u8]>::default());
                        Ok::<_, hyper::Error>(reply.unwrap())
                    }
                });
            let client = hyper_util::rt::TokioIo::new(client);
            // A client that leaves early is none of the test's business.
            let _ =
                hyper::server::conn::http1::Builder::new().serve_connection(client, answer).await;
        }
    });
    (heard, port, roots)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn omp_181_a_notice_arrives_over_tls_with_a_signature_that_its_secret_proves() {
    let vault = Vault::new().await;
    let (heard, port, roots) = over_tls().await;
    let topics = vec![Topic::MemoryCreated];
    let url = format!("https://localhost:{port}/in?from=yore");
    let webhook = vault.engine.add_webhook(&vault.owner_call(), url, topics).await.unwrap();
    let memory = record("fact", "one");
    vault.post("/memories", &memory).await.expect(201);
    // The shipped way does not reach the own machine.
    vault.engine.tell_all(&Messenger::default()).await.unwrap();
    assert_eq!(shown(&vault).await["error"], "the host is not in the public network");
    vault.clock.advance(Span::seconds(5));
    let messenger = Messenger::by(Outward::trusting(roots, Reach::Anywhere));
    vault.engine.tell_all(&messenger).await.unwrap();
    assert_eq!(shown(&vault).await["delivered"], 1, "{}", shown(&vault).await);
    let heard = heard.lock().clone();
    let [(headers, body)] = heard.as_slice() else { panic!("one was sent") };
    let header = |name: &str| headers[name].to_str().unwrap();
    let mut said =
        format!("{}.{}.", header("webhook-id"), header("webhook-timestamp")).into_bytes();
    said.extend(body);
    let expected = format!("v1,{}", base64(&hmac_sha256(&webhook.secret, &said)));
    assert_eq!(header("webhook-signature"), expected);
    let body: Value = serde_json::from_slice(body).unwrap();
    assert_eq!(body["type"], "memory.created");
    assert_eq!(body["data"], json!({"id": memory["id"]}));
    assert_eq!(body["id"], header("webhook-id"));
}

//! Who somebody is: client certificates, and access tokens of authorisation servers elsewhere.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use yore_canon::encode::base64url;
use yore_canon::key::{Algorithm, SigningKey};
use yore_client::{api, input};
use yore_domain::GrantId;
use yore_domain::class::Sensitivity;
use yore_domain::grant::{Labels, Verb, Verbs};
use yore_engine::{Clock as _, GrantRequest};

use crate::support::{Server, layers};

/// A TLS client that may show a certificate, out of a file with its key.
pub(crate) fn tls(ca: &Path, own: Option<&Path>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots);
    match own {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let chain = vec![CertificateDer::from_pem_file(file).unwrap()];
            let key = PrivateKeyDer::from_pem_file(file).unwrap();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    }
}

/// Asks who the caller is, over HTTP/2.
async fn whoami(server: &Server, own: Option<&Path>, token: Option<&str>) -> (u16, Value) {
    asked(server, "whoami", "{}", own, token).await
}

/// Calls an operation, over HTTP/2.
async fn asked(
    server: &Server,
    operation: &str,
    input: &'static str,
    own: Option<&Path>,
    token: Option<&str>,
) -> (u16, Value) {
    let bearer = token.map(|token| ("authorization", format!("Bearer {token}")));
    sent(server, operation, input, own, &bearer.into_iter().collect::<Vec<_>>()).await
}

/// The same with these headers.
async fn sent(
    server: &Server,
    operation: &str,
    input: &'static str,
    own: Option<&Path>,
    headers: &[(&str, String)],
) -> (u16, Value) {
    let mut config = tls(server.note.ca.as_ref().unwrap(), own);
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = TcpStream::connect(server.note.https.unwrap()).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
    tokio::spawn(connection);
    let mut request = hyper::Request::post(format!("https://localhost/api/v1/{operation}"))
        .header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    let request = request.body(Full::new(bytes::Bytes::from_static(input.as_bytes()))).unwrap();
    let answer = sender.send_request(request).await.unwrap();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap())
}

async fn grant(server: &Server, agent: &str) -> GrantId {
    let request = GrantRequest {
        agent: yore_domain::AgentId::new(agent).unwrap(),
        verbs: Verbs::of(&[Verb::Read]),
        read: Labels::Any,
        write: Labels::Any,
        ceiling: Sensitivity::Internal,
        scope: yore_domain::scope::ScopeRule::default(),
        ttl: None,
        note: None,
    };
    server.client().call::<api::IssueGrant>(request).await.unwrap().grant.id
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_070_a_client_certificate_stands_for_a_grant() {
    let server = Server::start().await;
    let config = yore_server::Config::load(layers(&server.place)).unwrap();
    let made = |name: &str| {
        let file = server.place.path().join(format!("{name}.pem"));
        std::fs::write(&file, yore_server::client_certificate(&config, name).unwrap()).unwrap();
        file
    };
    let (known, unknown) = (made("scheduler"), made("stranger"));
    let grant = grant(&server, "scheduler").await;
    let bind = |file: &Path| input::BindCertificate {
        grant,
        certificate: yore_server::fingerprint(file).unwrap(),
    };
    server.client().call::<api::BindCertificate>(bind(&known)).await.unwrap();
    let (status, who) = whoami(&server, Some(&known), None).await;
    assert_eq!((status, &who["agent"]), (200, &json!("scheduler")), "{who}");
    // Nobody has to show one; one that was never registered is worth nothing, and harms nothing.
    assert_eq!(whoami(&server, None, None).await.0, 401);
    assert_eq!(whoami(&server, Some(&unknown), None).await.0, 401);
    let owner = server.token.expose();
    assert_eq!(whoami(&server, Some(&unknown), Some(owner)).await.0, 200);
    // Together they allow what both allow.
    let (_, both) = whoami(&server, Some(&known), Some(owner)).await;
    assert_eq!(both["agent"], "scheduler", "{both}");
    // It stands for one grant, and falls with it for good.
    server.client().call::<api::BindCertificate>(bind(&known)).await.unwrap_err();
    server.client().call::<api::RevokeGrant>(input::OneGrant { grant }).await.unwrap();
    assert_eq!(whoami(&server, Some(&known), None).await.0, 401);
    server.end().await;
}

/// An access token with these claims.
fn token(key: &SigningKey, kid: &str, claims: &Value) -> String {
    let head = json!({ "alg": "ES256", "kid": kid, "typ": "at+jwt" }).to_string();
    let message =
        format!("{}.{}", base64url(head.as_bytes()), base64url(claims.to_string().as_bytes()));
    let signature = key.sign(message.as_bytes());
    format!("{message}.{}", base64url(signature.as_bytes()))
}

/// A server that believes one issuer, and the issuer's key.
async fn believing() -> (Server, SigningKey) {
    let keys = tempfile::tempdir().unwrap();
    let key = SigningKey::generate(Algorithm::P256, &[3; 32]);
    let mut jwk = key.verifying_key().to_jwk();
    jwk["kid"] = "one".into();
    let file = keys.path().join("jwks.json");
    std::fs::write(&file, json!({ "keys": [jwk] }).to_string()).unwrap();
    let issuers = json!([{
        "issuer": "https://id.example/realm", "jwks": file.to_str().unwrap(),
        "audience": "https://memory.example", "people": { "u-17": "owner" },
    }]);
    let issuers = toml::Value::try_from(&issuers).unwrap();
    let server = Server::start_with(|layers| layers.set("trust.oauth", issuers)).await;
    // The vault of the one owner comes to be with the first call, and the keys are read with it.
    server.client().call::<api::Whoami>(input::Nothing {}).await.unwrap();
    let (status, _) = whoami(&server, None, Some(&token(&key, "one", &good()))).await;
    assert_eq!(status, 200);
    (server, key)
}

/// What an access token says that counts.
fn good() -> Value {
    let now = yore_server::SystemClock::default().now().millis() / 1000;
    json!({
        "iss": "https://id.example/realm", "sub": "u-17", "aud": ["https://memory.example"],
        "client_id": "scheduler", "scope": "openid memory:read", "exp": now + 600, "iat": now,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn access_tokens_of_configured_issuers_become_grants() {
    let (server, key) = believing().await;
    let other = SigningKey::generate(Algorithm::P256, &[4; 32]);
    let (now, good) = (good()["iat"].as_i64().unwrap(), good());
    let ask = async |claims: &Value, kid: &str, key: &SigningKey| {
        whoami(&server, None, Some(&token(key, kid, claims))).await
    };
    let (status, who) = ask(&good, "one", &key).await;
    assert_eq!((status, &who["agent"]), (200, &json!("scheduler")), "{who}");
    let changed = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        claims
    };
    for (what, claims, kid, key) in [
        ("another key", good.clone(), "one", &other),
        ("an unknown key", good.clone(), "two", &key),
        ("expired", changed("exp", json!(now - 120)), "one", &key),
        ("no expiry", changed("exp", Value::Null), "one", &key),
        ("not yet", changed("nbf", json!(now + 600)), "one", &key),
        ("another audience", changed("aud", json!("https://other.example")), "one", &key),
        ("another issuer", changed("iss", json!("https://evil.example")), "one", &key),
        ("another person", changed("sub", json!("u-18")), "one", &key),
        ("bound elsewhere", changed("cnf", json!({ "jkt": "x" })), "one", &key),
    ] {
        let (status, answer) = ask(&claims, kid, key).await;
        assert_eq!(status, 401, "{what}: {answer}");
    }
    // A scope that says nothing of memories allows nothing with them.
    let recall = async |scope: &str| {
        let token = token(&key, "one", &changed("scope", json!(scope)));
        asked(&server, "recall", r#"{"query":"peanuts","limit":3}"#, None, Some(&token)).await
    };
    let (status, answer) = recall("openid memory:read").await;
    assert_eq!(status, 200, "{answer}");
    let (status, answer) = recall("openid").await;
    assert_eq!(status, 403, "{answer}");
    server.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_070_a_token_bound_to_a_key_needs_a_proof_of_it_with_each_request() {
    let (server, issuer) = believing().await;
    let own = SigningKey::generate(Algorithm::Ed25519, &[5; 32]);
    let thief = SigningKey::generate(Algorithm::Ed25519, &[6; 32]);
    let mut claims = good();
    let print = base64url(own.verifying_key().thumbprint().as_bytes());
    claims["cnf"] = json!({ "jkt": print });
    let bound = token(&issuer, "one", &claims);
    let free = token(&issuer, "one", &good());
    let proof = |key: &SigningKey, token: &str, id: &str| {
        let head =
            json!({ "alg": "EdDSA", "typ": "dpop+jwt", "jwk": key.verifying_key().to_jwk() });
        let hash = yore_canon::hash::Sha256::of(token);
        let said = json!({
            "jti": id, "htm": "POST", "htu": "https://localhost/api/v1/whoami",
            "iat": claims["iat"], "ath": base64url(hash.as_bytes()),
        });
        let part = |value: &Value| base64url(value.to_string().as_bytes());
        let message = format!("{}.{}", part(&head), part(&said));
        format!("{message}.{}", base64url(key.sign(message.as_bytes()).as_bytes()))
    };
    let ask = async |scheme: &str, token: &str, proof: Option<String>| {
        let mut headers = vec![("authorization", format!("{scheme} {token}"))];
        headers.extend(proof.map(|proof| ("dpop", proof)));
        sent(&server, "whoami", "{}", None, &headers).await
    };
    let first = proof(&own, &bound, "1");
    let (status, who) = ask("DPoP", &bound, Some(first.clone())).await;
    assert_eq!((status, &who["agent"]), (200, &json!("scheduler")), "{who}");
    for (what, scheme, token, proof) in [
        ("the same proof again", "DPoP", &bound, Some(first)),
        ("no proof", "DPoP", &bound, None),
        ("as a bearer's", "Bearer", &bound, Some(proof(&own, &bound, "2"))),
        ("another's key", "DPoP", &bound, Some(proof(&thief, &bound, "3"))),
        ("a proof for another token", "DPoP", &bound, Some(proof(&own, &free, "4"))),
        ("a token that is bound to nothing", "DPoP", &free, Some(proof(&own, &free, "5"))),
    ] {
        let (status, answer) = ask(scheme, token, proof).await;
        assert_eq!(status, 401, "{what}: {answer}");
    }
    // A token of the vault's own is nobody else's to bind.
    let owner = server.token.expose().to_owned();
    let (status, _) = ask("DPoP", &owner, Some(proof(&own, &owner, "6"))).await;
    assert_eq!(status, 401);
    assert_eq!(ask("Bearer", &free, None).await.0, 200);
    server.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_is_replaced_is_shown_without_a_restart() {
    let place = tempfile::tempdir().unwrap();
    let (certificate, key) = (place.path().join("c.pem"), place.path().join("k.pem"));
    let write = |number: u8| {
        let pair = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.serial_number = Some(vec![number].into());
        let signed = params.self_signed(&pair).unwrap();
        std::fs::write(&key, pair.serialize_pem()).unwrap();
        std::fs::write(&certificate, signed.pem()).unwrap();
        signed.der().clone()
    };
    let first = write(1);
    let (file, private) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let server =
        Server::start_with(|layers| layers.set("tls.certificate", file).set("tls.key", private))
            .await;
    let shown = async || {
        let config = tls(&certificate, None);
        let stream = TcpStream::connect(server.note.https.unwrap()).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.ok()?;
        Some(stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned())
    };
    assert_eq!(shown().await, Some(first));
    let second = write(2);
    for _ in 0..200 {
        if shown().await.as_ref() == Some(&second) {
            return drop(server.end().await);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the new certificate is not shown");
}

//! The keys behind a DID: inside a did:key, or in a document that is fetched with care.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::http::Uri;
use axum::http::header::{ACCEPT, HOST};
use bytes::Bytes;
use futures::future::BoxFuture;
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use yore_canon::did::{DOCUMENT_LIMITS, Did, Document};

use crate::refusal::{Code, Refusal, Result};

/// How long a fetch may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a document counts, how long a failure, and how long a document outlives failures.
const GOOD: Duration = Duration::from_secs(600);
const BAD: Duration = Duration::from_secs(30);
const STALE: Duration = Duration::from_secs(3600);
/// Documents that are kept.
const MOST: usize = 4096;

/// Fetches what lies at an https address; says in a few words why not.
pub trait Fetch: Send + Sync {
    /// Fetches at most as much as a DID document may hold, and follows no redirect.
    fn fetch<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Vec<u8>, String>>;
}

/// What is known of one DID.
#[derive(Debug, Default)]
struct Slot {
    /// When it was last looked for, and whether it was found then.
    looked: Option<(Instant, bool)>,
    /// The last document there was, and when it was fetched.
    last: Option<(Instant, Arc<Document>)>,
}

/// The documents of senders, each fetched once at a time and kept for a while.
pub(crate) struct Documents {
    fetch: Arc<dyn Fetch>,
    slots: Mutex<HashMap<Did, Arc<tokio::sync::Mutex<Slot>>>>,
    /// Those of did:keys: reading one costs a third of what checking a signature does.
    keys: Mutex<HashMap<Did, Arc<Document>>>,
}

impl fmt::Debug for Documents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Documents").finish_non_exhaustive()
    }
}

impl Documents {
    pub(crate) fn new(fetch: Arc<dyn Fetch>) -> Self {
        Self { fetch, slots: Mutex::default(), keys: Mutex::default() }
    }

    /// Returns the document of a DID.
    pub(crate) async fn of(&self, did: &Did) -> Result<Arc<Document>> {
        let unknown = || Refusal::new(Code::Unauthenticated, "the sender's keys cannot be found");
        if did.method() == "key" {
            return self.of_key(did).ok_or_else(unknown);
        }
        let url = did.web_url().map_err(|_| unknown())?;
        let slot = self.slot(did);
        // Whoever comes while it is fetched waits here, and finds it fetched.
        let mut slot = slot.lock().await;
        if let Some((at, found)) = slot.looked
            && at.elapsed() < if found { GOOD } else { BAD }
        {
            return slot.known().ok_or_else(unknown);
        }
        let fetched = tokio::time::timeout(PATIENCE, self.fetch.fetch(&url)).await;
        let fetched = fetched.unwrap_or_else(|_| Err("it took too long".to_owned()));
        let now = Instant::now();
        match fetched {
            Ok(bytes) => {
                // A document that lies is no failure to fetch: what was known no longer counts.
                let document = Document::parse(&bytes, did).ok().map(Arc::new);
                slot.looked = Some((now, document.is_some()));
                slot.last = document.map(|document| (now, document));
            }
            Err(reason) => {
                tracing::info!(did = %did, reason, "a DID document was not fetched");
                slot.looked = Some((now, false));
            }
        }
        slot.known().ok_or_else(unknown)
    }

    /// The document that a did:key implies. It never changes.
    fn of_key(&self, did: &Did) -> Option<Arc<Document>> {
        if let Some(known) = self.keys.lock().get(did) {
            return Some(Arc::clone(known));
        }
        let document = Arc::new(Document::of_key_did(did).ok()?);
        let mut keys = self.keys.lock();
        if keys.len() >= MOST {
            keys.clear();
        }
        keys.insert(did.clone(), Arc::clone(&document));
        Some(document)
    }

    fn slot(&self, did: &Did) -> Arc<tokio::sync::Mutex<Slot>> {
        let mut slots = self.slots.lock();
        if slots.len() >= MOST {
            slots.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        Arc::clone(slots.entry(did.clone()).or_default())
    }
}

impl Slot {
    fn known(&self) -> Option<Arc<Document>> {
        let (at, document) = self.last.as_ref()?;
        (at.elapsed() < GOOD + STALE).then(|| Arc::clone(document))
    }
}

/// Fetches over the web: TLS, public addresses only, no redirects, a small answer.
pub struct Web {
    /// Made when it is needed first: reading what the system trusts takes its time.
    tls: OnceLock<TlsConnector>,
    /// Hosts that may lie on private addresses, as they stand in a DID.
    allowed: Vec<String>,
}

impl fmt::Debug for Web {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Web").field("allowed", &self.allowed).finish_non_exhaustive()
    }
}

impl Web {
    /// Prepares to fetch. Hosts that are allowed may lie on private addresses.
    #[must_use]
    pub fn new(allowed: Vec<String>) -> Self {
        Self { tls: OnceLock::new(), allowed }
    }

    async fn get(&self, url: &str) -> Result<Vec<u8>, String> {
        let uri: Uri = url.parse().map_err(|_| "it is no address")?;
        let host = uri.host().ok_or("it names no host")?;
        let authority = uri.authority().ok_or("it names no host")?.as_str();
        let port = uri.port_u16().unwrap_or(443);
        let found = tokio::net::lookup_host((host, port)).await.map_err(said)?;
        let private = self.allowed.iter().any(|allowed| allowed == authority);
        let address = found.into_iter().find(|address| private || is_public(address.ip()));
        let address = address.ok_or("its host has no public address")?;
        // The address that was looked at is the one that is connected to.
        let stream = TcpStream::connect(address).await.map_err(said)?;
        let name = ServerName::try_from(host.to_owned()).map_err(|_| "its host has no name")?;
        let stream = self.tls.get_or_init(connector).connect(name, stream).await.map_err(said)?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(said)?;
        let driven = tokio::spawn(connection);
        let request = hyper::Request::get(uri.path())
            .header(HOST, authority)
            .header(ACCEPT, "application/did+json, application/json")
            .body(Empty::<Bytes>::new())
            .map_err(said)?;
        let answer = sender.send_request(request).await.map_err(said)?;
        if answer.status() != 200 {
            return Err(format!("the answer was {}", answer.status().as_u16()));
        }
        let body = Limited::new(answer.into_body(), DOCUMENT_LIMITS.bytes).collect().await;
        driven.abort();
        Ok(body.map_err(|_| "the answer is too long")?.to_bytes().to_vec())
    }
}

impl Fetch for Web {
    fn fetch<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Vec<u8>, String>> {
        Box::pin(self.get(url))
    }
}

fn connector() -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("invariant: the provider speaks TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

fn said(error: impl fmt::Display) -> String {
    error.to_string()
}

/// Whether an address is one that anybody may be sent to.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            let shared = a == 100 && (64..128).contains(&b);
            let benchmark = a == 198 && (18..20).contains(&b);
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_multicast()
                || v4.is_broadcast()
                || v4.is_documentation()
                || v4.is_unspecified()
                || shared
                || benchmark
                || a == 0
                || a >= 240)
        }
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => is_public(IpAddr::V4(v4)),
            // Only the global range; all of the others are somebody's own.
            None => {
                let [first, second, ..] = v6.segments();
                let translated = first == 0x2002 || (first == 0x2001 && second == 0);
                (first & 0xe000) == 0x2000 && !translated && !(first == 0x2001 && second == 0x0db8)
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;
    use yore_canon::key::{Algorithm, SigningKey};

    use super::*;

    struct Fake {
        answer: Mutex<Result<Vec<u8>, String>>,
        asked: AtomicUsize,
    }

    impl Fetch for Fake {
        fn fetch<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<u8>, String>> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let answer = self.answer.lock().clone();
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(10)).await;
                answer
            })
        }
    }

    fn document(did: &str) -> Vec<u8> {
        let key = SigningKey::generate(Algorithm::Ed25519, &[1; 32]).verifying_key();
        let keys = [("key-1", key)];
        Document::new(did.parse().unwrap(), keys).unwrap().to_json().to_string().into_bytes()
    }

    fn documents(answer: Result<Vec<u8>, String>) -> (Arc<Fake>, Documents) {
        let fake = Arc::new(Fake { answer: Mutex::new(answer), asked: AtomicUsize::new(0) });
        (Arc::clone(&fake), Documents::new(fake))
    }

    #[tokio::test]
    async fn uamp_027_a_document_is_fetched_once_and_kept() {
        let did: Did = "did:web:worker.example".parse().unwrap();
        let (fake, documents) = documents(Ok(document("did:web:worker.example")));
        let (one, two) = tokio::join!(documents.of(&did), documents.of(&did));
        assert_eq!(one.unwrap(), two.unwrap());
        documents.of(&did).await.unwrap();
        assert_eq!(fake.asked.load(Ordering::Relaxed), 1, "one flight, then from memory");
    }

    #[tokio::test]
    async fn uamp_027_failures_are_remembered_and_lies_count_for_nothing() {
        let did: Did = "did:web:worker.example".parse().unwrap();
        for answer in [
            Err("the answer was 302".to_owned()),
            Ok(document("did:web:other.example")),
            Ok(json!({"id": did, "pad": "x".repeat(65 << 10)}).to_string().into_bytes()),
        ] {
            let (fake, documents) = documents(answer);
            for _ in 0..2 {
                let refused = documents.of(&did).await.unwrap_err();
                assert_eq!(refused.code, Code::Unauthenticated);
            }
            assert_eq!(fake.asked.load(Ordering::Relaxed), 1);
        }
    }

    #[tokio::test]
    async fn uamp_027_uamp_117_private_addresses_are_not_asked() {
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "fe80::1",
            "fc00::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "2002:7f00:1::",
            "64:ff9b::7f00:1",
            "2001:db8::1",
            "ff02::1",
            "::",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        let refused = Web::new(Vec::new()).get("https://localhost/.well-known/did.json").await;
        assert_eq!(refused.unwrap_err(), "its host has no public address");
    }
}

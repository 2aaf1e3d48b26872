//! Requests to addresses that a user named: over TLS, and never into a network of the server's.
//!
//! The name is looked up once, every address behind it is judged, and the connection goes to one
//! of those that were judged: what the name means a moment later does not matter. Redirects are
//! not followed.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::http::header::{CONTENT_TYPE, HOST};
use axum::http::{Method, Request, Uri};
use bytes::Bytes;
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use yore_domain::{Error, Result};

/// How long a request may take in all.
const TIME: Duration = Duration::from_secs(15);

/// Where requests may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// To the public network alone.
    Public,
    /// Anywhere, for those who vouch for every address themselves.
    Anywhere,
}

/// Sends requests.
#[derive(Clone)]
pub struct Outward {
    reach: Reach,
    roots: Option<Arc<RootCertStore>>,
    tls: Arc<OnceLock<TlsConnector>>,
}

impl std::fmt::Debug for Outward {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outward").field("reach", &self.reach).finish_non_exhaustive()
    }
}

impl Default for Outward {
    fn default() -> Self {
        Self { reach: Reach::Public, roots: None, tls: Arc::default() }
    }
}

impl Outward {
    /// Trusts certificates of its own instead of the system's.
    #[must_use]
    pub fn trusting(roots: RootCertStore, reach: Reach) -> Self {
        Self { reach, roots: Some(Arc::new(roots)), tls: Arc::default() }
    }

    /// Refuses an address whose form alone shows that it cannot be used.
    pub fn check(&self, url: &str) -> Result<()> {
        let (_, host, _) = parsed(url)?;
        let private = match host.parse::<IpAddr>() {
            Ok(address) => !is_public(address),
            Err(_) => is_local_name(&host),
        };
        if private && self.reach == Reach::Public {
            return Err(Error::invalid("url", "must lead to the public network"));
        }
        Ok(())
    }

    /// Sends JSON and returns the status of the answer, or why there is none.
    pub async fn post(
        &self,
        url: &str,
        headers: &[(&'static str, String)],
        body: Vec<u8>,
    ) -> Result<u16, String> {
        match tokio::time::timeout(TIME, Box::pin(self.sent(url, headers, body))).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("no answer within {} s", TIME.as_secs())),
        }
    }

    async fn sent(
        &self,
        url: &str,
        headers: &[(&'static str, String)],
        body: Vec<u8>,
    ) -> Result<u16, String> {
        let (uri, host, port) = parsed(url).map_err(|error| error.to_string())?;
        let stream = self.connected(&host, port).await?;
        let name = ServerName::try_from(host.clone()).map_err(|_| "the host has no valid name")?;
        let lost = |error: io::Error| format!("no connection: {}", error.kind());
        let stream = self.tls().connect(name, stream).await.map_err(lost)?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let authority = uri.authority().map_or(host.as_str(), |authority| authority.as_str());
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(HOST, authority)
            .header(CONTENT_TYPE, "application/json");
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request.body(Full::new(Bytes::from(body))).map_err(|e| e.to_string())?;
        let broken = |_: hyper::Error| "the answer is not HTTP, or broke off".to_owned();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        // The connection moves only while it is polled. Of the answer only the status matters, so
        // the rest is never read.
        let mut asking = std::pin::pin!(sender.send_request(request));
        let answer = tokio::select! {
            answer = &mut asking => answer,
            ended = connection => match ended {
                // It may end together with the last byte of the answer.
                Ok(()) => asking.await,
                Err(error) => Err(error),
            }
        };
        answer.map(|answer| answer.status().as_u16()).map_err(broken)
    }

    /// Connects to one of the addresses of a host, if all of them may be reached.
    async fn connected(&self, host: &str, port: u16) -> Result<TcpStream, String> {
        let found = tokio::net::lookup_host((host, port)).await;
        let addresses: Vec<SocketAddr> =
            found.map_err(|_| "the host has no address".to_owned())?.collect();
        let private = addresses.iter().any(|address| !is_public(address.ip()));
        if private && self.reach == Reach::Public {
            return Err("the host is not in the public network".to_owned());
        }
        let mut failed = "the host has no address".to_owned();
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => failed = format!("no connection: {}", error.kind()),
            }
        }
        Err(failed)
    }

    fn tls(&self) -> &TlsConnector {
        self.tls.get_or_init(|| {
            let roots = self.roots.clone().unwrap_or_else(|| {
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                Arc::new(roots)
            });
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let config = ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .expect("invariant: the provider speaks TLS")
                .with_root_certificates(roots)
                .with_no_client_auth();
            TlsConnector::from(Arc::new(config))
        })
    }
}

/// Reads an address: where, which host, which port.
fn parsed(url: &str) -> Result<(Uri, String, u16)> {
    let wrong = |reason: &str| Error::invalid("url", reason);
    let uri: Uri = url.parse().map_err(|_| wrong("is not an address"))?;
    if uri.scheme_str() != Some("https") {
        return Err(wrong("must be https"));
    }
    let authority = uri.authority().ok_or_else(|| wrong("has no host"))?;
    if authority.as_str().contains('@') {
        return Err(wrong("must not hold a user or a password"));
    }
    let host = authority.host().trim_matches(['[', ']']).to_ascii_lowercase();
    if host.is_empty() {
        return Err(wrong("has no host"));
    }
    let port = authority.port_u16().unwrap_or(443);
    Ok((uri, host, port))
}

/// Names that never mean a host elsewhere.
fn is_local_name(host: &str) -> bool {
    let host = host.trim_end_matches('.');
    let ends = [".localhost", ".local", ".internal", ".home.arpa"];
    host == "localhost" || ends.iter().any(|end| host.ends_with(end))
}

/// Whether an address belongs to the public network.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(a == 0
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_multicast()
        // Shared by providers, for protocols, for relays that ended, for measurements, reserved.
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (b == 18 || b == 19))
        || a >= 240)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    // Addresses that carry another one are judged by that.
    if let Some(inside) = address.to_ipv4_mapped() {
        return is_public_v4(inside);
    }
    let parts = address.segments();
    let carried = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match parts {
        [0x0064, 0xff9b, 0, 0, 0, 0, high, low] => carried(high, low),
        [0x2002, high, low, ..] => carried(high, low),
        // Teredo, and what is for documents or measurements.
        [0x2001, second, ..] if second < 0x0200 || second == 0x0db8 => false,
        [0x3fff, second, ..] if second < 0x1000 => false,
        // Only this block is given out for the public network.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omp_181_only_addresses_of_the_public_network_are_reached() {
        let table = [
            ("93.184.216.34", true),
            ("1.1.1.1", true),
            ("2606:4700:4700::1111", true),
            ("64:ff9b::101:101", true),
            ("127.0.0.1", false),
            ("0.0.0.0", false),
            ("10.1.2.3", false),
            ("172.16.0.1", false),
            ("192.168.1.1", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("192.0.0.8", false),
            ("192.0.2.1", false),
            ("198.18.0.1", false),
            ("198.51.100.7", false),
            ("203.0.113.9", false),
            ("224.0.0.1", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false),
            ("::", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:10.0.0.1", false),
            ("::127.0.0.1", false),
            ("64:ff9b::7f00:1", false),
            ("2002:7f00:1::1", false),
            ("2001:0:1::1", false),
            ("2001:db8::1", false),
            ("fc00::1", false),
            ("fd12::1", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("ff02::1", false),
        ];
        for (text, public) in table {
            assert_eq!(is_public(text.parse().unwrap()), public, "{text}");
        }
    }

    #[test]
    fn omp_181_only_https_to_a_host_elsewhere_is_taken() {
        let outward = Outward::default();
        for url in ["https://hooks.example.com/in?x=1", "https://93.184.216.34:8443/"] {
            assert!(outward.check(url).is_ok(), "{url}");
        }
        for url in [
            "http://hooks.example.com/in",
            "ftp://hooks.example.com",
            "https://user:word@hooks.example.com/",
            "https://localhost/",
            "https://db.internal/",
            "https://printer.local./",
            "https://127.0.0.1/",
            "https://[::1]:8443/",
            "https://[::ffff:10.0.0.1]/",
            "/in",
            "hooks",
            "",
        ] {
            assert!(outward.check(url).is_err(), "{url}");
        }
    }

    #[tokio::test]
    async fn omp_181_a_name_that_means_the_own_machine_is_not_connected_to() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        // The form of these says nothing; the addresses behind them do.
        for host in ["localhost", "127.0.0.1", "2130706433", "0x7f.1", "127.1"] {
            let url = format!("https://{host}:{port}/");
            let refused = Outward::default().post(&url, &[], Vec::new()).await.unwrap_err();
            assert!(!refused.contains("connection"), "{host}: {refused}");
        }
        let called = tokio::time::timeout(Duration::from_millis(100), listener.accept()).await;
        assert!(called.is_err(), "nobody may have called");
    }
}

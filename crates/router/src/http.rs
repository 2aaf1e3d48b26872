//! A small HTTP client: one request, one connection, bounded in size.
//!
//! Deadlines are the caller's: dropping a call closes its connection. Redirects are not followed,
//! for they could carry memories, or a key, where nobody sent them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use http::{Method, Request, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use yore_engine::Secret;

use crate::error::{Error, Result};

/// Bytes of an answer that are read at most.
const ANSWER: usize = 32 << 20;
/// Values in an answer at most; some servers send every vector along.
const NODES: usize = 4_000_000;

/// Where a server is, and how it and we know each other.
#[derive(Clone, Debug)]
pub struct Server {
    /// Its address, such as `http://127.0.0.1:8000/api/v1`.
    pub base_url: String,
    /// The key or password it wants.
    pub token: Option<Secret>,
    /// A file of the certificates that vouch for it, where the system's do not.
    pub ca_file: Option<PathBuf>,
}

impl Server {
    /// The same, with a key.
    #[must_use]
    pub fn with_token(self, token: Option<Secret>) -> Self {
        Self { token, ..self }
    }
}

impl From<String> for Server {
    fn from(base_url: String) -> Self {
        Self { base_url, token: None, ca_file: None }
    }
}

impl From<&str> for Server {
    fn from(base_url: &str) -> Self {
        base_url.to_owned().into()
    }
}

/// Speaks to one server.
pub(crate) struct Client {
    host: String,
    port: u16,
    /// The path before every path, without a slash at its end.
    prefix: String,
    tls: Option<TlsConnector>,
    /// A header that says who we are.
    auth: Option<(HeaderName, Secret)>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { host, port, prefix, tls, auth } = self;
        let scheme = if tls.is_some() { "https" } else { "http" };
        f.debug_struct("Client")
            .field("url", &format!("{scheme}://{host}:{port}{prefix}"))
            .field("auth", &auth.is_some())
            .finish()
    }
}

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    body: Bytes,
}

impl Answer {
    /// The body of a success as JSON. An empty one is null.
    pub(crate) fn json(&self) -> Result<Value> {
        if !(200..300).contains(&self.status) {
            return Err(Error::Status(self.status));
        }
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        yore_canon::json::parse_with(
            &self.body,
            yore_canon::json::Limits { bytes: ANSWER, nodes: NODES, ..Default::default() },
        )
        .map_err(|error| Error::Garbage(error.to_string()))
    }
}

impl Answer {
    /// The body of a success as text.
    pub(crate) fn text(&self) -> Result<String> {
        if !(200..300).contains(&self.status) {
            return Err(Error::Status(self.status));
        }
        String::from_utf8(self.body.to_vec()).map_err(|_| Error::Garbage("not a text".into()))
    }
}

impl Client {
    /// Prepares to speak to a server, which finds its key in a header, behind a word perhaps.
    pub(crate) fn new(server: &Server, header: &'static str, word: &str) -> Result<Self> {
        let wrong = || Error::invalid("base_url", "must be http or https with a host");
        let uri: Uri = server.base_url.parse().map_err(|_| wrong())?;
        let (tls, port) = match uri.scheme_str() {
            Some("http") => (None, 80),
            Some("https") => (Some(trusting(vouching(server.ca_file.as_deref())?)), 443),
            Some(_) | None => return Err(wrong()),
        };
        let authority = uri.authority().ok_or_else(wrong)?;
        if authority.as_str().contains('@') {
            return Err(Error::invalid("base_url", "must not hold a user or a password"));
        }
        Ok(Self {
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().unwrap_or(port),
            prefix: uri.path().trim_end_matches('/').to_owned(),
            tls,
            auth: server.token.as_ref().map(|token| {
                let said = Secret::new(format!("{word}{}", token.expose()));
                (HeaderName::from_static(header), said)
            }),
        })
    }

    /// Asks without a body.
    pub(crate) async fn get(&self, path: &str) -> Result<Answer> {
        self.send(Method::GET, path, None).await
    }

    /// Asks without a body, and without the path that stands before every other.
    pub(crate) async fn get_from_root(&self, path: &str) -> Result<Answer> {
        self.send_at("", Method::GET, path, None).await
    }

    /// Deletes.
    pub(crate) async fn delete(&self, path: &str) -> Result<Answer> {
        self.send(Method::DELETE, path, None).await
    }

    /// Sends JSON and reads the JSON of a success.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.json(Method::POST, path, body).await?.json()
    }

    /// Sends JSON.
    pub(crate) async fn json(&self, method: Method, path: &str, body: &Value) -> Result<Answer> {
        let bytes = Bytes::from(body.to_string());
        self.send(method, path, Some(("application/json", bytes))).await
    }

    /// Sends a form of several parts, each a name and a text.
    pub(crate) async fn form(&self, path: &str, parts: &[(&str, &str)]) -> Result<Answer> {
        // A boundary that no part holds.
        let mut boundary = "yore-part".to_owned();
        while parts.iter().any(|(_, text)| text.contains(&boundary)) {
            boundary.push('x');
        }
        let mut body = String::new();
        for (name, text) in parts {
            body.push_str(&format!(
                "--{boundary}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n"
            ));
        }
        body.push_str(&format!("--{boundary}--\r\n"));
        let kind = format!("multipart/form-data; boundary={boundary}");
        self.send(Method::POST, path, Some((&kind, body.into()))).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, Bytes)>,
    ) -> Result<Answer> {
        self.send_at(&self.prefix, method, path, body).await
    }

    async fn send_at(
        &self,
        prefix: &str,
        method: Method,
        path: &str,
        body: Option<(&str, Bytes)>,
    ) -> Result<Answer> {
        let request = self.request(method, &format!("{prefix}{path}"), body)?;
        let lost = |error: io::Error| Error::Unreachable(error.kind().to_string());
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(lost)?;
        stream.set_nodelay(true).map_err(lost)?;
        match &self.tls {
            None => exchange(stream, request).await,
            Some(tls) => {
                let name = ServerName::try_from(self.host.clone())
                    .map_err(|_| Error::invalid("base_url", "the host has no valid name"))?;
                let stream = tls.connect(name, stream).await.map_err(lost)?;
                exchange(stream, request).await
            }
        }
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, Bytes)>,
    ) -> Result<Request<Full<Bytes>>> {
        let wrong = |_| Error::invalid("url", "cannot be asked for");
        let mut request = Request::builder().method(method).uri(path);
        request = request.header(HOST, format!("{}:{}", self.host, self.port));
        if let Some((name, secret)) = &self.auth {
            let mut value = HeaderValue::from_str(secret.expose())
                .map_err(|_| Error::invalid("token", "cannot be sent"))?;
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        let bytes = match body {
            Some((kind, bytes)) => {
                request = request.header(CONTENT_TYPE, kind);
                bytes
            }
            None => Bytes::new(),
        };
        request.body(Full::new(bytes)).map_err(wrong)
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Full<Bytes>>,
) -> Result<Answer> {
    let lost = |error: hyper::Error| match error.is_parse() {
        true => Error::Garbage("not HTTP".into()),
        false => Error::Unreachable(error.to_string()),
    };
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(lost)?;
    let asking = async move {
        let answer = sender.send_request(request).await.map_err(lost)?;
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), ANSWER).collect().await;
        let body = body.map_err(|error| Error::Unreachable(error.to_string()))?.to_bytes();
        Ok(Answer { status, body })
    };
    // The connection moves only while it is polled; when the call is dropped, so is it.
    let mut connection = std::pin::pin!(connection);
    let mut asking = std::pin::pin!(asking);
    tokio::select! {
        answer = &mut asking => answer,
        ended = &mut connection => {
            // It may end together with the last byte of the answer.
            match ended {
                Ok(()) => asking.await,
                Err(error) => Err(lost(error)),
            }
        }
    }
}

/// The certificates that the system trusts.
pub(crate) fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// The certificates of a file, or where none is named those that the system trusts.
fn vouching(ca_file: Option<&Path>) -> Result<RootCertStore> {
    let Some(path) = ca_file else { return Ok(system_roots()) };
    roots_of(path).ok_or_else(|| Error::invalid("ca_file", "is no file of certificates"))
}

/// The certificates of a file; `None` where it holds none.
pub(crate) fn roots_of(path: &Path) -> Option<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).ok()? {
        roots.add(certificate.ok()?).ok()?;
    }
    (!roots.is_empty()).then_some(roots)
}

/// Encrypts, for servers that some certificates vouch for.
pub(crate) fn trusting(roots: RootCertStore) -> TlsConnector {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("invariant: the provider speaks TLS")
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

/// Writes a text so that it can stand anywhere in an address.
pub(crate) fn escaped(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

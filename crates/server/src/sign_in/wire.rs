//! How identity providers are asked. The operator names them, so they may lie anywhere, but only
//! those on this machine are asked in clear text. No redirect is followed.

use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use axum::http::{Request, Uri};
use bytes::Bytes;
use futures::future::BoxFuture;
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use yore_canon::encode::base64;
use yore_engine::Secret;

/// How long an answer may take.
const TIME: Duration = Duration::from_secs(10);
/// The longest answer that is read.
const LONGEST: usize = 1 << 20;

/// Asks.
#[derive(Default)]
pub(super) struct Wire(OnceLock<TlsConnector>);

/// Whether an address is one that may be asked.
pub(super) fn check(url: &str) -> Result<(), &'static str> {
    parsed(url).map(drop)
}

/// Reads an address: where, which host, which port, and whether over TLS.
fn parsed(url: &str) -> Result<(Uri, String, u16, bool), &'static str> {
    let uri: Uri = url.parse().map_err(|_| "is not an address")?;
    let authority = uri.authority().ok_or("has no host")?;
    if authority.as_str().contains('@') {
        return Err("must not hold a user or a password");
    }
    let host = authority.host().trim_matches(['[', ']']).to_owned();
    let near = ["localhost", "127.0.0.1", "::1"].contains(&host.as_str());
    let secure = match uri.scheme_str() {
        Some("https") => true,
        Some("http") if near => false,
        _ => return Err("must be https, or http on this machine"),
    };
    let port = authority.port_u16().unwrap_or(if secure { 443 } else { 80 });
    Ok((uri, host, port, secure))
}

impl Wire {
    /// Redeems a code. A client with a secret shows it.
    pub(super) async fn redeem(
        &self,
        url: &str,
        form: &[(&str, &str)],
        secret: Option<(&str, &Secret)>,
    ) -> Result<Value, String> {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let mut request =
            Request::post(url).header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        if let Some((id, secret)) = secret {
            let part = |text: &str| -> String {
                form_urlencoded::byte_serialize(text.as_bytes()).collect()
            };
            let pair = format!("{}:{}", part(id), part(secret.expose()));
            request = request.header(AUTHORIZATION, format!("Basic {}", base64(pair.as_bytes())));
        }
        let request = request.body(Full::new(Bytes::from(body))).map_err(said)?;
        let bytes = self.asked(url, request).await?;
        serde_json::from_slice(&bytes).map_err(|_| "the answer is not JSON".to_owned())
    }

    async fn asked(&self, url: &str, request: Request<Full<Bytes>>) -> Result<Vec<u8>, String> {
        let asked = tokio::time::timeout(TIME, Box::pin(self.sent(url, request))).await;
        asked.map_err(|_| "it took too long".to_owned())?
    }

    async fn sent(&self, url: &str, request: Request<Full<Bytes>>) -> Result<Vec<u8>, String> {
        let (_, host, port, secure) = parsed(url)?;
        let stream = TcpStream::connect((host.as_str(), port)).await.map_err(said)?;
        if !secure {
            return exchanged(stream, request).await;
        }
        let name = ServerName::try_from(host).map_err(|_| "its host has no name")?;
        let stream = self.0.get_or_init(connector).connect(name, stream).await.map_err(said)?;
        exchanged(stream, request).await
    }
}

async fn exchanged(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    mut request: Request<Full<Bytes>>,
) -> Result<Vec<u8>, String> {
    let uri = request.uri().clone();
    let place = uri.path_and_query().map_or("/", |place| place.as_str()).to_owned();
    let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
    *request.uri_mut() = place.parse().map_err(said)?;
    let headers = request.headers_mut();
    headers.insert(HOST, authority.parse().map_err(said)?);
    headers.insert(ACCEPT, axum::http::HeaderValue::from_static("application/json"));
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(said)?;
    let driven = tokio::spawn(connection);
    let answer = sender.send_request(request).await.map_err(said)?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), LONGEST).collect().await;
    driven.abort();
    if status != 200 {
        return Err(format!("the answer was {}", status.as_u16()));
    }
    Ok(body.map_err(|_| "the answer is too long or broke off")?.to_bytes().to_vec())
}

impl yore_uamp::Fetch for Wire {
    fn fetch<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Vec<u8>, String>> {
        Box::pin(async move {
            let request = Request::get(url).body(Full::default()).map_err(said)?;
            self.asked(url, request).await
        })
    }
}

fn connector() -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("invariant: the provider speaks TLS")
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clear_text_stays_on_the_machine() {
        for right in ["https://id.example", "https://id.example:8443/a", "http://localhost:1/a"] {
            assert!(check(right).is_ok(), "{right}");
        }
        for wrong in ["http://id.example", "ftp://localhost", "https://a@id.example", "x", ""] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
    }
}

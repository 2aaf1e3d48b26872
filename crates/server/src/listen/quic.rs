//! HTTP/3: the same router over QUIC, at the address of TLS.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::{Buf, Bytes};
use futures::stream;
use h3::error::Code;
use h3::server::{RequestResolver, RequestStream};
use http_body_util::BodyExt as _;
use hyper::header::{CONNECTION, HeaderName, TRANSFER_ENCODING};
use hyper::{Request, Response, Version};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, IdleTimeout, ServerConfig, TransportConfig, VarInt};
use rustls::pki_types::CertificateDer;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;
use yore_engine::Thumbprint;
use yore_http::Peer;

use crate::config::Limits;
use crate::tls::Identity;

/// Requests under way on one connection.
const REQUESTS: u32 = 128;
/// How long the last answers may take to leave.
const LINGER: Duration = Duration::from_millis(500);
/// How long more of a body is waited for that was given up in the middle of a read.
const STRAGGLERS: Duration = Duration::from_secs(10);
/// Bytes of a request's head.
const HEAD: u64 = 32 << 10;
/// Headers that speak of a connection, which HTTP/3 has no place for.
const OF_CONNECTIONS: [HeaderName; 3] =
    [CONNECTION, TRANSFER_ENCODING, HeaderName::from_static("keep-alive")];

/// Binds an address.
pub(super) fn bind(
    address: SocketAddr,
    identity: &Identity,
    limits: &Limits,
) -> std::io::Result<Endpoint> {
    let mut tls = identity.config();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let tls = QuicServerConfig::try_from(tls).map_err(std::io::Error::other)?;
    let mut transport = TransportConfig::default();
    transport.max_concurrent_bidi_streams(VarInt::from_u32(REQUESTS));
    // Events have a heart beat; a connection on which nothing moves for longer is gone.
    let idle = IdleTimeout::try_from(limits.head().max(Duration::from_secs(30)));
    transport.max_idle_timeout(idle.ok());
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    config.transport_config(Arc::new(transport));
    Endpoint::server(config, address)
}

/// Serves a connection until the client ends it, or the requests under way are answered after
/// the server was told to stop.
pub(super) async fn speak(
    connection: quinn::Connection,
    router: Router,
    peer: Peer,
    head: Duration,
    stop: CancellationToken,
) {
    let shown = connection.peer_identity();
    let shown = shown.and_then(|shown| shown.downcast::<Vec<CertificateDer<'static>>>().ok());
    let shown = super::thumbprint(shown.as_deref().map(Vec::as_slice));
    let built = h3::server::builder()
        .max_field_section_size(HEAD)
        .build::<_, Bytes>(h3_quinn::Connection::new(connection))
        .await;
    let mut connection = match built {
        Ok(connection) => connection,
        Err(error) => return tracing::debug!(%error, "an HTTP/3 connection did not begin"),
    };
    let mut requests = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = connection.accept() => accepted,
            Some(_) = requests.join_next() => continue,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok(Some(resolver)) => {
                requests.spawn(exchange(resolver, router.clone(), (peer, shown), head));
            }
            Ok(None) => break,
            Err(error) => {
                // Ending a connection is an error, too, where this library is concerned.
                tracing::debug!(%error, "an HTTP/3 connection ended");
                break;
            }
        }
    }
    let under_way = !requests.is_empty();
    if stop.is_cancelled()
        && let Err(error) = connection.shutdown(0).await
    {
        tracing::debug!(%error, "an HTTP/3 connection was gone already");
    }
    while requests.join_next().await.is_some() {}
    if under_way {
        // Whoever lets go of a connection throws away what is not yet sent.
        let _ = tokio::time::timeout(LINGER, connection.accept()).await;
    }
}

/// Answers one request.
async fn exchange(
    resolver: RequestResolver<h3_quinn::Connection, Bytes>,
    router: Router,
    (peer, shown): (Peer, Option<Thumbprint>),
    head: Duration,
) {
    let (request, stream) = match tokio::time::timeout(head, resolver.resolve_request()).await {
        Ok(Ok(resolved)) => resolved,
        Ok(Err(error)) => return tracing::debug!(%error, "an HTTP/3 request cannot be read"),
        Err(_) => return tracing::debug!("the head of an HTTP/3 request did not arrive in time"),
    };
    let (mut out, body) = stream.split();
    let (mut parts, ()) = request.into_parts();
    parts.version = Version::HTTP_3;
    parts.extensions.insert(peer);
    if let Some(shown) = shown {
        parts.extensions.insert(shown);
    }
    let request = Request::from_parts(parts, incoming(body));
    let response = match router.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    if let Err(error) = answer(&mut out, response).await {
        tracing::debug!(%error, "an HTTP/3 answer did not arrive");
    }
}

type Received = RequestStream<h3_quinn::RecvStream, Bytes>;

/// A body that need not be read to its end.
struct Unread {
    /// There until it is dropped.
    body: Option<Received>,
    /// While a read is under way, the library has no stream that could be told anything.
    reading: bool,
}

impl Drop for Unread {
    /// Says that the rest is not needed, which is no error. Of a body that has ended nobody hears.
    fn drop(&mut self) {
        let Some(mut body) = self.body.take() else { return };
        if !self.reading {
            return body.stop_sending(Code::H3_NO_ERROR);
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            // What comes next gives the stream back. Where nothing comes, nobody has to be told.
            if tokio::time::timeout(STRAGGLERS, body.recv_data()).await.is_ok() {
                body.stop_sending(Code::H3_NO_ERROR);
            }
        });
    }
}

/// The body of a request as it comes in.
fn incoming(body: Received) -> Body {
    let body = Unread { body: Some(body), reading: false };
    Body::from_stream(stream::unfold(Some(body), |unread| async move {
        let mut unread = unread?;
        unread.reading = true;
        let read = unread.body.as_mut()?.recv_data().await;
        unread.reading = false;
        let read = read.map(|data| data.map(|mut data| data.copy_to_bytes(data.remaining())));
        match read {
            Ok(Some(data)) => Some((Ok(data), Some(unread))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    }))
}

async fn answer(
    out: &mut RequestStream<h3_quinn::SendStream<Bytes>, Bytes>,
    response: Response<Body>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let (mut parts, mut body) = response.into_parts();
    for name in &OF_CONNECTIONS {
        parts.headers.remove(name);
    }
    out.send_response(Response::from_parts(parts, ())).await?;
    while let Some(frame) = body.frame().await {
        let frame = match frame?.into_data() {
            Ok(data) => {
                out.send_data(data).await?;
                continue;
            }
            Err(other) => other,
        };
        if let Ok(trailers) = frame.into_trailers() {
            out.send_trailers(trailers).await?;
        }
    }
    out.finish().await?;
    Ok(())
}

//! Listens, accepts and drains connections.

mod quic;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::{ALT_SVC, HeaderValue};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
#[cfg(unix)]
use tokio::net::UnixListener;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use yore_canon::hash::Sha256;
use yore_engine::Thumbprint;
use yore_http::{Peer, Way};

use crate::config::{Bind, Config, Limits};
use crate::error::{Error, Result};
use crate::place;
use crate::tls::Identity;

/// Addresses that are bound but not yet served.
#[derive(Debug, Default)]
pub struct Listeners {
    http: Option<TcpListener>,
    https: Option<(TcpListener, Arc<Identity>)>,
    http3: Option<quinn::Endpoint>,
    #[cfg(unix)]
    socket: Option<(UnixListener, PathBuf)>,
}

impl Listeners {
    /// Binds what the configuration names.
    pub(crate) async fn bind(config: &Config, identity: Option<Arc<Identity>>) -> Result<Self> {
        config.check()?;
        let mut bound = Self::default();
        if let Bind::At(address) = config.listen.http {
            bound.http = Some(tcp(address).await?);
        }
        if let (Bind::At(address), Some(identity)) = (config.listen.https, identity) {
            let listener = tcp(address).await?;
            let address = listener.local_addr().ok().filter(|_| config.listen.http3);
            bound.http3 = address.and_then(|address| http3(address, &identity, &config.limits));
            bound.https = Some((listener, identity));
        }
        if config.listen.socket {
            bound.bind_socket(config)?;
        }
        Ok(bound)
    }

    /// Binds the socket alone.
    pub(crate) fn socket_only(config: &Config) -> Result<Self> {
        let mut bound = Self::default();
        bound.bind_socket(config)?;
        Ok(bound)
    }

    #[cfg(unix)]
    fn bind_socket(&mut self, config: &Config) -> Result<()> {
        use std::os::unix::fs::PermissionsExt as _;
        let path = place::socket(&config.data);
        place::remove(&path)?;
        // The directory is private already, so nobody gets in before the mode is set.
        let listener = UnixListener::bind(&path)
            .map_err(|source| Error::Bind { at: path.display().to_string(), source })?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))
            .map_err(Error::file(&path))?;
        self.socket = Some((listener, path));
        Ok(())
    }

    #[cfg(not(unix))]
    fn bind_socket(&mut self, _: &Config) -> Result<()> {
        Ok(())
    }

    /// Where plain HTTP is spoken.
    #[must_use]
    pub fn http(&self) -> Option<SocketAddr> {
        self.http.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Where TLS is spoken.
    #[must_use]
    pub fn https(&self) -> Option<SocketAddr> {
        self.https.as_ref().and_then(|(listener, _)| listener.local_addr().ok())
    }

    /// The file with the authority that clients of the TLS address may trust.
    #[must_use]
    pub fn authority(&self) -> Option<PathBuf> {
        self.https.as_ref().and_then(|(_, identity)| identity.authority())
    }

    /// The socket's path.
    #[must_use]
    pub fn socket(&self) -> Option<PathBuf> {
        #[cfg(unix)]
        return self.socket.as_ref().map(|(_, path)| path.clone());
        #[cfg(not(unix))]
        return None;
    }

    pub(crate) fn identity(&self) -> Option<Arc<Identity>> {
        self.https.as_ref().map(|(_, identity)| Arc::clone(identity))
    }
}

async fn tcp(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .map_err(|source| Error::Bind { at: address.to_string(), source })
}

/// Binds HTTP/3 where TLS is spoken. Everybody can do without it, so the server can too.
fn http3(address: SocketAddr, identity: &Identity, limits: &Limits) -> Option<quinn::Endpoint> {
    match quic::bind(address, identity, limits) {
        Ok(endpoint) => Some(endpoint),
        Err(error) => {
            tracing::warn!(%address, %error, "HTTP/3 is not served");
            None
        }
    }
}

/// Accepts connections until told to stop, then waits for those that are open.
pub(crate) struct Acceptor {
    router: Router,
    builder: Builder<TokioExecutor>,
    slots: Arc<Semaphore>,
    handshake: Duration,
    head: Duration,
    drain: Duration,
    stop: CancellationToken,
    cut: CancellationToken,
    open: watch::Sender<usize>,
    /// Where else clients of TLS may come to.
    elsewhere: OnceLock<HeaderValue>,
}

impl Acceptor {
    pub(crate) fn new(
        router: Router,
        limits: &Limits,
        stop: CancellationToken,
        open: watch::Sender<usize>,
    ) -> Arc<Self> {
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head())
            .max_buf_size(64 << 10);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(128)
            // WebSockets over HTTP/2, which clients that speak nothing older need (RFC 8441).
            .enable_connect_protocol()
            .max_header_list_size(32 << 10)
            .keep_alive_interval(limits.head())
            .keep_alive_timeout(limits.head());
        Arc::new(Self {
            router,
            builder,
            slots: Arc::new(Semaphore::new(limits.connections)),
            handshake: limits.handshake(),
            head: limits.head(),
            drain: limits.drain(),
            stop,
            cut: CancellationToken::new(),
            open,
            elsewhere: OnceLock::new(),
        })
    }

    /// Serves until stopped.
    pub(crate) async fn run(self: Arc<Self>, listeners: Listeners) {
        let graceful = Arc::new(GracefulShutdown::new());
        let mut tasks = JoinSet::new();
        if let Some(listener) = listeners.http {
            tasks.spawn(Arc::clone(&self).accept(listener, None, Arc::clone(&graceful)));
        }
        let quic = listeners.http3;
        if let Some(endpoint) = quic.clone() {
            if let Ok(address) = endpoint.local_addr() {
                let elsewhere = format!("h3=\":{}\"; ma=86400", address.port());
                let elsewhere = HeaderValue::from_str(&elsewhere);
                let elsewhere = elsewhere.expect("invariant: a port is digits");
                // Nobody else sets it, and it is set once.
                let _ = self.elsewhere.set(elsewhere);
            }
            tasks.spawn(Arc::clone(&self).accept_quic(endpoint));
        }
        if let Some((listener, identity)) = listeners.https {
            let tls = TlsAcceptor::from(Arc::new(identity.config()));
            tasks.spawn(Arc::clone(&self).accept(listener, Some(tls), Arc::clone(&graceful)));
        }
        #[cfg(unix)]
        if let Some((listener, _)) = listeners.socket {
            tasks.spawn(Arc::clone(&self).accept_local(listener, Arc::clone(&graceful)));
        }
        while let Some(done) = tasks.join_next().await {
            if let Err(error) = done {
                tracing::error!(%error, "a listener ended");
            }
        }
        let graceful = Arc::into_inner(graceful).expect("invariant: the listeners have ended");
        let mut open = self.open.subscribe();
        let drained = async {
            graceful.shutdown().await;
            // Nobody watches the connections of HTTP/3 but the count.
            let _ = open.wait_for(|count| quic.is_none() || *count == 0).await;
        };
        if tokio::time::timeout(self.drain, drained).await.is_err() {
            tracing::warn!(open = *self.open.borrow(), "requests under way were cut off");
        }
        self.cut.cancel();
        let mut open = self.open.subscribe();
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = open.wait_for(|count| *count == 0).await;
        if let Some(quic) = quic {
            quic.close(quinn::VarInt::from_u32(0), b"");
            quic.wait_idle().await;
        }
    }

    async fn accept(
        self: Arc<Self>,
        listener: TcpListener,
        tls: Option<TlsAcceptor>,
        graceful: Arc<GracefulShutdown>,
    ) {
        while let Some(slot) = self.slot().await {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = self.stop.cancelled() => break,
            };
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    refused(&error).await;
                    continue;
                }
            };
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "a connection was gone at once");
                continue;
            }
            let (this, tls, watcher) = (Arc::clone(&self), tls.clone(), graceful.watcher());
            self.spawn(slot, async move {
                let address = Some(address);
                let Some(tls) = tls else {
                    let peer = Peer { way: Way::Plain, address };
                    return this.speak(stream, peer, None, watcher).await;
                };
                match tokio::time::timeout(this.handshake, tls.accept(stream)).await {
                    Ok(Ok(stream)) => {
                        let peer = Peer { way: Way::Tls, address };
                        let shown = thumbprint(stream.get_ref().1.peer_certificates());
                        this.speak(stream, peer, shown, watcher).await;
                    }
                    Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
                    Err(_) => tracing::debug!("a TLS handshake took too long"),
                }
            });
        }
    }

    async fn accept_quic(self: Arc<Self>, endpoint: quinn::Endpoint) {
        while let Some(slot) = self.slot().await {
            let accepted = tokio::select! {
                accepted = endpoint.accept() => accepted,
                () = self.stop.cancelled() => break,
            };
            let Some(incoming) = accepted else { break };
            let peer = Peer { way: Way::Tls, address: Some(incoming.remote_address()) };
            let (router, stop) = (self.router.clone(), self.stop.clone());
            let (handshake, head) = (self.handshake, self.head);
            self.spawn(slot, async move {
                match tokio::time::timeout(handshake, incoming).await {
                    Ok(Ok(connection)) => {
                        quic::speak(connection, router, peer, head, stop).await;
                    }
                    Ok(Err(error)) => tracing::debug!(%error, "a QUIC handshake failed"),
                    Err(_) => tracing::debug!("a QUIC handshake took too long"),
                }
            });
        }
    }

    #[cfg(unix)]
    async fn accept_local(
        self: Arc<Self>,
        listener: UnixListener,
        graceful: Arc<GracefulShutdown>,
    ) {
        while let Some(slot) = self.slot().await {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = self.stop.cancelled() => break,
            };
            match accepted {
                Ok((stream, _)) => {
                    let (this, watcher) = (Arc::clone(&self), graceful.watcher());
                    self.spawn(slot, async move {
                        let peer = Peer { way: Way::Socket, address: None };
                        this.speak(stream, peer, None, watcher).await;
                    });
                }
                Err(error) => refused(&error).await,
            }
        }
    }

    /// Waits until another connection may be taken; `None` when it is time to stop.
    async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        tokio::select! {
            slot = Arc::clone(&self.slots).acquire_owned() => slot.ok(),
            () = self.stop.cancelled() => None,
        }
    }

    /// Runs a connection until it ends or is cut off.
    fn spawn(
        &self,
        slot: OwnedSemaphorePermit,
        connection: impl Future<Output = ()> + Send + 'static,
    ) {
        let (open, cut) = (Open::new(&self.open, Some(slot)), self.cut.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = connection => {}
                () = cut.cancelled() => {}
            }
            // Last, so that whoever sees no open connection knows that nothing is held any more.
            drop(open);
        });
    }

    async fn speak<S>(&self, stream: S, peer: Peer, shown: Option<Thumbprint>, watcher: Watcher)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (router, first) = (self.router.clone(), Arc::new(Notify::new()));
        let arrived = Arc::clone(&first);
        let elsewhere = self.elsewhere.get().filter(|_| peer.way == Way::Tls).cloned();
        let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
            arrived.notify_one();
            request.extensions_mut().insert(peer);
            if let Some(shown) = shown {
                request.extensions_mut().insert(shown);
            }
            let (router, elsewhere) = (router.clone(), elsewhere.clone());
            async move {
                let mut response = router.oneshot(request).await?;
                if let Some(elsewhere) = elsewhere {
                    response.headers_mut().insert(ALT_SVC, elsewhere);
                }
                Ok::<_, std::convert::Infallible>(response)
            }
        });
        let connection = self.builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
        tokio::select! {
            ended = watcher.watch(connection.into_owned()) => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended early");
                }
            }
            () = silence(&first, self.head) => tracing::debug!("a connection asked for nothing"),
        }
    }
}

/// The fingerprint of the certificate that the other end showed and whose key it holds.
fn thumbprint(shown: Option<&[CertificateDer<'_>]>) -> Option<Thumbprint> {
    let certificate = shown?.first()?;
    Some(Thumbprint(*Sha256::of(certificate).as_bytes()))
}

/// Ends when no request came in time, and never once one has. Only the first has to be waited
/// for here: before it the protocol is not known, and nobody else looks at the clock.
async fn silence(first: &Notify, time: Duration) {
    if tokio::time::timeout(time, first.notified()).await.is_ok() {
        std::future::pending::<()>().await;
    }
}

/// An accept that failed is no reason to end; out of descriptors, waiting helps.
async fn refused(error: &std::io::Error) {
    tracing::warn!(%error, "a connection could not be accepted");
    tokio::time::sleep(Duration::from_millis(100)).await;
}

/// Counts a connection while it is open.
#[derive(Debug)]
pub(crate) struct Open {
    count: watch::Sender<usize>,
    _slot: Option<OwnedSemaphorePermit>,
}

impl Open {
    /// Counts what came without a connection; nobody can open too many of them.
    pub(crate) fn inside(count: &watch::Sender<usize>) -> Self {
        Self::new(count, None)
    }

    fn new(count: &watch::Sender<usize>, slot: Option<OwnedSemaphorePermit>) -> Self {
        count.send_modify(|count| *count += 1);
        Self { count: count.clone(), _slot: slot }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.count.send_modify(|count| *count -= 1);
    }
}

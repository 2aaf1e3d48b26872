//! Opens connections: a Unix socket, TCP, or TLS on TCP.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use http::uri::Authority;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::error::{Error, Result};
use crate::target::Target;

const CONNECT_TIME: Duration = Duration::from_secs(10);

/// Opens connections to one target.
#[derive(Clone)]
pub(crate) struct Connector {
    target: Target,
    tls: Option<TlsConnector>,
}

impl Connector {
    pub(crate) fn new(target: Target) -> Result<Self> {
        let tls = match &target {
            Target::Socket(_) | Target::Http(_) => None,
            Target::Https { ca, .. } => {
                let roots = match ca {
                    Some(path) => only(path)?,
                    None => system(),
                };
                let provider = Arc::new(rustls::crypto::ring::default_provider());
                let config = ClientConfig::builder_with_provider(provider)
                    .with_protocol_versions(&[&rustls::version::TLS13])
                    .expect("invariant: the provider speaks TLS 1.3")
                    .with_root_certificates(roots)
                    .with_no_client_auth();
                Some(TlsConnector::from(Arc::new(config)))
            }
        };
        Ok(Self { target, tls })
    }

    async fn open(self) -> io::Result<Wire> {
        let stream: Box<dyn Stream> = match &self.target {
            #[cfg(unix)]
            Target::Socket(path) => Box::new(tokio::net::UnixStream::connect(path).await?),
            #[cfg(not(unix))]
            Target::Socket(_) => return Err(io::ErrorKind::Unsupported.into()),
            Target::Http(authority) => Box::new(tcp(authority, 80).await?),
            Target::Https { authority, .. } => {
                let stream = tcp(authority, 443).await?;
                let host = bare(authority).to_owned();
                let name = ServerName::try_from(host).map_err(io::Error::other)?;
                let tls = self.tls.expect("invariant: TLS is set up for this target");
                Box::new(tls.connect(name, stream).await?)
            }
        };
        Ok(Wire(stream))
    }
}

fn only(path: &std::path::Path) -> Result<RootCertStore> {
    let wrong = |reason: String| Error::Authorities { path: path.to_owned(), reason };
    let mut roots = RootCertStore::empty();
    for certificate in
        CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?
    {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(wrong("it holds no certificate".into()));
    }
    Ok(roots)
}

fn system() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

async fn tcp(authority: &Authority, port: u16) -> io::Result<TcpStream> {
    let port = authority.port_u16().unwrap_or(port);
    let stream = TcpStream::connect((bare(authority), port)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The host without the brackets of an IPv6 address.
fn bare(authority: &Authority) -> &str {
    authority.host().trim_start_matches('[').trim_end_matches(']')
}

impl tower_service::Service<Uri> for Connector {
    type Response = TokioIo<Wire>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<Wire>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move {
            let wire = tokio::time::timeout(CONNECT_TIME, connector.open())
                .await
                .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
            Ok(TokioIo::new(wire))
        })
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// An open connection of any sort.
pub(crate) struct Wire(Box<dyn Stream>);

impl Connection for Wire {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

//! Encrypted connections to PostgreSQL.
//!
//! Whoever asks for encryption gets a server that proves its name: `require` means the same as
//! `verify-full`, for a connection to nobody knows whom protects from nobody who stands between.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::{BoxFuture, FutureExt};
use percent_encoding::percent_decode_str;
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use crate::error::{Error, Result};
use crate::http::{roots_of, system_roots, trusting};

/// Which certificates are believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Those the system believes.
    System,
    /// Those that the ones in a file vouch for.
    File(PathBuf),
}

/// Reads what an address says about encryption, and returns the address without what only we
/// understand of it. `None` where it does not ask for any.
pub(super) fn asked(dsn: &str) -> Result<(String, Option<Trust>)> {
    let Some((place, query)) = dsn.split_once('?') else { return Ok((dsn.to_owned(), None)) };
    let (mut rest, mut encrypted, mut trust) = (Vec::new(), false, Trust::System);
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some(("sslmode", "require" | "verify-full")) => {
                encrypted = true;
                rest.push("sslmode=require");
            }
            Some(("sslmode", "verify-ca")) => {
                return Err(Error::invalid("url", "sslmode must be require or verify-full"));
            }
            Some(("sslrootcert", "system")) => {}
            Some(("sslrootcert", path)) => {
                trust = Trust::File(percent_decode_str(path).decode_utf8_lossy().as_ref().into());
            }
            Some(_) | None => rest.push(pair),
        }
    }
    let dsn =
        if rest.is_empty() { place.to_owned() } else { format!("{place}?{}", rest.join("&")) };
    Ok((dsn, encrypted.then_some(trust)))
}

/// Makes encrypted connections.
#[derive(Clone)]
pub(super) struct Encryption(TlsConnector);

impl Encryption {
    pub(super) fn new(trust: &Trust) -> Result<Self> {
        let roots = match trust {
            Trust::System => system_roots(),
            Trust::File(path) => roots_of(path)
                .ok_or_else(|| Error::invalid("url", "sslrootcert is no file of certificates"))?,
        };
        Ok(Self(trusting(roots)))
    }
}

impl MakeTlsConnect<Socket> for Encryption {
    type Stream = Encrypted;
    type TlsConnect = Handshake;
    type Error = InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> std::result::Result<Handshake, Self::Error> {
        Ok(Handshake { connector: self.0.clone(), name: ServerName::try_from(host.to_owned())? })
    }
}

/// A connection that is about to be encrypted.
pub(super) struct Handshake {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Encrypted>>;

    fn connect(self, socket: Socket) -> Self::Future {
        async move { self.connector.connect(self.name, socket).await.map(Encrypted) }.boxed()
    }
}

/// An encrypted connection.
pub(super) struct Encrypted(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Encrypted {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_whether_and_whom_to_trust() {
        let file = |path: &str| Some(Trust::File(path.into()));
        for (dsn, rest, trust) in [
            ("postgresql://h/d", "postgresql://h/d", None),
            ("postgresql://h/d?sslmode=prefer", "postgresql://h/d?sslmode=prefer", None),
            ("p://h/d?sslmode=require", "p://h/d?sslmode=require", Some(Trust::System)),
            (
                "p://h/d?a=1&sslmode=verify-full&sslrootcert=/etc/my%20ca.pem",
                "p://h/d?a=1&sslmode=require",
                file("/etc/my ca.pem"),
            ),
            ("p://h/d?sslrootcert=system", "p://h/d", None),
        ] {
            assert_eq!(asked(dsn), Ok((rest.to_owned(), trust)), "{dsn}");
        }
        assert!(asked("p://h/d?sslmode=verify-ca").is_err());
    }
}

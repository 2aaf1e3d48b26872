//! Encrypted connections to the database.
//!
//! `sslmode` and `sslrootcert` of an address mean what they mean to PostgreSQL's own programs, but
//! stricter: an address on another machine that says nothing is held to `verify-full`, and so is
//! `require`, for a connection to nobody knows whom protects from nobody who stands between.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use crate::error::{Error, Result};

/// Reads an address: where the database is, and how it is spoken to.
pub(crate) fn read(address: &str) -> Result<(Config, Connector)> {
    let (bare, mode, roots) = split(address)?;
    let mut config: Config = bare
        .parse()
        .map_err(|_| Error::Address("it is not one of a PostgreSQL database".into()))?;
    let encrypted = match mode.as_deref() {
        Some("disable") => false,
        Some("require" | "verify-full") => true,
        None => !is_near(&config),
        Some("prefer" | "allow") if is_near(&config) => false,
        Some(_) => {
            return Err(Error::Address(
                "sslmode must be verify-full or require, or disable on a network that you trust"
                    .into(),
            ));
        }
    };
    config.ssl_mode(if encrypted { SslMode::Require } else { SslMode::Disable });
    let trusted = if encrypted { trusted(roots.as_deref())? } else { RootCertStore::empty() };
    Ok((config, Connector(Arc::new(client(trusted)?))))
}

/// Whether every host is this machine.
pub(crate) fn is_near(config: &Config) -> bool {
    config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => {
            name == "localhost"
                || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    })
}

/// Takes out of an address what the client library does not know.
fn split(address: &str) -> Result<(String, Option<String>, Option<String>)> {
    let (mut mode, mut roots) = (None, None);
    let mut take = |name: &str, value: &str| {
        match name {
            "sslmode" => mode = Some(value.to_owned()),
            "sslrootcert" => roots = Some(value.to_owned()),
            _ => return false,
        }
        true
    };
    let bare = if address.contains("://") {
        let (place, query) = address.split_once('?').unwrap_or((address, ""));
        let mut kept = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !take(name, &decoded(value)?) {
                kept.push(pair);
            }
        }
        match kept.as_slice() {
            [] => place.to_owned(),
            kept => format!("{place}?{}", kept.join("&")),
        }
    } else {
        let mut kept = Vec::new();
        for pair in address.split_whitespace() {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !take(name, value.trim_matches('\'')) {
                kept.push(pair);
            }
        }
        kept.join(" ")
    };
    Ok((bare, mode, roots))
}

/// Undoes the escapes of a query.
fn decoded(value: &str) -> Result<String> {
    let wrong = || Error::Address("an escape in its query is not one".into());
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes().iter();
    while let Some(byte) = rest.next() {
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let digits: Vec<u8> = rest.by_ref().take(2).copied().collect();
        let digits = std::str::from_utf8(&digits).map_err(|_| wrong())?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| wrong())?);
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

fn client(roots: RootCertStore) -> Result<ClientConfig> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Address(format!("encryption: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    Ok(config)
}

/// The roots of a file, or those of the system.
fn trusted(roots: Option<&str>) -> Result<RootCertStore> {
    let mut store = RootCertStore::empty();
    match roots {
        None | Some("system") => {
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Some(path) => {
            let unreadable = |error: &dyn std::fmt::Display| {
                Error::Address(format!("sslrootcert {path} cannot be read: {error}"))
            };
            let found = CertificateDer::pem_file_iter(Path::new(path));
            for certificate in found.map_err(|error| unreadable(&error))? {
                let certificate = certificate.map_err(|error| unreadable(&error))?;
                store.add(certificate).map_err(|error| unreadable(&error))?;
            }
        }
    }
    if store.is_empty() {
        return Err(Error::Address("there is no root certificate: name one as sslrootcert".into()));
    }
    Ok(store)
}

/// Encrypts connections. One that must not be encrypted is never shown to it.
#[derive(Clone, Debug)]
pub(crate) struct Connector(Arc<ClientConfig>);

/// One connection to a named host.
pub(crate) struct Named {
    connector: TlsConnector,
    name: ServerName<'static>,
}

/// An encrypted connection.
pub(crate) struct Stream<S>(tokio_rustls::client::TlsStream<S>);

impl<S> MakeTlsConnect<S> for Connector
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Stream<S>;
    type TlsConnect = Named;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Named> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        Ok(Named { connector: TlsConnector::from(Arc::clone(&self.0)), name })
    }
}

impl<S> TlsConnect<S> for Named
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Stream<S>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Stream<S>>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move { self.connector.connect(self.name, stream).await.map(Stream) })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Stream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, from)
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
    fn what_the_library_does_not_know_is_taken_out() {
        let address = "postgres://a:b@h1:1,h2:2/yore?target_session_attrs=read-write\
            &sslmode=verify-full&sslrootcert=%2Fetc%2Froot.pem";
        let (bare, mode, roots) = split(address).unwrap();
        assert_eq!(bare, "postgres://a:b@h1:1,h2:2/yore?target_session_attrs=read-write");
        assert_eq!(
            (mode.as_deref(), roots.as_deref()),
            (Some("verify-full"), Some("/etc/root.pem"))
        );
        let (bare, mode, _) = split("host=h1,h2 sslmode=require dbname=yore").unwrap();
        assert_eq!((bare.as_str(), mode.as_deref()), ("host=h1,h2 dbname=yore", Some("require")));
    }

    #[test]
    fn an_address_elsewhere_is_spoken_to_in_secret() {
        let ssl = |address: &str| read(address).map(|(config, _)| config.get_ssl_mode());
        assert_eq!(ssl("postgres://yore@localhost/yore").unwrap(), SslMode::Disable);
        assert_eq!(ssl("postgres://yore@127.0.0.1/yore?sslmode=prefer").unwrap(), SslMode::Disable);
        assert_eq!(
            ssl("postgres://yore@db.example/yore?sslmode=disable").unwrap(),
            SslMode::Disable
        );
        assert_eq!(
            ssl("postgres://yore@db.example/yore?sslmode=require").unwrap(),
            SslMode::Require
        );
        for wrong in ["prefer", "maybe"] {
            assert!(ssl(&format!("postgres://yore@db.example/yore?sslmode={wrong}")).is_err());
        }
        let missing = ssl("postgres://yore@db.example/yore?sslrootcert=/there/is/none.pem");
        assert!(missing.unwrap_err().to_string().contains("/there/is/none.pem"));
    }
}

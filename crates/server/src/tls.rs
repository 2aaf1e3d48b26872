//! TLS 1.3 with a certificate of the operator's, or one signed by an authority made here.
//!
//! The authority lives ten years and its certificate is what clients trust; the server's own
//! certificate lives ninety days and is replaced, without a restart, thirty days before its end
//! or when the names it must carry change.

mod issue;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use yore_domain::Timestamp;

use crate::config::Config;
use crate::error::{Error, Result};

/// The server's certificate, which may be replaced while it serves.
#[derive(Debug)]
pub(crate) struct Identity {
    source: Source,
    current: Arc<Current>,
}

#[derive(Debug)]
enum Source {
    Files { certificate: PathBuf, key: PathBuf },
    Local { place: PathBuf, names: Vec<String> },
}

struct Current(RwLock<Arc<CertifiedKey>>);

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Current(…)")
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read()))
    }
}

impl Identity {
    /// Loads or makes the certificate. Blocks.
    pub(crate) fn open(config: &Config, now: Timestamp) -> Result<Self> {
        let source = match (&config.tls.certificate, &config.tls.key) {
            (Some(certificate), Some(key)) => {
                Source::Files { certificate: certificate.clone(), key: key.clone() }
            }
            _ => Source::Local { place: config.data.join("tls"), names: names(config) },
        };
        let key = source.load(now)?;
        Ok(Self { source, current: Arc::new(Current(RwLock::new(Arc::new(key)))) })
    }

    /// Loads the certificate again, replacing it where it nears its end. Blocks.
    pub(crate) fn refresh(&self, now: Timestamp) -> Result<()> {
        *self.current.0.write() = Arc::new(self.source.load(now)?);
        Ok(())
    }

    /// The file clients may trust, when the authority is ours.
    pub(crate) fn authority(&self) -> Option<PathBuf> {
        match &self.source {
            Source::Files { .. } => None,
            Source::Local { place, .. } => Some(place.join("ca.pem")),
        }
    }

    pub(crate) fn config(&self) -> ServerConfig {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let resolver: Arc<dyn ResolvesServerCert> = Arc::<Current>::clone(&self.current);
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("invariant: the provider speaks TLS 1.3")
            .with_no_client_auth()
            .with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config
    }
}

impl Source {
    fn load(&self, now: Timestamp) -> Result<CertifiedKey> {
        match self {
            Self::Files { certificate, key } => certified(certificate, key),
            Self::Local { place, names } => {
                issue::ensure(place, names, now)?;
                certified(&place.join("server.pem"), &place.join("server.key"))
            }
        }
    }
}

fn certified(certificate: &Path, key: &Path) -> Result<CertifiedKey> {
    let wrong =
        |path: &Path, error: &dyn fmt::Display| Error::Tls(format!("{}: {error}", path.display()));
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(certificate, &error))?;
    if chain.is_empty() {
        return Err(wrong(certificate, &"it holds no certificate"));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
    let signer = rustls::crypto::ring::sign::any_supported_type(&private)
        .map_err(|error| wrong(key, &error))?;
    let certified = CertifiedKey::new(chain, signer);
    certified.keys_match().map_err(|_| wrong(key, &"it is not the certificate's key"))?;
    Ok(certified)
}

/// The names a local certificate carries.
fn names(config: &Config) -> Vec<String> {
    let mut names: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    if let crate::config::Bind::At(address) = config.listen.https
        && !address.ip().is_unspecified()
    {
        names.push(address.ip().to_string());
    }
    names.extend(config.listen.hosts.iter().cloned());
    names.sort();
    names.dedup();
    names
}

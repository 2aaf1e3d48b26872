//! TLS 1.3 with a certificate of the operator's, or one signed by an authority made here.
//!
//! The authority lives ten years and its certificate is what clients trust; the server's own
//! certificate lives ninety days and is replaced, without a restart, thirty days before its end
//! or when the names it must carry change. Certificates of the operator's are read again when
//! their files change, so that whatever renews them (ACME) needs to tell nobody.

mod issue;
mod shown;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::{Mutex, RwLock};
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use yore_canon::hash::Sha256;
use yore_domain::Timestamp;

use crate::clock::SystemClock;
use crate::config::Config;
use crate::error::{Error, Result};

/// The server's certificate, which may be replaced while it serves.
#[derive(Debug)]
pub(crate) struct Identity {
    source: Source,
    current: Arc<Current>,
    provider: Arc<CryptoProvider>,
    /// Who looks at the certificates of clients.
    clients: Option<Arc<dyn ClientCertVerifier>>,
    /// When the operator's files were written, as far as is known.
    seen: Mutex<Option<[Option<SystemTime>; 2]>>,
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
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let current = Arc::new(Current(RwLock::new(Arc::new(key))));
        let seen = Mutex::new(None);
        let mut identity = Self { source, current, provider, clients: None, seen };
        // What is loaded now is what is there now.
        identity.changed();
        let authorities = &config.tls.client_authorities;
        let local = identity.authority();
        identity.clients = shown::verifier(authorities, local.as_deref(), &identity.provider)?;
        Ok(identity)
    }

    /// Loads the certificate again, replacing it where it nears its end. One that cannot be used
    /// leaves the one before in its place. Blocks.
    pub(crate) fn refresh(&self, now: Timestamp) -> Result<()> {
        *self.current.0.write() = Arc::new(self.source.load(now)?);
        Ok(())
    }

    /// Whether the operator's files were changed since this was asked last. Blocks.
    pub(crate) fn changed(&self) -> bool {
        let Source::Files { certificate, key } = &self.source else { return false };
        let now = [certificate, key].map(|path| path.metadata().and_then(|at| at.modified()).ok());
        let mut seen = self.seen.lock();
        let changed = seen.is_some_and(|seen| seen != now);
        *seen = Some(now);
        changed
    }

    /// The file clients may trust, when the authority is ours.
    pub(crate) fn authority(&self) -> Option<PathBuf> {
        match &self.source {
            Source::Files { .. } => None,
            Source::Local { place, .. } => Some(place.join("ca.pem")),
        }
    }

    pub(crate) fn config(&self) -> ServerConfig {
        let resolver: Arc<dyn ResolvesServerCert> = Arc::<Current>::clone(&self.current);
        let builder = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("invariant: the provider speaks TLS 1.3");
        let builder = match &self.clients {
            Some(clients) => builder.with_client_cert_verifier(Arc::clone(clients)),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config
    }
}

/// The file with the server's own authority, which is made when there is none.
pub fn authority(config: &Config) -> Result<PathBuf> {
    let place = config.data.join("tls");
    let now = yore_engine::Clock::now(&SystemClock::default());
    issue::ensure(&place, &names(config), now)?;
    Ok(place.join("ca.pem"))
}

/// The fingerprints of authorities that ours replaced, the oldest first.
pub fn replaced_authorities(config: &Config) -> Vec<String> {
    let file = config.data.join("tls").join(issue::REPLACED);
    let certificates = CertificateDer::pem_file_iter(file).into_iter().flatten();
    certificates.flatten().map(|certificate| Sha256::of(certificate).to_hex()).collect()
}

/// A certificate for a client with its key, as one PEM text, signed by the server's own authority.
pub fn client_certificate(config: &Config, name: &str) -> Result<String> {
    let authority = authority(config)?;
    let now = yore_engine::Clock::now(&SystemClock::default());
    issue::client(&authority, name, now)
}

/// The SHA-256 of the first certificate in a file, as hexadecimal digits.
pub fn fingerprint(file: &Path) -> Result<String> {
    let wrong = |error: &dyn fmt::Display| Error::Tls(format!("{}: {error}", file.display()));
    let certificate = CertificateDer::from_pem_file(file).map_err(|error| wrong(&error))?;
    Ok(Sha256::of(certificate).to_hex())
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

//! The certificates that clients show.
//!
//! Nobody has to show one. That its key is held is proven in the handshake; whom it stands for is
//! not decided here: the vault knows certificates by their fingerprints, as it knows tokens by
//! their hashes. Where the operator names authorities, others are turned away at once.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme,
};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::error::{Error, Result};

/// Who looks at the certificates of clients: those that the named authorities signed, or any,
/// hinting at the local authority so that browsers do not offer what was made for others.
pub(super) fn verifier(
    authorities: &[PathBuf],
    local: Option<&Path>,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>> {
    if authorities.is_empty() {
        let Some(local) = local else { return Ok(None) };
        let hints = roots(std::slice::from_ref(&local.to_owned()))?.subjects();
        return Ok(Some(Arc::new(Anyone { provider: Arc::clone(provider), hints })));
    }
    let roots = Arc::new(roots(authorities)?);
    let strict = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(provider))
        .allow_unauthenticated()
        .build()
        .map_err(|error| Error::Tls(error.to_string()))?;
    Ok(Some(strict))
}

fn roots(files: &[PathBuf]) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for file in files {
        let wrong = |error: String| Error::Tls(format!("{}: {error}", file.display()));
        let chain =
            CertificateDer::pem_file_iter(file).map_err(|error| wrong(error.to_string()))?;
        for certificate in chain {
            let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
            roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
        }
    }
    Ok(roots)
}

/// Takes every certificate that holds at this time, and whose key is held.
#[derive(Debug)]
struct Anyone {
    provider: Arc<CryptoProvider>,
    hints: Vec<DistinguishedName>,
}

impl ClientCertVerifier for Anyone {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let (_, parsed) =
            X509Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let validity = parsed.validity();
        if now < validity.not_before.timestamp() {
            return Err(CertificateError::NotValidYet.into());
        }
        if now > validity.not_after.timestamp() {
            return Err(CertificateError::Expired.into());
        }
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

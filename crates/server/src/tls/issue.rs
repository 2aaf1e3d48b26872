//! Makes the local authority and the certificates it signs.

mod bounds;

use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use time::OffsetDateTime;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};
use yore_domain::{Span, Timestamp};

use crate::error::{Error, Result};
use crate::place;

/// The authorities that were replaced, as certificates without their keys.
pub(super) const REPLACED: &str = "replaced.pem";
const AUTHORITY_LIFE: Span = Span::days(3650);
const LIFE: Span = Span::days(90);
/// How long before its end a certificate is replaced.
const EARLY: Span = Span::days(30);
/// How far a client's clock may lag.
const SKEW: Span = Span::days(1);

/// Makes what is missing, near its end or without one of the names.
pub(super) fn ensure(place: &Path, names: &[String], now: Timestamp) -> Result<()> {
    place::make(place)?;
    let (ca, ca_key) = (place.join("ca.pem"), place.join("ca.key"));
    let (leaf, leaf_key) = (place.join("server.pem"), place.join("server.key"));
    let standing = ca_key.exists() && serves(&ca, &[], now);
    let fresh_authority = !(standing && bounds::cover(&ca, names));
    if fresh_authority {
        if standing {
            tracing::warn!(
                "the local authority may not sign for a name that was added, so another was made: \
                 run `yore trust` again, and give programs the new ca.pem"
            );
        }
        let (certificate, key) = authority(names, now)?;
        remember(&ca, &place.join(REPLACED))?;
        place::write(&ca_key, key.as_bytes())?;
        place::write(&ca, certificate.as_bytes())?;
    }
    if fresh_authority || !leaf_key.exists() || !serves(&leaf, names, now) {
        let read = |path: &Path| std::fs::read_to_string(path).map_err(Error::file(path));
        let (certificate, key) = signed(&read(&ca)?, &read(&ca_key)?, names, now)?;
        place::write(&leaf_key, key.as_bytes())?;
        place::write(&leaf, certificate.as_bytes())?;
        tracing::info!("made a certificate for the TLS listener");
    }
    Ok(())
}

/// Keeps the certificate of an authority that is replaced beside its successor: somebody may trust
/// it still, and who takes ours out again takes out all of them.
fn remember(ca: &Path, replaced: &Path) -> Result<()> {
    let Ok(before) = std::fs::read(ca) else { return Ok(()) };
    let mut all = std::fs::read(replaced).unwrap_or_default();
    all.extend(before);
    place::write(replaced, &all)
}

fn authority(names: &[String], now: Timestamp) -> Result<(String, String)> {
    let key = KeyPair::generate().map_err(wrong)?;
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "Yore local authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.name_constraints = Some(bounds::of(names));
    params.not_before = date(now.minus(SKEW))?;
    params.not_after = date(now.plus(AUTHORITY_LIFE))?;
    let certificate = params.self_signed(&key).map_err(wrong)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

fn signed(ca: &str, ca_key: &str, names: &[String], now: Timestamp) -> Result<(String, String)> {
    let issuer = Issuer::from_ca_cert_pem(ca, KeyPair::from_pem(ca_key).map_err(wrong)?);
    let issuer = issuer.map_err(wrong)?;
    let key = KeyPair::generate().map_err(wrong)?;
    let mut params = CertificateParams::new(names.to_vec()).map_err(wrong)?;
    params.distinguished_name.push(DnType::CommonName, "Yore");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    params.not_before = date(now.minus(SKEW))?;
    params.not_after = date(now.plus(LIFE))?;
    let certificate = params.signed_by(&key, &issuer).map_err(wrong)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

/// How long a certificate of a client lives.
const CLIENT_LIFE: Span = Span::days(365);

/// Makes a certificate for a client: it and its key as one PEM text.
pub(super) fn client(authority: &Path, name: &str, now: Timestamp) -> Result<String> {
    let read = |path: &Path| std::fs::read_to_string(path).map_err(Error::file(path));
    let (ca, ca_key) = (read(authority)?, read(&authority.with_file_name("ca.key"))?);
    let issuer = Issuer::from_ca_cert_pem(&ca, KeyPair::from_pem(&ca_key).map_err(wrong)?);
    let issuer = issuer.map_err(wrong)?;
    let key = KeyPair::generate().map_err(wrong)?;
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.use_authority_key_identifier_extension = true;
    params.not_before = date(now.minus(SKEW))?;
    params.not_after = date(now.plus(CLIENT_LIFE))?;
    let certificate = params.signed_by(&key, &issuer).map_err(wrong)?;
    Ok(format!("{}{}", certificate.pem(), key.serialize_pem()))
}

/// Whether a certificate can be read, lives long enough and carries all the names.
fn serves(path: &Path, names: &[String], now: Timestamp) -> bool {
    let Ok(text) = std::fs::read(path) else { return false };
    let Ok((_, pem)) = x509_parser::pem::parse_x509_pem(&text) else { return false };
    let Ok((_, certificate)) = X509Certificate::from_der(&pem.contents) else { return false };
    let ends = certificate.validity().not_after.timestamp();
    if ends <= now.plus(EARLY).micros() / 1_000_000 {
        return false;
    }
    let carried: Vec<String> = match certificate.subject_alternative_name() {
        Ok(Some(extension)) => extension.value.general_names.iter().filter_map(spelt).collect(),
        Ok(None) | Err(_) => Vec::new(),
    };
    names.iter().all(|name| carried.contains(name))
}

fn spelt(name: &GeneralName<'_>) -> Option<String> {
    if let GeneralName::DNSName(name) = name {
        return Some((*name).to_owned());
    }
    let GeneralName::IPAddress(bytes) = name else { return None };
    let four = <[u8; 4]>::try_from(*bytes).map(std::net::IpAddr::from);
    let sixteen = <[u8; 16]>::try_from(*bytes).map(std::net::IpAddr::from);
    four.or(sixteen).ok().map(|address| address.to_string())
}

fn date(at: Timestamp) -> Result<OffsetDateTime> {
    OffsetDateTime::from_unix_timestamp(at.micros() / 1_000_000)
        .map_err(|error| Error::Tls(error.to_string()))
}

fn wrong(error: rcgen::Error) -> Error {
    Error::Tls(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use rustls::RootCertStore;
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

    use super::*;

    #[test]
    fn with_its_key_nobody_pretends_to_be_a_site_of_the_internet() {
        let place = tempfile::tempdir().unwrap();
        let now = Timestamp::from_millis(1_800_000_000_000);
        let hosts = ["localhost", "127.0.0.1", "::1", "memory.example", "203.0.113.7"];
        ensure(place.path(), &hosts.map(str::to_owned), now).unwrap();
        let read = |file: &str| std::fs::read_to_string(place.path().join(file)).unwrap();
        let (ca, ca_key) = (read("ca.pem"), read("ca.key"));
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let verifier = builder.build().unwrap();
        let believed = |name: &str| {
            let (leaf, _) = signed(&ca, &ca_key, &[name.to_owned()], now).unwrap();
            let leaf = CertificateDer::from_pem_slice(leaf.as_bytes()).unwrap();
            let server = ServerName::try_from(name.to_owned()).unwrap();
            let at = UnixTime::since_unix_epoch(Duration::from_secs(1_800_000_000));
            verifier.verify_server_cert(&leaf, &[], &server, &[], at).is_ok()
        };
        for name in
            hosts.into_iter().chain(["10.1.2.3", "nas.local", "fd00::7", "a.memory.example"])
        {
            assert!(believed(name), "{name}");
        }
        for name in ["bank.example", "example", "notlocal", "local.example"] {
            assert!(!believed(name), "{name}");
        }
    }

    #[test]
    fn certificates_are_kept_until_they_near_their_end_or_miss_a_name() {
        let place = tempfile::tempdir().unwrap();
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let read = |file: &str| std::fs::read_to_string(place.path().join(file)).unwrap();
        let now = Timestamp::from_millis(1_800_000_000_000);
        let few = names(&["localhost", "127.0.0.1", "::1"]);
        ensure(place.path(), &few, now).unwrap();
        let (ca, leaf) = (read("ca.pem"), read("server.pem"));

        ensure(place.path(), &few, now.plus(Span::days(59))).unwrap();
        assert_eq!((read("ca.pem"), read("server.pem")), (ca.clone(), leaf.clone()), "kept");

        ensure(place.path(), &few, now.plus(Span::days(61))).unwrap();
        let renewed = read("server.pem");
        assert_ne!(renewed, leaf, "renewed");
        assert_eq!(read("ca.pem"), ca, "by the same authority");

        let more = names(&["localhost", "127.0.0.1", "::1", "192.168.1.7", "memory.local"]);
        ensure(place.path(), &more, now.plus(Span::days(61))).unwrap();
        assert_ne!(read("server.pem"), renewed, "another name");
        assert_eq!(read("ca.pem"), ca, "that the authority may sign for");

        let more = names(&["localhost", "127.0.0.1", "::1", "memory.example"]);
        ensure(place.path(), &more, now.plus(Span::days(61))).unwrap();
        let wider = read("ca.pem");
        assert_ne!(wider, ca, "one that it may not sign for");
        assert_eq!(read(REPLACED), ca, "whoever trusts the one before can be told");
        ensure(place.path(), &few, now.plus(Span::days(61))).unwrap();
        assert_eq!(read("ca.pem"), wider, "fewer names need no other");

        ensure(place.path(), &more, now.plus(Span::days(3700))).unwrap();
        assert_ne!(read("ca.pem"), wider, "the authority itself nears its end");
        assert_eq!(read(REPLACED), ca + &wider, "and all before it");

        std::fs::write(place.path().join("server.pem"), "rubbish").unwrap();
        ensure(place.path(), &more, now.plus(Span::days(3700))).unwrap();
        assert!(read("server.pem").contains("BEGIN CERTIFICATE"), "a damaged one is replaced");
    }

    #[cfg(unix)]
    #[test]
    fn keys_are_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let place = tempfile::tempdir().unwrap();
        ensure(place.path(), &["localhost".into()], Timestamp::from_millis(0)).unwrap();
        for file in ["ca.key", "server.key"] {
            let mode = place.path().join(file).metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{file}");
        }
    }
}

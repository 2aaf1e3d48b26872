//! Bearer tokens: `yore_<kind>_<place>_<secret>`.
//!
//! A token names its vault or tenant, so that the right file is opened, and carries 256 random
//! bits. Only the SHA-256 of the whole is stored. The third kind proves possession of the
//! master key and is not stored at all: it is a MAC over the time it was made.

use yore_canon::hash::{Sha256, hmac_sha256};
use yore_domain::{Error, Result, Span, TenantId, Timestamp, VaultId};

use zeroize::Zeroizing;

use crate::call::Secret;

/// How long a proof of the master key is taken.
const PROOF_LIFE: Span = Span::seconds(60);

/// What a token says about itself, before anything is believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A token kept in this vault.
    Vault(VaultId),
    /// A service token of this tenant, kept in the catalog.
    Service(TenantId),
    /// A proof of the master key made at this time.
    Proof(Timestamp),
}

/// Makes a token kept in a vault.
pub fn for_vault(vault: VaultId) -> Result<Secret> {
    random('v', vault.bytes())
}

/// Makes a service token of a tenant.
pub fn for_service(tenant: TenantId) -> Result<Secret> {
    random('s', tenant.bytes())
}

/// The secret part of a token, before it is known where the token belongs.
#[derive(Clone)]
pub(crate) struct Seed(Zeroizing<[u8; 32]>);

impl Seed {
    /// A random one.
    pub(crate) fn random() -> Result<Self> {
        let mut bytes = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *bytes).map_err(|error| Error::internal(error.to_string()))?;
        Ok(Self(bytes))
    }

    /// The one that follows from a key and what is said; the same each time.
    pub(crate) fn derived(key: &[u8; 32], said: &[u8]) -> Self {
        Self(Zeroizing::new(hmac_sha256(key, said)))
    }
}

impl Seed {
    /// The bytes themselves, for a name nobody can guess.
    pub(crate) fn bytes(&self) -> [u8; 32] {
        *self.0
    }
}

impl std::fmt::Debug for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seed(…)")
    }
}

/// Makes the token of a vault with this secret part.
pub(crate) fn seeded(vault: VaultId, seed: &Seed) -> Secret {
    Secret::new(format!("yore_v_{}_{}", hex(&vault.bytes()), hex(&*seed.0)))
}

/// Makes the service token of a tenant with this secret part.
pub(crate) fn seeded_service(tenant: TenantId, seed: &Seed) -> Secret {
    Secret::new(format!("yore_s_{}_{}", hex(&tenant.bytes()), hex(&*seed.0)))
}

/// Makes a proof that the caller holds the key derived from the master key.
#[must_use]
pub fn proof(local_key: &[u8; 32], now: Timestamp) -> Secret {
    let time = now.micros().to_string();
    let mac = hex(&hmac_sha256(local_key, time.as_bytes()));
    Secret::new(format!("yore_m_{time}_{mac}"))
}

/// Whether a proof was made with this key, lately.
#[must_use]
pub fn proves(token: &Secret, local_key: &[u8; 32], now: Timestamp) -> bool {
    let Ok(Shape::Proof(made)) = shape(token) else { return false };
    let expected = proof(local_key, made);
    let fresh = made <= now.plus(PROOF_LIFE) && now <= made.plus(PROOF_LIFE);
    fresh && equal(expected.expose().as_bytes(), token.expose().as_bytes())
}

/// Reads the shape of a token.
pub fn shape(token: &Secret) -> Result<Shape> {
    let wrong = || Error::unauthenticated("the token is not one of ours");
    let mut parts = token.expose().splitn(4, '_');
    let (Some("yore"), Some(kind), Some(place), Some(secret)) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(wrong());
    };
    if secret.len() != 64 {
        return Err(wrong());
    }
    match kind {
        "v" => Ok(Shape::Vault(VaultId::from_bytes(unhex16(place).ok_or_else(wrong)?))),
        "s" => Ok(Shape::Service(TenantId::from_bytes(unhex16(place).ok_or_else(wrong)?))),
        "m" => {
            let micros = place.parse().map_err(|_| wrong())?;
            Ok(Shape::Proof(Timestamp::from_micros(micros)))
        }
        _ => Err(wrong()),
    }
}

/// Returns what is stored of a token.
#[must_use]
pub fn digest(token: &Secret) -> String {
    Sha256::of(token.expose().as_bytes()).to_hex()
}

fn random(kind: char, place: [u8; 16]) -> Result<Secret> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|error| Error::internal(error.to_string()))?;
    Ok(Secret::new(format!("yore_{kind}_{}_{}", hex(&place), hex(&secret))))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
        text
    })
}

fn unhex16(text: &str) -> Option<[u8; 16]> {
    if text.len() != 32 || !text.is_ascii() {
        return None;
    }
    u128::from_str_radix(text, 16).ok().map(u128::to_be_bytes)
}

/// Compares without telling by the time where the difference lies.
fn equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_name_their_place_and_nothing_else() {
        let vault = VaultId::random();
        let token = for_vault(vault).unwrap();
        assert_eq!(shape(&token).unwrap(), Shape::Vault(vault));
        assert_ne!(digest(&token), digest(&for_vault(vault).unwrap()));
        let service = for_service(TenantId::DEFAULT).unwrap();
        assert_eq!(shape(&service).unwrap(), Shape::Service(TenantId::DEFAULT));
        for bad in ["", "yore", "yore_v_00_11", "Bearer x", "yore_x_0_0", "yore_m_é_0"] {
            assert!(shape(&Secret::new(bad)).is_err(), "{bad}");
        }
        assert_eq!(format!("{token:?}"), "Secret(…)");
    }

    #[test]
    fn a_proof_holds_for_its_key_and_a_minute() {
        let (key, now) = ([7; 32], Timestamp::from_millis(1_800_000_000_000));
        let token = proof(&key, now);
        assert!(proves(&token, &key, now.plus(Span::seconds(59))));
        assert!(!proves(&token, &key, now.plus(Span::seconds(61))));
        assert!(!proves(&token, &key, now.minus(Span::seconds(61))));
        assert!(!proves(&token, &[8; 32], now));
        let moved = Secret::new(token.expose().replace("_18", "_19"));
        assert!(!proves(&moved, &key, Timestamp::from_millis(1_900_000_000_000)));
    }
}

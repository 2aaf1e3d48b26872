//! What authenticators say (Web Authentication, level 2): new passkeys, and signatures by them.
//!
//! ES256 and EdDSA keys are read. Who made an authenticator is not asked for (attestation `none`),
//! so its statement is passed over. Whether the challenge, the place and the counter are the
//! right ones is judged by those who call.

use serde::Deserialize;

use crate::cbor::{Item, Reader};
use crate::encode::from_base64url;
use crate::hash::Sha256;
use crate::key::{Algorithm, Signature, VerifyingKey};

/// Numbers of COSE (RFC 9053) for the algorithms whose keys are read, the preferred one first.
pub const ALGORITHMS: [i64; 2] = [-8, -7];
/// The longest thing of a browser that is read.
const LONGEST: usize = 64 << 10;
/// The longest id of a passkey.
const LONGEST_ID: usize = 1023;

/// What the bytes of a browser or an authenticator are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// They have another form.
    #[error("not what an authenticator says")]
    Form,
    /// The key is of a kind that is not read.
    #[error("the passkey is of a kind that is not known")]
    Key,
}

/// What the browser says it was asked, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientData {
    /// What for.
    pub purpose: Purpose,
    /// The challenge.
    pub challenge: Vec<u8>,
    /// The origin of the page that asked.
    pub origin: String,
    /// Whether the page was inside one of another site.
    pub framed: bool,
}

/// What an authenticator was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Purpose {
    /// A new passkey.
    #[serde(rename = "webauthn.create")]
    Create,
    /// A signature by a known one.
    #[serde(rename = "webauthn.get")]
    Get,
}

impl ClientData {
    /// Reads it from the very bytes that were hashed.
    pub fn read(json: &[u8]) -> Result<Self, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Said {
            r#type: Purpose,
            challenge: String,
            origin: String,
            #[serde(default)]
            cross_origin: bool,
        }
        let said = Some(json).filter(|json| json.len() <= LONGEST);
        let said: Option<Said> = said.and_then(|json| serde_json::from_slice(json).ok());
        let Said { r#type, challenge, origin, cross_origin } = said.ok_or(Error::Form)?;
        let challenge = from_base64url(&challenge).map_err(|_| Error::Form)?;
        Ok(Self { purpose: r#type, challenge, origin, framed: cross_origin })
    }
}

/// What an authenticator says of itself and of what it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// SHA-256 of the host it answered.
    pub host: Sha256,
    /// Whether somebody was there.
    pub present: bool,
    /// Whether it made sure who.
    pub verified: bool,
    /// How often it signed; always 0 where it does not count.
    pub counter: u32,
    /// The passkey that it made.
    pub made: Option<Made>,
}

/// A new passkey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Its id.
    pub id: Vec<u8>,
    /// Its public key.
    pub key: VerifyingKey,
}

impl Told {
    /// Reads the data of an authenticator.
    pub fn read(data: &[u8]) -> Result<Self, Error> {
        let form = || Error::Form;
        let fixed = data.split_at_checked(37).filter(|_| data.len() <= LONGEST);
        let (fixed, rest) = fixed.ok_or_else(form)?;
        let host: [u8; 32] = fixed[..32].try_into().map_err(|_| form())?;
        let flags = fixed[32];
        let counter = u32::from_be_bytes(fixed[33..].try_into().map_err(|_| form())?);
        let made = if flags & 0x40 == 0 { None } else { Some(made(rest)?) };
        Ok(Self {
            host: Sha256::from_bytes(host),
            present: flags & 1 != 0,
            verified: flags & 4 != 0,
            counter,
            made,
        })
    }

    /// Reads what comes with a new passkey, a map that holds the data.
    pub fn read_attestation(object: &[u8]) -> Result<Self, Error> {
        let data = || {
            let mut reader = Reader::new(object);
            let mut data = None;
            for _ in 0..reader.map()? {
                let Item::Text(name) = reader.item()? else { return None };
                if name != "authData" {
                    reader.skip()?;
                    continue;
                }
                let Item::Bytes(bytes) = reader.item()? else { return None };
                if data.replace(bytes).is_some() {
                    return None;
                }
            }
            data.filter(|_| reader.rest().is_empty())
        };
        Self::read(data().ok_or(Error::Form)?)
    }
}

/// Reads a new passkey: whose make it is (16 bytes), the length of its id, the id, the key.
fn made(bytes: &[u8]) -> Result<Made, Error> {
    let form = || Error::Form;
    let (head, rest) = bytes.split_at_checked(18).ok_or_else(form)?;
    let length = usize::from(u16::from_be_bytes([head[16], head[17]]));
    let (id, key) = rest.split_at_checked(length).ok_or_else(form)?;
    if id.is_empty() || id.len() > LONGEST_ID {
        return Err(form());
    }
    Ok(Made { id: id.to_vec(), key: cose(key)? })
}

/// Reads a key as COSE writes it. Extensions may follow.
fn cose(bytes: &[u8]) -> Result<VerifyingKey, Error> {
    let mut reader = Reader::new(bytes);
    let (mut kind, mut algorithm, mut curve, mut x, mut y) = (None, None, None, None, None);
    let mut read = || {
        for _ in 0..reader.map()? {
            let Item::Number(name) = reader.item()? else { return None };
            let value = match name {
                1 | 3 | -1 | -2 | -3 => reader.item()?,
                _ => {
                    reader.skip()?;
                    continue;
                }
            };
            match (name, value) {
                (1, Item::Number(number)) => kind = Some(number),
                (3, Item::Number(number)) => algorithm = Some(number),
                (-1, Item::Number(number)) => curve = Some(number),
                (-2, Item::Bytes(bytes)) => x = Some(bytes),
                (-3, Item::Bytes(bytes)) => y = Some(bytes),
                _ => return None,
            }
        }
        Some(())
    };
    read().ok_or(Error::Form)?;
    match (kind, algorithm, curve, x, y) {
        (Some(1), Some(-8), Some(6), Some(x), None) => {
            VerifyingKey::from_bytes(Algorithm::Ed25519, x).map_err(|_| Error::Key)
        }
        (Some(2), Some(-7), Some(1), Some(x), Some(y)) if x.len() == 32 && y.len() == 32 => {
            VerifyingKey::from_point(&[&[4], x, y].concat()).map_err(|_| Error::Key)
        }
        _ => Err(Error::Key),
    }
}

/// Whether a passkey signed this. Signatures by P-256 come in DER.
#[must_use]
pub fn verifies(key: &VerifyingKey, data: &[u8], client_data: &[u8], signature: &[u8]) -> bool {
    let message = [data, Sha256::of(client_data).as_bytes()].concat();
    let raw = match key.algorithm() {
        Algorithm::Ed25519 => signature.to_vec(),
        Algorithm::P256 => match p256::ecdsa::Signature::from_der(signature) {
            Ok(signature) => signature.to_bytes().to_vec(),
            Err(_) => return false,
        },
    };
    Signature::from_slice(key.algorithm(), &raw)
        .is_ok_and(|signature| key.verify(&message, &signature).is_ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::key::SigningKey;

    /// The data of an authenticator that made a passkey.
    fn data(flags: u8, key: &[u8]) -> Vec<u8> {
        let host = Sha256::of("localhost");
        let fixed = [&host.as_bytes()[..], &[flags], &7u32.to_be_bytes()].concat();
        [&fixed[..], &[0; 16], &3u16.to_be_bytes(), b"abc", key].concat()
    }

    fn ed25519() -> (SigningKey, Vec<u8>) {
        let key = SigningKey::generate(Algorithm::Ed25519, &[1; 32]);
        let x = key.verifying_key().to_bytes();
        let cose = [&[0xa4, 1, 1, 3, 0x27, 0x20, 6, 0x21, 0x58, 32][..], &x].concat();
        (key, cose)
    }

    #[test]
    fn a_new_passkey_is_read_with_what_comes_around_it() {
        let (key, cose) = ed25519();
        let data = data(0x45, &cose);
        let told = Told::read(&data).unwrap();
        assert_eq!((told.present, told.verified, told.counter), (true, true, 7));
        let made = told.made.clone().unwrap();
        assert_eq!((made.id.as_slice(), made.key), (&b"abc"[..], key.verifying_key()));
        let length = u8::try_from(data.len()).unwrap();
        let object =
            [&b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58"[..], &[length], &data].concat();
        assert_eq!(Told::read_attestation(&object).unwrap(), told);
        assert_eq!(Told::read_attestation(&object[..object.len() - 1]), Err(Error::Form));
        let more = [&object[..], &[0]].concat();
        assert_eq!(Told::read_attestation(&more), Err(Error::Form));
    }

    #[test]
    fn a_key_of_p256_is_read_and_its_signatures_in_der_verify() {
        use p256::ecdsa::signature::Signer as _;
        let secret = p256::ecdsa::SigningKey::from_slice(&[7; 32]).unwrap();
        let point = secret.verifying_key().to_sec1_point(false);
        let (x, y) = point.as_bytes()[1..].split_at(32);
        let cose =
            [&[0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 32][..], x, &[0x22, 0x58, 32], y].concat();
        let key = Told::read(&data(0x45, &cose)).unwrap().made.unwrap().key;
        let (data, client) = (b"data".as_slice(), b"{}".as_slice());
        let message = [data, Sha256::of(client).as_bytes()].concat();
        let signature: p256::ecdsa::Signature = secret.sign(&message);
        assert!(verifies(&key, data, client, signature.to_der().as_bytes()));
        assert!(!verifies(&key, data, b"{ }", signature.to_der().as_bytes()));
        assert!(!verifies(&key, data, client, &signature.to_bytes()), "only DER counts");
    }

    #[test]
    fn signatures_by_ed25519_verify_as_they_are() {
        let (key, _) = ed25519();
        let message = [b"data".as_slice(), Sha256::of(b"{}").as_bytes()].concat();
        let signature = key.sign(&message);
        assert!(verifies(&key.verifying_key(), b"data", b"{}", signature.as_bytes()));
        assert!(!verifies(&key.verifying_key(), b"date", b"{}", signature.as_bytes()));
    }

    #[test]
    fn what_a_browser_really_sent_is_read_and_verifies() {
        // Recorded from Chromium with an authenticator of its own.
        let object = "a363666d74646e6f6e656761747453746d74a0686175746844617461588149960de5880e8c68\
            7434170f6476605b8fe4aeb9a28632c7995cf3ba831d9763450000000101020304050607080102030405060708\
            0020da240a973ce15201042300c9d47c18d8e911d8bb574a2d21dfaecb9dcff2558da401010327200621582053\
            ff3c63afd6f1087006632a86a6e65120f30e4686962d5ffe26ed986d976e3a";
        let told = Told::read_attestation(&crate::encode::from_hex(object).unwrap()).unwrap();
        assert_eq!(told.host, Sha256::of("localhost"));
        assert!(told.present && told.verified && told.counter == 1);
        let made = told.made.unwrap();
        let bytes = |text: &str| from_base64url(text).unwrap();
        assert_eq!(made.id, bytes("2iQKlzzhUgEEIwDJ1HwY2OkR2LtXSi0h367Lnc_yVY0"));
        let client = bytes(
            "eyJ0eXBlIjoid2ViYXV0aG4uZ2V0IiwiY2hhbGxlbmdlIjoiRUhDVzRyRkFvcmpJM3ktRm9ILXRmUkFPUzdScWFZT3\
             B5X3U3b3RaSldpRSIsIm9yaWdpbiI6Imh0dHA6Ly9sb2NhbGhvc3Q6NDU5OTIiLCJjcm9zc09yaWdpbiI6ZmFsc2V9",
        );
        let data = bytes("SZYN5YgOjGh0NBcPZHZgW4_krrmihjLHmVzzuoMdl2MFAAAAAg");
        let signature = bytes(
            "syJ8Hzy2Z_cl2d5lycqfhHiNYZosKcjKSpELyXcHiiZ_o1oC-rl37lWiWza_KqC3rqJMyF_WqB8nX8g2G0NQCQ",
        );
        assert!(verifies(&made.key, &data, &client, &signature));
        let said = ClientData::read(&client).unwrap();
        assert_eq!((said.purpose, said.origin.as_str()), (Purpose::Get, "http://localhost:45992"));
        assert_eq!(Told::read(&data).unwrap().counter, 2);
    }

    #[test]
    fn keys_of_other_kinds_and_broken_ones_are_refused() {
        let (_, cose) = ed25519();
        let mut other = cose.clone();
        other[4] = 0x26;
        assert_eq!(Told::read(&data(0x45, &other)), Err(Error::Key), "another algorithm");
        assert_eq!(Told::read(&data(0x45, &cose[..20])), Err(Error::Form));
        assert_eq!(Told::read(&data(0x45, &cose)[..40]), Err(Error::Form));
        assert_eq!(Told::read(b"short"), Err(Error::Form));
        assert_eq!(Told::read(&data(0x05, &[])).unwrap().made, None);
    }

    #[test]
    fn what_the_browser_says_is_read_strictly() {
        let said = br#"{"type":"webauthn.get","challenge":"AQI","origin":"http://localhost:1",
            "crossOrigin":false,"other":1}"#;
        let read = ClientData::read(said).unwrap();
        assert_eq!((read.purpose, read.challenge.as_slice()), (Purpose::Get, &[1, 2][..]));
        assert_eq!((read.origin.as_str(), read.framed), ("http://localhost:1", false));
        for wrong in [
            &br#"{"type":"payment.get","challenge":"AQI","origin":"x"}"#[..],
            br#"{"type":"webauthn.get","challenge":"AQI=","origin":"x"}"#,
            br#"{"type":"webauthn.get","origin":"x"}"#,
            b"",
        ] {
            assert_eq!(ClientData::read(wrong), Err(Error::Form));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_readers(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            // Only that they return.
            drop((Told::read(&bytes), Told::read_attestation(&bytes), ClientData::read(&bytes)));
        }
    }
}

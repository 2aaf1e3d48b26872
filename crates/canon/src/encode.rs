//! Text encodings of bytes, each with exactly one spelling per value.
//!
//! Decoders refuse padding, white space, foreign letters and non-zero trailing bits, so a
//! decoded text always encodes back to itself. Only Crockford ids ignore case.

use std::sync::LazyLock;

use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL_NOPAD, Encoding, HEXLOWER, Specification};

/// Why a text is not an encoding of bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A character or the length does not belong to the encoding.
    #[error("not {encoding}: {reason}")]
    Malformed {
        /// The encoding that was expected.
        encoding: &'static str,
        /// What does not fit.
        reason: String,
    },
    /// The text is longer than this encoding is used for.
    #[error("{encoding} text of {actual} characters is over the limit of {limit}")]
    TooLong {
        /// The encoding that was expected.
        encoding: &'static str,
        /// The limit that was passed.
        limit: usize,
        /// The length of the text.
        actual: usize,
    },
    /// The multibase prefix is missing or unknown.
    #[error("unknown multibase prefix")]
    UnknownBase,
}

/// Base58 costs the square of its length, and nothing longer than a key is spelled in it.
const BASE58_LIMIT: usize = 512;

const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

static BASE32_LOWER: LazyLock<Encoding> = LazyLock::new(|| {
    let mut specification = Specification::new();
    specification.symbols.push_str("abcdefghijklmnopqrstuvwxyz234567");
    specification.encoding().expect("invariant: the RFC 4648 alphabet is a valid specification")
});

fn decode(encoding: &Encoding, name: &'static str, text: &str) -> Result<Vec<u8>, Error> {
    encoding
        .decode(text.as_bytes())
        .map_err(|error| Error::Malformed { encoding: name, reason: error.to_string() })
}

/// Returns lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(bytes)
}

/// Reads lower-case hexadecimal.
pub fn from_hex(text: &str) -> Result<Vec<u8>, Error> {
    decode(&HEXLOWER, "lower-case hex", text)
}

/// Returns lower-case RFC 4648 base32 without padding.
pub fn base32(bytes: &[u8]) -> String {
    BASE32_LOWER.encode(bytes)
}

/// Reads lower-case RFC 4648 base32 without padding.
pub fn from_base32(text: &str) -> Result<Vec<u8>, Error> {
    decode(&BASE32_LOWER, "lower-case base32", text)
}

/// Returns standard base64 with padding.
pub fn base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// Reads standard base64 with padding.
pub fn from_base64(text: &str) -> Result<Vec<u8>, Error> {
    // The decoder takes padded texts one after another as one, which is a second spelling.
    if text.trim_end_matches('=').contains('=') {
        return Err(Error::Malformed {
            encoding: "base64",
            reason: "padding before the end".to_owned(),
        });
    }
    decode(&BASE64, "base64", text)
}

/// Returns URL-safe base64 without padding.
pub fn base64url(bytes: &[u8]) -> String {
    BASE64URL_NOPAD.encode(bytes)
}

/// Reads URL-safe base64 without padding.
pub fn from_base64url(text: &str) -> Result<Vec<u8>, Error> {
    decode(&BASE64URL_NOPAD, "base64url", text)
}

/// Returns base58 in the Bitcoin alphabet.
pub fn base58(bytes: &[u8]) -> String {
    bs58::encode(bytes).into_string()
}

/// Reads base58 in the Bitcoin alphabet, up to 512 characters.
pub fn from_base58(text: &str) -> Result<Vec<u8>, Error> {
    if text.len() > BASE58_LIMIT {
        return Err(Error::TooLong { encoding: "base58", limit: BASE58_LIMIT, actual: text.len() });
    }
    bs58::decode(text)
        .into_vec()
        .map_err(|error| Error::Malformed { encoding: "base58", reason: error.to_string() })
}

/// A base that multibase names with one letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// `f`: lower-case hexadecimal.
    Hex,
    /// `b`: lower-case base32 without padding.
    Base32,
    /// `z`: base58 in the Bitcoin alphabet.
    Base58,
    /// `m`: standard base64 without padding.
    Base64,
    /// `u`: URL-safe base64 without padding.
    Base64Url,
}

impl Base {
    /// Every base that is read and written here.
    pub const ALL: [Self; 5] =
        [Self::Hex, Self::Base32, Self::Base58, Self::Base64, Self::Base64Url];

    /// Returns the letter that names this base.
    pub const fn prefix(self) -> char {
        match self {
            Self::Hex => 'f',
            Self::Base32 => 'b',
            Self::Base58 => 'z',
            Self::Base64 => 'm',
            Self::Base64Url => 'u',
        }
    }
}

/// Returns the multibase text of bytes in the given base.
pub fn multibase(base: Base, bytes: &[u8]) -> String {
    let mut text = String::from(base.prefix());
    text.push_str(&match base {
        Base::Hex => hex(bytes),
        Base::Base32 => base32(bytes),
        Base::Base58 => base58(bytes),
        Base::Base64 => BASE64_NOPAD.encode(bytes),
        Base::Base64Url => base64url(bytes),
    });
    text
}

/// Reads a multibase text and says which base it used.
pub fn from_multibase(text: &str) -> Result<(Base, Vec<u8>), Error> {
    let mut letters = text.chars();
    let prefix = letters.next().ok_or(Error::UnknownBase)?;
    let base =
        Base::ALL.into_iter().find(|base| base.prefix() == prefix).ok_or(Error::UnknownBase)?;
    let rest = letters.as_str();
    let bytes = match base {
        Base::Hex => from_hex(rest),
        Base::Base32 => from_base32(rest),
        Base::Base58 => from_base58(rest),
        Base::Base64 => decode(&BASE64_NOPAD, "unpadded base64", rest),
        Base::Base64Url => from_base64url(rest),
    }?;
    Ok((base, bytes))
}

/// Returns the 26 upper-case Crockford letters of a 128-bit id.
pub fn crockford(id: u128) -> String {
    (0..26)
        .rev()
        .map(|place| {
            let digit = usize::try_from((id >> (5 * place)) & 31)
                .expect("invariant: five bits fit a usize");
            char::from(CROCKFORD[digit])
        })
        .collect()
}

/// Reads the 26 Crockford letters of a 128-bit id in either case.
pub fn from_crockford(text: &str) -> Result<u128, Error> {
    let malformed = |reason: &str| Error::Malformed {
        encoding: "a Crockford base32 id",
        reason: reason.to_owned(),
    };
    if text.len() != 26 {
        return Err(malformed("expected 26 characters"));
    }
    text.bytes().enumerate().try_fold(0_u128, |id, (place, byte)| {
        let digit = (0_u128..)
            .zip(CROCKFORD)
            .find_map(|(digit, letter)| byte.eq_ignore_ascii_case(letter).then_some(digit))
            .ok_or_else(|| malformed("character outside the alphabet"))?;
        if place == 0 && digit > 7 {
            return Err(malformed("more than 128 bits"));
        }
        Ok(id << 5 | digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_4648_values() {
        assert_eq!(base32(b"foobar"), "mzxw6ytboi");
        assert_eq!(base64(b"fooba"), "Zm9vYmE=");
        assert_eq!(base64url(&[0xfb, 0xff]), "-_8");
        assert_eq!(hex(&[0, 0xab]), "00ab");
    }

    #[test]
    fn multibase_values() {
        let text = b"yes mani !";
        let cases = [
            (Base::Hex, "f796573206d616e692021"),
            (Base::Base32, "bpfsxgidnmfxgsibb"),
            (Base::Base58, "z7paNL19xttacUY"),
            (Base::Base64, "meWVzIG1hbmkgIQ"),
            (Base::Base64Url, "ueWVzIG1hbmkgIQ"),
        ];
        for (base, spelled) in cases {
            assert_eq!(multibase(base, text), spelled);
            assert_eq!(from_multibase(spelled), Ok((base, text.to_vec())));
        }
        assert_eq!(from_multibase(""), Err(Error::UnknownBase));
        assert_eq!(from_multibase("é"), Err(Error::UnknownBase));
        assert_eq!(from_multibase("Zabc"), Err(Error::UnknownBase));
    }

    #[test]
    fn second_spellings_are_refused() {
        assert!(from_hex("AB").is_err());
        assert!(from_hex("abc").is_err());
        assert!(from_base32("MZXW6").is_err());
        assert!(from_base32("mzxw6===").is_err());
        assert!(from_base32("mz").is_err(), "trailing bits");
        assert!(from_base64("Zm8").is_err(), "missing padding");
        assert!(from_base64("Zm9=").is_err(), "trailing bits");
        assert!(from_base64("Zm9v\n").is_err());
        assert!(from_base64("Zg==Zg==").is_err(), "padding inside");
        assert!(from_base64("Zm8=Zm9v").is_err(), "padding inside");
        assert!(from_base64url("Zm8=").is_err());
        assert!(from_base64url("+_8").is_err());
        assert!(from_base58("0").is_err());
        assert!(matches!(from_base58(&"z".repeat(513)), Err(Error::TooLong { .. })));
    }

    #[test]
    fn crockford_values() {
        assert_eq!(crockford(0), "0".repeat(26));
        assert_eq!(crockford(u128::MAX), "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
        assert_eq!(from_crockford("7zzzzzzzzzzzzzzzzzzzzzzzzZ"), Ok(u128::MAX));
        assert!(from_crockford("80000000000000000000000000").is_err());
        assert!(from_crockford("0000000000000000000000000").is_err());
        for foreign in ["I", "L", "O", "U", "u", "-", "é"] {
            let text = format!("{foreign:0>26}");
            assert!(from_crockford(&text).is_err(), "{foreign}");
        }
    }
}

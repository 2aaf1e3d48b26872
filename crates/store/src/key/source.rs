//! Where the master key comes from.

use std::fmt;
use std::path::{Path, PathBuf};

use argon2::{Algorithm, Argon2, Params, Version};
use serde::{Deserialize, Serialize};
use yore_canon::encode;
use zeroize::Zeroizing;

use super::{Key, KeyError as Error, random};

type Result<T> = std::result::Result<T, Error>;

/// The person's key to a data directory.
#[derive(Clone)]
pub enum MasterKey {
    /// A passphrase, stretched with Argon2id.
    Passphrase(Zeroizing<String>),
    /// A file outside the data directory that only its owner can read, holding 32 bytes in
    /// hex or base64.
    File(PathBuf),
    /// 32 bytes in hex or base64, as the environment gave them.
    Text(Zeroizing<String>),
}

/// What a master key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyKind {
    /// A passphrase that a person knows.
    Passphrase,
    /// 32 bytes, from a file or the environment.
    Bytes,
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passphrase(_) => f.write_str("Passphrase(..)"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Text(_) => f.write_str("Text(..)"),
        }
    }
}

impl MasterKey {
    /// A passphrase.
    #[must_use]
    pub fn passphrase(text: impl Into<String>) -> Self {
        Self::Passphrase(Zeroizing::new(text.into()))
    }

    /// A key spelt in hex or base64.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Zeroizing::new(text.into()))
    }

    /// Returns what it is.
    #[must_use]
    pub const fn kind(&self) -> KeyKind {
        match self {
            Self::Passphrase(_) => KeyKind::Passphrase,
            Self::File(_) | Self::Text(_) => KeyKind::Bytes,
        }
    }

    /// Makes a new key file that only its owner can read; an existing file is left alone.
    pub fn generate(path: &Path) -> Result<Self> {
        use std::io::Write as _;
        let text = Zeroizing::new(encode::hex(Key::random().bytes()));
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path).map_err(Error::file(path))?;
        file.write_all(text.as_bytes())
            .and_then(|()| file.write_all(b"\n"))
            .and_then(|()| file.sync_all())
            .map_err(Error::file(path))?;
        Ok(Self::File(path.to_owned()))
    }

    /// Returns the key; `stretch` is how a passphrase becomes one, and `data` the directory it
    /// protects, in which its file must not lie.
    pub fn key(&self, data: Option<&Path>, stretch: &Stretch) -> Result<Key> {
        match self {
            Self::Passphrase(passphrase) => stretch.key(passphrase),
            Self::File(path) => read_file(path, data),
            Self::Text(text) => parse(text).ok_or_else(|| {
                Error::Unusable("the master key is not 32 bytes in hex or base64".into())
            }),
        }
    }
}

fn parse(text: &str) -> Option<Key> {
    let text = text.trim();
    let bytes = encode::from_hex(text)
        .or_else(|_| encode::from_base64(text))
        .or_else(|_| encode::from_base64url(text))
        .ok()
        .map(Zeroizing::new)?;
    Key::from_slice(&bytes)
}

fn read_file(path: &Path, data: Option<&Path>) -> Result<Key> {
    let full = path.canonicalize().map_err(Error::file(path))?;
    let inside = |data: &Path| data.canonicalize().is_ok_and(|data| full.starts_with(data));
    if data.is_some_and(inside) {
        return Err(Error::Unusable(format!(
            "the key file {} lies inside the data directory it protects",
            path.display()
        )));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = full.metadata().map_err(Error::file(path))?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(Error::Unusable(format!(
                "the key file {} can be read by others (mode {:o}), make it 600",
                path.display(),
                mode & 0o777
            )));
        }
    }
    let text = Zeroizing::new(std::fs::read_to_string(&full).map_err(Error::file(path))?);
    parse(&text).ok_or_else(|| {
        Error::Unusable(format!(
            "the key file {} does not hold 32 bytes in hex or base64",
            path.display()
        ))
    })
}

/// How a passphrase becomes a key: Argon2id with these costs and this salt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stretch {
    memory_kib: u32,
    passes: u32,
    lanes: u32,
    salt: String,
}

impl Stretch {
    /// Draws a salt.
    #[must_use]
    pub fn new(cost: Cost) -> Self {
        let (memory_kib, passes) = match cost {
            Cost::Usual => (64 * 1024, 3),
            Cost::Least => (64, 1),
        };
        Self { memory_kib, passes, lanes: 1, salt: encode::hex(&random::<16>()) }
    }

    fn key(&self, passphrase: &str) -> Result<Key> {
        let wrong = |what: &dyn fmt::Display| Error::Unusable(format!("the passphrase: {what}"));
        // Bounds what a tampered file can make the process allocate.
        if self.memory_kib > 4 * 1024 * 1024 || self.passes > 100 {
            return Err(wrong(&"the costs of the passphrase are out of range"));
        }
        let params = Params::new(self.memory_kib, self.passes, self.lanes, Some(32))
            .map_err(|error| wrong(&error))?;
        let salt = encode::from_hex(&self.salt).map_err(|error| wrong(&error))?;
        let mut key = Zeroizing::new([0; 32]);
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into(passphrase.as_bytes(), &salt, key.as_mut_slice())
            .map_err(|error| wrong(&error))?;
        Ok(Key::from_bytes(*key))
    }
}

/// What guessing a passphrase costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cost {
    /// 64 MiB and three passes.
    #[default]
    Usual,
    /// Next to nothing, for tests.
    Least,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_in_any_spelling_and_never_printed() {
        let bytes = [9u8; 32];
        for text in [encode::hex(&bytes), encode::base64(&bytes), encode::base64url(&bytes)] {
            assert_eq!(parse(&format!(" {text}\n")), Some(Key::from_bytes(bytes)), "{text}");
        }
        assert_eq!(parse("abcd"), None);
        assert_eq!(format!("{:?}", MasterKey::passphrase("secret")), "Passphrase(..)");
    }

    #[test]
    fn a_passphrase_gives_another_key_under_another_salt() {
        let (one, two) = (Stretch::new(Cost::Least), Stretch::new(Cost::Least));
        assert_eq!(one.key("x").unwrap(), one.key("x").unwrap());
        assert_ne!(one.key("x").unwrap(), one.key("y").unwrap());
        assert_ne!(one.key("x").unwrap(), two.key("x").unwrap());
        let greedy = Stretch { memory_kib: u32::MAX, ..one };
        assert!(greedy.key("x").is_err());
    }
}

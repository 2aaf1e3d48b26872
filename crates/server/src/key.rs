//! Where the master key comes from, and the key that proves one holds it.

use std::path::{Path, PathBuf};

use argon2::{Algorithm, Argon2, Params, Version};
use yore_canon::{encode, hash};
use yore_engine::Secret;
use yore_store_sqlite::MasterKey;
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::place;

const PURPOSE: &[u8] = b"yore local proof v1";
/// What guessing a passphrase from a proof costs: as much as from the data directory itself.
const COST: (u32, u32) = (64 * 1024, 3);

/// Where the master key comes from.
#[derive(Clone, Debug, Default)]
pub enum KeySource {
    /// A file in the platform's configuration directory, made at the first start.
    #[default]
    Default,
    /// This file.
    File(PathBuf),
    /// 32 bytes in hex or base64.
    Text(Secret),
    /// A passphrase.
    Passphrase(Secret),
}

/// A master key and whether it is new.
#[derive(Debug)]
pub struct Obtained {
    /// The key.
    pub master: MasterKey,
    /// The file that was made for it, which the person should know about.
    pub made: Option<PathBuf>,
}

impl KeySource {
    /// Obtains the key to a data directory. Blocks.
    pub fn obtain(&self, data: &Path) -> Result<Obtained> {
        let master = match self {
            Self::File(path) => MasterKey::File(path.clone()),
            Self::Text(text) => MasterKey::text(text.expose()),
            Self::Passphrase(text) if text.expose().is_empty() => {
                return Err(Error::Key("the passphrase is empty".into()));
            }
            Self::Passphrase(text) => MasterKey::passphrase(text.expose()),
            Self::Default => return usual(&place::config()?.join("master.key"), data),
        };
        Ok(Obtained { master, made: None })
    }
}

impl KeySource {
    /// Obtains a key that takes another's place; a key file that is not there is made. Blocks.
    pub(crate) fn obtain_new(&self, data: &Path) -> Result<Obtained> {
        let path = match self {
            Self::Default => place::config()?.join("master.key"),
            Self::File(path) => path.clone(),
            Self::Text(_) | Self::Passphrase(_) => return self.obtain(data),
        };
        if path.exists() {
            return Ok(Obtained { master: MasterKey::File(path), made: None });
        }
        made(path)
    }
}

fn usual(path: &Path, data: &Path) -> Result<Obtained> {
    if path.exists() {
        return Ok(Obtained { master: MasterKey::File(path.to_owned()), made: None });
    }
    if data.join("master.json").exists() {
        return Err(Error::Key(format!(
            "{} is not there, and the data directory {} was made with another key: name its key \
             file or give its passphrase",
            path.display(),
            data.display()
        )));
    }
    made(path.to_owned())
}

fn made(path: PathBuf) -> Result<Obtained> {
    if let Some(parent) = path.parent() {
        place::make(parent)?;
    }
    let master = MasterKey::generate(&path).map_err(yore_store_sqlite::Error::from)?;
    Ok(Obtained { master, made: Some(path) })
}

/// Derives the key with which a process on this machine proves that it holds the master key.
/// Blocks; for a passphrase about as long as opening the directory.
pub fn local(master: &MasterKey, data: &Path) -> Result<Zeroizing<[u8; 32]>> {
    let salt = salt(data)?;
    let key = match master {
        MasterKey::Passphrase(text) => stretched(text, &salt)?,
        MasterKey::Text(text) => parsed(text)?,
        MasterKey::File(path) => {
            let text = std::fs::read_to_string(path).map_err(Error::file(path))?;
            parsed(&Zeroizing::new(text))?
        }
    };
    Ok(Zeroizing::new(hash::hmac_sha256(&key, &[PURPOSE, &salt].concat())))
}

fn parsed(text: &str) -> Result<Zeroizing<Vec<u8>>> {
    let text = text.trim();
    let bytes = encode::from_hex(text)
        .or_else(|_| encode::from_base64(text))
        .or_else(|_| encode::from_base64url(text))
        .map_err(|_| Error::Key("it is not 32 bytes in hex or base64".into()))?;
    Ok(Zeroizing::new(bytes))
}

fn stretched(passphrase: &str, salt: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
    let wrong = |error: argon2::Error| Error::Key(error.to_string());
    let params = Params::new(COST.0, COST.1, 1, Some(32)).map_err(wrong)?;
    let mut key = Zeroizing::new(vec![0; 32]);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(passphrase.as_bytes(), salt, &mut key)
        .map_err(wrong)?;
    Ok(key)
}

/// The name by which the server of a directory takes work among those that share a database.
pub(crate) fn node(data: &Path) -> Result<[u8; 16]> {
    let name = hash::hmac_sha256(&salt(data)?, b"yore node v1");
    Ok(name.first_chunk().copied().expect("invariant: a digest is longer than half of it"))
}

/// The directory's salt for proofs, made by whoever comes first.
fn salt(data: &Path) -> Result<Vec<u8>> {
    let path = data.join("proof.salt");
    if !path.exists() {
        place::make(data)?;
        let mut fresh = [0; 16];
        getrandom::fill(&mut fresh).map_err(|error| Error::Key(error.to_string()))?;
        let text = encode::hex(&fresh);
        // A hard link, unlike a rename, never replaces: of two that come at once one wins.
        let draft = data.join(format!("proof.salt.{}", encode::hex(&fresh[..4])));
        place::write(&draft, text.as_bytes())?;
        let linked = std::fs::hard_link(&draft, &path);
        place::remove(&draft)?;
        match linked {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(Error::file(&path)(error));
            }
            Ok(()) | Err(_) => {}
        }
    }
    let text = std::fs::read_to_string(&path).map_err(Error::file(&path))?;
    encode::from_hex(text.trim()).ok().filter(|salt| salt.len() == 16).ok_or_else(|| {
        Error::Damaged(format!(
            "{} is damaged: remove it, a new one is made at the next start",
            path.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_start_makes_a_private_key_file_and_the_second_finds_it() {
        let place = tempfile::tempdir().unwrap();
        let (path, data) = (place.path().join("config/master.key"), place.path().join("data"));
        let first = usual(&path, &data).unwrap();
        assert_eq!(first.made.as_deref(), Some(&*path));
        assert!(usual(&path, &data).unwrap().made.is_none());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_key_in_anothers_place_is_made_even_where_there_was_one() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("master.json"), "{}").unwrap();
        let path = place.path().join("config/other.key");
        let source = KeySource::File(path.clone());
        assert_eq!(source.obtain_new(place.path()).unwrap().made.as_deref(), Some(&*path));
        assert!(source.obtain_new(place.path()).unwrap().made.is_none(), "it is there now");
    }

    #[test]
    fn no_new_key_is_made_for_a_directory_that_has_one() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("master.json"), "{}").unwrap();
        let path = place.path().join("config/master.key");
        let error = usual(&path, place.path()).unwrap_err().to_string();
        assert!(error.contains("made with another key"), "{error}");
        assert!(!path.exists());
    }

    #[test]
    fn the_same_master_key_gives_the_same_proof_key_and_no_other() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let key = MasterKey::text("11".repeat(32));
        let file = one.path().join("k");
        std::fs::write(&file, "11".repeat(32)).unwrap();
        let mine = local(&key, one.path()).unwrap();
        assert_eq!(mine, local(&MasterKey::File(file), one.path()).unwrap());
        assert_ne!(mine, local(&MasterKey::text("12".repeat(32)), one.path()).unwrap());
        assert_ne!(mine, local(&key, two.path()).unwrap());
        let phrase = MasterKey::passphrase("x");
        assert_eq!(local(&phrase, one.path()).unwrap(), local(&phrase, one.path()).unwrap());
        assert!(local(&MasterKey::text("zz"), one.path()).is_err());
    }
}

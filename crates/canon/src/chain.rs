//! Hash chains: logs in which no line can be changed, dropped or reordered unnoticed.
//!
//! A chain proves order, not completeness: whoever can rewrite the whole log can rebuild it.
//! Signed [`Checkpoint`]s kept elsewhere fix how far it had come.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::did::Did;
use crate::hash::Blake3;
use crate::jcs;
use crate::json::Object;
use crate::key::{self, Signature, SigningKey, VerifyingKey};
use crate::seal::{self, Seal};

const LINK_CONTEXT: &str = "yore chain link v1";
const CHECKPOINT_CONTEXT: &str = "yore chain checkpoint v1";

/// Why a chain or a checkpoint was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An entry's hash is not the one its content and its predecessor give.
    #[error("chain is broken at entry {0}")]
    Broken(usize),
    /// An entry names another predecessor than the one it follows.
    #[error("entry does not follow its predecessor")]
    Order,
    /// A member of an entry is missing or of the wrong type.
    #[error("invalid entry member {0}")]
    Member(&'static str),
    /// The seal of an entry is wrong.
    #[error(transparent)]
    Seal(#[from] seal::Error),
    /// The signature of a checkpoint is wrong.
    #[error(transparent)]
    Signature(#[from] key::Error),
}

/// Returns the hash of an entry that follows `previous`.
pub fn link(previous: Option<&Blake3>, entry: &[u8]) -> Blake3 {
    let mut hasher = Blake3::hasher_for(LINK_CONTEXT);
    // The flag keeps a first entry apart from one that follows the all-zero hash.
    match previous {
        None => hasher.update([0]),
        Some(hash) => hasher.update([1]).update(hash.as_bytes()),
    };
    hasher.update(entry).finish()
}

/// Checks that entries and their hashes form a chain after `previous`; returns the last hash.
pub fn verify_links<E: AsRef<[u8]>>(
    previous: Option<Blake3>,
    entries: impl IntoIterator<Item = (E, Blake3)>,
) -> Result<Option<Blake3>, Error> {
    let mut tip = previous;
    for (index, (entry, hash)) in entries.into_iter().enumerate() {
        if link(tip.as_ref(), entry.as_ref()) != hash {
            return Err(Error::Broken(index));
        }
        tip = Some(hash);
    }
    Ok(tip)
}

/// A signed statement that entry `seq` of a log had this hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The number of the last entry covered.
    pub seq: u64,
    /// The hash of that entry.
    pub hash: Blake3,
    /// The signature over the log's name, the number and the hash.
    pub signature: Signature,
}

impl Checkpoint {
    /// Signs the state of the log named `log`.
    pub fn sign(log: &[u8], seq: u64, hash: Blake3, key: &SigningKey) -> Self {
        let message = checkpoint_message(log, seq, &hash);
        Self { seq, hash, signature: key.sign(message.as_bytes()) }
    }

    /// Checks that this is a checkpoint of the log named `log`.
    pub fn verify(&self, log: &[u8], key: &VerifyingKey) -> Result<(), Error> {
        let message = checkpoint_message(log, self.seq, &self.hash);
        Ok(key.verify(message.as_bytes(), &self.signature)?)
    }
}

fn checkpoint_message(log: &[u8], seq: u64, hash: &Blake3) -> Blake3 {
    // The log's name is hashed first so that no name can run into the number behind it.
    Blake3::hasher_for(CHECKPOINT_CONTEXT)
        .update(Blake3::of(log).as_bytes())
        .update(seq.to_be_bytes())
        .update(hash.as_bytes())
        .finish()
}

/// Returns the hash of a JSON entry that names its predecessor in `prev`: BLAKE3 of its
/// canonical form without `hash`, `signature` and `signer`.
pub fn entry_hash(entry: &Object) -> Blake3 {
    Blake3::of(jcs::canonical_without(entry, &["hash", "signature", "signer"]))
}

/// Chains a JSON entry behind `previous` and, with a key, signs it.
pub fn append(
    entry: &mut Object,
    previous: Option<&Blake3>,
    key: Option<&SigningKey>,
) -> Result<Blake3, Error> {
    entry.insert("prev".to_owned(), previous.map_or(Value::Null, text));
    let hash = entry_hash(entry);
    entry.insert("hash".to_owned(), text(&hash));
    match key {
        Some(key) => {
            let seal = Seal::new(hash, key)?;
            entry.insert("signature".to_owned(), Value::String(seal.signature.to_string()));
            entry.insert("signer".to_owned(), Value::String(seal.signer.to_string()));
        }
        None => {
            entry.shift_remove("signature");
            entry.shift_remove("signer");
        }
    }
    Ok(hash)
}

/// Checks a JSON entry against its predecessor and its own signature; returns its hash and,
/// if it was signed, who signed.
pub fn verify_entry(
    entry: &Object,
    previous: Option<&Blake3>,
) -> Result<(Blake3, Option<Did>), Error> {
    if entry.get("prev") != Some(&previous.map_or(Value::Null, text)) {
        return Err(Error::Order);
    }
    let hash = entry_hash(entry);
    if entry.get("hash") != Some(&text(&hash)) {
        return Err(Error::Member("hash"));
    }
    let signer = match (entry.get("signature"), entry.get("signer")) {
        (None, None) => None,
        (Some(Value::String(signature)), Some(Value::String(signer))) => {
            let seal = Seal {
                content_hash: hash,
                signature: signature.parse()?,
                signer: signer.parse().map_err(seal::Error::from)?,
            };
            seal.verify()?;
            Some(seal.signer)
        }
        (Some(_), _) | (None, Some(_)) => return Err(Error::Member("signature")),
    };
    Ok((hash, signer))
}

fn text(hash: &Blake3) -> Value {
    Value::String(hash.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::key::Algorithm;

    fn key() -> SigningKey {
        SigningKey::generate(Algorithm::Ed25519, &[8; 32])
    }

    fn chain(entries: &[&str]) -> Vec<(String, Blake3)> {
        let mut tip = None;
        entries
            .iter()
            .map(|entry| {
                let hash = link(tip.as_ref(), entry.as_bytes());
                tip = Some(hash);
                ((*entry).to_owned(), hash)
            })
            .collect()
    }

    #[test]
    fn changed_dropped_and_reordered_entries_break_the_chain() {
        let good = chain(&["a", "b", "c", "d"]);
        assert_eq!(verify_links(None, good.clone()), Ok(Some(good[3].1)));
        assert_eq!(verify_links(Some(good[1].1), good[2..].to_vec()), Ok(Some(good[3].1)));

        let mut changed = good.clone();
        changed[1].0 = "x".to_owned();
        assert_eq!(verify_links(None, changed), Err(Error::Broken(1)));
        let mut dropped = good.clone();
        dropped.remove(2);
        assert_eq!(verify_links(None, dropped), Err(Error::Broken(2)));
        let mut swapped = good.clone();
        swapped.swap(0, 1);
        assert_eq!(verify_links(None, swapped), Err(Error::Broken(0)));
        assert_eq!(verify_links(None, good[1..].to_vec()), Err(Error::Broken(0)));
        assert_eq!(verify_links::<&[u8]>(None, []), Ok(None));
    }

    #[test]
    fn a_first_entry_is_not_one_after_zero() {
        let zero = Blake3::from_bytes([0; 32]);
        assert_ne!(link(None, b"a"), link(Some(&zero), b"a"));
        let prefixed = [zero.as_bytes().as_slice(), b"a"].concat();
        assert_ne!(link(None, &prefixed), link(Some(&zero), b"a"));
    }

    #[test]
    fn checkpoints_bind_log_number_and_hash() {
        for algorithm in [Algorithm::Ed25519, Algorithm::P256] {
            let key = SigningKey::generate(algorithm, &[8; 32]);
            let public = key.verifying_key();
            let checkpoint = Checkpoint::sign(b"vault-a", 7, Blake3::of("x"), &key);
            assert_eq!(checkpoint.verify(b"vault-a", &public), Ok(()));
            assert!(checkpoint.verify(b"vault-b", &public).is_err());
            let mut later = checkpoint.clone();
            later.seq = 8;
            assert!(later.verify(b"vault-a", &public).is_err());
            let mut other = checkpoint.clone();
            other.hash = Blake3::of("y");
            assert!(other.verify(b"vault-a", &public).is_err());

            let text = serde_json::to_string(&checkpoint).expect("serialises");
            assert_eq!(serde_json::from_str::<Checkpoint>(&text).ok(), Some(checkpoint));
        }
    }

    #[test]
    fn ump_130_json_entries_chain_signed_or_not() {
        let entry = |n: u64| json!({"seq": n}).as_object().expect("an object").clone();
        let (mut first, mut second) = (entry(1), entry(2));
        let tip = append(&mut first, None, Some(&key())).expect("Ed25519");
        append(&mut second, Some(&tip), None).expect("unsigned");
        let signer = Did::of_key(&key().verifying_key());
        assert_eq!(verify_entry(&first, None), Ok((tip, Some(signer))));
        assert_eq!(verify_entry(&second, Some(&tip)).map(|(_, signer)| signer), Ok(None));
        assert_eq!(verify_entry(&second, None), Err(Error::Order));

        let mut changed = first.clone();
        changed["seq"] = json!(9);
        assert_eq!(verify_entry(&changed, None), Err(Error::Member("hash")));
        let mut stripped = first.clone();
        stripped.shift_remove("signature");
        assert_eq!(verify_entry(&stripped, None), Err(Error::Member("signature")));
    }
}

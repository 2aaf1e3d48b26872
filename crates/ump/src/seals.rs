//! Signatures that are known to be right, so that no record is signed or checked twice.
//!
//! What a signature depends on is the signer and the hash of the record; both together are the
//! key here, as one hash. Nothing else is kept of a record, so nothing has to be forgotten with
//! it: a hash tells nothing of what was erased.

use std::collections::HashMap;
use std::fmt;

use parking_lot::Mutex;
use yore_canon::hash::Blake3;
use yore_canon::key::Signature;

/// How many signatures are remembered at least; twice as many at most.
const MOST: usize = 8192;

/// A bounded memory of right signatures.
pub(crate) struct Seals {
    most: usize,
    known: Mutex<Generations>,
}

/// What was used lately, and what was before. When the first is full it takes the other's place.
#[derive(Default)]
struct Generations {
    young: HashMap<Blake3, Signature>,
    old: HashMap<Blake3, Signature>,
}

impl Seals {
    pub(crate) fn new() -> Self {
        Self::of(MOST)
    }

    fn of(most: usize) -> Self {
        Self { most, known: Mutex::default() }
    }

    /// The signature of a signer over a hash, where it is remembered.
    pub(crate) fn find(&self, signer: &str, hash: &Blake3) -> Option<Signature> {
        let key = key(signer, hash);
        let known = self.known.lock();
        if let Some(signature) = known.young.get(&key) {
            return Some(*signature);
        }
        let signature = *known.old.get(&key)?;
        drop(known);
        self.keep_at(key, signature);
        Some(signature)
    }

    /// Remembers a signature that was just made or checked.
    pub(crate) fn keep(&self, signer: &str, hash: &Blake3, signature: Signature) {
        self.keep_at(key(signer, hash), signature);
    }

    fn keep_at(&self, key: Blake3, signature: Signature) {
        let mut known = self.known.lock();
        if known.young.len() >= self.most && !known.young.contains_key(&key) {
            known.old = std::mem::take(&mut known.young);
        }
        known.young.insert(key, signature);
    }
}

impl fmt::Debug for Seals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Seals").field("most", &self.most).finish_non_exhaustive()
    }
}

fn key(signer: &str, hash: &Blake3) -> Blake3 {
    // No DID holds a line break, so no two pairs are the same text.
    Blake3::of(format!("{signer}\n{hash}"))
}

#[cfg(test)]
mod tests {
    use yore_canon::key::Algorithm;

    use super::*;

    fn signature(byte: u8) -> Signature {
        Signature::from_slice(Algorithm::Ed25519, &[byte; 64]).unwrap()
    }

    #[test]
    fn another_signer_or_another_record_is_not_found() {
        let seals = Seals::new();
        let hash = Blake3::of("a record");
        seals.keep("did:key:one", &hash, signature(1));
        assert_eq!(seals.find("did:key:one", &hash), Some(signature(1)));
        assert_eq!(seals.find("did:key:rotated", &hash), None);
        assert_eq!(seals.find("did:key:one", &Blake3::of("another")), None);
    }

    #[test]
    fn what_was_not_used_for_long_is_forgotten_and_the_rest_stays() {
        let seals = Seals::of(4);
        let hash = |number: u8| Blake3::of([number]);
        for number in 0..100 {
            seals.keep("did:key:one", &hash(number), signature(number));
            assert_eq!(seals.find("did:key:one", &hash(0)), Some(signature(0)), "used at {number}");
            let known = seals.known.lock();
            assert!(known.young.len() <= 4 && known.old.len() <= 4, "at {number}");
        }
        assert_eq!(seals.find("did:key:one", &hash(50)), None);
        assert_eq!(seals.find("did:key:one", &hash(99)), Some(signature(99)));
    }
}

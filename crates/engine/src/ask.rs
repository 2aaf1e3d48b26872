//! Turning questions into vectors, and remembering the last ones.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::Mutex;
use yore_canon::hash::hmac_sha256;
use yore_domain::query::Effort;
use yore_domain::{Result, VersionId};
use yore_embed::{Quantised, Static, Transformer};
use yore_store::Vector;

use crate::engine::{Engine, blocking};

/// How many query vectors are kept.
const KEPT: usize = 512;

/// A question as the indexes understand it.
pub(crate) struct Asked {
    pub(crate) tokens: Vec<u16>,
    pub(crate) statics: Vector,
    pub(crate) dense: Option<Arc<Vector>>,
    pub(crate) took_us: u64,
}

impl Engine {
    /// Embeds a question; the transformer runs beside other work.
    pub(crate) async fn ask(&self, text: &str, effort: Effort) -> Result<Asked> {
        let begun = Instant::now();
        let statics = &self.0.models.statics;
        let tokens = statics.tokens(text);
        let vector = stored(Static::ID.as_str(), statics.embed(&tokens));
        let dense = match effort {
            Effort::Instant => None,
            Effort::Balanced => Some(self.dense(text).await?),
        };
        let took_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        Ok(Asked { tokens, statics: vector, dense, took_us })
    }

    async fn dense(&self, text: &str) -> Result<Arc<Vector>> {
        let key = self.0.questions.key(text);
        if let Some(known) = self.0.questions.get(&key) {
            return Ok(known);
        }
        let (models, text) = (self.0.models, text.to_owned());
        let vector = blocking(move || models.transformer.embed(&text)).await?;
        let vector = Arc::new(stored(Transformer::ID.as_str(), vector));
        self.0.questions.put(key, vector.clone());
        Ok(vector)
    }
}

/// A vector as the store keeps it.
pub(crate) fn stored(model: &str, vector: Quantised) -> Vector {
    Vector { model: model.to_owned(), scale: vector.scale, values: vector.values.into_vec() }
}

/// The vectors of the last questions, by a keyed hash: no text of a question is kept.
#[derive(Default)]
pub(crate) struct Questions {
    key: OnceLock<[u8; 32]>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    tick: u64,
    vectors: HashMap<[u8; 32], (u64, Arc<Vector>)>,
}

impl Questions {
    fn key(&self, text: &str) -> [u8; 32] {
        let key = self.key.get_or_init(|| {
            // Two random ids hold 244 random bits.
            let mut key = [0; 32];
            key[..16].copy_from_slice(&VersionId::random().bytes());
            key[16..].copy_from_slice(&VersionId::random().bytes());
            key
        });
        hmac_sha256(key, text.as_bytes())
    }

    fn get(&self, key: &[u8; 32]) -> Option<Arc<Vector>> {
        let mut kept = self.kept.lock();
        kept.tick += 1;
        let tick = kept.tick;
        let (used, vector) = kept.vectors.get_mut(key)?;
        *used = tick;
        Some(vector.clone())
    }

    fn put(&self, key: [u8; 32], vector: Arc<Vector>) {
        let mut kept = self.kept.lock();
        kept.tick += 1;
        let tick = kept.tick;
        kept.vectors.insert(key, (tick, vector));
        if kept.vectors.len() > KEPT {
            let oldest =
                kept.vectors.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| *key);
            oldest.map(|key| kept.vectors.remove(&key));
        }
    }
}

impl fmt::Debug for Questions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Questions").field("kept", &self.kept.lock().vectors.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector() -> Arc<Vector> {
        Arc::new(Vector { model: "m".into(), scale: 1.0, values: vec![1] })
    }

    #[test]
    fn the_longest_unused_question_is_dropped_first() {
        let questions = Questions::default();
        let key = |number: usize| questions.key(&number.to_string());
        for number in 0..KEPT {
            questions.put(key(number), vector());
        }
        assert!(questions.get(&key(0)).is_some());
        questions.put(key(KEPT), vector());
        assert!(questions.get(&key(0)).is_some(), "it was used last");
        assert!(questions.get(&key(1)).is_none());
        assert!(questions.get(&key(KEPT)).is_some());
    }

    #[test]
    fn keys_do_not_tell_the_question() {
        let (one, other) = (Questions::default(), Questions::default());
        assert_ne!(one.key("a"), other.key("a"));
        assert_ne!(one.key("a"), one.key("b"));
    }
}

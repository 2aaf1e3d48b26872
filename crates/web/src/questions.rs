//! Questions that were put to a browser and not answered yet. Each is answered once, soon, and by
//! the browser that it was put to.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use yore_canon::encode::base64url;
use yore_domain::{Error, Result};

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(300);
/// How many are waited for at once; the oldest are given up for new ones.
const MOST: usize = 4096;

/// What is waited for: by a secret of the browser, what was asked.
#[derive(Debug)]
pub(crate) struct Questions<T>(Mutex<HashMap<String, (Instant, T)>>);

impl<T> Default for Questions<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Questions<T> {
    /// Notes what was asked of the browser with this secret. An earlier question lapses.
    pub(crate) fn put(&self, secret: String, asked: T) {
        let mut open = self.0.lock();
        open.retain(|_, (at, _)| at.elapsed() < PATIENCE);
        if open.len() >= MOST {
            let oldest = open.iter().min_by_key(|(_, (at, _))| *at).map(|(name, _)| name.clone());
            oldest.map(|name| open.remove(&name));
        }
        open.insert(secret, (Instant::now(), asked));
    }

    /// What was asked of the browser with this secret. It is answered now, rightly or not.
    pub(crate) fn take(&self, secret: &str) -> Option<T> {
        let (at, asked) = self.0.lock().remove(secret)?;
        (at.elapsed() < PATIENCE).then_some(asked)
    }
}

/// What nobody can guess: 32 bytes.
pub(crate) fn random() -> Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| Error::internal(error.to_string()))?;
    Ok(bytes)
}

/// The same as a text.
pub(crate) fn secret() -> Result<String> {
    random().map(|bytes| base64url(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_answered_once_and_by_whom_it_was_put_to() {
        let questions = Questions::default();
        questions.put("a".into(), 1);
        questions.put("b".into(), 2);
        assert_eq!(questions.take("c"), None);
        assert_eq!(questions.take("a"), Some(1));
        assert_eq!(questions.take("a"), None);
        questions.put("b".into(), 3);
        assert_eq!(questions.take("b"), Some(3));
    }

    #[test]
    fn there_are_never_too_many() {
        let questions = Questions::default();
        for number in 0..MOST + 10 {
            questions.put(number.to_string(), number);
        }
        assert_eq!(questions.0.lock().len(), MOST);
        assert_eq!(questions.take("0"), None);
        assert_eq!(questions.take("4105"), Some(4105));
    }
}

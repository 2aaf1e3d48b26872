//! What attachments say: text that was read from them later, kept with the message that names them.
//!
//! The message is found by it as by its own words, under its own class, and it goes with the message.

use serde::{Deserialize, Serialize};
use yore_domain::BlobHash;
use yore_domain::conversation::Message;

use crate::search::RowKey;

/// How much of attachments vectors are made of; words are found everywhere.
const LEADING: usize = 8 << 10;

/// The text of one attachment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inside {
    /// Which attachment.
    pub blob: BlobHash,
    /// Its text.
    pub text: String,
}

/// A message whose attachments were not yet read.
#[derive(Clone, Debug, PartialEq)]
pub struct Unread {
    /// Its row.
    pub row: RowKey,
    /// The message.
    pub message: Box<Message>,
}

/// Every word a message is found by.
#[must_use]
pub fn words(said: &str, inside: &[Inside]) -> String {
    let texts = inside.iter().map(|one| one.text.as_str());
    std::iter::once(said).chain(texts).collect::<Vec<_>>().join("\n")
}

/// What vectors of a message are made of: what was said, and how its attachments begin.
#[must_use]
pub fn gist(said: &str, inside: &[Inside]) -> String {
    let mut gist = said.to_owned();
    for one in inside {
        let end = one.text.floor_char_boundary(LEADING / inside.len());
        gist.push('\n');
        gist.push_str(&one.text[..end]);
    }
    gist
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attachments_add_their_words_and_share_the_gist() {
        let inside = |text: &str| Inside { blob: BlobHash::of(b"x"), text: text.into() };
        let two = [inside("ab"), inside(&"ü".repeat(LEADING))];
        assert!(words("said", &two).starts_with("said\nab\nü"));
        let gist = gist("said", &two);
        assert!(gist.starts_with("said\nab\nü") && gist.len() <= LEADING + 10);
        assert_eq!((words("said", &[]), super::gist("said", &[])), ("said".into(), "said".into()));
    }
}

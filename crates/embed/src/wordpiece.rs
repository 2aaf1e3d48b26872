//! Splits text into the tokens of BERT's uncased vocabulary.
//!
//! Text is cleaned, lower-cased and stripped of accents, split at spaces, punctuation and CJK
//! ideographs, and each word is cut greedily into the longest pieces the vocabulary has.
//!
//! Unlike the original, text such as `[SEP]` is never read as a special token: what a user
//! writes must not steer the model.

use std::cell::RefCell;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// The token for a word the vocabulary cannot spell.
pub const UNKNOWN: u16 = 100;
/// The token before a text.
pub const START: u16 = 101;
/// The token after a text.
pub const END: u16 = 102;

/// Words with more characters than this are unknown.
const LONGEST_WORD: usize = 100;

/// A longer part of a text is not remembered.
const REMEMBERED: usize = 32;
/// How many parts of texts a thread remembers before it starts over.
const KEPT: usize = 8192;

thread_local! {
    static RECENT: RefCell<Recent> = RefCell::default();
}

/// The tokens of parts of texts met lately: a language repeats itself. There is one vocabulary,
/// so nothing else need be told apart.
#[derive(Debug, Default)]
struct Recent {
    known: FxHashMap<Box<str>, (u32, u32)>,
    tokens: Vec<u16>,
}

impl Recent {
    /// Adds the tokens of a part that spaces part from the rest.
    fn split(&mut self, part: &str, splitter: &mut Splitter<'_>) {
        if let Some(&(from, to)) = self.known.get(part) {
            splitter.tokens.extend_from_slice(&self.tokens[from as usize..to as usize]);
            return;
        }
        let before = splitter.tokens.len();
        part.chars().for_each(|character| splitter.read(character));
        splitter.end_word();
        if part.len() > REMEMBERED {
            return;
        }
        if self.known.len() >= KEPT {
            *self = Self::default();
        }
        let place = |at: usize| u32::try_from(at).expect("invariant: parts are few and short");
        let from = place(self.tokens.len());
        self.tokens.extend_from_slice(&splitter.tokens[before..]);
        self.known.insert(part.into(), (from, place(self.tokens.len())));
    }
}

/// The tokenizer.
#[derive(Debug)]
pub struct Wordpiece {
    starts: FxHashMap<&'static [u8], u16>,
    continuations: FxHashMap<&'static [u8], u16>,
    longest: usize,
}

impl Wordpiece {
    /// Returns the tokenizer of the built-in models.
    pub fn builtin() -> &'static Self {
        static BUILTIN: OnceLock<Wordpiece> = OnceLock::new();
        BUILTIN.get_or_init(|| Self::from_vocabulary(include_str!("../models/vocab.txt")))
    }

    /// Reads a vocabulary of one piece per line, continuations marked by `##`.
    fn from_vocabulary(vocabulary: &'static str) -> Self {
        let mut wordpiece = Self {
            starts: FxHashMap::with_capacity_and_hasher(1 << 15, Default::default()),
            continuations: FxHashMap::with_capacity_and_hasher(1 << 13, Default::default()),
            longest: 0,
        };
        for (token, piece) in (0u16..).zip(vocabulary.lines()) {
            let (pieces, piece) = match piece.strip_prefix("##") {
                Some(rest) => (&mut wordpiece.continuations, rest),
                None => (&mut wordpiece.starts, piece),
            };
            pieces.insert(piece.as_bytes(), token);
            wordpiece.longest = wordpiece.longest.max(piece.len());
        }
        wordpiece
    }

    /// Splits a text into tokens, without [`START`] and [`END`].
    pub fn tokens(&self, text: &str) -> Vec<u16> {
        self.first_tokens(text, usize::MAX)
    }

    /// Splits a text and stops soon after `limit` tokens, returning at most that many.
    pub fn first_tokens(&self, text: &str, limit: usize) -> Vec<u16> {
        let mut splitter = Splitter {
            wordpiece: self,
            word: String::with_capacity(32),
            tokens: Vec::with_capacity((text.len() / 4 + 2).min(limit)),
        };
        // These always part words, whatever stands around them.
        let parts = text.split([' ', '\n', '\t', '\r']).filter(|part| !part.is_empty());
        RECENT.with_borrow_mut(|recent| {
            for part in parts {
                if splitter.tokens.len() >= limit {
                    break;
                }
                recent.split(part, &mut splitter);
            }
        });
        splitter.tokens.truncate(limit);
        splitter.tokens
    }

    fn add_word(&self, word: &str, tokens: &mut Vec<u16>) {
        // Bytes bound characters, so most words need no count.
        if word.len() > LONGEST_WORD && word.chars().count() > LONGEST_WORD {
            tokens.push(UNKNOWN);
            return;
        }
        let before = tokens.len();
        let mut rest = word.as_bytes();
        let mut pieces = &self.starts;
        while !rest.is_empty() {
            let longest = self.longest.min(rest.len());
            // A piece never ends inside a character: the vocabulary holds whole ones only.
            let found = (1..=longest)
                .rev()
                .find_map(|length| Some((length, *pieces.get(&rest[..length])?)));
            let Some((length, token)) = found else {
                tokens.truncate(before);
                tokens.push(UNKNOWN);
                return;
            };
            tokens.push(token);
            rest = &rest[length..];
            pieces = &self.continuations;
        }
    }
}

#[derive(Debug)]
struct Splitter<'a> {
    wordpiece: &'a Wordpiece,
    word: String,
    tokens: Vec<u16>,
}

impl Splitter<'_> {
    fn read(&mut self, character: char) {
        if character.is_ascii() {
            if !character.is_ascii_control() || matches!(character, '\t' | '\n' | '\r') {
                self.read_cleaned(character.to_ascii_lowercase());
            }
        } else if is_dropped(character) {
            // Dropped before spaces are looked for: a next-line control does not part words.
        } else if is_ideograph(character) {
            self.end_word();
            self.read_decomposed(character);
            self.end_word();
        } else {
            self.read_decomposed(character);
        }
    }

    /// Reads a character without its accents, in lower case.
    fn read_decomposed(&mut self, character: char) {
        for part in std::iter::once(character).nfd() {
            if part.general_category() != GeneralCategory::NonspacingMark {
                for lower in part.to_lowercase() {
                    self.read_cleaned(lower);
                }
            }
        }
    }

    fn read_cleaned(&mut self, character: char) {
        if character.is_whitespace() {
            self.end_word();
        } else if is_punctuation(character) {
            self.end_word();
            self.word.push(character);
            self.end_word();
        } else {
            self.word.push(character);
        }
    }

    fn end_word(&mut self) {
        if !self.word.is_empty() {
            self.wordpiece.add_word(&self.word, &mut self.tokens);
            self.word.clear();
        }
    }
}

/// Control, format and private characters, and the replacement character; unassigned ones stay.
fn is_dropped(character: char) -> bool {
    character == char::REPLACEMENT_CHARACTER
        || matches!(
            character.general_category(),
            GeneralCategory::Control | GeneralCategory::Format | GeneralCategory::PrivateUse
        )
}

fn is_punctuation(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_punctuation();
    }
    character.general_category_group() == GeneralCategoryGroup::Punctuation
}

/// The ideographs BERT sets apart; its own list, which leaves out the later extensions.
fn is_ideograph(character: char) -> bool {
    matches!(u32::from(character),
        0x3400..=0x4DBF
        | 0x4E00..=0x9FFF
        | 0xF900..=0xFAFF
        | 0x2_0000..=0x2_A6DF
        | 0x2_A700..=0x2_B81F
        | 0x2_B920..=0x2_CEAF
        | 0x2_F800..=0x2_FA1F)
}

//! Splits folded text into words, identifiers and, where a script has no spaces, bigrams.

use unicode_normalization::char::is_combining_mark;

use super::fold::fold_into;
use super::language::stop_languages;

/// How a word is made, which decides whether it is stemmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Letters only.
    Letters,
    /// Holds a digit or joins parts: kept as it is.
    Exact,
    /// One or two characters of an unspaced script.
    Gram,
}

/// One word of a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word {
    from: u32,
    to: u32,
    /// The languages that have it as a stop word, one bit each.
    pub(crate) stops: u32,
    pub(crate) shape: Shape,
    /// Whether it adds to the length of the text; repeated readings of the same characters do not.
    pub(crate) counts: bool,
    /// An additional reading that only documents need, since queries ask for the exact one.
    pub(crate) extra: bool,
}

/// The words of a text. What they say stands in one string, so that a long text costs no more
/// allocations than a short one.
#[derive(Debug, Default)]
pub(crate) struct Words {
    folded: String,
    list: Vec<Word>,
}

impl Words {
    pub(crate) fn list(&self) -> &[Word] {
        &self.list
    }

    /// What a word says, folded.
    pub(crate) fn text(&self, word: &Word) -> &str {
        &self.folded[word.from as usize..word.to as usize]
    }

    pub(crate) fn retain(&mut self, keep: impl FnMut(&Word) -> bool) {
        self.list.retain(keep);
    }

    /// Adds what was folded since this place as a word.
    fn push(&mut self, from: usize, shape: Shape, counts: bool, extra: bool) {
        let stops = stop_languages(&self.folded[from..]);
        let place = |at: usize| u32::try_from(at).expect("invariant: a text is below 4 GiB");
        let (from, to) = (place(from), place(self.folded.len()));
        self.list.push(Word { from, to, stops, shape, counts, extra });
    }
}

/// What an English apostrophe leaves behind.
const CONTRACTIONS: [&str; 7] = ["s", "t", "re", "ve", "ll", "d", "m"];

/// Splits a text.
pub(crate) fn split(text: &str) -> Words {
    let mut words = Words {
        folded: String::with_capacity(text.len() + text.len() / 8),
        list: Vec::with_capacity(text.len() / 5),
    };
    for chunk in text.split(char::is_whitespace).filter(|chunk| !chunk.is_empty()) {
        split_chunk(chunk, &mut words);
    }
    words
}

fn split_chunk(chunk: &str, words: &mut Words) {
    let mut parts = 0;
    let mut after_apostrophe = false;
    each_run(chunk, |class, raw| {
        match class {
            Class::Apostrophe => {
                after_apostrophe = parts > 0;
                return;
            }
            Class::Other => {}
            Class::Word => {
                push_humps(raw, words, |words, from| {
                    let text = &words.folded[from..];
                    let left = after_apostrophe && CONTRACTIONS.contains(&text);
                    parts += usize::from(!left);
                    !left
                });
            }
            Class::Unspaced => push_grams(raw, words),
        }
        after_apostrophe = false;
    });
    if parts > 1 {
        let whole = chunk.trim_matches(|c: char| !c.is_alphanumeric());
        let joined = whole.contains(|c: char| c.is_ascii_digit() || matches!(c, '@' | '_'));
        if joined && whole.len() <= 128 {
            let from = words.folded.len();
            fold_into(whole, &mut words.folded);
            words.push(from, Shape::Exact, false, false);
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Word,
    Unspaced,
    Apostrophe,
    Other,
}

fn class_of(letter: char) -> Class {
    match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' => Class::Word,
        '\'' | '\u{2019}' => Class::Apostrophe,
        '\0'..='\x7f' => Class::Other,
        // Thai, Lao, Myanmar, Khmer; Hangul; kana and Han with their extensions; half-width kana.
        '\u{0e00}'..='\u{0eff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}'
        | '\u{1100}'..='\u{11ff}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{3041}'..='\u{30ff}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9f}'
        | '\u{20000}'..='\u{3ffff}'
            if letter.is_alphanumeric() || is_combining_mark(letter) || letter == 'ー' =>
        {
            Class::Unspaced
        }
        other if other.is_alphanumeric() || is_combining_mark(other) => Class::Word,
        _ => Class::Other,
    }
}

/// Hands out the stretches of one class.
fn each_run<'a>(chunk: &'a str, mut take: impl FnMut(Class, &'a str)) {
    let mut start = 0;
    let mut current = None;
    for (at, letter) in chunk.char_indices() {
        let class = class_of(letter);
        if let Some(open) = current
            && open != class
        {
            take(open, &chunk[start..at]);
            start = at;
        }
        current = Some(class);
    }
    if let Some(open) = current {
        take(open, &chunk[start..]);
    }
}

/// Adds a word that is not turned down once it is folded, after the parts of `camelCase`: plain
/// words find identifiers by them.
fn push_humps(raw: &str, words: &mut Words, accept: impl FnOnce(&Words, usize) -> bool) {
    let from = words.folded.len();
    fold_into(raw, &mut words.folded);
    if !accept(words, from) {
        words.folded.truncate(from);
        return;
    }
    let bytes = raw.as_bytes();
    let edge = |at: usize| bytes[at - 1].is_ascii_lowercase() && bytes[at].is_ascii_uppercase();
    if raw.is_ascii() && (1..bytes.len()).any(edge) {
        words.folded.truncate(from);
        let mut start = 0;
        for at in 1..=bytes.len() {
            if at == bytes.len() || edge(at) {
                if at - start >= 3 {
                    let from = words.folded.len();
                    fold_into(&raw[start..at], &mut words.folded);
                    words.push(from, Shape::Letters, false, true);
                }
                start = at;
            }
        }
        let from = words.folded.len();
        fold_into(raw, &mut words.folded);
        words.push_whole(from);
    } else {
        words.push_whole(from);
    }
}

impl Words {
    /// Adds what was folded since this place as a word by itself.
    fn push_whole(&mut self, from: usize) {
        let exact = self.folded[from..].chars().any(char::is_numeric);
        let shape = if exact { Shape::Exact } else { Shape::Letters };
        self.push(from, shape, true, false);
    }
}

fn push_grams(raw: &str, words: &mut Words) {
    let mut text = String::new();
    fold_into(raw, &mut text);
    let letters: Vec<char> = text.chars().collect();
    for &letter in &letters {
        // Single characters answer one-character queries; longer queries ask for bigrams.
        let extra = letters.len() > 1;
        let from = words.folded.len();
        words.folded.push(letter);
        words.push(from, Shape::Gram, !extra, extra);
    }
    for pair in letters.windows(2) {
        let from = words.folded.len();
        words.folded.extend(pair);
        words.push(from, Shape::Gram, true, false);
    }
}

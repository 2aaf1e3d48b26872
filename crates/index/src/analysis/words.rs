//! Splits folded text into words, identifiers and, where a script has no spaces, bigrams.

use unicode_normalization::char::is_combining_mark;

use super::fold::fold;

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
#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) shape: Shape,
    /// Whether it adds to the length of the text; repeated readings of the same characters do not.
    pub(crate) counts: bool,
    /// An additional reading that only documents need, since queries ask for the exact one.
    pub(crate) extra: bool,
}

/// What an English apostrophe leaves behind.
const CONTRACTIONS: [&str; 7] = ["s", "t", "re", "ve", "ll", "d", "m"];

/// Splits a text.
pub(crate) fn split(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    for chunk in text.split(|c: char| c.is_whitespace()).filter(|chunk| !chunk.is_empty()) {
        split_chunk(chunk, &mut words);
    }
    words
}

fn split_chunk(chunk: &str, words: &mut Vec<Word>) {
    let mut parts = 0;
    let mut after_apostrophe = false;
    for run in runs(chunk) {
        match run {
            Run::Apostrophe => {
                after_apostrophe = parts > 0;
                continue;
            }
            Run::Other => {}
            Run::Word(raw) => {
                let text = fold(raw);
                if !(after_apostrophe && CONTRACTIONS.contains(&text.as_str())) {
                    parts += 1;
                    push_humps(raw, words);
                    let shape = if text.chars().any(char::is_numeric) {
                        Shape::Exact
                    } else {
                        Shape::Letters
                    };
                    words.push(Word { text, shape, counts: true, extra: false });
                }
            }
            Run::Unspaced(raw) => push_grams(&fold(raw), words),
        }
        after_apostrophe = false;
    }
    if parts > 1 {
        let whole = chunk.trim_matches(|c: char| !c.is_alphanumeric());
        let joined = whole.contains(|c: char| c.is_ascii_digit() || matches!(c, '@' | '_'));
        if joined && whole.len() <= 128 {
            words.push(Word {
                text: fold(whole),
                shape: Shape::Exact,
                counts: false,
                extra: false,
            });
        }
    }
}

enum Run<'a> {
    Word(&'a str),
    Unspaced(&'a str),
    Apostrophe,
    Other,
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

fn runs(chunk: &str) -> Vec<Run<'_>> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut current = None;
    let close = |class, raw| match class {
        Class::Word => Run::Word(raw),
        Class::Unspaced => Run::Unspaced(raw),
        Class::Apostrophe => Run::Apostrophe,
        Class::Other => Run::Other,
    };
    for (at, letter) in chunk.char_indices() {
        let class = class_of(letter);
        if let Some(open) = current
            && open != class
        {
            found.push(close(open, &chunk[start..at]));
            start = at;
        }
        current = Some(class);
    }
    if let Some(open) = current {
        found.push(close(open, &chunk[start..]));
    }
    found
}

/// Adds the parts of `camelCase`, so that plain words find identifiers.
fn push_humps(raw: &str, words: &mut Vec<Word>) {
    let bytes = raw.as_bytes();
    if !raw.is_ascii()
        || !bytes
            .windows(2)
            .any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
    {
        return;
    }
    let mut start = 0;
    for at in 1..=bytes.len() {
        let edge = at == bytes.len()
            || (bytes[at - 1].is_ascii_lowercase() && bytes[at].is_ascii_uppercase());
        if edge {
            if at - start >= 3 {
                let text = raw[start..at].to_ascii_lowercase();
                words.push(Word { text, shape: Shape::Letters, counts: false, extra: true });
            }
            start = at;
        }
    }
}

fn push_grams(text: &str, words: &mut Vec<Word>) {
    let letters: Vec<char> = text.chars().collect();
    for &letter in &letters {
        // Single characters answer one-character queries; longer queries ask for bigrams.
        let extra = letters.len() > 1;
        words.push(Word { text: letter.to_string(), shape: Shape::Gram, counts: !extra, extra });
    }
    for pair in letters.windows(2) {
        words.push(Word {
            text: pair.iter().collect(),
            shape: Shape::Gram,
            counts: true,
            extra: false,
        });
    }
}

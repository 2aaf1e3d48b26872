//! Takes off what hides words from a reader who is not a machine: letters of other alphabets that
//! look alike, characters that are not seen, digits for letters, and words that are encoded.

use data_encoding::{BASE64, HEXLOWER_PERMISSIVE};

/// Letters of Cyrillic that look like others.
const ALIKE: [(char, char); 14] = [
    ('а', 'a'),
    ('е', 'e'),
    ('о', 'o'),
    ('р', 'p'),
    ('с', 'c'),
    ('у', 'y'),
    ('х', 'x'),
    ('і', 'i'),
    ('ѕ', 's'),
    ('ј', 'j'),
    ('в', 'b'),
    ('к', 'k'),
    ('м', 'm'),
    ('т', 't'),
];
/// Digits that stand for letters.
const DIGITS: [(char, char); 6] =
    [('0', 'o'), ('1', 'i'), ('3', 'e'), ('4', 'a'), ('5', 's'), ('7', 't')];
/// Encoded words shorter than this are anything.
const ENCODED: usize = 24;

/// Whether a text holds characters that nobody sees and that carry words, or that turn the
/// direction of what is seen. Emoji and scripts that need invisible characters need others.
pub(super) fn hides(text: &str) -> bool {
    let mut before = ' ';
    for letter in text.chars() {
        let between_letters = before.is_ascii_alphabetic();
        match letter {
            '\u{202d}' | '\u{202e}' => return true,
            // A flag of a region is a black flag and tags.
            '\u{e0020}'..='\u{e007e}' if before != '\u{1f3f4}' => return true,
            '\u{e0020}'..='\u{e007e}' => continue,
            '\u{200b}' | '\u{2060}' | '\u{ad}' if between_letters => return true,
            _ => {}
        }
        before = letter;
    }
    false
}

/// A text in small letters, as it is seen.
pub(super) fn seen(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}' => {}
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{300}'..='\u{36f}' => {}
            '\u{ff01}'..='\u{ff5e}' => {
                let half = u32::from(letter) - 0xfee0;
                plain.extend(char::from_u32(half).into_iter().flat_map(char::to_lowercase));
            }
            _ => plain.extend(letter.to_lowercase()),
        }
    }
    plain.split_inclusive(|letter: char| !letter.is_alphanumeric()).map(one_alphabet).collect()
}

/// A word that mixes alphabets, in one.
fn one_alphabet(word: &str) -> String {
    let mixed = word.chars().any(|letter| letter.is_ascii_lowercase())
        && word.chars().any(|letter| ALIKE.iter().any(|(from, _)| *from == letter));
    if mixed { mapped(word, &ALIKE) } else { word.to_owned() }
}

/// A text with letters where digits stand for them in the midst of words.
pub(super) fn without_digits(text: &str) -> String {
    let letters = |word: &str| word.chars().any(char::is_alphabetic);
    text.split_inclusive(char::is_whitespace)
        .map(|word| if letters(word) { mapped(word, &DIGITS) } else { word.to_owned() })
        .collect()
}

fn mapped(word: &str, pairs: &[(char, char)]) -> String {
    let one =
        |letter: char| pairs.iter().find(|(from, _)| *from == letter).map_or(letter, |(_, to)| *to);
    word.chars().map(one).collect()
}

/// Whether words are encoded in a text.
pub(super) fn encodes(text: &str) -> bool {
    text.split(|letter: char| !(letter.is_ascii_alphanumeric() || "+/=".contains(letter)))
        // What stands before an equals sign may be a name.
        .flat_map(|word| [word, word.split_once('=').map_or("", |(_, value)| value)])
        .filter(|word| word.len() >= ENCODED)
        .filter_map(|word| {
            let hex = HEXLOWER_PERMISSIVE.decode(word.as_bytes());
            hex.or_else(|_| BASE64.decode(word.as_bytes())).ok()
        })
        .any(|bytes| String::from_utf8(bytes).is_ok_and(|text| is_words(&text)))
}

fn is_words(text: &str) -> bool {
    text.contains(' ') && text.chars().all(|letter| !letter.is_control())
}

//! Folds case, width and accents.

use std::cell::RefCell;

use rustc_hash::FxHashMap;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::language::Script;

/// A longer word is not remembered.
const REMEMBERED: usize = 64;
/// How many words a thread remembers before it starts over.
const KEPT: usize = 8192;

thread_local! {
    /// Words that are not plain, met lately: folding one takes longer than looking it up.
    static KNOWN: RefCell<FxHashMap<Box<str>, Box<str>>> = RefCell::default();
}

/// Appends a text in compatible lower-case form; accents go from scripts where people leave them
/// out.
pub(crate) fn fold_into(text: &str, out: &mut String) {
    if text.is_ascii() {
        let from = out.len();
        out.push_str(text);
        out[from..].make_ascii_lowercase();
        return;
    }
    KNOWN.with_borrow_mut(|known| {
        if let Some(folded) = known.get(text) {
            out.push_str(folded);
            return;
        }
        let from = out.len();
        fold_anew(text, out);
        if text.len() <= REMEMBERED {
            if known.len() >= KEPT {
                known.clear();
            }
            known.insert(text.into(), out[from..].into());
        }
    });
}

fn fold_anew(text: &str, out: &mut String) {
    let mut bare = String::with_capacity(text.len());
    let mut base = Script::Other;
    for letter in text.nfkd().flat_map(char::to_lowercase) {
        if is_combining_mark(letter) {
            // A breve makes й another letter, not an accented one; Indic vowel signs are letters too.
            if matches!(base, Script::Cyrillic | Script::Tamil | Script::Other) {
                bare.push(letter);
            }
            continue;
        }
        base = Script::of_char(letter);
        match letter {
            'ß' => bare.push_str("ss"),
            'æ' => bare.push_str("ae"),
            'œ' => bare.push_str("oe"),
            'ø' => bare.push('o'),
            'đ' | 'ð' => bare.push('d'),
            'ł' => bare.push('l'),
            'ı' => bare.push('i'),
            'ς' => bare.push('σ'),
            other => bare.push(other),
        }
    }
    out.extend(bare.nfc().map(|letter| if letter == 'ё' { 'е' } else { letter }));
}

#[cfg(test)]
mod tests {
    use super::fold_into;

    #[test]
    fn folding_table() {
        for (from, to) in [
            ("Straße", "strasse"),
            ("ÉTÉ", "ete"),
            ("Ｆｕｌｌ", "full"),
            ("Ёжик", "ежик"),
            ("Красный", "красный"),
            ("ﬁne", "fine"),
            ("Łódź", "lodz"),
            ("ハﾛｰ", "ハロー"),
        ] {
            for _ in 0..2 {
                let mut folded = String::from("x");
                fold_into(from, &mut folded);
                assert_eq!(folded, format!("x{to}"));
            }
        }
    }
}

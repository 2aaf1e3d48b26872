//! Folds case, width and accents.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::language::Script;

/// Folds a text to compatible lower-case form; accents go from scripts where people leave them out.
pub(crate) fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
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
    bare.nfc().map(|letter| if letter == 'ё' { 'е' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::fold;

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
            assert_eq!(fold(from), to);
        }
    }
}

//! Stems of words met lately: a language repeats itself, and stemming costs more than looking up.

use std::cell::RefCell;

use rustc_hash::FxHashMap;

use super::Language;

/// How many stems a thread remembers in each language before it starts over.
const KEPT: usize = 8192;

thread_local! {
    static KNOWN: RefCell<[Known; Language::COUNT]> = RefCell::default();
}

type Known = FxHashMap<Box<str>, Box<str>>;

/// Hands out the stem of a folded word.
pub(super) fn of<T>(word: &str, language: Language, take: impl FnOnce(&str) -> T) -> T {
    KNOWN.with_borrow_mut(|known| {
        let known = &mut known[language as usize];
        if let Some(stem) = known.get(word) {
            return take(stem);
        }
        if known.len() >= KEPT {
            known.clear();
        }
        let stem = language.stemmer().stem(word);
        known.insert(word.into(), (&*stem).into());
        take(&stem)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_what_the_stemmer_says() {
        for round in 0..2 {
            for number in 0..KEPT + 10 {
                let word = format!("running{}s", "x".repeat(number % 7)) + &number.to_string();
                for language in [Language::English, Language::German] {
                    let stem = language.stemmer().stem(&word).into_owned();
                    assert_eq!(of(&word, language, str::to_owned), stem, "round {round}");
                }
            }
        }
        KNOWN.with_borrow(|known| assert!(known.iter().all(|known| known.len() <= KEPT)));
    }
}

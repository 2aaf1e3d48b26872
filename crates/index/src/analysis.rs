//! Turns text into terms: folding, word splitting, stemming by language, bigrams for unspaced scripts.
//!
//! A document is stemmed in one language, guessed from its own words (English when nothing tells). A
//! query is too short to guess by, so each of its words becomes a group: its stems in English and in
//! every language that the selected documents use.

mod fold;
mod language;
mod stems;
mod words;

use std::collections::BTreeMap;

pub use language::Language;
use language::{Script, guess, is_stop};
use words::{Shape, Word, Words, split};

/// Longest term kept, in bytes; the rest of a longer word is cut.
const TERM_BYTES: usize = 64;

/// A document's terms with their frequencies.
#[derive(Debug)]
pub struct Analysed {
    /// The terms, each with how often it occurs.
    pub terms: BTreeMap<String, u32>,
    /// How many words count towards the length.
    pub length: u32,
    /// The language it was stemmed in.
    pub language: Language,
}

/// Analyses a document.
#[must_use]
pub fn document(text: &str) -> Analysed {
    let mut terms: BTreeMap<String, u32> = BTreeMap::new();
    let (length, language) = each_term(text, |term| match terms.get_mut(term) {
        Some(count) => *count += 1,
        None => {
            terms.insert(term.to_owned(), 1);
        }
    });
    Analysed { terms, length, language }
}

/// Hands out every term of a document as often as it occurs; returns how many words count towards
/// its length, and the language it was stemmed in.
pub(crate) fn each_term(text: &str, mut take: impl FnMut(&str)) -> (u32, Language) {
    let words = split(text);
    let language = guess(&words).unwrap_or(Language::English);
    let mut length = 0;
    for word in words.list() {
        length += u32::from(word.counts && !is_stop(language, word));
        stemmed(&words, word, language, &mut take);
    }
    (length, language)
}

/// Analyses a query into groups of interchangeable terms, given the languages of the documents.
#[must_use]
pub fn query(text: &str, present: &[Language]) -> Vec<Vec<String>> {
    let mut words = split(text);
    words.retain(|word| !word.extra);
    let spoken = guess(&words).unwrap_or(Language::English);
    let all = words.list();
    let telling: Vec<&Word> = all.iter().filter(|word| !is_stop(spoken, word)).collect();
    // A query of stop words alone still asks for something.
    let kept = if telling.is_empty() { all.iter().collect() } else { telling };
    let mut languages = vec![Language::English, spoken];
    languages.extend_from_slice(present);
    languages.sort_unstable();
    languages.dedup();
    let mut groups: Vec<Vec<String>> = Vec::new();
    for word in kept {
        let mut group: Vec<String> = Vec::new();
        for &language in &languages {
            let term = stemmed(&words, word, language, str::to_owned);
            if !group.contains(&term) {
                group.push(term);
            }
        }
        if !groups.iter().any(|other| other.iter().any(|term| group.contains(term))) {
            groups.push(group);
        }
    }
    groups
}

/// Returns a document's terms with their frequencies and the language they were stemmed in.
#[must_use]
pub fn terms(text: &str) -> (Vec<(String, u32)>, Language) {
    let analysed = document(text);
    (analysed.terms.into_iter().collect(), analysed.language)
}

/// Hands out the term that stands for a word.
fn stemmed<T>(words: &Words, word: &Word, language: Language, take: impl FnOnce(&str) -> T) -> T {
    let text = words.text(word);
    let fits = word.shape == Shape::Letters && Script::of(text) == language.script();
    if fits { stems::of(text, language, |stem| take(cut(stem))) } else { take(cut(text)) }
}

/// The beginning of a term that is kept.
fn cut(term: &str) -> &str {
    if term.len() <= TERM_BYTES { term } else { &term[..term.floor_char_boundary(TERM_BYTES)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(document: &str, question: &str) -> bool {
        let (terms, language) = terms(document);
        let groups = query(question, &[language]);
        groups
            .iter()
            .any(|group| group.iter().any(|term| terms.iter().any(|(have, _)| have == term)))
    }

    #[test]
    fn a_query_finds_a_document_of_its_language() {
        let table = [
            ("Alice was running with her dogs in the park", "runs"),
            ("Die Häuser in der Straße sind alt und nicht teuer", "hauser"),
            ("Die Häuser in der Straße sind alt und nicht teuer", "Haus"),
            ("Elle préférait les chats et ne voulait pas de chiens", "chat"),
            ("Мне нравятся большие собаки и я не люблю кошек", "собака"),
            ("Los niños están en el jardín con los perros", "perro"),
            ("私は東京に住んでいます", "東京"),
            ("ฉันชอบกินข้าวผัด", "ข้าว"),
            ("서울에서 살고 있어요", "서울"),
            ("We install packages with pnpm v1.2.3 only", "pnpm"),
            ("We install packages with pnpm v1.2.3 only", "v1.2.3"),
            ("write to john.doe@example.com", "doe"),
            ("the helper is called parseConfig", "parse the config"),
            ("the helper is called parseConfig", "parseConfig"),
            ("CAFÉ Ｆｕｌｌ width", "cafe"),
            ("CAFÉ Ｆｕｌｌ width", "full"),
        ];
        for (document, question) in table {
            assert!(
                finds(document, question),
                "{question:?} should find {document:?}: {:?}",
                terms(document)
            );
        }
        assert!(!finds("Alice likes tea", "coffee"));
        assert!(!finds("the cat and the dog", "what is the time"));
    }

    #[test]
    fn stop_words_go_from_queries_unless_nothing_is_left() {
        assert_eq!(query("where does Alice live?", &[]), [["alic"], ["live"]]);
        assert_eq!(query("the who", &[]).len(), 2);
        assert!(query("?!", &[]).is_empty());
    }

    #[test]
    fn language_is_told_by_script_and_small_words() {
        let table = [
            ("I have been to the market with my sister", Language::English),
            ("Ich habe mit meiner Schwester den Markt besucht und das war schön", Language::German),
            ("Je suis allé au marché avec ma sœur et les enfants", Language::French),
            ("Fui al mercado con mi hermana y los niños", Language::Spanish),
            ("Я ходил на рынок с сестрой", Language::Russian),
            ("Wow!", Language::English),
        ];
        for (text, language) in table {
            assert_eq!(terms(text).1, language, "{text}");
        }
    }

    #[test]
    fn long_words_are_cut_at_a_character() {
        let word = "é".repeat(100) + &"漢".repeat(3);
        assert!(terms(&word).0.iter().all(|(term, _)| term.len() <= TERM_BYTES));
        let long = "я".repeat(100);
        assert!(terms(&long).0.iter().all(|(term, _)| term.len() <= TERM_BYTES));
    }
}

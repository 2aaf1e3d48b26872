//! The part of a text that answers a question, with the words that do set apart.

/// How many characters a snippet has, and how many of them come before the first hit.
const LENGTH: usize = 260;
const BEFORE: usize = 60;
/// From how many letters on a shared beginning counts as the same word.
const STEM: usize = 4;

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) text: String,
    /// Whether it is a word that was asked for.
    pub(crate) hit: bool,
}

/// Cuts the part out that has the words of the question in it.
pub(crate) fn snippet(text: &str, question: &str) -> Vec<Piece> {
    // A letter alone ("I", "a") stands in every text and says nothing.
    let says =
        |word: &str| word.chars().count() > 1 || !word.contains(|c: char| c.is_ascii_alphabetic());
    let asked = words(question).filter(|(_, word)| says(word));
    let asked: Vec<String> = asked.map(|(_, word)| word.to_lowercase()).collect();
    let hits: Vec<(usize, usize)> = words(text)
        .filter(|(_, word)| {
            let word = word.to_lowercase();
            asked.iter().any(|asked| is_same(asked, &word))
        })
        .map(|(start, word)| (start, start + word.len()))
        .collect();
    let first = hits.first().map_or(0, |(start, _)| *start);
    let start = step_back(text, first, BEFORE);
    let end = text[start..].char_indices().nth(LENGTH).map_or(text.len(), |(at, _)| start + at);
    let mut pieces = Vec::new();
    let mut at = start;
    let mut push = |text: &str, hit| {
        if !text.is_empty() {
            pieces.push(Piece { text: text.to_owned(), hit });
        }
    };
    if start > 0 {
        push("… ", false);
    }
    for (from, to) in hits.into_iter().filter(|(from, to)| *from >= start && *to <= end) {
        push(&text[at..from], false);
        push(&text[from..to], true);
        at = to;
    }
    push(&text[at..end], false);
    if end < text.len() {
        push(" …", false);
    }
    pieces
}

/// The beginning of a text, for lists.
pub(crate) fn beginning(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split(|c: char| !c.is_alphanumeric()).filter_map(move |word| {
        // The pieces lie in order, so each is found behind the one before.
        let start = at;
        let rest = &text[start + word.len()..];
        at = start + word.len() + rest.chars().next().map_or(0, char::len_utf8);
        (!word.is_empty()).then_some((start, word))
    })
}

fn is_same(asked: &str, word: &str) -> bool {
    let stems = |short: &str, long: &str| short.chars().count() >= STEM && long.starts_with(short);
    asked == word || stems(asked, word) || stems(word, asked)
}

/// The place some characters earlier.
fn step_back(text: &str, from: usize, characters: usize) -> usize {
    let back = text[..from].char_indices().rev().take(characters).last();
    match back {
        Some((at, _)) if text[..from].chars().count() > characters => at,
        Some(_) | None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str, question: &str) -> String {
        let pieces = snippet(text, question);
        pieces
            .iter()
            .map(|p| if p.hit { format!("[{}]", p.text) } else { p.text.clone() })
            .collect()
    }

    #[test]
    fn words_that_were_asked_for_are_set_apart() {
        assert_eq!(marked("I am allergic to peanuts.", "peanut"), "I am allergic to [peanuts].");
        assert_eq!(marked("Tea, tea and TEA", "tea"), "[Tea], [tea] and [TEA]");
        assert_eq!(marked("a team", "tea"), "a team", "short words match as a whole");
        assert_eq!(marked("Grüße aus Köln", "köln"), "Grüße aus [Köln]");
        assert_eq!(marked("I own 7 cups", "do I own 7"), "I [own] [7] cups");
        assert_eq!(marked("", "xy"), "");
        assert_eq!(marked("日本語 text", "text"), "日本語 [text]");
    }

    #[test]
    fn long_texts_are_cut_around_the_first_hit() {
        let text = format!("{} needle {}", "é ".repeat(300), "ü ".repeat(300));
        let cut = marked(&text, "needle");
        assert!(cut.starts_with("… ") && cut.ends_with(" …") && cut.contains("[needle]"), "{cut}");
        assert!(cut.chars().count() < LENGTH + 20);
        assert_eq!(beginning("äbc", 2), "äb…");
        assert_eq!(beginning("äb", 2), "äb");
    }
}

//! Where an attachment answers a question better than the message that names it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use yore_domain::BlobHash;
use yore_domain::conversation::Message;
use yore_store::inside::Inside;

/// Bytes of a passage, and how much of them stands before the first word that was asked for.
const LENGTH: usize = 600;
const BEFORE: usize = 120;
/// Places of one word that are looked at.
const PLACES: usize = 100;

/// A part of an attachment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Passage {
    /// The attachment.
    #[schemars(with = "String")]
    pub blob: BlobHash,
    /// Its name.
    pub filename: String,
    /// Its media type.
    pub media_type: String,
    /// The part in which most of the words stand.
    pub text: String,
}

/// The part of an attachment that holds more words of the question than the message does.
pub(crate) fn passage(question: &str, message: &Message, inside: Vec<Inside>) -> Option<Passage> {
    let stems = stems(question);
    let said = held(&folded(&message.text), &stems);
    let read = inside.into_iter().map(|one| {
        let folded = folded(&one.text);
        (held(&folded, &stems), folded, one)
    });
    // Of equal ones the first counts.
    let best = read.reduce(|best, one| if one.0 > best.0 { one } else { best })?;
    let (count, folded, Inside { blob, text }) = best;
    let named = message.attachments.iter().find(|one| one.blob == Some(blob))?;
    (count > said).then(|| Passage {
        blob,
        filename: named.filename.clone(),
        media_type: named.media_type.clone(),
        text: part(&text, &folded, &stems),
    })
}

/// What words of the question begin with: endings differ from text to text.
fn stems(question: &str) -> Vec<String> {
    let words = question.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut stems: Vec<String> = words
        .map(|word| {
            let length = word.chars().count();
            let kept = if length > 5 { length * 3 / 4 } else { length };
            folded(word).chars().take(kept).collect()
        })
        .collect();
    stems.sort();
    stems.dedup();
    stems
}

/// Lower case, character by character, so that places stay where they are.
fn folded(text: &str) -> String {
    text.chars()
        .map(|c| c.to_lowercase().next().filter(|l| l.len_utf8() == c.len_utf8()).unwrap_or(c))
        .collect()
}

fn held(folded: &str, stems: &[String]) -> usize {
    stems.iter().filter(|stem| places(folded, stem).next().is_some()).count()
}

/// Where words begin with this.
fn places<'a>(folded: &'a str, stem: &'a str) -> impl Iterator<Item = usize> + 'a {
    folded
        .match_indices(stem)
        .map(|(place, _)| place)
        .filter(|place| !folded[..*place].chars().next_back().is_some_and(char::is_alphanumeric))
}

/// The part in which the most different words stand.
fn part(text: &str, folded: &str, stems: &[String]) -> String {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for (which, stem) in stems.iter().enumerate() {
        found.extend(places(folded, stem).take(PLACES).map(|place| (place, which)));
    }
    found.sort_unstable();
    let within = |from: usize| {
        let near = found.iter().filter(|(at, _)| (from..from + LENGTH - BEFORE).contains(at));
        near.map(|(_, which)| which).collect::<std::collections::BTreeSet<_>>().len()
    };
    let best = found.iter().map(|(at, _)| (within(*at), std::cmp::Reverse(*at))).max();
    let first = best.map_or(0, |(_, std::cmp::Reverse(at))| at);
    let from = text.floor_char_boundary(first.saturating_sub(BEFORE));
    let to = text.floor_char_boundary(from + LENGTH);
    text[from..to].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_holds_the_words() {
        let text = format!("{}The KESTREL nests here{}", "hay ".repeat(900), " straw".repeat(900));
        let stems = stems("kestrels nesting");
        let part = part(&text, &folded(&text), &stems);
        assert!(part.contains("KESTREL nests") && part.len() <= LENGTH, "{part}");
        assert_eq!(held(&folded("Kestrel"), &stems), 1);
        assert_eq!(held("unrest", &self::stems("rest")), 0, "words, not parts of them");
        assert_eq!(folded("İstanbul ẞ"), folded("İstanbul ẞ"));
        assert_eq!(folded("İÄ").len(), "İÄ".len());
    }
}

//! What changed between two texts, word by word.

/// Beyond so many pairs of words two texts are shown as replaced.
const PAIRS: usize = 1_000_000;

/// What became of a part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Kept,
    Removed,
    Added,
}

/// Part of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) fate: Fate,
    pub(crate) text: String,
}

impl Part {
    pub(crate) fn is_removed(&self) -> bool {
        self.fate == Fate::Removed
    }

    pub(crate) fn is_added(&self) -> bool {
        self.fate == Fate::Added
    }
}

/// Compares two texts by the longest row of words they share.
pub(crate) fn words(before: &str, after: &str) -> Vec<Part> {
    let (old, new) = (cut(before), cut(after));
    let mut parts = Parts::default();
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_mid, new_mid) =
        (&old_rest[..old_rest.len() - tail], &new_rest[..new_rest.len() - tail]);
    parts.push(Fate::Kept, &old[..head]);
    if old_mid.len().saturating_mul(new_mid.len()) > PAIRS {
        parts.push(Fate::Removed, old_mid);
        parts.push(Fate::Added, new_mid);
    } else {
        align(old_mid, new_mid, &mut parts);
    }
    parts.push(Fate::Kept, &old_rest[old_rest.len() - tail..]);
    parts.0
}

fn align(old: &[&str], new: &[&str], parts: &mut Parts) {
    let width = new.len() + 1;
    let mut shared = vec![0_u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            shared[i * width + j] = if old[i] == new[j] {
                shared[(i + 1) * width + j + 1] + 1
            } else {
                shared[(i + 1) * width + j].max(shared[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < old.len() && j < new.len() {
        if old[i] == new[j] {
            parts.push(Fate::Kept, &old[i..=i]);
            (i, j) = (i + 1, j + 1);
        } else if shared[(i + 1) * width + j] >= shared[i * width + j + 1] {
            parts.push(Fate::Removed, &old[i..=i]);
            i += 1;
        } else {
            parts.push(Fate::Added, &new[j..=j]);
            j += 1;
        }
    }
    parts.push(Fate::Removed, &old[i..]);
    parts.push(Fate::Added, &new[j..]);
}

/// Parts of which no two neighbours have the same fate.
#[derive(Default)]
struct Parts(Vec<Part>);

impl Parts {
    fn push(&mut self, fate: Fate, words: &[&str]) {
        if words.is_empty() {
            return;
        }
        match self.0.last_mut() {
            Some(last) if last.fate == fate => last.text.extend(words.iter().copied()),
            Some(_) | None => self.0.push(Part { fate, text: words.concat() }),
        }
    }
}

/// Words with the space behind them.
fn cut(text: &str) -> Vec<&str> {
    text.split_inclusive(char::is_whitespace).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(before: &str, after: &str) -> String {
        let tell = |part: &Part| match part.fate {
            Fate::Kept => part.text.clone(),
            Fate::Removed => format!("[-{}]", part.text),
            Fate::Added => format!("[+{}]", part.text),
        };
        words(before, after).iter().map(tell).collect()
    }

    #[test]
    fn changes_are_told_word_by_word() {
        assert_eq!(told("I like tea", "I like tea"), "I like tea");
        assert_eq!(
            told("I like tea a lot", "I like coffee a lot"),
            "I like [-tea ][+coffee ]a lot"
        );
        assert_eq!(told("", "new"), "[+new]");
        assert_eq!(told("old", ""), "[-old]");
        assert_eq!(told("a b c d", "a c e d"), "a [-b ]c [+e ]d");
    }

    #[test]
    fn both_texts_can_be_read_off_any_comparison() {
        let texts = ["", "a", "a b c", "c b a", "x a y b z c", "a\nb  c "];
        for before in texts {
            for after in texts {
                let parts = words(before, after);
                let read = |gone: Fate| -> String {
                    parts.iter().filter(|p| p.fate != gone).map(|p| p.text.as_str()).collect()
                };
                assert_eq!(read(Fate::Added), before);
                assert_eq!(read(Fate::Removed), after);
            }
        }
    }

    #[test]
    fn texts_that_are_too_long_are_replaced() {
        let long = |word: &str| format!("{word} ").repeat(1001);
        assert_eq!(words(&long("a"), &long("b")).len(), 2);
    }
}

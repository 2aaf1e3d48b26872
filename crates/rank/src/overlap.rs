//! Which texts share most of their words, found without comparing every text with every other.

use std::collections::{BTreeSet, HashMap};

/// The words of a text, lower case, each once: runs of letters, digits and underscores.
#[must_use]
pub fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Two texts that share words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// The place of one, the lower.
    pub one: usize,
    /// The place of the other.
    pub other: usize,
    /// How many of all their words they share, from 0 to 1.
    pub share: f64,
}

/// How much work a search for pairs may be. Thousands of texts made from one template are all
/// alike, and nobody wants to read millions of pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort(usize);

impl Effort {
    /// About a second, and at most a hundred thousand pairs.
    pub const USUAL: Self = Self(20_000_000);
    /// What a pair costs that is found, in comparisons.
    const PAIR: usize = 200;

    /// Whether all of it is spent, so that pairs may be missing.
    #[must_use]
    pub const fn is_spent(self) -> bool {
        self.0 == 0
    }

    fn spend(&mut self, cost: usize) {
        self.0 = self.0.saturating_sub(cost);
    }
}

/// Every pair of word sets whose Jaccard index is at least `least`, which lies above 0, as far as
/// the effort reaches.
///
/// Two sets that share so much must share one of the rarest words of each, so only sets with such
/// a word in common are compared.
pub fn pairs(texts: &[BTreeSet<String>], least: f64, effort: &mut Effort) -> Vec<Pair> {
    let sets = rarest_first(texts);
    let mut holders: HashMap<u32, Vec<usize>> = HashMap::new();
    let mut found = Vec::new();
    for (other, set) in sets.iter().enumerate() {
        let mut near = BTreeSet::new();
        for word in &set[..telling(set.len(), least)] {
            let known = holders.entry(*word).or_default();
            near.extend(known.iter().copied());
            known.push(other);
        }
        effort.spend(near.len());
        for one in near {
            let share = jaccard(&sets[one], set);
            if share >= least {
                effort.spend(Effort::PAIR);
                found.push(Pair { one, other, share });
            }
            if effort.is_spent() {
                return found;
            }
        }
    }
    found
}

/// How many of the rarest words of a set must be looked at to miss no partner.
fn telling(len: usize, least: f64) -> usize {
    // A hair less than needed, so that no rounding error hides a pair that just qualifies.
    let needed = (least * len as f64 - 1e-9).ceil().max(1.0) as usize;
    (len + 1).saturating_sub(needed).min(len)
}

/// The words as numbers, the rarest lowest, each set in order.
fn rarest_first(texts: &[BTreeSet<String>]) -> Vec<Vec<u32>> {
    let mut counts: HashMap<&str, u32> = HashMap::new();
    for word in texts.iter().flatten() {
        *counts.entry(word).or_default() += 1;
    }
    let mut order: Vec<(u32, &str)> = counts.into_iter().map(|(word, n)| (n, word)).collect();
    order.sort_unstable();
    let ranks = order.into_iter().zip(0..).map(|((_, word), rank)| (word, rank));
    let ranks: HashMap<&str, u32> = ranks.collect();
    let numbered = texts.iter().map(|text| {
        let mut set: Vec<u32> =
            text.iter().filter_map(|word| ranks.get(word.as_str()).copied()).collect();
        set.sort_unstable();
        set
    });
    numbered.collect()
}

fn jaccard(one: &[u32], other: &[u32]) -> f64 {
    let (mut a, mut b, mut both) = (0, 0, 0_usize);
    while a < one.len() && b < other.len() {
        match one[a].cmp(&other[b]) {
            std::cmp::Ordering::Less => a += 1,
            std::cmp::Ordering::Greater => b += 1,
            std::cmp::Ordering::Equal => {
                both += 1;
                a += 1;
                b += 1;
            }
        }
    }
    let all = one.len() + other.len() - both;
    if all == 0 { 0.0 } else { both as f64 / all as f64 }
}

/// Words that turn a statement round.
const NEGATIONS: [&str; 8] = ["not", "no", "never", "cannot", "without", "nicht", "kein", "nie"];

/// How two texts that share most of their words stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stance {
    /// They seem to say the same.
    Agree,
    /// One denies what the other says.
    Deny,
    /// They differ in numbers and in nothing else.
    Number,
}

/// Tells how two texts that share most of their words stand to each other.
#[must_use]
pub fn stance(one: &BTreeSet<String>, other: &BTreeSet<String>) -> Stance {
    let only_one: Vec<&String> = one.difference(other).collect();
    let only_other: Vec<&String> = other.difference(one).collect();
    // "don't" falls apart into "don" and "t".
    let denies = |set: &BTreeSet<String>| {
        set.contains("t") || NEGATIONS.iter().any(|word| set.contains(*word))
    };
    let numbers = |words: &[&String]| {
        !words.is_empty() && words.iter().all(|word| word.chars().all(char::is_numeric))
    };
    if denies(one) != denies(other) {
        Stance::Deny
    } else if numbers(&only_one) && numbers(&only_other) {
        Stance::Number
    } else {
        Stance::Agree
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_runs_of_letters_digits_and_underscores() {
        let expected = ["café", "no_sugar", "42", "don", "t"].map(str::to_owned);
        assert_eq!(words("Café, NO_SUGAR: 42! don't café"), BTreeSet::from(expected));
        assert!(words(" ,.- ").is_empty());
    }

    #[test]
    fn one_text_against_another() {
        for (one, other, expected) in [
            ("Anna drinks milk in her tea", "Anna drinks no milk in her tea", Stance::Deny),
            ("they don't open on Sundays", "they do open on Sundays", Stance::Deny),
            ("it opens at 9 on weekdays", "it opens at 10 on weekdays", Stance::Number),
            ("it opens at 9 on weekdays", "it opens at 9 on all weekdays", Stance::Agree),
            ("room 9 is large", "room 9 is very large", Stance::Agree),
            ("no milk in the tea", "no milk in her tea", Stance::Agree),
        ] {
            assert_eq!(stance(&words(one), &words(other)), expected, "{one} / {other}");
        }
    }

    #[test]
    fn what_is_all_alike_costs_no_more_than_the_effort() {
        let texts: Vec<_> = (0..2000).map(|n| words(&format!("a b c d e f {n}"))).collect();
        let mut effort = Effort(50_000);
        let found = pairs(&texts, 0.7, &mut effort);
        assert!(effort.is_spent() && (100..=250).contains(&found.len()), "{}", found.len());
        let mut effort = Effort::USUAL;
        assert_eq!(pairs(&texts[..20], 0.7, &mut effort).len(), 190);
        assert!(!effort.is_spent());
    }

    proptest! {
        #[test]
        fn no_pair_is_missed_and_none_is_invented(
            texts in vec(btree_set("[a-f]", 0..6), 0..24),
            least in prop_oneof![Just(0.7), Just(0.5), Just(1.0), 0.05..1.0_f64],
        ) {
            let mut expected = Vec::new();
            for other in 0..texts.len() {
                for one in 0..other {
                    let both = texts[one].intersection(&texts[other]).count();
                    let all = texts[one].union(&texts[other]).count();
                    if all > 0 && both as f64 / all as f64 >= least {
                        expected.push((one, other));
                    }
                }
            }
            let mut effort = Effort::USUAL;
            let found: Vec<_> =
                pairs(&texts, least, &mut effort).iter().map(|p| (p.one, p.other)).collect();
            prop_assert_eq!(found, expected);
        }
    }
}

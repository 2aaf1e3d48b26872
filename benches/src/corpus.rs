//! Sentences that look like memories, from a seed.
//!
//! Words follow Zipf's law over a generated vocabulary with a layer of real English function
//! words on top, so that postings are as long, and as short, as those of real text.

/// A small generator of random numbers; the same seed gives the same corpus everywhere.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..4 {
            random.next();
        }
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 11) as usize % limit
    }

    /// Between 0 and 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

const VOCABULARY: usize = 40_000;

const COMMON: &[&str] = &[
    "the",
    "to",
    "and",
    "of",
    "in",
    "is",
    "for",
    "on",
    "with",
    "that",
    "at",
    "her",
    "his",
    "was",
    "as",
    "it",
    "from",
    "by",
    "every",
    "after",
    "before",
    "when",
    "about",
    "not",
    "but",
    "they",
    "has",
    "will",
    "likes",
    "wants",
    "said",
    "moved",
    "works",
    "meeting",
    "project",
    "family",
    "doctor",
    "school",
    "coffee",
    "train",
    "garden",
    "monday",
    "friday",
    "winter",
    "summer",
    "birthday",
    "appointment",
    "recipe",
    "invoice",
    "server",
    "release",
    "customer",
    "allergic",
    "prefers",
    "remember",
    "password",
    "holiday",
    "football",
    "guitar",
    "budget",
    "contract",
];

const STARTS: &[&str] = &[
    "b", "br", "c", "ch", "d", "dr", "f", "fl", "g", "gr", "h", "j", "k", "l", "m", "n", "p", "pl",
    "qu", "r", "s", "sh", "st", "t", "tr", "v", "w", "z",
];
const VOWELS: &[&str] = &["a", "e", "i", "o", "u", "ai", "ea", "oo", "ie", "ou"];
const ENDS: &[&str] =
    &["", "n", "r", "l", "t", "s", "ck", "nd", "ng", "m", "st", "rt", "ll", "sh", "x", "p"];

/// Makes memories and questions about them.
#[derive(Debug)]
pub(crate) struct Corpus {
    words: Vec<String>,
    cumulative: Vec<f64>,
    seed: u64,
}

impl Corpus {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut words: Vec<String> = COMMON.iter().map(|word| (*word).to_owned()).collect();
        let mut known: std::collections::HashSet<String> = words.iter().cloned().collect();
        while words.len() < VOCABULARY {
            let syllables = 1 + random.below(3);
            let mut word = String::new();
            for _ in 0..syllables {
                for part in [STARTS, VOWELS, ENDS] {
                    word.push_str(part[random.below(part.len())]);
                }
            }
            if known.insert(word.clone()) {
                words.push(word);
            }
        }
        let mut total = 0.0;
        let cumulative = (1..=VOCABULARY)
            .map(|rank| {
                total += (rank as f64 + 2.7).powf(-1.07);
                total
            })
            .collect();
        Self { words, cumulative, seed }
    }

    fn word(&self, random: &mut Random) -> usize {
        let mark = random.unit() * self.cumulative[VOCABULARY - 1];
        self.cumulative.partition_point(|sum| *sum < mark).min(VOCABULARY - 1)
    }

    /// Returns the text of the memory with this number: 12 to 35 words.
    pub(crate) fn memory(&self, number: usize) -> String {
        self.text(number, 12, 24)
    }

    /// Returns the text of the message with this number: 20 to 220 words, 120 in the mean.
    pub(crate) fn message(&self, number: usize) -> String {
        self.text(number, 20, 201)
    }

    fn text(&self, number: usize, least: usize, spread: usize) -> String {
        let mut random = Random::new(self.seed ^ (number as u64).wrapping_mul(0x5851_f42d));
        let count = least + random.below(spread);
        let words: Vec<&str> =
            (0..count).map(|_| self.words[self.word(&mut random)].as_str()).collect();
        let mut text = words.join(" ");
        text[..1].make_ascii_uppercase();
        text.push('.');
        text
    }

    /// Returns a question of three to six words that a memory among the first `size` answers.
    pub(crate) fn question(&self, size: usize, number: usize) -> String {
        self.about(number, |random| self.memory(random.below(size.max(1))))
    }

    /// The same for the messages.
    pub(crate) fn asked(&self, size: usize, number: usize) -> String {
        self.about(number, |random| self.message(random.below(size.max(1))))
    }

    fn about(&self, number: usize, said: impl Fn(&mut Random) -> String) -> String {
        let mut random = Random::new(self.seed ^ 0xabcd ^ (number as u64) << 20);
        let said = said(&mut random);
        let telling: Vec<&str> = said
            .trim_end_matches('.')
            .split(' ')
            .filter(|word| !COMMON[..28].contains(&word.to_lowercase().as_str()))
            .collect();
        let count = (3 + random.below(4)).min(telling.len());
        let start = random.below(telling.len() - count + 1);
        telling[start..start + count].join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_says_the_same() {
        let (one, two) = (Corpus::new(7), Corpus::new(7));
        for number in [0, 1, 99_999] {
            assert_eq!(one.memory(number), two.memory(number));
            assert_eq!(one.question(1000, number), two.question(1000, number));
        }
        assert_ne!(one.memory(1), one.memory(2));
        assert_ne!(one.memory(1), Corpus::new(8).memory(1));
    }

    #[test]
    fn words_are_few_and_many() {
        let corpus = Corpus::new(7);
        let mut counts = std::collections::HashMap::new();
        for number in 0..2_000 {
            for word in corpus.memory(number).trim_end_matches('.').to_lowercase().split(' ') {
                *counts.entry(word.to_owned()).or_insert(0) += 1;
            }
        }
        let total: usize = counts.values().sum();
        assert!(counts["the"] * 100 > total * 2, "the commonest word is common");
        assert!(counts.values().filter(|count| **count == 1).count() > 2_000, "many are rare");
    }

    #[test]
    fn a_question_asks_for_words_of_a_memory() {
        let corpus = Corpus::new(7);
        for number in 0..50 {
            let question = corpus.question(10, number);
            let answered = (0..10).any(|memory| {
                let text = corpus.memory(memory);
                question.split(' ').all(|word| text.contains(word))
            });
            assert!(answered, "{question}");
        }
    }
}

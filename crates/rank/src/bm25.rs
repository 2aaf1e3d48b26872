//! BM25: what a word found in a text is worth. Every index scores by these functions, wherever
//! its postings lie.

/// How soon more of the same word stops counting.
const K1: f32 = 0.9;
/// How much a longer text must hold of a word to count as much.
const B: f32 = 0.4;

/// The weight of something that `holders` of `total` have; a term's spellings may count a document twice.
#[must_use]
pub fn idf(total: usize, holders: usize) -> f32 {
    let holders = holders.min(total) as f32;
    (1.0 + (total as f32 - holders + 0.5) / (holders + 0.5)).ln()
}

/// The mean length that [`norm`] takes.
#[must_use]
pub fn average(length: u64, texts: usize) -> f32 {
    (length as f32 / texts.max(1) as f32).max(1.0)
}

/// What the length of a text takes from each of its words.
#[must_use]
pub fn norm(length: f32, average: f32) -> f32 {
    K1 * (1.0 - B + B * length / average)
}

/// What a word adds that occurs so often in a text of this norm.
#[inline]
#[must_use]
pub fn gain(idf: f32, frequency: u32, norm: f32) -> f32 {
    let frequency = frequency as f32;
    idf * frequency * (K1 + 1.0) / (frequency + norm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_words_and_short_texts_count_more() {
        assert!(idf(100, 1) > idf(100, 50) && idf(100, 100) > 0.0);
        assert_eq!(idf(3, 9), idf(3, 3), "spellings may count a text twice");
        let mean = average(100, 10);
        let (short, long) = (norm(5.0, mean), norm(50.0, mean));
        assert!(gain(1.0, 1, short) > gain(1.0, 1, long));
        let (one, two, three) = (gain(1.0, 1, short), gain(1.0, 2, short), gain(1.0, 3, short));
        assert!(two > one && three > two && three - two < two - one);
        assert_eq!(average(0, 0), 1.0);
    }
}

//! BM25 over the selected partitions, for documents and for whole sessions.

use yore_rank::bm25::{average, gain, idf, norm};

use crate::analysis::{self, Language};
use crate::codec;
use crate::dictionary::Dictionary;
use crate::document::Meta;
use crate::partition::{NO_SESSION, Partition};
use crate::postings::{List, Walk, frequency_of, length_of, slot_of};
use crate::top::{Hit, Top};

/// Documents accumulated at a time: their scores fit the second-level cache.
const BLOCK: usize = 1 << 16;
/// Terms of a query that are looked up; a longer query loses its tail.
const WIDEST: usize = 128;

/// A query word: its terms (stems by language) and its weight among the selected documents.
#[derive(Debug)]
struct Group {
    terms: Vec<u32>,
    idf: f32,
}

/// A query prepared against the selected partitions.
pub(crate) struct Lexical<'a> {
    parts: &'a [&'a Partition],
    groups: Vec<Group>,
    /// The terms of all groups in order, and a 64-bit sieve of them.
    terms: Vec<u32>,
    sieve: u64,
    mass: f32,
    norms: [f32; 256],
}

impl<'a> Lexical<'a> {
    pub(crate) fn new(
        parts: &'a [&'a Partition],
        dictionary: &Dictionary,
        text: &str,
    ) -> Lexical<'a> {
        let present: Vec<Language> = Language::ALL
            .iter()
            .copied()
            .filter(|&language| parts.iter().any(|part| part.languages[language as usize] > 0))
            .collect();
        let documents: usize = parts.iter().map(|part| part.len()).sum();
        let length: u64 = parts.iter().map(|part| part.total_length).sum();
        let mut terms: Vec<u32> = Vec::new();
        let groups: Vec<Group> = analysis::query(text, &present)
            .iter()
            .map(|group| {
                let room = WIDEST - terms.len();
                let found: Vec<u32> =
                    group.iter().filter_map(|term| dictionary.get(term)).take(room).collect();
                let holders: usize = found
                    .iter()
                    .flat_map(|term| parts.iter().filter_map(move |part| part.lists.get(term)))
                    .map(List::len)
                    .sum();
                terms.extend_from_slice(&found);
                Group { terms: found, idf: idf(documents, holders) }
            })
            .collect();
        let mass = groups.iter().map(|group| group.idf).sum();
        let average = average(length, documents);
        let norms = std::array::from_fn(|code| norm(length_of(code as u8) as f32, average));
        let sieve = terms.iter().fold(0, |sieve, term| sieve | 1 << (term & 63));
        Lexical { parts, groups, terms, sieve, mass, norms }
    }

    /// Returns the best admitted documents.
    pub(crate) fn best(&self, depth: usize, admit: &dyn Fn(u64, &Meta) -> bool) -> Vec<Hit> {
        let mut top = Top::new(self.parts, depth);
        let (mut scores, mut touched): (Vec<f32>, Vec<u32>) = (Vec::new(), Vec::new());
        for (at, part) in self.parts.iter().enumerate() {
            let mut lists: Vec<(f32, Walk<'_>)> = self
                .groups
                .iter()
                .flat_map(|group| group.terms.iter().map(move |term| (group.idf, term)))
                .filter_map(|(idf, term)| part.lists.get(term).map(|list| (idf, list.walk())))
                .collect();
            scores.resize(part.docs.len().min(BLOCK), 0.0);
            let mut base = 0;
            while base < part.docs.len() {
                self.block(at, base, &mut lists, (&mut scores, &mut touched), &mut top, admit);
                base += BLOCK;
            }
        }
        top.finish()
    }

    fn block(
        &self,
        at: usize,
        base: usize,
        lists: &mut [(f32, Walk<'_>)],
        (scores, touched): (&mut [f32], &mut Vec<u32>),
        top: &mut Top<'_>,
        admit: &dyn Fn(u64, &Meta) -> bool,
    ) {
        let part = self.parts[at];
        let end = (base + BLOCK).min(part.docs.len());
        let lengths = &part.lengths[base..end];
        let scores = &mut scores[..end - base];
        touched.clear();
        let bound = u32::try_from(end).expect("invariant: a partition has at most 2^28 slots");
        for (idf, rest) in lists.iter_mut() {
            let idf = *idf;
            rest.below(bound, |entry| {
                let slot = slot_of(entry) as usize - base;
                scores[slot] += self.gain(idf, frequency_of(entry), lengths[slot]);
                touched.push(slot as u32);
            });
        }
        let mut offer = |slot: usize, score: f32| {
            if score >= top.floor() {
                let doc = &part.docs[base + slot];
                if admit(doc.key, &doc.meta) {
                    top.push(Hit { score, part: at as u32, slot: (base + slot) as u32 });
                }
            }
        };
        if touched.len() * 4 < scores.len() {
            for &slot in touched.iter() {
                let slot = slot as usize;
                let score = std::mem::take(&mut scores[slot]);
                if score > 0.0 {
                    offer(slot, score);
                }
            }
        } else {
            for (slot, score) in scores.iter_mut().enumerate() {
                if *score > 0.0 {
                    offer(slot, *score);
                    *score = 0.0;
                }
            }
        }
    }

    /// Returns a document's score and the share of the query's weight it matches.
    pub(crate) fn score(&self, part: &Partition, slot: u32) -> (f32, f32) {
        let doc = &part.docs[slot as usize];
        let mut frequencies = [0u8; WIDEST];
        for (term, frequency) in codec::terms(&doc.blob) {
            if self.sieve >> (term & 63) & 1 == 1
                && let Some(at) = self.terms.iter().position(|&wanted| wanted == term)
            {
                frequencies[at] = frequency as u8;
            }
        }
        let code = part.lengths[slot as usize];
        let (mut score, mut matched, mut at) = (0.0, 0.0, 0);
        for group in &self.groups {
            let before = score;
            for _ in &group.terms {
                if frequencies[at] > 0 {
                    score += self.gain(group.idf, u32::from(frequencies[at]), code);
                }
                at += 1;
            }
            if score > before {
                matched += group.idf;
            }
        }
        (score, if self.mass > 0.0 { matched / self.mass } else { 0.0 })
    }

    /// Scores whole sessions as if each were one text; `marks[part][session]` is the place in the answer, plus one.
    ///
    /// The parts of a session that lie in different classes count as sessions of their own in the averages.
    pub(crate) fn sessions(&self, marks: &[Vec<u32>], lengths: &[u64]) -> Vec<f32> {
        let mut scores = vec![0.0f32; lengths.len()];
        if lengths.is_empty() {
            return scores;
        }
        let total: usize = self.parts.iter().map(|part| part.session_count()).sum();
        let length: u64 = self.parts.iter().map(|part| part.session_length).sum();
        let average = average(length, total);
        let mut frequencies = vec![0u32; lengths.len()];
        let mut seen: Vec<Vec<u32>> =
            self.parts.iter().map(|part| vec![0; part.sessions.len()]).collect();
        for (round, group) in (1u32..).zip(&self.groups) {
            frequencies.fill(0);
            let mut holders = 0usize;
            for (at, part) in self.parts.iter().enumerate() {
                let lists = group.terms.iter().filter_map(|term| part.lists.get(term));
                let (seen, marks) = (&mut seen[at], &marks[at]);
                lists.for_each(|list| {
                    list.each(|entry| {
                        let session = part.session_of[slot_of(entry) as usize];
                        if session == NO_SESSION {
                            return;
                        }
                        let last = &mut seen[session as usize];
                        holders += usize::from(*last != round);
                        *last = round;
                        let mark = marks[session as usize];
                        if mark > 0 {
                            frequencies[mark as usize - 1] += frequency_of(entry);
                        }
                    });
                });
            }
            let weight = idf(total, holders);
            for ((score, &frequency), &length) in scores.iter_mut().zip(&frequencies).zip(lengths) {
                if frequency > 0 {
                    *score += gain(weight, frequency, norm(length as f32, average));
                }
            }
        }
        scores
    }

    #[inline]
    fn gain(&self, idf: f32, frequency: u32, code: u8) -> f32 {
        gain(idf, frequency, self.norms[code as usize])
    }
}

//! When the best that was found is not an answer.
//!
//! Normalised scores always have a best; whether it is any good only absolute signals can tell.

use crate::fuse::{Candidate, Ranked};

/// The absolute signals of a candidate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Cosine of the dense vectors, if there is one.
    pub dense: Option<f32>,
    /// Cosine of the static vectors.
    pub statics: f32,
    /// Share of the query's weight matched by words.
    pub coverage: f32,
    /// Token-level similarity.
    pub soft: f32,
}

impl Evidence {
    pub(crate) fn of(candidate: &Candidate) -> Evidence {
        Evidence {
            dense: candidate.dense,
            statics: candidate.statics,
            coverage: candidate.coverage,
            soft: candidate.soft,
        }
    }
}

/// How many of the best candidates are looked at: a turn may be first because of its neighbours.
const WINDOW: usize = 3;

/// A linear test on absolute signals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cutoff {
    /// Weight of the dense cosine.
    pub dense: f32,
    /// Weight of the static cosine where no dense one is known.
    pub statics: f32,
    /// Weight of the matched share.
    pub coverage: f32,
    /// Weight of the token similarity.
    pub soft: f32,
    /// The sum that makes a candidate relevant.
    pub threshold: f32,
    /// The same for a question that asks whether something is so: it names the very thing it wants, so an
    /// answer that shares only the subject is none.
    pub whether: f32,
}

impl Default for Cutoff {
    fn default() -> Cutoff {
        Cutoff {
            dense: 1.0,
            statics: 1.2,
            coverage: 0.5,
            soft: 0.5,
            threshold: 0.36,
            whether: 0.65,
        }
    }
}

impl Cutoff {
    /// Returns how much speaks for a candidate.
    #[must_use]
    pub fn relevance(&self, evidence: &Evidence) -> f32 {
        let meaning = match evidence.dense {
            Some(dense) => self.dense * dense,
            None => self.statics * evidence.statics,
        };
        meaning + self.coverage * evidence.coverage + self.soft * evidence.soft
    }

    /// Keeps an answer if one of its first three candidates is relevant; otherwise nothing is the answer.
    ///
    /// `whether` says that the question [asks whether](asks_whether) something is so.
    #[must_use]
    pub fn apply(&self, mut ranked: Vec<Ranked>, whether: bool) -> Vec<Ranked> {
        let threshold = if whether { self.whether } else { self.threshold };
        if !ranked.iter().take(WINDOW).any(|one| self.relevance(&one.evidence) >= threshold) {
            ranked.clear();
        }
        ranked
    }
}

/// Tells whether an English question can be answered by yes or no, judging by its first word.
#[must_use]
pub fn asks_whether(question: &str) -> bool {
    let first =
        question.split(|c: char| !c.is_alphanumeric()).find(|word| !word.is_empty()).unwrap_or("");
    let first = first.to_ascii_lowercase();
    const AUXILIARIES: &str =
        " is are was were am do does did has have had can could will would should may might must ";
    !first.is_empty() && AUXILIARIES.contains(&format!(" {first} "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranked(dense: Option<f32>, statics: f32, coverage: f32, soft: f32) -> Vec<Ranked> {
        let evidence = Evidence { dense, statics, coverage, soft };
        vec![Ranked {
            key: 1,
            id: [0; 16],
            candidate: 0,
            score: 1.0,
            evidence,
            signals: crate::Signals::default(),
        }]
    }

    #[test]
    fn only_absolute_signals_decide() {
        let cutoff = Cutoff::default();
        let kept = |ranked: Vec<Ranked>, whether| !cutoff.apply(ranked, whether).is_empty();
        assert!(kept(ranked(Some(0.6), 0.0, 0.0, 0.0), false));
        assert!(!kept(ranked(Some(0.6), 0.0, 0.0, 0.0), true));
        assert!(kept(ranked(Some(0.5), 0.0, 0.5, 0.2), true));
        assert!(!kept(ranked(Some(0.2), 0.0, 0.0, 0.1), false));
        assert!(kept(ranked(None, 0.2, 0.6, 0.3), false));
        assert!(!kept(ranked(None, 0.2, 0.0, 0.0), false));
        assert!(!kept(Vec::new(), false));
    }

    #[test]
    fn yes_no_questions_are_told_by_their_first_word() {
        for (question, expected) in [
            ("Does Bob own a jet?", true),
            ("has Grace climbed it", true),
            ("  \"Is it so?\"", true),
            ("What does Bob own?", false),
            ("Bob", false),
            ("", false),
            ("isotopes", false),
        ] {
            assert_eq!(asks_whether(question), expected, "{question}");
        }
    }
}

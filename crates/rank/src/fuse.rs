//! Fusion by score: words, meaning and tokens, then the conversation around, then priors.

use crate::cutoff::Evidence;
use crate::prior::{Hint, Prior};

/// A document with raw signals, as the index gives them.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The caller's row id.
    pub key: u64,
    /// The stable public id; breaks ties.
    pub id: [u8; 16],
    /// BM25 of the words.
    pub lexical: f32,
    /// Cosine of the dense vectors, if both sides have one.
    pub dense: Option<f32>,
    /// Cosine of the static vectors.
    pub statics: f32,
    /// Token-level similarity, 0 to 1.
    pub soft: f32,
    /// Share of the query's weight matched by words, 0 to 1.
    pub coverage: f32,
    /// BM25 of the session it belongs to; `None` for a document without a session.
    pub session: Option<f32>,
    /// Places in the candidate list of the session neighbours at −2, −1, +1, +2.
    pub neighbours: [Option<u32>; 4],
    /// Whether a list brought it in, rather than a neighbour.
    pub listed: bool,
    /// Its standing apart from the question.
    pub prior: Prior,
}

/// What is known about the question.
#[derive(Clone, Copy, Debug, Default)]
pub struct Query<'a> {
    /// What the caller prefers.
    pub prefer: &'a [Hint],
}

/// How much words, meaning and tokens count; the three add up to one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// Words, relative to the best.
    pub lexical: f32,
    /// Meaning, between the worst and the best listed.
    pub similarity: f32,
    /// Tokens, relative to the best.
    pub soft: f32,
}

/// The constants of the formula.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// For turns of a session, and wherever only static vectors speak for meaning.
    pub turn: Mix,
    /// For facts outside any session that have a dense cosine, which is good at paraphrase.
    pub fact: Mix,
    /// A neighbour's score at one turn's distance; half at two.
    pub neighbours: f32,
    /// The session's own score, relative to the best.
    pub session: f32,
    /// Each additive prior, unless preferred.
    pub prior: f32,
    /// A prior the caller prefers.
    pub preferred: f32,
}

impl Default for Weights {
    fn default() -> Weights {
        Weights {
            turn: Mix { lexical: 0.22, similarity: 0.33, soft: 0.45 },
            fact: Mix { lexical: 0.25, similarity: 0.65, soft: 0.10 },
            neighbours: 0.39,
            session: 0.64,
            prior: 0.02,
            preferred: 1.0,
        }
    }
}

/// The named numbers behind a place in the order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Signals {
    /// Normalised meaning.
    pub similarity: f32,
    /// Normalised words.
    pub lexical: f32,
    /// Normalised tokens.
    pub soft: f32,
    /// What the neighbouring turns added.
    pub neighbours: f32,
    /// Normalised session score.
    pub session: f32,
    /// Freshness.
    pub recency: f32,
    /// Importance.
    pub salience: f32,
    /// Closeness of scope.
    pub scope_match: f32,
    /// Attestation.
    pub provenance: f32,
    /// Multiplier from outcomes.
    pub feedback: f32,
    /// Multiplier from demotion and decay.
    pub weight: f32,
}

impl Signals {
    /// Lists the signals with their names.
    #[must_use]
    pub fn named(&self) -> [(&'static str, f32); 11] {
        [
            ("similarity", self.similarity),
            ("lexical", self.lexical),
            ("soft", self.soft),
            ("neighbours", self.neighbours),
            ("session", self.session),
            ("recency", self.recency),
            ("salience", self.salience),
            ("scope_match", self.scope_match),
            ("provenance", self.provenance),
            ("feedback", self.feedback),
            ("weight", self.weight),
        ]
    }
}

/// A candidate in its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// The caller's row id.
    pub key: u64,
    /// The stable public id.
    pub id: [u8; 16],
    /// Its place in the candidate list.
    pub candidate: usize,
    /// The fused score; comparable within one answer only.
    pub score: f32,
    /// The absolute signals, comparable across answers.
    pub evidence: Evidence,
    /// What made the score.
    pub signals: Signals,
}

/// Orders candidates, best first; equal scores go by id.
#[must_use]
pub fn fuse(candidates: &[Candidate], query: &Query<'_>, weights: &Weights) -> Vec<Ranked> {
    let weights = hinted(*weights, query.prefer);
    let scale = Scale::of(candidates);
    let mut signals: Vec<Signals> =
        candidates.iter().map(|candidate| scale.signals(candidate)).collect();
    let own: Vec<f32> = signals
        .iter()
        .zip(candidates)
        .map(|(signals, candidate)| {
            let fact = candidate.session.is_none() && candidate.dense.is_some();
            let mix = if fact { &weights.fact } else { &weights.turn };
            mix.lexical * signals.lexical
                + mix.similarity * signals.similarity
                + mix.soft * signals.soft
        })
        .collect();
    let score_at = |place: Option<u32>| {
        place.and_then(|place| own.get(place as usize)).copied().unwrap_or(0.0)
    };
    for (signal, candidate) in signals.iter_mut().zip(candidates) {
        let [before2, before, after, after2] = candidate.neighbours.map(score_at);
        signal.neighbours = before + after + (before2 + after2) / 2.0;
    }
    let mut ranked: Vec<Ranked> = candidates
        .iter()
        .zip(signals)
        .zip(&own)
        .enumerate()
        .map(|(at, ((candidate, signals), own))| Ranked {
            key: candidate.key,
            id: candidate.id,
            candidate: at,
            score: in_context(*own, candidate, &signals, &weights)
                * boost(&signals, &weights, query.prefer),
            evidence: Evidence::of(candidate),
            signals,
        })
        .collect();
    ranked.sort_by(|a, b| {
        b.score.total_cmp(&a.score).then_with(|| a.id.cmp(&b.id)).then_with(|| a.key.cmp(&b.key))
    });
    ranked
}

/// Adds what surrounds a turn; the divisor keeps turns and facts comparable in one answer.
fn in_context(own: f32, candidate: &Candidate, signals: &Signals, weights: &Weights) -> f32 {
    if candidate.session.is_none() {
        return own;
    }
    let whole = own + weights.neighbours * signals.neighbours + weights.session * signals.session;
    whole / (1.0 + weights.neighbours + weights.session)
}

/// The extremes that normalise an answer's signals.
struct Scale {
    lexical: f32,
    soft: f32,
    session: f32,
    dense: (f32, f32),
    statics: (f32, f32),
}

impl Scale {
    fn of(candidates: &[Candidate]) -> Scale {
        let listed = || candidates.iter().filter(|candidate| candidate.listed);
        let most = |value: fn(&Candidate) -> f32| candidates.iter().map(value).fold(0.0, f32::max);
        let span = |values: &mut dyn Iterator<Item = f32>| {
            values.fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            })
        };
        Scale {
            lexical: most(|candidate| candidate.lexical),
            soft: most(|candidate| candidate.soft),
            session: most(|candidate| candidate.session.unwrap_or(0.0)),
            dense: span(&mut listed().filter_map(|candidate| candidate.dense)),
            // Static cosines stand in where a dense one is missing, on their own scale.
            statics: span(&mut listed().filter(|c| c.dense.is_none()).map(|c| c.statics)),
        }
    }

    fn signals(&self, candidate: &Candidate) -> Signals {
        let share =
            |value: f32, most: f32| if most > 0.0 { (value / most).clamp(0.0, 1.0) } else { 0.0 };
        let between = |value: f32, (low, high): (f32, f32)| {
            if high > low { ((value - low) / (high - low)).clamp(0.0, 1.0) } else { 0.0 }
        };
        let prior = &candidate.prior;
        Signals {
            similarity: match candidate.dense {
                // A mere neighbour is judged by its surroundings, not by what no list found in it.
                _ if !candidate.listed => 0.0,
                Some(dense) => between(dense, self.dense),
                None => between(candidate.statics, self.statics),
            },
            lexical: share(candidate.lexical, self.lexical),
            soft: share(candidate.soft, self.soft),
            neighbours: 0.0,
            session: share(candidate.session.unwrap_or(0.0), self.session),
            recency: prior.recency,
            salience: prior.salience,
            scope_match: prior.scope_match,
            provenance: prior.provenance,
            feedback: prior.feedback,
            weight: prior.weight,
        }
    }
}

fn hinted(mut weights: Weights, prefer: &[Hint]) -> Weights {
    if prefer.contains(&Hint::Similarity) {
        weights.turn.similarity *= 4.0;
        weights.fact.similarity *= 4.0;
    }
    if prefer.contains(&Hint::Lexical) {
        weights.turn.lexical *= 4.0;
        weights.fact.lexical *= 4.0;
    }
    weights
}

fn boost(signals: &Signals, weights: &Weights, prefer: &[Hint]) -> f32 {
    let weight = |hint| if prefer.contains(&hint) { weights.preferred } else { weights.prior };
    let feedback = if prefer.contains(&Hint::Feedback) {
        signals.feedback * signals.feedback
    } else {
        signals.feedback
    };
    let additive = weight(Hint::Recency) * signals.recency
        + weight(Hint::Salience) * signals.salience
        + weight(Hint::Scope) * signals.scope_match
        + weight(Hint::Provenance) * signals.provenance;
    feedback * signals.weight * (1.0 + additive)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(key: u64, lexical: f32, dense: f32) -> Candidate {
        Candidate {
            key,
            id: [key as u8; 16],
            lexical,
            dense: Some(dense),
            statics: dense,
            soft: 0.0,
            coverage: 0.0,
            session: None,
            neighbours: [None; 4],
            listed: true,
            prior: Prior::default(),
        }
    }

    fn turn(key: u64, lexical: f32, session: f32, neighbours: [Option<u32>; 4]) -> Candidate {
        Candidate {
            session: Some(session),
            neighbours,
            dense: None,
            statics: 0.0,
            ..fact(key, lexical, 0.0)
        }
    }

    fn order(candidates: &[Candidate], prefer: &[Hint]) -> Vec<u64> {
        fuse(candidates, &Query { prefer }, &Weights::default()).iter().map(|one| one.key).collect()
    }

    #[test]
    fn equal_scores_go_by_id_whatever_the_input_order() {
        let list = [fact(3, 1.0, 0.5), fact(1, 1.0, 0.5), fact(2, 1.0, 0.5)];
        assert_eq!(order(&list, &[]), [1, 2, 3]);
        assert!(order(&[], &[]).is_empty());
    }

    #[test]
    fn every_hint_changes_the_order() {
        type Raise = fn(&mut Prior);
        let priors: [(Hint, Raise); 5] = [
            (Hint::Recency, |prior| prior.recency = 1.0),
            (Hint::Salience, |prior| prior.salience = 1.0),
            (Hint::Scope, |prior| prior.scope_match = 1.0),
            (Hint::Provenance, |prior| prior.provenance = 1.0),
            (Hint::Feedback, |prior| prior.feedback = 1.4),
        ];
        for (hint, raise) in priors {
            let mut list = [fact(1, 2.0, 0.9), fact(2, 1.0, 0.72), fact(3, 0.0, 0.3)];
            raise(&mut list[1].prior);
            assert_eq!(order(&list, &[])[0], 1, "{hint:?} unasked");
            assert_eq!(order(&list, &[hint])[0], 2, "{hint:?} asked");
        }
        let list = [fact(1, 10.0, 0.4), fact(2, 5.0, 0.6), fact(3, 0.0, 0.1)];
        assert_eq!(order(&list, &[Hint::Lexical])[0], 1);
        assert_eq!(order(&list, &[Hint::Similarity])[0], 2);
    }

    #[test]
    fn demotion_and_bad_outcomes_lower_a_memory() {
        let mut list = [fact(1, 2.0, 0.9), fact(2, 1.5, 0.8), fact(3, 0.0, 0.1)];
        list[0].prior.weight = crate::DEMOTION;
        assert_eq!(order(&list, &[])[0], 2);
        list[0].prior.weight = 1.0;
        list[0].prior.feedback = 0.4;
        assert_eq!(order(&list, &[])[0], 2);
    }

    #[test]
    fn a_turn_between_relevant_turns_rises() {
        let list = [
            turn(1, 4.0, 1.0, [None, None, Some(1), Some(2)]),
            turn(2, 0.0, 1.0, [None, Some(0), Some(2), None]),
            turn(3, 4.0, 1.0, [Some(0), Some(1), None, None]),
            turn(4, 0.5, 0.0, [None; 4]),
        ];
        let ranked = fuse(&list, &Query::default(), &Weights::default());
        let place = |key| ranked.iter().position(|one| one.key == key);
        assert!(place(2) < place(4));
        assert!(ranked.iter().all(|one| one.score.is_finite()));
    }

    #[test]
    fn a_session_lifts_its_turns_but_not_above_an_equal_fact() {
        let list = [
            turn(1, 4.0, 2.0, [None; 4]),
            turn(2, 4.0, 0.5, [None; 4]),
            fact(3, 4.0, 0.9),
            fact(4, 0.0, 0.1),
        ];
        let keys = order(&list, &[]);
        assert!(keys.iter().position(|&key| key == 1) < keys.iter().position(|&key| key == 2));
        assert_eq!(keys[0], 3);
    }

    #[test]
    fn a_neighbour_out_of_range_is_ignored() {
        assert_eq!(order(&[turn(1, 1.0, 0.0, [Some(9), None, None, None])], &[]), [1]);
    }
}

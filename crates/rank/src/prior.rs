//! What is known about a memory before the question is asked: age, salience, use, scope, source.

/// Factor on a memory that was demoted instead of forgotten.
pub const DEMOTION: f32 = 0.25;

/// What the caller prefers among relevant memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Hint {
    /// Newer first.
    Recency,
    /// More important first.
    Salience,
    /// Closest in meaning first.
    Similarity,
    /// Same words first.
    Lexical,
    /// Closest scope first.
    Scope,
    /// Better attested first.
    Provenance,
    /// What proved useful first.
    Feedback,
}

/// A candidate's standing apart from the question; every part lies in 0..=1 unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prior {
    /// 1 for now, halving with age; see [`recency`].
    pub recency: f32,
    /// How important it was said to be.
    pub salience: f32,
    /// How closely its scope matches; see [`scope_match`].
    pub scope_match: f32,
    /// How well attested it is.
    pub provenance: f32,
    /// Multiplier from outcomes, around 1; see [`Feedback::multiplier`].
    pub feedback: f32,
    /// Multiplier for demotion and decay, at most 1.
    pub weight: f32,
}

impl Default for Prior {
    fn default() -> Prior {
        Prior {
            recency: 0.0,
            salience: 0.0,
            scope_match: 0.0,
            provenance: 0.0,
            feedback: 1.0,
            weight: 1.0,
        }
    }
}

/// Returns exp(-ln 2 · age / half-life): 1 when fresh, ½ after one half-life. A future time counts as now.
#[must_use]
pub fn recency(age_seconds: f64, half_life_seconds: f64) -> f32 {
    decay(age_seconds, half_life_seconds)
}

/// Returns what is left of a strength after the given age; an infinite or non-positive half-life never decays.
#[must_use]
pub fn decay(age_seconds: f64, half_life_seconds: f64) -> f32 {
    if !(half_life_seconds.is_finite() && half_life_seconds > 0.0) {
        return 1.0;
    }
    (-std::f64::consts::LN_2 * age_seconds.max(0.0) / half_life_seconds).exp() as f32
}

/// How often using a memory ended one way or another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Feedback {
    /// The agent acted on it.
    pub followed: u32,
    /// The person decided otherwise.
    pub overridden: u32,
    /// It was shown and not used.
    pub ignored: u32,
    /// It turned out to be wrong.
    pub contradicted: u32,
}

impl Feedback {
    /// Returns the multiplier these outcomes earn, from 0.25 (always contradicted) to 1.5 (always followed).
    ///
    /// A prior of four neutral outcomes keeps a single report from swinging the order.
    #[must_use]
    pub fn multiplier(self) -> f32 {
        let [followed, overridden, ignored, contradicted] =
            [self.followed, self.overridden, self.ignored, self.contradicted]
                .map(|count| count as f32);
        let total = followed + overridden + ignored + contradicted + 4.0;
        let balance =
            (followed * 0.5 - overridden * 0.5 - ignored * 0.1 - contradicted * 0.75) / total;
        (1.0 + balance).clamp(0.25, 1.5)
    }
}

/// Returns the share of the asked scope levels that a memory matches.
///
/// Levels are compared in order (user, agent, session, …). A level not asked for says nothing; one the memory
/// leaves open matches half, since it holds for all.
#[must_use]
pub fn scope_match(asked: &[Option<&str>], held: &[Option<&str>]) -> f32 {
    let mut levels = 0.0;
    let mut matched = 0.0;
    for (at, asked) in asked.iter().enumerate() {
        let Some(asked) = asked else { continue };
        levels += 1.0;
        match held.get(at).copied().flatten() {
            Some(held) if held == *asked => matched += 1.0,
            Some(_) => {}
            None => matched += 0.5,
        }
    }
    if levels > 0.0 { matched / levels } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decay_halves_and_never_grows() {
        assert_eq!(decay(0.0, 10.0), 1.0);
        assert!((decay(10.0, 10.0) - 0.5).abs() < 1e-6);
        assert!((decay(30.0, 10.0) - 0.125).abs() < 1e-6);
        assert_eq!(decay(-5.0, 10.0), 1.0);
        assert_eq!(decay(1e9, f64::INFINITY), 1.0);
        assert_eq!(decay(1e9, 0.0), 1.0);
    }

    #[test]
    fn feedback_orders_outcomes() {
        let of = |followed, overridden, ignored, contradicted| {
            Feedback { followed, overridden, ignored, contradicted }.multiplier()
        };
        assert_eq!(of(0, 0, 0, 0), 1.0);
        assert!(of(5, 0, 0, 0) > of(1, 0, 0, 0));
        assert!(of(1, 0, 0, 0) > 1.0);
        assert!(of(0, 0, 3, 0) < 1.0);
        assert!(of(0, 3, 0, 0) < of(0, 0, 3, 0));
        assert!(of(0, 0, 0, 3) < of(0, 3, 0, 0));
        assert!(of(0, 0, 0, 1_000_000) >= 0.25 && of(1_000_000, 0, 0, 0) <= 1.5);
    }

    #[test]
    fn scope_levels_are_counted_as_asked() {
        let asked = [Some("alice"), None, Some("s1")];
        assert_eq!(scope_match(&asked, &[Some("alice"), Some("x"), Some("s1")]), 1.0);
        assert_eq!(scope_match(&asked, &[Some("alice"), None, Some("s2")]), 0.5);
        assert_eq!(scope_match(&asked, &[Some("alice")]), 0.75);
        assert_eq!(scope_match(&[], &[Some("alice")]), 1.0);
    }
}

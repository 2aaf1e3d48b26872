//! From a candidate's standing to the priors that ranking knows.

use yore_domain::Timestamp;
use yore_domain::query::{Hint, Recall};
use yore_rank::{DEMOTION, Feedback, Prior, decay, recency, scope_match};
use yore_store::{Candidate, Standing};

const DAY: f64 = 86_400.0;
/// In how many days freshness halves.
const FRESH_DAYS: f64 = 30.0;
/// What counts where a producer said nothing.
const UNSTATED: f32 = 0.5;

/// Says how a candidate stands apart from the question.
pub(crate) fn prior(candidate: &Candidate, recall: &Recall, now: Timestamp) -> Prior {
    let Standing {
        created,
        confirmed,
        half_life_days,
        salience,
        confidence: _,
        evidence: _,
        feedback,
        demoted,
        session,
    } = &candidate.standing;
    let age = |since: i64| seconds(since, now);
    let demotion = if *demoted { DEMOTION } else { 1.0 };
    let class = &candidate.class;
    let near = &recall.near;
    let asked = [&near.user, &near.project, &near.agent, &near.session].map(Option::as_deref);
    let held = [
        class.user.as_deref(),
        class.project.as_deref(),
        class.agent.as_deref(),
        session.as_deref(),
    ];
    Prior {
        recency: recency(age(*created), FRESH_DAYS * DAY),
        salience: salience.unwrap_or(UNSTATED),
        scope_match: scope_match(&asked, &held),
        provenance: attested(&candidate.standing, &recall.prefer),
        feedback: Feedback {
            followed: feedback.followed,
            overridden: feedback.overridden,
            ignored: feedback.ignored,
            contradicted: feedback.contradicted,
        }
        .multiplier(),
        weight: demotion * decay(age(*confirmed), f64::from(*half_life_days) * DAY),
    }
}

/// How well attested it is: how sure its producer was and how much it rests on. Who prefers
/// one of the two is ranked by that one alone.
fn attested(standing: &Standing, prefer: &[Hint]) -> f32 {
    let sure = standing.confidence.unwrap_or(UNSTATED);
    let backed = 1.0 - 0.5f32.powi(i32::from(standing.evidence));
    match (prefer.contains(&Hint::Confidence), prefer.contains(&Hint::Provenance)) {
        (true, false) => sure,
        (false, true) => backed,
        (true, true) | (false, false) => f32::midpoint(sure, backed),
    }
}

/// The caller's preferences as ranking knows them.
pub(crate) fn hints(prefer: &[Hint]) -> Vec<yore_rank::Hint> {
    prefer
        .iter()
        .map(|hint| match hint {
            Hint::Recency => yore_rank::Hint::Recency,
            Hint::Salience => yore_rank::Hint::Salience,
            Hint::Confidence | Hint::Provenance => yore_rank::Hint::Provenance,
            Hint::ScopeMatch => yore_rank::Hint::Scope,
            Hint::Similarity => yore_rank::Hint::Similarity,
        })
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "seconds are for decay curves")]
fn seconds(since: i64, now: Timestamp) -> f64 {
    now.micros().saturating_sub(since) as f64 / 1e6
}

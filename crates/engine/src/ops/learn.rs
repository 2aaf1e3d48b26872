//! Learning from decisions: how often its like was decided the same, and the rule that follows.
//!
//! Every decision of a person is counted for its cluster, also while learning is off; only then
//! can no decision against be missed. A rule is made, and decides, only while learning is on.

use serde_json::Value;
use yore_canon::hash::Sha256;
use yore_domain::hold::{Hold, Rule, RuleAction};
use yore_domain::learned::{Cluster, Judge, Tally, Word};
use yore_domain::{Error, Result};
use yore_store::{Precondition, Snapshot, Write};

use crate::run::{Session, Trace, caller_of};

/// The setting that says after how many equal decisions a rule is learned; null means never.
pub(crate) const LEARNING: &str = "approval.learning";
/// What the names of learned rules begin with.
const PREFIX: &str = "learned-";
/// Digits of a cluster's key.
const DIGITS: usize = 16;

/// What a decision changes besides what was decided.
#[derive(Debug, Default)]
pub(crate) struct Lesson {
    pub(crate) writes: Vec<Write>,
    pub(crate) preconditions: Vec<Precondition>,
    learned: Option<String>,
    unlearned: Option<String>,
}

impl Lesson {
    /// Names the rule that was learned or switched off.
    pub(crate) fn told(&self, mut trace: Trace) -> Trace {
        for (name, rule) in [("learned", &self.learned), ("unlearned", &self.unlearned)] {
            if let Some(rule) = rule {
                trace = trace.with(name, rule.clone());
            }
        }
        trace
    }
}

/// After how many equal decisions a rule is learned, where the owner wants that.
pub(crate) async fn threshold(snapshot: &dyn Snapshot) -> Result<Option<u32>> {
    let kept = snapshot.setting(LEARNING).await?;
    Ok(kept.and_then(|value| value.as_u64()).and_then(|after| u32::try_from(after).ok()))
}

/// What is learned from a decision on a hold.
pub(crate) async fn lesson(
    session: &Session,
    snapshot: &dyn Snapshot,
    hold: &Hold,
    word: Word,
) -> Result<Lesson> {
    let Some(cluster) = &hold.cluster else { return Ok(Lesson::default()) };
    let (before, mut tally) = tally(snapshot, &key(cluster)).await?;
    let person = caller_of(&session.permit.actor());
    let judge = match session.permit.principal().agent() {
        Some(_) => Judge::Agent,
        None => Judge::Person(&person),
    };
    tally.count(judge, word);
    let name = rule_name(cluster);
    let known = snapshot.rules().await?.into_iter().find(|rule| rule.name == name);
    let mut lesson = counted(&key(cluster), before, &tally)?;
    match (known, threshold(snapshot).await?.and_then(|after| tally.settled(after))) {
        (Some(rule), _) if tally.is_closed() && !rule.off => {
            lesson.writes.push(Write::Rule(Box::new(Rule { off: true, ..rule })));
            lesson.unlearned = Some(name);
        }
        (None, Some(action)) => {
            lesson.writes.push(Write::Rule(Box::new(rule_of(cluster, action))));
            lesson.learned = Some(name);
        }
        (Some(_), _) | (None, None) => {}
    }
    let epochs = snapshot.epochs().await?;
    lesson.preconditions.push(Precondition::RuleEpoch(epochs.rules));
    Ok(lesson)
}

/// What taking a learned rule back means: nothing is learned in its place.
pub(crate) async fn unlearn(snapshot: &dyn Snapshot, rule: &Rule) -> Result<Lesson> {
    let Some(key) = key_of(rule) else { return Ok(Lesson::default()) };
    let (before, mut tally) = tally(snapshot, key).await?;
    tally.close();
    counted(key, before, &tally)
}

/// Whether decisions differed where a rule was learned.
pub(crate) async fn is_contested(snapshot: &dyn Snapshot, rule: &Rule) -> Result<bool> {
    match key_of(rule) {
        Some(key) => Ok(tally(snapshot, key).await?.1.is_closed()),
        None => Ok(false),
    }
}

/// Whether a name is one that learned rules have.
pub(crate) fn is_reserved(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// The name of the rule that is learned from a cluster.
pub(crate) fn rule_name(cluster: &Cluster) -> String {
    format!("{PREFIX}{}", key(cluster))
}

fn rule_of(cluster: &Cluster, action: RuleAction) -> Rule {
    Rule {
        operations: vec![cluster.operation.clone()],
        agent: cluster.agent.clone(),
        source: cluster.source.clone(),
        kind: Some(cluster.kind),
        words: vec![cluster.keyword.clone()],
        learned: true,
        ..Rule::new(rule_name(cluster), action)
    }
}

fn key_of(rule: &Rule) -> Option<&str> {
    rule.name.strip_prefix(PREFIX).filter(|_| rule.learned)
}

/// A cluster as a short digest: counts outlive what they count and must not repeat it.
fn key(cluster: &Cluster) -> String {
    let Cluster { operation, kind, agent, source, rules, keyword } = cluster;
    let said = serde_json::json!([operation, kind, agent, source, rules, keyword]);
    let mut key = Sha256::of(said.to_string().as_bytes()).to_hex();
    key.truncate(DIGITS);
    key
}

fn setting(key: &str) -> String {
    format!("decisions:{key}")
}

async fn tally(snapshot: &dyn Snapshot, key: &str) -> Result<(Option<Value>, Tally)> {
    let kept = snapshot.setting(&setting(key)).await?;
    let tally = match &kept {
        Some(value) => serde_json::from_value(value.clone()).map_err(Error::internal)?,
        None => Tally::default(),
    };
    Ok((kept, tally))
}

fn counted(key: &str, before: Option<Value>, tally: &Tally) -> Result<Lesson> {
    let after = serde_json::to_value(tally).map_err(Error::internal)?;
    Ok(Lesson {
        writes: vec![Write::Setting(setting(key), after)],
        preconditions: vec![Precondition::Setting(setting(key), before)],
        ..Lesson::default()
    })
}

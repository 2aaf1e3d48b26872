//! What decisions on held operations have in common, and how often they were the same.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::hold::RuleAction;
use crate::kind::Kind;

/// What makes two held operations alike enough to learn from one how to decide the other.
/// Everything in it must be equal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cluster {
    /// The operation, by name.
    pub operation: String,
    /// The kind of memory.
    pub kind: Kind,
    /// The agent that asks; absent for a service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The stated source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The rules that speak about it, by name; none where only the caller asked for approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// The most telling word.
    pub keyword: String,
}

/// How somebody decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// As it was asked.
    Approve,
    /// With other words, so not as it was asked.
    Edit,
    /// Not at all.
    Reject,
}

/// Who decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judge<'a> {
    /// A person, by the name the decision is kept under.
    Person(&'a str),
    /// An agent that may decide. Nothing is learned from it, but it may speak against.
    Agent,
}

/// The decisions of one cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Approvals of each person.
    #[serde(default)]
    approved: BTreeMap<String, u32>,
    /// Rejections of each person.
    #[serde(default)]
    rejected: BTreeMap<String, u32>,
    /// Whether nothing may be learned here any more: decisions differed, or a learned rule was
    /// taken back.
    #[serde(default)]
    closed: bool,
}

impl Tally {
    /// Counts a decision. Two that differ, whoever made them, close the cluster for good.
    pub fn count(&mut self, judge: Judge<'_>, word: Word) {
        let (same, other) = match word {
            Word::Approve => (&mut self.approved, &self.rejected),
            Word::Reject => (&mut self.rejected, &self.approved),
            Word::Edit => {
                self.closed = true;
                return;
            }
        };
        self.closed |= !other.is_empty();
        match judge {
            Judge::Person(name) => *same.entry(name.to_owned()).or_default() += 1,
            // It is kept, so that a person who decides otherwise later is noticed.
            Judge::Agent => *same.entry(String::new()).or_default() += 0,
        }
    }

    /// Ends learning here.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Whether nothing may be learned here any more.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        self.closed
    }

    /// What may be decided without asking, once one person decided the same so many times and
    /// nobody otherwise.
    #[must_use]
    pub fn settled(&self, after: u32) -> Option<RuleAction> {
        if self.closed {
            return None;
        }
        let often =
            |counts: &BTreeMap<String, u32>| counts.values().any(|count| *count >= after.max(1));
        match (often(&self.approved), often(&self.rejected)) {
            (true, false) => Some(RuleAction::Allow),
            (false, true) => Some(RuleAction::Refuse),
            (true, true) | (false, false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn judge(number: u8) -> Judge<'static> {
        match number {
            0 => Judge::Person("owner"),
            1 => Judge::Person("service"),
            _ => Judge::Agent,
        }
    }

    fn word(number: u8) -> Word {
        match number {
            0 => Word::Approve,
            1 => Word::Reject,
            _ => Word::Edit,
        }
    }

    proptest! {
        #[test]
        fn mw_128_a_cluster_with_a_contrary_decision_is_never_settled(
            decisions in prop::collection::vec((0u8..3, 0u8..3), 0..40),
            after in 1u32..6,
        ) {
            let mut tally = Tally::default();
            for seen in 1..=decisions.len() {
                let (by, how) = decisions[seen - 1];
                tally.count(judge(by), word(how));
                let so_far = &decisions[..seen];
                let differ = so_far.iter().any(|(_, how)| *how != so_far[0].1)
                    || so_far.iter().any(|(_, how)| *how == 2);
                let most = (0..2u8)
                    .map(|by| so_far.iter().filter(|(who, _)| *who == by).count())
                    .max()
                    .unwrap_or_default();
                let expected = match so_far[0].1 {
                    _ if differ || most < after as usize => None,
                    0 => Some(RuleAction::Allow),
                    _ => Some(RuleAction::Refuse),
                };
                prop_assert_eq!(tally.settled(after), expected);
                let kept: Tally =
                    serde_json::from_value(serde_json::to_value(&tally).unwrap()).unwrap();
                prop_assert_eq!(&kept, &tally);
            }
        }
    }

    #[test]
    fn mw_128_counts_of_different_people_do_not_add_up() {
        let mut tally = Tally::default();
        for _ in 0..2 {
            tally.count(Judge::Person("ada"), Word::Approve);
            tally.count(Judge::Person("ben"), Word::Approve);
            tally.count(Judge::Agent, Word::Approve);
        }
        assert_eq!(tally.settled(3), None);
        tally.count(Judge::Person("ada"), Word::Approve);
        assert_eq!(tally.settled(3), Some(RuleAction::Allow));
        tally.close();
        assert_eq!(tally.settled(3), None);
    }
}

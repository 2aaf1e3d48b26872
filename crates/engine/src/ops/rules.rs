//! The owner's rules, and whether more are learned from decisions.

use yore_domain::grant::Verb;
use yore_domain::hold::Rule;
use yore_domain::{Error, Result, limits};
use yore_policy::Need;
use yore_store::{Precondition, Write};

use super::learn::{LEARNING, is_contested, is_reserved, threshold, unlearn};
use crate::call::Call;
use crate::engine::Engine;
use crate::run::{Planned, Trace};

impl Engine {
    /// Lists the rules in the order they are tried; those that were learned are tried last.
    pub async fn rules(&self, call: &Call) -> Result<Vec<Rule>> {
        self.look(call, Need::one("rule.list", Verb::Review), (), |_, _, snapshot, ()| {
            Box::pin(async move {
                let rules = snapshot.rules().await?;
                let trace = Trace::count(rules.len());
                Ok((rules, trace))
            })
        })
        .await
    }

    /// Adds a rule, or replaces the one of the same name.
    pub async fn put_rule(&self, call: &Call, rule: Rule) -> Result<()> {
        self.change(call, Need::one("rule.put", Verb::Admin), rule, |_, _, _, rule| {
            Box::pin(async move {
                check(rule)?;
                let trace = Trace::default().with("rule", rule.name.clone());
                Ok(Planned::done((), vec![Write::Rule(Box::new(rule.clone()))]).traced(trace))
            })
        })
        .await
    }

    /// Switches a rule off, or on again. A learned one stays off once somebody decided otherwise.
    pub async fn switch_rule(&self, call: &Call, name: String, off: bool) -> Result<()> {
        let need = Need::one("rule.switch", Verb::Admin);
        self.change(call, need, (name, off), |_, _, snapshot, (name, off)| {
            Box::pin(async move {
                let rules = snapshot.rules().await?;
                let found = rules.into_iter().find(|rule| rule.name == *name);
                let rule = Rule { off: *off, ..found.ok_or(Error::NotFound)? };
                if !rule.off && is_contested(snapshot, &rule).await? {
                    return Err(Error::conflict("a decision speaks against what was learned"));
                }
                let epoch = Precondition::RuleEpoch(snapshot.epochs().await?.rules);
                let trace = Trace::default().with("rule", name.clone()).with("off", *off);
                let mut planned = Planned::done((), vec![Write::Rule(Box::new(rule))]);
                planned.preconditions.push(epoch);
                Ok(planned.traced(trace))
            })
        })
        .await
    }

    /// Removes a rule by its name. One that was learned is not learned again.
    pub async fn remove_rule(&self, call: &Call, name: String) -> Result<()> {
        self.change(call, Need::one("rule.remove", Verb::Admin), name, |_, _, snapshot, name| {
            Box::pin(async move {
                let rules = snapshot.rules().await?;
                let rule = rules.iter().find(|rule| rule.name == *name).ok_or(Error::NotFound)?;
                let lesson = unlearn(snapshot, rule).await?;
                let trace = Trace::default().with("rule", name.clone());
                let mut planned = Planned::done((), vec![Write::RemoveRule(name.clone())]);
                planned.writes.extend(lesson.writes);
                planned.preconditions.extend(lesson.preconditions);
                Ok(planned.traced(trace))
            })
        })
        .await
    }

    /// Says after how many equal decisions a rule is learned; `None` where none is.
    pub async fn learning(&self, call: &Call) -> Result<Option<u32>> {
        self.look(call, Need::one("rule.learning", Verb::Review), (), |_, _, snapshot, ()| {
            Box::pin(async move { Ok((threshold(snapshot).await?, Trace::default())) })
        })
        .await
    }

    /// Lets rules be learned after so many equal decisions, or no longer; what was learned decides
    /// only while that is so.
    pub async fn set_learning(&self, call: &Call, after: Option<u32>) -> Result<()> {
        self.change(call, Need::one("rule.learn", Verb::Admin), after, |_, _, _, after| {
            Box::pin(async move {
                if after.is_some_and(|after| after < 2) {
                    return Err(Error::invalid("after", "one decision is no habit: at least 2"));
                }
                let trace = Trace::default().with("after", *after);
                let write = Write::Setting(LEARNING.to_owned(), (*after).into());
                Ok(Planned::done((), vec![write]).traced(trace))
            })
        })
        .await
    }
}

fn check(rule: &Rule) -> Result<()> {
    if rule.name.trim().is_empty() || rule.name.len() > limits::NAME_BYTES {
        return Err(Error::invalid("name", "must be 1 to 256 bytes"));
    }
    if rule.learned || is_reserved(&rule.name) {
        return Err(Error::invalid("name", "only learned rules are called so"));
    }
    if rule.words.iter().any(|word| word.trim().is_empty()) {
        return Err(Error::invalid("words", "an empty word would match everything"));
    }
    Ok(())
}

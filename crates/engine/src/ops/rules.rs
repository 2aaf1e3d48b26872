//! The owner's rules over writes.

use yore_domain::grant::Verb;
use yore_domain::hold::Rule;
use yore_domain::{Error, Result, limits};
use yore_policy::Need;
use yore_store::Write;

use crate::call::Call;
use crate::engine::Engine;
use crate::run::{Planned, Trace};

impl Engine {
    /// Lists the rules in the order they are tried.
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
                if rule.name.trim().is_empty() || rule.name.len() > limits::NAME_BYTES {
                    return Err(Error::invalid("name", "must be 1 to 256 bytes"));
                }
                if rule.words.iter().any(|word| word.trim().is_empty()) {
                    return Err(Error::invalid("words", "an empty word would match everything"));
                }
                let trace = Trace::default().with("rule", rule.name.clone());
                Ok(Planned::done((), vec![Write::Rule(Box::new(rule.clone()))]).traced(trace))
            })
        })
        .await
    }

    /// Removes a rule by its name.
    pub async fn remove_rule(&self, call: &Call, name: String) -> Result<()> {
        self.change(call, Need::one("rule.remove", Verb::Admin), name, |_, _, snapshot, name| {
            Box::pin(async move {
                if !snapshot.rules().await?.iter().any(|rule| rule.name == *name) {
                    return Err(Error::NotFound);
                }
                let trace = Trace::default().with("rule", name.clone());
                Ok(Planned::done((), vec![Write::RemoveRule(name.clone())]).traced(trace))
            })
        })
        .await
    }
}

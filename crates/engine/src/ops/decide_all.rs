//! Deciding many holds at once: all that a description fits, each judged by itself.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use yore_domain::hold::{Hold, HoldReason, HoldState};
use yore_domain::kind::Kind;
use yore_domain::memory::{Content, normalised};
use yore_domain::mutation::Mutation;
use yore_domain::{Error, HoldId, Result};
use yore_policy::orders::directs;

use super::review::Decision;
use crate::call::Call;
use crate::engine::Engine;

/// Holds that are looked through at once.
const HOLDS: usize = 1000;

/// Which holds. All members that are set must fit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Which {
    /// Everything that waits; without it something below must be set.
    pub all: bool,
    /// The operation, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The agent that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The stated source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The kind written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// The rule it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Words of which one occurs in the text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
    /// Whether its text gives orders, as far as that can be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gives_orders: Option<bool>,
    /// Not these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<HoldId>,
}

/// What became of one hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decided {
    /// Which.
    pub hold: HoldId,
    /// Why it could not be decided; it still waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl Engine {
    /// Decides everything that waits and fits. Each decision is one of its own, with its own line
    /// in the audit chain.
    pub async fn review_all(
        &self,
        call: &Call,
        which: Which,
        decision: Decision,
        note: Option<String>,
    ) -> Result<Vec<Decided>> {
        which.check(&decision)?;
        let (mut decided, mut seen) = (Vec::new(), BTreeSet::new());
        loop {
            let pending = self.holds(call, HoldState::Pending, HOLDS).await?;
            let fresh = pending.into_iter().filter(|hold| which.fits(hold));
            let fresh: Vec<HoldId> =
                fresh.map(|hold| hold.id).filter(|hold| seen.insert(*hold)).collect();
            if fresh.is_empty() {
                return Ok(decided);
            }
            for hold in fresh {
                let mut call = call.clone();
                call.operation = call.operation.map(|id| format!("{id}:{hold}"));
                let done = self.review(&call, hold, decision.clone(), note.clone()).await;
                let refused = match done {
                    Ok(_) => None,
                    Err(
                        error @ (Error::Conflict { .. } | Error::NotFound | Error::Consent { .. }),
                    ) => Some(error.to_string()),
                    Err(error) => return Err(error),
                };
                decided.push(Decided { hold, refused });
            }
        }
    }
}

impl Which {
    fn check(&self, decision: &Decision) -> Result<()> {
        if matches!(decision, Decision::Edit(_) | Decision::Instead(_)) {
            return Err(Error::invalid("decision", "many holds cannot be edited at once"));
        }
        let bare = Self { except: Vec::new(), ..self.clone() };
        if bare == Self::default() {
            return Err(Error::invalid("which", "must say which holds, or all"));
        }
        Ok(())
    }

    fn fits(&self, hold: &Hold) -> bool {
        let Self { all: _, operation, agent, source, kind, rule, words, gives_orders, except } =
            self;
        let content = drafted(&hold.mutation);
        let text = content.map(|content| normalised(&content.body.text));
        let of_content = |test: &dyn Fn(&Content) -> bool| content.is_some_and(test);
        operation.as_ref().is_none_or(|wanted| wanted == hold.mutation.name())
            && agent.as_ref().is_none_or(|wanted| hold.agent.as_ref() == Some(wanted))
            && source.as_ref().is_none_or(|wanted| {
                of_content(&|content| content.provenance.source.as_ref() == Some(wanted))
            })
            && kind.is_none_or(|wanted| of_content(&|content| content.kind == wanted))
            && rule.as_ref().is_none_or(|wanted| hold.reason == HoldReason::Rule(wanted.clone()))
            && (words.is_empty()
                || text
                    .is_some_and(|text| words.iter().any(|word| text.contains(&normalised(word)))))
            && gives_orders
                .is_none_or(|wanted| of_content(&|content| directs(&content.body.text) == wanted))
            && !except.contains(&hold.id)
    }
}

/// What a held operation would remember.
fn drafted(mutation: &Mutation) -> Option<&Content> {
    match mutation {
        Mutation::Remember { draft, .. } => Some(&draft.content),
        Mutation::Revise { .. }
        | Mutation::Relabel { .. }
        | Mutation::Forget { .. }
        | Mutation::Merge { .. }
        | Mutation::Restore { .. }
        | Mutation::Disclose { .. } => None,
    }
}

//! Commit, hold or refuse: the one place where consent, governance and approval are decided.

use yore_domain::class::{Label, Sensitivity};
use yore_domain::grant::Verb;
use yore_domain::hold::{HoldReason, Rule, RuleAction};
use yore_domain::memory::{Content, Memory, Status};
use yore_domain::mutation::{Depth, Mutation};
use yore_domain::provenance::ActorKind;
use yore_domain::regulated::{Guardianship, parental_consent};
use yore_domain::scope::Visibility;
use yore_domain::sensitive::{Care, Finding};
use yore_domain::{Error, Result, Timestamp};

use crate::detect::findings;
use crate::permit::Permit;
use crate::principal::Who;
use crate::regulated::{self, Gate};
use crate::rules;

/// What the engine found in the vault.
#[derive(Clone, Debug, Default)]
pub struct Facts<'a> {
    /// The memories the mutation names, as the permit's lens shows them.
    pub targets: Vec<&'a Memory>,
    /// What the target would say afterwards, where that may differ from what it says.
    pub after: Option<&'a Content>,
    /// The owner's rules, in order.
    pub rules: &'a [Rule],
    /// Whether the caller itself asked for approval.
    pub wants_approval: bool,
    /// What is done about secrets and personal data.
    pub care: Care,
    /// Who approved it, when this is a held operation being carried out.
    pub approved_by: Option<&'a str>,
    /// Set where the server acts by itself on what somebody remembered: then the owner's rules
    /// speak about it as about anybody's write.
    pub unasked: Option<Unasked<'a>>,
    /// Whether the vault is a child's.
    pub guarded: Guardianship,
    /// Whether that must be known.
    pub gate: Gate,
    /// The labels of what it was drawn from.
    pub sources: &'a [Label],
}

/// Something the server does by itself.
#[derive(Clone, Copy, Debug)]
pub struct Unasked<'a> {
    /// The agent whose memory it is about.
    pub agent: Option<&'a str>,
    /// The operations that rules may know it by.
    pub counts_as: &'a [&'static str],
}

/// What happens to an operation.
#[derive(Debug)]
pub enum Verdict {
    /// It is carried out.
    Commit,
    /// It waits for a person.
    Hold(HoldReason),
    /// It is turned down.
    Refuse(Error),
}

/// Judges a mutation. Pure: the same arguments always give the same verdict.
#[must_use]
pub fn judge(permit: &Permit, mutation: &Mutation, facts: &Facts<'_>, now: Timestamp) -> Verdict {
    match allowed(permit, mutation, facts, now) {
        Err(error) => Verdict::Refuse(error),
        Ok(()) if facts.approved_by.is_some() => Verdict::Commit,
        Ok(()) => approval(permit, mutation, facts),
    }
}

fn allowed(permit: &Permit, mutation: &Mutation, facts: &Facts<'_>, now: Timestamp) -> Result<()> {
    if let Some(hidden) = facts.targets.iter().find(|target| {
        !permit.lens().sees(&target.head.class()) || target.head.status == Status::Erased
    }) {
        debug_assert!(
            hidden.head.status == Status::Erased,
            "a snapshot returned a memory that its lens hides"
        );
        return Err(Error::NotFound);
    }
    if facts.targets.len() != mutation.targets().len() {
        return Err(Error::NotFound);
    }
    for target in &facts.targets {
        permit.may_write(&target.head.class())?;
    }
    match mutation {
        Mutation::Remember { draft, .. } => {
            content(permit, &draft.content)?;
            regulated::may_derive(facts.sources)?;
            let consent = parental_consent(&draft.content.foreign);
            regulated::may_collect(&draft.content.class(), consent, &facts.guarded, facts.gate)?;
            retention(&draft.content, draft.time.created.unwrap_or(now), now)
        }
        Mutation::Revise { expected, .. } => {
            let target = facts.targets.first().ok_or(Error::NotFound)?;
            if !target.head.status.is_live() {
                return Err(Error::NotFound);
            }
            if expected.is_some_and(|number| number != target.head.number) {
                return Err(Error::conflict("the memory was changed meanwhile"));
            }
            afterwards(permit, facts)
        }
        Mutation::Relabel { .. } => afterwards(permit, facts),
        Mutation::Restore { .. } => {
            not_relabelled(permit, facts)?;
            afterwards(permit, facts)
        }
        Mutation::Forget { depth: Depth::Tombstone | Depth::Quarantine, .. } => Ok(()),
        Mutation::Forget { depth: Depth::Erase, .. } => {
            if !permit.allows(Verb::Erase) {
                return Err(Error::forbidden("the grant does not allow 'erase'"));
            }
            if facts.targets.iter().any(|target| target.legal_hold) {
                return Err(Error::consent("a legal hold protects it from erasure"));
            }
            Ok(())
        }
        Mutation::Merge { duplicates, .. } => {
            if duplicates.is_empty() {
                return Err(Error::invalid("duplicates", "must not be empty"));
            }
            if facts.targets.iter().any(|target| !target.head.status.is_live()) {
                return Err(Error::NotFound);
            }
            let Some(after) = facts.after else { return Ok(()) };
            still_protected(permit, &facts.targets, after)?;
            no_wider(permit, &facts.targets, after)
        }
        // Nobody lets itself read: an agent's recall asks, and a person decides.
        Mutation::Disclose { .. } if permit.principal().agent().is_some() => {
            Err(Error::forbidden("only the owner lets an agent read"))
        }
        Mutation::Disclose { .. } => Ok(()),
    }
}

/// What a grant and consent say about what the target would say afterwards.
fn afterwards(permit: &Permit, facts: &Facts<'_>) -> Result<()> {
    let Some(after) = facts.after else { return Ok(()) };
    content(permit, after)?;
    still_protected(permit, &facts.targets, after)?;
    no_wider(permit, &facts.targets, after)
}

/// What a law protects of the targets is protected afterwards, unless who administers says
/// otherwise.
fn still_protected(permit: &Permit, targets: &[&Memory], after: &Content) -> Result<()> {
    let class = after.class();
    targets.iter().try_for_each(|target| regulated::may_lower(permit, &target.head.class(), &class))
}

/// What was relabelled since may not come back as it was, unless the owner or a service wants it.
fn not_relabelled(permit: &Permit, facts: &Facts<'_>) -> Result<()> {
    if permit.principal().agent().is_none() {
        return Ok(());
    }
    let (Some(after), Some(target)) = (facts.after, facts.targets.first()) else { return Ok(()) };
    let before = &target.head.content;
    if after.governance != before.governance || after.scope != before.scope {
        return Err(Error::forbidden("who may see it was changed since"));
    }
    Ok(())
}

/// Only the owner lifts consent or opens to more eyes what was closed to them: what an agent
/// makes of memories is as close as the closest of them.
fn no_wider(permit: &Permit, targets: &[&Memory], after: &Content) -> Result<()> {
    if permit.principal().agent().is_none() {
        return Ok(());
    }
    let class = after.class();
    for target in targets {
        let (before, was) = (&target.head.content, target.head.class());
        if !after.consent.is_within(&before.consent) {
            return Err(Error::forbidden("only the owner may lift consent"));
        }
        if class.visibility > was.visibility {
            return Err(Error::forbidden("only the owner may make it visible to more"));
        }
        if !class.is_shared_within(&was) {
            return Err(Error::forbidden("only the owner may share it with more"));
        }
        if class.sensitivity < was.sensitivity {
            return Err(Error::forbidden("only the owner may call it less sensitive"));
        }
    }
    Ok(())
}

/// What a grant and consent say about content that would be stored.
fn content(permit: &Permit, content: &Content) -> Result<()> {
    let class = content.class();
    permit.may_write(&class)?;
    if content.consent.exportable == Some(false) && content.scope.visibility == Visibility::Public {
        return Err(Error::consent("what may not be exported cannot be public"));
    }
    let Some(agent) = permit.principal().agent() else {
        return Ok(());
    };
    let handling = class.handling;
    if class.sensitivity > Sensitivity::Public
        && (handling.open_retrieval || handling.open_export || handling.open_stream)
    {
        return Err(Error::forbidden("only the owner may open what is not public"));
    }
    let provenance = &content.provenance;
    if provenance.actor_kind == ActorKind::Agent
        && !provenance.actor.is_empty()
        && provenance.actor != agent
    {
        return Err(Error::forbidden("the stated agent is not the one the grant names"));
    }
    Ok(())
}

fn retention(content: &Content, created: Timestamp, now: Timestamp) -> Result<()> {
    if content.consent.retention.is_some_and(|span| created.plus(span) <= now) {
        return Err(Error::consent("its retention has already run out"));
    }
    Ok(())
}

/// Whether it must wait. The owner's own word needs no approval unless the owner asks for it.
fn approval(permit: &Permit, mutation: &Mutation, facts: &Facts<'_>) -> Verdict {
    if facts.wants_approval {
        return Verdict::Hold(HoldReason::Requested);
    }
    let agent = match (permit.principal().who(), facts.unasked) {
        (Who::System { .. }, Some(unasked)) => unasked.agent,
        (Who::Owner | Who::System { .. }, _) => return Verdict::Commit,
        (Who::Agent { .. } | Who::Service { .. } | Who::Admin { .. } | Who::Anonymous, _) => {
            permit.principal().agent()
        }
    };
    // Nobody but the owner takes back alone what somebody else found suspicious.
    let put_aside = |target: &Memory| {
        target.head.status == Status::Quarantined && target.head.writer.as_deref() != agent
    };
    if matches!(mutation, Mutation::Restore { .. })
        && facts.targets.iter().any(|target| put_aside(target))
    {
        return Verdict::Hold(HoldReason::Requested);
    }
    let drafted = spoken_of(mutation, facts);
    let own = [mutation.name()];
    let names = facts.unasked.map_or(&own[..], |unasked| unasked.counts_as);
    match rules::first_match(facts.rules, names, agent, drafted) {
        // What the server does by itself is no write: its words were looked at when they came in.
        None if facts.unasked.is_some() => Verdict::Commit,
        None => careful(facts.care, drafted),
        Some(rule) => match rule.action {
            RuleAction::Allow => Verdict::Commit,
            RuleAction::Hold => Verdict::Hold(HoldReason::Rule(rule.name.clone())),
            RuleAction::Refuse => {
                Verdict::Refuse(Error::forbidden(format!("the rule '{}' forbids it", rule.name)))
            }
        },
    }
}

/// What the rules look at: what would be said, or else what is said now.
pub(crate) fn spoken_of<'a>(mutation: &'a Mutation, facts: &Facts<'a>) -> Option<&'a Content> {
    match mutation {
        Mutation::Remember { draft, .. } => Some(&draft.content),
        Mutation::Revise { .. }
        | Mutation::Relabel { .. }
        | Mutation::Forget { .. }
        | Mutation::Merge { .. }
        | Mutation::Restore { .. }
        | Mutation::Disclose { .. } => {
            facts.after.or_else(|| facts.targets.first().map(|target| &target.head.content))
        }
    }
}

/// What no rule of the owner's speaks about waits if it holds what the operator wants looked at.
fn careful(care: Care, drafted: Option<&Content>) -> Verdict {
    match looked_at(care, drafted) {
        Some(why) => Verdict::Hold(HoldReason::Rule(why)),
        None => Verdict::Commit,
    }
}

/// What stands in the place of a rule's name where the operator wants something looked at.
pub(crate) fn looked_at(care: Care, drafted: Option<&Content>) -> Option<String> {
    let found = match (care, drafted) {
        (Care::Hold, Some(content)) => findings(&content.body.text).into_iter().next(),
        (Care::Hold, None) | (Care::Off | Care::Label, _) => None,
    };
    found.map(|found| format!("sensitive data: {}", found.as_str()))
}

/// Returns the labels that content gets for what is found in it, besides those it has.
#[must_use]
pub fn careful_labels(care: Care, content: &Content) -> Vec<Label> {
    match care {
        Care::Off => Vec::new(),
        Care::Label | Care::Hold => {
            let found = findings(&content.body.text).into_iter().map(Finding::label);
            found.filter(|label| !content.governance.labels.contains(label)).collect()
        }
    }
}

#[cfg(test)]
mod tests;

//! Which of the owner's rules speaks about a write, and which about a read.

use yore_domain::hold::{Privacy, Rule, RuleAction};
use yore_domain::memory::{Content, normalised};

use crate::detect::findings;

/// The operation by which a rule says that it is about reading.
const RECALL: &str = "recall";

/// Finds the first rule that matches a write, which may go by several names; order is the owner's.
/// What was learned speaks only once a rule of the owner's has.
pub(crate) fn first_match<'a>(
    rules: &'a [Rule],
    names: &[&str],
    agent: Option<&str>,
    content: Option<&Content>,
) -> Option<&'a Rule> {
    rules.iter().find(|rule| speaks(rule, names, agent, content))
}

/// Names all rules that speak against a write going through by itself.
pub(crate) fn against(
    rules: &[Rule],
    operation: &str,
    agent: Option<&str>,
    content: Option<&Content>,
) -> Vec<String> {
    rules
        .iter()
        .filter(|rule| {
            rule.action != RuleAction::Allow && speaks(rule, &[operation], agent, content)
        })
        .map(|rule| rule.name.clone())
        .collect()
}

/// The rule that keeps a memory from an agent that would read it. [`RuleAction::Hold`] means that
/// a person may be asked, [`RuleAction::Refuse`] that nobody is.
#[must_use]
pub fn withholding<'a>(
    rules: &'a [Rule],
    agent: Option<&str>,
    content: &Content,
) -> Option<&'a Rule> {
    rules
        .iter()
        .find(|rule| is_about_reading(rule) && speaks(rule, &[RECALL], agent, Some(content)))
        .filter(|rule| rule.action != RuleAction::Allow)
}

/// Whether a rule is about reading: such a rule names the operation.
#[must_use]
pub fn is_about_reading(rule: &Rule) -> bool {
    rule.operations.iter().any(|name| name == RECALL)
}

fn speaks(rule: &Rule, names: &[&str], agent: Option<&str>, content: Option<&Content>) -> bool {
    !rule.off && !rule.learned && matches(rule, names, agent, content)
}

fn matches(rule: &Rule, names: &[&str], agent: Option<&str>, content: Option<&Content>) -> bool {
    let Rule {
        name: _,
        action: _,
        learned: _,
        off: _,
        operations,
        agent: wanted_agent,
        source,
        kind,
        label,
        from_sensitivity,
        words,
        detects,
        privacy,
    } = rule;
    if !operations.is_empty() && !operations.iter().any(|name| names.contains(&name.as_str())) {
        return false;
    }
    if wanted_agent.is_some() && wanted_agent.as_deref() != agent {
        return false;
    }
    let of_content = |test: &dyn Fn(&Content) -> bool| content.is_some_and(test);
    source.as_ref().is_none_or(|wanted| {
        of_content(&|content| {
            content.provenance.source.as_ref() == Some(wanted)
                || content.provenance.method == *wanted
        })
    }) && kind.is_none_or(|wanted| of_content(&|content| content.kind == wanted))
        && label.as_ref().is_none_or(|wanted| {
            of_content(&|content| content.class().labels.iter().any(|label| wanted.covers(label)))
        })
        && from_sensitivity
            .is_none_or(|least| of_content(&|content| content.class().sensitivity >= least))
        && (words.is_empty()
            || of_content(&|content| {
                let text = normalised(&content.body.text);
                words.iter().any(|word| text.contains(&normalised(word)))
            }))
        && (detects.is_empty()
            || of_content(&|content| {
                let found = findings(&content.body.text);
                detects.iter().any(|sort| found.contains(sort))
            }))
        && privacy.as_ref().is_none_or(|wanted| of_content(&|content| states(wanted, content)))
}

/// Whether content states about privacy what a rule asks.
fn states(wanted: &Privacy, content: &Content) -> bool {
    let Privacy { stated, retention, consent, shared_with } = wanted;
    let retains = content.consent.retention.is_some();
    let consents = content.consent.reference.is_some();
    let shared = content.scope.shared_with.as_ref();
    stated.is_none_or(|wanted| (retains || consents || shared.is_some()) == wanted)
        && retention.is_none_or(|wanted| retains == wanted)
        && consent.is_none_or(|wanted| consents == wanted)
        && shared_with
            .as_ref()
            .is_none_or(|agent| shared.is_some_and(|agents| agents.contains(agent)))
}

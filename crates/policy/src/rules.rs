//! Which of the owner's rules speaks about a write.

use yore_domain::hold::Rule;
use yore_domain::memory::{Content, normalised};

use crate::detect::findings;

/// Finds the first rule that matches; order is the owner's.
pub(crate) fn first_match<'a>(
    rules: &'a [Rule],
    operation: &str,
    agent: Option<&str>,
    content: Option<&Content>,
) -> Option<&'a Rule> {
    rules.iter().find(|rule| matches(rule, operation, agent, content))
}

fn matches(rule: &Rule, operation: &str, agent: Option<&str>, content: Option<&Content>) -> bool {
    let Rule {
        name: _,
        action: _,
        learned: _,
        operations,
        agent: wanted_agent,
        source,
        kind,
        label,
        from_sensitivity,
        words,
        detects,
    } = rule;
    if !operations.is_empty() && !operations.iter().any(|name| name == operation) {
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
}

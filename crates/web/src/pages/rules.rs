//! The owner's rules over what agents write.

use askama::Template;
use yore_domain::class::{Label, Sensitivity};
use yore_domain::hold::{Rule, RuleAction};
use yore_domain::kind::Kind;
use yore_domain::{Error, Result};

use super::back;
use crate::form::Form;
use crate::trouble::{Page, shown};
use crate::visit::{Posted, Shell, Visit};

#[derive(Template)]
#[template(path = "rules.html")]
struct RulesPage {
    shell: Shell,
    rules: Vec<Told>,
    kinds: [&'static str; 6],
    sensitivities: [&'static str; 4],
}

/// A rule in words.
struct Told {
    name: String,
    action: &'static str,
    when: Vec<String>,
    learned: bool,
}

impl From<Rule> for Told {
    fn from(rule: Rule) -> Self {
        let action = match rule.action {
            RuleAction::Hold => "waits for you",
            RuleAction::Refuse => "is turned down",
            RuleAction::Allow => "goes through",
        };
        let mut when = Vec::new();
        let mut note = |what: &str, value: Option<String>| {
            when.extend(value.filter(|value| !value.is_empty()).map(|v| format!("{what} {v}")));
        };
        note("operation", Some(rule.operations.join(" or ")));
        note("agent", rule.agent);
        note("source", rule.source);
        note("kind", rule.kind.map(|kind| kind.to_string()));
        note("label", rule.label.map(|label| label.to_string()));
        note("from", rule.from_sensitivity.map(|class| class.as_str().to_owned()));
        note("words", Some(rule.words.join(", ")));
        Self { name: rule.name, action, when, learned: rule.learned }
    }
}

pub(crate) async fn show(visit: Visit) -> Page {
    let rules = visit.engine().rules(&visit.call).await?;
    Ok(shown(&RulesPage {
        shell: visit.shell("review"),
        rules: rules.into_iter().map(Told::from).collect(),
        kinds: Kind::ALL.map(Kind::as_str),
        sensitivities: Sensitivity::ALL.map(Sensitivity::as_str),
    }))
}

pub(crate) async fn put(Posted { visit, form }: Posted) -> Page {
    visit.engine().put_rule(&visit.call, rule(&form)?).await?;
    Ok(back("/app/rules", "rule"))
}

fn rule(form: &Form) -> Result<Rule> {
    let action = match form.get("action") {
        Some("hold") => RuleAction::Hold,
        Some("refuse") => RuleAction::Refuse,
        Some("allow") => RuleAction::Allow,
        Some(_) | None => return Err(Error::invalid("action", "hold, refuse or allow")),
    };
    Ok(Rule {
        name: form.get("name").unwrap_or_default().to_owned(),
        action,
        operations: form.list("operations"),
        agent: form.get("agent").map(str::to_owned),
        source: None,
        kind: form.get("kind").map(str::parse::<Kind>).transpose()?,
        label: form.get("label").map(Label::new).transpose()?,
        from_sensitivity: form.get("from_sensitivity").map(Sensitivity::parse).transpose()?,
        words: form.list("words"),
        learned: false,
    })
}

pub(crate) async fn remove(Posted { visit, form }: Posted) -> Page {
    let name = form.get("name").unwrap_or_default().to_owned();
    visit.engine().remove_rule(&visit.call, name).await?;
    Ok(back("/app/rules", "unruled"))
}

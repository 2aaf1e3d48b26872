//! The owner's rules over what agents write.

use askama::Template;
use yore_domain::class::{Label, Sensitivity};
use yore_domain::hold::{Privacy, Rule, RuleAction};
use yore_domain::kind::Kind;
use yore_domain::sensitive::Finding;
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
    findings: [&'static str; 6],
    /// After how many equal decisions a rule is learned.
    learning: Option<u32>,
}

/// A rule in words.
struct Told {
    name: String,
    action: &'static str,
    when: Vec<String>,
    learned: bool,
    off: bool,
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
        let found: Vec<&str> = rule.detects.iter().map(|finding| finding.as_str()).collect();
        note("holds a", Some(found.join(" or ")));
        if let Some(privacy) = rule.privacy {
            note("its writer states", Some(stated(&privacy)));
        }
        Self { name: rule.name, action, when, learned: rule.learned, off: rule.off }
    }
}

/// What a rule asks of the privacy that a writer states.
fn stated(privacy: &Privacy) -> String {
    let word = |asked: Option<bool>, what: &str| {
        asked.map(|yes| if yes { what.to_owned() } else { format!("no {what}") })
    };
    let parts = [
        word(privacy.stated, "privacy"),
        word(privacy.retention, "retention"),
        word(privacy.consent, "consent"),
        privacy.shared_with.as_ref().map(|agent| format!("that {agent} may see it")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

pub(crate) async fn show(visit: Visit) -> Page {
    let rules = visit.engine().rules(&visit.call).await?;
    Ok(shown(&RulesPage {
        shell: visit.shell("review"),
        rules: rules.into_iter().map(Told::from).collect(),
        kinds: Kind::ALL.map(Kind::as_str),
        sensitivities: Sensitivity::ALL.map(Sensitivity::as_str),
        findings: Finding::ALL.map(Finding::as_str),
        learning: visit.engine().learning(&visit.call).await?,
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
    let name = form.get("name").unwrap_or_default();
    Ok(Rule {
        operations: form.list("operations"),
        agent: form.get("agent").map(str::to_owned),
        kind: form.get("kind").map(str::parse::<Kind>).transpose()?,
        label: form.get("label").map(Label::new).transpose()?,
        from_sensitivity: form.get("from_sensitivity").map(Sensitivity::parse).transpose()?,
        words: form.list("words"),
        detects: form
            .all("detects")
            .map(|word| {
                Finding::parse(word)
                    .ok_or_else(|| Error::invalid("detects", "is no sort of finding"))
            })
            .collect::<Result<Vec<_>>>()?,
        ..Rule::new(name, action)
    })
}

/// Switches a rule off or on.
pub(crate) async fn switch(Posted { visit, form }: Posted) -> Page {
    let name = form.get("name").unwrap_or_default().to_owned();
    let off = form.get("state") == Some("off");
    visit.engine().switch_rule(&visit.call, name, off).await?;
    Ok(back("/app/rules", if off { "rule-off" } else { "rule" }))
}

/// Says whether rules are learned from decisions.
pub(crate) async fn learn(Posted { visit, form }: Posted) -> Page {
    let after = form.get("after").map(str::parse::<u32>).transpose();
    let after = after.map_err(|_| Error::invalid("after", "is not a number"))?;
    visit.engine().set_learning(&visit.call, after).await?;
    Ok(back("/app/rules", if after.is_some() { "learning" } else { "not-learning" }))
}

pub(crate) async fn remove(Posted { visit, form }: Posted) -> Page {
    let name = form.get("name").unwrap_or_default().to_owned();
    visit.engine().remove_rule(&visit.call, name).await?;
    Ok(back("/app/rules", "unruled"))
}

//! `yore rule`: which writes and reads wait for approval, and what is learned from decisions.

use anstyle::Style;
use clap::{Subcommand, ValueEnum};
use yore_client::api;
use yore_client::input::{self, Nothing};
use yore_domain::class::{Label, Sensitivity};
use yore_domain::hold::{Privacy, Rule, RuleAction};
use yore_domain::kind::Kind;
use yore_domain::sensitive::Finding;

use crate::app::{App, Session};
use crate::failure::Result;
use crate::filter::{kind, label, sensitivity};
use crate::output::{DIM, GOOD, Table, WARN, cell, clean, styled};

/// After how many equal decisions a rule is learned when nobody says.
const AFTER: u32 = 5;

/// Options of `yore rule`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore rule add web-waits --source web --operations remember
  yore rule add health-reads --operations recall --label health --agent scheduler
  yore rule add no-consent --privacy unstated
  yore rule list
  yore rule learn on --after 5
  yore rule off learned-3f2a9c1e55d07b10

A rule that names recall among its operations is about what agents read: it leaves the rows out
until you approve, which lets the agent read them for an hour. With learning on, five equal
decisions of yours on the same sort of thing (operation, kind, agent, source, rules, keyword) and
none against become a rule that decides the next. It never decides erasures or merges, nor texts
that give orders, and one decision against switches it off for good.")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
pub(crate) enum What {
    /// List the rules, the learned ones too
    List,
    /// Add or replace a rule; what is given must all match
    Add(Box<NewRule>),
    /// Remove a rule; a learned one is not learned again
    Remove {
        /// Its name
        name: String,
    },
    /// Switch a rule off and keep it
    Off {
        /// Its name
        name: String,
    },
    /// Switch a rule on again
    On {
        /// Its name
        name: String,
    },
    /// Learn rules from decisions, or no longer
    Learn {
        /// Whether
        #[arg(value_enum)]
        switch: Switch,
        /// After how many equal decisions
        #[arg(long, default_value_t = AFTER, value_name = "N")]
        after: u32,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Switch {
    On,
    Off,
}

#[derive(Debug, clap::Args)]
pub(crate) struct NewRule {
    /// Its name
    name: String,
    /// What it does
    #[arg(long, value_enum, default_value_t = Action::Hold)]
    action: Action,
    /// Which operations, such as remember, forget or recall [default: every write]
    #[arg(long, value_delimiter = ',', value_name = "OPERATION")]
    operations: Vec<String>,
    /// The agent that asks
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The stated source
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// The kind
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Option<Kind>,
    /// A label, or an ancestor of one
    #[arg(long, value_name = "LABEL", value_parser = label)]
    label: Option<Label>,
    /// At least this sensitive
    #[arg(long, value_name = "CLASS", value_parser = sensitivity)]
    from_sensitivity: Option<Sensitivity>,
    /// Words of which one occurs in the text
    #[arg(long, value_delimiter = ',', value_name = "WORD")]
    words: Vec<String>,
    /// Sorts of which one is found in the text: secret, card, iban, email, phone, national-id
    #[arg(long, value_delimiter = ',', value_name = "SORT", value_parser = finding)]
    detects: Vec<Finding>,
    /// What is stated about privacy
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    privacy: Vec<Intent>,
    /// An agent it shall be shown to
    #[arg(long, value_name = "NAME")]
    shared_with: Option<String>,
}

fn finding(text: &str) -> Result<Finding, String> {
    Finding::parse(text).ok_or_else(|| {
        let sorts: Vec<&str> = Finding::ALL.iter().map(|sort| sort.as_str()).collect();
        format!("must be one of {}", sorts.join(", "))
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Intent {
    /// Anything
    Stated,
    /// Nothing
    Unstated,
    /// How long it may be kept
    Retention,
    /// Not how long it may be kept
    NoRetention,
    /// Which consent it rests on
    Consent,
    /// Not which consent it rests on
    NoConsent,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Action {
    /// Wait for a person
    Hold,
    /// Turn it down
    Refuse,
    /// Let it through
    Allow,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let mut session = app.session().await?;
    perform(app, &mut session, args.what).await
}

pub(crate) async fn perform(app: &App, session: &mut Session<'_>, what: What) -> Result {
    match what {
        What::List => list(app, session).await,
        What::Add(new) => {
            let rule = Rule::from(*new);
            session.change::<api::PutRule>(input::PutRule { rule: rule.clone() }).await?;
            told(app, &rule, "added", &rule.name)
        }
        What::Remove { name } => {
            let request = input::RemoveRule { name: name.clone() };
            session.change::<api::RemoveRule>(request).await?;
            told(app, &serde_json::json!({ "removed": name }), "removed", &name)
        }
        What::Off { name } => switch(app, session, name, true).await,
        What::On { name } => switch(app, session, name, false).await,
        What::Learn { switch, after } => {
            let after = match switch {
                Switch::On => Some(after),
                Switch::Off => None,
            };
            session.change::<api::Learn>(input::Learn { after }).await?;
            let word = if after.is_some() { "on" } else { "off" };
            told(app, &serde_json::json!({ "learning": after }), "learning", word)
        }
    }
}

async fn switch(app: &App, session: &mut Session<'_>, name: String, off: bool) -> Result {
    let request = input::SwitchRule { name: name.clone(), off };
    session.change::<api::SwitchRule>(request).await?;
    let word = if off { "off" } else { "on" };
    told(app, &serde_json::json!({ "rule": name, "off": off }), word, &name)
}

fn told(app: &App, done: &impl serde::Serialize, word: &str, name: &str) -> Result {
    app.out.either(done, |_| app.out.line(format!("{GOOD}{word}{GOOD:#}  {}", clean(name))))
}

async fn list(app: &App, session: &mut Session<'_>) -> Result {
    let rules = session.call::<api::Rules>(Nothing {}).await?;
    let learning = session.call::<api::Learning>(Nothing {}).await?;
    app.out.either(&rules, |rules| {
        if rules.is_empty() {
            app.out.remark("there are no rules");
        } else {
            let mut table = Table::new(&["RULE", "ACTION", "STATE", "WHEN"]);
            for rule in rules {
                table.push([
                    cell(&rule.name),
                    styled(format!("{:?}", rule.action).to_lowercase(), WARN),
                    state(rule, learning.is_some()),
                    cell(conditions(rule)),
                ]);
            }
            app.out.table(&table)?;
        }
        match learning {
            Some(after) => {
                app.out.remark(format!("rules are learned after {after} equal decisions"))
            }
            None => app.out.remark("no rules are learned: yore rule learn on"),
        }
        Ok(())
    })
}

fn state(rule: &Rule, learning: bool) -> (String, Style) {
    match (rule.off, rule.learned) {
        (true, _) => styled("off", DIM),
        (false, true) if learning => styled("learned", GOOD),
        (false, true) => styled("learned, asleep", DIM),
        (false, false) => cell("on"),
    }
}

fn conditions(rule: &Rule) -> String {
    let mut parts = Vec::new();
    if !rule.operations.is_empty() {
        parts.push(rule.operations.join(" or "));
    }
    parts.extend(rule.agent.as_ref().map(|agent| format!("agent {agent}")));
    parts.extend(rule.source.as_ref().map(|source| format!("source {source}")));
    parts.extend(rule.kind.map(|kind| format!("kind {kind}")));
    parts.extend(rule.label.as_ref().map(|label| format!("label {label}")));
    parts.extend(rule.from_sensitivity.map(|class| format!("{} or more", class.as_str())));
    if !rule.words.is_empty() {
        parts.push(format!("says {}", rule.words.join(" or ")));
    }
    if !rule.detects.is_empty() {
        let sorts: Vec<&str> = rule.detects.iter().map(|sort| sort.as_str()).collect();
        parts.push(format!("holds {}", sorts.join(" or ")));
    }
    parts.extend(rule.privacy.iter().flat_map(stated));
    if parts.is_empty() { "every write".to_owned() } else { parts.join(", ") }
}

fn stated(privacy: &Privacy) -> Vec<String> {
    let Privacy { stated, retention, consent, shared_with } = privacy;
    let flags = [("privacy", stated), ("retention", retention), ("consent", consent)];
    let said = |(name, flag): (&str, &Option<bool>)| {
        flag.map(|flag| format!("{name} {}", if flag { "stated" } else { "not stated" }))
    };
    let shared = shared_with.as_ref().map(|agent| format!("shared with {agent}"));
    flags.into_iter().filter_map(said).chain(shared).collect()
}

impl From<NewRule> for Rule {
    fn from(new: NewRule) -> Self {
        let action = match new.action {
            Action::Hold => RuleAction::Hold,
            Action::Refuse => RuleAction::Refuse,
            Action::Allow => RuleAction::Allow,
        };
        let asks = |yes, no| match (new.privacy.contains(&yes), new.privacy.contains(&no)) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        };
        let privacy = Privacy {
            stated: asks(Intent::Stated, Intent::Unstated),
            retention: asks(Intent::Retention, Intent::NoRetention),
            consent: asks(Intent::Consent, Intent::NoConsent),
            shared_with: new.shared_with,
        };
        Self {
            operations: new.operations,
            agent: new.agent,
            source: new.source,
            kind: new.kind,
            label: new.label,
            from_sensitivity: new.from_sensitivity,
            words: new.words,
            detects: new.detects,
            privacy: Some(privacy).filter(|privacy| *privacy != Privacy::default()),
            ..Self::new(new.name, action)
        }
    }
}

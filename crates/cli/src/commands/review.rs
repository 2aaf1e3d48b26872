//! `yore review`: decides what waits for approval, and which rules make it wait.

use clap::{Subcommand, ValueEnum};
use yore_client::api::{self, Decision, Reviewed};
use yore_client::input::{self, Nothing};
use yore_domain::HoldId;
use yore_domain::class::{Label, Sensitivity};
use yore_domain::hold::{Hold, HoldReason, HoldState, Rule, RuleAction};
use yore_domain::kind::Kind;
use yore_domain::memory::Draft;
use yore_domain::mutation::Mutation;
use yore_domain::sensitive::Finding;

use crate::app::{App, Session};
use crate::failure::{Failure, Result};
use crate::filter::{kind, label, sensitivity};
use crate::output::{DIM, GOOD, HEAD, ID, Table, WARN, cell, clean, short, styled};
use crate::{editor, show};

/// Options of `yore review`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore review list
  yore review show 5c1d
  yore review approve 5c1d
  yore review approve 5c1d --edit
  yore review reject 5c1d --note \"not true any more\"
  yore review rule add health-waits --action hold --label health")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List what waits, oldest first
    List {
        /// In which state
        #[arg(long, value_enum, default_value_t = State::Pending)]
        state: State,
        /// How many
        #[arg(long, short = 'n', default_value_t = 50, value_name = "N")]
        limit: usize,
    },
    /// Show what approval would change
    Show {
        /// The hold
        id: String,
    },
    /// Carry it out
    Approve {
        /// The holds
        #[arg(required = true)]
        id: Vec<String>,
        /// With another text: given here, or written in $EDITOR
        #[arg(long, value_name = "TEXT", num_args = 0..=1, default_missing_value = "")]
        edit: Option<String>,
        /// A note for the record
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// Turn it down
    Reject {
        /// The holds
        #[arg(required = true)]
        id: Vec<String>,
        /// A note for the record
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// List, add and remove the rules that make writes wait
    #[command(subcommand)]
    Rule(RuleCommand),
}

#[derive(Debug, Subcommand)]
enum RuleCommand {
    /// List the rules
    List,
    /// Add or replace a rule; what is given must all match
    Add(Box<NewRule>),
    /// Remove a rule
    Remove {
        /// Its name
        name: String,
    },
}

#[derive(Debug, clap::Args)]
struct NewRule {
    /// Its name
    name: String,
    /// What it does
    #[arg(long, value_enum, default_value_t = Action::Hold)]
    action: Action,
    /// Which operations, such as remember or forget [default: every write]
    #[arg(long, value_delimiter = ',', value_name = "OPERATION")]
    operations: Vec<String>,
    /// The agent that asks
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The stated source
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// The kind written
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Option<Kind>,
    /// A label written, or an ancestor of one
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
}

fn finding(text: &str) -> Result<Finding, String> {
    Finding::parse(text).ok_or_else(|| {
        let sorts: Vec<&str> = Finding::ALL.iter().map(|sort| sort.as_str()).collect();
        format!("must be one of {}", sorts.join(", "))
    })
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

#[derive(Clone, Copy, Debug, ValueEnum)]
enum State {
    Pending,
    Approved,
    Rejected,
    Expired,
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let mut session = app.session().await?;
    match args.what {
        What::List { state, limit } => list(app, &mut session, state, limit).await,
        What::Show { id } => {
            let hold = find(&mut session, &id).await?;
            let hold = session.call::<api::ShowHold>(input::OneHold { hold }).await?;
            app.out.either(&hold, |hold| show_hold(app, hold))
        }
        What::Approve { id, edit, note } => {
            let mut done = Vec::new();
            for id in id {
                let hold = find(&mut session, &id).await?;
                let decision = match &edit {
                    None => Decision::Approve,
                    Some(text) => edited(&mut session, hold, text).await?,
                };
                let note = note.clone();
                let request = input::Decide { hold, decision, note };
                done.push(session.change::<api::Decide>(request).await?);
            }
            decided(app, &done, "approved")
        }
        What::Reject { id, note } => {
            let mut done = Vec::new();
            for id in id {
                let hold = find(&mut session, &id).await?;
                let note = note.clone();
                let request = input::Decide { hold, decision: Decision::Reject, note };
                done.push(session.change::<api::Decide>(request).await?);
            }
            decided(app, &done, "rejected")
        }
        What::Rule(RuleCommand::List) => rules(app, &mut session).await,
        What::Rule(RuleCommand::Add(rule)) => {
            let rule = rule_from(*rule);
            session.change::<api::PutRule>(input::PutRule { rule: rule.clone() }).await?;
            app.out.either(&rule, |rule| {
                app.out.line(format!("{GOOD}added{GOOD:#}  {}", clean(&rule.name)))
            })
        }
        What::Rule(RuleCommand::Remove { name }) => {
            let request = input::RemoveRule { name: name.clone() };
            session.change::<api::RemoveRule>(request).await?;
            let done = serde_json::json!({ "removed": name });
            app.out
                .either(&done, |_| app.out.line(format!("{GOOD}removed{GOOD:#}  {}", clean(&name))))
        }
    }
}

async fn list(app: &App, session: &mut Session<'_>, state: State, limit: usize) -> Result {
    let state = match state {
        State::Pending => HoldState::Pending,
        State::Approved => HoldState::Approved,
        State::Rejected => HoldState::Rejected,
        State::Expired => HoldState::Expired,
    };
    let holds = session.call::<api::Holds>(input::Holds { state, limit }).await?;
    app.out.either(&holds, |holds| {
        if holds.is_empty() {
            app.out.remark("nothing waits");
            return Ok(());
        }
        let mut table = Table::new(&["HOLD", "ASKED", "BY", "OPERATION", "WHY"]);
        for hold in holds {
            table.push([
                styled(short(hold.id), ID),
                cell(app.out.ago(hold.asked)),
                cell(hold.agent.as_deref().unwrap_or("owner")),
                cell(hold.mutation.name()),
                cell(why(&hold.reason)),
            ]);
        }
        app.out.table(&table)
    })
}

fn show_hold(app: &App, hold: &Hold) -> Result {
    app.out.line(format!("{HEAD}{ID}{}{ID:#}{HEAD:#}", hold.id))?;
    let mut rows = vec![
        ("operation", hold.mutation.name().to_owned()),
        ("why", why(&hold.reason)),
        ("by", hold.agent.clone().unwrap_or_else(|| "owner".to_owned())),
        ("protocol", hold.protocol.clone()),
        ("asked", format!("{} ({})", hold.asked, app.out.ago(hold.asked))),
        ("state", format!("{:?}", hold.state).to_lowercase()),
    ];
    rows.extend(hold.expires.map(|at| ("lapses", app.out.ago(at))));
    rows.extend(hold.note.clone().map(|note| ("note", note)));
    rows.extend(hold.outcome.map(|memory| ("memory", memory.to_string())));
    show::members(&app.out, &rows)?;
    app.out.line("")?;
    show::diff(&app.out, &hold.diff)?;
    if hold.state == HoldState::Pending {
        let id = short(hold.id);
        app.out.remark(format!("yore review approve {id}   or   yore review reject {id}"));
    }
    Ok(())
}

fn why(reason: &HoldReason) -> String {
    match reason {
        HoldReason::Requested => "the caller asked for approval".to_owned(),
        HoldReason::Rule(name) => format!("rule {name}"),
        HoldReason::NearDuplicate(memory) => format!("looks like {}", short(memory)),
        HoldReason::Contradiction(memory) => format!("speaks against {}", short(memory)),
        HoldReason::SyncConflict(memory) => format!("two sides changed {}", short(memory)),
    }
}

fn decided(app: &App, done: &Vec<Reviewed>, word: &str) -> Result {
    app.out.either(done, |done| {
        for reviewed in done {
            let outcome = reviewed.hold.outcome;
            let memory = outcome.map(|id| format!("  {DIM}memory{DIM:#} {ID}{id}{ID:#}"));
            app.out.line(format!(
                "{GOOD}{word}{GOOD:#}  {}{}",
                reviewed.hold.id,
                memory.unwrap_or_default()
            ))?;
        }
        Ok(())
    })
}

async fn edited(session: &mut Session<'_>, hold: HoldId, text: &str) -> Result<Decision> {
    let held = session.call::<api::ShowHold>(input::OneHold { hold }).await?;
    let Mutation::Remember { draft, .. } = held.mutation else {
        return Err(Failure::usage(format!("a held {} cannot be edited", held.mutation.name()))
            .hint("approve it as it is, or reject it"));
    };
    let mut draft: Draft = *draft;
    draft.content.body.text =
        if text.is_empty() { editor::edit(&draft.content.body.text)? } else { text.to_owned() };
    draft.validate()?;
    Ok(Decision::Edit(Box::new(draft)))
}

async fn find(session: &mut Session<'_>, text: &str) -> Result<HoldId> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let mut found = Vec::new();
    for state in [HoldState::Pending, HoldState::Approved, HoldState::Rejected, HoldState::Expired]
    {
        let holds = session.call::<api::Holds>(input::Holds { state, limit: 1000 }).await?;
        found.extend(holds.into_iter().map(|hold| hold.id));
    }
    crate::prefix::one(found, text, "yore review list shows what waits")
}

async fn rules(app: &App, session: &mut Session<'_>) -> Result {
    let rules = session.call::<api::Rules>(Nothing {}).await?;
    app.out.either(&rules, |rules| {
        if rules.is_empty() {
            app.out.remark("there are no rules");
            return Ok(());
        }
        let mut table = Table::new(&["RULE", "ACTION", "WHEN"]);
        for rule in rules {
            table.push([
                cell(&rule.name),
                styled(format!("{:?}", rule.action).to_lowercase(), WARN),
                cell(conditions(rule)),
            ]);
        }
        app.out.table(&table)
    })
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
    if parts.is_empty() { "every write".to_owned() } else { parts.join(", ") }
}

fn rule_from(new: NewRule) -> Rule {
    Rule {
        name: new.name,
        action: match new.action {
            Action::Hold => RuleAction::Hold,
            Action::Refuse => RuleAction::Refuse,
            Action::Allow => RuleAction::Allow,
        },
        operations: new.operations,
        agent: new.agent,
        source: new.source,
        kind: new.kind,
        label: new.label,
        from_sensitivity: new.from_sensitivity,
        words: new.words,
        detects: new.detects,
        learned: false,
    }
}

//! `yore review`: decides what waits for approval.

use clap::{Subcommand, ValueEnum};
use serde_json::Value;
use yore_client::api::{self, Case, Changes, Decision, Reviewed, Which};
use yore_client::input;
use yore_domain::HoldId;
use yore_domain::hold::{DiffLine, Hold, HoldReason, HoldState};
use yore_domain::kind::Kind;
use yore_domain::memory::Draft;
use yore_domain::mutation::Mutation;

use super::rule;
use crate::app::{App, Session};
use crate::failure::{Failure, Result};
use crate::filter::kind;
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
  yore review apply
  yore review approve --agent scheduler --source web --gives-orders false
  yore review reject --rule web-waits --gives-orders true")]
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
        /// The holds; none where options say which
        id: Vec<String>,
        #[command(flatten)]
        bulk: Bulk,
        /// With another text: given here, or written in $EDITOR
        #[arg(long, value_name = "TEXT", num_args = 0..=1, default_missing_value = "")]
        edit: Option<String>,
        /// A note for the record
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// Turn it down
    Reject {
        /// The holds; none where options say which
        id: Vec<String>,
        #[command(flatten)]
        bulk: Bulk,
        /// A note for the record
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// Carry out what Yore itself proposes, such as merging what is nearly the same
    Apply {
        /// The proposals [default: all that wait]
        id: Vec<String>,
        /// A note for the record
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// The same as yore rule
    #[command(subcommand)]
    Rule(rule::What),
}

/// Many holds at once: all that is given must fit.
#[derive(Debug, clap::Args)]
struct Bulk {
    /// Everything that waits
    #[arg(long)]
    all: bool,
    /// Only this operation, such as remember or recall
    #[arg(long, value_name = "NAME")]
    operation: Option<String>,
    /// Only what this agent asked for
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Only what states this source
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Only this kind
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Option<Kind>,
    /// Only what waits for this rule
    #[arg(long, value_name = "NAME")]
    rule: Option<String>,
    /// Only texts in which one of these words occurs
    #[arg(long, value_delimiter = ',', value_name = "WORD")]
    words: Vec<String>,
    /// Only texts that give orders (true), or that give none (false), as far as that can be told
    #[arg(long, value_name = "BOOL")]
    gives_orders: Option<bool>,
    /// Not these holds
    #[arg(long, value_delimiter = ',', value_name = "ID")]
    except: Vec<HoldId>,
}

impl From<Bulk> for Which {
    fn from(bulk: Bulk) -> Self {
        let Bulk { all, operation, agent, source, kind, rule, words, gives_orders, except } = bulk;
        Self { all, operation, agent, source, kind, rule, words, gives_orders, except }
    }
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
            let case = session.call::<api::ShowHold>(input::OneHold { hold }).await?;
            app.out.either(&case, |case| show_case(app, case))
        }
        What::Approve { id, bulk, edit, note } => {
            if id.is_empty() && edit.is_none() {
                return decide_all(app, &mut session, bulk, Decision::Approve, note).await;
            }
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
        What::Reject { id, bulk, note } => {
            if id.is_empty() {
                return decide_all(app, &mut session, bulk, Decision::Reject, note).await;
            }
            let mut done = Vec::new();
            for id in id {
                let hold = find(&mut session, &id).await?;
                let note = note.clone();
                let request = input::Decide { hold, decision: Decision::Reject, note };
                done.push(session.change::<api::Decide>(request).await?);
            }
            decided(app, &done, "rejected")
        }
        What::Apply { id, note } => apply(app, &mut session, id, note).await,
        What::Rule(what) => rule::perform(app, &mut session, what).await,
    }
}

/// Approves proposals, and nothing that somebody asked for.
async fn apply(
    app: &App,
    session: &mut Session<'_>,
    ids: Vec<String>,
    note: Option<String>,
) -> Result {
    let waiting = input::Holds { state: HoldState::Pending, limit: 1000 };
    let waiting = session.call::<api::Holds>(waiting).await?;
    let proposed = waiting.into_iter().filter(|hold| hold.reasoning.is_some());
    let mut proposals: Vec<HoldId> = proposed.map(|hold| hold.id).collect();
    if !ids.is_empty() {
        let mut chosen = Vec::new();
        for id in ids {
            let hold = find(session, &id).await?;
            if !proposals.contains(&hold) {
                return Err(Failure::usage(format!("{} is no proposal that waits", short(hold)))
                    .hint("yore review approve decides what somebody asked for"));
            }
            chosen.push(hold);
        }
        proposals = chosen;
    }
    let mut done = Vec::new();
    for hold in proposals {
        let request = input::Decide { hold, decision: Decision::Approve, note: note.clone() };
        done.push(session.change::<api::Decide>(request).await?);
    }
    if done.is_empty() {
        app.out.remark("nothing is proposed");
    }
    decided(app, &done, "applied")
}

/// Decides everything that fits at once.
async fn decide_all(
    app: &App,
    session: &mut Session<'_>,
    bulk: Bulk,
    decision: Decision,
    note: Option<String>,
) -> Result {
    let word = if decision == Decision::Reject { "rejected" } else { "approved" };
    let request = input::DecideAll { which: bulk.into(), decision, note };
    let done = session.change::<api::DecideAll>(request).await?;
    app.out.either(&done, |done| {
        let refused = done.iter().filter(|one| one.refused.is_some());
        for one in refused.clone() {
            let why = one.refused.as_deref().unwrap_or_default();
            app.out.line(format!("{WARN}waits{WARN:#}  {}  {}", one.hold, clean(why)))?;
        }
        let count = done.len() - refused.count();
        app.out.line(format!("{GOOD}{word}{GOOD:#}  {count}"))
    })
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
                cell(hold.agent.as_deref().unwrap_or_else(|| asker(hold))),
                cell(hold.mutation.name()),
                cell(told(hold)),
            ]);
        }
        app.out.table(&table)
    })
}

fn show_case(app: &App, case: &Case) -> Result {
    let Case { hold, changes } = case;
    app.out.line(format!("{HEAD}{ID}{}{ID:#}{HEAD:#}", hold.id))?;
    let mut rows = vec![
        ("operation", hold.mutation.name().to_owned()),
        ("why", why(&hold.reason)),
        ("by", hold.agent.clone().unwrap_or_else(|| asker(hold).to_owned())),
        ("protocol", hold.protocol.clone()),
        ("asked", format!("{} ({})", hold.asked, app.out.ago(hold.asked))),
        ("state", format!("{:?}", hold.state).to_lowercase()),
    ];
    rows.extend(hold.reasoning.clone().map(|reasoning| ("reasoning", reasoning)));
    rows.extend(hold.expires.map(|at| ("lapses", app.out.ago(at))));
    rows.extend(hold.learned.clone().map(|rule| ("decided by", rule)));
    rows.extend(changes.against.map(|memory| ("against", memory.to_string())));
    rows.extend(hold.note.clone().map(|note| ("note", note)));
    rows.extend(hold.outcome.map(|memory| ("memory", memory.to_string())));
    show::members(&app.out, &rows)?;
    app.out.line("")?;
    show::diff(&app.out, &lines(changes))?;
    if hold.state == HoldState::Pending {
        let id = short(hold.id);
        app.out.remark(format!("yore review approve {id}   or   yore review reject {id}"));
    }
    Ok(())
}

/// Who asked, where no agent did.
fn asker(hold: &Hold) -> &'static str {
    if hold.reasoning.is_some() { "yore" } else { "owner" }
}

/// Why it waits, and why it was proposed where nobody asked for it.
fn told(hold: &Hold) -> String {
    let why = why(&hold.reason);
    match &hold.reasoning {
        Some(reasoning) => format!("{why}: {}", clean(reasoning)),
        None => why,
    }
}

/// All changes, one line each.
fn lines(changes: &Changes) -> Vec<DiffLine> {
    let Changes { against: _, added, removed, modified } = changes;
    let line = |field: &String, before: Option<&Value>, after: Option<&Value>| DiffLine {
        field: field.clone(),
        before: before.cloned(),
        after: after.cloned(),
    };
    let added = added.iter().map(|one| line(&one.field, None, Some(&one.value)));
    let removed = removed.iter().map(|one| line(&one.field, Some(&one.value), None));
    let modified = modified.iter().map(|one| line(&one.field, Some(&one.before), Some(&one.after)));
    added.chain(removed).chain(modified).collect()
}

fn why(reason: &HoldReason) -> String {
    match reason {
        HoldReason::Requested => "the caller asked for approval".to_owned(),
        HoldReason::Rule(name) => format!("rule {name}"),
        HoldReason::NearDuplicate(memory) => format!("looks like {}", short(memory)),
        HoldReason::Contradiction(memory) => format!("speaks against {}", short(memory)),
        HoldReason::SyncConflict(memory) => format!("two sides changed {}", short(memory)),
        HoldReason::Unhelpful => "has not been of use".to_owned(),
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
    let held = session.call::<api::ShowHold>(input::OneHold { hold }).await?.hold;
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

//! `yore audit`: reads and verifies the audit chain.

use std::path::PathBuf;

use clap::Subcommand;
use yore_client::api::{self, AuditQuery};
use yore_client::input::Nothing;
use yore_domain::Seq;
use yore_domain::audit::{Actor, Entry, Outcome};

use crate::app::{App, Session};
use crate::failure::{Exit, Failure, Result};
use crate::file::Sink;
use crate::output::{BAD, GOOD, Table, WARN, cell, short, styled};
use crate::progress;
use crate::when::{self, Instant};

const PAGE: usize = 1000;

/// Options of `yore audit`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore audit list --since 1d --agent scheduler
  yore audit list --memory 3f2a9c1e
  yore audit verify
  yore audit export --out audit.ndjson

One entry per attempt, allowed or not, each bound to the one before it by a hash. Entries hold ids,
never text. yore audit verify ends with 8 when the chain is broken.")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List entries, newest first
    List {
        #[command(flatten)]
        which: Which,
        /// How many
        #[arg(long, short = 'n', default_value_t = 30, value_name = "N")]
        limit: usize,
    },
    /// Check every link and signature of the chain
    Verify,
    /// Write entries out, oldest first, one a line
    Export {
        #[command(flatten)]
        which: Which,
        /// The file to write [default: standard output]
        #[arg(long, short, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

#[derive(Debug, clap::Args)]
struct Which {
    /// Only this operation, such as recall or forget
    #[arg(long, value_name = "NAME")]
    operation: Option<String>,
    /// Only this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Only what touched this memory
    #[arg(long, value_name = "ID")]
    memory: Option<String>,
    /// From this time on
    #[arg(long, value_name = "TIME", value_parser = when::instant)]
    since: Option<Instant>,
    /// Before this time
    #[arg(long, value_name = "TIME", value_parser = when::instant)]
    until: Option<Instant>,
}

impl Which {
    async fn query(self, app: &App, session: &mut Session<'_>) -> Result<AuditQuery> {
        let memory = match &self.memory {
            Some(id) => Some(session.memory_id(id).await?),
            None => None,
        };
        Ok(AuditQuery {
            operation: self.operation,
            agent: self.agent,
            memory,
            from: self.since.map(|since| since.resolve(app.out.now)),
            until: self.until.map(|until| until.resolve(app.out.now)),
            ..AuditQuery::default()
        })
    }
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let mut session = app.session().await?;
    match args.what {
        What::List { which, limit } => {
            let query = which.query(app, &mut session).await?;
            let query = AuditQuery { limit: limit.min(PAGE), newest_first: true, ..query };
            let entries = session.call::<api::Audit>(query).await?;
            app.out.either(&entries, |entries| table(app, entries))
        }
        What::Verify => verify(app, &mut session).await,
        What::Export { which, out } => {
            let query = which.query(app, &mut session).await?;
            export(app, &mut session, query, out).await
        }
    }
}

fn table(app: &App, entries: &[Entry]) -> Result {
    let mut table = Table::new(&["SEQ", "WHEN", "WHO", "OPERATION", "RESULT", "MEMORIES"]);
    for entry in entries {
        let draft = &entry.draft;
        let result = match &draft.outcome {
            Outcome::Done => styled("done", GOOD),
            Outcome::Held { hold } => styled(format!("held {}", short(hold)), WARN),
            Outcome::Refused { code } => styled(code.clone(), BAD),
        };
        let mut targets: Vec<String> =
            draft.targets.iter().take(3).map(|target| short(target.memory)).collect();
        if draft.targets.len() > 3 {
            targets.push(format!("and {} more", draft.targets.len() - 3));
        }
        table.push([
            cell(entry.seq.to_string()),
            cell(app.out.ago(draft.at)),
            cell(who(&draft.actor)),
            cell(&draft.operation),
            result,
            cell(targets.join(" ")),
        ]);
    }
    app.out.table(&table)
}

fn who(actor: &Actor) -> String {
    match actor {
        Actor::Owner => "owner".to_owned(),
        Actor::Agent { agent, .. } => agent.clone(),
        Actor::Service { name } => format!("service {name}"),
        Actor::System { reason } => format!("server: {reason}"),
        Actor::Anonymous => "anyone".to_owned(),
        Actor::Unknown => "unknown".to_owned(),
    }
}

async fn verify(app: &App, session: &mut Session<'_>) -> Result {
    let spinner = progress::spinner(&app.out, "verifying the audit chain");
    let report = session.call::<api::VerifyAudit>(Nothing {}).await;
    spinner.finish_and_clear();
    let report = report?;
    app.out.either(&report, |report| {
        let told = format!("{} entries, {} checkpoints", report.entries, report.checkpoints);
        if report.faults.is_empty() {
            return app.out.line(format!("{GOOD}unbroken{GOOD:#}  {told}"));
        }
        app.out.line(format!("{BAD}broken{BAD:#}  {told}"))?;
        let mut table = Table::new(&["SEQ", "FAULT"]);
        for fault in &report.faults {
            table.push([cell(fault.seq.to_string()), styled(&fault.what, BAD)]);
        }
        app.out.table(&table)
    })?;
    if report.faults.is_empty() {
        return Ok(());
    }
    Err(Failure::new(Exit::Damaged, format!("the audit chain has {} faults", report.faults.len()))
        .hint("somebody or something changed the record; compare with a backup or an export"))
}

async fn export(
    app: &App,
    session: &mut Session<'_>,
    query: AuditQuery,
    out: Option<PathBuf>,
) -> Result {
    let mut sink = Sink::open(out.as_deref())?;
    let spinner = progress::spinner(&app.out, "exporting the audit chain");
    let mut after = Seq::default();
    loop {
        let page = AuditQuery { after, limit: PAGE, newest_first: false, ..query.clone() };
        let entries = session.call::<api::Audit>(page).await?;
        for entry in &entries {
            sink.row(entry)?;
        }
        spinner.inc(entries.len() as u64);
        match entries.last() {
            Some(last) if entries.len() == PAGE => after = last.seq,
            _ => break,
        }
    }
    let (rows, place) = sink.close()?;
    spinner.finish_and_clear();
    app.out.remark(format!("{rows} entries written to {place}"));
    Ok(())
}

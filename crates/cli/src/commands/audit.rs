//! `yore audit`: reads and verifies the audit chain, and keeps copies of it elsewhere.

mod copies;

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
  yore audit export --to /mnt/append-only/audit
  yore audit export --to https://s3.example/bucket/yore --lock-days 365
  yore audit verify --file audit-1-900.ndjson audit-901-950.ndjson --signer did:key:z6Mk…

One entry per attempt, allowed or not, each bound to the one before it by a hash. Entries hold ids,
never text. yore audit verify ends with 8 when the chain is broken.

With --to, what was written since the last such export goes to a directory or to an S3-compatible
bucket as one more file that is never overwritten, and ends with a signature of the vault; in a
bucket it is locked for --lock-days (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION say
who you are). verify --file checks such files without the vault.")]
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
    /// Check every link and signature of the chain, or of copies of it
    Verify {
        /// Check these files, in this order, instead of the vault
        #[arg(long, num_args = 1.., value_name = "FILE")]
        file: Vec<PathBuf>,
        /// Who must have signed them
        #[arg(long, requires = "file", value_name = "DID")]
        signer: Option<String>,
    },
    /// Write entries out, oldest first, one a line
    Export {
        #[command(flatten)]
        which: Which,
        /// The file to write [default: standard output]
        #[arg(long, short, value_name = "FILE")]
        out: Option<PathBuf>,
        /// End with a signature of the vault, which a copy of the whole chain can be checked by
        #[arg(long, conflicts_with = "Which")]
        sign: bool,
        /// A directory or an https address that what is new is added to, signed
        #[arg(long, value_name = "PLACE", conflicts_with_all = ["out", "Which"])]
        to: Option<String>,
        /// For how many days a bucket keeps it from being changed
        #[arg(long, requires = "to", default_value_t = 365, value_name = "N")]
        lock_days: u64,
    },
}

#[derive(Debug, clap::Args)]
#[group(id = "Which", multiple = true)]
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
    if let What::Verify { file, signer } = &args.what
        && !file.is_empty()
    {
        return copies::verify(app, file, signer.as_deref());
    }
    let mut session = app.session().await?;
    match args.what {
        What::List { which, limit } => {
            let query = which.query(app, &mut session).await?;
            let query = AuditQuery { limit: limit.min(PAGE), newest_first: true, ..query };
            let entries = session.call::<api::Audit>(query).await?;
            app.out.either(&entries, |entries| table(app, entries))
        }
        What::Verify { .. } => verify(app, &mut session).await,
        What::Export { to: Some(to), lock_days, .. } => {
            copies::add(app, &mut session, &to, lock_days).await
        }
        What::Export { which, out, sign, .. } => {
            let query = which.query(app, &mut session).await?;
            export(app, &mut session, query, out, sign).await
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
    sign: bool,
) -> Result {
    let mut sink = Sink::open(out.as_deref())?;
    let spinner = progress::spinner(&app.out, "exporting the audit chain");
    let sealed = match sign {
        true => Some(session.call::<api::SealAudit>(Nothing {}).await?),
        false => None,
    };
    let until = sealed.as_ref().map(|sealed| Seq(sealed.checkpoint.seq.0 + 1));
    let query = AuditQuery { before: until.or(query.before), ..query };
    each(session, query, |entry| {
        spinner.inc(1);
        sink.row(entry)
    })
    .await?;
    if let Some(sealed) = &sealed {
        sink.row(sealed)?;
    }
    let (rows, place) = sink.close()?;
    spinner.finish_and_clear();
    app.out.remark(format!("{rows} lines written to {place}"));
    Ok(())
}

/// Goes through entries, oldest first.
async fn each(
    session: &mut Session<'_>,
    query: AuditQuery,
    mut take: impl FnMut(&Entry) -> Result,
) -> Result {
    let mut after = query.after;
    loop {
        let page = AuditQuery { after, limit: PAGE, newest_first: false, ..query.clone() };
        let entries = session.call::<api::Audit>(page).await?;
        for entry in &entries {
            take(entry)?;
        }
        match entries.last() {
            Some(last) if entries.len() == PAGE => after = last.seq,
            _ => return Ok(()),
        }
    }
}

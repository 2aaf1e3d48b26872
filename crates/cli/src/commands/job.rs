//! `yore job`: shows long work and ends it.

use anstyle::Style;
use clap::Subcommand;
use yore_client::{api, input};
use yore_domain::JobId;
use yore_domain::job::{Job, JobState};

use crate::app::{App, Session};
use crate::failure::Result;
use crate::output::{BAD, DIM, GOOD, HEAD, ID, Table, WARN, cell, short, styled};
use crate::{prefix, show};

/// How many jobs are looked through for an id that was cut short.
const RECENT: usize = 1000;

/// Options of `yore job`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  yore job list
  yore job show 41fe
  yore job cancel 41fe

Jobs survive a restart and go on where they were.")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List jobs, newest first
    List {
        /// How many
        #[arg(long, short = 'n', default_value_t = 20, value_name = "N")]
        limit: usize,
    },
    /// Show a job
    Show {
        /// The job
        id: String,
    },
    /// End a job that has not ended
    Cancel {
        /// The job
        id: String,
    },
}

pub(crate) async fn run(app: &App, args: Args) -> Result {
    let mut session = app.session().await?;
    match args.what {
        What::List { limit } => {
            let jobs = session.call::<api::Jobs>(input::Jobs { limit }).await?;
            app.out.either(&jobs, |jobs| table(app, jobs))
        }
        What::Show { id } => {
            let job = find(&mut session, &id).await?;
            let job = session.call::<api::ShowJob>(input::OneJob { job }).await?;
            app.out.either(&job, |job| members(app, job))
        }
        What::Cancel { id } => {
            let job = find(&mut session, &id).await?;
            session.change::<api::CancelJob>(input::OneJob { job }).await?;
            app.out.either(&serde_json::json!({ "cancelled": job }), |_| {
                app.out.line(format!("{GOOD}cancelled{GOOD:#}  {ID}{job}{ID:#}"))
            })
        }
    }
}

async fn find(session: &mut Session<'_>, text: &str) -> Result<JobId> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let jobs = session.call::<api::Jobs>(input::Jobs { limit: RECENT }).await?;
    prefix::one(jobs.iter().map(|job| job.id), text, "yore job list shows them")
}

fn table(app: &App, jobs: &[Job]) -> Result {
    if jobs.is_empty() {
        app.out.remark("there are no jobs");
        return Ok(());
    }
    let mut table = Table::new(&["JOB", "KIND", "STATE", "DONE", "ASKED FOR", "LAST MOVED"]);
    for job in jobs {
        table.push([
            styled(short(job.id), ID),
            cell(&job.kind),
            state(job.state),
            cell(progress(job)),
            cell(app.out.ago(job.created)),
            cell(app.out.ago(job.updated)),
        ]);
    }
    app.out.table(&table)
}

fn members(app: &App, job: &Job) -> Result {
    app.out.line(format!("{HEAD}{ID}{}{ID:#}{HEAD:#}", job.id))?;
    let mut rows = vec![
        ("kind", job.kind.clone()),
        ("state", state(job.state).0),
        ("done", progress(job)),
        ("asked for", app.out.ago(job.created)),
        ("moved", app.out.ago(job.updated)),
    ];
    rows.extend(job.error.clone().map(|error| ("error", error)));
    if !job.report.is_null() {
        rows.push(("report", job.report.to_string()));
    }
    show::members(&app.out, &rows)
}

fn progress(job: &Job) -> String {
    job.total.map_or(job.done.to_string(), |total| format!("{} of {total}", job.done))
}

fn state(state: JobState) -> (String, Style) {
    match state {
        JobState::Queued => styled("queued", DIM),
        JobState::Running => styled("running", WARN),
        JobState::Completed => styled("completed", GOOD),
        JobState::Failed => styled("failed", BAD),
        JobState::Cancelled => styled("cancelled", DIM),
    }
}

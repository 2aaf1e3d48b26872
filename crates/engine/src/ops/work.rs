//! Long work that a protocol does for a caller, as a job that the caller can look at.

use serde_json::{Value, json};
use yore_domain::grant::Verb;
use yore_domain::job::{Job, JobState};
use yore_domain::{Error, JobId, Result};
use yore_policy::Need;
use yore_store::Write;

use crate::call::Call;
use crate::engine::Engine;
use crate::run::{Planned, Session, Trace};

/// What sort of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub enum Work {
    /// Writing an archive of the vault.
    Archive,
    /// Taking an archive in.
    Restore,
    /// Taking in what another platform exported.
    Import,
}

impl Work {
    const fn kind(self) -> &'static str {
        match self {
            Self::Archive => "archive",
            Self::Restore => "restore",
            Self::Import => "import",
        }
    }

    /// What its caller must be allowed.
    const fn verb(self) -> Verb {
        match self {
            Self::Archive => Verb::Export,
            Self::Restore | Self::Import => Verb::Write,
        }
    }

    fn need(self, operation: &'static str) -> Need {
        Need::one(operation, self.verb())
    }
}

impl Engine {
    /// Writes down that work was asked for.
    pub async fn begin_work(&self, call: &Call, work: Work, asked: Value) -> Result<Job> {
        self.change(call, work.need("job.begin"), (work, asked), |_, session, _, input| {
            Box::pin(async move {
                let (work, asked) = input;
                let job = Job {
                    id: JobId::random(),
                    kind: work.kind().to_owned(),
                    state: JobState::Queued,
                    input: json!({"by": session.namespace(), "asked": asked}),
                    checkpoint: Value::Null,
                    report: Value::Null,
                    done: 0,
                    total: None,
                    error: None,
                    created: session.now,
                    updated: session.now,
                };
                let trace = Trace::default().with("job", job.id.to_string());
                let writes = vec![Write::Job(Box::new(job.clone()))];
                Ok(Planned::done(job, writes).traced(trace))
            })
        })
        .await
    }

    /// Writes down how far work has come. Work that ended stays as it is.
    pub async fn move_work(&self, call: &Call, work: Work, job: Job) -> Result<()> {
        // Each step is a change of its own, whatever id the client gave the first.
        let call = Call { operation: None, ..self.renewed(call) };
        self.change(&call, work.need("job.move"), (work, job), |_, session, snapshot, input| {
            Box::pin(async move {
                let (work, job) = input;
                let known = snapshot.job(job.id).await?;
                let known = known.filter(|known| is_own(session, *work, known));
                if known.ok_or(Error::NotFound)?.state.is_final() {
                    return Err(Error::conflict("the job has ended already"));
                }
                let trace = Trace::default().with("job", job.id.to_string());
                let moved = Job { updated: session.now, ..job.clone() };
                Ok(Planned::done((), vec![Write::Job(Box::new(moved))]).traced(trace))
            })
        })
        .await
    }

    /// Returns work that this caller asked for.
    pub async fn work_named(&self, call: &Call, work: Work, job: JobId) -> Result<Job> {
        self.look(call, work.need("job.look"), (work, job), |_, session, snapshot, input| {
            Box::pin(async move {
                let (work, id) = input;
                let job = snapshot.job(*id).await?;
                let job = job.filter(|job| is_own(session, *work, job)).ok_or(Error::NotFound)?;
                Ok((job, Trace::default().with("job", id.to_string())))
            })
        })
        .await
    }
}

/// Whether this caller asked for it; nobody else learns that it exists.
fn is_own(session: &Session, work: Work, job: &Job) -> bool {
    job.kind == work.kind() && job.input.get("by") == Some(&json!(session.namespace()))
}

//! Long work that a protocol does for a caller, as a job that the caller can look at.

use std::time::Duration;

use serde_json::{Value, json};
use yore_domain::grant::Verb;
use yore_domain::job::{Job, JobState};
use yore_domain::{Error, GrantId, JobId, Result, VaultId, limits};
use yore_policy::Need;
use yore_store::Write;

use crate::background::PROTOCOL;
use crate::call::{Call, VaultRef};
use crate::engine::Engine;
use crate::run::{Planned, Session, Trace};
use crate::token;

/// How long a server that says nothing more has a job: another one may take it up afterwards.
const HELD: Duration = Duration::from_secs(600);

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
    const ALL: [Self; 2] = [Self::Archive, Self::Restore];

    pub(crate) const fn kind(self) -> &'static str {
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
        self.change(call, work.need("job.begin"), (work, asked), |engine, session, _, input| {
            Box::pin(async move {
                let (work, asked) = input;
                let job = Job {
                    id: JobId::random(),
                    kind: work.kind().to_owned(),
                    state: JobState::Queued,
                    input: json!({
                        "by": session.namespace(),
                        "grants": grants_of(session),
                        "asked": asked,
                    }),
                    checkpoint: Value::Null,
                    report: Value::Null,
                    done: 0,
                    total: None,
                    error: None,
                    created: session.now,
                    updated: session.now,
                };
                engine.takes(session.permit.vault(), &leased(job.id), HELD).await?;
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
        self.change(&call, work.need("job.move"), (work, job), |engine, session, _, input| {
            Box::pin(async move {
                let (work, job) = input;
                if engine.own_job(session, *work, job.id).await?.state.is_final() {
                    return Err(Error::conflict("the job has ended already"));
                }
                if !engine.takes(session.permit.vault(), &leased(job.id), HELD).await? {
                    return Err(Error::conflict("another server has taken the job up"));
                }
                let trace = Trace::default().with("job", job.id.to_string());
                let moved = Job { updated: session.now, ..job.clone() };
                Ok(Planned::done((), vec![Write::Job(Box::new(moved))]).traced(trace))
            })
        })
        .await
    }

    /// A job that this caller asked for. Agents see no jobs, so the server looks for them.
    async fn own_job(&self, session: &Session, work: Work, id: JobId) -> Result<Job> {
        let permit = self.system(session.permit.vault(), "look for a job")?;
        let job = self.store().snapshot(&permit).await?.job(id).await?;
        job.filter(|job| is_own(session, work, job)).ok_or(Error::NotFound)
    }

    /// Lists work that was under way when the server ended, oldest first, each with a call that
    /// is what its asker was, as far as that still holds.
    pub async fn unfinished_work(&self) -> Result<Vec<(Work, Job, Call)>> {
        let mut found = Vec::new();
        for vault in self.all_vaults().await? {
            let permit = self.system(vault, "look for unfinished work")?;
            let snapshot = self.store().snapshot(&permit).await?;
            for job in snapshot.jobs(limits::PAGE).await? {
                let work = Work::ALL.into_iter().find(|work| work.kind() == job.kind);
                let Some(work) = work.filter(|_| !job.state.is_final()) else { continue };
                // Another server may be at it.
                if !self.takes(vault, &leased(job.id), HELD).await? {
                    continue;
                }
                let call = self.taken_up(vault, &job);
                found.push((work, job, call));
            }
        }
        found.sort_by_key(|(_, job, _)| job.created);
        Ok(found)
    }

    /// Writes down that unfinished work will not go on, whatever became of its asker.
    pub async fn abandon_work(&self, vault: VaultRef, job: Job) -> Result<()> {
        let VaultRef::Id(vault) = vault else { return Err(Error::NotFound) };
        let permit = self.system(vault, "give up unfinished work")?;
        let trace = Trace::default().with("job", job.id.to_string());
        let moved = Job { updated: self.now(), ..job };
        let write = Write::Job(Box::new(moved));
        self.commit_own(&permit, vec![write], Vec::new(), trace).await.map(drop)
    }

    /// A call on behalf of whoever asked for a job: no more than its grants allow now. One that
    /// an agent asked for under a grant that is not kept here is refused.
    fn taken_up(&self, vault: VaultId, job: &Job) -> Call {
        let grants = job.input.get("grants").cloned().unwrap_or_default();
        let by_agent = job.input.get("by").is_none_or(|by| *by != json!(""));
        let mut grants: Vec<GrantId> = serde_json::from_value(grants).unwrap_or_default();
        if by_agent && grants.is_empty() {
            grants.push(GrantId::from_bytes([0; 16]));
        }
        let proof = token::proof(&self.0.parts.local_key, self.now());
        let mut call = Call { vault: VaultRef::Id(vault), ..Call::bearer(PROTOCOL, proof) };
        call.credentials.taken_up = grants;
        call
    }

    /// Returns work that this caller asked for.
    pub async fn work_named(&self, call: &Call, work: Work, job: JobId) -> Result<Job> {
        self.look(call, work.need("job.look"), (work, job), |engine, session, _, input| {
            Box::pin(async move {
                let (work, id) = input;
                let job = engine.own_job(session, *work, *id).await?;
                Ok((job, Trace::default().with("job", id.to_string())))
            })
        })
        .await
    }
}

/// What a job is called among servers.
fn leased(job: JobId) -> String {
    format!("job {job}")
}

/// The grants a caller acts under.
fn grants_of(session: &Session) -> Vec<GrantId> {
    session.permit.principal().grants().iter().map(|grant| grant.id).collect()
}

/// Whether this caller asked for it; nobody else learns that it exists.
fn is_own(session: &Session, work: Work, job: &Job) -> bool {
    job.kind == work.kind() && job.input.get("by") == Some(&json!(session.namespace()))
}

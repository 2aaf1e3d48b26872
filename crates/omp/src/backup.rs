//! Backup: an archive of the vault, written by a job and fetched when it is done.

use std::io::BufWriter;
use std::path::PathBuf;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use yore_archive::omp::{self, Manifest};
use yore_domain::grant::Verb;
use yore_domain::job::{Job, JobState};
use yore_domain::query::Filter;
use yore_domain::{Error, JobId, Timestamp};
use yore_engine::{Call, Identity, Part, Takeout, Work};

use crate::Omp;
use crate::error::{Refusal, Result};
use crate::map::Object;
use crate::params::Params;
use crate::routes::Asking;
use crate::running::Running;
use crate::spool::{Kept, kept_until};

/// What waits between the vault and the archive.
const WAITING: usize = 4;

/// An archive that is ready to be fetched.
pub(crate) struct Ready {
    pub(crate) kept: Kept,
    /// The name to save it under.
    pub(crate) name: String,
}

impl Omp {
    /// Begins a backup.
    pub(crate) async fn backup(&self, asking: &Asking, asked: &Object) -> Result<JobId> {
        let call = &asking.call;
        self.spool()?;
        if asked.contains_key("destination") {
            return Err(Refusal::invalid("destination", "only downloads are offered"));
        }
        let password = match asked.get("password") {
            None | Some(Value::Null) => None,
            Some(Value::String(password)) if !password.is_empty() => Some(password.clone()),
            Some(_) => return Err(Refusal::invalid("password", "must be a text")),
        };
        let filter = Params::members(asked.get("filter"))?.filter()?;
        let identity = self.engine.identify(call, Verb::Export).await?;
        let said = json!({"filter": filter, "sealed": password.is_some()});
        let job = self.engine.begin_work(call, Work::Archive, said).await?;
        let (omp, call, id) = (self.clone(), call.clone(), job.id);
        self.running.begin(id);
        tokio::spawn(async move {
            omp.carry_out_backup(&call, &identity, job, filter, password).await;
            omp.running.end(id);
        });
        Ok(id)
    }

    /// Begins a backup anew that was cut off. One under a password of the user's is given up: the
    /// password is kept nowhere.
    pub(crate) async fn resume_backup(&self, call: Call, job: Job) {
        let asked = &job.input["asked"];
        let filter = serde_json::from_value::<Filter>(asked["filter"].clone());
        let identity = self.engine.identify(&call, Verb::Export).await;
        let (false, Ok(filter), Ok(identity), Ok(spool)) =
            (asked["sealed"] == true, filter, identity, self.spool())
        else {
            return self.give_up(call.vault, job).await;
        };
        spool.remove(&job);
        let (omp, id) = (self.clone(), job.id);
        self.running.begin(id);
        tokio::spawn(async move {
            omp.carry_out_backup(&call, &identity, job, filter, None).await;
            omp.running.end(id);
        });
    }

    async fn carry_out_backup(
        &self,
        call: &Call,
        identity: &Identity,
        mut job: Job,
        filter: Filter,
        password: Option<String>,
    ) {
        let own = password.is_none();
        let password = password.unwrap_or_else(|| self.spool_password(identity, job.id));
        let written = self.written(call, &mut job, filter, password).await;
        if written.is_err() && self.running.is_halted() {
            return;
        }
        match written {
            Ok((manifest, size)) => {
                job.state = JobState::Completed;
                job.report = json!({
                    "counts": manifest.counts,
                    "checksum": manifest.checksum,
                    "size_bytes": size,
                    "expires_at": kept_until(&job).to_string(),
                    "own": own,
                });
            }
            Err(refusal) => {
                job.state = JobState::Failed;
                job.error = Some(refusal.message);
                if let Ok(spool) = self.spool() {
                    spool.remove(&job);
                }
            }
        }
        if let Err(error) = self.engine.move_work(call, Work::Archive, job).await {
            tracing::warn!(%error, "the end of a backup could not be written down");
        }
    }

    /// Writes the archive. Reading the vault and packing run beside each other.
    async fn written(
        &self,
        call: &Call,
        job: &mut Job,
        filter: Filter,
        password: String,
    ) -> Result<(Manifest, u64)> {
        let takeout = self.engine.takeout(call, filter).await?;
        let contents = &takeout.contents;
        let total = contents.blobs.len() + contents.conversations.len() + contents.memories.len();
        job.state = JobState::Running;
        job.total = Some(total as u64);
        self.engine.move_work(call, Work::Archive, job.clone()).await?;
        let spool = self.spool()?;
        let file = spool.create(job, self.engine.now()).map_err(Error::internal)?;
        // The time of the archive is that of the newest thing in it: the same content, the same
        // bytes.
        let latest = contents.latest.unwrap_or(Timestamp::from_micros(0));
        let (sender, receiver) = mpsc::channel(WAITING);
        let packed = tokio::task::spawn_blocking(move || pack(file, latest, &password, receiver));
        // A writer that ended early says itself why.
        let fed = feed(&takeout, &sender, &self.running).await;
        drop(sender);
        let manifest = packed.await.map_err(Error::internal)??;
        fed?;
        job.done = total as u64;
        let size = std::fs::metadata(spool.path(job)).map_err(Error::internal)?.len();
        Ok((manifest, size))
    }

    /// The password under which an archive waits: it follows from the server's key.
    pub(crate) fn spool_password(&self, identity: &Identity, job: JobId) -> String {
        yore_canon::encode::hex(&self.engine.stamp(identity, "spool", &job.bytes()))
    }

    /// Says how a backup stands.
    pub(crate) async fn backup_state(&self, asking: &Asking, id: &str) -> Result<Value> {
        let (job, running) = self.job(asking, Work::Archive, id).await?;
        let mut state = state_of(&job, running);
        if job.state == JobState::Completed {
            for name in ["counts", "checksum", "size_bytes", "expires_at"] {
                state[name] = job.report[name].clone();
            }
            let path = format!("{}/download", job.id);
            state["download_url"] = asking.links.path("backup", path).into();
        }
        Ok(state)
    }

    /// Opens the archive of a backup that is done and not too old.
    pub(crate) async fn backup_archive(&self, asking: &Asking, id: &str) -> Result<Ready> {
        let (job, _) = self.job(asking, Work::Archive, id).await?;
        if job.state != JobState::Completed {
            return Err(Refusal::new(409, "conflict", "the backup is not complete"));
        }
        let path: PathBuf = self.spool()?.path(&job);
        if self.engine.now() > kept_until(&job) || !path.exists() {
            return Err(Error::NotFound.into());
        }
        let identity = self.engine.identify(&asking.call, Verb::Export).await?;
        let own = job.report["own"] == true;
        let password = own.then(|| self.spool_password(&identity, job.id));
        let kept = tokio::task::spawn_blocking(move || Kept::open(&path, password.as_deref()));
        let kept = kept.await.map_err(Error::internal)??;
        let ending = if own { "omp.zip" } else { "omp.zip.enc" };
        Ok(Ready { kept, name: format!("yore-{}.{ending}", job.id) })
    }

    /// A job that this caller asked for, and whether it was under way when it was asked about.
    pub(crate) async fn job(&self, asking: &Asking, work: Work, id: &str) -> Result<(Job, bool)> {
        let id: JobId = id.parse().map_err(|_| Error::NotFound)?;
        // What ends between the two looks is then found to have ended.
        let running = self.running.has(id);
        Ok((self.engine.work_named(&asking.call, work, id).await?, running))
    }
}

/// What is said of a job that stops because the server does.
pub(crate) fn stopped() -> Refusal {
    Refusal::new(503, "unavailable", "the server is ending")
}

/// How a job stands. One that the end of a server cut off waits until a server goes on with it.
pub(crate) fn state_of(job: &Job, running: bool) -> Value {
    let status = match job.state {
        JobState::Running if running => "running",
        JobState::Queued | JobState::Running => "queued",
        JobState::Completed => "completed",
        JobState::Failed | JobState::Cancelled => "failed",
    };
    let progress = match (job.state, job.total) {
        (JobState::Completed, _) => 100,
        (_, Some(total @ 1..)) => job.done.saturating_mul(100) / total,
        (_, Some(0) | None) => 0,
    };
    let mut state = json!({"job_id": job.id, "status": status, "progress": progress});
    if let Some(error) = &job.error {
        state["error"] = error.as_str().into();
    }
    state
}

/// Hands everything over in the order of the archive.
async fn feed(takeout: &Takeout, sender: &mpsc::Sender<Part>, running: &Running) -> Result<()> {
    for step in takeout.steps(omp::entry_id) {
        if running.is_halted() {
            return Err(stopped());
        }
        let Some(part) = takeout.take(step).await? else { continue };
        if sender.send(part).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// Packs what comes into an archive under a password.
fn pack(
    file: std::fs::File,
    latest: Timestamp,
    password: &str,
    mut parts: mpsc::Receiver<Part>,
) -> yore_archive::Result<Manifest> {
    let sealer = omp::seal(BufWriter::new(file), password)?;
    let mut writer = omp::Writer::new(sealer, latest, None);
    while let Some(part) = parts.blocking_recv() {
        match part {
            Part::Attachment(blob, media_type, bytes) => {
                writer.attachment(blob, &media_type, &mut bytes.as_slice())?;
            }
            Part::Talk(talk) => writer.conversation(&talk.head, &talk.messages)?,
            Part::Memory(versions) => {
                if let (Some(first), Some(last)) = (versions.first(), versions.last()) {
                    writer.memory(last, first.time.created)?;
                }
            }
        }
    }
    let (sealer, manifest) = writer.finish()?;
    sealer.finish()?;
    Ok(manifest)
}

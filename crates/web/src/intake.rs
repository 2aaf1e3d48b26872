//! Taking in what other platforms exported: a file that was uploaded becomes a job that reads it.
//!
//! The file lies in the spool while it is read, encrypted under a key of its own that is nowhere
//! but in the memory of this process, in a directory that only the server's user may open, and is
//! removed when the job ends; one that was only looked through waits an hour for its owner to bring
//! it in. An archive under a password of its owner's is kept as it came. What came in before is told by its
//! fingerprint, so an import that was cut off is simply made again.

pub(crate) mod aside;
mod tray;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use yore_archive::{Limits, Report, Skip, Source, connector};
use yore_domain::job::{Job, JobState};
use yore_domain::{Error, JobId, Result};
use yore_engine::{Call, Engine, Work};
use zeroize::Zeroizing;

use self::tray::Tray;

/// Conversations that wait between the reader and the vault.
const WAITING: usize = 2;
/// How many faults a report lists.
const FAULTS: usize = 200;
/// How long a file that was only looked through may be brought in.
const KEPT: Duration = Duration::from_secs(3600);
/// What the directories of uploads begin with.
const PREFIX: &str = "import-";

/// What is to be read, and how.
#[derive(Debug)]
pub(crate) struct Order {
    /// The file, alone in its directory.
    pub(crate) file: PathBuf,
    /// The key under which it was put aside; none where it came under a password.
    pub(crate) key: Option<Arc<Zeroizing<[u8; 32]>>>,
    /// The password of an archive that has one.
    pub(crate) password: Option<String>,
    /// Whether it is only said what would come in.
    pub(crate) dry_run: bool,
    /// Whether things to remember are drawn from what was said.
    pub(crate) draws: bool,
}

/// What became of what a file holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub(crate) platforms: BTreeMap<String, u64>,
    pub(crate) conversations: u64,
    pub(crate) messages: u64,
    pub(crate) memories: u64,
    pub(crate) attachments: u64,
    pub(crate) imported: u64,
    pub(crate) merged: u64,
    pub(crate) duplicates: u64,
    /// What was erased here and stays so.
    pub(crate) erased: u64,
    pub(crate) held: u64,
    pub(crate) proposed: u64,
    /// What was turned down or could not be read, with the reason.
    pub(crate) faults: Vec<(String, String)>,
    /// How many more faults there are.
    pub(crate) more_faults: u64,
    pub(crate) dry_run: bool,
}

impl Summary {
    fn fault(&mut self, what: String, reason: String) {
        if self.faults.len() < FAULTS {
            self.faults.push((what, reason));
        } else {
            self.more_faults += 1;
        }
    }

    fn read(&mut self, report: Report) {
        self.platforms = report.platforms;
        self.conversations = report.conversations;
        self.messages = report.messages + report.branch_messages;
        self.memories = report.memories;
        for Skip { path, what, reason } in report.skipped {
            let what = what.map_or_else(|| path.clone(), |what| format!("{path}: {what}"));
            self.fault(what, reason);
        }
    }
}

/// How far an import has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    pub(crate) read: u64,
    pub(crate) total: u64,
    pub(crate) found: u64,
}

/// The imports that are under way in this process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Intakes(Arc<Mutex<Desk>>);

#[derive(Debug, Default)]
struct Desk {
    running: HashMap<JobId, Progress>,
    /// Files that were only looked through, and may be brought in yet.
    waiting: HashMap<JobId, Order>,
}

impl Desk {
    fn has(&self, job: JobId) -> bool {
        self.running.contains_key(&job) || self.waiting.contains_key(&job)
    }
}

impl Intakes {
    /// How far an import has come; nothing when it is not under way.
    pub(crate) fn progress(&self, job: JobId) -> Option<Progress> {
        self.0.lock().running.get(&job).copied()
    }

    /// Whether the file of an import that was only tried is still here.
    pub(crate) fn waits(&self, job: JobId) -> bool {
        self.0.lock().waiting.contains_key(&job)
    }

    /// Takes the file of an import that was only tried, to bring it in under another job.
    pub(crate) fn claim(&self, job: JobId, next: JobId) -> std::io::Result<Option<Order>> {
        let mut desk = self.0.lock();
        let Some(order) = desk.waiting.remove(&job) else { return Ok(None) };
        let (Some(room), Some(name)) = (order.file.parent(), order.file.file_name()) else {
            return Ok(None);
        };
        let fresh = room.with_file_name(format!("{PREFIX}{next}"));
        let file = fresh.join(name);
        desk.running.insert(next, Progress::default());
        std::fs::rename(room, fresh)?;
        Ok(Some(Order { file, dry_run: false, ..order }))
    }

    /// Keeps the file of an import that was tried for a while.
    fn keep(&self, job: JobId, order: Order) {
        self.0.lock().waiting.insert(job, order);
        let desk = Arc::clone(&self.0);
        tokio::spawn(async move {
            tokio::time::sleep(KEPT).await;
            let order = desk.lock().waiting.remove(&job);
            if let Some(room) = order.as_ref().and_then(|order| order.file.parent()) {
                // What cannot be removed now goes before the next import.
                let _ = std::fs::remove_dir_all(room);
            }
        });
    }

    /// Makes a directory for the file of a job, and removes those that nobody reads any more.
    pub(crate) fn room(&self, spool: &Path, job: JobId) -> std::io::Result<PathBuf> {
        std::fs::create_dir_all(spool)?;
        for entry in std::fs::read_dir(spool)? {
            let entry = entry?;
            let name = entry.file_name();
            let named = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
            let left = named.and_then(|id| id.parse::<JobId>().ok());
            if left.is_some_and(|id| !self.0.lock().has(id)) {
                // Somebody else may have been quicker; what stays is tried again the next time.
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
        let room = spool.join(format!("{PREFIX}{job}"));
        self.0.lock().running.insert(job, Progress::default());
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&room)?;
        Ok(room)
    }

    /// Gives an import up before it is read.
    pub(crate) async fn fail(&self, engine: &Engine, call: &Call, job: Job, error: &Error) {
        self.end(engine, call, job, None, Err(error.to_string())).await;
    }

    /// Reads a file into the vault, and writes down how that ended.
    pub(crate) async fn run(self, engine: Engine, call: Call, mut job: Job, order: Order) {
        let done = self.carry_out(&engine, &call, &mut job, &order).await;
        let done = done.map_err(|error| error.to_string());
        if order.dry_run && done.is_ok() {
            self.keep(job.id, order);
            return self.end(&engine, &call, job, None, done).await;
        }
        self.end(&engine, &call, job, order.file.parent(), done).await;
    }

    async fn end(
        &self,
        engine: &Engine,
        call: &Call,
        mut job: Job,
        room: Option<&Path>,
        done: std::result::Result<Summary, String>,
    ) {
        if let Some(room) = room {
            // What cannot be removed now goes before the next import.
            let _ = std::fs::remove_dir_all(room);
        }
        match done {
            Ok(summary) => {
                job.state = JobState::Completed;
                job.done = job.total.unwrap_or(job.done);
                job.report = serde_json::to_value(summary).unwrap_or_default();
            }
            Err(reason) => {
                job.state = JobState::Failed;
                job.error = Some(reason);
            }
        }
        let id = job.id;
        if let Err(error) = engine.move_work(call, Work::Import, job).await {
            tracing::warn!(code = error.code(), "the end of an import could not be written down");
        }
        self.0.lock().running.remove(&id);
    }

    async fn carry_out(
        &self,
        engine: &Engine,
        call: &Call,
        job: &mut Job,
        order: &Order,
    ) -> Result<Summary> {
        let (sender, mut items) = mpsc::channel(WAITING);
        let (opened, begun) = oneshot::channel();
        let (file, key, password) = (order.file.clone(), order.key.clone(), order.password.clone());
        let reader = tokio::task::spawn_blocking(move || {
            let source = match key {
                Some(key) => {
                    let name = file.file_name().unwrap_or_default().to_string_lossy();
                    Source::open_put_aside(&file, &key, &name, Limits::default())?
                }
                None => Source::open(std::slice::from_ref(&file), Limits::default())?,
            };
            let source = match password {
                Some(password) => source.with_password(password),
                None => source,
            };
            let restored = source.files().iter().all(|file| connector::detect(file) == Some("omp"));
            // Nobody waits for it only if the import was given up.
            let _ = opened.send((source.total(), source.progress(), restored));
            yore_archive::read(&source, &mut |item| {
                let stopped = |_| yore_archive::Error::Stopped("nobody takes it".to_owned());
                sender.blocking_send(item).map_err(stopped)
            })
        });
        let unreadable = |error: yore_archive::Error| Error::invalid("the file", error.to_string());
        let Ok((total, read, restored)) = begun.await else {
            reader.await.map_err(Error::internal)?.map_err(unreadable)?;
            return Err(Error::internal("a file was given up"));
        };
        job.state = JobState::Running;
        job.total = Some(total);
        engine.move_work(call, Work::Import, job.clone()).await?;
        // An archive has the memories that were drawn from its conversations.
        let mut tray = Tray::new(engine, call, order.dry_run, order.draws && !restored);
        let mut found = 0;
        while let Some(item) = items.recv().await {
            tray.take(item).await?;
            found += 1;
            let progress = Progress { read: read.load(Ordering::Relaxed), total, found };
            self.0.lock().running.insert(job.id, progress);
        }
        let report = reader.await.map_err(Error::internal)?.map_err(unreadable)?;
        let mut summary = tray.finish().await?;
        if report.conversations == 0 && report.memories == 0 {
            let reason = report.skipped.first().map(|skip| skip.reason.as_str());
            return Err(Error::invalid("the file", reason.unwrap_or("no known export")));
        }
        summary.read(report);
        Ok(summary)
    }
}

/// The name of an uploaded file, made plain: only how it ends may matter to a reader.
pub(crate) fn plain_name(given: &str) -> String {
    let last = given.rsplit(['/', '\\']).next().unwrap_or_default();
    let kept = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let name: String = last.chars().rev().take(80).map(kept).collect();
    let name: String = name.chars().rev().collect();
    let name = name.trim_start_matches('.');
    if name.is_empty() { "upload".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere() {
        assert_eq!(plain_name("chatgpt export.zip"), "chatgpt_export.zip");
        assert_eq!(plain_name("../../etc/passwd"), "passwd");
        assert_eq!(plain_name("C:\\x\\..\\a.json"), "a.json");
        assert_eq!(plain_name(".."), "upload");
        assert_eq!(plain_name(""), "upload");
        assert_eq!(plain_name(&"a".repeat(500)).len(), 80);
    }

    #[test]
    fn what_nobody_reads_is_removed_and_what_is_read_stays() {
        let place = tempfile::tempdir().unwrap();
        let (old, new) = (Intakes::default(), Intakes::default());
        let (first, second, third) = (JobId::random(), JobId::random(), JobId::random());
        let left = old.room(place.path(), first).unwrap();
        std::fs::create_dir(place.path().join("kept")).unwrap();
        let read = new.room(place.path(), second).unwrap();
        assert!(!left.exists() && read.exists());
        new.room(place.path(), third).unwrap();
        assert!(read.exists() && place.path().join("kept").exists());
    }
}

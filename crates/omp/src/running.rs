//! Which jobs this server is at, and whether it is about to end.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use yore_domain::JobId;

/// How long the end of a server waits for jobs to stop, and how often it looks.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);

/// The jobs that somebody works on. One that is not among them and has not ended was cut off.
#[derive(Clone, Debug, Default)]
pub(crate) struct Running(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    jobs: Mutex<HashSet<JobId>>,
    halted: AtomicBool,
}

impl Running {
    pub(crate) fn begin(&self, job: JobId) {
        self.0.jobs.lock().insert(job);
    }

    pub(crate) fn end(&self, job: JobId) {
        self.0.jobs.lock().remove(&job);
    }

    pub(crate) fn has(&self, job: JobId) -> bool {
        self.0.jobs.lock().contains(&job)
    }

    /// Whether the server is about to end: jobs stop where they are, for the next one to go on.
    pub(crate) fn is_halted(&self) -> bool {
        self.0.halted.load(Ordering::SeqCst)
    }

    /// Tells all jobs to stop and waits until they have.
    pub(crate) async fn halt(&self) {
        self.0.halted.store(true, Ordering::SeqCst);
        let stopped = async {
            while !self.0.jobs.lock().is_empty() {
                tokio::time::sleep(LOOK).await;
            }
        };
        if tokio::time::timeout(PATIENCE, stopped).await.is_err() {
            tracing::warn!("some jobs did not stop in time; they go on at the next start");
        }
    }
}

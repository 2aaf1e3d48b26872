//! Which jobs this server is at.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use yore_domain::JobId;

/// The jobs that somebody works on. One that is not among them and has not ended was cut off.
#[derive(Clone, Debug, Default)]
pub(crate) struct Running(Arc<Mutex<HashSet<JobId>>>);

impl Running {
    pub(crate) fn begin(&self, job: JobId) {
        self.0.lock().insert(job);
    }

    pub(crate) fn end(&self, job: JobId) {
        self.0.lock().remove(&job);
    }

    pub(crate) fn has(&self, job: JobId) -> bool {
        self.0.lock().contains(&job)
    }
}

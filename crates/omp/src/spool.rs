//! Archives on the server's disk: each encrypted under a password of its own, for a week.
//!
//! The password of an archive that the server writes follows from a key that lies outside the
//! data directory, so nothing has to be kept. An archive under the user's own password is kept
//! as it is.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use yore_archive::omp::Sealed;
use yore_domain::job::Job;
use yore_domain::{Span, Timestamp};

/// How long an archive is kept.
const LIFE: Span = Span::days(7);
/// How the name of a file ends.
const ENDING: &str = ".omp.zip.enc";

/// Returns until when the archive of a job is kept.
pub(crate) fn kept_until(job: &Job) -> Timestamp {
    job.created.plus(LIFE)
}

/// The directory of archives. The name of a file says until when it is kept.
#[derive(Clone, Debug)]
pub(crate) struct Spool {
    directory: PathBuf,
}

impl Spool {
    pub(crate) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// Where the archive of a job lies.
    pub(crate) fn path(&self, job: &Job) -> PathBuf {
        self.directory.join(format!("{}-{}{ENDING}", job.id, kept_until(job).micros()))
    }

    /// Makes the file of a job, which only the server's user may read, after removing what is
    /// too old.
    pub(crate) fn create(&self, job: &Job, now: Timestamp) -> io::Result<File> {
        std::fs::create_dir_all(&self.directory)?;
        self.sweep(now)?;
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(self.path(job))
    }

    /// Removes the archive of a job, if it is there.
    pub(crate) fn remove(&self, job: &Job) {
        // What cannot be removed now is swept later.
        let _ = std::fs::remove_file(self.path(job));
    }

    fn sweep(&self, now: Timestamp) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.directory)? {
            let path = entry?.path();
            if kept_by_name(&path).is_some_and(|until| until < now) {
                // Somebody else may have been quicker; what stays is tried again the next time.
                let _ = std::fs::remove_file(path);
            }
        }
        Ok(())
    }
}

/// Until when a file is kept, by its name.
fn kept_by_name(path: &Path) -> Option<Timestamp> {
    let name = path.file_name()?.to_str()?.strip_suffix(ENDING)?;
    let (_, micros) = name.rsplit_once('-')?;
    Some(Timestamp::from_micros(micros.parse().ok()?))
}

/// An archive that is read from any place.
#[derive(Debug)]
pub(crate) enum Kept {
    /// Under the server's password: what is read is the archive.
    Opened(Box<Sealed>),
    /// Under the user's password: what is read is the file.
    AsItIs(File, u64),
}

impl Kept {
    pub(crate) fn open(path: &Path, password: Option<&str>) -> yore_archive::Result<Self> {
        let failed = |source| yore_archive::Error::Io { path: "archive".to_owned(), source };
        match password {
            Some(password) => Ok(Self::Opened(Box::new(Sealed::open(path, password, None)?))),
            None => {
                let file = File::open(path).map_err(failed)?;
                let length = file.metadata().map_err(failed)?.len();
                Ok(Self::AsItIs(file, length))
            }
        }
    }

    pub(crate) fn length(&self) -> u64 {
        match self {
            Self::Opened(sealed) => sealed.length(),
            Self::AsItIs(_, length) => *length,
        }
    }

    /// Reads some bytes from a place on; none at the end.
    pub(crate) fn piece(&mut self, at: u64, most: usize) -> io::Result<Vec<u8>> {
        let mut piece = vec![0; most];
        let count = match self {
            Self::Opened(sealed) => sealed.read_at(&mut piece, at)?,
            Self::AsItIs(file, _) => {
                file.seek(SeekFrom::Start(at))?;
                file.read(&mut piece)?
            }
        };
        piece.truncate(count);
        Ok(piece)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use yore_domain::JobId;
    use yore_domain::job::JobState;

    use super::*;

    fn job(created: Timestamp) -> Job {
        Job {
            id: JobId::random(),
            kind: "archive".into(),
            state: JobState::Queued,
            input: Value::Null,
            checkpoint: Value::Null,
            report: Value::Null,
            done: 0,
            total: None,
            error: None,
            created,
            updated: created,
        }
    }

    #[test]
    fn what_is_older_than_a_week_goes_when_something_new_comes() {
        let place = tempfile::tempdir().unwrap();
        let spool = Spool::new(&place.path().join("spool"));
        let start = Timestamp::from_millis(1_800_000_000_000);
        let after = |days| start.plus(Span::days(days));
        let (old, new) = (job(start), job(after(3)));
        spool.create(&old, start).unwrap();
        spool.create(&new, after(7)).unwrap();
        assert!(spool.path(&old).exists(), "young enough");
        spool.create(&job(after(8)), after(8)).unwrap();
        assert!(!spool.path(&old).exists() && spool.path(&new).exists());
        spool.remove(&new);
        assert!(!spool.path(&new).exists());
    }
}

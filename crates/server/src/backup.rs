//! Copies that a server makes by itself: daily, weekly or monthly, into a folder, and from there into
//! a bucket, by mail and through a command.
//!
//! Whether one is due is read from the folder, so a server that was off makes up for it when it
//! starts. Old copies go by number, and earlier when something was erased since: what was erased
//! is in no copy after thirty days.

mod deliver;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use yore_domain::{Result as DomainResult, Span, Timestamp, VaultId};
use yore_engine::{Call, Clock, Engine, Schedule, VaultRef};

use crate::bucket::Bucket;
use crate::error::{Error, Result};
use crate::mail::Mail;
use crate::place;

pub use deliver::{Deliveries, Delivery, Failed, deliveries};

pub use yore_engine::Every;

/// How often it is looked whether a copy is due.
const LOOK: Duration = Duration::from_secs(600);
/// In how many days a copy must be gone that holds what was erased; one less than is promised.
const GRACE: Span = Span::days(29);
const ENDING: &str = ".yore";

/// What the operator wants of copies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Backups {
    /// How often: `daily`, `weekly`, `monthly` or `off`. Default: off.
    pub every: Every,
    /// The folder. Default: `backups` in the data directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<PathBuf>,
    /// How many copies of a vault are kept. Default: 7.
    pub keep: usize,
    /// A command that the shell runs after each copy; `YORE_BACKUP_FILE` names the copy, which is
    /// also its input. Run again later when it fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// An S3-compatible bucket that copies go to, as `https://host/bucket/prefix`. The keys are
    /// `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, the region is `AWS_REGION`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// Whom copies are sent to by mail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mail: Option<Mail>,
}

impl Default for Backups {
    fn default() -> Self {
        Self { every: Every::Off, to: None, keep: 7, command: None, bucket: None, mail: None }
    }
}

impl Backups {
    /// Where the copies of a data directory go.
    #[must_use]
    pub fn folder(&self, data: &Path) -> PathBuf {
        self.to.clone().unwrap_or_else(|| place::backups(data))
    }

    /// Refuses what could not work.
    pub fn check(&self) -> Result<()> {
        if self.keep == 0 {
            return Err(Error::Config("backup.keep must be at least 1".into()));
        }
        if self.to.as_ref().is_some_and(|to| !to.is_absolute()) {
            return Err(Error::Config("backup.to must be an absolute path".into()));
        }
        if let Some(bucket) = &self.bucket {
            let wrong = |error| Error::Config(format!("backup.bucket: {error}"));
            Bucket::check(bucket).map_err(wrong)?;
        }
        if let Some(mail) = &self.mail {
            mail.check()?;
        }
        Ok(())
    }
}

/// A copy in the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Where it lies.
    pub path: PathBuf,
    /// Whose it is.
    pub vault: VaultId,
    /// When it was made.
    pub made: Timestamp,
}

impl Copy {
    pub(crate) fn name(vault: VaultId, made: Timestamp) -> String {
        format!("yore-{vault}-{}{ENDING}", made.micros())
    }

    pub(crate) fn at(path: PathBuf) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let (vault, made) = name.strip_prefix("yore-")?.strip_suffix(ENDING)?.rsplit_once('-')?;
        let made = Timestamp::from_micros(made.parse().ok()?);
        Some(Self { vault: vault.parse().ok()?, made, path })
    }
}

/// Lists the copies that a server made in a folder, oldest first.
pub fn copies(folder: &Path) -> std::io::Result<Vec<Copy>> {
    let mut found = match std::fs::read_dir(folder) {
        Ok(entries) => entries
            .map(|entry| Ok(Copy::at(entry?.path())))
            .filter_map(std::io::Result::transpose)
            .collect::<std::io::Result<Vec<Copy>>>()?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    found.sort_by_key(|copy| copy.made);
    Ok(found)
}

/// Which copies of one vault go: those over the number, and those that hold what was erased so
/// long ago that no copy may have it. `made` and `erased` are in order.
fn outdated(made: &[Timestamp], erased: &[Timestamp], keep: usize, now: Timestamp) -> Vec<bool> {
    let over = made.len().saturating_sub(keep);
    made.iter()
        .enumerate()
        .map(|(place, made)| {
            let since = erased.iter().find(|erased| *erased >= made);
            place < over || since.is_some_and(|erased| erased.plus(GRACE) <= now)
        })
        .collect()
}

/// Makes copies when they are due.
pub(crate) struct Keeping {
    pub(crate) engine: Engine,
    pub(crate) backups: Backups,
    pub(crate) folder: PathBuf,
    pub(crate) clock: Arc<dyn Clock>,
    /// Speaks for whoever holds the master key.
    pub(crate) caller: Arc<dyn Fn() -> Call + Send + Sync>,
}

impl std::fmt::Debug for Keeping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeping").field("backups", &self.backups).finish_non_exhaustive()
    }
}

impl Keeping {
    /// Works until it is told to stop.
    pub(crate) async fn run(self, mut halted: watch::Receiver<bool>) {
        // Where only single vaults may want copies, each is opened to know it: less often.
        let pause = if self.backups.every == Every::Off { LOOK * 6 } else { LOOK };
        loop {
            self.round().await;
            tokio::select! {
                _ = halted.wait_for(|halt| *halt) => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Makes what is due and drops what is outdated; returns the new copies.
    pub(crate) async fn look(&self) -> Result<Vec<PathBuf>> {
        let known = copies(&self.folder).map_err(Error::file(&self.folder))?;
        let mut made = Vec::new();
        for vault in self.engine.vaults().await? {
            let now = self.clock.now();
            let schedule = self.schedule(vault).await?;
            let newest = known.iter().rfind(|copy| copy.vault == vault);
            if let Some(every) = schedule.every.span()
                && newest.is_none_or(|copy| copy.made.plus(every) <= now)
            {
                place::make(&self.folder)?;
                made.push(self.copy(vault, now).await?);
            }
            // Also where none are made any more: what was erased is to leave the old ones.
            if newest.is_some() || !made.is_empty() {
                self.drop_outdated(vault, now).await?;
            }
        }
        Ok(made)
    }

    /// What is wanted of a vault's copies: what its user said, or else the operator.
    async fn schedule(&self, vault: VaultId) -> DomainResult<Schedule> {
        let said = self.engine.scheduled(vault).await?;
        Ok(said.unwrap_or(Schedule { every: self.backups.every, keep: None }))
    }

    fn call(&self, vault: VaultId) -> Call {
        Call { vault: VaultRef::Id(vault), ..(self.caller)() }
    }

    async fn copy(&self, vault: VaultId, now: Timestamp) -> DomainResult<PathBuf> {
        let path = self.folder.join(Copy::name(vault, now));
        let bytes = self.engine.backup(&self.call(vault), path.clone()).await?;
        tracing::info!(%vault, bytes, "vault {vault} was copied");
        Ok(path)
    }

    /// How many copies of a vault are kept, and when something of it was erased, in order.
    async fn limits(&self, vault: VaultId) -> DomainResult<(usize, Vec<Timestamp>)> {
        let keep = self.schedule(vault).await?.keep.unwrap_or(self.backups.keep);
        let erased = self.engine.erasures(&self.call(vault)).await?;
        Ok((keep, erased))
    }

    async fn drop_outdated(&self, vault: VaultId, now: Timestamp) -> Result<()> {
        let mut own = copies(&self.folder).map_err(Error::file(&self.folder))?;
        own.retain(|copy| copy.vault == vault);
        let (keep, erased) = self.limits(vault).await?;
        let made: Vec<Timestamp> = own.iter().map(|copy| copy.made).collect();
        let gone = outdated(&made, &erased, keep, now);
        for (copy, _) in own.iter().zip(gone).filter(|(_, gone)| *gone) {
            std::fs::remove_file(&copy.path).map_err(Error::file(&copy.path))?;
            tracing::info!(%vault, made = %copy.made, "a copy of vault {vault} was dropped");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use yore_domain::memory::Draft;
    use yore_domain::mutation::{Depth, Mutation};
    use yore_engine::{FixedClock, Parts, Settings, Wish, token};

    use super::*;

    const KEY: [u8; 32] = [7; 32];
    const SECRET: &str = "the apiary behind the third hedge";

    /// A server's care for copies, with a clock that is moved by hand.
    async fn keeping(data: &Path) -> (Keeping, Arc<FixedClock>) {
        let (store, keeper) = yore_scratch::open(data).await;
        let clock = Arc::new(FixedClock::at(Timestamp::from_millis(1_800_000_000_000)));
        let local_key = zeroize::Zeroizing::new(KEY);
        let settings = Settings::default();
        let parts = Parts { store, keeper, clock: clock.clone(), local_key, settings };
        let hands = Arc::clone(&clock);
        let caller = move || Call::bearer("test", token::proof(&KEY, hands.now()));
        let keeping = Keeping {
            engine: Engine::new(parts),
            backups: Backups { every: Every::Daily, keep: 100, ..Backups::default() },
            folder: data.join("backups"),
            clock: clock.clone(),
            caller: Arc::new(caller),
        };
        (keeping, clock)
    }

    /// The copies in which the secret stands, by their place.
    async fn telling(keeping: &Keeping, vault: VaultId) -> Vec<bool> {
        let mut told = Vec::new();
        for copy in copies(&keeping.folder).unwrap() {
            let call = keeping.call(vault);
            let traces = keeping.engine.traces_in(&call, copy.path, SECRET.to_owned()).await;
            let traces = traces.unwrap();
            assert!(traces.scanned > 0);
            told.push(!traces.found.is_empty());
        }
        told
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn omp_094_what_was_erased_is_in_no_copy_after_thirty_days() {
        if std::env::var("YORE_TEST_STORE").is_ok_and(|store| store == "postgres") {
            println!("NOT RUN: vaults in a database are copied by its own means");
            return;
        }
        let data = tempfile::tempdir().unwrap();
        let (keeping, clock) = keeping(data.path()).await;
        let owner = (keeping.caller)();
        let draft = Box::new(Draft::text(SECRET));
        let kept = Mutation::Remember { draft, id: None };
        let kept = keeping.engine.mutate(&owner, kept, Wish::default()).await.unwrap();
        let memory = kept.memories[0].memory;
        let vault = keeping.engine.vaults().await.unwrap()[0];
        keeping.look().await.unwrap();
        assert_eq!(telling(&keeping, vault).await, [true], "the control: a copy has it");

        clock.advance(Span::days(2));
        let gone = Mutation::Forget { memories: vec![memory], depth: Depth::Erase, reason: None };
        keeping.engine.mutate(&(keeping.caller)(), gone, Wish::default()).await.unwrap();
        keeping.look().await.unwrap();
        assert_eq!(telling(&keeping, vault).await, [true, false], "the grace period runs");
        for _ in 0..28 {
            clock.advance(Span::days(1));
            keeping.look().await.unwrap();
        }
        assert_eq!(telling(&keeping, vault).await.first(), Some(&true), "28 days are not over");
        clock.advance(Span::days(1));
        keeping.look().await.unwrap();
        let told = telling(&keeping, vault).await;
        assert!(told.len() > 20 && !told.contains(&true), "{told:?}");
        keeping.engine.close().await.unwrap();
    }

    #[test]
    fn omp_090_copies_go_by_number_and_when_they_hold_what_was_erased() {
        let day = |day: u64| Timestamp::from_micros(0).plus(Span::days(day));
        let made = [day(1), day(2), day(3), day(40)];
        assert_eq!(outdated(&made, &[], 3, day(40)), [true, false, false, false]);
        assert_eq!(outdated(&made, &[], 9, day(400)), [false; 4], "age alone is no reason");
        // Erased on the second day: copies from before may live until the thirtieth after it.
        let erased = [day(2)];
        assert_eq!(outdated(&made, &erased, 9, day(30)), [false; 4]);
        assert_eq!(outdated(&made, &erased, 9, day(31)), [true, true, false, false]);
    }

    #[test]
    fn a_copy_is_known_by_its_name() {
        let (vault, made) = (VaultId::random(), Timestamp::from_micros(1_800_000_000_000_000));
        let path = Path::new("/x").join(Copy::name(vault, made));
        assert_eq!(Copy::at(path.clone()), Some(Copy { path, vault, made }));
        for other in ["notes.yore", "yore-x-1.yore", "yore-1.yore", "copy.omp.zip"] {
            assert_eq!(Copy::at(PathBuf::from(other)), None, "{other}");
        }
    }

    #[test]
    fn what_could_not_work_is_refused() {
        assert!(Backups::default().check().is_ok());
        assert!(Backups { keep: 0, ..Backups::default() }.check().is_err());
        assert!(Backups { to: Some("here".into()), ..Backups::default() }.check().is_err());
        assert_eq!(Every::parse("weekly"), Some(Every::Weekly));
        assert_eq!(Every::parse("hourly"), None);
    }
}

//! Copies that go on from the folder: into a bucket, by mail, through a command.
//!
//! What was delivered, and what failed last, is written down beside the copies: a delivery that
//! failed is tried again with every look, also by the next process.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use yore_canon::hash::Sha256;
use yore_domain::{Span, Timestamp, VaultId};

use super::{Backups, Copy, Keeping, copies, outdated};
use crate::bucket::{Bucket, BucketError};
use crate::error::{Error, Result};
use crate::mail::{Letter, Mail};

/// The file that says what was delivered.
const FILE: &str = "deliveries.json";
/// How often a bucket is looked through for copies that must go.
const PRUNED: Span = Span::seconds(6 * 3600);

/// How copies fare at each destination: `folder`, `bucket`, `mail`, `command`.
pub type Deliveries = BTreeMap<String, Delivery>;

/// How copies fare at one destination.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Delivery {
    /// The copies that are there, of those that are in the folder.
    pub done: BTreeSet<String>,
    /// What went wrong last, until it succeeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<Failed>,
    /// When it was last looked through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pruned: Option<Timestamp>,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// When it failed first.
    pub since: Timestamp,
    /// Why it failed last.
    pub why: String,
    /// How often it was tried.
    pub times: u32,
}

impl Delivery {
    fn failed(&mut self, now: Timestamp, why: String) {
        let before = self.failed.take();
        self.failed = Some(Failed {
            since: before.as_ref().map_or(now, |failed| failed.since),
            why,
            times: before.map_or(1, |failed| failed.times + 1),
        });
    }
}

/// Reads how copies fared that lie in a folder.
pub fn deliveries(folder: &Path) -> io::Result<Deliveries> {
    match std::fs::read(folder.join(FILE)) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).unwrap_or_default()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Deliveries::new()),
        Err(error) => Err(error),
    }
}

fn written(folder: &Path, deliveries: &Deliveries) -> io::Result<()> {
    let fresh = folder.join(format!("{FILE}.new"));
    std::fs::write(&fresh, serde_json::to_vec_pretty(deliveries)?)?;
    std::fs::rename(fresh, folder.join(FILE))
}

/// Where copies go besides the folder.
enum Destination<'a> {
    Bucket(&'a str),
    Mail(&'a Mail),
    Command(&'a str),
}

impl Destination<'_> {
    const fn name(&self) -> &'static str {
        match self {
            Self::Bucket(_) => "bucket",
            Self::Mail(_) => "mail",
            Self::Command(_) => "command",
        }
    }
}

fn destinations(backups: &Backups) -> Vec<Destination<'_>> {
    let bucket = backups.bucket.as_deref().map(Destination::Bucket);
    let mail = backups.mail.as_ref().map(Destination::Mail);
    let command = backups.command.as_deref().map(Destination::Command);
    // The mail last, for it may point to the bucket.
    [bucket, command, mail].into_iter().flatten().collect()
}

impl Keeping {
    /// Makes copies that are due and delivers what is not yet where it should be.
    pub(super) async fn round(&self) {
        let looked = self.look().await;
        if let Err(error) = &looked {
            tracing::error!(%error, "the copies of the vaults were not made");
        }
        if !self.folder.is_dir() {
            return;
        }
        let failed = looked.err().map(|error| error.to_string());
        if let Err(error) = self.deliver(failed).await {
            tracing::error!(%error, "the deliveries of copies could not be kept track of");
        }
    }

    /// Delivers the newest copy of each vault to where it is not yet.
    pub(crate) async fn deliver(&self, not_made: Option<String>) -> Result<()> {
        let mut state = deliveries(&self.folder).map_err(Error::file(&self.folder))?;
        let before = state.clone();
        let now = self.clock.now();
        let folder = state.entry("folder".to_owned()).or_default();
        match not_made {
            Some(why) => folder.failed(now, why),
            None => folder.failed = None,
        }
        let known = copies(&self.folder).map_err(Error::file(&self.folder))?;
        let newest: BTreeMap<VaultId, &Copy> =
            known.iter().map(|copy| (copy.vault, copy)).collect();
        let wanted = destinations(&self.backups);
        state.retain(|name, _| {
            name == "folder" || wanted.iter().any(|destination| destination.name() == name)
        });
        for destination in &wanted {
            let name = destination.name();
            let one = state.entry(name.to_owned()).or_default();
            let there: BTreeSet<String> = known.iter().filter_map(file_name).collect();
            one.done.retain(|file| there.contains(file));
            let mut wrong = None;
            for copy in newest.values() {
                let Some(file) = file_name(copy) else { continue };
                if one.done.contains(&file) {
                    continue;
                }
                match Box::pin(self.hand_over(destination, copy, &file)).await {
                    Ok(()) => {
                        tracing::info!(to = name, vault = %copy.vault, "a copy was delivered");
                        one.done.insert(file);
                    }
                    Err(error) => wrong = Some(error),
                }
            }
            if let Destination::Bucket(address) = destination
                && one.pruned.is_none_or(|last| last.plus(PRUNED) <= now)
            {
                match Box::pin(self.prune(address)).await {
                    Ok(()) => one.pruned = Some(now),
                    Err(error) => wrong = Some(error),
                }
            }
            match wrong {
                Some(why) => {
                    tracing::error!(to = name, error = why, "a copy was not delivered");
                    one.failed(now, why);
                }
                None => one.failed = None,
            }
        }
        if state != before {
            written(&self.folder, &state).map_err(Error::file(&self.folder))?;
        }
        Ok(())
    }

    async fn hand_over(
        &self,
        destination: &Destination<'_>,
        copy: &Copy,
        file: &str,
    ) -> Result<(), String> {
        match destination {
            Destination::Bucket(address) => {
                let put = Box::pin(put(address, copy, file, self.clock.now())).await;
                put.map_err(|error| error.to_string())
            }
            Destination::Mail(mail) => {
                Box::pin(self.send(mail, copy, file)).await.map_err(|error| error.to_string())
            }
            Destination::Command(command) => match ran(command, &copy.path).await {
                Ok(status) if status.success() => Ok(()),
                Ok(status) => Err(format!("the command ended with {status}")),
                Err(error) => Err(error.to_string()),
            },
        }
    }

    async fn send(&self, mail: &Mail, copy: &Copy, file: &str) -> io::Result<()> {
        let size = std::fs::metadata(&copy.path)?.len();
        let attached = size <= mail.attach;
        let mut text = format!(
            "A copy of your vault {} was made at {}.\nIt has {size} bytes and is encrypted: \
             yore restore opens it with the master key.\n",
            copy.vault, copy.made
        );
        if !attached {
            let place = match (&mail.link, &self.backups.bucket) {
                (Some(link), _) => link.replace("{file}", file),
                (None, Some(bucket)) => format!("{}/{file}", bucket.trim_end_matches('/')),
                (None, None) => copy.path.display().to_string(),
            };
            text.push_str(&format!("It is too large to be attached. It lies here:\n{place}\n"));
        }
        let letter = Letter {
            subject: "A copy of your Yore vault",
            text: &text,
            file: attached.then_some(copy.path.as_path()),
            at: self.clock.now(),
        };
        mail.send(letter).await
    }

    /// Removes copies from the bucket that must go, by the rules of the folder.
    async fn prune(&self, address: &str) -> Result<(), String> {
        let said = |error: BucketError| error.to_string();
        let bucket = Bucket::new(address).map_err(said)?;
        let names = bucket.names(self.clock.now()).await.map_err(said)?;
        let mut found: Vec<Copy> =
            names.iter().filter_map(|name| Copy::at(PathBuf::from(name))).collect();
        found.sort_by_key(|copy| copy.made);
        let vaults: BTreeSet<VaultId> = found.iter().map(|copy| copy.vault).collect();
        for vault in vaults {
            let own: Vec<&Copy> = found.iter().filter(|copy| copy.vault == vault).collect();
            let made: Vec<Timestamp> = own.iter().map(|copy| copy.made).collect();
            let (keep, erased) = self.limits(vault).await.map_err(|error| error.to_string())?;
            let gone = outdated(&made, &erased, keep, self.clock.now());
            for (copy, _) in own.iter().zip(gone).filter(|(_, gone)| *gone) {
                let Some(name) = file_name(copy) else { continue };
                bucket.remove(self.clock.now(), &name).await.map_err(said)?;
                tracing::info!(%vault, made = %copy.made, "a copy was dropped from the bucket");
            }
        }
        Ok(())
    }
}

/// Puts a copy into a bucket and reads it back.
async fn put(address: &str, copy: &Copy, file: &str, now: Timestamp) -> Result<(), BucketError> {
    let bucket = Bucket::new(address)?;
    bucket.put(now, file, &copy.path).await?;
    let mut source = std::fs::File::open(&copy.path)?;
    let mut hasher = Sha256::hasher();
    let mut piece = vec![0; 1 << 20];
    loop {
        let read = io::Read::read(&mut source, &mut piece)?;
        if read == 0 {
            break;
        }
        hasher.update(&piece[..read]);
    }
    match bucket.digest(now, file).await? == hasher.finish().to_hex() {
        true => Ok(()),
        false => Err(BucketError::Answer),
    }
}

fn file_name(copy: &Copy) -> Option<String> {
    Some(copy.path.file_name()?.to_str()?.to_owned())
}

/// Runs a command that gets the name of the copy in a variable and the copy itself as its input.
async fn ran(command: &str, file: &Path) -> io::Result<std::process::ExitStatus> {
    let (shell, option) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let mut command = {
        let mut shell = std::process::Command::new(shell);
        shell.args([option, command]).env("YORE_BACKUP_FILE", file);
        shell.stdin(std::fs::File::open(file)?).stdout(std::process::Stdio::null());
        shell
    };
    tokio::task::spawn_blocking(move || command.status()).await.map_err(io::Error::other)?
}

//! Copies of the audit chain that are only ever added to, and checking them without the vault.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use yore_client::api::{self, AuditQuery};
use yore_client::input::Nothing;
use yore_domain::{Seq, Span};
use yore_engine::{Checker, CopyReport, Line};
use yore_server::bucket::{Bucket, BucketError};

use crate::app::{App, Session};
use crate::failure::{Exit, Failure, Result};
use crate::output::{BAD, GOOD, Table, cell, styled};

/// What the name of a copy begins and ends with.
const NAME: (&str, &str) = ("audit-", ".ndjson");

/// Adds what is new to a place, as one more signed file.
pub(super) async fn add(
    app: &App,
    session: &mut Session<'_>,
    place: &str,
    lock_days: u64,
) -> Result {
    let place = if place.starts_with("https://") || place.starts_with("http://") {
        let bucket = Bucket::new(place).map_err(failed)?;
        Place::Bucket(Box::new(bucket), Span::days(lock_days))
    } else {
        Place::Directory(PathBuf::from(place))
    };
    let last = place.last(app).await?;
    let sealed = session.call::<api::SealAudit>(Nothing {}).await?;
    if sealed.checkpoint.seq <= last {
        app.out.remark("nothing is new");
        return Ok(());
    }
    let before = Some(Seq(sealed.checkpoint.seq.0 + 1));
    let query = AuditQuery { after: last, before, ..AuditQuery::default() };
    let mut bytes = Vec::new();
    super::each(session, query, |entry| line(&mut bytes, entry)).await?;
    line(&mut bytes, &sealed)?;
    let name = format!("{}{}-{}{}", NAME.0, last.0 + 1, sealed.checkpoint.seq, NAME.1);
    place.put(app, &name, bytes).await?;
    let done = serde_json::json!({"name": name, "last": sealed.checkpoint.seq});
    app.out.either(&done, |_| app.out.line(format!("{GOOD}written{GOOD:#}  {name}")))
}

fn line(into: &mut Vec<u8>, value: &impl serde::Serialize) -> Result {
    serde_json::to_writer(&mut *into, value).map_err(|error| Failure::failed(error.to_string()))?;
    into.push(b'\n');
    Ok(())
}

/// Where copies lie.
enum Place {
    Directory(PathBuf),
    /// With the time for which what is put there is locked.
    Bucket(Box<Bucket>, Span),
}

impl Place {
    /// The number of the last entry that lies there.
    async fn last(&self, app: &App) -> Result<Seq> {
        let names = match self {
            Self::Directory(path) => {
                let failed = || Failure::file(path.display());
                std::fs::create_dir_all(path).map_err(failed())?;
                let mut names = Vec::new();
                for entry in std::fs::read_dir(path).map_err(failed())? {
                    let name = entry.map_err(failed())?.file_name();
                    names.push(name.to_string_lossy().into_owned());
                }
                names
            }
            Self::Bucket(bucket, _) => bucket.names(app.out.now).await.map_err(failed)?,
        };
        Ok(Seq(names.iter().filter_map(|name| last_of(name)).max().unwrap_or_default()))
    }

    /// Writes a copy that nothing overwrites.
    async fn put(&self, app: &App, name: &str, bytes: Vec<u8>) -> Result {
        match self {
            Self::Directory(path) => once(&path.join(name), &bytes),
            Self::Bucket(bucket, lock) => {
                bucket.lock(app.out.now, name, bytes, *lock).await.map_err(failed)
            }
        }
    }
}

/// How a command ends when a bucket did not do what was asked.
fn failed(error: BucketError) -> Failure {
    match error {
        BucketError::Address | BucketError::Unset(_) => Failure::usage(error.to_string()),
        BucketError::Taken => Failure::new(Exit::Conflict, error.to_string()),
        BucketError::Keys => Failure::new(Exit::NotAuthorised, error.to_string()),
        BucketError::Client(error) => error.into(),
        BucketError::Status(_) | BucketError::Answer | BucketError::File(_) => {
            Failure::failed(error.to_string())
        }
    }
}

/// The last number that the name of a copy tells.
fn last_of(name: &str) -> Option<u64> {
    let (_, last) = name.strip_prefix(NAME.0)?.strip_suffix(NAME.1)?.split_once('-')?;
    last.parse().ok()
}

/// Writes a file that must not be there yet and takes away the right to change it.
fn once(path: &Path, bytes: &[u8]) -> Result {
    let failed = || Failure::file(path.display());
    let mut file = OpenOptions::new().write(true).create_new(true).open(path).map_err(failed())?;
    file.write_all(bytes).map_err(failed())?;
    file.sync_all().map_err(failed())?;
    let mut rights = file.metadata().map_err(failed())?.permissions();
    rights.set_readonly(true);
    file.set_permissions(rights).map_err(failed())
}

/// Checks copies one after the other.
pub(super) fn verify(app: &App, files: &[PathBuf], signer: Option<&str>) -> Result {
    let mut checker = Checker::default();
    for path in files {
        let failed = || Failure::file(path.display());
        for text in BufReader::new(File::open(path).map_err(failed())?).lines() {
            match serde_json::from_str::<Line>(&text.map_err(failed())?) {
                Ok(line) => checker.line(line),
                Err(_) => checker.unreadable(),
            }
        }
    }
    let report = checker.finish();
    let stranger = signer.filter(|signer| report.signers.iter().any(|found| found != signer));
    app.out.either(&report, |report| show(app, report))?;
    if report.faults.is_empty() && stranger.is_none() {
        return Ok(());
    }
    let what = match stranger {
        Some(_) => "the copy is signed by somebody else".to_owned(),
        None => format!("the copy has {} faults", report.faults.len()),
    };
    Err(Failure::new(Exit::Damaged, what).hint("compare with the vault: yore audit verify"))
}

fn show(app: &App, report: &CopyReport) -> Result {
    let CopyReport { entries, first, last, sealed: _, signers, faults } = report;
    let told = format!("{entries} entries, {first} to {last}, signed by {}", signers.join(", "));
    if faults.is_empty() {
        return app.out.line(format!("{GOOD}unbroken{GOOD:#}  {told}"));
    }
    app.out.line(format!("{BAD}broken{BAD:#}  {told}"))?;
    let mut table = Table::new(&["SEQ", "FAULT"]);
    for fault in faults {
        table.push([cell(fault.seq.to_string()), styled(&fault.what, BAD)]);
    }
    app.out.table(&table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mw_203_a_copy_is_written_once_and_says_how_far_it_goes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("audit-1-20.ndjson");
        once(&path, b"a").unwrap();
        assert!(once(&path, b"b").is_err(), "nothing is overwritten");
        assert_eq!(std::fs::read(&path).unwrap(), b"a");
        assert!(std::fs::metadata(&path).unwrap().permissions().readonly());
        assert_eq!(last_of("audit-1-20.ndjson"), Some(20));
        for other in ["audit-1-x.ndjson", "audit-20.ndjson", "notes", "audit-1-2.json"] {
            assert_eq!(last_of(other), None, "{other}");
        }
    }
}

//! Copies of the vault: how often they are made, which there are, one more now, and back to one;
//! and the vault as an archive to take away.

use std::io::Read;
use std::path::{Path as FilePath, PathBuf};

use askama::Template;
use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::IntoResponse;
use tokio::sync::mpsc;
use yore_domain::grant::Verb;
use yore_domain::query::Filter;
use yore_domain::{Error, Result, Timestamp, VaultId};
use yore_engine::{Every, Schedule};

use super::back;
use crate::Copies;
use crate::markup::{bytes, day, grouped};
use crate::takeout;
use crate::trouble::{Page, shown};
use crate::visit::{Posted, Shell, Visit};

/// Bytes that are handed out at once.
const PIECE: usize = 256 << 10;

#[derive(Template)]
#[template(path = "backup.html")]
struct BackupPage {
    shell: Shell,
    /// Whether this server makes copies at all.
    makes: bool,
    /// How often: the value of each choice, what it says, and whether it is the one.
    every: Vec<(&'static str, String, bool)>,
    /// What becomes of it in words.
    effect: &'static str,
    /// How many are kept, where the owner says so, and otherwise.
    keep: Option<usize>,
    usual: usize,
    copies: Vec<Row>,
}

/// A copy of this vault.
struct Row {
    /// What names it in an address.
    made: i64,
    at: Timestamp,
    size: String,
}

#[derive(Template)]
#[template(path = "restore.html")]
struct RestorePage {
    shell: Shell,
    made: i64,
    at: Timestamp,
    /// What is counted, in the copy and now.
    counts: Vec<(&'static str, String, String)>,
}

pub(crate) async fn show(visit: Visit) -> Page {
    visit.engine().demand(&visit.call, "backup.list", Verb::Admin).await?;
    let vault = vault(&visit).await?;
    let place = visit.desk.options.copies.as_ref();
    let copies = place.map(|place| own(place, vault)).transpose()?.unwrap_or_default();
    let row = |(path, at): (PathBuf, Timestamp)| Row {
        made: at.micros(),
        at,
        size: std::fs::metadata(path).map_or_else(|_| String::new(), |file| bytes(file.len())),
    };
    let said = visit.engine().schedule(&visit.call).await?;
    let usual = place.map_or("off", |place| place.every);
    Ok(shown(&BackupPage {
        shell: visit.shell("backup"),
        makes: place.is_some(),
        every: choices(said.map(|said| said.every), usual),
        effect: said.map_or(usual, |said| said.every.as_str()),
        keep: said.and_then(|said| said.keep),
        usual: place.map_or(0, |place| place.keep),
        copies: copies.into_iter().rev().map(row).collect(),
    }))
}

/// How often copies can be made.
fn choices(said: Option<Every>, usual: &str) -> Vec<(&'static str, String, bool)> {
    let left = ("", format!("as the server does ({usual})"), said.is_none());
    let named = [Every::Off, Every::Daily, Every::Weekly, Every::Monthly]
        .map(|every| (every.as_str(), every.as_str().to_owned(), said == Some(every)));
    std::iter::once(left).chain(named).collect()
}

/// Says how often copies are made.
pub(crate) async fn schedule(Posted { visit, form }: Posted) -> Page {
    let keep = form.get("keep").map(str::parse::<usize>).transpose();
    let keep = keep.map_err(|_| Error::invalid("keep", "must be a number"))?;
    let wanted = match form.get("every") {
        None => None,
        Some(word) => {
            let every = Every::parse(word)
                .ok_or_else(|| Error::invalid("every", "must be one of those offered"))?;
            Some(Schedule { every, keep })
        }
    };
    visit.engine().set_schedule(&visit.call, wanted).await?;
    Ok(back("/app/backup", "scheduled"))
}

async fn vault(visit: &Visit) -> Result<VaultId> {
    Ok(visit.engine().identify(&visit.call, Verb::Admin).await?.vault())
}

/// The copies of one vault, oldest first. Those of others are nobody's business here.
fn own(place: &Copies, vault: VaultId) -> Result<Vec<(PathBuf, Timestamp)>> {
    let entries = match std::fs::read_dir(&place.folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::internal(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(Error::internal)?.path();
        match (place.told)(&path) {
            Some((whose, made)) if whose == vault => found.push((path, made)),
            Some(_) | None => {}
        }
    }
    found.sort_by_key(|(_, made)| *made);
    Ok(found)
}

/// Makes a copy now.
pub(crate) async fn make(Posted { visit, .. }: Posted) -> Page {
    visit.engine().demand(&visit.call, "backup.make", Verb::Admin).await?;
    let vault = vault(&visit).await?;
    copy(&visit, vault).await?;
    Ok(back("/app/backup", "copied"))
}

async fn copy(visit: &Visit, vault: VaultId) -> Result<()> {
    let place = visit.desk.options.copies.as_ref();
    let place = place
        .ok_or_else(|| Error::Unsupported { what: "this server makes no copies".to_owned() })?;
    make_folder(&place.folder).map_err(Error::internal)?;
    let path = place.folder.join((place.name)(vault, visit.engine().now()));
    visit.engine().backup(&visit.call, path).await.map(drop)
}

/// Makes a directory that only its owner can enter.
fn make_folder(path: &FilePath) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Hands a copy out. It is encrypted like the vault itself.
pub(crate) async fn download(Path(made): Path<String>, visit: Visit) -> Page {
    visit.engine().witness(&visit.call, "backup.download", Verb::Admin).await?;
    let (path, made) = named(&visit, &made).await?;
    let file = std::fs::File::open(path).map_err(|_| Error::NotFound)?;
    let length = file.metadata().map_err(Error::internal)?.len();
    let head = [
        (CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (CONTENT_LENGTH, HeaderValue::from(length)),
        (CONTENT_DISPOSITION, saved_as(&format!("yore-{}.yore", made.micros()))?),
    ];
    Ok((head, pieces(file)).into_response())
}

/// A copy of the visitor's own vault by what names it in an address.
async fn named(visit: &Visit, made: &str) -> Result<(PathBuf, Timestamp)> {
    let vault = vault(visit).await?;
    let made: i64 = made.parse().map_err(|_| Error::NotFound)?;
    let place = visit.desk.options.copies.as_ref().ok_or(Error::NotFound)?;
    let copies = own(place, vault)?;
    copies.into_iter().find(|(_, at)| at.micros() == made).ok_or(Error::NotFound)
}

fn saved_as(name: &str) -> Result<HeaderValue> {
    HeaderValue::from_str(&format!("attachment; filename=\"{name}\"")).map_err(Error::internal)
}

/// Shows what going back to a copy would bring and take.
pub(crate) async fn look(Path(made): Path<String>, visit: Visit) -> Page {
    let (path, at) = named(&visit, &made).await?;
    let (engine, call) = (visit.engine(), &visit.call);
    let (then, now) = (engine.survey_backup(call, path).await?, engine.census(call).await?);
    let rows = [
        ("memories", then.memories, now.memories),
        ("versions", then.versions, now.versions),
        ("conversations", then.conversations, now.conversations),
        ("messages", then.messages, now.messages),
        ("attachments", then.blobs, now.blobs),
        ("waiting for review", then.pending, now.pending),
    ];
    Ok(shown(&RestorePage {
        shell: visit.shell("backup"),
        made: at.micros(),
        at,
        counts: rows.map(|(name, then, now)| (name, grouped(then), grouped(now))).into(),
    }))
}

/// Puts a copy in place of the vault, after a copy of what is there.
pub(crate) async fn restore(Path(made): Path<String>, Posted { visit, form }: Posted) -> Page {
    if form.get("sure").is_none() {
        return Err(Error::invalid("sure", "say that you mean it").into());
    }
    let (path, _) = named(&visit, &made).await?;
    copy(&visit, vault(&visit).await?).await?;
    visit.engine().restore_backup(&visit.call, path).await?;
    Ok(back("/app/backup", "returned"))
}

/// Hands the vault out as an archive, packed while it is sent; under a password, if one is given.
pub(crate) async fn archive(Posted { visit, form }: Posted) -> Page {
    let password = form.text("password");
    if password != form.text("again") {
        return Err(Error::invalid("password", "it was typed differently the second time").into());
    }
    let password = Some(password).filter(|password| !password.is_empty());
    let takeout = visit.engine().takeout(&visit.call, Filter::default()).await?;
    let (ending, kind) = match &password {
        None => ("omp.zip", "application/zip"),
        Some(_) => ("omp.zip.enc", "application/octet-stream"),
    };
    let head = [
        (CONTENT_TYPE, HeaderValue::from_static(kind)),
        (CONTENT_DISPOSITION, saved_as(&format!("yore-{}.{ending}", day(visit.engine().now())))?),
    ];
    Ok((head, takeout::packed(takeout, password)).into_response())
}

/// A file as it is read.
fn pieces(mut file: std::fs::File) -> Body {
    let (sender, mut receiver) = mpsc::channel(4);
    // It ends by itself: with the bytes, or when nobody takes them any more.
    tokio::task::spawn_blocking(move || {
        loop {
            let mut piece = vec![0; PIECE];
            let (piece, ended) = match file.read(&mut piece) {
                Ok(0) => return,
                Ok(count) => (Ok(Bytes::from(piece).slice(..count)), false),
                Err(error) => (Err(error), true),
            };
            if sender.blocking_send(piece).is_err() || ended {
                return;
            }
        }
    });
    Body::from_stream(futures::stream::poll_fn(move |context| receiver.poll_recv(context)))
}

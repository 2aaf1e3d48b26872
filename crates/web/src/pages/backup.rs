//! Copies of the vault: how often they are made, which there are, and one more now.

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
use yore_domain::{Error, Result, Timestamp, VaultId};

use super::back;
use crate::Copies;
use crate::markup::bytes;
use crate::trouble::{Page, shown};
use crate::visit::{Posted, Shell, Visit};

/// Bytes that are handed out at once.
const PIECE: usize = 256 << 10;

#[derive(Template)]
#[template(path = "backup.html")]
struct BackupPage {
    shell: Shell,
    /// How often copies are made; absent where this server makes none at all.
    every: Option<&'static str>,
    keep: usize,
    copies: Vec<Row>,
}

/// A copy of this vault.
struct Row {
    /// What names it in an address.
    made: i64,
    at: Timestamp,
    size: String,
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
    Ok(shown(&BackupPage {
        shell: visit.shell("backup"),
        every: place.map(|place| place.every),
        keep: place.map_or(0, |place| place.keep),
        copies: copies.into_iter().rev().map(row).collect(),
    }))
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
    let place = visit.desk.options.copies.as_ref();
    let place = place
        .ok_or_else(|| Error::Unsupported { what: "this server makes no copies".to_owned() })?;
    make_folder(&place.folder).map_err(Error::internal)?;
    let path = place.folder.join((place.name)(vault, visit.engine().now()));
    visit.engine().backup(&visit.call, path).await?;
    Ok(back("/app/backup", "copied"))
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
    let vault = vault(&visit).await?;
    let made: i64 = made.parse().map_err(|_| Error::NotFound)?;
    let place = visit.desk.options.copies.as_ref().ok_or(Error::NotFound)?;
    let copies = own(place, vault)?;
    let found = copies.into_iter().find(|(_, at)| at.micros() == made);
    let (path, _) = found.ok_or(Error::NotFound)?;
    let file = std::fs::File::open(path).map_err(|_| Error::NotFound)?;
    let length = file.metadata().map_err(Error::internal)?.len();
    let named = format!("attachment; filename=\"yore-{made}.yore\"");
    let head = [
        (CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (CONTENT_LENGTH, HeaderValue::from(length)),
        (CONTENT_DISPOSITION, HeaderValue::from_str(&named).map_err(Error::internal)?),
    ];
    Ok((head, pieces(file)).into_response())
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

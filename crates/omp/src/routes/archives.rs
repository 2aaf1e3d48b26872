//! Backups, restores, and deletions of more than one thing.

use std::io;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{
    ACCEPT_RANGES, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, LOCATION,
};
use axum::response::{IntoResponse, Response};
use futures::stream::{self, Stream};
use serde_json::json;
use yore_domain::JobId;

use super::{Asking, Desk, Segments, with};
use crate::accept::Kind;
use crate::backup::Ready;
use crate::error::Result;
use crate::map::Object;
use crate::range;
use crate::scope::Scope;
use crate::spool::Kept;

/// Bytes of an archive that are sent at once.
const PIECE: usize = 256 << 10;

/// Answers that a job was begun.
fn begun(asking: &Asking, collection: &str, job: JobId) -> Response {
    let body = json!({"job_id": job, "status": "queued"});
    let place = asking.links.path(collection, job);
    with(asking.document(StatusCode::ACCEPTED, &body), LOCATION, &place)
}

pub(super) async fn begin_backup(State(desk): State<Desk>, request: Request) -> Response {
    desk.act(request, Scope::Backup, Kind::Plain, async |asking, asked: Object| {
        let job = desk.omp.backup(&asking, &asked).await?;
        Ok(begun(&asking, "backup", job))
    })
    .await
}

pub(super) async fn backup(
    State(desk): State<Desk>,
    Segments(job): Segments<String>,
    request: Request,
) -> Response {
    desk.look(request, Scope::Backup, Kind::Plain, async |asking| {
        let state = desk.omp.backup_state(&asking, &job).await?;
        Ok(asking.document(StatusCode::OK, &state))
    })
    .await
}

/// The archive of a backup, or a part of it: a fetch that broke off can go on.
pub(super) async fn download(
    State(desk): State<Desk>,
    Segments(job): Segments<String>,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let sent = async {
        let asking = desk.asking(&parts, Kind::Archive)?;
        let Ready { kept, name } = desk.omp.backup_archive(&asking, &job).await?;
        let length = kept.length();
        let part = range::wanted(&parts.headers, length)?;
        let (from, to) = part.unwrap_or((0, length));
        let response = Body::from_stream(pieces(kept, from, to)).into_response();
        let response = with(response, CONTENT_TYPE, asking.media_type);
        let response = with(response, CONTENT_LENGTH, &(to - from).to_string());
        let response = with(response, ACCEPT_RANGES, "bytes");
        let disposition = format!("attachment; filename=\"{name}\"");
        let mut response = with(response, CONTENT_DISPOSITION, &disposition);
        if part.is_some() {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            let said = format!("bytes {from}-{}/{length}", to - 1);
            response = with(response, CONTENT_RANGE, &said);
        }
        Ok(response)
    };
    let sent: Result<Response> = Box::pin(sent).await;
    sent.unwrap_or_else(|refusal| refusal.at(Scope::Backup).into_response())
}

/// Reads an archive piece by piece, each beside other work.
fn pieces(kept: Kept, from: u64, to: u64) -> impl Stream<Item = io::Result<Vec<u8>>> {
    stream::try_unfold((kept, from), move |(mut kept, at)| async move {
        if at >= to {
            return Ok(None);
        }
        let most = usize::try_from(to - at).unwrap_or(PIECE).min(PIECE);
        let read = tokio::task::spawn_blocking(move || (kept.piece(at, most), kept));
        let (piece, kept) = read.await.map_err(io::Error::other)?;
        let piece = piece?;
        if piece.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let next = at + piece.len() as u64;
        Ok(Some((piece, (kept, next))))
    })
}

pub(super) async fn begin_restore(State(desk): State<Desk>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let brought = async {
        let asking = desk.asking(&parts, Kind::Plain)?;
        let job = desk.omp.restore(&asking, &parts.headers, body).await?;
        Ok(begun(&asking, "restore", job))
    };
    // An archive may be large: how long it takes depends on the line, not on the server.
    let brought: Result<Response> = Box::pin(brought).await;
    brought.unwrap_or_else(|refusal| refusal.at(Scope::Write).into_response())
}

pub(super) async fn restore(
    State(desk): State<Desk>,
    Segments(job): Segments<String>,
    request: Request,
) -> Response {
    desk.look(request, Scope::Write, Kind::Plain, async |asking| {
        let state = desk.omp.restore_state(&asking, &job).await?;
        Ok(asking.document(StatusCode::OK, &state))
    })
    .await
}

pub(super) async fn preview(State(desk): State<Desk>, request: Request) -> Response {
    desk.act(request, Scope::Delete, Kind::Plain, async |asking, asked: Object| {
        let shown = desk.omp.preview(&asking, &asked).await?;
        Ok(asking.document(StatusCode::OK, &shown))
    })
    .await
}

pub(super) async fn delete(State(desk): State<Desk>, request: Request) -> Response {
    desk.act(request, Scope::Delete, Kind::Plain, async |asking, asked: Object| {
        let gone = desk.omp.delete(&asking, &asked).await?;
        Ok(asking.document(StatusCode::OK, &gone))
    })
    .await
}

pub(super) async fn schedules(State(desk): State<Desk>, request: Request) -> Response {
    desk.look(request, Scope::Backup, Kind::Plain, async |asking| {
        let body = desk.omp.schedules(&asking).await?;
        Ok(asking.document(StatusCode::OK, &body))
    })
    .await
}

pub(super) async fn set_schedule(State(desk): State<Desk>, request: Request) -> Response {
    desk.act(request, Scope::Backup, Kind::Plain, async |asking, asked: Object| {
        let body = desk.omp.set_schedule(&asking, asked).await?;
        Ok(asking.document(StatusCode::OK, &body))
    })
    .await
}

pub(super) async fn begin_import(
    State(desk): State<Desk>,
    Segments(connector): Segments<String>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let brought = async {
        let asking = desk.asking(&parts, Kind::Plain)?;
        let job = desk.omp.import(&asking, &connector, &parts.headers, body).await?;
        Ok(begun(&asking, "import", job))
    };
    let brought: Result<Response> = Box::pin(brought).await;
    brought.unwrap_or_else(|refusal| refusal.at(Scope::Write).into_response())
}

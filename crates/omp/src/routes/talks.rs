//! Conversations, their messages and what is attached to them.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use yore_domain::{BlobHash, Error};

use super::{Asking, Desk, Segments, with};
use crate::accept::Kind;
use crate::error::Result;
use crate::map::Object;
use crate::scope::Scope;

pub(super) async fn create_conversation(State(desk): State<Desk>, request: Request) -> Response {
    desk.change(request, Kind::Conversation, async |asking, object: Object| {
        let made = desk.omp.create_conversation(&asking, object).await?;
        let place = asking.links.path("conversations", made.id);
        let status = if made.begun { StatusCode::CREATED } else { StatusCode::OK };
        Ok(with(asking.tagged(status, &made.tag, made.body), LOCATION, &place))
    })
    .await
}

pub(super) async fn conversations(State(desk): State<Desk>, request: Request) -> Response {
    desk.look(request, Scope::Read, Kind::Plain, async |asking| {
        let sheet = desk.omp.conversations(&asking).await?;
        Ok(asking.document(StatusCode::OK, &sheet.body()))
    })
    .await
}

pub(super) async fn conversation(
    State(desk): State<Desk>,
    Segments(id): Segments<String>,
    request: Request,
) -> Response {
    desk.look(request, Scope::Read, Kind::Conversation, async |asking| {
        let (tag, body) = desk.omp.conversation(&asking, &id).await?;
        Ok(asking.tagged(StatusCode::OK, &tag, body))
    })
    .await
}

pub(super) async fn patch_conversation(
    State(desk): State<Desk>,
    Segments(id): Segments<String>,
    request: Request,
) -> Response {
    desk.change(request, Kind::Conversation, async |asking, change: Object| {
        let expected = desk.expected(&asking)?;
        let (tag, body) = desk.omp.patch_conversation(&asking, &id, change, &expected).await?;
        Ok(asking.tagged(StatusCode::OK, &tag, body))
    })
    .await
}

pub(super) async fn delete_conversation(
    State(desk): State<Desk>,
    Segments(id): Segments<String>,
    request: Request,
) -> Response {
    desk.look(request, Scope::Delete, Kind::Plain, async |asking| {
        let expected = desk.expected(&asking)?;
        let body = desk.omp.delete_conversation(&asking, &id, &expected).await?;
        Ok(asking.document(StatusCode::OK, &body))
    })
    .await
}

pub(super) async fn append(
    State(desk): State<Desk>,
    Segments(id): Segments<String>,
    request: Request,
) -> Response {
    desk.change(request, Kind::Plain, async |asking, messages: Value| {
        let body = desk.omp.append(&asking, &id, messages).await?;
        Ok(asking.document(StatusCode::OK, &body))
    })
    .await
}

pub(super) async fn message(
    State(desk): State<Desk>,
    Segments((id, message)): Segments<(String, String)>,
    request: Request,
) -> Response {
    desk.look(request, Scope::Read, Kind::Plain, async |asking| {
        let body = desk.omp.message(&asking, &id, &message).await?;
        Ok(asking.document(StatusCode::OK, &body.into()))
    })
    .await
}

pub(super) async fn delete_message(
    State(desk): State<Desk>,
    Segments((id, message)): Segments<(String, String)>,
    request: Request,
) -> Response {
    desk.look(request, Scope::Delete, Kind::Plain, async |asking| {
        let body = desk.omp.delete_message(&asking, &id, &message).await?;
        Ok(asking.document(StatusCode::OK, &body))
    })
    .await
}

/// The bytes of an attachment. What they are is known to the messages that name them; here they
/// are bytes to be saved, never a page to be shown.
pub(super) async fn attachment(
    State(desk): State<Desk>,
    Segments(blob): Segments<String>,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let downloaded = async {
        let Asking { call, .. } = desk.asking(&parts, Kind::Plain)?;
        let blob: BlobHash = blob.parse().map_err(|_| Error::NotFound)?;
        let download = desk.omp.engine.download(&call, blob).await?;
        let size = download.size.to_string();
        let response = Body::from_stream(download.pieces).into_response();
        let response = with(response, CONTENT_TYPE, "application/octet-stream");
        Ok(with(response, CONTENT_LENGTH, &size))
    };
    let downloaded: Result<Response> = downloaded.await;
    downloaded.unwrap_or_else(|refusal| refusal.at(Scope::Read).into_response())
}

//! Attachments as plain bytes: in as they arrive, out as they are read.

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, TryStreamExt};
use yore_client::api::{Attached, Weight};
use yore_domain::{BlobHash, Error, Result};

use super::PROTOCOL;
use crate::app::App;
use crate::reply;

pub(super) async fn put(State(app): State<App>, request: Request) -> Response {
    let (_, time) = app.bounds(Weight::Heavy);
    match tokio::time::timeout(time, take(&app, request)).await {
        Ok(Ok(attached)) => reply::json(StatusCode::OK, &attached),
        Ok(Err(error)) => reply::refusal(&error),
        Err(_) => reply::refusal(&Error::Busy { reason: "too slow".into(), retry_after: time }),
    }
}

async fn take(app: &App, request: Request) -> Result<Attached> {
    let (parts, body) = request.into_parts();
    let limit = app.config().limits.attachment;
    let stated = parts.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if stated.and_then(|text| text.parse::<u64>().ok()).is_some_and(|bytes| bytes > limit) {
        return Err(too_large(limit));
    }
    let call = app.surface().call(&parts, PROTOCOL)?;
    let mut upload = app.engine().upload(&call).await?;
    let (mut body, mut size) = (body.into_data_stream(), 0);
    while let Some(part) = body.next().await {
        let part = part.map_err(|_| Error::invalid("body", "it ended early"))?;
        size += part.len() as u64;
        if size > limit {
            return Err(too_large(limit));
        }
        upload.write(&part).await?;
    }
    Ok(Attached { blob: upload.finish().await?, size })
}

fn too_large(limit: u64) -> Error {
    Error::too_large("the attachment", format!("{limit} bytes"))
}

pub(super) async fn get(
    State(app): State<App>,
    Path(blob): Path<String>,
    request: Request,
) -> Response {
    match give(&app, &blob, request).await {
        Ok(response) => response,
        Err(error) => reply::refusal(&error),
    }
}

async fn give(app: &App, blob: &str, request: Request) -> Result<Response> {
    let (parts, _) = request.into_parts();
    let call = app.surface().call(&parts, PROTOCOL)?;
    let blob: BlobHash = blob.parse()?;
    let found = app.engine().download(&call, blob).await?;
    // A browser must not take somebody's attachment for a page of this server.
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
        (CONTENT_LENGTH, HeaderValue::from(found.size)),
    ];
    let pieces = found.pieces.map_err(|error| std::io::Error::other(error.to_string()));
    Ok((headers, Body::from_stream(pieces)).into_response())
}

//! Memory records, search, and what the server says of itself.

use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use super::{Desk, Segments, with};
use crate::accept::Kind;
use crate::map::Object;
use crate::scope::Scope;

pub(super) async fn create_memory(State(desk): State<Desk>, request: Request) -> Response {
    desk.change(request, Kind::Memory, async |asking, object: Object| {
        let (id, tag, body) = desk.omp.create_memory(&asking, object).await?;
        let place = asking.links.path("memories", id);
        Ok(with(asking.tagged(StatusCode::CREATED, &tag, body), LOCATION, &place))
    })
    .await
}

pub(super) async fn memories(State(desk): State<Desk>, request: Request) -> Response {
    desk.look(request, Scope::Read, Kind::Plain, async |asking| {
        let sheet = desk.omp.memories(&asking).await?;
        Ok(asking.document(StatusCode::OK, &sheet.body()))
    })
    .await
}

pub(super) async fn memory(
    State(desk): State<Desk>,
    Segments(id): Segments<String>,
    request: Request,
) -> Response {
    desk.look(request, Scope::Read, Kind::Memory, async |asking| {
        let (tag, body) = desk.omp.memory(&asking, &id).await?;
        Ok(asking.tagged(StatusCode::OK, &tag, body))
    })
    .await
}

pub(super) async fn patch_memory(
    State(desk): State<Desk>,
    Segments(id): Segments<String>,
    request: Request,
) -> Response {
    desk.change(request, Kind::Memory, async |asking, change: Object| {
        let expected = desk.expected(&asking)?;
        let (tag, body) = desk.omp.patch_memory(&asking, &id, change, &expected).await?;
        Ok(asking.tagged(StatusCode::OK, &tag, body))
    })
    .await
}

pub(super) async fn put_memory(
    State(desk): State<Desk>,
    Segments(id): Segments<String>,
    request: Request,
) -> Response {
    desk.change(request, Kind::Memory, async |asking, object: Object| {
        let expected = desk.expected_of_any(&asking)?;
        let put = desk.omp.put_memory(&asking, &id, object, &expected).await?;
        let status = if put.made { StatusCode::CREATED } else { StatusCode::OK };
        let place = asking.links.path("memories", put.id);
        Ok(with(asking.tagged(status, &put.tag, put.body), LOCATION, &place))
    })
    .await
}

pub(super) async fn delete_memory(
    State(desk): State<Desk>,
    Segments(id): Segments<String>,
    request: Request,
) -> Response {
    desk.look(request, Scope::Delete, Kind::Plain, async |asking| {
        let expected = desk.expected(&asking)?;
        let body = desk.omp.delete_memory(&asking, &id, &expected).await?;
        Ok(asking.document(StatusCode::OK, &body))
    })
    .await
}

pub(super) async fn search(State(desk): State<Desk>, request: Request) -> Response {
    desk.look(request, Scope::Read, Kind::Plain, async |asking| {
        let sheet = desk.omp.search(&asking).await?;
        Ok(asking.document(StatusCode::OK, &sheet.body()))
    })
    .await
}

pub(super) async fn changes(State(desk): State<Desk>, request: Request) -> Response {
    desk.look(request, Scope::Read, Kind::Plain, async |asking| {
        let (sheet, more) = desk.omp.changes(&asking).await?;
        Ok(asking.document(StatusCode::OK, &sheet.body_with(more)))
    })
    .await
}

pub(super) async fn discovery(State(desk): State<Desk>) -> Response {
    let kind = HeaderValue::from_static("application/json");
    let body = desk.omp.discovery().to_string();
    (StatusCode::OK, [(CONTENT_TYPE, kind)], body).into_response()
}

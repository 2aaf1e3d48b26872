//! Administration.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::Response;

use super::{Desk, Segments, with};
use crate::accept::Kind;
use crate::map::Object;
use crate::scope::Scope;

pub(super) async fn give(State(desk): State<Desk>, request: Request) -> Response {
    desk.act(request, Scope::Admin, Kind::Plain, async |asking, asked: Object| {
        let (id, body) = desk.omp.give(&asking, &asked).await?;
        let place = asking.links.path("admin/grants", id);
        Ok(with(asking.document(StatusCode::CREATED, &body), LOCATION, &place))
    })
    .await
}

pub(super) async fn grants(State(desk): State<Desk>, request: Request) -> Response {
    desk.look(request, Scope::Admin, Kind::Plain, async |asking| {
        let body = desk.omp.given(&asking).await?;
        Ok(asking.document(StatusCode::OK, &body))
    })
    .await
}

pub(super) async fn take_back(
    State(desk): State<Desk>,
    Segments(id): Segments<String>,
    request: Request,
) -> Response {
    desk.look(request, Scope::Admin, Kind::Plain, async |asking| {
        let body = desk.omp.take_back(&asking, &id).await?;
        Ok(asking.document(StatusCode::OK, &body))
    })
    .await
}

pub(super) async fn hold(State(desk): State<Desk>, request: Request) -> Response {
    desk.act(request, Scope::Admin, Kind::Plain, async |asking, asked: Object| {
        let body = desk.omp.hold(&asking, &asked).await?;
        Ok(asking.document(StatusCode::OK, &body))
    })
    .await
}

pub(super) async fn audit(State(desk): State<Desk>, request: Request) -> Response {
    desk.look(request, Scope::Admin, Kind::Plain, async |asking| {
        let sheet = desk.omp.audit(&asking).await?;
        Ok(asking.document(StatusCode::OK, &sheet.body()))
    })
    .await
}

pub(super) async fn rotate(State(desk): State<Desk>, request: Request) -> Response {
    desk.look(request, Scope::Admin, Kind::Plain, async |asking| {
        let body = desk.omp.rotate(&asking).await?;
        Ok(asking.document(StatusCode::OK, &body))
    })
    .await
}

pub(super) async fn listen(State(desk): State<Desk>, request: Request) -> Response {
    desk.act(request, Scope::Admin, Kind::Plain, async |asking, asked: Object| {
        let (id, body) = desk.omp.listen(&asking, &asked).await?;
        let place = asking.links.path("admin/webhooks", id);
        Ok(with(asking.document(StatusCode::CREATED, &body), LOCATION, &place))
    })
    .await
}

pub(super) async fn listeners(State(desk): State<Desk>, request: Request) -> Response {
    desk.look(request, Scope::Admin, Kind::Plain, async |asking| {
        let body = desk.omp.listeners(&asking).await?;
        Ok(asking.document(StatusCode::OK, &body))
    })
    .await
}

pub(super) async fn stop_listening(
    State(desk): State<Desk>,
    Segments(id): Segments<String>,
    request: Request,
) -> Response {
    desk.look(request, Scope::Admin, Kind::Plain, async |asking| {
        let body = desk.omp.stop_listening(&asking, &id).await?;
        Ok(asking.document(StatusCode::OK, &body))
    })
    .await
}

pub(super) async fn switch_listener(
    State(desk): State<Desk>,
    Segments(id): Segments<String>,
    request: Request,
) -> Response {
    desk.act(request, Scope::Admin, Kind::Plain, async |asking, asked: Object| {
        let body = desk.omp.switch_listener(&asking, &id, &asked).await?;
        Ok(asking.document(StatusCode::OK, &body))
    })
    .await
}

//! Administration of tenants and their users, retention and reports.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::Response;

use super::{Desk, Segments, with};
use crate::accept::Kind;
use crate::map::Object;
use crate::scope::Scope;

pub(super) async fn tenants(State(desk): State<Desk>, request: Request) -> Response {
    desk.look(request, Scope::Admin, Kind::Plain, async |asking| {
        let sheet = desk.omp.tenants(&asking).await?;
        Ok(asking.document(StatusCode::OK, &sheet.body()))
    })
    .await
}

pub(super) async fn add_tenant(State(desk): State<Desk>, request: Request) -> Response {
    desk.act(request, Scope::Admin, Kind::Plain, async |asking, asked: Object| {
        let (id, body) = desk.omp.add_tenant(&asking, &asked).await?;
        let place = asking.links.path("admin/tenants", format!("{id}/users"));
        Ok(with(asking.document(StatusCode::CREATED, &body), LOCATION, &place))
    })
    .await
}

pub(super) async fn users(
    State(desk): State<Desk>,
    Segments(tenant): Segments<String>,
    request: Request,
) -> Response {
    desk.look(request, Scope::Admin, Kind::Plain, async |asking| {
        let sheet = desk.omp.users(&asking, &tenant).await?;
        Ok(asking.document(StatusCode::OK, &sheet.body()))
    })
    .await
}

pub(super) async fn add_user(
    State(desk): State<Desk>,
    Segments(tenant): Segments<String>,
    request: Request,
) -> Response {
    desk.act(request, Scope::Admin, Kind::Plain, async |asking, asked: Object| {
        let body = desk.omp.add_user(&asking, &tenant, &asked).await?;
        Ok(asking.document(StatusCode::CREATED, &body))
    })
    .await
}

pub(super) async fn user(
    State(desk): State<Desk>,
    Segments((tenant, user)): Segments<(String, String)>,
    request: Request,
) -> Response {
    desk.look(request, Scope::Admin, Kind::Plain, async |asking| {
        let body = desk.omp.user(&asking, &tenant, &user).await?;
        Ok(asking.document(StatusCode::OK, &body))
    })
    .await
}

pub(super) async fn remove_user(
    State(desk): State<Desk>,
    Segments((tenant, user)): Segments<(String, String)>,
    request: Request,
) -> Response {
    desk.look(request, Scope::Admin, Kind::Plain, async |asking| {
        let body = desk.omp.remove_user(&asking, &tenant, &user).await?;
        Ok(asking.document(StatusCode::OK, &body))
    })
    .await
}

pub(super) async fn retention(State(desk): State<Desk>, request: Request) -> Response {
    desk.look(request, Scope::Admin, Kind::Plain, async |asking| {
        let body = desk.omp.retention(&asking).await?;
        Ok(asking.document(StatusCode::OK, &body))
    })
    .await
}

pub(super) async fn set_retention(State(desk): State<Desk>, request: Request) -> Response {
    desk.act(request, Scope::Admin, Kind::Plain, async |asking, asked: Object| {
        let body = desk.omp.set_retention(&asking, asked).await?;
        Ok(asking.document(StatusCode::OK, &body))
    })
    .await
}

pub(super) async fn model_report(State(desk): State<Desk>, request: Request) -> Response {
    desk.look(request, Scope::Admin, Kind::Plain, async |asking| {
        let sheet = desk.omp.model_report(&asking).await?;
        Ok(asking.document(StatusCode::OK, &sheet.body()))
    })
    .await
}

pub(super) async fn guardianship(State(desk): State<Desk>, request: Request) -> Response {
    desk.look(request, Scope::Admin, Kind::Plain, async |asking| {
        let body = desk.omp.guardianship(&asking).await?;
        Ok(asking.document(StatusCode::OK, &body))
    })
    .await
}

pub(super) async fn set_guardianship(State(desk): State<Desk>, request: Request) -> Response {
    desk.act(request, Scope::Admin, Kind::Plain, async |asking, asked: Object| {
        let body = desk.omp.set_guardianship(&asking, &asked).await?;
        Ok(asking.document(StatusCode::OK, &body))
    })
    .await
}

pub(super) async fn stop(State(desk): State<Desk>, request: Request) -> Response {
    desk.act(request, Scope::Delete, Kind::Plain, async |asking, asked: Object| {
        let body = desk.omp.stop(&asking, &asked).await?;
        Ok(asking.document(StatusCode::OK, &body))
    })
    .await
}

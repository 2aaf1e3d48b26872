//! The stream of changes, as server-sent events.

use axum::extract::{Request, State};
use axum::response::Response;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use yore_client::api::{Event, Weight};
use yore_client::input;
use yore_domain::Result;
use yore_http::SentEvent;

use super::PROTOCOL;
use crate::app::App;
use crate::reply;

pub(super) async fn follow(State(app): State<App>, request: Request) -> Response {
    match open(&app, request).await {
        Ok(events) => yore_http::events(encoded(events), &app.surface().stop),
        Err(error) => reply::refusal(&error),
    }
}

async fn open(app: &App, request: Request) -> Result<BoxStream<'static, Result<Event>>> {
    let (parts, body) = request.into_parts();
    let surface = app.surface();
    let call = surface.call(&parts, PROTOCOL)?;
    let (bytes, _) = app.bounds(Weight::Light);
    let input::Watch { after } =
        yore_http::input(&parts, body, bytes, surface.limits.depth).await?;
    let after = after.map(|cursor| surface.engine.seq_at(&cursor)).transpose()?;
    surface.engine.subscribe(&call, after).await
}

/// Events as text. They end when the engine ends them, as when the grant behind is revoked.
fn encoded(events: BoxStream<'static, Result<Event>>) -> BoxStream<'static, SentEvent> {
    let sent = stream::unfold(events, |mut events| async move {
        let event = events.next().await?.ok()?;
        let data = serde_json::to_string(&event).ok()?;
        Some((SentEvent { id: Some(event.cursor), event: None, data }, events))
    });
    sent.boxed()
}

//! The stream of changes, as server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use tokio::time::timeout;
use yore_client::api::{Event, Weight};
use yore_client::input;
use yore_domain::Result;

use crate::app::App;
use crate::{call, reply};

/// How often a silent stream says that it lives; a gone client is noticed by it too.
const BEAT: Duration = Duration::from_secs(15);

pub(super) async fn follow(State(app): State<App>, request: Request) -> Response {
    match open(&app, request).await {
        Ok(events) => {
            let ended = app.stop().clone().cancelled_owned();
            let body = Body::from_stream(encoded(events).take_until(ended));
            let kind = HeaderValue::from_static("text/event-stream");
            ([(CONTENT_TYPE, kind)], body).into_response()
        }
        Err(error) => reply::refusal(&error),
    }
}

async fn open(app: &App, request: Request) -> Result<BoxStream<'static, Result<Event>>> {
    let (parts, body) = request.into_parts();
    let call = call::call(&parts)?;
    let (bytes, _) = app.bounds(Weight::Light);
    let input::Watch { after } =
        call::input(&parts, body, bytes, app.config().limits.depth).await?;
    let engine = app.engine();
    let after = after.map(|cursor| engine.seq_at(&cursor)).transpose()?;
    engine.subscribe(&call, after).await
}

/// Events as text, with a comment whenever nothing happened for a while. It ends when the
/// engine ends it, as when the grant behind it is revoked.
fn encoded(
    events: BoxStream<'static, Result<Event>>,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let greeting = stream::once(async { Ok(Bytes::from_static(b": yore\n\n")) });
    greeting.chain(stream::unfold(events, |mut events| async move {
        let text = match timeout(BEAT, events.next()).await {
            Err(_) => ": beat\n\n".to_owned(),
            Ok(Some(Ok(event))) => {
                let data = serde_json::to_string(&event).ok()?;
                format!("id: {}\ndata: {data}\n\n", event.cursor)
            }
            Ok(Some(Err(_)) | None) => return None,
        };
        Some((Ok(Bytes::from(text)), events))
    }))
}

//! Streams of server-sent events.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How often a silent stream says that it lives; a gone client is noticed by it too.
pub const BEAT: Duration = Duration::from_secs(15);

/// One event as the wire knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentEvent {
    /// Where a client resumes from.
    pub id: Option<String>,
    /// Its type, when it is not the plain one.
    pub event: Option<&'static str>,
    /// What it says. Lines stay lines.
    pub data: String,
}

impl SentEvent {
    fn encode(&self) -> String {
        let mut text = String::with_capacity(self.data.len() + 64);
        if let Some(id) = &self.id {
            let _ = writeln!(text, "id: {id}");
        }
        if let Some(event) = self.event {
            let _ = writeln!(text, "event: {event}");
        }
        for line in self.data.split(['\n', '\r']) {
            let _ = writeln!(text, "data: {line}");
        }
        text.push('\n');
        text
    }
}

/// Answers with a stream of events. A comment says that it lives whenever nothing happened
/// for a while; it ends when the stream ends or the server stops.
#[must_use]
pub fn events(stream: BoxStream<'static, SentEvent>, stop: &CancellationToken) -> Response {
    answered(": yore\n\n".to_owned(), stream, stop)
}

/// The same, and says after how long a client comes back that was cut off.
#[must_use]
pub fn events_with_retry(
    retry: Duration,
    stream: BoxStream<'static, SentEvent>,
    stop: &CancellationToken,
) -> Response {
    answered(format!("retry: {}\n\n", retry.as_millis()), stream, stop)
}

fn answered(
    greeting: String,
    stream: BoxStream<'static, SentEvent>,
    stop: &CancellationToken,
) -> Response {
    let told = encoded(greeting, stream).take_until(stop.clone().cancelled_owned());
    let body = Body::from_stream(told);
    let head = [
        (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (head, body).into_response()
}

fn encoded(
    greeting: String,
    events: BoxStream<'static, SentEvent>,
) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let greeting = stream::once(async { Ok(Bytes::from(greeting)) });
    greeting.chain(stream::unfold(events, |mut events| async move {
        let text = match timeout(BEAT, events.next()).await {
            Err(_) => ": beat\n\n".to_owned(),
            Ok(Some(event)) => event.encode(),
            Ok(None) => return None,
        };
        Some((Ok(Bytes::from(text)), events))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_forge_a_field() {
        let event = SentEvent {
            id: Some("7".into()),
            event: Some("change"),
            data: "one\nid: 9\r\nevent: forged\n\ndata: x".into(),
        };
        let text = event.encode();
        assert_eq!(text.lines().filter(|line| line.starts_with("id: ")).count(), 1);
        assert_eq!(text.lines().filter(|line| line.starts_with("event: ")).count(), 1);
        assert!(text.ends_with("\n\n") && !text.trim_end().contains("\n\n"));
    }
}

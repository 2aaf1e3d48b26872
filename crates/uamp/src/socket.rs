//! The WebSocket binding: frames of a length and JSON, in both directions.

use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use yore_canon::json::{self as strict, Limits, Object};
use yore_domain::stream::Frame;
use yore_engine::Call;

use crate::Uamp;
use crate::envelope::Rejected;
use crate::framing::{self, Order};
use crate::refusal::{Refusal, Result};
use crate::session::Session;

/// The subprotocol that is echoed when it is offered.
pub(crate) const SUBPROTOCOL: &str = "uamp.v1";
/// How often the other side is asked whether it lives, and when it is taken for gone.
const PING: Duration = Duration::from_secs(20);
const SILENCE: Duration = Duration::from_secs(60);
/// How long a last word may take.
const CLOSING: Duration = Duration::from_secs(2);

struct Connection {
    session: Session,
    socket: WebSocket,
    order: Order,
}

/// Serves a connection until either side ends it, the client falls silent or the server stops.
pub(crate) async fn serve(uamp: Uamp, call: Call, socket: WebSocket, stop: CancellationToken) {
    let (session, mut told) = Session::new(uamp, call);
    let mut connection = Connection { session, socket, order: Order::Big };
    let (mut heard, mut ping) = (Instant::now(), tokio::time::interval(PING));
    ping.tick().await;
    let (code, reason) = loop {
        let sent = tokio::select! {
            message = connection.socket.recv() => {
                heard = Instant::now();
                match message {
                    Some(Ok(Message::Binary(bytes))) => connection.hear(&bytes).await,
                    Some(Ok(Message::Text(text))) => connection.object(text.as_bytes()).await,
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(()),
                    Some(Ok(Message::Close(_)) | Err(_)) | None => break (close_code::NORMAL, ""),
                }
            }
            Some((stream, frame)) = told.recv() => connection.tell(&stream, frame).await,
            _ = ping.tick() => match heard.elapsed() < SILENCE {
                true => connection.socket.send(Message::Ping(Vec::new().into())).await,
                false => break (close_code::NORMAL, "no sign of life for 60 s"),
            },
            () = stop.cancelled() => break (close_code::RESTART, "the server is ending"),
        };
        if sent.is_err() {
            break (close_code::AWAY, "gone");
        }
    };
    let close = CloseFrame { code, reason: reason.into() };
    // The other side may have closed first, or read nothing any more.
    let _ =
        tokio::time::timeout(CLOSING, connection.socket.send(Message::Close(Some(close)))).await;
}

type Sent = std::result::Result<(), axum::Error>;

impl Connection {
    /// Takes a message of one or more whole frames.
    async fn hear(&mut self, bytes: &[u8]) -> Sent {
        let Some((order, frames)) = framing::frames(bytes) else {
            let refusal = Refusal::malformed("frame", "its length is not that of its JSON");
            return self.refuse(&refusal.into()).await;
        };
        self.order = order;
        for frame in frames {
            self.object(frame).await?;
        }
        Ok(())
    }

    /// Takes an envelope or a delta.
    async fn object(&mut self, bytes: &[u8]) -> Sent {
        let limits = Limits { bytes: self.session.uamp().0.options.largest, ..Limits::default() };
        let Ok(object) = strict::parse_object(bytes, limits) else {
            let refusal = Refusal::malformed("frame", "is not one strict JSON object");
            return self.refuse(&refusal.into()).await;
        };
        let taken = if object.contains_key("intent") {
            self.envelope(object, bytes).await
        } else if object.contains_key("delta_seq") {
            self.session.delta(&object).await.map_err(Rejected::from).map(|()| None)
        } else {
            Err(Refusal::malformed("frame", "is neither an envelope nor a delta").into())
        };
        match taken {
            Ok(None) => Ok(()),
            Ok(Some(reply)) => self.send(reply.as_bytes()).await,
            Err(rejected) => self.refuse(&rejected).await,
        }
    }

    async fn envelope(&mut self, object: Object, bytes: &[u8]) -> Result<Option<String>, Rejected> {
        let Some(receipt) = self.session.envelope(object, bytes).await? else { return Ok(None) };
        let uamp = self.session.uamp().clone();
        Ok(Some(uamp.0.accepted(&receipt).await.map_err(Refusal::from)?))
    }

    async fn tell(&mut self, stream: &str, frame: Result<Frame>) -> Sent {
        match frame {
            Ok(frame) => self.send(&frame.bytes).await,
            Err(refusal) => {
                let stream = Some(stream.to_owned());
                self.refuse(&Rejected { stream, ..refusal.into() }).await
            }
        }
    }

    async fn refuse(&mut self, rejected: &Rejected) -> Sent {
        match self.session.uamp().0.error(rejected).await {
            Ok(envelope) => self.send(envelope.as_bytes()).await,
            Err(error) => Err(axum::Error::new(error)),
        }
    }

    async fn send(&mut self, json: &[u8]) -> Sent {
        let framed = framing::framed(self.order, json).map_err(axum::Error::new)?;
        let message = Message::Binary(framed.into());
        // Whoever takes nothing for so long is as gone as whoever says nothing.
        match tokio::time::timeout(SILENCE, self.socket.send(message)).await {
            Ok(sent) => sent,
            Err(late) => Err(axum::Error::new(late)),
        }
    }
}

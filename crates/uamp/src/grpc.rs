//! The gRPC binding: the same messages and streams, as the service `uamp.v1.Agent`.
//!
//! An envelope is rebuilt member for member as the JSON that was signed, and from there on goes
//! the way of every other. Whoever asks is told what the service looks like (reflection) and
//! whether it serves (health).

mod convert;

use axum::Router;
use axum::extract::{Request as HttpRequest, State};
use axum::http::HeaderValue;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response as HttpResponse;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use prost::Message;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Request, Response, Status, Streaming};
use yore_canon::jcs;
use yore_domain::grant::Verb;
use yore_domain::stream::Frame;
use yore_engine::Call;

use crate::Uamp;
use crate::envelope::Rejected;
use crate::refusal::{Code, Refusal, Result};
use crate::routes::Desk;
use crate::session::Session;
use proto::agent_server::{Agent, AgentServer};
use proto::frame::Kind;

pub use convert::{envelope, object};

/// The messages and the service, made from `proto/uamp.proto`.
#[allow(
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    clippy::all,
    reason = "the code is generated"
)]
pub mod proto {
    tonic::include_proto!("uamp.v1");
}

/// The definition, as reflection shows it.
const DEFINITION: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/uamp.bin"));
/// The name of the service.
const SERVICE: &str = "uamp.v1.Agent";
/// Frames that wait for a slow reader.
const QUEUE: usize = 64;

type Answer<T> = std::result::Result<Response<T>, Status>;

/// Who calls, as the head of the request says, or why nobody may on this way.
#[derive(Clone)]
struct Entered(Result<Call>);

/// The routes of the service, of reflection and of health.
pub(crate) fn routes(desk: &Desk) -> Router<Desk> {
    let most = desk.uamp().0.options.largest;
    // JSON is checked against the limit; this one only bounds what is read before.
    let agent = AgentServer::new(Service { uamp: desk.uamp().clone(), stop: desk.stop().clone() })
        .max_decoding_message_size(most.saturating_mul(2))
        .max_encoding_message_size(usize::MAX);
    let routes = Router::new().route_service("/uamp.v1.Agent/{*method}", agent);
    let routes = routes.layer(from_fn_with_state(desk.clone(), enter));
    let health = tonic_health::server::HealthReporter::new();
    let serving = health.set_service_status(SERVICE, tonic_health::ServingStatus::Serving);
    serving.now_or_never().expect("invariant: nobody else has the reporter yet");
    let health = tonic_health::server::HealthService::from_health_reporter(health);
    let health = tonic_health::pb::health_server::HealthServer::new(health);
    let routes = routes.route_service("/grpc.health.v1.Health/{*method}", health);
    let shown = || {
        let definition = tonic_reflection::server::Builder::configure();
        definition
            .register_encoded_file_descriptor_set(DEFINITION)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let old = shown().build_v1alpha().expect("invariant: the definition was made by the build");
    let new = shown().build_v1().expect("invariant: the definition was made by the build");
    routes
        .route_service("/grpc.reflection.v1alpha.ServerReflection/{*method}", old)
        .route_service("/grpc.reflection.v1.ServerReflection/{*method}", new)
}

/// Reads who calls, and says in the protocol's words what the library says in its own.
async fn enter(State(desk): State<Desk>, mut request: HttpRequest, next: Next) -> HttpResponse {
    let (parts, body) = request.into_parts();
    let entered = Entered(desk.call(&parts));
    request = HttpRequest::from_parts(parts, body);
    request.extensions_mut().insert(entered);
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let too_large = HeaderValue::from(tonic::Code::OutOfRange as i32);
    if headers.get("grpc-status") == Some(&too_large) {
        let refused = status(&Refusal::new(Code::TooLarge, ""));
        headers.insert("grpc-status", HeaderValue::from(refused.code() as i32));
        headers.extend(refused.metadata().clone().into_headers());
    }
    response
}

fn entered<T>(request: &Request<T>) -> std::result::Result<Call, Status> {
    match request.extensions().get::<Entered>() {
        Some(Entered(Ok(call))) => Ok(call.clone()),
        Some(Entered(Err(refusal))) => Err(status(refusal)),
        None => Err(status(&Refusal::new(Code::Internal, "internal error"))),
    }
}

/// What serves every call.
#[derive(Debug)]
struct Service {
    uamp: Uamp,
    stop: CancellationToken,
}

#[tonic::async_trait]
impl Agent for Service {
    async fn send(&self, request: Request<proto::Envelope>) -> Answer<proto::Receipt> {
        let call = entered(&request)?;
        let object = object(request.into_inner()).map_err(|refusal| status(&refusal))?;
        let bytes = jcs::canonical_object(&object);
        let taken = Box::pin(self.uamp.receive(&call, bytes.as_bytes())).await;
        let receipt = taken.map_err(|rejected| status(&rejected.refusal))?;
        Ok(Response::new(convert::receipt(receipt)))
    }

    type StreamStream = BoxStream<'static, std::result::Result<proto::Delta, Status>>;

    async fn stream(&self, request: Request<proto::StreamRequest>) -> Answer<Self::StreamStream> {
        let call = entered(&request)?;
        let proto::StreamRequest { stream_id, after_seq } = request.into_inner();
        let core = &self.uamp.0;
        let followed = async {
            core.engine.identify(&call, Verb::Read).await?;
            let patience = Some(core.options.patience);
            self.uamp.follow(&call, &stream_id, after_seq, patience).await
        };
        let delivery = followed.await.map_err(|refusal: Refusal| status(&refusal))?;
        let deltas = stream::unfold(delivery, |mut delivery| async move {
            let frame = delivery.next().await?;
            Some((frame.and_then(|frame| delta(&frame)), delivery))
        });
        let deltas = deltas.map(|delta| delta.map_err(|refusal| status(&refusal)));
        let stop = self.stop.clone().cancelled_owned();
        Ok(Response::new(deltas.take_until(stop).boxed()))
    }

    type ChannelStream = BoxStream<'static, std::result::Result<proto::Frame, Status>>;

    async fn channel(
        &self,
        request: Request<Streaming<proto::Frame>>,
    ) -> Answer<Self::ChannelStream> {
        let call = entered(&request)?;
        let known = self.uamp.0.engine.identify(&call, Verb::Read).await;
        known.map_err(|error| status(&error.into()))?;
        let (out, sent) = mpsc::channel(QUEUE);
        let (uamp, stop) = (self.uamp.clone(), self.stop.clone());
        tokio::spawn(async move {
            let ended = converse(uamp, call, request.into_inner(), &out, stop).await;
            if let Err(status) = ended {
                // Who is gone need not hear why.
                let _ = out.send(Err(status)).await;
            }
        });
        let sent = stream::unfold(sent, |mut sent| async move { Some((sent.recv().await?, sent)) });
        Ok(Response::new(sent.boxed()))
    }

    async fn get_manifest(
        &self,
        request: Request<proto::GetManifestRequest>,
    ) -> Answer<proto::SignedDocument> {
        entered(&request)?;
        let core = &self.uamp.0;
        let signed = core.signed("manifest+jws", &core.manifest()).await;
        let jws = signed.map_err(|error| status(&error.into()))?.into_bytes();
        let media_type = "application/manifest+jws".to_owned();
        Ok(Response::new(proto::SignedDocument { media_type, jws }))
    }
}

type Out = mpsc::Sender<std::result::Result<proto::Frame, Status>>;

/// Speaks both ways until the client ends it. A client that says nothing more is still told what
/// its streams have left.
async fn converse(
    uamp: Uamp,
    call: Call,
    mut heard: Streaming<proto::Frame>,
    out: &Out,
    stop: CancellationToken,
) -> std::result::Result<(), Status> {
    let (mut session, mut told) = Session::new(uamp, call);
    let mut listening = true;
    loop {
        let answer = tokio::select! {
            frame = heard.message(), if listening => match frame? {
                Some(frame) => hear(&mut session, frame.kind).await,
                None => {
                    listening = false;
                    session.close();
                    Ok(None)
                }
            },
            next = told.recv() => match next {
                Some((stream, frame)) => frame.and_then(|frame| delta(&frame)).map_or_else(
                    |refusal| Err(Rejected { stream: Some(stream), ..refusal.into() }),
                    |delta| Ok(Some(Kind::Delta(delta))),
                ),
                None => return Ok(()),
            },
            () = out.closed() => return Ok(()),
            () = stop.cancelled() => {
                let ending = Refusal::new(Code::Busy, "the server is ending");
                return Err(status(&Refusal { retry_after: Some(1), ..ending }));
            }
        };
        let kind = match answer {
            Ok(None) => continue,
            Ok(Some(kind)) => kind,
            Err(rejected) => Kind::Envelope(refused(&session, &rejected).await?),
        };
        if out.send(Ok(proto::Frame { kind: Some(kind) })).await.is_err() {
            return Ok(());
        }
    }
}

/// Takes what the client says.
async fn hear(session: &mut Session, kind: Option<Kind>) -> Result<Option<Kind>, Rejected> {
    match kind {
        Some(Kind::Envelope(envelope)) => {
            let object = object(envelope)?;
            let bytes = jcs::canonical_object(&object);
            let most = session.uamp().0.options.largest;
            if bytes.len() > most {
                let reason = format!("the envelope is larger than {most} bytes");
                return Err(Refusal::new(Code::TooLarge, reason).into());
            }
            let receipt = session.envelope(object, bytes.as_bytes()).await?;
            Ok(receipt.map(convert::receipt).map(Kind::Receipt))
        }
        Some(Kind::Delta(delta)) => {
            session.delta(&convert::delta_object(delta)?).await?;
            Ok(None)
        }
        Some(Kind::Ack(proto::Ack { stream_id, delta_seq })) => {
            let wrong = || Refusal::malformed("delta_seq", "is not the number of a frame");
            let below = delta_seq.checked_add(1).ok_or_else(wrong)?;
            session.acknowledge(&stream_id, below).await?;
            Ok(None)
        }
        Some(Kind::Resume(proto::StreamRequest { stream_id, after_seq })) => {
            session.follow(&stream_id, after_seq).await?;
            Ok(None)
        }
        Some(Kind::Receipt(_)) | None => {
            Err(Refusal::malformed("frame", "is nothing that a client says").into())
        }
    }
}

/// The signed error that answers one message; the channel stays open.
async fn refused(
    session: &Session,
    rejected: &Rejected,
) -> std::result::Result<proto::Envelope, Status> {
    let signed = session.uamp().0.error(rejected).await;
    let signed = signed.map_err(|error| status(&error.into()))?;
    let parsed = serde_json::from_str(&signed).map_err(|error| {
        tracing::error!(%error, "an envelope of ours cannot be read");
        status(&Refusal::new(Code::Internal, "internal error"))
    })?;
    Ok(envelope(&parsed))
}

fn delta(frame: &Frame) -> Result<proto::Delta> {
    convert::delta(&frame.bytes)
}

/// What gRPC calls a refusal. The protocol's own code rides in the trailers.
fn status(refusal: &Refusal) -> Status {
    let code = match refusal.code {
        Code::Malformed | Code::Unsupported => tonic::Code::InvalidArgument,
        Code::Unauthenticated => tonic::Code::Unauthenticated,
        Code::Forbidden => tonic::Code::PermissionDenied,
        Code::Unknown => tonic::Code::NotFound,
        Code::Missing => tonic::Code::Aborted,
        Code::TooLarge => tonic::Code::ResourceExhausted,
        Code::Internal => tonic::Code::Internal,
        Code::Busy => tonic::Code::Unavailable,
    };
    let mut trailers = MetadataMap::new();
    trailers.insert("uamp-code", MetadataValue::from_static(refusal.code.as_str()));
    let retry = if refusal.code.retry() { "yes" } else { "no" };
    trailers.insert("uamp-retry", MetadataValue::from_static(retry));
    if let Some((first, last)) = refusal.frames {
        trailers.insert("uamp-first", first.into());
        trailers.insert("uamp-last", last.into());
    }
    let details = match refusal.retry_after {
        None => Bytes::new(),
        Some(seconds) => retry_info(code, refusal, seconds),
    };
    Status::with_details_and_metadata(code, refusal.message.clone(), details, trailers)
}

/// `google.rpc.Status` with a `google.rpc.RetryInfo` in it.
fn retry_info(code: tonic::Code, refusal: &Refusal, seconds: u64) -> Bytes {
    #[derive(Clone, PartialEq, prost::Message)]
    struct RetryInfo {
        #[prost(message, optional, tag = "1")]
        retry_delay: Option<prost_types::Duration>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    struct Details {
        #[prost(int32, tag = "1")]
        code: i32,
        #[prost(string, tag = "2")]
        message: String,
        #[prost(message, repeated, tag = "3")]
        details: Vec<prost_types::Any>,
    }
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    let delay = prost_types::Duration { seconds, nanos: 0 };
    let any = prost_types::Any {
        type_url: "type.googleapis.com/google.rpc.RetryInfo".to_owned(),
        value: RetryInfo { retry_delay: Some(delay) }.encode_to_vec(),
    };
    let details =
        Details { code: code as i32, message: refusal.message.clone(), details: vec![any] };
    details.encode_to_vec().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uamp_093_every_code_has_its_status_and_rides_in_the_trailers() {
        let table = [
            (Code::Malformed, tonic::Code::InvalidArgument, "4.00", "no"),
            (Code::Unauthenticated, tonic::Code::Unauthenticated, "4.01", "no"),
            (Code::Forbidden, tonic::Code::PermissionDenied, "4.03", "no"),
            (Code::Unknown, tonic::Code::NotFound, "4.04", "no"),
            (Code::Missing, tonic::Code::Aborted, "4.09", "yes"),
            (Code::TooLarge, tonic::Code::ResourceExhausted, "4.13", "no"),
            (Code::Unsupported, tonic::Code::InvalidArgument, "4.15", "no"),
            (Code::Internal, tonic::Code::Internal, "5.00", "no"),
            (Code::Busy, tonic::Code::Unavailable, "5.04", "yes"),
        ];
        for (code, expected, text, retry) in table {
            let status = status(&Refusal::new(code, "x"));
            assert_eq!(status.code(), expected);
            assert_eq!(status.metadata().get("uamp-code").unwrap(), text);
            assert_eq!(status.metadata().get("uamp-retry").unwrap(), retry);
        }
        let busy = Refusal { retry_after: Some(7), ..Refusal::new(Code::Busy, "x") };
        // Field 3, an Any of 46 bytes of name and a message whose field 1 is 7 seconds.
        let details = status(&busy).details().to_vec();
        assert!(details.windows(9).any(|part| part == b"RetryInfo"));
        assert!(details.ends_with(&[0x0a, 0x02, 0x08, 0x07]));
    }
}

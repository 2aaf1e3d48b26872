//! gRPC, with a foreign client over a real socket.

use std::net::SocketAddr;

use futures::StreamExt;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};
use yore_canon::jcs;
use yore_uamp::grpc::proto::agent_client::AgentClient;
use yore_uamp::grpc::proto::frame::Kind;
use yore_uamp::grpc::{self, proto};

use crate::sockets::{hear, listen, open, say};
use crate::streams::ended;
use crate::support::{Agent, Reply, Vault, vectors};
use crate::vectors::{token, vault};

struct Client {
    agent: AgentClient<Channel>,
    token: String,
}

impl Client {
    async fn new(address: SocketAddr, token: &str) -> Self {
        let channel = Channel::from_shared(format!("http://{address}")).unwrap();
        let channel = channel.connect().await.unwrap();
        Self { agent: AgentClient::new(channel), token: token.to_owned() }
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if !self.token.is_empty() {
            let bearer: MetadataValue<_> = format!("Bearer {}", self.token).parse().unwrap();
            request.metadata_mut().insert("authorization", bearer);
        }
        request
    }

    async fn send(&mut self, envelope: &str) -> Result<proto::Receipt, Status> {
        let request = self.request(of(envelope));
        Ok(self.agent.send(request).await?.into_inner())
    }

    async fn stream(
        &mut self,
        stream: &str,
        after_seq: Option<u64>,
    ) -> Result<Streaming<proto::Delta>, Status> {
        let stream_id = stream.to_owned();
        let request = self.request(proto::StreamRequest { stream_id, after_seq });
        Ok(self.agent.stream(request).await?.into_inner())
    }

    /// Opens a channel: what is said goes in here, what is heard comes out there.
    async fn channel(&mut self) -> (mpsc::Sender<proto::Frame>, Streaming<proto::Frame>) {
        let (say, mut said) = mpsc::channel(64);
        let frames = futures::stream::poll_fn(move |context| said.poll_recv(context));
        let request = self.request(frames);
        (say, self.agent.channel(request).await.unwrap().into_inner())
    }
}

fn of(envelope: &str) -> proto::Envelope {
    grpc::envelope(&serde_json::from_str(envelope).unwrap())
}

fn frame(kind: Kind) -> proto::Frame {
    proto::Frame { kind: Some(kind) }
}

fn code(status: &Status) -> &str {
    status.metadata().get("uamp-code").unwrap().to_str().unwrap()
}

#[track_caller]
fn delta(frame: Option<Result<proto::Frame, Status>>) -> proto::Delta {
    match frame.unwrap().unwrap().kind.unwrap() {
        Kind::Delta(delta) => delta,
        other @ (Kind::Envelope(_) | Kind::Ack(_) | Kind::Resume(_) | Kind::Receipt(_)) => {
            panic!("{other:?}")
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_064_accepted_vectors_are_accepted_over_grpc() {
    let vectors = vectors();
    for case in vectors["accept"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let vault = vault().await;
        let token = token(&vault, &case["envelope"]).await;
        let mut client = Client::new(listen(&vault).await, &token).await;
        if matches!(name, "progress-ack" | "cancel") {
            let mut openings = vectors["accept"].as_array().unwrap().iter();
            let opening = openings.find(|case| case["name"] == "every-member-es256").unwrap();
            client.send(&opening["envelope"].to_string()).await.unwrap();
        }
        let sent = client.send(&case["envelope"].to_string()).await;
        // The stream that it acknowledges has ended after one frame here.
        if name == "progress-ack" {
            let status = sent.unwrap_err();
            assert_eq!((status.code(), code(&status)), (Code::Aborted, "4.09"));
            continue;
        }
        let receipt = sent.unwrap_or_else(|status| panic!("{name}: {status}"));
        assert_eq!(receipt.id, case["envelope"]["id"], "{name}");
        let intent = case["envelope"]["intent"].as_str().unwrap();
        let opens = matches!(intent, "ask" | "propose" | "subscribe");
        assert_eq!(!receipt.stream_id.is_empty(), opens, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_064_uamp_090_uamp_093_rejected_vectors_are_rejected_over_grpc() {
    let (vectors, vault) = (vectors(), vault().await);
    let address = listen(&vault).await;
    let mut tried = 0;
    for case in vectors["reject"].as_array().unwrap() {
        let (name, sent) = (case["name"].as_str().unwrap(), case["envelope"].as_object());
        // What protobuf has no place for cannot be sent this way at all.
        let Some(sent) = sent.filter(|sent| {
            let carried = grpc::object(grpc::envelope(sent)).unwrap();
            case["raw_request_body"].is_null()
                && jcs::canonical_object(&carried) == jcs::canonical_object(sent)
        }) else {
            continue;
        };
        tried += 1;
        let token = token(&vault, &case["envelope"]).await;
        let mut client = Client::new(address, &token).await;
        let refused = client.send(&Value::Object(sent.clone()).to_string()).await;
        let status = refused.expect_err(name);
        assert_eq!(code(&status), case["expect_code"].as_str().unwrap(), "{name}: {status}");
        let expected = match code(&status) {
            "4.01" => Code::Unauthenticated,
            "4.03" => Code::PermissionDenied,
            "4.04" => Code::NotFound,
            "4.13" => Code::ResourceExhausted,
            _ => Code::InvalidArgument,
        };
        assert_eq!(status.code(), expected, "{name}");
        assert_eq!(status.metadata().get("uamp-retry").unwrap(), "no", "{name}");
    }
    assert!(tried >= 10, "{tried} of the vectors can be sent over gRPC");
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_048_uamp_070_uamp_093_refusals_over_grpc_say_no_more_than_elsewhere() {
    let vault = Vault::with(|options| options.largest = 64 << 10).await;
    let (one, two) = (vault.agent("one", 1).await, vault.agent("two", 2).await);
    ended(&vault, &one, "s", 3, 8).await;
    let address = listen(&vault).await;
    let mut nobody = Client::new(address, "").await;
    let status = nobody.send(&one.sign(&one.ask("x"))).await.unwrap_err();
    assert_eq!((status.code(), code(&status)), (Code::Unauthenticated, "4.01"));
    let status = nobody.stream("s", None).await.unwrap_err();
    assert_eq!((status.code(), code(&status)), (Code::Unauthenticated, "4.01"));
    let mut client = Client::new(address, &two.token).await;
    let theirs = client.stream("s", None).await.unwrap_err();
    let nothing = client.stream("nothing", None).await.unwrap_err();
    assert_eq!((theirs.code(), code(&theirs)), (Code::NotFound, "4.04"));
    assert_eq!((theirs.code(), theirs.message()), (nothing.code(), nothing.message()));
    let status = client.send(&one.sign(&one.ask("x"))).await.unwrap_err();
    assert_eq!((status.code(), code(&status)), (Code::PermissionDenied, "4.03"));
    for size in [70 << 10, 1 << 20] {
        let status = client.send(&two.sign(&two.ask(&"x".repeat(size)))).await.unwrap_err();
        assert_eq!((status.code(), code(&status)), (Code::ResourceExhausted, "4.13"), "{size}");
    }
    let mut client = Client::new(address, &one.token).await;
    let status = client.stream("s", Some(30)).await.unwrap_err();
    assert_eq!((status.code(), code(&status)), (Code::Aborted, "4.09"));
    assert_eq!(status.metadata().get("uamp-last").unwrap(), "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_064_a_question_over_a_channel_is_answered_there_and_faults_leave_it_open() {
    let vault = Vault::new().await;
    vault.remembers("I am allergic to peanuts").await;
    let agent = vault.agent("cook", 1).await;
    let mut client = Client::new(listen(&vault).await, &agent.token).await;
    let (say, mut heard) = client.channel().await;
    say.send(frame(Kind::Receipt(proto::Receipt::default()))).await.unwrap();
    let Kind::Envelope(error) = heard.next().await.unwrap().unwrap().kind.unwrap() else {
        panic!("a fault is answered by an envelope");
    };
    assert_eq!((error.intent.as_deref(), error.sig.is_some()), (Some("error"), true));
    let ask = agent.ask("what am I allergic to?");
    let sent = of(&agent.sign(&ask));
    let (mut receipt, mut deltas) = (None, Vec::new());
    say.send(frame(Kind::Envelope(sent.clone()))).await.unwrap();
    while deltas.last().is_none_or(|last: &proto::Delta| last.r#type != "done") {
        match heard.next().await.unwrap().unwrap().kind.unwrap() {
            Kind::Receipt(given) => receipt = Some(given),
            Kind::Delta(delta) => deltas.push(delta),
            other @ (Kind::Envelope(_) | Kind::Ack(_) | Kind::Resume(_)) => panic!("{other:?}"),
        }
    }
    let receipt = receipt.unwrap();
    assert_eq!((receipt.id.as_str(), receipt.duplicate), (ask["id"].as_str().unwrap(), false));
    assert!(deltas.iter().all(|delta| delta.stream_id == receipt.stream_id));
    assert!(format!("{deltas:?}").contains("peanuts"));
    // Sent again it is the same, elsewhere too.
    let again = client.send(&agent.sign(&ask)).await.unwrap();
    assert_eq!((again.stream_id, again.duplicate), (receipt.stream_id, true));
    // Who says nothing more is told the rest, and then the channel ends.
    drop(say);
    assert!(heard.next().await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_052_uamp_054_the_window_holds_on_a_channel() {
    let vault = Vault::new().await;
    let agent = vault.agent("scheduler", 1).await;
    ended(&vault, &agent, "s", 20, 8).await;
    let mut client = Client::new(listen(&vault).await, &agent.token).await;
    let (say, mut heard) = client.channel().await;
    let resume = proto::StreamRequest { stream_id: "s".into(), after_seq: None };
    say.send(frame(Kind::Resume(resume))).await.unwrap();
    let pause = std::time::Duration::from_millis(300);
    let mut next = 0;
    for last in [7, 12, 19] {
        while next <= last {
            assert_eq!(delta(heard.next().await).delta_seq, next);
            next += 1;
            if next == 8 || next == 13 {
                let more = tokio::time::timeout(pause, heard.next()).await;
                assert!(more.is_err(), "{next}: no frame beyond the window: {more:?}");
            }
        }
        let ack = if last == 7 { 4 } else { 12 };
        let ack = proto::Ack { stream_id: "s".into(), delta_seq: ack };
        say.send(frame(Kind::Ack(ack))).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_047_uamp_056_a_stream_goes_on_on_any_transport() {
    let full = std::env::var_os("YORE_FULL").is_some();
    let (frames, cuts) = if full { (10_000, 100) } else { (600, 12) };
    let vault = Vault::new().await;
    let agent = vault.agent("scheduler", 1).await;
    ended(&vault, &agent, "s", frames, 1024).await;
    let address = listen(&vault).await;
    let mut client = Client::new(address, &agent.token).await;
    // A generator of our own, so that a failure can be repeated.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut read: Vec<Value> = Vec::new();
    let mut used = [0_u32; 3];
    while read.len() < usize::try_from(frames).unwrap() {
        let last = read.last().map(|frame| frame["delta_seq"].as_u64().unwrap());
        let cut = usize::try_from(random(2 * frames / cuts) + 1).unwrap();
        let way = usize::try_from(random(3)).unwrap();
        used[way] += 1;
        let more = match way {
            0 => over_http(&vault, &agent, last, cut).await,
            1 => over_socket(address, &agent, last, cut).await,
            _ => over_grpc(&mut client, last, cut).await,
        };
        assert!(!more.is_empty());
        read.extend(more);
    }
    assert!(used.iter().all(|times| *times > 0), "{used:?}");
    for (number, frame) in read.iter().enumerate() {
        assert_eq!(
            (&frame["delta_seq"], &frame["payload"]["index"]),
            (&json!(number), &json!(number))
        );
        let last = number + 1 == read.len();
        assert_eq!(frame["type"], if last { "done" } else { "chunk" });
    }
}

async fn over_http(vault: &Vault, agent: &Agent, last: Option<u64>, cut: usize) -> Vec<Value> {
    let after = last.map_or_else(String::new, |last| format!("?after={last}"));
    let reply: Reply = vault.get(&agent.token, &format!("/v1/stream/s{after}"), &[]).await;
    reply.expect(200).frames().into_iter().take(cut).collect()
}

async fn over_socket(
    address: SocketAddr,
    agent: &Agent,
    last: Option<u64>,
    cut: usize,
) -> Vec<Value> {
    let mut socket = open(address, agent).await;
    // Nothing acknowledged is said by the number of the frame that is missing.
    let body = last.map_or_else(|| json!({"expected": 0}), |last| json!({ "ack": last }));
    let body = json!({"type": "application/json", "content": body.to_string()});
    let mut subscribe = agent.envelope("subscribe", &body);
    subscribe["stream_id"] = "s".into();
    say(&mut socket, &agent.sign(&subscribe)).await;
    let mut frames = Vec::new();
    while frames.len() < cut {
        let frame = hear(&mut socket).await;
        assert!(frame["delta_seq"].is_u64(), "{frame}");
        let done = frame["type"] == "done";
        frames.push(frame);
        if done {
            break;
        }
    }
    // The connection is cut, not ended.
    drop(socket);
    frames
}

async fn over_grpc(client: &mut Client, last: Option<u64>, cut: usize) -> Vec<Value> {
    let mut stream = client.stream("s", last).await.unwrap();
    let mut frames = Vec::new();
    while frames.len() < cut
        && let Some(delta) = stream.next().await
    {
        let delta = delta.unwrap();
        let index = delta.payload.unwrap().fields["index"].kind.clone().unwrap();
        let prost_types::value::Kind::NumberValue(index) = index else {
            panic!("an index is a number");
        };
        assert_eq!(index.fract(), 0.0);
        let (number, kind) = (delta.delta_seq, delta.r#type);
        frames.push(json!({"delta_seq": number, "type": kind, "payload": {"index": index as u64}}));
    }
    frames
}

#[tokio::test(flavor = "multi_thread")]
async fn uamp_064_uamp_080_the_service_says_what_it_is_and_that_it_serves() {
    use tonic_health::pb::health_check_response::ServingStatus;
    use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
    use tonic_reflection::pb::v1::ServerReflectionRequest;
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

    let vault = Vault::new().await;
    let address = listen(&vault).await;
    let channel = Channel::from_shared(format!("http://{address}")).unwrap();
    let channel = channel.connect().await.unwrap();
    let mut health = HealthClient::new(channel.clone());
    for service in ["", "uamp.v1.Agent"] {
        let asked = health.check(HealthCheckRequest { service: service.into() }).await;
        assert_eq!(asked.unwrap().into_inner().status(), ServingStatus::Serving, "{service}");
    }
    let list = MessageRequest::ListServices(String::new());
    let file = MessageRequest::FileContainingSymbol("uamp.v1.Envelope".into());
    let questions = [list, file].map(|message| ServerReflectionRequest {
        host: String::new(),
        message_request: Some(message),
    });
    let mut reflection = ServerReflectionClient::new(channel);
    let answers = reflection.server_reflection_info(futures::stream::iter(questions)).await;
    let mut answers = answers.unwrap().into_inner();
    let first = answers.next().await.unwrap().unwrap().message_response.unwrap();
    let MessageResponse::ListServicesResponse(list) = first else { panic!("{first:?}") };
    assert!(list.service.iter().any(|service| service.name == "uamp.v1.Agent"), "{list:?}");
    let second = answers.next().await.unwrap().unwrap().message_response.unwrap();
    let MessageResponse::FileDescriptorResponse(_) = second else { panic!("{second:?}") };
    // The manifest is the one that HTTP serves.
    let mut client = Client::new(address, "").await;
    let manifest = client.agent.get_manifest(proto::GetManifestRequest {}).await.unwrap();
    let manifest = manifest.into_inner();
    let served = vault.get("", "/.well-known/agent-manifest.json", &[]).await.expect(200);
    assert_eq!(manifest.media_type, "application/manifest+jws");
    assert_eq!(manifest.jws, served.text.into_bytes());
}

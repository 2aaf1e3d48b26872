//! A client as agent hosts have one, and the ways it can reach a vault.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::header::{AUTHORIZATION, HOST};
use axum::http::{Request, Response, Uri};
use bytes::Bytes;
use futures::TryStreamExt;
use futures::future::BoxFuture;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, ErrorData, Implementation, ProgressNotificationParam, ProtocolVersion,
    ResourceUpdatedNotificationParam,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, NotificationContext, RequestContext, RunningService,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, RoleClient};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::{broadcast, mpsc};
use yore_engine::{Call, Secret};
use yore_mcp::{Options, Relayed, ToolNames, Upstream, relay_on, routes, stdio_on};

use super::vault;

/// Which lifecycle a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Session,
    Alone,
}

/// How a client reaches the vault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Http,
    Compat,
    Stdio,
    Relay,
}

pub(crate) const WAYS: [(Way, Life); 7] = [
    (Way::Http, Life::Session),
    (Way::Http, Life::Alone),
    (Way::Compat, Life::Session),
    (Way::Stdio, Life::Session),
    (Way::Stdio, Life::Alone),
    (Way::Relay, Life::Session),
    (Way::Relay, Life::Alone),
];

/// What the person at the host says when asked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Person {
    Nobody,
    Agrees,
    Declines,
}

pub(crate) struct Host {
    person: Person,
    updates: mpsc::UnboundedSender<String>,
    progress: broadcast::Sender<f64>,
}

impl Host {
    fn new(person: Person, updates: mpsc::UnboundedSender<String>) -> Self {
        Self { person, updates, progress: broadcast::Sender::new(16) }
    }

    pub(crate) fn progress(&self) -> broadcast::Receiver<f64> {
        self.progress.subscribe()
    }
}

impl ClientHandler for Host {
    fn get_info(&self) -> ClientConfig {
        let mut can = ClientCapabilities::default();
        if !matches!(self.person, Person::Nobody) {
            can.elicitation = Some(ElicitationCapability::default());
        }
        ClientConfig::new(can, Implementation::new("host", "1"))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(match self.person {
            Person::Agrees => {
                let yes = json!({ "confirm": true });
                ElicitResult::new(ElicitationAction::Accept).with_content(yes)
            }
            Person::Nobody | Person::Declines => ElicitResult::new(ElicitationAction::Decline),
        })
    }

    async fn on_progress(
        &self,
        told: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.progress.send(told.progress);
    }

    async fn on_resource_updated(
        &self,
        told: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.updates.send(told.uri);
    }
}

pub(crate) type Session = RunningService<RoleClient, Host>;

/// A client, what it is told, and the vault behind it.
pub(crate) struct Setting {
    pub(crate) client: Session,
    pub(crate) updates: mpsc::UnboundedReceiver<String>,
    pub(crate) _directory: TempDir,
}

pub(crate) async fn setting(way: Way, life: Life, person: Person) -> Setting {
    let directory = TempDir::new().unwrap();
    let (surface, token) = vault::open(directory.path()).await;
    let (send, updates) = mpsc::unbounded_channel();
    let host = Host::new(person, send);
    let any = ([127, 0, 0, 1], 0).into();
    let client = match way {
        Way::Http | Way::Compat => {
            let address = vault::serve(routes(surface, Options::default()), any).await;
            let path = if way == Way::Http { "mcp" } else { "mcp/compat" };
            over_http(host, address, path, &token, life).await
        }
        Way::Stdio => {
            let call = Call::bearer("mcp", Secret::new(token));
            let (near, far) = tokio::io::duplex(1 << 16);
            let (read, write) = tokio::io::split(far);
            tokio::spawn(stdio_on(surface, call, Options::default(), read, write));
            over(host, near, life).await
        }
        Way::Relay => {
            let address = vault::serve(routes(surface, Options::default()), any).await;
            let upstream = Arc::new(Tcp::new(address, token));
            relayed(host, upstream, life).await
        }
    };
    Setting { client, updates, _directory: directory }
}

pub(crate) fn host(person: Person) -> Host {
    Host::new(person, mpsc::unbounded_channel().0)
}

pub(crate) async fn relayed(host: Host, upstream: Arc<dyn Upstream>, life: Life) -> Session {
    let (near, far) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(far);
    tokio::spawn(relay_on(
        upstream,
        Options { names: ToolNames::Dotted, ..Options::default() },
        read,
        write,
    ));
    over(host, near, life).await
}

pub(crate) async fn over_http(
    host: Host,
    address: SocketAddr,
    path: &str,
    token: &str,
    life: Life,
) -> Session {
    let config = StreamableHttpClientTransportConfig::with_uri(format!("http://{address}/{path}"))
        .auth_header(token);
    let transport = StreamableHttpClientTransport::from_config(config);
    host.serve_with_lifecycle(transport, mode(life)).await.unwrap()
}

async fn over(host: Host, stream: tokio::io::DuplexStream, life: Life) -> Session {
    host.serve_with_lifecycle(tokio::io::split(stream), mode(life)).await.unwrap()
}

fn mode(life: Life) -> ClientLifecycleMode {
    match life {
        Life::Session => ClientLifecycleMode::Initialize,
        Life::Alone => ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        },
    }
}

/// The way to a server on this machine, with a token.
pub(crate) struct Tcp {
    pool: Client<HttpConnector, Full<Bytes>>,
    address: SocketAddr,
    token: String,
}

impl Tcp {
    pub(crate) fn new(address: SocketAddr, token: String) -> Self {
        Self { pool: Client::builder(TokioExecutor::new()).build_http(), address, token }
    }
}

impl Upstream for Tcp {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, io::Result<Response<Relayed>>> {
        Box::pin(async move {
            let mut request = request.map(Full::new);
            let uri: Uri = format!("http://{}{}", self.address, request.uri()).parse().unwrap();
            *request.uri_mut() = uri;
            let headers = request.headers_mut();
            headers.insert(HOST, self.address.to_string().parse().unwrap());
            headers.insert(AUTHORIZATION, format!("Bearer {}", self.token).parse().unwrap());
            let response = self.pool.request(request).await.map_err(io::Error::other)?;
            Ok(response.map(|body| -> Relayed {
                Box::pin(body.into_data_stream().map_err(io::Error::other))
            }))
        })
    }
}

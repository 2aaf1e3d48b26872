//! Calls operations and reads their answers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt};
use futures::{Stream, TryStreamExt};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::de::DeserializeOwned;
use yore_domain::BlobHash;
use yore_engine::Secret;

use crate::api::{self, Attached, Endpoint, Event, Weight};
use crate::connect::Connector;
use crate::error::{Error, Refusal, Refused, Result};
use crate::target::Target;
use crate::{input, sse};

/// The most bytes of an answer that are read.
const ANSWER: usize = 256 << 20;
const LIGHT_TIME: Duration = Duration::from_secs(60);
const HEAVY_TIME: Duration = Duration::from_secs(900);
/// How long a body of any size may take to be sent.
const UPLOAD_TIME: Duration = Duration::from_secs(72 * 3600);

/// A body on its way to the server.
type Sent = BoxBody<Bytes, std::io::Error>;

/// What the client presents with each call.
#[derive(Clone, Default)]
pub enum Credential {
    /// Nothing.
    #[default]
    None,
    /// A bearer token.
    Bearer(Secret),
    /// A token made anew for each call, such as a proof that lives a minute.
    Fresh(Arc<dyn Fn() -> Secret + Send + Sync>),
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Bearer(_) => "Bearer(…)",
            Self::Fresh(_) => "Fresh(…)",
        })
    }
}

/// A connection to a server. Cheap to clone; clones share the connections.
#[derive(Clone)]
pub struct Client {
    pool: Pool<Connector, Sent>,
    target: Target,
    credential: Credential,
    vault: Option<HeaderValue>,
    timeout: Option<Duration>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("target", &self.target)
            .field("credential", &self.credential)
            .field("vault", &self.vault)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Reaches a server and asks whether it lives.
    pub async fn connect(target: Target) -> Result<Self> {
        let client = Self::new(target)?;
        client.health().await?;
        Ok(client)
    }

    /// Makes a client without asking anybody yet.
    pub fn new(target: Target) -> Result<Self> {
        let connector = Connector::new(target.clone())?;
        let pool = Pool::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(30))
            .build(connector);
        let credential = Credential::None;
        Ok(Self { pool, target, credential, vault: None, timeout: None })
    }

    /// Presents this with each call.
    #[must_use]
    pub fn with_credential(mut self, credential: Credential) -> Self {
        self.credential = credential;
        self
    }

    /// Presents this bearer token with each call.
    #[must_use]
    pub fn with_token(self, token: Secret) -> Self {
        self.with_credential(Credential::Bearer(token))
    }

    /// Asks for the vault of this owner, or with this id.
    pub fn with_vault(mut self, vault: &str) -> Result<Self> {
        let value = HeaderValue::from_str(vault)
            .map_err(|_| Error::target("a vault name with characters a header cannot carry"))?;
        self.vault = Some(value);
        Ok(self)
    }

    /// Waits at most this long for each answer.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Returns where the server is.
    #[must_use]
    pub const fn target(&self) -> &Target {
        &self.target
    }

    /// Asks whether the server lives.
    pub async fn health(&self) -> Result<()> {
        let request = self.request(Method::GET, "/health", Bytes::new())?;
        let response = self.send(request, Duration::from_secs(10)).await?;
        if response.status() == StatusCode::OK {
            return Ok(());
        }
        Err(refusal(response).await)
    }

    /// Calls an operation.
    pub async fn call<E: Endpoint>(&self, input: E::Input) -> Result<E::Output> {
        self.call_once::<E>(input, None).await
    }

    /// Calls an operation under an id of the caller's: a retry returns the first result.
    pub async fn call_once<E: Endpoint>(
        &self,
        input: E::Input,
        operation: Option<&str>,
    ) -> Result<E::Output> {
        let path = format!("{}{}", api::PREFIX, E::NAME);
        let body = serde_json::to_vec(&input).map_err(|error| Error::Answer(error.to_string()))?;
        let mut request = self.request(Method::POST, &path, body.into())?;
        if let Some(operation) = operation {
            let value = HeaderValue::from_str(operation)
                .map_err(|_| Error::target("an operation id a header cannot carry"))?;
            request.headers_mut().insert(HeaderName::from_static(api::OPERATION_ID), value);
        }
        let time = self.timeout.unwrap_or(match E::WEIGHT {
            Weight::Light => LIGHT_TIME,
            Weight::Heavy => HEAVY_TIME,
        });
        let answer = async {
            let response = self.send(request, time).await?;
            if response.status() == StatusCode::OK {
                read(response).await
            } else {
                Err(refusal(response).await)
            }
        };
        tokio::time::timeout(time, answer).await.map_err(|_| Error::Timeout(time))?
    }

    /// Follows changes, from now on or after the cursor of the last event seen.
    pub async fn watch(&self, after: Option<String>) -> Result<BoxStream<'static, Result<Event>>> {
        let path = format!("{}{}", api::PREFIX, api::WATCH);
        let body = serde_json::to_vec(&input::Watch { after })
            .map_err(|error| Error::Answer(error.to_string()))?;
        let mut request = self.request(Method::POST, &path, body.into())?;
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let response = self.send(request, LIGHT_TIME).await?;
        if response.status() != StatusCode::OK {
            return Err(refusal(response).await);
        }
        Ok(sse::events(response.into_body()))
    }

    /// Stores an attachment, sending it as it is read. A message that names it makes it seen.
    pub async fn attach<S>(&self, bytes: S) -> Result<Attached>
    where
        S: Stream<Item = std::io::Result<Bytes>> + Send + Sync + 'static,
    {
        let body = BodyExt::boxed(StreamBody::new(bytes.map_ok(Frame::data)));
        let path = format!("{}{}", api::PREFIX, api::ATTACH);
        let mut request = self.with_body(Method::POST, &path, body)?;
        let kind = HeaderValue::from_static("application/octet-stream");
        request.headers_mut().insert(CONTENT_TYPE, kind);
        let response = self.send(request, HEAVY_TIME).await?;
        match response.status() {
            StatusCode::OK => read(response).await,
            _ => Err(refusal(response).await),
        }
    }

    /// Reads an attachment, piece by piece.
    pub async fn attachment(&self, blob: BlobHash) -> Result<BoxStream<'static, Result<Bytes>>> {
        let path = format!("{}{}/{blob}", api::PREFIX, api::ATTACH);
        let request = self.request(Method::GET, &path, Bytes::new())?;
        let response = self.send(request, LIGHT_TIME).await?;
        if response.status() != StatusCode::OK {
            return Err(refusal(response).await);
        }
        let pieces = response.into_body().into_data_stream();
        Ok(pieces.map_err(|error| Error::Answer(deepest(&error))).boxed())
    }

    /// Sends a request of another protocol to a path of the server, with this client's
    /// credential, and returns the answer as it comes.
    pub async fn forward(
        &self,
        request: Request<Bytes>,
    ) -> Result<Response<BoxStream<'static, std::io::Result<Bytes>>>> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        let mut sent = self.request(parts.method, path, body)?;
        sent.headers_mut().extend(parts.headers);
        let response = self.send(sent, HEAVY_TIME).await?;
        Ok(response.map(|body| body.into_data_stream().map_err(std::io::Error::other).boxed()))
    }

    /// Sends a body as it is read to a path of another protocol, and returns the answer as it
    /// comes. It takes as long as the line needs.
    pub async fn upload<S>(
        &self,
        path: &str,
        media_type: HeaderValue,
        bytes: S,
    ) -> Result<Response<BoxStream<'static, std::io::Result<Bytes>>>>
    where
        S: Stream<Item = std::io::Result<Bytes>> + Send + Sync + 'static,
    {
        let body = BodyExt::boxed(StreamBody::new(bytes.map_ok(Frame::data)));
        let mut request = self.with_body(Method::POST, path, body)?;
        request.headers_mut().insert(CONTENT_TYPE, media_type);
        let response = self.send(request, UPLOAD_TIME).await?;
        Ok(response.map(|body| body.into_data_stream().map_err(std::io::Error::other).boxed()))
    }

    /// The head that a request of this client has: who asks, and for which vault.
    pub fn head(&self) -> Result<Parts> {
        Ok(self.request(Method::GET, "/", Bytes::new())?.into_parts().0)
    }

    fn request(&self, method: Method, path: &str, body: Bytes) -> Result<Request<Sent>> {
        self.with_body(method, path, Full::new(body).map_err(|never| match never {}).boxed())
    }

    fn with_body(&self, method: Method, path: &str, body: Sent) -> Result<Request<Sent>> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = self.target.uri(path)?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(vault) = &self.vault {
            headers.insert(HeaderName::from_static(api::VAULT), vault.clone());
        }
        let token = match &self.credential {
            Credential::None => return Ok(request),
            Credential::Bearer(token) => token.clone(),
            Credential::Fresh(make) => make(),
        };
        let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose()))
            .map_err(|_| Error::target("a token that a header cannot carry"))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
        Ok(request)
    }

    async fn send(&self, request: Request<Sent>, time: Duration) -> Result<Response<Incoming>> {
        let sent = tokio::time::timeout(time, self.pool.request(request));
        sent.await.map_err(|_| Error::Timeout(time))?.map_err(|error| Error::Unreachable {
            target: self.target.to_string(),
            reason: deepest(&error),
        })
    }
}

/// What lies at the bottom of a chain of errors, where the network speaks.
fn deepest(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(next) = last.source() {
        last = next;
    }
    last.to_string()
}

async fn body(response: Response<Incoming>) -> Result<Bytes> {
    let limited = http_body_util::Limited::new(response.into_body(), ANSWER);
    let read = limited.collect().await.map_err(|error| Error::Answer(error.to_string()))?;
    Ok(read.to_bytes())
}

async fn read<T: DeserializeOwned>(response: Response<Incoming>) -> Result<T> {
    serde_json::from_slice(&body(response).await?).map_err(|error| Error::Answer(error.to_string()))
}

async fn refusal(response: Response<Incoming>) -> Error {
    let status = response.status().as_u16();
    let retry_after = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.parse().ok())
        .map(Duration::from_secs);
    match read::<Refused>(response).await {
        Ok(Refused { error }) => Error::Refused(Refusal { status, retry_after, ..error }),
        Err(_) => Error::Answer(format!("status {status}")),
    }
}

//! The recording proxy: forwards to a provider, and stores what was said.
//!
//! Bytes go through as they come, in both directions; the record is made of a copy of them when
//! the answer has ended. Only where memories are put before a question is the request changed,
//! and even then what is stored is what the client sent.

mod answer;
mod record;
mod responses;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, ORIGIN,
    TRANSFER_ENCODING,
};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use yore_client::{Client, api, input};
use yore_domain::query::{Corpus, Cutoff, Filter, Recall};
use yore_engine::Clock;
use yore_server::SystemClock;

use self::record::{Exchange, Form, framed};
use self::responses::{Thread, Threads};
use crate::app::App;
use crate::failure::{Failure, Result};

/// Bytes of a request, and of an answer that is recorded.
const BYTES: usize = 64 << 20;
/// Pieces of an answer that wait for a slow client.
const PIECES: usize = 32;

/// What the proxy does.
pub(crate) struct Proxy {
    pub(crate) app: Arc<App>,
    pub(crate) provider: Client,
    /// The path of the provider that stands before every other.
    pub(crate) prefix: String,
    /// How many tokens of memories are put before a question; none when none are.
    pub(crate) memories: Option<usize>,
    /// Which conversation the answers of this run belong to.
    pub(crate) threads: Mutex<Threads>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").field("provider", &self.provider).finish_non_exhaustive()
    }
}

/// Listens; only this machine can reach it.
pub(crate) async fn bind(at: SocketAddr) -> Result<TcpListener> {
    if !at.ip().is_loopback() {
        return Err(Failure::usage(format!("{at} is not a loopback address"))
            .hint("whoever reaches the proxy speaks with your vault behind it"));
    }
    TcpListener::bind(at).await.map_err(Failure::file(at))
}

/// Serves until it is told to stop.
pub(crate) async fn serve(
    proxy: Proxy,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result {
    let router = Router::new().fallback(pass).with_state(Arc::new(proxy));
    let served = axum::serve(listener, router).with_graceful_shutdown(stop).await;
    served.map_err(|error| Failure::failed(error.to_string()))
}

async fn pass(State(proxy): State<Arc<Proxy>>, request: Request) -> Response {
    if !is_local(request.headers()) {
        return refused(StatusCode::FORBIDDEN, "only programs of this machine are served");
    }
    let (parts, body) = request.into_parts();
    let Ok(bytes) = axum::body::to_bytes(body, BYTES).await else {
        return refused(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large");
    };
    let form = Form::of(parts.uri.path()).filter(|_| parts.method == Method::POST);
    let asked: Option<(Form, Value)> =
        form.and_then(|form| Some((form, serde_json::from_slice(&bytes).ok()?)));
    let exchange = asked.as_ref().and_then(|(form, asked)| Exchange::of(*form, asked));
    let bytes = match (asked, &exchange) {
        (Some((form, asked)), Some(exchange)) => proxy.framed(form, asked, exchange, bytes).await,
        (Some(_) | None, _) => bytes,
    };
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut sent = axum::http::Request::new(bytes);
    *sent.method_mut() = parts.method;
    match format!("{}{path}", proxy.prefix).parse() {
        Ok(uri) => *sent.uri_mut() = uri,
        Err(_) => return refused(StatusCode::BAD_REQUEST, "the path cannot be asked for"),
    }
    *sent.headers_mut() = carried(parts.headers);
    match proxy.provider.forward(sent).await {
        Ok(answer) => proxy.hand_back(answer, exchange),
        Err(error) => refused(StatusCode::BAD_GATEWAY, &error.to_string()),
    }
}

/// Whether a program of this machine asks, and not a page from elsewhere that a browser shows.
fn is_local(headers: &HeaderMap) -> bool {
    let local = |host: &str| {
        let name = host.rsplit_once("://").map_or(host, |(_, host)| host);
        let name = name.rsplit_once(':').map_or(name, |(name, _)| name);
        matches!(name, "localhost" | "127.0.0.1" | "[::1]")
    };
    [HOST, ORIGIN].iter().all(|name| match headers.get(name) {
        Some(value) => value.to_str().is_ok_and(local),
        None => *name == ORIGIN,
    })
}

/// The headers that are meant for the other end. Answers are wanted as they are, to be read.
fn carried(mut headers: HeaderMap) -> HeaderMap {
    for name in [HOST, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, ACCEPT_ENCODING] {
        headers.remove(name);
    }
    headers
}

fn refused(status: StatusCode, why: &str) -> Response {
    let error = json!({"error": {"type": "yore_proxy", "message": why}});
    (status, [(CONTENT_TYPE, "application/json")], error.to_string()).into_response()
}

impl Proxy {
    /// Puts what is known before the question. Where that fails, the question goes without.
    async fn framed(&self, form: Form, asked: Value, exchange: &Exchange, bytes: Bytes) -> Bytes {
        let (Some(tokens), Some(query)) = (self.memories, exchange.question()) else {
            return bytes;
        };
        match self.context(query, tokens).await {
            Ok(frame) if !frame.is_empty() => framed(form, asked, &frame).to_string().into(),
            Ok(_) => bytes,
            Err(failure) => {
                self.app.out.remark(format!("no memories were put in: {}", failure.message));
                bytes
            }
        }
    }

    async fn context(&self, query: String, budget_tokens: usize) -> Result<String> {
        let mut end = query.len().min(yore_domain::limits::QUERY_BYTES);
        while !query.is_char_boundary(end) {
            end -= 1;
        }
        let recall = Recall {
            query: query[..end].to_owned(),
            corpus: Corpus::Memories,
            filter: Filter::default(),
            near: yore_domain::scope::Scope::default(),
            limit: 20,
            effort: yore_domain::query::Effort::default(),
            prefer: Vec::new(),
            cutoff: Cutoff::default(),
        };
        let mut session = self.app.session().await?;
        let asked = input::Context { recall, budget_tokens };
        Ok(session.call::<api::Context>(asked).await?.frame)
    }

    /// Gives the answer on as it comes, and records it when it has ended.
    fn hand_back(
        self: &Arc<Self>,
        answer: axum::http::Response<futures::stream::BoxStream<'static, std::io::Result<Bytes>>>,
        exchange: Option<Exchange>,
    ) -> Response {
        let (mut head, mut pieces) = answer.into_parts();
        head.headers = carried(head.headers);
        let exchange = exchange.filter(|_| head.status.is_success());
        let kind = head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let stream = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
        let (sender, receiver) = mpsc::channel(PIECES);
        let proxy = Arc::clone(self);
        tokio::spawn(async move {
            let (mut said, mut whole) = (Vec::new(), true);
            while let Some(piece) = pieces.next().await {
                whole &= piece.is_ok();
                if let Ok(piece) = &piece
                    && said.len() + piece.len() <= BYTES
                {
                    said.extend_from_slice(piece);
                }
                // A client that left wants no more; what it got is recorded.
                if sender.send(piece).await.is_err() {
                    whole = false;
                    break;
                }
            }
            drop(sender);
            if let Some(exchange) = exchange {
                proxy.store(exchange, &said, stream, whole).await;
            }
        });
        let body = futures::stream::unfold(receiver, |mut receiver| async {
            receiver.recv().await.map(|piece| (piece, receiver))
        });
        Response::from_parts(head, Body::from_stream(body))
    }

    fn threads(&self) -> std::sync::MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn store(&self, exchange: Exchange, said: &[u8], stream: bool, whole: bool) {
        let now = SystemClock::default().now();
        let thread = exchange.previous().and_then(|previous| self.threads().get(previous));
        let exchange = exchange.going_on(thread);
        let Some((conversation, messages)) = exchange.answered(said, stream, whole, now) else {
            self.app.out.remark("an answer was not understood, and not recorded");
            return;
        };
        if let Some(last) = messages.last()
            && let Some(response) = last.foreign.get("openai").map(|own| &own["answer"]["id"])
            && let Some(response) = response.as_str()
        {
            let before = thread.map_or(0, |thread| thread.messages);
            let messages = before + messages.len();
            let thread = Thread { conversation: conversation.id, messages, last: last.id };
            self.threads().insert(response.to_owned(), thread);
        }
        let stored = async {
            let mut session = self.app.session().await?;
            session.change::<api::Converse>(input::Converse { conversation, messages }).await
        };
        if let Err(failure) = stored.await {
            self.app.out.remark(format!("a conversation was not recorded: {}", failure.message));
        }
    }
}

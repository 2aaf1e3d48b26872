//! MCP over stdio here, for a vault that another process serves over HTTP.
//!
//! The relay speaks both lifecycles with its own client and sends every request on as one that
//! stands alone. So there is no session on the other side that a restart could lose: what got
//! no answer is sent again, and a tool call carries the same operation id each time, so that
//! it is done once however often it is sent.

mod exchange;
mod legacy;
mod listen;
mod near;

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use rmcp::model::{
    ClientNotification, ClientRequest, CustomResult, DiscoverResult, ErrorData, ServerConfig,
    ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::{NotificationContext, Peer, RequestContext};
use rmcp::{RoleServer, Service};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use yore_http::Limits;

use crate::caller::is_modern;
use crate::http::{DOTTED, UNDERSCORE};
use crate::options::{Options, ToolNames};
use crate::{server, stdio};
use exchange::{Ask, Link};
use legacy::Legacy;

pub use near::{Here, Nearby};

/// The body of an answer, as it comes.
pub type Relayed = BoxStream<'static, io::Result<Bytes>>;

/// The way to a server that speaks MCP over HTTP.
pub trait Upstream: Send + Sync + 'static {
    /// Sends a request, whose address is only a path, with credentials of the upstream's own.
    /// When it fails the request is sent again, so this may look for the server anew.
    fn send(
        &self,
        request: axum::http::Request<Bytes>,
    ) -> BoxFuture<'_, io::Result<axum::http::Response<Relayed>>>;

    /// The server itself, while it is this very process: a tool call then needs no frames.
    fn here(&self) -> Option<Here> {
        None
    }
}

/// Serves one client over standard input and output by asking the server behind `upstream`.
pub async fn relay(upstream: Arc<dyn Upstream>, options: Options) -> io::Result<()> {
    let (read, write) = rmcp::transport::io::stdio_pipes();
    Box::pin(relay_on(upstream, options, read, write)).await
}

/// Serves one client over a pair of streams by asking the server behind `upstream`.
pub async fn relay_on<R, W>(
    upstream: Arc<dyn Upstream>,
    options: Options,
    read: R,
    write: W,
) -> io::Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let path = match options.names {
        ToolNames::Dotted => DOTTED,
        ToolNames::Underscore => UNDERSCORE,
    };
    let link = Link::new(upstream, path);
    let info = discovered(&link).await?;
    let relay = Relay { link, info, legacy: Arc::default() };
    stdio::serve(relay, read, write, Limits::default().body).await
}

/// Asks the server who it is and what it can do.
async fn discovered(link: &Link) -> io::Result<ServerConfig> {
    let ask = Ask::new(json!(0), "server/discover", json!({}), exchange::meta(None, None));
    let answer = link.ask(&ask, |_| Box::pin(async {})).await;
    let answer = answer.map_err(|error| io::Error::other(error.message))?;
    let found: DiscoverResult = serde_json::from_value(answer)?;
    let who = found.server_info().unwrap_or_else(server::implementation);
    let mut can = found.capabilities;
    // Levels are set once by older clients and travel with each request from here on.
    can.logging = Some(serde_json::Map::new());
    let info = ServerConfig::new(can).with_server_info(who);
    Ok(match found.instructions {
        Some(text) => info.with_instructions(text),
        None => info,
    })
}

/// One client's relay.
struct Relay {
    link: Link,
    info: ServerConfig,
    legacy: Arc<Legacy>,
}

impl Service<RoleServer> for Relay {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        if let ClientRequest::InitializeRequest(request) = &request {
            context.peer.set_peer_info(request.params.clone());
            return Ok(ServerResult::InitializeResult(self.info.clone()));
        }
        let modern = is_modern(&context);
        if !modern && let Some(answer) = self.legacy.answer(&request, &self.link, &context) {
            return answer;
        }
        // What a session set is held here, so only a session that set nothing may go straight.
        if matches!(request, ClientRequest::CallToolRequest(_))
            && (modern || self.legacy.is_plain())
            && let Some(here) = self.link.here()
        {
            return here.handle(request, context).await;
        }
        let ask = self.asked(&request, &context, modern)?;
        let answer = async {
            match (modern, ask.method()) {
                (true, "subscriptions/listen") => listen::relay(&self.link, &ask, &context).await,
                (true, _) => self.link.ask(&ask, handed(&context.peer)).await,
                (false, _) => self.legacy.ask(&self.link, ask, &context).await,
            }
        };
        tokio::select! {
            answer = answer => answer.map(|value| ServerResult::CustomResult(CustomResult(value))),
            () = context.ct.cancelled() => {
                Err(ErrorData::internal_error("the request was cancelled", None))
            }
        }
    }

    async fn handle_notification(
        &self,
        _: ClientNotification,
        _: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // A cancellation has reached the request itself; nothing else changes anything here.
        Ok(())
    }

    fn get_info(&self) -> ServerConfig {
        self.info.clone()
    }
}

impl Relay {
    /// The client's request as one that stands alone.
    fn asked(
        &self,
        request: &ClientRequest,
        context: &RequestContext<RoleServer>,
        modern: bool,
    ) -> Result<Ask, ErrorData> {
        let wrong = |error: serde_json::Error| ErrorData::internal_error(error.to_string(), None);
        let mut frame = serde_json::to_value(request).map_err(wrong)?;
        let params = frame.get_mut("params").map(Value::take).unwrap_or_else(|| json!({}));
        let id = context.id.clone().into_json_value();
        let mut meta = serde_json::to_value(&context.meta).map_err(wrong)?;
        if !modern {
            let own = exchange::meta(context.client_capabilities(), context.client_info());
            if let (Value::Object(meta), Value::Object(own)) = (&mut meta, own) {
                meta.extend(own);
            }
            self.legacy.mark(&mut meta);
        }
        Ok(Ask::new(id, request.method(), params, meta))
    }
}

/// Hands what the server tells meanwhile to the client.
fn handed(peer: &Peer<RoleServer>) -> impl FnMut(Value) -> BoxFuture<'static, ()> + Send + use<> {
    let peer = peer.clone();
    move |message| {
        let peer = peer.clone();
        Box::pin(async move {
            if let Ok(ServerJsonRpcMessage::Notification(told)) = serde_json::from_value(message) {
                // A client that is gone is noticed by the cancellation.
                let _ = peer.send_notification(told.notification).await;
            }
        })
    }
}

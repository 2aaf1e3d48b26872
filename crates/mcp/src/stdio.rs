//! MCP over this process's own input and output.

use std::io;

use rmcp::service::ServerInitializeError;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleServer, serve_server};
use tokio::io::{AsyncRead, AsyncWrite};
use yore_engine::Call;
use yore_http::Surface;

use crate::caller::Caller;
use crate::options::Options;
use crate::server::Mcp;

/// Serves one client over standard input and output until it hangs up. Nothing else may write
/// to standard output meanwhile. The call carries the credentials, which come from the
/// environment; its operation and request ids are not used.
pub async fn stdio(surface: Surface, call: Call, options: Options) -> io::Result<()> {
    let (read, write) = rmcp::transport::io::stdio_pipes();
    Box::pin(stdio_on(surface, call, options, read, write)).await
}

/// Serves one client over a pair of streams until it hangs up.
pub async fn stdio_on<R, W>(
    surface: Surface,
    call: Call,
    options: Options,
    read: R,
    write: W,
) -> io::Result<()>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let call = Call { operation: None, request: None, ..call };
    let names = options.names;
    let most = surface.limits.body;
    let mcp = Mcp::new(surface, options, names, Caller::Fixed(Box::new(call)));
    serve(mcp, read, write, most).await
}

/// Speaks with one client until it hangs up.
pub(crate) async fn serve<S, R, W>(service: S, read: R, write: W, most: usize) -> io::Result<()>
where
    S: rmcp::Service<RoleServer>,
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let transport = AsyncRwTransport::new_server(read, write).with_max_line_length(most);
    match serve_server(service, transport).await {
        Ok(running) => running.waiting().await.map(drop).map_err(io::Error::other),
        // A client that only looked whether somebody is here.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(io::Error::other(error)),
    }
}

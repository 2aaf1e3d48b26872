//! The server of this very process, asked without frames and without a socket.

use std::any::Any;

use axum::http::request::Parts;
use rmcp::model::{ClientRequest, ErrorData, ServerResult};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, Service};
use yore_http::Surface;

use crate::caller::Caller;
use crate::options::Options;
use crate::server::Mcp;

/// A server in this process. It judges each call by the head that comes with it, as it would
/// over HTTP.
#[derive(Clone, Debug)]
pub struct Nearby(Mcp);

impl Nearby {
    /// The server behind these routes.
    #[must_use]
    pub fn new(surface: Surface, options: Options) -> Self {
        let names = options.names;
        Self(Mcp::new(surface, options, names, Caller::PerRequest))
    }
}

/// A server in this process and who asks it.
#[derive(Debug)]
pub struct Here {
    /// The server.
    pub server: Nearby,
    /// What an HTTP request would say of who asks.
    pub head: Parts,
    /// Keeps the server from ending before it has answered.
    pub held: Box<dyn Any + Send>,
}

impl Here {
    pub(super) async fn handle(
        self,
        request: ClientRequest,
        mut context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        let Self { server, head, held } = self;
        context.extensions.insert(head);
        let answer = Box::pin(Service::handle_request(&server.0, request, context)).await;
        drop(held);
        answer
    }
}

//! What the official conformance suite wants a server to have: tools, resources and prompts
//! with fixed answers. Compiled only for tests, and offered only when asked for.

mod content;
mod input;
mod tools;

use std::sync::LazyLock;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, GetPromptRequestParams, GetPromptResponse,
    Prompt, ReadResourceResult, Resource, ResourceTemplate, ServerCapabilities, Tool,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use tokio::sync::broadcast;

use crate::server::Mcp;

/// Which list a fixture pretends to have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Changed {
    Tools,
    Prompts,
}

static CHANGES: LazyLock<broadcast::Sender<Changed>> = LazyLock::new(|| broadcast::Sender::new(16));

/// The fixtures' tools.
pub(crate) fn tools() -> Vec<Tool> {
    tools::all().into_iter().chain(input::all()).collect()
}

/// Whether a tool is one of them.
pub(crate) fn is_tool(name: &str) -> bool {
    tools().iter().any(|tool| tool.name == name)
}

/// Adds what only fixtures do.
pub(crate) fn extend(can: &mut ServerCapabilities) {
    if let Some(tools) = &mut can.tools {
        tools.list_changed = Some(true);
    }
    if let Some(prompts) = &mut can.prompts {
        prompts.list_changed = Some(true);
    }
}

/// Calls one of them.
pub(crate) async fn call(
    mcp: &Mcp,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    match input::call(mcp, &request, &context) {
        Some(answer) => answer,
        None => tools::call(mcp, request, context).await,
    }
}

/// The fixtures' prompts.
pub(crate) fn prompts() -> Vec<Prompt> {
    content::prompts()
}

/// Fills in one of them.
pub(crate) fn prompt(
    request: &GetPromptRequestParams,
) -> Option<Result<GetPromptResponse, ErrorData>> {
    input::prompt(request).or_else(|| content::prompt(request))
}

/// The fixtures' resources.
pub(crate) fn resources() -> Vec<Resource> {
    content::resources()
}

/// The fixtures' templates.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    content::templates()
}

/// Reads one of them.
pub(crate) fn read(uri: &str) -> Option<ReadResourceResult> {
    content::read(uri)
}

/// Listens to what fixtures change, besides what the vault changes.
pub(crate) async fn listen(mcp: &Mcp, context: &SubscriptionContext) -> Result<(), ErrorData> {
    let mut changes = CHANGES.subscribe();
    let pretended = async {
        while let Ok(changed) = changes.recv().await {
            let accepted = context.accepted();
            // Whoever did not ask is not told; whoever is gone is noticed by the cancellation.
            match changed {
                Changed::Tools if accepted.tools_list_changed == Some(true) => {
                    let _ = context.sink().notify_tool_list_changed().await;
                }
                Changed::Prompts if accepted.prompts_list_changed == Some(true) => {
                    let _ = context.sink().notify_prompt_list_changed().await;
                }
                Changed::Tools | Changed::Prompts => {}
            }
        }
    };
    tokio::select! {
        told = mcp.tell(context) => told,
        () = pretended => Ok(()),
    }
}

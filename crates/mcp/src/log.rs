//! Log messages for clients that ask for them: before 2026-07-28 once for a session, since
//! then with each request.
#![expect(deprecated, reason = "log messages are on their way out of the protocol")]

use rmcp::RoleServer;
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use crate::caller::is_modern;
use crate::failure;
use crate::server::Mcp;

/// From which level on a client wants messages.
pub(crate) type Level = LoggingLevel;

impl Mcp {
    /// Tells a client that wants to know that a tool failed. The message names the tool and
    /// the code; neither input nor text of a memory goes into a log.
    pub(crate) async fn report(
        &self,
        tool: &str,
        error: &Value,
        context: &RequestContext<RoleServer>,
    ) {
        let data = json!({ "tool": tool, "code": failure::code(error) });
        self.log(LoggingLevel::Warning, data, context).await;
    }

    /// Tells a client something, if it wants to hear of this level.
    pub(crate) async fn log(
        &self,
        level: Level,
        data: Value,
        context: &RequestContext<RoleServer>,
    ) {
        let wanted =
            if is_modern(context) { context.meta.log_level() } else { self.session.level() };
        if wanted.is_some_and(|wanted| severity(wanted) <= severity(level)) {
            let message = LoggingMessageNotificationParam::new(level, data).with_logger("yore");
            // A client that is gone is noticed by the cancellation.
            let _ = context.peer.notify_logging_message(message).await;
        }
    }
}

const fn severity(level: Level) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}

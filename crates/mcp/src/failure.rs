//! Failures in MCP's forms.

use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ContentBlock, ErrorCode, ErrorData, MetaObject};
use rmcp::service::RequestContext;
use serde_json::{Value, json};
use yore_domain::Error;

use crate::caller::is_modern;

/// Where a failed tool's error value lies for clients that cannot have it as content.
pub(crate) const ERROR_META: &str = "yore/error";

/// An error of the engine as a value, for what no dialect stands behind.
pub(crate) fn value(error: &Error) -> Value {
    if let Error::Internal(source) = error {
        tracing::error!(error = %source, "an operation failed inside");
    }
    json!({ "error": { "code": error.code(), "message": error.to_string() } })
}

/// A tool that ran and failed, with the dialect's own error.
///
/// Older clients check structured content against the tool's output schema even when the tool
/// failed, and no error fits that schema: they get it as text and beside the content.
pub(crate) fn of_tool(value: Value, context: &RequestContext<RoleServer>) -> CallToolResult {
    if is_modern(context) {
        return CallToolResult::structured_error(value);
    }
    let text = ContentBlock::text(value.to_string());
    let meta = MetaObject([(ERROR_META.to_owned(), value)].into_iter().collect());
    CallToolResult::error(vec![text]).with_meta(Some(meta))
}

/// A request other than a tool's that a dialect refused.
pub(crate) fn of_request(value: Value) -> ErrorData {
    let code = if code(&value) == Some("internal") {
        ErrorCode::INTERNAL_ERROR
    } else {
        ErrorCode::INVALID_REQUEST
    };
    ErrorData::new(code, message(&value), Some(value))
}

/// What cannot be read, whether it is missing or hidden.
pub(crate) fn no_resource(uri: &str) -> ErrorData {
    ErrorData::resource_not_found("resource not found", Some(json!({ "uri": uri })))
}

/// Returns the code of a dialect's error, where it is a text in the usual place.
pub(crate) fn code(value: &Value) -> Option<&str> {
    let place = value.pointer("/error/code").or_else(|| value.get("code"))?;
    place.as_str()
}

fn message(value: &Value) -> String {
    let place = value.pointer("/error/message").or_else(|| value.get("message"));
    place.and_then(Value::as_str).unwrap_or("the request was refused").to_owned()
}

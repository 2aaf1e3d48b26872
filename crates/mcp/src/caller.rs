//! Who stands behind a request.

use axum::http::request::Parts;
use rmcp::model::{ErrorData, ProtocolVersion};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, model::ElicitationCapability};
use yore_engine::Call;
use yore_http::Surface;

use crate::{OPERATION_META, PROTOCOL};

/// The longest operation id that is taken.
const OPERATION: usize = 256;

/// Where a request's credentials come from.
#[derive(Clone, Debug)]
pub(crate) enum Caller {
    /// From each HTTP request's own head.
    PerRequest,
    /// From the environment of this process, once.
    Fixed(Box<Call>),
}

impl Caller {
    /// Builds the engine's call for a request.
    pub(crate) fn call(
        &self,
        surface: &Surface,
        context: &RequestContext<RoleServer>,
    ) -> Result<Call, ErrorData> {
        let mut call = match self {
            Self::Fixed(call) => (**call).clone(),
            Self::PerRequest => {
                let parts = context.extensions.get::<Parts>().ok_or_else(|| {
                    ErrorData::internal_error("the request lost its head on the way", None)
                })?;
                surface
                    .call(parts, PROTOCOL)
                    .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?
            }
        };
        if call.operation.is_none() {
            call.operation = operation(context)?;
        }
        Ok(call)
    }
}

fn operation(context: &RequestContext<RoleServer>) -> Result<Option<String>, ErrorData> {
    let Some(value) = context.meta.get(OPERATION_META) else { return Ok(None) };
    match value.as_str() {
        Some(text) if (1..=OPERATION).contains(&text.len()) && !text.contains(char::is_control) => {
            Ok(Some(text.to_owned()))
        }
        _ => Err(ErrorData::invalid_params(
            format!(
                "invalid _meta[\"{OPERATION_META}\"]: must be a text of 1 to {OPERATION} bytes"
            ),
            None,
        )),
    }
}

/// Whether the request stands alone, as since 2026-07-28.
pub(crate) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Whether the client can put a form before a person.
pub(crate) fn can_ask(context: &RequestContext<RoleServer>) -> bool {
    let elicitation = context.client_capabilities().and_then(|can| can.elicitation);
    elicitation.is_some_and(|ElicitationCapability { form, url, .. }| {
        // A client that names neither way means forms: there was no other way once.
        form.is_some() || url.is_none()
    })
}

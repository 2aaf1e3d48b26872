//! Tools: every operation of every dialect, and the two that connectors look for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, JsonObject,
    ProgressNotificationParam, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};
use yore_engine::Call;
use yore_engine::dialect::{Dialect, EffectHint, OperationSchema, Registry};

use crate::options::ToolNames;
use crate::server::Mcp;
use crate::{confirm, failure, native};

/// How often a client that asked for it is told that work goes on.
const PULSE: Duration = Duration::from_secs(2);

/// What a tool's name stands for.
#[derive(Clone, Copy)]
pub(crate) enum Target<'a> {
    Dialect(&'a dyn Dialect, &'a OperationSchema),
    Native(native::Tool),
}

/// Lists all tools, in the order of the registry.
pub(crate) fn all(registry: &Registry, names: ToolNames) -> Vec<Tool> {
    let dialects = registry.iter().flat_map(|dialect| {
        let operations = dialect.operations().iter();
        operations.map(move |operation| of_operation(dialect.name(), operation, names))
    });
    dialects.chain(native::Tool::ALL.map(native::Tool::describe)).collect()
}

/// Finds what a name stands for, in either spelling.
pub(crate) fn find<'a>(registry: &'a Registry, name: &str) -> Option<Target<'a>> {
    let dialects = registry.iter().find_map(|dialect| {
        let rest = name.strip_prefix(dialect.name())?.strip_prefix(['.', '_'])?;
        let operation = dialect.operations().iter().find(|operation| operation.name == rest)?;
        Some(Target::Dialect(dialect, operation))
    });
    dialects.or_else(|| native::Tool::named(name).map(Target::Native))
}

fn of_operation(dialect: &str, operation: &OperationSchema, names: ToolNames) -> Tool {
    let name = format!("{dialect}{}{}", names.separator(), operation.name);
    let mut tool = Tool::new(name, operation.summary, object(&operation.input))
        .with_title(operation.title)
        .with_annotations(annotations(operation.title, operation.effect));
    // Before 2026-07-28 only an object could be structured content.
    if operation.output.get("type").and_then(Value::as_str) == Some("object") {
        tool = tool.with_raw_output_schema(object(&operation.output));
    }
    tool
}

/// The schema as an object that says so: clients refuse one that leaves it open.
pub(crate) fn object(schema: &Value) -> Arc<JsonObject> {
    let mut schema = schema.as_object().cloned().unwrap_or_default();
    schema.entry("type").or_insert_with(|| json!("object"));
    Arc::new(schema)
}

pub(crate) fn annotations(title: &str, effect: EffectHint) -> ToolAnnotations {
    let (reads, removes, once) = match effect {
        EffectHint::Reads => (true, false, true),
        EffectHint::Writes => (false, false, false),
        EffectHint::WritesOnce => (false, false, true),
        EffectHint::Removes | EffectHint::Erases => (false, true, true),
    };
    ToolAnnotations::with_title(title)
        .read_only(reads)
        .destructive(removes)
        .idempotent(once)
        .open_world(false)
}

impl Mcp {
    /// Calls a tool: what fails inside it is a result, an unknown name is not.
    pub(crate) async fn run(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let target =
            find(&self.surface().registry, &request.name).ok_or_else(|| unknown(&request))?;
        let call = self.call(context)?;
        if self.options().confirm_erasure && erases(target, request.arguments.as_ref()) {
            match confirm::confirm(self, &request, context).await? {
                confirm::Answer::Yes => {}
                confirm::Answer::No => {
                    let error = json!({ "error": {
                        "code": "declined",
                        "message": "the person did not confirm the erasure; nothing was changed",
                    } });
                    return Ok(failure::of_tool(error, context).into());
                }
                confirm::Answer::Ask(question) => return Ok((*question).into()),
            }
        }
        let input = Value::Object(request.arguments.unwrap_or_default());
        let done =
            attended(context, self.surface().limits.heavy_time, self.perform(target, call, input));
        Ok(match done.await? {
            Ok(value) => CallToolResult::structured(value).into(),
            Err(value) => {
                self.report(&request.name, &value, context).await;
                failure::of_tool(value, context).into()
            }
        })
    }

    async fn perform(&self, target: Target<'_>, call: Call, input: Value) -> Result<Value, Value> {
        match target {
            Target::Dialect(dialect, operation) => dialect.call(call, operation.name, input).await,
            Target::Native(tool) => {
                let done = tool.run(&self.surface().engine, &call, input).await;
                done.map_err(|error| failure::value(&error))
            }
        }
    }
}

fn unknown(request: &CallToolRequestParams) -> ErrorData {
    let name: String = request.name.chars().filter(|c| !c.is_control()).take(128).collect();
    ErrorData::invalid_params(format!("unknown tool: {name}"), None)
}

/// Whether the call takes something away for good.
fn erases(target: Target<'_>, arguments: Option<&JsonObject>) -> bool {
    let Target::Dialect(_, operation) = target else { return false };
    let said = |name| arguments.and_then(|given| given.get(name)) == Some(&Value::Bool(true));
    match operation.effect {
        EffectHint::Reads | EffectHint::Writes | EffectHint::WritesOnce => false,
        EffectHint::Removes => said("hard") || said("hard_delete"),
        EffectHint::Erases => true,
    }
}

/// Waits for work; meanwhile tells a client that wants to know that it goes on, and ends the
/// work when the client no longer wants it.
async fn attended<T>(
    context: &RequestContext<RoleServer>,
    most: Duration,
    work: impl Future<Output = T>,
) -> Result<T, ErrorData> {
    let (token, begun) = (context.meta.get_progress_token(), Instant::now());
    let mut pulse = tokio::time::interval_at(tokio::time::Instant::now() + PULSE, PULSE);
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return Ok(done),
            () = context.ct.cancelled() => {
                return Err(ErrorData::internal_error("the call was cancelled", None));
            }
            _ = pulse.tick() => {
                if begun.elapsed() > most {
                    let reason = format!("no answer within {} s", most.as_secs());
                    return Err(ErrorData::internal_error(reason, None));
                }
                if let Some(token) = &token {
                    let seconds = begun.elapsed().as_secs_f64();
                    let told = ProgressNotificationParam::new(token.clone(), seconds)
                        .with_message("still working; the number counts seconds");
                    // A client that is gone is noticed by the cancellation.
                    let _ = context.peer.notify_progress(told).await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_follow_the_effect() {
        let table = [
            (EffectHint::Reads, [true, false, true]),
            (EffectHint::Writes, [false, false, false]),
            (EffectHint::WritesOnce, [false, false, true]),
            (EffectHint::Removes, [false, true, true]),
            (EffectHint::Erases, [false, true, true]),
        ];
        for (effect, [reads, removes, once]) in table {
            let hints = annotations("x", effect);
            assert_eq!(hints.read_only_hint, Some(reads), "{effect:?}");
            assert_eq!(hints.destructive_hint, Some(removes), "{effect:?}");
            assert_eq!(hints.idempotent_hint, Some(once), "{effect:?}");
            assert_eq!(hints.open_world_hint, Some(false), "{effect:?}");
        }
    }

    #[test]
    fn a_schema_says_that_it_is_an_object() {
        assert_eq!(object(&json!({}))["type"], "object");
        assert_eq!(object(&json!({ "type": "object", "required": ["a"] }))["required"][0], "a");
    }
}

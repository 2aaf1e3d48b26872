//! Asks a person before something is erased, where the client can ask.
//!
//! Since 2026-07-28 the question is a result and the answer a second call, with our sealed
//! note of what was asked; before it the question is a request of ours in between.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult,
    ElicitationAction, ErrorData, InputRequest, InputRequiredResult, SealOptions, ServerRequest,
};
use rmcp::service::{Peer, RequestContext};
use serde_json::{Value, json};
use yore_canon::hash::Blake3;

use crate::caller::{can_ask, is_modern};
use crate::server::Mcp;

const KEY: &str = "confirm";
/// How long a person may think about it.
const LIFE: Duration = Duration::from_secs(600);

/// What came of asking.
pub(crate) enum Answer {
    /// Go on; also when nobody can be asked.
    Yes,
    /// Leave it.
    No,
    /// The client shall ask and come back.
    Ask(Box<InputRequiredResult>),
}

/// Finds out whether a person agrees to an erasure.
pub(crate) async fn confirm(
    mcp: &Mcp,
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<Answer, ErrorData> {
    if !can_ask(context) {
        return Ok(Answer::Yes);
    }
    if !is_modern(context) {
        let agreed = elicit(&context.peer, form()?).await.is_ok_and(|result| agreed(&result));
        return Ok(if agreed { Answer::Yes } else { Answer::No });
    }
    let asked = digest(request);
    let sealed = request
        .request_state
        .as_deref()
        .map(|state| mcp.states().open_with(state, asked.as_bytes()).is_ok());
    let answer = request.input_responses.as_ref().and_then(|responses| responses.get(KEY));
    match (sealed, answer) {
        (Some(true), Some(answer)) => {
            match serde_json::from_value::<ElicitResult>(answer.clone()) {
                Ok(result) if agreed(&result) => Ok(Answer::Yes),
                Ok(_) => Ok(Answer::No),
                Err(_) => Err(ErrorData::invalid_params("the answer cannot be read", None)),
            }
        }
        // A note that is too old, or was made before a restart, or for another call.
        (Some(false) | None, Some(_)) | (_, None) => {
            let options = SealOptions::new().associated_data(asked.as_bytes()).ttl(LIFE);
            let state = mcp.states().seal_with(b"erase", &options);
            let question = InputRequest::Elicitation(ElicitRequest::new(form()?));
            let requests = [(KEY.to_owned(), question)].into_iter().collect();
            Ok(Answer::Ask(Box::new(InputRequiredResult::new(Some(requests), Some(state)))))
        }
    }
}

/// Puts a form before the person at an older client.
pub(crate) async fn elicit(
    peer: &Peer<RoleServer>,
    form: ElicitRequestParams,
) -> Result<ElicitResult, ErrorData> {
    let wrong = |reason: String| ErrorData::internal_error(reason, None);
    let asked = peer.send_request(ServerRequest::ElicitRequest(ElicitRequest::new(form))).await;
    let ClientResult::ElicitResult(result) = asked.map_err(|error| wrong(error.to_string()))?
    else {
        return Err(wrong("the client's answer is of another sort".into()));
    };
    Ok(result)
}

fn agreed(result: &ElicitResult) -> bool {
    let said = result.content.as_ref().and_then(|content| content.get(KEY));
    result.action == ElicitationAction::Accept && said == Some(&Value::Bool(true))
}

/// What the question was about: the answer to one call is none to another.
fn digest(request: &CallToolRequestParams) -> String {
    let said = json!([request.name, request.arguments]);
    Blake3::of(said.to_string()).to_hex()
}

fn form() -> Result<ElicitRequestParams, ErrorData> {
    let form = json!({
        "mode": "form",
        "message": "Erase this memory for good? Its text is removed from every version, index \
                    and copy, and cannot be brought back.",
        "requestedSchema": {
            "type": "object",
            "properties": {
                KEY: { "type": "boolean", "title": "Erase for good", "default": false },
            },
            "required": [KEY],
        },
    });
    serde_json::from_value(form).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_can_be_read() {
        form().unwrap();
    }

    #[test]
    fn only_a_clear_yes_counts() {
        let yes = ElicitResult::new(ElicitationAction::Accept).with_content(json!({ KEY: true }));
        assert!(agreed(&yes));
        for no in [
            ElicitResult::new(ElicitationAction::Accept),
            ElicitResult::new(ElicitationAction::Accept).with_content(json!({ KEY: false })),
            ElicitResult::new(ElicitationAction::Accept).with_content(json!({ KEY: "true" })),
            ElicitResult::new(ElicitationAction::Decline).with_content(json!({ KEY: true })),
            ElicitResult::new(ElicitationAction::Cancel).with_content(json!({ KEY: true })),
        ] {
            assert!(!agreed(&no), "{no:?}");
        }
    }

    #[test]
    fn another_call_is_another_question() {
        let call = |id: &str| {
            let arguments = json!({ "id": id, "hard": true }).as_object().cloned().unwrap();
            CallToolRequestParams::new("ump.forget").with_arguments(arguments)
        };
        assert_eq!(digest(&call("a")), digest(&call("a")));
        assert_ne!(digest(&call("a")), digest(&call("b")));
    }
}

//! Requests of the Universal Memory Protocol, made over the same way as every other call.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::TryStreamExt;
use http::{Method, Request};
use serde_json::Value;
use yore_client::Client;

use crate::app::Session;
use crate::failure::{Exit, Failure, Result};

/// The most bytes of an answer that are read.
const ANSWER: usize = 256 << 20;
/// The longest a request may take.
const TIME: Duration = Duration::from_secs(120);

/// An answer to any HTTP request.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: u16,
    /// The header of that name, for a few that matter.
    pub(crate) session: Option<String>,
    /// The body as it came.
    pub(crate) text: String,
}

impl Answer {
    /// The body as JSON; null when it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

/// Sends a request and reads the whole answer.
pub(crate) async fn send(
    client: &Client,
    method: Method,
    path: &str,
    headers: &[(&'static str, &str)],
    body: Bytes,
) -> Result<Answer> {
    let wrong = |error: http::Error| Failure::usage(error.to_string());
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(body).map_err(wrong)?;
    let answered = async {
        let response = client.forward(request).await?;
        let session = response.headers().get("mcp-session-id");
        let session = session.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let status = response.status().as_u16();
        let mut body = response.into_body();
        let mut read = BytesMut::new();
        while let Some(piece) =
            body.try_next().await.map_err(|error| Failure::failed(error.to_string()))?
        {
            if read.len() + piece.len() > ANSWER {
                return Err(Failure::failed("the answer is longer than 256 MiB"));
            }
            read.extend_from_slice(&piece);
        }
        Ok(Answer { status, session, text: String::from_utf8_lossy(&read).into_owned() })
    };
    tokio::time::timeout(TIME, answered)
        .await
        .map_err(|_| Failure::new(Exit::Unreachable, "no answer within 120 s"))?
}

impl Session<'_> {
    /// Carries out an operation of the protocol; refusals become failures.
    pub(crate) async fn ump(&mut self, operation: &str, input: &Value) -> Result<Value> {
        let path = format!("/ump/{operation}");
        let body = Bytes::from(input.to_string());
        let answer = send(self.client(), Method::POST, &path, &[], body).await?;
        let value = answer.json();
        if answer.status == 200 {
            return Ok(value);
        }
        Err(refused(answer.status, &value))
    }
}

fn refused(status: u16, value: &Value) -> Failure {
    let error = &value["error"];
    let code = error["code"].as_str().unwrap_or_default();
    let message = error["message"].as_str().unwrap_or_default();
    let message = message.strip_prefix(&format!("{code}: ")).unwrap_or(message);
    let exit = match code {
        "unauthorized" | "forbidden_scope" => Exit::NotAuthorised,
        "not_found" => Exit::NotFound,
        "invalid_record" | "unsupported" | "signature_invalid" => Exit::Usage,
        "consent_violation" => Exit::Conflict,
        "rate_limited" => Exit::Unreachable,
        _ => Exit::Failed,
    };
    let message = match message {
        "" => format!("the server answered with status {status}"),
        message => message.to_owned(),
    };
    Failure::new(exit, message).hinted()
}

//! One request and its answer, sent as often as it takes.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt};
use rmcp::model::{ClientCapabilities, ErrorData, Implementation, ProtocolVersion};
use serde_json::{Value, json};
use sse_stream::SseStream;
use yore_canon::encode::{base64, hex};
use yore_client::api;

use super::{Here, Relayed, Upstream};
use crate::{OPERATION_META, server};

/// How long a server may be away before its clients hear of it.
const PATIENCE: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";

/// A request that stands alone.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    id: Value,
    method: String,
    params: Value,
    operation: Option<String>,
}

impl Ask {
    pub(crate) fn new(id: Value, method: &str, mut params: Value, meta: Value) -> Self {
        let operation = (method == "tools/call").then(|| {
            let given = meta.get(OPERATION_META).and_then(Value::as_str);
            given.map_or_else(fresh, str::to_owned)
        });
        if !params.is_object() {
            params = json!({});
        }
        params["_meta"] = meta;
        Self { id, method: method.to_owned(), params, operation }
    }

    pub(crate) fn id(&self) -> &Value {
        &self.id
    }

    pub(crate) fn method(&self) -> &str {
        &self.method
    }

    pub(crate) fn params(&self) -> &Value {
        &self.params
    }

    /// The same request with the answers that the server wanted. It is another operation: the
    /// first one was none.
    pub(crate) fn answering(mut self, responses: Value, state: Option<Value>) -> Self {
        self.params["inputResponses"] = responses;
        if let Some(state) = state {
            self.params["requestState"] = state;
        }
        self.operation = self.operation.map(|_| fresh());
        self
    }

    fn request(&self, path: &'static str) -> io::Result<Request<Bytes>> {
        let message = json!({
            "jsonrpc": "2.0", "id": self.id, "method": self.method, "params": self.params,
        });
        let mut request = Request::post(path).body(Bytes::from(message.to_string()));
        if let Ok(request) = &mut request {
            self.head(request.headers_mut())?;
        }
        request.map_err(io::Error::other)
    }

    fn head(&self, headers: &mut HeaderMap) -> io::Result<()> {
        let version = self.params["_meta"].get(VERSION).and_then(Value::as_str);
        let version = version.unwrap_or(ProtocolVersion::LATEST.as_str()).to_owned();
        let name = match self.method.as_str() {
            "tools/call" | "prompts/get" => self.params.get("name"),
            "resources/read" => self.params.get("uri"),
            _ => None,
        };
        let lines = [
            ("mcp-protocol-version", Some(version)),
            ("mcp-method", Some(self.method.clone())),
            ("mcp-name", name.and_then(Value::as_str).map(written)),
            (api::OPERATION_ID, self.operation.clone()),
        ];
        for (name, value) in lines {
            if let Some(value) = value {
                let value = HeaderValue::from_str(&value).map_err(io::Error::other)?;
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let both = "application/json, text/event-stream";
        headers.insert(ACCEPT, HeaderValue::from_static(both));
        Ok(())
    }
}

/// What a request says about the client behind it.
pub(crate) fn meta(can: Option<ClientCapabilities>, who: Option<Implementation>) -> Value {
    json!({
        VERSION: ProtocolVersion::LATEST,
        CAPABILITIES: can.unwrap_or_default(),
        CLIENT: who.unwrap_or_else(server::implementation),
    })
}

fn fresh() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("invariant: the system has a source of randomness");
    format!("mcp-{}", hex(&bytes))
}

/// A text as a header can carry it.
fn written(text: &str) -> String {
    let plain = !text.is_empty()
        && text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && text.trim() == text
        && !text.starts_with("=?");
    if plain { text.to_owned() } else { format!("=?base64?{}?=", base64(text.as_bytes())) }
}

/// Nobody answered, or not to the end.
#[derive(Debug)]
pub(crate) struct Lost(pub(crate) String);

/// The other server.
#[derive(Clone)]
pub(crate) struct Link {
    upstream: Arc<dyn Upstream>,
    path: &'static str,
}

impl Link {
    pub(crate) fn new(upstream: Arc<dyn Upstream>, path: &'static str) -> Self {
        Self { upstream, path }
    }

    /// The server itself, while it is this process.
    pub(crate) fn here(&self) -> Option<Here> {
        self.upstream.here()
    }

    /// Asks until there is an answer; what the server tells meanwhile goes to `told`.
    pub(crate) async fn ask(
        &self,
        ask: &Ask,
        mut told: impl FnMut(Value) -> BoxFuture<'static, ()> + Send,
    ) -> Result<Value, ErrorData> {
        let (begun, mut pause) = (Instant::now(), FIRST_PAUSE);
        loop {
            match self.attempt(ask, &mut told).await {
                Ok(answer) => return answer,
                Err(Lost(reason)) if begun.elapsed() > PATIENCE => {
                    let reason = format!("the memory server does not answer: {reason}");
                    return Err(ErrorData::internal_error(reason, None));
                }
                Err(Lost(reason)) => {
                    tracing::debug!(%reason, "asking again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// Asks once.
    pub(crate) async fn attempt(
        &self,
        ask: &Ask,
        told: &mut (impl FnMut(Value) -> BoxFuture<'static, ()> + Send),
    ) -> Result<Result<Value, ErrorData>, Lost> {
        let request = match ask.request(self.path) {
            Ok(request) => request,
            Err(error) => return Ok(Err(ErrorData::invalid_params(error.to_string(), None))),
        };
        let lost = |error: io::Error| Lost(error.to_string());
        let response = self.upstream.send(request).await.map_err(lost)?;
        if !is_stream(&response) {
            return plain(response).await;
        }
        let mut events = SseStream::from_bytes_stream(response.into_body());
        while let Some(event) = events.next().await {
            let event = event.map_err(|error| Lost(error.to_string()))?;
            let Some(data) = event.data.filter(|data| !data.trim().is_empty()) else { continue };
            let message: Value =
                serde_json::from_str(&data).map_err(|error| Lost(error.to_string()))?;
            if message.get("method").is_some() {
                told(message).await;
            } else if let Some(answer) = answer(message) {
                return Ok(answer);
            }
        }
        Err(Lost("the answer ended early".into()))
    }
}

fn is_stream(response: &Response<Relayed>) -> bool {
    let kind = response.headers().get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

/// An answer in one piece.
async fn plain(response: Response<Relayed>) -> Result<Result<Value, ErrorData>, Lost> {
    let status = response.status();
    let pieces: Vec<Bytes> =
        response.into_body().try_collect().await.map_err(|error| Lost(error.to_string()))?;
    match serde_json::from_slice(&pieces.concat()).ok().and_then(answer) {
        Some(answer) => Ok(answer),
        // A server on its way down or up says so without the protocol's words.
        None if status.is_server_error() || status.is_success() => {
            Err(Lost(format!("status {}", status.as_u16())))
        }
        None => {
            let reason = format!("the memory server refused the request: {status}");
            Ok(Err(ErrorData::invalid_request(reason, None)))
        }
    }
}

fn answer(mut message: Value) -> Option<Result<Value, ErrorData>> {
    if let Some(result) = message.get_mut("result") {
        return Some(Ok(result.take()));
    }
    let error = message.get_mut("error")?.take();
    Some(Err(serde_json::from_value(error).unwrap_or_else(|_| {
        ErrorData::internal_error("the memory server's error cannot be read", None)
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(meta: Value) -> Ask {
        Ask::new(json!(7), "tools/call", json!({ "name": "ump.recall" }), meta)
    }

    #[test]
    fn tool_calls_keep_their_operation() {
        let ask = call(meta(None, None));
        let (one, two) = (ask.request("/mcp").unwrap(), ask.request("/mcp").unwrap());
        let operation = one.headers()[api::OPERATION_ID].clone();
        assert_eq!(operation, two.headers()[api::OPERATION_ID]);
        assert_ne!(
            operation,
            call(meta(None, None)).request("/mcp").unwrap().headers()[api::OPERATION_ID]
        );
        let given = call(json!({ OPERATION_META: "mine" })).request("/mcp").unwrap();
        assert_eq!(given.headers()[api::OPERATION_ID], "mine");
        let list = Ask::new(json!(1), "tools/list", json!({}), meta(None, None));
        assert!(!list.request("/mcp").unwrap().headers().contains_key(api::OPERATION_ID));
    }

    #[test]
    fn headers_say_what_the_body_says() {
        let request = call(meta(None, None)).request("/mcp").unwrap();
        let body: Value = serde_json::from_slice(request.body()).unwrap();
        assert_eq!(request.headers()["mcp-method"], body["method"].as_str().unwrap());
        assert_eq!(request.headers()["mcp-name"], "ump.recall");
        assert_eq!(request.headers()["mcp-protocol-version"], "2026-07-28");
        assert_eq!(body["params"]["_meta"][VERSION], "2026-07-28");
    }

    #[test]
    fn names_travel_whatever_they_are() {
        for plain in ["ump.recall", "ump://a/urn:ump:b", "two words"] {
            assert_eq!(written(plain), plain);
        }
        for odd in ["", " x", "ü", "a\nb", "=?base64?eA==?="] {
            let header = written(odd);
            assert!(header.starts_with("=?base64?") && HeaderValue::from_str(&header).is_ok());
        }
    }
}

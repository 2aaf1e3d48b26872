//! Requests of memorywire, made over the same way as every other call.

use bytes::Bytes;
use http::Method;
use serde_json::Value;
use yore_client::{Error, Refusal};

use crate::app::Session;
use crate::failure::{Failure, Result};
use crate::ump::send;

impl Session<'_> {
    /// Posts to a path of the protocol, whose refusals have the form of the native API.
    pub(crate) async fn post(&mut self, path: &str, input: &Value) -> Result<Value> {
        let body = Bytes::from(input.to_string());
        let answer = send(self.client(), Method::POST, path, &[], body).await?;
        let mut value = answer.json();
        if answer.status == 200 {
            return Ok(value);
        }
        let refusal: Refusal = serde_json::from_value(value["error"].take())
            .map_err(|_| Failure::failed(format!("the server answered {}", answer.status)))?;
        Err(Error::Refused(Refusal { status: answer.status, ..refusal }).into())
    }
}

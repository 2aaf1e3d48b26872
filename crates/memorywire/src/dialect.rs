//! The protocol as every carrier sees it.

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use percent_encoding::percent_decode_str;
use serde_json::Value;
use yore_domain::{Error, Result};
use yore_engine::Call;
use yore_engine::dialect::{Dialect, OperationSchema, Resource, ResourceTemplate};

use crate::error::Refusal;
use crate::wire::Object;
use crate::{Memorywire, NAME};

/// What the address of a recall begins with.
const RECALL: &str = "memorywire://recall/";
const MIME: &str = "application/json";

const TEMPLATES: [ResourceTemplate; 1] = [ResourceTemplate {
    uri: "memorywire://recall/{query}",
    name: "recall",
    summary: "What the agent's memories answer to a question, which is part of the address.",
    mime: MIME,
}];

impl Dialect for Memorywire {
    fn name(&self) -> &'static str {
        NAME
    }

    fn operations(&self) -> &[OperationSchema] {
        &self.operations
    }

    fn call<'a>(
        &'a self,
        call: Call,
        operation: &'a str,
        input: Value,
    ) -> BoxFuture<'a, Result<Value, Value>> {
        Box::pin(async move {
            let done = async {
                let input = self.addressed(&call, members(input)?).await?;
                self.perform(&call, operation, input).await
            };
            done.await.map_err(told)
        })
    }

    /// The protocol tells of no changes: whoever listens hears nothing.
    fn subscribe<'a>(
        &'a self,
        call: Call,
        _input: Value,
    ) -> BoxFuture<'a, Result<BoxStream<'static, Value>, Value>> {
        Box::pin(async move {
            self.addressed(&call, Object::new()).await.map_err(told)?;
            Ok(stream::pending().boxed())
        })
    }

    fn templates(&self) -> &[ResourceTemplate] {
        &TEMPLATES
    }

    fn read<'a>(
        &'a self,
        call: Call,
        uri: &'a str,
    ) -> BoxFuture<'a, Option<Result<Resource, Value>>> {
        Box::pin(async move {
            let query = uri.strip_prefix(RECALL)?;
            Some(self.answer_at(&call, uri, query).await.map_err(told))
        })
    }
}

impl Memorywire {
    async fn answer_at(&self, call: &Call, uri: &str, query: &str) -> Result<Resource> {
        let query = percent_decode_str(query).decode_utf8();
        let query = query.map_err(|_| Error::invalid("uri", "is not UTF-8"))?.into_owned();
        let input = Object::from_iter([("query".to_owned(), query.as_str().into())]);
        let input = self.addressed(call, input).await?;
        let found = self.perform(call, "recall", input).await?;
        let text = serde_json::to_string_pretty(&found).map_err(Error::internal)?;
        Ok(Resource { uri: uri.to_owned(), name: query, mime: MIME, text: Some(text) })
    }
}

fn told(error: Error) -> Value {
    Refusal::from(error).envelope()
}

/// An input is an object; none at all is an empty one.
fn members(input: Value) -> Result<Object> {
    match input {
        Value::Object(members) => Ok(members),
        Value::Null => Ok(Object::new()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(Error::invalid("input", "must be an object"))
        }
    }
}

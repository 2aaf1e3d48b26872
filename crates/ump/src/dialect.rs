//! The protocol as every carrier sees it.

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::Value;
use yore_canon::seal::MEMBER;
use yore_domain::grant::Verb;
use yore_domain::query::{Filter, PageRequest};
use yore_domain::{Error, Result};
use yore_engine::Call;
use yore_engine::dialect::{Dialect, OperationSchema, Presented, Resource, ResourceTemplate};

use crate::error::Refusal;
use crate::map::id_of;
use crate::wire::{Object, Wire};
use crate::{NAME, Ump, stream, token};

const SCHEME: &str = "ump://";
const MIME: &str = "application/json";
/// Stands where a record has no project.
const NOWHERE: &str = "-";
/// Characters of a resource's name.
const NAME_CHARS: usize = 60;

const TEMPLATES: [ResourceTemplate; 1] = [ResourceTemplate {
    uri: "ump://{project}/{id}",
    name: "memory",
    summary: "One memory as a signed record; '-' stands where it has no project.",
    mime: MIME,
}];

impl Dialect for Ump {
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
                let mut input = members(input)?;
                if operation == "remember" {
                    self.fill_in(&call, &mut input).await?;
                }
                self.perform(&call, operation, input, None).await
            };
            done.await.map_err(|error| Refusal::of(&error).envelope())
        })
    }

    fn subscribe<'a>(
        &'a self,
        call: Call,
        input: Value,
    ) -> BoxFuture<'a, Result<BoxStream<'static, Value>, Value>> {
        Box::pin(async move {
            let opened = async { stream::values(self, call, members(input)?).await };
            opened.await.map_err(|error| Refusal::of(&error).envelope())
        })
    }

    fn credential(&self, token: &str) -> Option<Presented> {
        token::credential(token)
    }

    fn templates(&self) -> &[ResourceTemplate] {
        &TEMPLATES
    }

    fn resources<'a>(
        &'a self,
        call: Call,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Resource>, Value>> {
        Box::pin(async move {
            let page = PageRequest { limit, ..PageRequest::default() };
            let listed = self.engine.list(&call, Filter::default(), page).await;
            let listed = listed.map_err(|error| Refusal::of(&error).envelope())?;
            Ok(listed
                .items
                .iter()
                .map(|memory| {
                    let content = &memory.head.content;
                    Resource {
                        uri: uri(content.scope.project.as_deref(), &id_of(&memory.head)),
                        name: content.body.text.chars().take(NAME_CHARS).collect(),
                        mime: MIME,
                        text: None,
                    }
                })
                .collect())
        })
    }

    fn read<'a>(
        &'a self,
        call: Call,
        address: &'a str,
    ) -> BoxFuture<'a, Option<Result<Resource, Value>>> {
        Box::pin(async move {
            let (project, id) = address.strip_prefix(SCHEME)?.split_once('/')?;
            let read = self.resource(&call, address, project, id).await;
            Some(read.map_err(|error| Refusal::of(&error).envelope()))
        })
    }
}

impl Ump {
    /// Says for a model what it need not say: a fact of the vault's own owner. The HTTP binding
    /// demands both, as the protocol does, and what is signed is left as it is.
    async fn fill_in(&self, call: &Call, input: &mut Object) -> Result<()> {
        let record = match input.get_mut("record") {
            Some(Value::Object(record)) => record,
            Some(_) | None => input,
        };
        if record.contains_key(MEMBER) {
            return Ok(());
        }
        record.entry("kind").or_insert_with(|| "semantic".into());
        let scope = record.entry("scope").or_insert_with(|| Object::new().into());
        if let Some(scope) = scope.as_object_mut()
            && scope.get("owner").is_none_or(Value::is_null)
        {
            let owner = self.engine.identify(call, Verb::Write).await?.did().to_owned();
            scope.insert("owner".to_owned(), owner.into());
        }
        Ok(())
    }

    async fn resource(
        &self,
        call: &Call,
        address: &str,
        project: &str,
        id: &str,
    ) -> Result<Resource> {
        let record = self.record(call, &decoded(id)?, Wire::default()).await?;
        let stated = record.get("scope").and_then(|scope| scope.get("project"));
        let stated = stated.and_then(Value::as_str).unwrap_or(NOWHERE);
        if decoded(project)? != stated {
            return Err(Error::NotFound);
        }
        let name = record.get("id").and_then(Value::as_str).unwrap_or(id).to_owned();
        let text = serde_json::to_string_pretty(&record).map_err(Error::internal)?;
        Ok(Resource { uri: address.to_owned(), name, mime: MIME, text: Some(text) })
    }
}

/// Returns the address of a record.
fn uri(project: Option<&str>, id: &str) -> String {
    let encoded = |text| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let project = project.map_or_else(|| NOWHERE.to_owned(), encoded);
    format!("{SCHEME}{project}/{}", encoded(id))
}

fn decoded(text: &str) -> Result<String> {
    let decoded = percent_decode_str(text).decode_utf8();
    Ok(decoded.map_err(|_| Error::invalid("uri", "is not UTF-8"))?.into_owned())
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

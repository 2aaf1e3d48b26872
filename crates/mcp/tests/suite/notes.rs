//! A small dialect over the real engine, so that what MCP carries is really stored and judged.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use serde_json::{Value, json};
use yore_domain::change::What;
use yore_domain::memory::{Draft, Version};
use yore_domain::mutation::{Depth, Mutation};
use yore_domain::query::{Cutoff, Filter, PageRequest, Recall};
use yore_domain::{Error, MemoryId};
use yore_engine::dialect::{Dialect, EffectHint, OperationSchema, Resource, ResourceTemplate};
use yore_engine::{Call, Effect, Engine, Reference, Wish};

const TEMPLATES: &[ResourceTemplate] = &[ResourceTemplate {
    uri: "note://{project}/{id}",
    name: "note",
    summary: "A note.",
    mime: "application/json",
}];

/// How many calls of `wait` are under way.
pub(crate) static WAITING: AtomicUsize = AtomicUsize::new(0);

struct Waiting;

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(crate) struct Notes {
    engine: Engine,
    operations: Vec<OperationSchema>,
}

impl Notes {
    pub(crate) fn new(engine: Engine) -> Self {
        let operation = |name, effect, input: Value, required: Value| OperationSchema {
            name,
            title: "A title",
            summary: "A summary.",
            input: json!({
                "type": "object", "properties": input, "required": required,
                "additionalProperties": false,
            }),
            output: json!({ "type": "object" }),
            effect,
        };
        let text = json!({ "type": "string" });
        let operations = vec![
            operation("recall", EffectHint::Reads, json!({ "query": text }), json!(["query"])),
            operation(
                "remember",
                EffectHint::WritesOnce,
                json!({ "text": text, "project": text }),
                json!(["text"]),
            ),
            operation("get", EffectHint::Reads, json!({ "id": text }), json!(["id"])),
            operation(
                "forget",
                EffectHint::Removes,
                json!({ "id": text, "hard": { "type": "boolean" } }),
                json!(["id"]),
            ),
            operation("burn", EffectHint::Erases, json!({ "id": text }), json!(["id"])),
            operation(
                "wait",
                EffectHint::Writes,
                json!({ "seconds": { "type": "number" } }),
                json!([]),
            ),
        ];
        Self { engine, operations }
    }

    async fn run(&self, call: &Call, operation: &str, input: &Value) -> Result<Value, Error> {
        let text = |name: &'static str| {
            input[name].as_str().ok_or_else(|| Error::invalid(name, "must be a text"))
        };
        let id = || text("id")?.parse::<MemoryId>().map_err(|_| Error::NotFound);
        match operation {
            "recall" => {
                let recalled = self.engine.recall(call, recall(text("query")?)).await?;
                let found: Vec<&str> =
                    recalled.results.iter().map(|hit| hit.found.text()).collect();
                Ok(json!({ "found": found }))
            }
            "remember" => {
                let mut draft = Draft::text(text("text")?);
                draft.content.scope.project = input["project"].as_str().map(str::to_owned);
                let mutation = Mutation::Remember { draft: Box::new(draft), id: None };
                let done = self.engine.mutate(call, mutation, Wish::default()).await?;
                let result = if done.effect == Effect::Created { "created" } else { "merged" };
                Ok(json!({ "id": done.memories[0].memory, "result": result }))
            }
            "get" => {
                let memory = self.engine.get(call, Reference::Memory(id()?)).await?;
                Ok(shown(&memory.head))
            }
            "forget" | "burn" => {
                let burns = operation == "burn" || input["hard"] == true;
                let depth = if burns { Depth::Erase } else { Depth::Tombstone };
                let mutation =
                    Mutation::Forget { memories: vec![id()?], depth, reason: Some("asked".into()) };
                let done = self.engine.mutate(call, mutation, Wish::default()).await?;
                Ok(json!({ "result": done.effect }))
            }
            _ => {
                WAITING.fetch_add(1, Ordering::SeqCst);
                let _waiting = Waiting;
                let seconds = input["seconds"].as_f64().unwrap_or(1.0);
                tokio::time::sleep(std::time::Duration::from_secs_f64(seconds)).await;
                Ok(json!({ "waited": seconds }))
            }
        }
    }
}

fn recall(query: &str) -> Recall {
    Recall {
        query: query.to_owned(),
        corpus: Default::default(),
        filter: Filter::default(),
        near: Default::default(),
        limit: 10,
        effort: Default::default(),
        prefer: Vec::new(),
        cutoff: Cutoff::Off,
    }
}

fn shown(version: &Version) -> Value {
    json!({ "id": version.memory, "text": version.content.body.text })
}

fn failed(error: &Error) -> Value {
    json!({ "error": { "code": error.code(), "message": error.to_string() } })
}

fn uri(version: &Version) -> String {
    let project = version.content.scope.project.as_deref().unwrap_or("none");
    format!("note://{project}/{}", version.memory)
}

impl Dialect for Notes {
    fn name(&self) -> &'static str {
        "note"
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
        Box::pin(
            async move { self.run(&call, operation, &input).await.map_err(|error| failed(&error)) },
        )
    }

    fn subscribe<'a>(
        &'a self,
        call: Call,
        _: Value,
    ) -> BoxFuture<'a, Result<BoxStream<'static, Value>, Value>> {
        Box::pin(async move {
            let events =
                self.engine.subscribe(&call, None).await.map_err(|error| failed(&error))?;
            let told = events.filter_map(async |event| match event.ok()?.change {
                What::Memory { memory, .. } => Some(json!({ "type": "changed", "id": memory })),
                _ => None,
            });
            Ok(told.boxed())
        })
    }

    fn templates(&self) -> &[ResourceTemplate] {
        TEMPLATES
    }

    fn resources<'a>(
        &'a self,
        call: Call,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Resource>, Value>> {
        Box::pin(async move {
            let page = PageRequest { limit, ..PageRequest::default() };
            let listed = self.engine.list(&call, Filter::default(), page).await;
            let listed = listed.map_err(|error| failed(&error))?;
            let resources = listed.items.into_iter().map(|memory| Resource {
                uri: uri(&memory.head),
                name: memory.head.memory.to_string(),
                mime: "application/json",
                text: None,
            });
            Ok(resources.collect())
        })
    }

    fn read<'a>(
        &'a self,
        call: Call,
        uri: &'a str,
    ) -> BoxFuture<'a, Option<Result<Resource, Value>>> {
        Box::pin(async move {
            let id = uri.strip_prefix("note://")?.split_once('/')?.1;
            let input = json!({ "id": id });
            Some(match self.run(&call, "get", &input).await {
                Ok(found) => Ok(Resource {
                    uri: uri.to_owned(),
                    name: id.to_owned(),
                    mime: "application/json",
                    text: Some(found.to_string()),
                }),
                Err(error) => Err(failed(&error)),
            })
        })
    }
}

//! The native API as an OpenAPI 3.1 document, made from the types that carry it.
//!
//! [`document`] walks the list of operations in [`crate::api`], so an operation cannot be
//! forgotten, and asks each type for its own schema, so a member cannot be described wrongly.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use yore_domain::BlobHash;

use crate::api::{self, ATTACH, Attached, Event, OPERATION_ID, PREFIX, REQUEST_ID, VAULT, WATCH};
use crate::error::Refused;
use crate::input;

/// Where a server offers the document.
pub const PATH: &str = "/api/v1/openapi.json";

/// Returns the document.
#[must_use]
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut book = Book { generator: settings.into_generator(), paths: Map::new() };
    api::describe(&mut book);
    book.watch();
    book.attachments();
    let refused = book.generator.subschema_for::<Refused>();
    let schemas = book.generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Yore",
            "summary": "The native API of a memory server that belongs to the person",
            "description": "Every operation is a POST of one JSON object. A member that is not \
                described is refused. Times are microseconds since 1970 in UTC, lengths of time \
                microseconds.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [
            { "url": "http://127.0.0.1:7070", "description": "Plain HTTP, for this machine alone" },
            { "url": "https://127.0.0.1:7443", "description": "TLS 1.3" },
        ],
        "security": [{ "bearer": [] }],
        "paths": book.paths,
        "components": {
            "securitySchemes": { "bearer": {
                "type": "http",
                "scheme": "bearer",
                "description": "A token made by `yore token`, or a proof of the master key",
            } },
            "parameters": {
                "operation": header(OPERATION_ID, "The caller's id for a change: a retry within \
                    24 hours returns the first result"),
                "vault": header(VAULT, "The owner or id of the vault, for credentials that \
                    reach several"),
                "request": header(REQUEST_ID, "An id for logs and the audit chain"),
            },
            "responses": { "Refused": {
                "description": "It was not done: the code says why. Status 202 means that it \
                    waits for a person; 429 and 503 say in Retry-After when to come back.",
                "content": { "application/json": { "schema": refused } },
            } },
            "schemas": schemas,
        },
    })
}

/// The operations described so far.
#[derive(Debug)]
pub(crate) struct Book {
    generator: SchemaGenerator,
    paths: Map<String, Value>,
}

impl Book {
    /// Describes an operation that answers with JSON.
    pub(crate) fn operation<I: JsonSchema, O: JsonSchema>(&mut self, name: &str, summary: &str) {
        let output = self.generator.subschema_for::<O>();
        self.path::<I>(name, summary, json!({ "application/json": { "schema": output } }));
    }

    fn watch(&mut self) {
        let event = self.generator.subschema_for::<Event>();
        let stream = json!({ "text/event-stream": { "schema": {
            "description": "Server-sent events; the data of each is one event as JSON",
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": event,
        } } });
        self.path::<input::Watch>(WATCH, "Follows changes, each when it happens.", stream);
    }

    fn attachments(&mut self) {
        let attached = self.generator.subschema_for::<Attached>();
        let blob = self.generator.subschema_for::<BlobHash>();
        let bytes = json!({ "application/octet-stream": {} });
        let refused = json!({ "$ref": "#/components/responses/Refused" });
        let put = json!({
            "operationId": "attachment.put",
            "summary": "Takes in an attachment, which is seen once a visible message names it",
            "tags": ["attachment"],
            "parameters": parameters(),
            "requestBody": { "required": true, "content": bytes },
            "responses": {
                "200": {
                    "description": "Done",
                    "content": { "application/json": { "schema": attached } },
                },
                "default": refused,
            },
        });
        let get = json!({
            "operationId": "attachment.get",
            "summary": "Gives out an attachment that a visible message names",
            "tags": ["attachment"],
            "parameters": parameters(),
            "responses": {
                "200": { "description": "Its bytes", "content": bytes },
                "default": refused,
            },
        });
        let path = format!("{PREFIX}{ATTACH}");
        self.paths.insert(path.clone(), json!({ "post": put }));
        let named = json!({ "name": "blob", "in": "path", "required": true, "schema": blob });
        self.paths.insert(format!("{path}/{{blob}}"), json!({ "parameters": [named], "get": get }));
    }

    fn path<I: JsonSchema>(&mut self, name: &str, summary: &str, answer: Value) {
        // Inputs stand where they are used: each belongs to one operation or two.
        let input = I::json_schema(&mut self.generator);
        let tag = name.split_once('.').map_or("vault", |(tag, _)| tag);
        let operation = json!({
            "operationId": name,
            "summary": summary.trim().trim_end_matches('.'),
            "tags": [tag],
            "parameters": parameters(),
            "requestBody": {
                "required": true,
                "content": { "application/json": { "schema": input } },
            },
            "responses": {
                "200": { "description": "Done", "content": answer },
                "default": { "$ref": "#/components/responses/Refused" },
            },
        });
        self.paths.insert(format!("{PREFIX}{name}"), json!({ "post": operation }));
    }
}

fn parameters() -> [Value; 3] {
    ["operation", "vault", "request"]
        .map(|name| json!({ "$ref": format!("#/components/parameters/{name}") }))
}

fn header(name: &str, description: &str) -> Value {
    let schema = json!({ "type": "string" });
    json!({ "name": name, "in": "header", "description": description, "schema": schema })
}

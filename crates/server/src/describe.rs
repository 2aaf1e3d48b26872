//! Everything REST in one OpenAPI 3.1 document: the native API from its types, the protocols from
//! the schemas of their operations and the tables beside this file.
//!
//! A test reads the routes of the real router and fails for one that is not described here, or
//! described and not there.

mod tables;

#[cfg(test)]
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use yore_engine::dialect::{OperationSchema, Registry};

use tables::{Body, Line, SURFACES};

/// Returns the document of everything REST that this server speaks.
pub(crate) fn document(registry: &Registry) -> Value {
    let mut document = yore_client::openapi::document();
    let mut paths = document["paths"].take();
    if let Some(paths) = paths.as_object_mut() {
        for surface in SURFACES {
            for prefix in surface.prefixes {
                for line in surface.lines {
                    add(paths, surface.tag, &format!("{prefix}{}", line.path), line, registry);
                }
            }
        }
    }
    document["paths"] = paths;
    document["tags"] = SURFACES
        .iter()
        .map(|surface| json!({ "name": surface.tag, "description": surface.about }))
        .collect();
    document["info"]["description"] = json!(
        "Everything REST of this server. Operations under /api/v1 are its native API: each is a \
         POST of one JSON object, a member that is not described is refused, times and lengths of \
         time are microseconds. The others are the surfaces of the protocols it speaks, in their \
         own words; docs/protocols says what each of them demands."
    );
    document
}

fn add(paths: &mut Map<String, Value>, tag: &str, path: &str, line: &Line, registry: &Registry) {
    // A blank for the rest of a path has a name of its own in the router.
    let place = path.replace("{*", "{");
    let schema = line.schema.and_then(|(dialect, name)| found(registry, dialect, name));
    let mut operation = json!({
        "operationId": format!("{tag}{}", named(line.method, &place)),
        "summary": line.summary,
        "tags": [tag],
        "parameters": parameters(&place, line.query),
        "responses": {
            "200": { "description": "Done", "content": answer(line, schema) },
            "default": { "description": "It was not done: the body says why, in the words of the protocol" },
        },
    });
    if line.open {
        operation["security"] = json!([]);
    }
    let body = match line.body {
        Body::None => None,
        Body::Json => {
            let input = schema.map_or_else(|| json!({ "type": "object" }), |one| one.input.clone());
            Some(("application/json", plain(input)))
        }
        Body::Form => Some(("application/x-www-form-urlencoded", json!({ "type": "object" }))),
        Body::Bytes => Some(("application/octet-stream", json!({}))),
    };
    if let Some((kind, schema)) = body {
        operation["requestBody"] =
            json!({ "required": true, "content": { kind: { "schema": schema } } });
    }
    let entry = paths.entry(place).or_insert_with(|| json!({}));
    entry[line.method] = operation;
}

/// The id of an operation that no type names: its method and its place.
fn named(method: &str, place: &str) -> String {
    let words = place.split(['/', '{', '}']).filter(|word| !word.is_empty());
    let words: Vec<String> = words.map(|word| word.replace(['.', '-'], "_")).collect();
    format!(".{method}.{}", words.join("."))
}

fn found<'a>(registry: &'a Registry, dialect: &str, name: &str) -> Option<&'a OperationSchema> {
    let dialect = registry.get(dialect)?;
    dialect.operations().iter().find(|operation| operation.name == name)
}

fn answer(line: &Line, schema: Option<&OperationSchema>) -> Value {
    if line.answers != "application/json" {
        return json!({ line.answers: {} });
    }
    let output = schema.map_or_else(|| json!({}), |one| plain(one.output.clone()));
    json!({ "application/json": { "schema": output } })
}

/// A schema as it may stand inside another document: without a name of its own at its top.
fn plain(mut schema: Value) -> Value {
    if let Some(members) = schema.as_object_mut() {
        members.remove("$schema");
        members.remove("$id");
    }
    schema
}

fn parameters(place: &str, query: &[&str]) -> Vec<Value> {
    let text = json!({ "type": "string" });
    let blanks = place.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path =
        blanks.map(|name| json!({ "name": name, "in": "path", "required": true, "schema": text }));
    let in_query = query.iter().map(|name| json!({ "name": name, "in": "query", "schema": text }));
    in_path.chain(in_query).collect()
}

/// What every path of the document answers to.
#[cfg(test)]
fn described(document: &Value) -> BTreeMap<String, Vec<String>> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let methods = |item: &Value| -> Vec<String> {
        let known = ["get", "post", "put", "patch", "delete"];
        let names = known.into_iter().filter(|name| item.get(name).is_some());
        names.map(str::to_owned).collect()
    };
    paths.map(|(path, item)| (path.clone(), methods(item))).collect()
}

#[cfg(test)]
mod tests;

//! Everything REST in one OpenAPI 3.1 document: the native API from its types, the protocols from
//! the schemas of their operations, or what they say of their own routes, and the tables beside
//! this file.
//!
//! A test reads the routes of the real router and fails for one that is not described here, or
//! described and not there.

mod tables;

#[cfg(test)]
use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use yore_engine::dialect::{OperationSchema, Registry};
use yore_http::describe::{Bodies, Form};

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
    if let Some(schemas) = document["components"]["schemas"].as_object_mut() {
        schemas.extend(yore_omp::schema::definitions());
        schemas.extend(yore_uamp::schema::definitions());
    }
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
    let bodies = bodies(tag, line, registry);
    let mut operation = json!({
        "operationId": format!("{tag}{}", named(line.method, &place)),
        "summary": line.summary,
        "tags": [tag],
        "parameters": parameters(&place, line.query),
        "responses": responses(&bodies),
    });
    if line.open {
        operation["security"] = json!([]);
    }
    if let Some(form) = bodies.takes {
        operation["requestBody"] = json!({ "required": true, "content": content(&[form]) });
    }
    let entry = paths.entry(place).or_insert_with(|| json!({}));
    entry[line.method] = operation;
}

/// What a route takes and gives: as its protocol says, or by the schemas of the operation it runs.
fn bodies(tag: &str, line: &Line, registry: &Registry) -> Bodies {
    let own = match tag {
        "omp" => yore_omp::schema::bodies(line.method, line.path),
        "uamp" => yore_uamp::schema::bodies(line.method, line.path),
        _ => None,
    };
    if let Some(bodies) = own {
        return bodies;
    }
    let schema = line.schema.and_then(|(dialect, name)| found(registry, dialect, name));
    let object = || json!({ "type": "object" });
    let takes = match line.body {
        Body::None => None,
        Body::Json => {
            let input = schema.map_or_else(object, |one| plain(one.input.clone()));
            Some(Form::json(input))
        }
        Body::Form => {
            let media_type = "application/x-www-form-urlencoded";
            Some(Form { media_type, schema: Some(object()) })
        }
    };
    let output = (line.answers == "application/json")
        .then(|| schema.map_or_else(|| json!({}), |one| plain(one.output.clone())));
    let gives = vec![(200, Form { media_type: line.answers, schema: output })];
    Bodies { takes, gives, refuses: None }
}

fn responses(bodies: &Bodies) -> Value {
    let mut responses = Map::new();
    let statuses: BTreeSet<u16> = bodies.gives.iter().map(|(status, _)| *status).collect();
    for status in statuses {
        let forms = bodies.gives.iter().filter(|(other, _)| *other == status);
        let forms: Vec<Form> = forms.map(|(_, form)| form.clone()).collect();
        let said = match status {
            201 => "It was made",
            202 => "It was taken in and is worked on",
            _ => "Done",
        };
        let answer = json!({ "description": said, "content": content(&forms) });
        responses.insert(status.to_string(), answer);
    }
    let mut refused = json!({
        "description": "It was not done: the body says why, in the words of the protocol",
    });
    if let Some(form) = &bodies.refuses {
        refused["content"] = content(std::slice::from_ref(form));
    }
    responses.insert("default".to_owned(), refused);
    Value::Object(responses)
}

fn content(forms: &[Form]) -> Value {
    let one = |form: &Form| match &form.schema {
        Some(schema) => json!({ "schema": schema }),
        None => json!({}),
    };
    forms.iter().map(|form| (form.media_type.to_owned(), one(form))).collect::<Map<_, _>>().into()
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

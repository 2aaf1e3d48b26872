use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use yore_engine::Secret;

use super::described;
use crate::config::{Config, Layers};
use crate::host::Host;
use crate::key::KeySource;

/// What the router itself says of its routes: every path, with the methods that have a handler.
/// Paths that only refuse have none.
fn routed(told: &str) -> BTreeMap<String, Vec<String>> {
    let (routes, paths) = told.split_once("node: Node").expect("a router tells its paths");
    let paths = paths.split("fallback_router").next().unwrap_or_default();
    let methods: BTreeMap<usize, Vec<String>> =
        numbered(routes).into_iter().map(|(number, rest)| (number, handled(rest))).collect();
    let mut found = BTreeMap::new();
    for (number, rest) in numbered(paths) {
        let path = rest.strip_prefix("\"").and_then(|rest| rest.split('"').next());
        let path = path.expect("a path has a name");
        found.insert(path.to_owned(), methods[&number].clone());
    }
    assert!(found.len() > 200, "the router tells of {} paths", found.len());
    found
}

/// What is told of each route, by its number.
fn numbered(told: &str) -> Vec<(usize, &str)> {
    let parts = told.split("RouteId(").skip(1);
    let parts = parts.filter_map(|part| {
        let (number, rest) = part.split_once("): ")?;
        Some((number.parse().ok()?, rest))
    });
    parts.collect()
}

fn handled(route: &str) -> Vec<String> {
    let known = ["get", "post", "put", "patch", "delete"];
    let has = |name: &&str| {
        let mark = format!(" {name}: ");
        route.split(&mark).nth(1).is_some_and(|rest| !rest.starts_with("None"))
    };
    known.into_iter().filter(has).map(str::to_owned).collect()
}

async fn served() -> (Value, String) {
    let place = tempfile::tempdir().unwrap();
    let layers = Layers::new()
        .set("data", place.path().join("data").to_str().unwrap())
        .set("effort", "instant")
        .key(KeySource::Text(Secret::new("5a".repeat(32))));
    let host = Host::open(Config::load(layers).unwrap()).await.unwrap();
    let (document, routes) = host.described();
    (document, routes)
}

#[tokio::test]
async fn every_route_is_described_and_nothing_else() {
    let (document, told) = served().await;
    let described = described(&document);
    let routed = routed(&told);
    // Pages are for people, a socket is no request, and MCP's endpoints are whole services.
    let is_rest = |path: &str| {
        path != "/" && path != "/app" && !path.starts_with("/app/") && !path.starts_with("/mcp")
    };
    let mut missing = BTreeSet::new();
    for (path, methods) in routed.iter().filter(|(path, _)| is_rest(path)) {
        let place = path.replace("{*", "{");
        let known = described.get(&place).cloned().unwrap_or_default();
        for method in methods.iter().filter(|method| !known.contains(method)) {
            missing.insert(format!("{method} {path}"));
        }
    }
    assert!(missing.is_empty(), "not described: {missing:?}");
    let shape = |path: &str| -> String { path.replace("{*", "{") };
    let routed: BTreeMap<String, Vec<String>> =
        routed.into_iter().map(|(path, methods)| (shape(&path), methods)).collect();
    for (path, methods) in described.iter().filter(|(path, _)| is_rest(path)) {
        assert_eq!(routed.get(path), Some(methods), "described, but not there: {path}");
    }
    assert!(described.len() > 150, "{}", described.len());
}

#[tokio::test]
async fn the_document_refers_only_to_what_it_holds_and_names_each_operation_once() {
    let (document, _) = served().await;
    assert_eq!(document["openapi"], "3.1.0");
    let mut ids = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        assert!(path.starts_with('/') && !path.contains('*'), "{path}");
        let blanks: BTreeSet<&str> =
            path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        for (method, operation) in item.as_object().unwrap() {
            if method == "parameters" {
                continue;
            }
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "{id} is there twice");
            let responses = operation["responses"].as_object().unwrap();
            let good = responses.iter().find(|(status, _)| status.starts_with('2'));
            assert!(good.unwrap().1["description"].is_string(), "{method} {path}");
            let own = operation["parameters"].as_array().into_iter().flatten();
            let shared = item["parameters"].as_array().into_iter().flatten();
            let named = own.chain(shared).filter(|one| one["in"] == "path");
            let named: BTreeSet<&str> = named.map(|one| one["name"].as_str().unwrap()).collect();
            assert_eq!(named, blanks, "{method} {path}");
        }
    }
    let mut references = Vec::new();
    gather(&document, &mut references);
    for reference in references {
        let place = reference.strip_prefix('#').unwrap_or_else(|| panic!("{reference}"));
        assert!(document.pointer(place).is_some(), "{reference} leads nowhere");
    }
}

#[tokio::test]
async fn every_json_of_omp_and_uamp_has_a_schema() {
    let (document, _) = served().await;
    let mut seen = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if !["omp", "uamp"].contains(&operation["tags"][0].as_str().unwrap_or_default()) {
                continue;
            }
            let answers = operation["responses"].as_object().unwrap().values();
            let bodies = answers.chain(operation.get("requestBody"));
            for (kind, form) in bodies.flat_map(|body| body["content"].as_object().unwrap()) {
                let bytes = ["application/octet-stream", "application/vnd.omp.archive+zip"];
                let says =
                    form.get("schema").is_some_and(|schema| *schema != serde_json::json!({}));
                assert!(
                    says || bytes.contains(&&**kind),
                    "{method} {path}: {kind} is not described"
                );
                seen += 1;
            }
        }
    }
    assert!(seen > 250, "{seen} bodies");
}

fn gather(value: &Value, references: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                references.push(reference.clone());
            }
            members.values().for_each(|member| gather(member, references));
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, references)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

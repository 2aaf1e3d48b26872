//! The OpenAPI document is whole, says what the types say, and is the one in `docs/`.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use yore_client::{api, openapi};

#[test]
fn the_document_in_docs_is_the_one_the_types_make() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    let kept: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(kept, openapi::document(), "run cargo xtask openapi if the change is meant");
}

#[test]
fn every_operation_has_its_path_and_every_reference_its_target() {
    let document = openapi::document();
    for name in api::NAMES.iter().chain([&api::WATCH]) {
        let operation = &document["paths"][format!("{}{name}", api::PREFIX)]["post"];
        assert_eq!(operation["operationId"], *name);
        assert!(!operation["summary"].as_str().unwrap().is_empty(), "{name}");
    }
    let mut references = BTreeSet::new();
    collect(&document, &mut references);
    assert!(references.len() > 30, "{references:?}");
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    let schemas = document["components"]["schemas"].as_object().unwrap();
    // Of two types with one name the second gets a number behind it.
    let numbered = |name: &&String| {
        let bare = name.trim_end_matches(|c: char| c.is_ascii_digit());
        bare.len() < name.len() && schemas.contains_key(bare)
    };
    let doubled: Vec<_> = schemas.keys().filter(numbered).collect();
    assert!(doubled.is_empty(), "two types of one name: {doubled:?}");
}

#[test]
fn inputs_refuse_what_they_do_not_know_and_name_what_they_need() {
    let document = openapi::document();
    let body = |name: &str| {
        let path = format!("{}{name}", api::PREFIX);
        let post = &document["paths"][path]["post"];
        post["requestBody"]["content"]["application/json"]["schema"].clone()
    };
    let forget = body("forget");
    assert_eq!(forget["additionalProperties"], json!(false));
    assert_eq!(forget["required"], json!(["memories", "depth"]));
    assert_eq!(
        body("grant.issue")["properties"]["verbs"],
        json!({
            "description": "What it allows.",
            "$ref": "#/components/schemas/Verbs",
        })
    );
}

fn collect<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                found.insert(reference);
            }
            members.values().for_each(|member| collect(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

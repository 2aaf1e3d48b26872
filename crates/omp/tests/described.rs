//! Every request that was taken, and every answer, keeps to the published schemas.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::http::Method;
use jsonschema::Validator;
use serde_json::{Value, json};
use yore_omp::{PATHS, PREFIXES, schema};

type Route = (String, &'static str);

/// What a route takes, what it gives by status, and how it refuses.
struct Checks {
    takes: Option<Validator>,
    gives: BTreeMap<u16, Option<Validator>>,
    refuses: Validator,
}

static ROUTES: LazyLock<BTreeMap<Route, Checks>> = LazyLock::new(|| {
    let mut all = BTreeMap::new();
    for path in PATHS {
        for method in ["get", "post", "put", "patch", "delete"] {
            let Some(bodies) = schema::bodies(method, path) else { continue };
            let validator = |schema: &Value| {
                let mut whole = json!({ "allOf": [schema] });
                whole["components"] = json!({ "schemas": schema::definitions() });
                jsonschema::validator_for(&whole).unwrap()
            };
            let checks = Checks {
                takes: bodies.takes.and_then(|form| form.schema).as_ref().map(validator),
                gives: (bodies.gives.iter())
                    .map(|(status, form)| (*status, form.schema.as_ref().map(validator)))
                    .collect(),
                refuses: validator(&bodies.refuses.unwrap().schema.unwrap()),
            };
            all.insert((method.to_owned(), path), checks);
        }
    }
    all
});

/// What is described of a request, if its path is one of the protocol's.
fn found(method: &Method, path: &str) -> Option<&'static Checks> {
    let path = path.split('?').next()?;
    let path = PREFIXES.iter().rev().find_map(|prefix| path.strip_prefix(prefix))?;
    let said: Vec<&str> = path.split('/').collect();
    let fits = |known: &&str| {
        let known: Vec<&str> = known.split('/').collect();
        let same = |(one, two): (&&str, &&str)| one.starts_with('{') || one == two;
        known.len() == said.len() && known.iter().zip(&said).all(same)
    };
    // What is spelt out comes before what has a blank.
    let known = PATHS.into_iter().filter(fits).min_by_key(|known| known.matches('{').count())?;
    ROUTES.get(&(method.as_str().to_ascii_lowercase(), known))
}

#[track_caller]
fn hold(validator: &Validator, value: &Value, what: &str) {
    let faults: Vec<String> = validator
        .iter_errors(value)
        .map(|fault| format!("{}: {fault}", fault.instance_path()))
        .collect();
    assert!(faults.is_empty(), "{what} breaks its schema: {faults:?}\n{value}");
}

/// Holds the body of a request that was taken against what the route says it takes.
#[track_caller]
pub(crate) fn taken(method: &Method, path: &str, body: &Value) {
    if let Some(takes) = found(method, path).and_then(|checks| checks.takes.as_ref()) {
        hold(takes, body, &format!("the request {method} {path}"));
    }
}

/// Holds an answer against what the route says it gives.
#[track_caller]
pub(crate) fn given(method: &Method, path: &str, status: u16, kind: &str, bytes: &[u8]) {
    let Some(checks) = found(method, path) else { return };
    let what = format!("the answer {status} to {method} {path}");
    let form = match checks.gives.get(&status) {
        Some(form) => form.as_ref(),
        None if status == 304 || status == 206 => return,
        None => Some(&checks.refuses),
    };
    match form {
        Some(form) => {
            let value = serde_json::from_slice(bytes);
            hold(form, &value.unwrap_or_else(|error| panic!("{what} is no JSON: {error}")), &what);
        }
        None => assert!(!kind.contains("json"), "{what} is JSON, and said to be bytes"),
    }
}

#[test]
fn the_schemas_are_schemas_and_refer_only_to_what_is_there() {
    let definitions = schema::definitions();
    for (name, schema) in &definitions {
        assert!(jsonschema::draft202012::meta::is_valid(schema), "{name}");
    }
    // Each is used by a route, or by one that is.
    let mut text = Value::Object(definitions.clone()).to_string();
    for ((method, path), _) in ROUTES.iter() {
        let bodies = schema::bodies(method, path).unwrap();
        let schemas = bodies.takes.into_iter().chain(bodies.refuses);
        let schemas = schemas.chain(bodies.gives.into_iter().map(|(_, form)| form));
        schemas.filter_map(|form| form.schema).for_each(|schema| text += &schema.to_string());
    }
    for name in definitions.keys() {
        assert!(text.contains(&format!("schemas/{name}\"")), "nothing refers to {name}");
    }
    assert!(ROUTES.len() > 45, "{}", ROUTES.len());
}

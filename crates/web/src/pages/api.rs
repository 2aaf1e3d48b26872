//! The API, for those who write programs: everything REST, and a console to try it.

use askama::Template;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use yore_domain::grant::Verb;

use crate::desk::Desk;
use crate::trouble::{Page, shown};
use crate::visit::{Shell, Visit};

/// The surface that is shown when none is asked for.
const NATIVE: &str = "native";
/// The operation that the console begins with.
const FIRST: &str = "/api/v1/recall";

/// The document as it is handed out, and what the page shows of it.
#[derive(Debug)]
pub(crate) struct Described {
    text: String,
    surfaces: Vec<Surface>,
}

/// Everything of one protocol.
#[derive(Debug)]
struct Surface {
    name: String,
    about: String,
    operations: Vec<Operation>,
}

#[derive(Debug)]
struct Operation {
    method: String,
    path: String,
    summary: String,
}

#[derive(Template)]
#[template(path = "api.html")]
struct ApiPage<'a> {
    shell: Shell,
    surfaces: &'a [Surface],
    chosen: &'a Surface,
    /// The path of the operation that is chosen at first.
    first: &'a str,
    input: &'static str,
}

impl Described {
    fn of(document: &Value) -> Self {
        let mut surfaces: Vec<Surface> = Vec::new();
        let about = |name: &str| {
            let tags = document["tags"].as_array().into_iter().flatten();
            let tag = tags.into_iter().find(|tag| tag["name"] == name);
            tag.and_then(|tag| tag["description"].as_str()).unwrap_or_default().to_owned()
        };
        for (path, methods) in document["paths"].as_object().into_iter().flatten() {
            for (method, operation) in methods.as_object().into_iter().flatten() {
                let Some(summary) = operation["summary"].as_str() else { continue };
                let tag = operation["tags"][0].as_str().unwrap_or(NATIVE);
                let is_native = path.starts_with("/api/v1/") && tag != "server";
                let name = if is_native { NATIVE } else { tag };
                let operation = Operation {
                    method: method.to_ascii_uppercase(),
                    path: path.clone(),
                    summary: summary.trim().to_owned(),
                };
                match surfaces.iter_mut().find(|surface| surface.name == name) {
                    Some(surface) => surface.operations.push(operation),
                    None => surfaces.push(Surface {
                        name: name.to_owned(),
                        about: about(name),
                        operations: vec![operation],
                    }),
                }
            }
        }
        surfaces.sort_by_key(|surface| (surface.name != NATIVE, surface.name.clone()));
        Self { text: document.to_string(), surfaces }
    }
}

fn described(desk: &Desk) -> &Described {
    desk.described.get_or_init(|| match &desk.options.document {
        Some(document) => Described::of(&(document.0)()),
        None => Described::of(&yore_client::openapi::document()),
    })
}

/// The description of the API, which is no secret.
pub(crate) async fn document(State(desk): State<Desk>) -> Response {
    let kind = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (kind, described(&desk).text.clone()).into_response()
}

pub(crate) async fn show(visit: Visit) -> Page {
    visit.engine().demand(&visit.call, "api.page", Verb::Read).await?;
    let surfaces = &described(&visit.desk).surfaces;
    let wanted = visit.query.get("of").unwrap_or(NATIVE);
    let chosen = surfaces.iter().find(|surface| surface.name == wanted);
    let chosen = chosen.ok_or(yore_domain::Error::NotFound)?;
    let first = chosen.operations.iter().find(|operation| operation.path == FIRST);
    let first = first.or_else(|| chosen.operations.first());
    let path = first.map_or("", |operation| operation.path.as_str());
    let input = match (path, first.map_or("", |operation| operation.method.as_str())) {
        (FIRST, _) => r#"{"query": "what food should I avoid?", "limit": 3}"#,
        (_, "GET" | "DELETE") => "",
        _ => "{}",
    };
    Ok(shown(&ApiPage { shell: visit.shell("api"), surfaces, chosen, first: path, input }))
}

//! The API, for those who write programs.

use std::sync::LazyLock;

use askama::Template;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use yore_client::openapi;
use yore_domain::grant::Verb;

use crate::trouble::{Page, shown};
use crate::visit::{Shell, Visit};

#[derive(Template)]
#[template(path = "api.html")]
struct ApiPage {
    shell: Shell,
    operations: &'static [(String, String)],
}

/// Every operation with what it does, from the document itself.
static OPERATIONS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let document = openapi::document();
    let Some(paths) = document["paths"].as_object() else { return Vec::new() };
    let said = |(path, methods): (&String, &Value)| {
        let methods = methods.as_object()?;
        let summary = methods.values().find_map(|method| method["summary"].as_str())?;
        Some((path.clone(), summary.trim().to_owned()))
    };
    paths.iter().filter_map(said).collect()
});

/// The description of the API, which is no secret.
pub(crate) async fn document() -> Response {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| openapi::document().to_string());
    let kind = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (kind, DOCUMENT.as_str()).into_response()
}

pub(crate) async fn show(visit: Visit) -> Page {
    visit.engine().demand(&visit.call, "api.page", Verb::Read).await?;
    Ok(shown(&ApiPage { shell: visit.shell("api"), operations: &OPERATIONS }))
}
